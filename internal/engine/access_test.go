package engine_test

import (
	"testing"

	"weir/internal/catalog"
	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
	"weir/internal/store"
)

// withAccess is the test tables with other access rules.
func withAccess(t *testing.T, change func(table *catalog.TableDef)) *catalog.Snapshot {
	t.Helper()
	defs := enginetest.Definitions()
	for i := range defs.Tables {
		change(&defs.Tables[i])
	}
	snap, err := catalog.Build(2, defs)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func TestAccess_AClassIsNoMoreVisibleThroughItsParent(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		b.must(insert("task", id(1), "title", "task", "owner", "beth"), insert("incident", id(2), "title", "incident", "owner", "beth"),
			insert("step", id(3), "task", id(2), "text", "s"))
		b.snap = withAccess(t, func(d *catalog.TableDef) {
			if d.Name == "incident" {
				d.Access = catalog.AccessDef{Read: []catalog.GrantDef{{Roles: []string{"boss"}}}}
			}
		})
		ops := []record.Op{
			list("task", nil, "title"), get("task", id(2), "title"), get("incident", id(2), "title"), list("step", nil, "task.title"),
			list("step", record.Compare(record.Eq, record.F("task.title"), record.C(text("incident"))), "text"),
			{Verb: record.Aggregate, Table: "task", Query: &record.Query{Limit: -1, Aggs: []record.Agg{{Func: record.Count}}}},
		}
		want(t, b.do(enginetest.Beth, ops...), "ok task", "not found", "forbidden", "ok -", "ok", "ok 1")
		want(t, b.do(enginetest.Boss, ops...), "ok task / incident", "ok incident", "ok incident", "ok incident", "ok s", "ok 2")
	})
}

func TestAccess_ATableThatMayNotBeReadIsClosedEverywhere(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		b.must(insert("dept", id(1), "name", "secret"), insert("task", id(2), "title", "a", "owner", "beth", "dept", id(1)))
		b.snap = withAccess(t, func(d *catalog.TableDef) {
			if d.Name == "dept" {
				d.Access = catalog.AccessDef{Read: []catalog.GrantDef{{Roles: []string{"boss"}}}, Create: []catalog.GrantDef{{}}}
			}
		})
		up := update("task", id(2), "title", "b")
		up.Return = []string{"title", "dept.name", "dept"}
		blind := insert("dept", id(3), "name", "blind")
		blind.Return = []string{"name"}
		want(t, b.do(enginetest.Beth,
			list("dept", nil, "name"), get("dept", id(1), "name"), up,
			list("task", record.Compare(record.Eq, record.F("dept.name"), record.C(text("secret"))), "title"), blind,
		), "forbidden", "forbidden", "ok changed b - "+id(1), "ok", "ok inserted")
	})
}

func TestAccess_NobodyMayNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		want(t, b.do(record.Actor{}, list("dept", nil, "name"), insert("item", "", "id", 1)), "forbidden", "forbidden")
		want(t, b.unit(record.Unit{Actors: []record.Actor{{System: true}}, Ops: []record.Op{insert("dept", id(1), "name", "d")}}), "ok inserted")
	})
}

func TestKeep_LetsAdminsSetAuditFields(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		op := func(key string) record.Op {
			op := insert("task", key, "title", "a", "sys_created_by", "import", "sys_updated_by", "import")
			op.Keep, op.Return = true, []string{"sys_created_by", "sys_updated_by"}
			return op
		}
		want(t, b.do(enginetest.Admin, op(id(1))), "ok inserted import import")
		want(t, b.do(enginetest.Agent, op(id(2))), "ok inserted agent agent")
	})
}

func TestReadOnly_TablesAreWrittenByWeirAlone(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		entry := insert("ledger", id(1), "text", "a")
		want(t, b.do(enginetest.Admin, entry), "not allowed")
		want(t, b.unit(record.Unit{Actors: []record.Actor{{System: true}}, Ops: []record.Op{entry}}), "ok inserted")
		want(t, b.do(enginetest.Admin, update("ledger", id(1), "text", "b"), del("ledger", id(1)), get("ledger", id(1), "text")),
			"not allowed", "not allowed", "ok a")
	})
}
