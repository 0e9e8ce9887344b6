package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/record"
	"weir/internal/store"
)

// faults are the errors of a set, "kind field" by row, "" for rows written.
func faults(w *store.Written, n int) []string {
	list := make([]string, n)
	for i, e := range w.Errs {
		if e != nil {
			list[i] = strings.TrimSpace(e.Kind.String() + " " + e.Field)
		}
	}
	return list
}

var everyFields = []string{"id", "s", "i", "dec", "f", "b", "dt", "d", "dur", "l", "j", "js", "g", "by"}

func testTypes(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	every := table(t, snap, "every")
	at := func(text string) time.Time {
		tm, ok := record.ParseTime(text)
		if !ok {
			t.Fatal(text)
		}
		return tm
	}
	set := insertSet(every, everyFields,
		[]any{"null", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil},
		[]any{
			"plain", "text", 1, "1.50", 1.5, true, at("2026-01-02 03:04:05"), "2026-01-02", 3600, "a,b", "note", `{"b": 1,  "a":[1.0]}`,
			"0123456789abcdef0123456789abcdef", "\x00\xff bytes \x80",
		},
		[]any{
			"edge ' \" \\ % _ ; -- 😀", "Ä😀\u200d\t\r\n\x01\x7f\u2028\uffff", int64(-1 << 63), "-0.000000000000000000001", -0.1, false, at("0001-01-01 00:00:00"), "0001-01-01", -1,
			",", " ", "null", "", "",
		},
		[]any{
			"big", strings.Repeat("long ", 50000), int64(1<<63 - 1), "123456789012345678901234567890.5", 1.7976931348623157e308, true,
			at("9999-12-31 23:59:59.999999"), "9999-12-31", int64(1<<63 - 1), "x", strings.Repeat("é", 3000), "[]", "f", strings.Repeat("\x00", 10000),
		},
		[]any{"micros", "{}", 0, "0", 5e-324, nil, at("1969-12-31 23:59:59.000001"), "1970-01-01", 0, "[]", "NULL", `"x"`, "\\x41", "\\x41"},
	)
	mustInsert(t, s, set)
	want := texts(set.Rows)
	q := &store.Read{Snapshot: snap, Table: every, Fields: everyFields, Query: all(nil)}
	for _, row := range mustRows(t, s, q) {
		for i := range set.Rows {
			if set.Rows[i][0].S != row[0].S {
				continue
			}
			if d := cmp.Diff(set.Rows[i], row); d != "" && i != 4 {
				t.Errorf("%s: -want +got\n%.2000s", row[0].S, d)
			}
			if d := cmp.Diff(want[i], texts([][]record.Value{row})[0]); d != "" {
				t.Errorf("%s: -want +got\n%.2000s", row[0].S, d)
			}
		}
	}
	// An update writes them alike.
	up := &store.UpdateSet{Table: every, Fields: everyFields[1:]}
	for i := range set.Rows {
		up.Keys = append(up.Keys, set.Rows[i][:1])
		up.Rows = append(up.Rows, set.Rows[len(set.Rows)-1-i][1:])
	}
	mustTx(t, s, func(tx store.Tx) {
		w, err := tx.Update(t.Context(), up)
		if err != nil || w.Errs != nil {
			t.Fatal(err, faults(w, len(up.Keys)))
		}
	})
	q.Keys = up.Keys[:1]
	if d := cmp.Diff(up.Rows[0], mustRows(t, s, q)[0][1:]); d != "" {
		t.Error(d)
	}
}

func testBadText(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	every := table(t, snap, "every")
	for name, row := range map[string][]any{
		"invalid UTF-8": {"k", "a\xffb", nil},
		"zero byte":     {"k", "a\x00b", nil},
		"bad key":       {"k\x00", "", nil},
		"no number":     {"k", "", "12x"},
		"half a rune":   {"k", "\xf0\x9f\x98", nil},
	} {
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w, err := tx.Insert(t.Context(), insertSet(every, []string{"id", "s", "i"}, row))
		if err == nil && w.Errs != nil && w.Errs[0] != nil {
			err = w.Errs[0]
		}
		if err == nil || record.KindOf(err) != record.Invalid {
			t.Errorf("%s: %v, want invalid", name, err)
		}
		tx.Rollback()
	}
}

