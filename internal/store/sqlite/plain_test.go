package sqlite

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/record"
	"weir/internal/store"
)

// do changes the file as another program would.
func do(t testing.TB, s *Store, sql string) {
	t.Helper()
	if err := s.writing(t.Context(), func(c *conn) error { return c.db.Exec(sql) }); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func sel(t testing.TB, s *Store, st *store.Statement, args ...record.Value) ([][]record.Value, error) {
	t.Helper()
	rows, err := s.Select(t.Context(), st, args, store.SQLOptions{})
	if err != nil {
		return nil, err
	}
	if err := rows.Materialise(0); err != nil {
		return nil, err
	}
	var list [][]record.Value
	for i := range rows.Len() {
		list = append(list, rows.At(i))
	}
	return list, nil
}

func TestPlain_ValuesSayTheirTypes(t *testing.T) {
	s := open(t, 2)
	defer s.Close()
	do(t, s, `CREATE TABLE t (any, n INTEGER, r REAL, at DATETIME, d DECIMAL(8,2)); INSERT INTO t VALUES (1, 'x', 2, '2026-01-02 03:04:05', 1.5), (x'00ff', 7, 2.5, 'soon', '2.50')`)
	got, err := sel(t, s, &store.Statement{SQL: "SELECT any, n, r, at, d, 1 + 1, 'a', NULL, 0.5 FROM t", Out: []store.Output{
		{Type: store.Untyped}, {Type: record.TypeInteger}, {Type: record.TypeFloat}, {Type: record.TypeDateTime}, {Type: record.TypeDecimal},
	}})
	if err != nil {
		t.Fatal(err)
	}
	computed := []record.Value{record.IntValue(2), record.TextValue("a"), {}, record.NumValue(0.5)}
	want := [][]record.Value{
		append([]record.Value{record.IntValue(1), record.TextValue("x"), record.NumValue(2), record.TimeValue(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), record.TextValue("1.5")}, computed...),
		append([]record.Value{record.TextValue("AP8="), record.IntValue(7), record.NumValue(2.5), record.TextValue("soon"), record.TextValue("2.5")}, computed...),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	d, err := s.Describe(t.Context(), "SELECT any, n, r, at, d, n + 1 AS more FROM t", nil)
	if err != nil {
		t.Fatal(err)
	}
	var types []record.Type
	for _, c := range d.Columns {
		types = append(types, c.Type)
	}
	if diff := cmp.Diff([]record.Type{store.Untyped, record.TypeInteger, record.TypeFloat, record.TypeDateTime, record.TypeDecimal, store.Untyped}, types); diff != "" {
		t.Error(diff)
	}
}

func TestPlain_ParametersHaveTheirTypes(t *testing.T) {
	s := open(t, 2)
	defer s.Close()
	st := &store.Statement{SQL: "SELECT typeof(?1), typeof(?2), typeof(?3)", Params: []store.Param{{Type: record.TypeInteger}, {Type: store.Untyped}}}
	got, err := sel(t, s, st, record.TextValue("12"), record.TextValue("12"), record.IntValue(12))
	if err != nil || got[0][0].Text() != "integer" || got[0][1].Text() != "text" || got[0][2].Text() != "integer" {
		t.Errorf("%v, %v", got, err)
	}
	_, err = sel(t, s, st, record.TextValue("a dozen"), record.Value{}, record.Value{})
	if e := record.AsError(err); e.Kind != record.Invalid || e.Field != "$1" {
		t.Errorf("%v of %q", e, e.Field)
	}
	if _, err = sel(t, s, &store.Statement{SQL: "SELECT json_extract(?1, '$.a')"}, record.TextValue("{")); record.KindOf(err) != record.Invalid {
		t.Errorf("no JSON: %v", err)
	}
	if _, err = s.Select(t.Context(), st, nil, store.SQLOptions{Login: &record.Login{User: "u"}}); record.KindOf(err) != record.Unsupported {
		t.Errorf("a login: %v", err)
	}
}

func TestPlain_ReachesNothingOfWeir(t *testing.T) {
	s := open(t, 1)
	defer s.Close()
	do(t, s, `CREATE TABLE t (a); INSERT INTO t VALUES ('x'); CREATE VIEW v AS SELECT a FROM t;
		CREATE TABLE log (a); CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END;
		CREATE TRIGGER bad AFTER DELETE ON t BEGIN DELETE FROM weir_sequence; END`)
	view := &store.Statement{SQL: "SELECT * FROM v"}
	if got, err := sel(t, s, view); err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	// What was allowed when it was prepared is asked again when the schema has changed.
	do(t, s, "DROP VIEW v; CREATE VIEW v AS SELECT name FROM weir_sequence")
	if got, err := sel(t, s, view); record.KindOf(err) != record.Rejected {
		t.Errorf("a view that looks at weir's own: %v, %v", got, err)
	}
	// The same text as one of ours is not ours.
	do(t, s, "CREATE TABLE u (a)")
	own := "SELECT name FROM weir_sequence"
	if err := s.writing(t.Context(), func(c *conn) error {
		p, err := c.prepare(own)
		if err == nil {
			c.release(p)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	tx, err := s.BeginPlain(t.Context(), store.SQLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	run := func(sql string, want record.Kind) {
		t.Helper()
		_, _, err := tx.Run(t.Context(), &store.Statement{SQL: sql}, nil)
		if want == 0 && err != nil || want != 0 && record.KindOf(err) != want {
			t.Errorf("%s: %v", sql, err)
		}
	}
	run(own, record.Rejected)
	run("INSERT INTO t VALUES ('y')", 0)
	run("DELETE FROM t", record.Rejected)
	run("SELECT * FROM pragma_table_info('t')", record.Rejected)
	run("INSERT INTO sqlite_master VALUES (1, 2, 3, 4, 5)", record.Rejected)
	tx.Rollback()
	var fault *store.SQLError
	for _, sql := range []string{"SELECT * FROM pragma_database_list", "WITH x AS (SELECT name FROM weir_sequence) SELECT * FROM x", `SELECT * FROM "Weir_Sequence"`, "SELECT * FROM main.weir_sequence"} {
		if _, err := s.Describe(t.Context(), sql, nil); !errors.As(err, &fault) || fault.Code != "SQLITE_AUTH" && fault.Code != "SQLITE_ERROR" {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := sel(t, s, &store.Statement{SQL: "DELETE FROM u RETURNING a"}); record.KindOf(err) != record.Rejected || !strings.Contains(err.Error(), "only reading") {
		t.Errorf("a query that writes: %v", err)
	}
	if _, err := s.Numbers(t.Context(), "n", 1, 1); err != nil { // ours still may
		t.Error(err)
	}
}

func TestPlain_SearchesFullText(t *testing.T) {
	s := open(t, 1)
	defer s.Close()
	if err := s.writing(t.Context(), func(c *conn) error {
		return c.db.Exec("CREATE VIRTUAL TABLE doc USING fts5(body); INSERT INTO doc VALUES ('a word'), ('another')")
	}); err != nil {
		t.Skipf("this build has no full-text index: %v", err)
	}
	if got, err := sel(t, s, &store.Statement{SQL: "SELECT body FROM doc WHERE doc MATCH ?1"}, record.TextValue("word")); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}
