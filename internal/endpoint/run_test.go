package endpoint_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"weir/internal/endpoint"
	"weir/internal/record"
)

func TestBlock_AssignsParametersAndCommitsOnce(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{
			"add": `
-- @method POST emps/
-- @param id INT
-- @param salary DOUBLE
-- @param total RESPONSE LONG
-- @param X-Name as greeting HEADER OUT
-- @param mates RESPONSE RESULTSET
SELECT coalesce(max(id), 0) + 1 AS ":next" FROM dept;
INSERT INTO dept (id, name) VALUES (:next, :dept);
INSERT INTO emp (id, name, dept_id, salary, active, hired)
VALUES (:id, :name, :next, :salary, :active, '2020-01-01 00:00:00') RETURNING name AS ":greeting";
UPDATE emp SET salary = 1 WHERE id = 10;
-- @into mates
SELECT e.id, e.name, CURSOR(SELECT d.name FROM dept d WHERE d.id = e.dept_id) AS dept FROM emp e WHERE e.dept_id = :next;
SELECT count(*) AS ":total" FROM emp;
SELECT 201 AS ":status_code", './' || CAST(:id AS varchar(10)) AS ":forward_location";`,
			"none": `
-- @method DELETE emps/:id
SELECT 404 AS ":status_code";
DELETE FROM emp WHERE id = :id RETURNING 204 AS ":status_code"`,
			"fail": `
-- @method PUT emps/
DELETE FROM emp;
INSERT INTO emp (id) VALUES (:id), (:id)`,
			"all": "-- @method GET emps/\nSELECT count(*) AS n FROM emp",
		})
		out, err := w.block(w.call("add", map[string]any{"id": 99, "dept": "New", "name": "Eve", "salary": "12.5", "active": true}))
		if err != nil {
			t.Fatal(err)
		}
		if out.Status != 201 || out.Forward != "./99" || out.Affected != 3 {
			t.Errorf("%+v", out)
		}
		if diff := cmp.Diff([]record.Assign{{Field: "total", Value: record.IntValue(5)}, {Field: "X-Name", Value: record.TextValue("Eve")}}, out.Out); diff != "" {
			t.Error(diff)
		}
		if len(out.Sets) != 1 || out.Sets[0].Name != "mates" {
			t.Fatalf("%+v", out.Sets)
		}
		if got, want := squeeze(w.show("hr/add", 4, out.Sets[0].Rows)), `[{"id":99,"name":"Eve","dept":[{"name":"New"}]}]`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		for id, want := range map[int]int{99: 204, 98: 404} {
			if out, err := w.block(w.call("none", map[string]any{"id": id})); err != nil || out.Status != want {
				t.Errorf("%d: %+v %v", id, out, err)
			}
		}
		_, err = w.block(w.call("fail", map[string]any{"id": 1}))
		if err == nil || err.Kind != record.Conflict {
			t.Errorf("%v", err)
		}
		if got := w.rows(w.call("all", nil)); got != `[{"n":4}]` {
			t.Errorf("%s: the block was not rolled back", got)
		}
	})
}