func testConflicts(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	person := table(t, snap, "person")
	fields := []string{"sys_id", "email", "name"}
	mustInsert(t, s, insertSet(person, fields, []any{"p1", "a@x", "first"}))
	set := insertSet(person, fields,
		[]any{"p2", "b@x", "good"},
		[]any{"p1", "c@x", "key exists"},
		[]any{"p3", "a@x", "email exists"},
		[]any{"p4", "d@x", "the first of two in the set wins"},
		[]any{"p5", "d@x", "second"},
		[]any{"p6", nil, "null is not unique"},
		[]any{"p7", nil, "null"},
		[]any{"p4", "e@x", "key in the set"})
	set.Return = []string{"name", "sys_id"}
	want := []string{"", "conflict sys_id", "conflict email", "", "conflict email", "", "", "conflict sys_id"}
	mustTx(t, s, func(tx store.Tx) {
		w, err := tx.Insert(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, faults(w, len(want))); d != "" {
			t.Fatalf("-want +got\n%s", d)
		}
		for i := range set.Rows {
			name := record.Value{}
			if want[i] == "" {
				name = set.Rows[i][2]
			}
			if got := w.Rows.At(i)[0]; got != name {
				t.Errorf("row %d returned %q, want %q", i, got.Text(), name.Text())
			}
		}
	})
	q := &store.Read{Snapshot: snap, Table: person, Fields: []string{"sys_id", "name"}, Query: all(nil)}
	if d := cmp.Diff([]string{"p1|first", "p2|good", "p4|the first of two in the set wins", "p6|null is not unique", "p7|null"}, texts(mustRows(t, s, q))); d != "" {
		t.Error(d)
	}
	// A unique over two fields names both.
	strict := table(t, snap, "strict")
	mustTx(t, s, func(tx store.Tx) {
		w, err := tx.Insert(t.Context(), insertSet(strict, []string{"id", "x", "y"}, []any{"1", "a", "b"}, []any{"2", "a", "c"}, []any{"3", "a", "b"}))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"", "", "conflict x, y"}, faults(w, 3)); d != "" {
			t.Error(d)
		}
	})
	// All bad, many: nothing is written and the transaction goes on.
	many := insertSet(person, fields)
	for i := range 2000 {
		many.Rows = append(many.Rows, values("p1", fmt.Sprintf("m%d@x", i), "again"))
	}
	mustTx(t, s, func(tx store.Tx) {
		w, err := tx.Insert(t.Context(), many)
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range faults(w, len(many.Rows)) {
			if f != "conflict sys_id" {
				t.Fatalf("row %d: %q", i, f)
			}
		}
		if n := len(mustRows(t, tx, q)); n != 5 {
			t.Errorf("%d records, want 5", n)
		}
	})
}

func testUpdate(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	Fill(t, s, snap)
	task, pair := table(t, snap, "task"), table(t, snap, "pair")
	mustTx(t, s, func(tx store.Tx) {
		w, err := tx.Update(t.Context(), &store.UpdateSet{
			Table: task, Fields: []string{"short", "priority"},
			Keys: [][]record.Value{values("k01"), values("nosuch"), values("k03")},
			Rows: [][]record.Value{values("new", nil), values("x", 1), values(nil, 7)}, Return: []string{"number", "priority"},
		})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]bool{true, false, true}, w.Hit); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"TSK01|-", "-|-", "INC01|7"}, texts([][]record.Value{w.Rows.At(0), w.Rows.At(1), w.Rows.At(2)})); d != "" {
			t.Error(d)
		}
		if w, err = tx.Update(t.Context(), &store.UpdateSet{
			Table: pair, Fields: []string{"note"}, Keys: [][]record.Value{values("x", 2), values("y", 1), values("y", 3)},
			Rows: [][]record.Value{values("n1"), values("n2"), values("n3")},
		}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]bool{true, true, false}, w.Hit); d != "" {
			t.Error(d)
		}
		if w, err = tx.Delete(t.Context(), &store.DeleteSet{Table: pair, Keys: [][]record.Value{values("x", 1), values("x", 1000), values("z'\"", -5)}}); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]bool{true, false, true}, w.Hit); d != "" {
			t.Error(d)
		}
	})
	q := &store.Read{Snapshot: snap, Table: pair, Fields: []string{"a", "b", "note"}, Query: all(nil)}
	if d := cmp.Diff([]string{"x|2|n1", "y|1|n2", "y|2|-"}, texts(mustRows(t, s, q))); d != "" {
		t.Error(d)
	}
	q = &store.Read{Snapshot: snap, Table: task, Fields: []string{"short", "priority"}, Keys: [][]record.Value{values("k01"), values("k03")}}
	if d := cmp.Diff([]string{"new|-", "-|7"}, texts(mustRows(t, s, q))); d != "" {
		t.Error(d)
	}
}

