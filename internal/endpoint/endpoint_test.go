package endpoint_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuery_FlatColumnsHaveTheTypesOfTheCatalog(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{"emps": `
-- @method GET emps/
-- @timeout 5s
SELECT e.id, e.Name, salary, rate, active, hired, born, photo, info, e.salary * 2 AS "Twice" -- no :bind
FROM emp e WHERE e.dept_id = :dept ORDER BY e.id`})
		got := w.rows(w.call("emps", map[string]any{"dept": "1"}))
		want := `[{"id":10,"name":"Ann","salary":1000.5,"rate":0.1,"active":true,"hired":"2020-01-02T03:04:05Z","born":"1990-05-06T00:00:00Z","photo":null,"info":{"a":[1,2]},"Twice":2001},` +
			`{"id":11,"name":"Bob","salary":20,"rate":1000000,"active":false,"hired":"2020-01-02T03:04:05.25Z","born":null,"photo":null,"info":null,"Twice":40}]`
		if diff := cmp.Diff(want, strings.ReplaceAll(strings.ReplaceAll(got, "2001.0", "2001"), `{"a": [1, 2]}`, `{"a":[1,2]}`)); diff != "" {
			t.Fatal(diff)
		}
	})
}

const departments = `
SELECT d.id, d.name, CURSOR(
    SELECT e.id, e.name, e.salary, e.rate, e.active, e.hired, e.born, e.photo, e.info, d.name AS of_dept,
           CURSOR(SELECT o.name, d.id AS dept, o.opened FROM dept o WHERE o.id > e.dept_id /* both */ AND o.id <> d.id ORDER BY o.id DESC) AS "Others"
    FROM emp e WHERE e.dept_id = d.id ORDER BY e.id DESC) AS emps,
  CURSOR(SELECT name FROM emp WHERE dept_id = d.id LIMIT 1) few
FROM dept d WHERE :id IS NULL OR d.id = :id ORDER BY d.id`

func TestQuery_NestedIsOneStatement(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{
			"depts": "-- @method GET depts/:id?" + departments,
			"slow":  "-- @method GET slow/:id?\n-- @nested rows" + departments,
		})
		if n := len(w.snap.Endpoint("hr/depts").SQL.Compiled.Statements); n != 1 {
			t.Fatalf("%d statements", n)
		}
		got := squeeze(w.rows(w.call("depts", map[string]any{"id": 1})))
		want := `[{"id":1,"name":"Sales","emps":[` +
			`{"id":11,"name":"Bob","salary":20,"rate":1000000,"active":false,"hired":"2020-01-02T03:04:05.25Z","born":null,"photo":null,"info":null,"of_dept":"Sales","Others":[{"name":"Empty","dept":1,"opened":"2000-01-01T00:00:00Z"},{"name":"R\"D","dept":1,"opened":null}]},` +
			`{"id":10,"name":"Ann","salary":1000.5,"rate":0.1,"active":true,"hired":"2020-01-02T03:04:05Z","born":"1990-05-06T00:00:00Z","photo":null,"info":{"a":[1,2]},"of_dept":"Sales","Others":[{"name":"Empty","dept":1,"opened":"2000-01-01T00:00:00Z"},{"name":"R\"D","dept":1,"opened":null}]}` +
			`],"few":[{"name":"Ann"}]}]`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(want, squeeze(w.rows(w.call("slow", map[string]any{"id": 1})))); diff != "" {
			t.Fatal(diff)
		}
		if n := w.r.Stats().Nested; n != 4 { // emps, few, and Others for two of emps
			t.Errorf("%d nested statements", n)
		}
		if diff := cmp.Diff(squeeze(w.rows(w.call("depts", nil))), squeeze(w.rows(w.call("slow", nil)))); diff != "" {
			t.Fatal(diff)
		}
	})
}

// squeeze takes out what the databases do differently without changing a value.
func squeeze(s string) string {
	for _, r := range [][2]string{{" : ", ":"}, {`": `, `":`}, {", ", ","}, {",\n ", ","}, {"1000000.0", "1000000"}, {",\n", ","}} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	return s
}