func TestQuery_FilterSortAndPage(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{
			"emps": "-- @method GET emps/\nSELECT id, name, salary, rate, active, hired, born, info, id || '' AS text FROM emp WHERE id < :most ORDER BY id -- end",
			"top":  "-- @method GET top/\nSELECT id, born FROM emp ORDER BY id DESC LIMIT 3",
			"own":  "-- @method GET own/\nSELECT id FROM emp ORDER BY id LIMIT :fetch_size OFFSET :fetch_offset",
		})
		f := func(name string, where *record.Expr, sort []record.Sort, offset, limit int64, want string) {
			t.Helper()
			binds := map[string]any{}
			switch name {
			case "emps":
				binds["most"] = 1000
			case "own":
				binds["fetch_size"], binds["fetch_offset"] = 2, 1
			}
			c := w.call(name, binds)
			c.SQL.Where, c.SQL.Sort, c.SQL.Offset, c.SQL.Limit = where, sort, offset, limit
			rows, _, err := w.r.RunSQL(t.Context(), w.snap, nobody, c, true, 1<<20)
			if err != nil {
				t.Error(err)
				return
			}
			defer rows.Close()
			got := ""
			for row, ok := rows.Next(); ok; row, ok = rows.Next() {
				got += fmt.Sprint(row[0].N, " ")
			}
			if rows.Err() != nil || got != want {
				t.Errorf("%s, want %s (%v)", got, want, rows.Err())
			}
		}
		is := func(op record.ExprOp, column string, v record.Value) *record.Expr {
			return record.Compare(op, record.F(column), record.C(v))
		}
		text, num, whole := record.TextValue, record.NumValue, record.IntValue
		f("emps", nil, nil, 1, 2, "11 12 ")
		f("emps", nil, nil, 3, -1, "13 ")
		f("top", nil, nil, 1, 5, "12 11 ")
		f("top", is(record.Ge, "id", whole(12)), nil, 0, 5, "13 12 ")
		f("own", nil, nil, 3, 1, "11 12 ")
		f("emps", is(record.Eq, "id", whole(11)), nil, 0, -1, "11 ")
		f("emps", is(record.Eq, "id", text("11")), nil, 0, -1, "11 ")
		f("emps", is(record.Ne, "salary", num(7)), nil, 0, -1, "10 11 12 ")
		f("emps", is(record.Gt, "salary", num(20)), nil, 0, -1, "10 ")
		f("emps", is(record.Eq, "salary", text("20")), nil, 0, -1, "11 ")
		f("emps", is(record.Le, "rate", num(0.1)), nil, 0, -1, "10 13 ")
		f("emps", is(record.Eq, "active", record.BoolValue(true)), nil, 0, -1, "10 13 ")
		f("emps", is(record.Gt, "hired", record.TimeValue(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))), nil, 0, -1, "11 ")
		f("emps", is(record.Lt, "hired", text("2020-01-01T00:00:00Z")), nil, 0, -1, "13 ")
		f("emps", is(record.Ge, "born", record.TimeValue(time.Date(1990, 5, 6, 0, 0, 0, 0, time.UTC))), nil, 0, -1, "10 ")
		f("emps", is(record.Lt, "born", text("1990-05-06")), nil, 0, -1, "13 ")
		f("emps", is(record.Eq, "text", text("12")), nil, 0, -1, "12 ")
		f("emps", is(record.Eq, "salary", record.Value{}), nil, 0, -1, "12 ")
		f("emps", &record.Expr{Op: record.IsEmpty, Args: []*record.Expr{record.F("salary")}}, nil, 0, -1, "12 ")
		f("emps", record.Negate(is(record.Gt, "salary", num(20))), nil, 0, -1, "11 12 13 ")
		f("emps", is(record.Like, "name", text("_%e")), nil, 0, -1, "13 ")
		f("emps", is(record.Like, "name", text("ann")), nil, 0, -1, "")
		f("emps", is(record.Like, "id", text("1_")), nil, 0, -1, "10 11 12 13 ")
		f("emps", is(record.Contains, "name", text("n")), nil, 0, -1, "10 ")
		f("emps", is(record.StartsWith, "name", text("B")), nil, 0, -1, "11 ")
		f("emps", is(record.EndsWith, "name", text("d")), nil, 0, -1, "12 ")
		f("emps", &record.Expr{Op: record.In, Args: []*record.Expr{record.F("id")}, Values: []record.Value{whole(10), whole(13), whole(14)}}, nil, 0, -1, "10 13 ")
		f("emps", &record.Expr{Op: record.Or, Args: []*record.Expr{is(record.Eq, "name", text("Ann")), is(record.Eq, "name", text("' OR 1=1 --"))}}, nil, 0, -1, "10 ")
		f("emps", nil, []record.Sort{{Path: "salary"}}, 0, -1, "12 13 11 10 ")
		f("emps", nil, []record.Sort{{Path: "salary", Desc: true}, {Path: "id"}}, 1, 2, "11 13 ")
		for _, e := range []*record.Expr{is(record.Eq, "no", whole(1)), is(record.Eq, "info", text("1")), is(record.Eq, "id", text("x")), is(record.Eq, `id" = 1 --`, text("x"))} {
			c := w.call("emps", map[string]any{"most": 1000})
			c.SQL.Where = e
			if _, _, err := w.r.RunSQL(t.Context(), w.snap, nobody, c, true, 1<<20); err == nil || err.Kind != record.Invalid || err.Field != e.Args[0].Path {
				t.Errorf("%s: %v", e.Args[0].Path, err)
			}
		}
	})
}

