package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// mine is a statement of the operator's in the spelling of a database: parameters are written $1 here.
func mine(s store.Store, sql string, out ...record.Type) *store.Statement {
	if s.Name() == "sqlite" {
		sql = strings.ReplaceAll(sql, "$", "?")
	}
	st := &store.Statement{SQL: sql}
	for _, t := range out {
		st.Out = append(st.Out, store.Output{Type: t})
	}
	return st
}

// pick runs a statement that reads and returns its rows as texts, under its column names.
func pick(t testing.TB, s store.Store, st *store.Statement, args ...any) []string {
	t.Helper()
	rows, err := s.Select(t.Context(), st, values(args...), store.SQLOptions{})
	if err != nil {
		t.Fatalf("%s: %v", st.SQL, err)
	}
	return gather(t, rows)
}

func gather(t testing.TB, rows *record.Rows) []string {
	t.Helper()
	list := []string{strings.Join(rows.Fields, "|")}
	if err := rows.Materialise(0); err != nil {
		t.Fatal(err)
	}
	var cells [][]record.Value
	for i := range rows.Len() {
		cells = append(cells, rows.At(i))
	}
	return append(list, texts(cells)...)
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got  %q\n want %q", what, got, want)
	}
}

// fails is an error of a statement of the operator's.
func fails(t testing.TB, s store.Store, st *store.Statement, args ...any) *record.Error {
	t.Helper()
	rows, err := s.Select(t.Context(), st, values(args...), store.SQLOptions{})
	if err == nil {
		err = rows.Materialise(0)
	}
	if err == nil {
		t.Fatalf("%s: no error", st.SQL)
	}
	return record.AsError(err)
}

func testPlainSelect(t *testing.T, s store.Store) {
	Fill(t, s, create(t, s))
	same(t, "rows", pick(t, s, mine(s, "SELECT name, age, score, active FROM person WHERE age >= $1 ORDER BY sys_id",
		record.TypeString, record.TypeInteger, record.TypeFloat, record.TypeBoolean), 30),
		[]string{"name|age|score|active", "Abel Tuter|30|1.5|true", "beth ANGLIN|41|-2.25|true", "O'Brien 100%_|30|0|-"})
	same(t, "no rows", pick(t, s, mine(s, "SELECT name FROM person WHERE name = $1"), "'; DROP TABLE person; --"), []string{"name"})
	same(t, "a parameter twice", pick(t, s, mine(s, "SELECT a, b FROM pair WHERE (a = $1 OR note = $2) AND a <> $2 ORDER BY a, b"), "x", "y1"),
		[]string{"a|b", "x|1", "x|2", "y|1"})
	same(t, "computed", pick(t, s, mine(s, "SELECT count(*) AS n, 'a' || 'b' AS s, 1.5 AS f FROM person")), []string{"n|s|f", "5|ab|1.5"})
	same(t, "dates", pick(t, s, mine(s, "SELECT due, day FROM task WHERE sys_id = 'k03'", record.TypeDateTime, record.TypeDate)),
		[]string{"due|day", "2026-02-01 00:00:00.5|2026-02-01"})
	same(t, "a value of any form", pick(t, s, mine(s, "SELECT b FROM pair WHERE a = $1 AND b > $2"), "z'\"", -10.0), []string{"b", "-5"})
	if rows, err := s.Select(t.Context(), mine(s, "SELECT b, a FROM pair ORDER BY 1"), nil, store.SQLOptions{}); err != nil {
		t.Error(err)
	} else { // given up in the middle
		rows.Next()
		rows.Close()
	}
	if st := s.Stats(); st.InUse != 0 {
		t.Errorf("connections are still in use: %+v", st)
	}
}

