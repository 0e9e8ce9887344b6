package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/storetest"
	"weir/internal/telemetry"
)

func open(t testing.TB, o Options) *Store {
	t.Helper()
	if o.URL == "" {
		if o.URL = storetest.Postgres(t); o.URL == "" {
			return nil
		}
	}
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustBuild(t testing.TB, tables ...catalog.TableDef) *catalog.Snapshot {
	t.Helper()
	s, err := catalog.Build(1, catalog.Definitions{Tables: tables})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustApply(t testing.TB, s *Store, snap *catalog.Snapshot) {
	t.Helper()
	plan, err := s.Schema().Plan(context.Background(), snap)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Destructive) > 0 {
		t.Fatalf("destructive: %v", plan.Destructive)
	}
	if err := s.Schema().Apply(context.Background(), plan.Additive); err != nil {
		t.Fatalf("%v: %v", err, record.AsError(err).Err)
	}
}

func mustTable(t *testing.T, snap *catalog.Snapshot, name string) *catalog.Table {
	t.Helper()
	tab, err := snap.Table(name)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

var plain = false

// things is a table with a field of each kind.
func things(t testing.TB) *catalog.Snapshot {
	return mustBuild(t, catalog.TableDef{
		Name: "thing", Audit: &plain, Key: []string{"id"},
		Fields: []catalog.FieldDef{
			{Name: "id", Type: "string"},
			{Name: "code", Type: "string", Unique: true},
			{Name: "a", Type: "integer"},
			{Name: "b", Type: "string"},
			{Name: "n", Type: "integer"},
			{Name: "dec", Type: "decimal"},
			{Name: "f", Type: "float"},
			{Name: "ok", Type: "boolean"},
			{Name: "at", Type: "datetime"},
			{Name: "day", Type: "date"},
			{Name: "raw", Type: "bytes"},
			{Name: "dur", Type: "duration"},
		},
		Uniques: [][]string{{"a", "b"}},
	})
}

func row(values ...any) []record.Value {
	out := make([]record.Value, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case nil:
		case string:
			out[i] = record.TextValue(v)
		case int:
			out[i] = record.IntValue(int64(v))
		case float64:
			out[i] = record.NumValue(v)
		case bool:
			out[i] = record.BoolValue(v)
		case time.Time:
			out[i] = record.TimeValue(v)
		default:
			panic(fmt.Sprintf("row: %T", v))
		}
	}
	return out
}

func mustInsert(t *testing.T, s *Store, set *store.InsertSet) *store.Written {
	t.Helper()
	tx, err := s.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	w, err := tx.Insert(context.Background(), set)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := tx.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	return w
}

// all reads fields of all records in key order.
func all(t *testing.T, s *Store, snap *catalog.Snapshot, table string, fields ...string) [][]string {
	t.Helper()
	res, err := s.Query(context.Background(), &store.Read{Snapshot: snap, Table: mustTable(t, snap, table), Fields: fields, Query: &record.Query{Limit: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	var out [][]string
	for r, ok := res.Next(); ok; r, ok = res.Next() {
		line := make([]string, len(r))
		for i := range r {
			line[i] = strings.Clone(r[i].Text())
			if r[i].IsNull() {
				line[i] = "∅"
			}
		}
		out = append(out, line)
	}
	if err := res.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStore_ReadsBackEachType(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	snap := things(t)
	mustApply(t, s, snap)
	at := time.Date(2024, 2, 29, 23, 59, 58, 123456000, time.UTC)
	fields := []string{"id", "code", "n", "dec", "f", "ok", "at", "day", "raw", "dur"}
	mustInsert(t, s, &store.InsertSet{Table: mustTable(t, snap, "thing"), Fields: fields, Rows: [][]record.Value{
		row("1", `q"uo\te, {x} NULL`, -5, "123456789012345678901234567890.10", 1.5, true, at, "2024-02-29", "\x00\xff\"", 60),
		row("2", nil, nil, nil, nil, nil, nil, nil, nil, nil),
		row("3", "NULL", 1<<62, "-0.5", -1e300, false, time.Unix(0, 0), "0001-01-01", "", -1),
	}})
	want := [][]string{
		{"1", `q"uo\te, {x} NULL`, "-5", "123456789012345678901234567890.10", "1.5", "true", "2024-02-29 23:59:58.123456", "2024-02-29", "\x00\xff\"", "60"},
		{"2", "∅", "∅", "∅", "∅", "∅", "∅", "∅", "∅", "∅"},
		{"3", "NULL", "4611686018427387904", "-0.5", "-1e+300", "false", "1970-01-01 00:00:00", "0001-01-01", "", "-1"},
	}
	if d := cmp.Diff(want, all(t, s, snap, "thing", fields...)); d != "" {
		t.Fatal(d)
	}
}

func TestInsert_NamesTheUniqueThatEachRowMet(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	snap := things(t)
	mustApply(t, s, snap)
	table := mustTable(t, snap, "thing")
	fields := []string{"id", "code", "a", "b"}
	mustInsert(t, s, &store.InsertSet{Table: table, Fields: fields, Rows: [][]record.Value{row("1", "x", 1, "one")}})

	rec := telemetry.New()
	ctx := telemetry.With(context.Background(), rec)
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	w, err := tx.Insert(ctx, &store.InsertSet{Table: table, Fields: fields, Return: []string{"code"}, Rows: [][]record.Value{
		row("9", "z", nil, nil), row("1", "new", nil, nil), row("3", "x", nil, nil), row("4", "y", 1, "one"), row("5", nil, 1, nil), row("9", "other", nil, nil),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, e := range w.Errs {
		if e == nil {
			got = append(got, "written "+w.Rows.At(i)[0].Text())
			continue
		}
		got = append(got, e.Kind.String()+" "+e.Field)
	}
	want := []string{"written z", "conflict id", "conflict code", "conflict a, b", "written ", "conflict id"}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	if n := rec.SQLCount.Load(); n != 3 { // the insert, one search for all conflicts, the commit
		t.Fatalf("%d statements", n)
	}
	if d := cmp.Diff([][]string{{"1", "x"}, {"5", "∅"}, {"9", "z"}}, all(t, s, snap, "thing", "id", "code")); d != "" {
		t.Fatal(d)
	}
}

func TestTx_BackUndoesToTheLastMark(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	snap := things(t)
	mustApply(t, s, snap)
	table, ctx := mustTable(t, snap, "thing"), context.Background()
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	insert := func(id string, n any) error {
		_, err := tx.Insert(ctx, &store.InsertSet{Table: table, Fields: []string{"id", "day", "n"}, Rows: [][]record.Value{row(id, nil, n)}})
		return err
	}
	must(tx.Mark(ctx))
	must(insert("a", 1))
	must(tx.Mark(ctx))
	must(insert("b", 1))
	must(tx.Back(ctx))
	must(insert("c", 1))
	must(tx.Mark(ctx))
	if _, err := tx.Update(ctx, &store.UpdateSet{Table: table, Keys: [][]record.Value{row("c")}, Fields: []string{"day"}, Rows: [][]record.Value{row("2024-13-45")}}); record.KindOf(err) != record.Invalid {
		t.Fatalf("got %v", err)
	}
	must(tx.Back(ctx))
	// A fault that only the database can see, then a statement it has not prepared yet.
	must(insert("x", 1))
	if _, err := tx.Update(ctx, &store.UpdateSet{Table: table, Keys: [][]record.Value{row("c"), row("x")}, Fields: []string{"code"}, Rows: [][]record.Value{row("same"), row("same")}}); record.KindOf(err) != record.Conflict || record.AsError(err).Field != "code" {
		t.Fatalf("got %v", err)
	}
	must(tx.Back(ctx))
	must(tx.Drop(ctx))
	w, err := tx.Update(ctx, &store.UpdateSet{Table: table, Keys: [][]record.Value{row("none"), row("c")}, Fields: []string{"f"}, Rows: [][]record.Value{row(1.0), row(2.5)}, Return: []string{"id", "f"}})
	must(err)
	if d := cmp.Diff([]bool{false, true}, w.Hit); d != "" || w.Rows.At(1)[1].Float() != 2.5 || !w.Rows.At(0)[0].IsNull() {
		t.Fatal(d, w.Rows)
	}
	must(tx.Drop(ctx))
	must(tx.Mark(ctx))
	dw, err := tx.Delete(ctx, &store.DeleteSet{Table: table, Keys: [][]record.Value{row("zz"), row("a")}})
	must(err)
	if d := cmp.Diff([]bool{false, true}, dw.Hit); d != "" {
		t.Fatal(d)
	}
	must(tx.Back(ctx))
	must(tx.Commit(ctx))
	if d := cmp.Diff([][]string{{"a", "∅"}, {"c", "2.5"}}, all(t, s, snap, "thing", "id", "f")); d != "" {
		t.Fatal(d)
	}
}

func TestPool_ExhaustedAnswersWithItsFigures(t *testing.T) {
	s := open(t, Options{Max: 1, Wait: 20 * time.Millisecond})
	if s == nil {
		return
	}
	tx, err := s.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Begin(context.Background())
	e := record.AsError(err)
	if e == nil || e.Kind != record.Unavailable || !strings.Contains(e.Msg, "1 of 1 in use") || !strings.Contains(e.Msg, "database.pool.max") {
		t.Fatalf("got %v", err)
	}
	tx.Rollback()
	if tx, err = s.Begin(context.Background()); err != nil {
		t.Fatal(err)
	}
	tx.Rollback()
}

func TestStatement_TimeoutAndCancelEndItInTheDatabase(t *testing.T) {
	s := open(t, Options{Statement: 100 * time.Millisecond, Max: 1})
	if s == nil {
		return
	}
	sleep := func(ctx context.Context) error {
		return s.with(ctx, func(c *pgx.Conn) error {
			_, err := c.Exec(ctx, "SELECT pg_sleep(20)")
			return err
		})
	}
	if err := sleep(context.Background()); record.KindOf(err) != record.Timeout {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := sleep(ctx); record.KindOf(err) != record.Timeout {
		t.Fatalf("got %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := sleep(ctx); record.KindOf(err) != record.Canceled {
		t.Fatalf("got %v", err)
	}
}

func TestStore_RecoversWhenItsConnectionsAreCut(t *testing.T) {
	s := open(t, Options{Max: 2})
	if s == nil {
		return
	}
	snap := things(t)
	mustApply(t, s, snap)
	ctx := context.Background()
	tx, err := s.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	set := &store.InsertSet{Table: mustTable(t, snap, "thing"), Fields: []string{"id"}, Rows: [][]record.Value{row("1")}}
	if _, err := tx.Insert(ctx, set); err != nil {
		t.Fatal(err)
	}
	cut(t, s)
	if err := tx.Commit(ctx); record.KindOf(err) != record.Unavailable || !strings.Contains(err.Error(), "unknown") {
		t.Fatalf("got %v", err)
	}
	tx.Rollback()
	// A connection that broke while it was idle is replaced without anybody hearing of it, before a read and before the
	// first statement of a transaction.
	cut(t, s)
	all(t, s, snap, "thing", "id")
	cut(t, s)
	set.Rows = [][]record.Value{row("2")}
	mustInsert(t, s, set)
	// One that breaks in the middle ends the transaction.
	if tx, err = s.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	set.Rows = [][]record.Value{row("3")}
	if _, err := tx.Insert(ctx, set); err != nil {
		t.Fatal(err)
	}
	cut(t, s)
	set.Rows = [][]record.Value{row("4")}
	if _, err := tx.Insert(ctx, set); record.KindOf(err) != record.Unavailable {
		t.Fatalf("got %v", err)
	}
	tx.Rollback()
	for _, r := range all(t, s, snap, "thing", "id") {
		if r[0] > "2" {
			t.Fatalf("%s was never committed", r[0])
		}
	}
}

// cut ends all other sessions of the database, as a restart of the server does.
func cut(t *testing.T, s *Store) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"); err != nil {
		t.Fatal(err)
	}
}

func TestNumbers_AreNeverDrawnTwice(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	var mu sync.Mutex
	seen := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := 1; n <= 20; n++ {
				first, err := s.Numbers(context.Background(), "task", 10001, n)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for i := range int64(n) {
					if first < 10001 || seen[first+i] {
						t.Errorf("%d drawn twice or too low", first+i)
					}
					seen[first+i] = true
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 8*210 {
		t.Fatalf("%d numbers", len(seen))
	}
}

func TestWatch_HearsOtherNodesAlsoAfterALostConnection(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	heard := make(chan struct{}, 100)
	done := make(chan error, 1)
	go func() { done <- s.Watch(ctx, func() { heard <- struct{}{} }) }()
	await := func() {
		t.Helper()
		// Whether it listens already cannot be seen from here, so notify until it is heard.
		for {
			if err := s.Notify(ctx); err != nil && record.KindOf(err) != record.Unavailable {
				t.Fatal(err)
			}
			select {
			case <-heard:
				return
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				t.Fatal("not heard")
			}
		}
	}
	await()
	cut(t, s)
	await()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestQuery_OfTwoStatementsKeepsBothWhenTheOthersGo(t *testing.T) {
	s := open(t, Options{Max: 1})
	if s == nil {
		return
	}
	snap := things(t)
	mustApply(t, s, snap)
	// One more column each time makes a new statement, a few times past as many as a connection keeps; the last ones come in pairs.
	q := &store.Read{Snapshot: snap, Table: mustTable(t, snap, "thing"), Query: &record.Query{Limit: -1}}
	for i := range maxPrepared + 20 {
		q.Fields = append(q.Fields, "id")
		q.Query.Count = i >= maxPrepared-20
		res, err := s.Query(t.Context(), q)
		if err != nil {
			t.Fatalf("statement %d: %v", i, err)
		}
		if res.Close(); res.Err() != nil {
			t.Fatalf("statement %d: %v", i, res.Err())
		}
		q.Query.Sort = append(q.Query.Sort[:0], record.Sort{Path: []string{"a", "b"}[i%2]})
		q.Query.Where = record.Compare(record.Gt, record.F("n"), record.C(record.IntValue(1)))
		for range i % 7 {
			q.Query.Where = record.Negate(q.Query.Where) // other texts for the counts
		}
	}
}

func TestQuery_ClosedEarlyGivesItsConnectionBack(t *testing.T) {
	s := open(t, Options{Max: 1, Wait: time.Second})
	if s == nil {
		return
	}
	snap := things(t)
	mustApply(t, s, snap)
	table := mustTable(t, snap, "thing")
	set := &store.InsertSet{Table: table, Fields: []string{"id", "b"}}
	for i := range 20000 {
		set.Rows = append(set.Rows, row(fmt.Sprintf("%05d", i), strings.Repeat("x", 100)))
	}
	mustInsert(t, s, set)
	for range 3 {
		res, err := s.Query(context.Background(), &store.Read{Snapshot: snap, Table: table, Fields: []string{"id", "b"}, Query: &record.Query{Limit: -1, Count: true}})
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := res.Next(); !ok || r[0].S != "00000" || res.Total != 20000 {
			t.Fatal(r, ok, res.Total)
		}
		if err := res.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(all(t, s, snap, "thing", "id")); n != 20000 {
		t.Fatal(n)
	}
}