func TestQuery_TagThatTheCallerHasRunsNothingElse(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{
			"emps": "-- @method GET emps/:dept\n-- @etag QUERY SELECT max(id), count(*) FROM emp WHERE dept_id = :dept\nSELECT id FROM emp WHERE dept_id = :dept ORDER BY id",
			"cut":  "-- @method DELETE emps/:dept\n-- @etag QUERY SELECT max(id), count(*) FROM emp WHERE dept_id = :dept\nDELETE FROM emp WHERE dept_id = :dept",
		})
		c := w.call("emps", map[string]any{"dept": "1"})
		rows, out, err := w.r.RunSQL(t.Context(), w.snap, nobody, c, true, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		rows.Close()
		tag := out.Tag // a hash of what the tag query answers
		if tag == "" || out.Same {
			t.Fatalf("%+v", out)
		}
		c.SQL.Tags = []string{"x", tag}
		rows, out, err = w.r.RunSQL(t.Context(), w.snap, nobody, c, true, 1<<20)
		if err != nil || !out.Same || rows != nil {
			t.Fatalf("%+v %v", out, err)
		}
		if got, want := w.r.Stats(), (endpoint.Stats{Calls: 2, Queries: 1, Tags: 2, Unchanged: 1}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		c = w.call("cut", map[string]any{"dept": "1"})
		c.SQL.Match = []string{"x"}
		if _, err := w.block(c); err == nil || err.Kind != record.Precondition {
			t.Errorf("%v", err)
		}
		c.SQL.Match = []string{tag}
		if out, err := w.block(c); err != nil || out.Affected != 2 {
			t.Errorf("%+v %v", out, err)
		}
	})
}

func TestRun_RolesAndErrors(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{
			"secret": "-- @method GET secret\n-- @roles hr, boss\nSELECT id FROM emp",
			"number": "-- @method GET number\n-- @param n as v INT\nSELECT id FROM emp WHERE id = CAST(:v AS integer)",
			"status": "-- @method POST status\nSELECT 7 AS \":status_code\"",
		})
		run := func(name string, binds map[string]any, roles ...string) *record.Error {
			rows, _, err := w.r.RunSQL(t.Context(), w.snap, &record.Actor{Roles: roles}, w.call(name, binds), false, 1<<20)
			if err == nil && rows != nil {
				rows.Close()
			}
			return err
		}
		if err := run("secret", nil, "boss"); err != nil {
			t.Error(err)
		}
		if err := run("secret", nil, "other"); err == nil || err.Kind != record.Forbidden {
			t.Errorf("%v", err)
		}
		if err := run("number", map[string]any{"v": "x"}); w.st.Name() == "postgres" && (err == nil || err.Kind != record.Invalid || err.Field != "n") {
			t.Errorf("%v", err)
		}
		if err := run("status", nil); err == nil || err.Kind != record.Rejected || err.Rule != "hr/status" {
			t.Errorf("%v", err)
		}
	})
}

