package storetest

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// RunSchema is the part of the suite about stored tables: they follow their definitions step by step in one empty
// database, what adds is done, what destroys is listed with a reason.
func RunSchema(t *testing.T, s store.Store) {
	ctx := context.Background()
	plain := false
	build := func(tables ...catalog.TableDef) *catalog.Snapshot {
		t.Helper()
		snap, err := catalog.Build(1, catalog.Definitions{Tables: tables})
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	plan := func(snap *catalog.Snapshot) *store.Plan {
		t.Helper()
		p, err := s.Schema().Plan(ctx, snap)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	apply := func(changes []store.Change) {
		t.Helper()
		if err := s.Schema().Apply(ctx, changes); err != nil {
			t.Fatalf("%v (%v)", err, record.AsError(err).Err)
		}
	}
	what := func(changes []store.Change) []string {
		list := []string{}
		for _, c := range changes {
			w, _, _ := strings.Cut(c.What, " (")
			if strings.HasPrefix(w, "add column") || strings.HasPrefix(w, "change column") {
				w = strings.Join(strings.Fields(c.What)[:3], " ")
			}
			list = append(list, c.Table+": "+w)
		}
		return list
	}
	expect := func(name string, p *store.Plan, additive, destructive []string) {
		t.Helper()
		if d := cmp.Diff([][]string{additive, destructive}, [][]string{what(p.Additive), what(p.Destructive)}); d != "" {
			t.Fatalf("%s:\n%s", name, d)
		}
		for _, c := range p.Destructive {
			if c.Reason == "" {
				t.Errorf("%s: %s has no reason", name, c.What)
			}
		}
	}
	none := []string{}

	task := catalog.TableDef{Name: "task", Fields: []catalog.FieldDef{{Name: "number", Type: "string", Unique: true}, {Name: "size", Type: "integer"}}, Indexes: [][]string{{"size", "number"}}}
	incident := catalog.TableDef{Name: "incident", Extends: "task", Fields: []catalog.FieldDef{{Name: "severity", Type: "integer"}, {Name: "cause", Type: "reference", Reference: "task", ForeignKey: true}}}
	order := catalog.TableDef{Name: "order", Audit: &plain, Key: []string{"select"}, Fields: []catalog.FieldDef{{Name: "select", Type: "string"}, {Name: "from", Type: "decimal"}}}
	first := build(task, incident, order)
	p := plan(first)
	added := []string{"order: create table order", "task: create table task"}
	if n := len(p.Additive); n == 3 { // where foreign keys come apart
		added = append(added, "task: add foreign key cause → task")
	}
	expect("empty database", p, added, none)
	apply(p.Additive)
	expect("applied", plan(first), none, none)
	expect("system tables", plan(catalog.System()), none, none)

	write := func(snap *catalog.Snapshot, table string, fields []string, rows ...[]record.Value) []*record.Error {
		t.Helper()
		tab, err := snap.Table(table)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := s.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		w, err := tx.Insert(ctx, &store.InsertSet{Table: tab, Fields: fields, Rows: rows})
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		return w.Errs
	}
	text, num := record.TextValue, record.IntValue
	write(first, "task", []string{"sys_id", "number", "size"}, []record.Value{text("1"), text("N1"), num(7)}, []record.Value{text("2"), text("N2"), num(7)})

	// More fields and indexes are added; a unique that the data breaks is refused, one over a new column is not.
	task2 := task
	task2.Fields = append([]catalog.FieldDef{{Name: "note", Type: "string", Unique: true}}, task.Fields...)
	task2.Uniques = [][]string{{"size"}}
	task2.Indexes = append([][]string{{"size"}}, task.Indexes...)
	p = plan(build(task2, incident, order))
	expect("more", p, []string{"task: add column note", "task: add unique", "task: add index"}, []string{"task: add unique"})
	apply(p.Additive)
	if err := s.Schema().Apply(ctx, p.Destructive); record.KindOf(err) != record.Invalid {
		t.Fatalf("a change without a way was applied: %v", err)
	}

	// Less, and other types: listed, and carried out only when asked.
	task3 := task
	task3.Fields = []catalog.FieldDef{{Name: "number", Type: "string"}, {Name: "size", Type: "string"}}
	incident3 := incident
	incident3.Fields = incident.Fields[:1]
	order3 := order
	order3.Key = []string{"from"}
	third := build(task3, incident3, order3)
	p = plan(third)
	refused := []string{"order: change the key from"}
	var doable []store.Change
	for _, c := range p.Destructive {
		if c.SQL != nil {
			doable = append(doable, c)
		}
		if c.Table == "order" && c.SQL != nil {
			t.Errorf("%s can be done", c.What)
		}
	}
	if got := what(p.Destructive); len(got) < 5 || !contains(got, refused[0]) || !contains(got, "task: change column size") || !contains(got, "task: drop column note") || !contains(got, "task: drop unique") {
		t.Fatalf("destructive: %v", got)
	}
	apply(doable)
	order3 = order
	third = build(task3, incident3, order3)
	p = plan(third)
	apply(p.Additive)
	for _, c := range plan(third).Destructive {
		if c.SQL != nil {
			t.Errorf("still to do: %s", c.What)
		}
	}
	tab, _ := third.Table("task")
	res, err := s.Query(ctx, &store.Read{Snapshot: third, Table: tab, Fields: []string{"number", "size"}, Query: &record.Query{Limit: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Materialise(0); err != nil {
		t.Fatal(err)
	}
	if res.Len() != 2 || res.At(0)[1] != text("7") {
		t.Fatalf("values were lost: %v", res.At(0))
	}
	if errs := write(third, "task", []string{"sys_id", "number"}, []record.Value{text("3"), text("N1")}); errs != nil {
		t.Fatalf("the dropped unique still holds: %v", errs)
	}

	// External tables are compared, never changed.
	external := catalog.TableDef{Name: "ext", Stored: "order", External: true, Key: []string{"select"}, Fields: []catalog.FieldDef{{Name: "select", Type: "string"}, {Name: "more", Type: "string"}}}
	missing := catalog.TableDef{Name: "nothing", External: true, Key: []string{"a"}, Fields: []catalog.FieldDef{{Name: "a", Type: "string"}}}
	p = plan(build(external, missing))
	expect("external", p, none, []string{"nothing: external table nothing", "order: column more"})
	for _, c := range p.Destructive {
		if c.SQL != nil {
			t.Errorf("%s would change an external table", c.What)
		}
	}

	// Classes that do not agree about a column are told apart from what can be planned.
	a := catalog.TableDef{Name: "a", Extends: "task", Fields: []catalog.FieldDef{{Name: "x", Type: "string"}}}
	b := catalog.TableDef{Name: "b", Extends: "task", Fields: []catalog.FieldDef{{Name: "x", Type: "integer"}}}
	if _, err := s.Schema().Plan(ctx, build(task, a, b)); err == nil || !strings.Contains(err.Error(), "b.x") {
		t.Fatalf("got %v", err)
	}
}

func contains(list []string, want string) bool {
	for _, s := range list {
		if strings.HasPrefix(s, want) {
			return true
		}
	}
	return false
}
