package engine_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/engine"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

var loadTables = catalog.Definitions{Tables: []catalog.TableDef{
	{Name: "plain", Audit: new(bool), Key: []string{"id"}, Fields: []catalog.FieldDef{
		{Name: "id", Type: "integer"},
		{Name: "name", Type: "string", MaxLength: 5, Mandatory: true},
		{Name: "kind", Type: "string", Default: "usual"},
		{Name: "boss", Type: "integer"},
	}, Access: catalog.AccessDef{Create: []catalog.GrantDef{{Roles: []string{"loader"}}}}},
	{Name: "ruled", Fields: []catalog.FieldDef{
		{Name: "name", Type: "string"}, {Name: "number", Type: "string", Sequence: &catalog.Sequence{Prefix: "N", Digits: 3}}, {Name: "twice", Type: "string", Compute: "name + name"},
	}, Rules: []catalog.RuleDef{{Name: "no", Check: "name != 'bad'", Message: "no bad ones", Field: "name"}}},
	{Name: "audited", Fields: []catalog.FieldDef{{Name: "name", Type: "string", Unique: true}}},
}}

func onLoadTables(t *testing.T, f func(t *testing.T, e *engine.Engine, snap *catalog.Snapshot)) {
	snap, err := catalog.Build(1, loadTables)
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, s store.Store, err error) {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		storetest.Create(t, s, snap)
		e, err := engine.New(s, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		f(t, e, snap)
	}
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
		run(t, s, err)
	})
	t.Run("postgres", func(t *testing.T) {
		if storetest.Postgres(t) == "" {
			return
		}
		s, err := postgres.Open(t.Context(), postgres.Options{URL: storetest.Postgres(t)})
		run(t, s, err)
	})
}

// A load writes the records that can be written, tells of the others, and does for each what an insert would.
func TestLoad_IsInsertsOfTheSameRecords(t *testing.T) {
	onLoadTables(t, func(t *testing.T, e *engine.Engine, snap *catalog.Snapshot) {
		load := func(roles []string, table string, fields []string, cells ...record.Value) record.Outcome {
			return e.Execute(t.Context(), snap, &record.Unit{Version: 1, Actors: []record.Actor{{Name: "ann", Roles: roles}}, Ops: []record.Op{
				{Verb: record.Load, Table: table, Load: &record.Loading{Fields: fields, Cells: cells}},
			}})[0]
		}
		rows := func(table string, fields ...string) (list []string) {
			out := e.Execute(t.Context(), snap, &record.Unit{Version: 1, Actors: []record.Actor{{System: true}}, Ops: []record.Op{{
				Verb: record.List, Table: table, Return: fields, Query: &record.Query{Limit: -1, Sort: []record.Sort{{Path: fields[0]}}},
			}}})[0]
			if out.Err != nil {
				t.Fatal(out.Err)
			}
			for i := range out.Rows.Len() {
				s := ""
				for _, v := range out.Rows.At(i) {
					s += v.Text() + "|"
				}
				list = append(list, s)
			}
			return list
		}
		text, num := record.TextValue, record.IntValue

		if out := load(nil, "plain", []string{"id", "name"}, num(1), text("x")); out.Err == nil || out.Err.Kind != record.Forbidden {
			t.Errorf("without the role: %v", out.Err)
		}
		if out := load([]string{"admin"}, "plain", []string{"id", "id"}, num(1), num(1)); out.Err == nil || out.Err.Kind != record.Invalid {
			t.Errorf("a field twice: %v", out.Err)
		}
		out := load([]string{"loader"}, "plain", []string{"id", "name"},
			num(1), text("one"), num(2), text("much too long"), num(3), text("three"), num(1), text("again"), num(4), record.Value{})
		if out.Err != nil || out.Load.Rows != 2 {
			t.Fatalf("%v %+v", out.Err, out.Load)
		}
		var wrong []string
		for _, e := range out.Load.Errs {
			wrong = append(wrong, strconv.Itoa(e.Row)+" "+e.Err.Field+" "+e.Err.Kind.String())
		}
		if d := cmp.Diff([]string{"1 name invalid", "3 id conflict", "4 name invalid"}, wrong); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"1|one|usual|", "3|three|usual|"}, rows("plain", "id", "name", "kind")); d != "" {
			t.Error(d)
		}

		out = load([]string{"admin"}, "ruled", []string{"name"}, text("a"), text("bad"), text("b"))
		if out.Err != nil || out.Load.Rows != 2 || len(out.Load.Errs) != 1 || out.Load.Errs[0].Row != 1 || out.Load.Errs[0].Err.Kind != record.Rejected {
			t.Fatalf("%v %+v", out.Err, out.Load)
		}
		if d := cmp.Diff([]string{"a|aa|", "b|bb|"}, rows("ruled", "name", "twice")); d != "" {
			t.Error(d)
		}

		if out = load([]string{"admin"}, "audited", []string{"name"}, text("a"), text("b"), text("a")); out.Err != nil || out.Load.Rows != 2 || out.Load.Errs[0].Row != 2 {
			t.Fatalf("%v %+v", out.Err, out.Load)
		}
		if d := cmp.Diff([]string{"a|ann|0|", "b|ann|0|"}, rows("audited", "name", "sys_created_by", "sys_mod_count")); d != "" {
			t.Error(d)
		}
		keys := rows("audited", "sys_id")
		if len(keys) != 2 || len(keys[0]) != 33 {
			t.Errorf("keys %v", keys)
		}
	})
}