func testReturning(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	pair := table(t, snap, "pair")
	set := insertSet(pair, []string{"b", "a", "note"})
	set.Return = []string{"note", "a", "b"}
	var want []string
	for i := range 500 {
		set.Rows = append(set.Rows, values(500-i, "k", fmt.Sprint("note ", i)))
		want = append(want, fmt.Sprintf("note %d|k|%d", i, 500-i))
	}
	mustTx(t, s, func(tx store.Tx) {
		w, err := tx.Insert(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		var got [][]record.Value
		for i := range w.Rows.Len() {
			got = append(got, w.Rows.At(i))
		}
		if d := cmp.Diff(want, texts(got)); d != "" {
			t.Error(d)
		}
	})
}

// refused reports the kind of error that a set met, as a whole or in its row i.
func refused(w *store.Written, err error, i int) record.Kind {
	if err == nil && w.Errs != nil && w.Errs[i] != nil {
		err = w.Errs[i]
	}
	if err == nil {
		return record.NumKinds
	}
	return record.KindOf(err)
}

func testForeign(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	Fill(t, s, snap)
	strict, person := table(t, snap, "strict"), table(t, snap, "person")
	mustInsert(t, s, insertSet(strict, []string{"id", "owner"}, []any{"1", "p1"}, []any{"2", nil}))
	for name, f := range map[string]func(tx store.Tx) (*store.Written, error){
		"insert": func(tx store.Tx) (*store.Written, error) {
			return tx.Insert(t.Context(), insertSet(strict, []string{"id", "owner"}, []any{"3", "nobody"}))
		},
		"update": func(tx store.Tx) (*store.Written, error) {
			return tx.Update(t.Context(), &store.UpdateSet{Table: strict, Fields: []string{"owner"}, Keys: [][]record.Value{values("1")}, Rows: [][]record.Value{values("nobody")}})
		},
		"delete": func(tx store.Tx) (*store.Written, error) {
			return tx.Delete(t.Context(), &store.DeleteSet{Table: person, Keys: [][]record.Value{values("p1")}})
		},
	} {
		mustTx(t, s, func(tx store.Tx) {
			if err := tx.Mark(t.Context()); err != nil {
				t.Fatal(err)
			}
			w, err := f(tx)
			if k := refused(w, err, 0); k != record.Restricted {
				t.Errorf("%s: %v (%v), want restricted", name, k, err)
			}
			at := record.AsError(err)
			if at == nil {
				at = w.Errs[0]
			}
			if want := map[string]string{"insert": "owner", "update": "owner"}[name]; at.Field != want {
				t.Errorf("%s: the field at fault is %q, want %q", name, at.Field, want)
			}
			if err := tx.Back(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
	q := &store.Read{Snapshot: snap, Table: strict, Fields: []string{"id", "owner"}, Query: all(nil)}
	if d := cmp.Diff([]string{"1|p1", "2|-"}, texts(mustRows(t, s, q))); d != "" {
		t.Error(d)
	}
}

func testMarks(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	team := table(t, snap, "team")
	q := &store.Read{Snapshot: snap, Table: team, Fields: []string{"sys_id"}, Query: all(nil)}
	mustTx(t, s, func(tx store.Tx) {
		add := func(id string) {
			if _, err := tx.Insert(t.Context(), insertSet(team, []string{"sys_id"}, []any{id})); err != nil {
				t.Fatal(err)
			}
		}
		must := func(f func() error) {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}
		mark := func() { must(func() error { return tx.Mark(t.Context()) }) }
		back := func() { must(func() error { return tx.Back(t.Context()) }) }
		drop := func() { must(func() error { return tx.Drop(t.Context()) }) }
		see := func(want ...string) {
			t.Helper()
			if d := cmp.Diff(append([]string{}, want...), texts(mustRows(t, tx, q))); d != "" {
				t.Fatal(d)
			}
		}
		add("a")
		mark()
		add("b")
		mark()
		add("c")
		see("a", "b", "c")
		back()
		see("a", "b")
		add("d")
		back() // the same mark again
		see("a", "b")
		add("e")
		drop()
		see("a", "b", "e")
		back() // the outer mark: what the inner kept goes too
		see("a")
		drop()
		add("f")
		// A fault of the database, then back: the transaction goes on.
		mark()
		if _, err := tx.Query(t.Context(), &store.Read{Snapshot: snap, Table: team, Fields: []string{"nosuch"}}); err == nil {
			t.Fatal("no error")
		}
		back()
		add("g")
		drop()
		see("a", "f", "g")
	})
	if d := cmp.Diff([]string{"a", "f", "g"}, texts(mustRows(t, s, q))); d != "" {
		t.Fatal(d)
	}
}

func testRollback(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	team := table(t, snap, "team")
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Insert(t.Context(), insertSet(team, []string{"sys_id"}, []any{"a"})); err != nil {
		t.Fatal(err)
	}
	tx.Rollback()
	tx.Rollback()
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("a commit after a rollback succeeds")
	}
	if _, err := tx.Insert(t.Context(), insertSet(team, []string{"sys_id"}, []any{"b"})); err == nil {
		t.Error("an insert after a rollback succeeds")
	}
	q := &store.Read{Snapshot: snap, Table: team, Fields: []string{"sys_id"}, Query: all(nil)}
	if n := len(mustRows(t, s, q)); n != 0 {
		t.Errorf("%d records", n)
	}
	mustInsert(t, s, insertSet(team, []string{"sys_id"}, []any{"c"}))
}