func TestQuery_ArraysAreJSON(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		if w.st.Name() != "postgres" {
			return // SQLite has no arrays
		}
		w.mustApply(map[string]string{"a": "-- @method GET a\nSELECT ARRAY[1, 2] AS \"Of\", id, CURSOR(SELECT ARRAY['x'] AS t) AS c FROM emp ORDER BY id DESC LIMIT 2"})
		c := w.call("a", nil)
		c.SQL.Limit = 1
		if got, want := squeeze(w.rows(c)), `[{"Of":[1,2],"id":13,"c":[{"t":["x"]}]}]`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// What clients write in their own form is stored as weir stores it, on SQLite too, which would take anything.
func TestBlock_ValuesTakeTheTypeOfTheirColumn(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		w.mustApply(map[string]string{
			"add": "-- @method POST emps/\nINSERT INTO emp (id, name, active, hired, born, salary) VALUES (:id, :name, :active, :hired, :born, :salary);\n" +
				"UPDATE emp SET rate = :rate WHERE id = :id",
			"get": "-- @method GET emps/\nSELECT id, name, active, hired, born, salary, rate FROM emp WHERE hired >= :since AND :before > hired AND id IN (:one, :two) AND rate BETWEEN :low AND :high LIMIT :n",
		})
		if _, err := w.block(w.call("add", map[string]any{
			"id": "77", "name": 5, "active": "true", "hired": "2024-02-03T04:05:06Z", "born": "2000-01-01T00:00:00Z", "salary": "1.50", "rate": "2.5",
		})); err != nil {
			t.Fatal(err)
		}
		got := w.rows(w.call("get", map[string]any{"since": "2024-02-03T04:05:06Z", "before": "2024-02-03T04:05:07Z", "one": "77", "two": "1", "low": "2", "high": "3", "n": "1"}))
		want := `[{"id":77,"name":"5","active":true,"hired":"2024-02-03T04:05:06Z","born":"2000-01-01T00:00:00Z","salary":1.5,"rate":2.5}]`
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
		_, err := w.block(w.call("add", map[string]any{"id": "78", "hired": "soon"}))
		if err == nil || err.Kind != record.Invalid {
			t.Errorf("%v", err)
		}
		if w.st.Name() == "sqlite" && err.Field != "hired" {
			t.Errorf("%v", err)
		}
	})
}

func TestBlock_CallsAProcedure(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		if w.st.Name() != "postgres" {
			return // SQLite has none
		}
		db, err := pgx.Connect(t.Context(), w.url)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close(t.Context())
		if _, err := db.Exec(t.Context(), "CREATE PROCEDURE public.twice(n integer, INOUT result integer) LANGUAGE sql AS 'SELECT n * 2'"); err != nil {
			t.Fatal(err)
		}
		w.mustApply(map[string]string{"call": "-- @method POST call\n-- @param n INT\n-- @param result RESPONSE INT\n-- @param all RESPONSE RESULTSET\n-- @column all.day date\n" +
			"CALL twice(:n, NULL);\n-- @into all\nSELECT :result AS double, text '2020-01-02' AS day"})
		out, fault := w.block(w.call("call", map[string]any{"n": 21}))
		if fault != nil || len(out.Out) != 1 || out.Out[0].Value != record.IntValue(42) {
			t.Fatalf("%+v %v", out, fault)
		}
		if got, want := w.show("hr/call", 1, out.Sets[0].Rows), `[{"double":"42","day":"2020-01-02T00:00:00Z"}]`; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

func TestNested_RowsAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const sql = "\nSELECT id, CURSOR(SELECT id FROM emp WHERE dept_id = d.id ORDER BY id) AS emps, CURSOR(SELECT id FROM emp LIMIT 3) AS few FROM dept d WHERE id = 1"
		w.mustApply(map[string]string{"one": "-- @method GET one" + sql, "slow": "-- @method GET slow\n-- @nested rows" + sql})
		for n, want := range map[int]string{
			1: `[{"id":1,"emps":[{"id":10}],"few":[{"id":10}]}]`, 2: `[{"id":1,"emps":[{"id":10},{"id":11}],"few":[{"id":10},{"id":11}]}]`,
		} {
			w.r.Bound(n)
			for _, name := range []string{"one", "slow"} {
				if got := squeeze(w.rows(w.call(name, nil))); got != want {
					t.Errorf("%s, at most %d: %s, want %s", name, n, got, want)
				}
			}
		}
	})
}