func testPlainDescribe(t *testing.T, s store.Store) {
	create(t, s)
	d, err := s.Describe(t.Context(), mine(s, "SELECT p.name AS who, p.age, count(*) AS n FROM person p WHERE p.team = $1 AND p.age > $2 GROUP BY 1, 2").SQL, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range d.Columns {
		got = append(got, fmt.Sprintf("%s %s.%s", c.Name, c.Table, c.Column))
	}
	same(t, "columns", got, []string{"who person.name", "age person.age", "n ."})
	if len(d.Params) != 2 || d.Columns[0].Type != record.TypeString || d.Columns[1].Type != record.TypeInteger {
		t.Errorf("described as %+v", d)
	}
	if d, err := s.Describe(t.Context(), mine(s, "UPDATE person SET age = $1 WHERE sys_id = $2").SQL, []string{"", ""}); err != nil || len(d.Columns) != 0 || len(d.Params) != 2 {
		t.Errorf("a statement without rows: %+v, %v", d, err)
	}
	for _, c := range []struct {
		sql, missing string
		at           string // where the fault is
	}{
		{"SELECT name, nam FROM person", "nam", "nam FROM"},
		{"SELECT 'ä', p.nam FROM person p", "p.nam", "p.nam"},
		{"SELECT name FROM persons", "persons", "persons"},
		{"SELECT name FROM person WHERE team = d.id", "d.id", "d.id"},
		{"SELECT nofunction(name) FROM person", "nofunction", "nofunction"},
		{"SELECT name FROM person WHERE", "", ""},
		{"SELECT name\nFORM person WHERE name = $1", "", "person"},
		{"-- nothing", "", ""},
		{"DROP TABLE person", "", "DROP"},
		{"(SELECT 1); DROP TABLE person", "", ""},
		{"SELECT 1; SELECT 2", "", ""},
		{"PRAGMA table_info(person)", "", "PRAGMA"},
		{"ATTACH 'x' AS y", "", "ATTACH"},
		{"/* a */ SET search_path = x", "", "SET"},
		{"COMMIT", "", "COMMIT"},
		{" EXPLAIN SELECT 1", "", "EXPLAIN"},
		{"/* /* nested */", "", ""},
	} {
		st := mine(s, c.sql)
		_, err := s.Describe(t.Context(), st.SQL, nil)
		var fault *store.SQLError
		if !errors.As(err, &fault) {
			t.Errorf("%s: %v is not about the statement", c.sql, err)
			continue
		}
		if fault.Missing != c.missing {
			t.Errorf("%s: %q is missing, want %q (%v)", c.sql, fault.Missing, c.missing, err)
		}
		if c.at != "" && (fault.Pos < 0 || fault.Pos > len(st.SQL) || !strings.HasPrefix(st.SQL[fault.Pos:], c.at)) {
			t.Errorf("%s: at %d, want %q (%v)", c.sql, fault.Pos, c.at, err)
		}
	}
	if st := s.Stats(); st.InUse != 0 {
		t.Errorf("connections are still in use: %+v", st)
	}
}

// testPlainSystem asks in all ways for what weir keeps for itself.
func testPlainSystem(t *testing.T, s store.Store) {
	create(t, s)
	own := "weir.sequence"
	if s.Name() == "sqlite" {
		own = "weir_sequence"
	}
	refused := func(how, sql string) {
		t.Helper()
		var fault *store.SQLError
		if _, err := s.Describe(t.Context(), sql, nil); !errors.As(err, &fault) {
			t.Errorf("%s: Describe: %v", how, err)
		}
		if rows, err := s.Select(t.Context(), &store.Statement{SQL: sql}, nil, store.SQLOptions{}); err == nil {
			t.Errorf("%s: it was run: %q", how, gather(t, rows))
		} else if record.KindOf(err) != record.Rejected || !errors.As(err, &fault) {
			t.Errorf("%s: %v", how, err)
		}
		tx, err := s.BeginPlain(t.Context(), store.SQLOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if _, _, err := tx.Run(t.Context(), &store.Statement{SQL: sql}, nil); record.KindOf(err) != record.Rejected {
			t.Errorf("%s, in a transaction: %v", how, err)
		}
	}
	if _, err := s.Numbers(t.Context(), "secret", 1, 1); err != nil {
		t.Fatal(err)
	}
	refused("its own table", "SELECT * FROM "+own)
	refused("in capitals", "SELECT * FROM "+strings.ToUpper(own))
	refused("in a condition", "SELECT 1 FROM person WHERE EXISTS (SELECT 1 FROM "+own+")")
	refused("written", "UPDATE "+own+" SET next = 1 RETURNING name")
	refused("deleted", "WITH x AS (SELECT 1) DELETE FROM "+own)
	refused("a view", "CREATE VIEW v AS SELECT * FROM "+own)
}

func testPlainBlock(t *testing.T, s store.Store) {
	Fill(t, s, create(t, s))
	ctx := t.Context()
	open := func(o store.SQLOptions) store.Tx {
		t.Helper()
		tx, err := s.BeginPlain(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tx.Rollback)
		return tx
	}
	run := func(tx store.Tx, sql string, args ...any) (*record.Rows, int64) {
		t.Helper()
		rows, n, err := tx.Run(ctx, mine(s, sql), values(args...))
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return rows, n
	}
	tx := open(store.SQLOptions{})
	if rows, n := run(tx, "UPDATE person SET age = age + $1 WHERE age IS NOT NULL", 1); rows != nil || n != 4 {
		t.Errorf("an update: %v, %d", rows, n)
	}
	rows, n := run(tx, "INSERT INTO pair (a, b, note) VALUES ($1, $2, $3) RETURNING a, b", "new", 7, nil)
	if n != 1 {
		t.Errorf("an insert that returns: %d", n)
	}
	same(t, "returned", gather(t, rows), []string{"a|b", "new|7"})
	if rows, n = run(tx, "SELECT age FROM person WHERE sys_id = $1", "p1"); n != 0 {
		t.Errorf("a select wrote %d", n)
	}
	same(t, "its own writes", gather(t, rows), []string{"age", "31"})
	// What fails is undone to the mark, and the transaction goes on.
	if err := tx.Mark(ctx); err != nil {
		t.Fatal(err)
	}
	run(tx, "DELETE FROM pair")
	for sql, kind := range map[string]record.Kind{
		"INSERT INTO pair (a, b) VALUES ('u', 1), ('u', 1)": record.Conflict,
		"SELECT nothing FROM person":                        record.Rejected,
		"INSERT INTO nowhere VALUES (1)":                    record.Rejected,
		"INSERT INTO pair (a) VALUES ('x')":                 record.Invalid,
	} {
		_, _, err := tx.Run(ctx, mine(s, sql), nil)
		var cause *store.SQLError
		if record.KindOf(err) != kind || !errors.As(err, &cause) {
			t.Errorf("%s: %v, want %s", sql, err, kind)
		}
		if err := tx.Back(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Drop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, "committed", pick(t, s, mine(s, "SELECT count(*) AS n FROM pair")), []string{"n", "6"})

	tx = open(store.SQLOptions{})
	run(tx, "DELETE FROM pair")
	tx.Rollback()
	same(t, "rolled back", pick(t, s, mine(s, "SELECT count(*) AS n FROM pair")), []string{"n", "6"})

	tx = open(store.SQLOptions{})
	if _, _, err := tx.Run(ctx, mine(s, "SELECT nothing"), nil); record.KindOf(err) != record.Rejected {
		t.Errorf("a wrong statement first: %v", err)
	}
	tx.Rollback()

	tx = open(store.SQLOptions{Memory: 100})
	if _, _, err := tx.Run(ctx, mine(s, "SELECT * FROM task"), nil); record.KindOf(err) != record.TooLarge {
		t.Errorf("more rows than memory: %v", err)
	}
	tx.Rollback()
	if st := s.Stats(); st.InUse != 0 {
		t.Errorf("connections are still in use: %+v", st)
	}
	mustInsert(t, s, insertSet(table(t, Snapshot(t), "pair"), []string{"a", "b"}, []any{"engine", 1})) // ours still may what it could
}

func testPlainFaults(t *testing.T, s store.Store) {
	Fill(t, s, create(t, s))
	if e := fails(t, s, mine(s, "SELECT nothing FROM person")); e.Kind != record.Rejected {
		t.Errorf("a wrong statement: %v", e)
	}
	if e := fails(t, s, mine(s, "SELECT name FROM person LIMIT $1"), "many"); e.Kind != record.Invalid {
		t.Errorf("a value that does not fit: %v", e)
	}
	if e := fails(t, s, mine(s, "SELECT name FROM person WHERE name = $1"), "a\x00b"); e.Kind != record.Invalid {
		t.Errorf("a zero byte: %v", e)
	}
	if e := fails(t, s, mine(s, "SELECT name FROM person WHERE name = $1"), "a\xffb"); e.Kind != record.Invalid {
		t.Errorf("no UTF-8: %v", e)
	}
	if st := s.Stats(); st.InUse != 0 {
		t.Errorf("connections are still in use: %+v", st)
	}
}

// endless is a query that runs until it is stopped.
const endless = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"

func testPlainLimits(t *testing.T, s store.Store) {
	st := &store.Statement{SQL: endless}
	began := time.Now()
	if _, err := s.Select(t.Context(), st, nil, store.SQLOptions{Timeout: 100 * time.Millisecond}); record.KindOf(err) != record.Timeout {
		t.Errorf("a statement that takes too long: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if _, err := s.Select(ctx, st, nil, store.SQLOptions{}); record.KindOf(err) != record.Canceled {
		t.Errorf("a caller that goes away: %v", err)
	}
	tx, err := s.BeginPlain(t.Context(), store.SQLOptions{Timeout: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, _, err := tx.Run(t.Context(), st, nil); record.KindOf(err) != record.Timeout {
		t.Errorf("in a transaction: %v", err)
	}
	tx.Rollback()
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("it took %s", d)
	}
	// The time allowed was that statement's: the next has its own.
	same(t, "after it", pick(t, s, mine(s, "SELECT 1 AS one")), []string{"one", "1"})
}

func create(t testing.TB, s store.Store) *catalog.Snapshot {
	t.Helper()
	snap := Snapshot(t)
	Create(t, s, snap)
	return snap
}

// testResize changes the pool while it is in use.
func testResize(t *testing.T, s store.Store) {
	create(t, s)
	crowd(t, s, 5000)
	before := s.Stats().Max
	hold := func() *record.Rows {
		t.Helper()
		rows, err := s.Select(t.Context(), mine(s, "SELECT sys_id FROM team"), nil, store.SQLOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rows.Next()
		return rows
	}
	var held []*record.Rows
	for range 4 {
		held = append(held, hold())
	}
	s.Resize(0, 20*time.Millisecond)
	_, err := s.Select(t.Context(), mine(s, "SELECT 1"), nil, store.SQLOptions{})
	if record.KindOf(err) != record.Unavailable || !strings.Contains(err.Error(), "4 of 4 in use") || !strings.Contains(err.Error(), "timeouts") {
		t.Errorf("a pool that is used up: %v", err)
	}
	if st := s.Stats(); st.Timeouts != 1 {
		t.Errorf("%d timeouts were counted", st.Timeouts)
	}
	// Who waits is served as soon as there is room.
	s.Resize(0, time.Minute)
	got := make(chan *record.Rows)
	go func() {
		rows, err := s.Select(t.Context(), mine(s, "SELECT sys_id FROM team"), nil, store.SQLOptions{})
		if err != nil {
			t.Error(err)
		}
		got <- rows
	}()
	for s.Stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Resize(6, 0)
	held = append(held, <-got, hold())
	if st := s.Stats(); st.Max != before+2 || st.InUse != 6 {
		t.Errorf("after more room: %+v", st)
	}
	// With less room, those in use go on, and are closed as they come back.
	s.Resize(2, 50*time.Millisecond)
	for _, rows := range held {
		if _, ok := rows.Next(); !ok {
			t.Errorf("a stream broke: %v", rows.Err())
		}
	}
	if _, err := s.Select(t.Context(), mine(s, "SELECT 1"), nil, store.SQLOptions{}); record.KindOf(err) != record.Unavailable {
		t.Errorf("more are in use than there may be, and one came: %v", err)
	}
	for _, rows := range held {
		rows.Close()
	}
	if st := s.Stats(); st.Max != before-2 || st.InUse != 0 || st.Idle > st.Max {
		t.Errorf("after less room: %+v", st)
	}
	a, b := hold(), hold()
	a.Close()
	b.Close()
}

func testExplain(t *testing.T, s store.Store) {
	Fill(t, s, create(t, s))
	ctx := t.Context()
	st := mine(s, "SELECT p.name, t.name FROM person p JOIN team t ON t.sys_id = p.team WHERE p.age > $1 ORDER BY 1")
	for _, analyze := range []bool{false, true} {
		e, err := s.Explain(ctx, st, values(30), analyze, store.SQLOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(e.JSON) || !strings.Contains(e.Text, "person") && !strings.Contains(e.Text, " p") || e.SQL != st.SQL {
			t.Errorf("explained as %s\n%s", e.Text, e.JSON)
		}
		if analyze != strings.Contains(e.Text, "Execution Time") {
			t.Errorf("analyze %t:\n%s", analyze, e.Text)
		}
	}
	st.Params = []store.Param{{Type: record.TypeInteger}}
	if e, err := s.Explain(ctx, st, nil, false, store.SQLOptions{}); err != nil || strings.Contains(e.Text, "NULL") || !json.Valid(e.JSON) ||
		s.Name() == "postgres" && !strings.Contains(e.Text, "$1") {
		t.Errorf("a plan for any values: %+v, %v", e, err)
	}
	for _, sql := range []string{"DELETE FROM pair", "INSERT INTO pair (a, b) VALUES ('x', 9)", "DROP TABLE pair", "WITH x AS (SELECT 1) DELETE FROM pair", "SELECT nothing", "EXPLAIN SELECT 1"} {
		if _, err := s.Explain(ctx, mine(s, sql), nil, true, store.SQLOptions{}); record.KindOf(err) != record.Rejected {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := s.Explain(ctx, &store.Statement{SQL: endless}, nil, true, store.SQLOptions{Timeout: 50 * time.Millisecond}); record.KindOf(err) != record.Timeout {
		t.Errorf("a plan that takes too long: %v", err)
	}
	same(t, "what was there before", pick(t, s, mine(s, "SELECT count(*) AS n FROM pair")), []string{"n", "5"})
	if st := s.Stats(); st.InUse != 0 {
		t.Errorf("connections are still in use: %+v", st)
	}
}

func testLoad(t *testing.T, s store.Store) {
	snap := create(t, s)
	ctx := t.Context()
	every := table(t, snap, "every")
	fields := []string{"id", "s", "i", "dec", "f", "b", "dt", "d", "dur", "js", "by"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	rows := [][]record.Value{
		values("1", "tab\tline\nreturn\rback\\slash \\N \"q\" 'q' ü😀", -5, "12345678901234567890.123", 1.5e-7, true, at, "2026-02-03", 60, `{"a": "\n"}`, "\x00\xff\\"),
		values("2", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil),
		values("3", "\\.", 0, "0", 0.0, false, at, "0001-01-01", -1, "null", "x"),
	}
	mustTx(t, s, func(tx store.Tx) {
		if err := tx.Load(ctx, every, fields, rows); err != nil {
			t.Fatal(err)
		}
		if err := tx.Load(ctx, every, fields, nil); err != nil {
			t.Fatal(err)
		}
	})
	got := mustRows(t, s, &store.Read{Snapshot: snap, Table: every, Fields: fields, Query: all(nil, record.Sort{Path: "id"})})
	same(t, "loaded", texts(got), texts(rows))

	pair := table(t, snap, "pair")
	var many [][]record.Value
	for i := range 20000 {
		many = append(many, values("k", i, strings.Repeat("x", i%50)+"."))
	}
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	load := func(rows ...[]record.Value) error { return tx.Load(ctx, pair, []string{"a", "b", "note"}, rows) }
	if err := load(many...); err != nil {
		t.Fatal(err)
	}
	if err := tx.Mark(ctx); err != nil {
		t.Fatal(err)
	}
	if err := load(values("new", 1, nil), values("k", 7, "twice")); record.KindOf(err) != record.Conflict {
		t.Errorf("a key that exists: %v", err)
	}
	if err := tx.Back(ctx); err != nil {
		t.Fatal(err)
	}
	if err := load(values("other", nil, nil)); record.KindOf(err) != record.Invalid {
		t.Errorf("a key that is null: %v", err)
	}
	if err := tx.Back(ctx); err != nil {
		t.Fatal(err)
	}
	if err := load(values("last", 1, nil)); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, "after all", pick(t, s, mine(s, "SELECT a, count(*) AS n FROM pair GROUP BY a ORDER BY a")), []string{"a|n", "k|20000", "last|1"})
}
