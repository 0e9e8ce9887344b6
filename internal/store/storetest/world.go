package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Definitions are the tables of the suite: references three levels deep, a hierarchy of three, a composite key, all
// types, and constraints of the database.
func Definitions() catalog.Definitions {
	no := false
	return catalog.Definitions{Tables: []catalog.TableDef{
		{Name: "team", Fields: []catalog.FieldDef{
			{Name: "name", Type: "string"},
			{Name: "parent", Type: "reference", Reference: "team"},
			{Name: "cost", Type: "decimal"},
			{Name: "hidden", Type: "boolean"},
		}},
		{Name: "person", Fields: []catalog.FieldDef{
			{Name: "name", Type: "string"},
			{Name: "email", Type: "string", Unique: true},
			{Name: "team", Type: "reference", Reference: "team"},
			{Name: "age", Type: "integer"},
			{Name: "score", Type: "float"},
			{Name: "active", Type: "boolean"},
		}},
		{Name: "task", Fields: []catalog.FieldDef{
			{Name: "number", Type: "string", Unique: true},
			{Name: "short", Type: "string"},
			{Name: "caller", Type: "reference", Reference: "person"},
			{Name: "priority", Type: "integer"},
			{Name: "active", Type: "boolean"},
			{Name: "due", Type: "datetime"},
			{Name: "day", Type: "date"},
			{Name: "amount", Type: "decimal"},
			{Name: "score", Type: "float"},
			{Name: "effort", Type: "duration"},
		}, Indexes: [][]string{{"caller"}, {"priority"}}},
		{Name: "incident", Extends: "task", Fields: []catalog.FieldDef{{Name: "severity", Type: "integer"}}},
		{Name: "problem", Extends: "task", Fields: []catalog.FieldDef{{Name: "cause", Type: "string"}}},
		{Name: "outage", Extends: "incident", Fields: []catalog.FieldDef{{Name: "downtime", Type: "duration"}}},
		{Name: "pair", Audit: &no, Key: []string{"a", "b"}, Fields: []catalog.FieldDef{
			{Name: "a", Type: "string"}, {Name: "b", Type: "integer"}, {Name: "note", Type: "string"},
		}},
		{Name: "every", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
			{Name: "id", Type: "string"},
			{Name: "s", Type: "string"},
			{Name: "i", Type: "integer"},
			{Name: "dec", Type: "decimal"},
			{Name: "f", Type: "float"},
			{Name: "b", Type: "boolean"},
			{Name: "dt", Type: "datetime"},
			{Name: "d", Type: "date"},
			{Name: "dur", Type: "duration"},
			{Name: "l", Type: "list", Reference: "person"},
			{Name: "j", Type: "journal"},
			{Name: "js", Type: "json"},
			{Name: "g", Type: "guid"},
			{Name: "by", Type: "bytes"},
		}},
		{Name: "strict", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
			{Name: "id", Type: "string"},
			{Name: "owner", Type: "reference", Reference: "person", ForeignKey: true},
			{Name: "x", Type: "string"},
			{Name: "y", Type: "string"},
			{Name: "n", Type: "integer"},
		}, Uniques: [][]string{{"x", "y"}}},
	}}
}

