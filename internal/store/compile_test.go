package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

func snapshot(t testing.TB) (*catalog.Snapshot, *catalog.Table) {
	t.Helper()
	no := false
	s, err := catalog.Build(1, catalog.Definitions{Tables: []catalog.TableDef{
		{Name: "team", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{{Name: "id", Type: "guid"}, {Name: "name", Type: "string"}}},
		{Name: `person`, Stored: `od"d`, Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{
			{Name: "id", Type: "guid"},
			{Name: "name", Type: "string", Column: `na"me`},
			{Name: "team", Type: "reference", Reference: "team"},
			{Name: "age", Type: "integer"},
			{Name: "uid", Type: "string", Native: "uuid"},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := s.Table("person")
	if err != nil {
		t.Fatal(err)
	}
	return s, tab
}

func texts(n int, format string) []record.Value {
	list := make([]record.Value, n)
	for i := range list {
		list[i] = record.TextValue(fmt.Sprintf(format, i))
	}
	return list
}

func TestCompiler_TextDoesNotDependOnNumberOrValues(t *testing.T) {
	snap, person := snapshot(t)
	for _, flavor := range []*store.Flavor{store.SQLite, store.PostgreSQL} {
		c := store.NewCompiler(flavor)
		read := func(n int) *store.Statement {
			q := &store.Read{Snapshot: snap, Table: person, Fields: []string{"name"}, Query: &record.Query{
				Where: &record.Expr{Op: record.In, Args: []*record.Expr{record.F("team.name")}, Values: texts(n, "v%d")}, Limit: int64(n) + 30_000, Offset: int64(n),
			}}
			for _, k := range texts(n, "k%d") {
				q.Keys = append(q.Keys, []record.Value{k})
			}
			st, _, args, _, err := c.Read(q, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(args) != len(st.Params) {
				t.Errorf("%d arguments for %d parameters", len(args), len(st.Params))
			}
			return st
		}
		if read(2) != read(5000) {
			t.Errorf("%s: a read of 5000 keys has another statement than one of 2", flavor.Name)
		}
		insert := func(n int) *store.Statement {
			set := &store.InsertSet{Table: person, Fields: []string{"id", "age"}}
			for i, k := range texts(n, "k%d") {
				set.Rows = append(set.Rows, []record.Value{k, record.IntValue(int64(i))})
			}
			st, err := c.Insert(set)
			if err != nil {
				t.Fatal(err)
			}
			return st
		}
		if insert(1) != insert(1000) {
			t.Errorf("%s: an insert of 1000 records has another statement than one of 1", flavor.Name)
		}
	}
}

func TestCompiler_BindsValuesAndQuotesNames(t *testing.T) {
	snap, person := snapshot(t)
	const evil = `x'); DROP TABLE person; --"`
	q := &store.Read{Snapshot: snap, Table: person, Fields: []string{"name", "team.name"}, Query: &record.Query{Where: record.AllOf(
		record.Compare(record.Eq, record.F("name"), record.C(record.TextValue(evil))),
		record.Compare(record.Contains, record.F("team.name"), record.C(record.TextValue(evil))),
		record.Compare(record.Eq, record.F("uid"), record.C(record.TextValue(evil))),
		&record.Expr{Op: record.Instance, Value: record.TextValue(evil)},
	), Limit: -1}}
	want := map[string]string{
		"sqlite": `SELECT t0."na""me", t1."name" FROM "od""d" AS t0 LEFT JOIN "team" AS t1 ON t1."id" = t0."team" ` +
			`WHERE (t0."na""me" = ?1 AND instr(t1."name", ?2) > 0 AND t0."uid" = ?3 AND 1 = 0) ORDER BY t0."id"`,
		"postgres": `SELECT t0."na""me", t1."name" FROM "od""d" AS t0 LEFT JOIN "team" AS t1 ON t1."id" = t0."team" ` +
			`WHERE (t0."na""me" = $1::text AND strpos(t1."name", $2::text) > 0 AND t0."uid" = $3::uuid AND 1 = 0) ORDER BY t0."id" COLLATE "C"`,
	}
	for _, flavor := range []*store.Flavor{store.SQLite, store.PostgreSQL} {
		st, _, _, _, err := store.NewCompiler(flavor).Read(q, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(st.SQL, "DROP") {
			t.Errorf("%s: a value is in the text: %s", flavor.Name, st.SQL)
		}
		if d := cmp.Diff(want[flavor.Name], st.SQL); d != "" {
			t.Errorf("%s: -want +got\n%s", flavor.Name, d)
		}
	}
}

// One guard's text serves all actors; their values differ.
func TestCompiler_GuardsBindTheirOwnValues(t *testing.T) {
	snap, person := snapshot(t)
	c := store.NewCompiler(store.SQLite)
	read := func(who, where string) (*store.Statement, []store.Arg) {
		st, _, args, _, err := c.Read(&store.Read{
			Snapshot: snap, Table: person, Fields: []string{"name", "team.name"},
			Query: &record.Query{Where: record.Compare(record.Ne, record.F("name"), record.C(record.TextValue(where))), Limit: -1},
			Guard: func(t *catalog.Table) *record.Expr {
				return record.Compare(record.Eq, record.F("name"), record.C(record.TextValue(who+" on "+t.Name)))
			},
		}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return st, args
	}
	first, _ := read("ann", "w")
	second, args := read("bob", "v")
	if first != second {
		t.Error("two actors have two statements")
	}
	var got []string
	for _, a := range args {
		got = append(got, a.Value.S)
	}
	if d := cmp.Diff([]string{"bob on team", "bob on person", "v"}, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// A cached compilation costs nothing but the look-up.
func TestCompiler_AKnownShapeAllocatesNothing(t *testing.T) {
	snap, person := snapshot(t)
	c := store.NewCompiler(store.SQLite)
	q := &store.Read{Snapshot: snap, Table: person, Fields: []string{"name", "team.name"}, Query: &record.Query{
		Where: record.Compare(record.Eq, record.F("team.name"), record.C(record.TextValue("a"))), Sort: []record.Sort{{Path: "age"}}, Limit: 25,
	}}
	args := make([]store.Arg, 0, 8)
	run := func() {
		if _, _, _, _, err := c.Read(q, args, nil); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(100, run); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}