func TestCompile_FaultsNameFileLineAndColumn(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		f := func(text string, want ...string) {
			t.Helper()
			err := w.apply(map[string]string{"a": text})
			if err == nil {
				t.Errorf("%s: applied", text)
				return
			}
			got := strings.Split(err.Error(), "\n")
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], "endpoints/hr/a.sql:")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", text, diff)
			}
		}
		by := func(sqlite, postgres string) string {
			if w.st.Name() == "sqlite" {
				return sqlite
			}
			return postgres
		}
		const get, post = "-- @method GET a\n", "-- @method POST a\n"
		f(get+"SELECT id,\n  nmae FROM emp", "3:3: "+by("no such column: nmae", `column "nmae" does not exist`))
		f(get+"SELECT 'ä', nmae FROM emp", "2:13: "+by("no such column: nmae", `column "nmae" does not exist`))
		f(get+"SELECT * FROM empp", "2:15: "+by("no such table: empp", `relation "empp" does not exist`))
		f(get+"SELECT id, CURSOR(SELECT id FROM empp) x FROM dept", "2:34: "+by("no such table: empp", `relation "empp" does not exist`))
		f(get+"SELECT id, CURSOR(SELECT e.nmae FROM emp e) x FROM dept d", "2:26: "+by("no such column: e.nmae", "column e.nmae does not exist"))
		f(get+"SELECT id, CURSOR(SELECT e.id FROM emp e WHERE e.id = d.idd) x FROM dept d", "2:55: "+by("no such column: d.idd", "column d.idd does not exist"))
		f(get+"SELECT id FROM emp; SELECT 2", "2:21: json/collection is one SELECT; several statements are a block")
		f(get+"DELETE FROM emp", "2:1: this is no SELECT: what changes something is a block, with POST, PUT, PATCH or DELETE")
		f(get+"WITH x AS (DELETE FROM emp RETURNING id) SELECT id FROM x", "2:12: DELETE has no place in a query; what changes something is a block")
		f(get+"SELECT id FROM emp WHERE (id = 1", "2:26: this ( is not closed")
		f(get+"SELECT 'x FROM emp", "2:8: the text that begins here does not end")
		f(get+"SELECT id, name AS id FROM emp", `2:1: column 2 wants a name of its own: there is a column "id" already`)
		f(get+"SELECT CURSOR(SELECT id FROM emp) FROM dept", "2:8: this CURSOR wants a name: CURSOR(…) AS name")
		f(get+"SELECT id FROM dept WHERE CURSOR(SELECT id FROM emp) IS NULL", "2:27: CURSOR stands only as a column of a SELECT, or of the SELECT of another CURSOR")
		f(get+"SELECT count(*) + 1 FROM emp", "2:1: column 1 wants a name: "+by("count(*) + 1", "?column?")+" AS name")
		f(get+"-- @param a\nSELECT id FROM emp", "1: @param a: the SQL has no :a")
		f(get+"-- @column b date\nSELECT id FROM emp", "1: @column b: the query has no such column")
		f(get+"SELECT id FROM emp WHERE id = :limit", "2: :limit is reserved (page, offset, limit, q) and cannot be a bind")
		f("-- @method GET a\n-- @etag QUERY SELECT mx(id)\n--   FROM emp\nSELECT id FROM emp", "2: "+by("no such function: mx", "function mx(bigint) does not exist"))
		f(get+"-- @source resource/lob\nSELECT photo FROM emp", "3:1: resource/lob answers two columns, the content type and the bytes; these are 1")
		f(post+"DROP TABLE emp", "2:1: a block holds SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE, CALL, with or without WITH; this begins with DROP")
		f(post+"BEGIN; DELETE FROM emp; DELETE FROM empp;", "2:1: a block holds SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE, CALL, with or without WITH; this begins with BEGIN",
			"2:37: "+by("no such table: empp", `relation "empp" does not exist`))
		f(post+"-- @param x RESPONSE INT\nDELETE FROM emp", `3:1: @param x: no statement assigns :x, by a column AS ":x"`)
		f(post+"DELETE FROM emp WHERE id = :x; SELECT 1 AS \":x\"", `2:32: the column ":x" assigns a parameter that callers give, since it is read before; assign another one`)
		f(post+"-- @into x\nSELECT id FROM emp", "2:1: @into x: there is no -- @param x RESPONSE RESULTSET")
	})
}