// Snapshot is Definitions, built.
func Snapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	s, err := catalog.Build(1, Definitions())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Create makes the tables of a snapshot.
func Create(t testing.TB, s store.Store, snap *catalog.Snapshot) {
	t.Helper()
	plan, err := s.Schema().Plan(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Schema().Apply(t.Context(), plan.Additive); err != nil {
		t.Fatal(err)
	}
}

// table finds a table of the suite.
func table(t testing.TB, snap *catalog.Snapshot, name string) *catalog.Table {
	t.Helper()
	tab, err := snap.Table(name)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// value makes a Value of a Go value, for short tests.
func value(v any) record.Value {
	switch v := v.(type) {
	case nil:
		return record.Value{}
	case string:
		return record.TextValue(v)
	case int:
		return record.IntValue(int64(v))
	case int64:
		return record.IntValue(v)
	case float64:
		return record.NumValue(v)
	case bool:
		return record.BoolValue(v)
	case time.Time:
		return record.TimeValue(v)
	case record.Value:
		return v
	}
	panic(fmt.Sprintf("no value of %T", v))
}

func values(list ...any) []record.Value {
	out := make([]record.Value, len(list))
	for i, v := range list {
		out[i] = value(v)
	}
	return out
}

// insertSet makes a set of rows.
func insertSet(tab *catalog.Table, fields []string, rows ...[]any) *store.InsertSet {
	s := &store.InsertSet{Table: tab, Fields: fields}
	for _, r := range rows {
		s.Rows = append(s.Rows, values(r...))
	}
	return s
}

// mustInsert writes a set and commits.
func mustInsert(t testing.TB, s store.Store, sets ...*store.InsertSet) {
	t.Helper()
	mustTx(t, s, func(tx store.Tx) {
		for _, set := range sets {
			w, err := tx.Insert(t.Context(), set)
			if err != nil {
				t.Fatalf("insert into %s: %v", set.Table.Name, err)
			}
			for i, e := range w.Errs {
				if e != nil {
					t.Fatalf("insert into %s, row %d: %v", set.Table.Name, i, e)
				}
			}
		}
	})
}

// mustTx runs f in a transaction and commits.
func mustTx(t testing.TB, s store.Store, f func(store.Tx)) {
	t.Helper()
	tx, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	f(tx)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// querier is a store or a transaction.
type querier interface {
	Query(ctx context.Context, q *store.Read) (*store.Result, error)
}

// rowsOf runs a read to its end and copies its rows.
func rowsOf(ctx context.Context, from querier, q *store.Read) ([][]record.Value, int64, error) {
	res, err := from.Query(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	defer res.Close()
	if err := res.Materialise(0); err != nil {
		return nil, 0, err
	}
	var rows [][]record.Value
	for i := range res.Len() {
		rows = append(rows, append([]record.Value{}, res.At(i)...))
	}
	return rows, res.Total, nil
}

func mustRows(t testing.TB, from querier, q *store.Read) [][]record.Value {
	t.Helper()
	rows, _, err := rowsOf(t.Context(), from, q)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// texts are rows as people read them: values joined by "|", null as "-".
func texts(rows [][]record.Value) []string {
	list := []string{}
	for _, r := range rows {
		var s string
		for i, v := range r {
			if i > 0 {
				s += "|"
			}
			if v.IsNull() {
				s += "-"
			} else {
				s += v.Text()
			}
		}
		list = append(list, s)
	}
	return list
}

// all is a query of everything.
func all(where *record.Expr, sort ...record.Sort) *record.Query {
	return &record.Query{Where: where, Sort: sort, Limit: -1}
}

// Fill writes the records of the suite and returns them as a world. They have nulls, empty and dangling references, equal
// values, case, quotes, wildcards and characters beyond the basic plane.
func Fill(t testing.TB, s store.Store, snap *catalog.Snapshot) *World {
	t.Helper()
	w := &World{Snapshot: snap, Rows: map[string][]Record{}}
	at := func(text string) any {
		if text == "" {
			return nil
		}
		tm, ok := record.ParseTime(text)
		if !ok {
			t.Fatalf("%s is no time", text)
		}
		return tm
	}
	add := func(name string, fields []string, rows ...[]any) {
		tab := table(t, snap, name)
		if tab.ClassField != "" {
			fields = append(fields, tab.ClassField)
			for i := range rows {
				rows[i] = append(rows[i], name)
			}
		}
		set := insertSet(tab, fields, rows...)
		mustInsert(t, s, set)
		for _, row := range set.Rows {
			r := Record{}
			for i, f := range fields {
				r[f] = row[i]
			}
			w.Rows[tab.Root] = append(w.Rows[tab.Root], r)
		}
	}
	add("team", []string{"sys_id", "name", "parent", "cost", "hidden"},
		[]any{"t1", "Board", nil, "100.50", nil},
		[]any{"t2", "Network", "t1", "20.25", false},
		[]any{"t3", "Secret", "t1", "0.75", true},
		[]any{"t4", "network", "t2", "-3", nil},
		[]any{"t5", nil, "t9", nil, false})
	add("person", []string{"sys_id", "name", "email", "team", "age", "score", "active"},
		[]any{"p1", "Abel Tuter", "abel@example.com", "t2", 30, 1.5, true},
		[]any{"p2", "beth ANGLIN", "beth@example.com", "t3", 41, -2.25, true},
		[]any{"p3", "Österreicher 😀", nil, "t4", nil, nil, false},
		[]any{"p4", "O'Brien 100%_", "ob@example.com", nil, 30, 0.0, nil},
		[]any{"p5", nil, "none@example.com", "t9", 0, 8.5, false})
	task := []string{"sys_id", "number", "short", "caller", "priority", "active", "due", "day", "amount", "score", "effort"}
	add("task", task,
		[]any{"k01", "TSK01", "plain", "p1", 1, true, at("2026-01-31 23:59:59"), "2026-01-31", "10.5", 0.5, 60},
		[]any{"k02", "TSK02", nil, nil, nil, nil, nil, nil, nil, nil, nil})
	incident := append(task[:len(task):len(task)], "severity")
	add("incident", incident,
		[]any{"k03", "INC01", "Disk full", "p1", 2, true, at("2026-02-01 00:00:00.5"), "2026-02-01", "9.99", 2.5, 3600, 1},
		[]any{"k04", "INC02", "disk FULL", "p2", 2, false, at("2025-12-31 12:00:00"), "2025-12-31", "100", -0.5, 0, 2},
		[]any{"k05", "INC03", "100%_done \\ \"q\" 'q'", "p3", 3, true, at("2024-02-29 06:07:08.000001"), "2024-02-29", "-7.125", 1.5, -60, nil},
		[]any{"k06", "INC04", "   padded ", "p4", 5, nil, at("1999-01-01 00:00:00"), nil, "0.1", nil, 86400, 3},
		[]any{"k07", "INC05", "Äpfel 😀 z", "p9", 1, false, nil, "2026-03-15", "0", 3.0, nil, 1})
	add("problem", append(task[:len(task):len(task)], "cause"),
		[]any{"k08", "PRB01", "Disk", "p2", 4, true, at("2026-02-01 00:00:00.5"), "2026-02-01", "9.990001", 2.5, 3601, "unknown"},
		[]any{"k09", "PRB02", "zebra", "p5", 2, false, at("2026-07-04 15:16:17"), "2026-07-04", "12345678901234567890.123", 1e6, 7, nil})
	add("outage", append(incident[:len(incident):len(incident)], "downtime"),
		[]any{"k10", "OUT01", "Disk full", "p1", 1, true, at("2026-02-02 00:00:00"), "2026-02-02", "9.98", 4.0, 1, 1, 120},
		[]any{"k11", "OUT02", "a", "p4", -1, false, at("2026-10-10 10:10:10.101"), "2026-10-10", "-0.5", -8.75, 2, 4, 5})
	add("pair", []string{"a", "b", "note"},
		[]any{"x", 1, "x1"}, []any{"x", 2, "x2"}, []any{"y", 1, "y1"}, []any{"y", 2, nil}, []any{"z'\"", -5, "odd"})
	return w
}
