package engine_test

import (
	"fmt"
	"testing"

	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
)

// nested is deep inserts: n departments, each followed by items that refer to it, as so many groups.
func nested(n, items int, walk bool) []record.Op {
	var ops []record.Op
	for i := range n {
		parent := len(ops)
		op := insert("dept", id(1000+i), "name", fmt.Sprintf("dept %d", i))
		op.Group = i + 1
		ops = append(ops, op)
		for k := range items {
			op := record.Op{Verb: record.Insert, Table: "item", Group: i + 1, Set: set("id", 1000*(i+1)+k, "dept", record.RefTo(parent, "sys_id"))}
			if walk {
				op.Return = []string{"id", "dept.name"}
			}
			ops = append(ops, op)
		}
	}
	return ops
}

func TestDeepInsert_IsASetForEachLevel(t *testing.T) {
	for _, walk := range []bool{false, true} {
		each(t, engine.Options{}, func(t *testing.T, b *bench) {
			const n, items = 4, 5
			for i, o := range b.must(nested(n, items, walk)...) {
				want := n * items
				if i%(items+1) == 0 {
					want = n
				}
				if o.Stat.SetOps != want {
					t.Errorf("op %d rode in a set of %d, want %d", i, o.Stat.SetOps, want)
				}
				if walk && i%(items+1) != 0 && o.Rows.At(0)[1].S != fmt.Sprintf("dept %d", i/(items+1)) {
					t.Errorf("op %d: %v", i, o.Rows.At(0))
				}
			}
		})
	}
}

func TestDeepInsert_AFailedGroupLeavesTheOthers(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		ops := nested(3, 2, false)
		ops[5].Set = set("id", 2000, "dept", record.RefTo(3, "sys_id")) // the same as that before it
		want(t, b.do(enginetest.Admin, ops...),
			"ok inserted", "ok inserted", "ok inserted", "dependency 5", "dependency 5", "conflict id", "ok inserted", "ok inserted", "ok inserted")
		want(t, b.do(enginetest.Admin, list("dept", nil, "name")), "ok dept 0 / dept 2")
	})
}

// What reads the parents' table in another way, or changes a parent, keeps its place.
func TestDeepInsert_ChangesOfAParentComeInTheirOrder(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		ops := nested(1, 1, true)
		rename := update("dept", id(1000), "name", "renamed")
		second := record.Op{Verb: record.Insert, Table: "item", Set: set("id", 7, "dept", record.RefTo(0, "sys_id")), Return: []string{"dept.name"}}
		third := insert("dept", id(1001), "name", "dept 0")
		want(t, b.do(enginetest.Admin, append(ops, rename, second, third)...),
			"ok inserted", "ok inserted 1000 dept 0", "ok changed", "ok inserted renamed", "ok inserted")
	})
}

func TestInsert_RowsOfOneKeyAreToldApart(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(insert("dept", id(1), "name", "taken"))
		out := b.do(enginetest.Admin, insert("dept", id(2), "name", "taken"), insert("dept", id(2), "name", "free"), insert("dept", id(3), "name", "other"))
		if out[0].Err == nil || out[0].Err.Kind != record.Conflict {
			t.Errorf("the record whose name is taken: %s", show(out[0]))
		}
		want(t, out[1:], "ok inserted", "ok inserted")
		want(t, b.do(enginetest.Admin, get("dept", id(2), "name")), "ok free")
	})
}

func TestUpsert_GivesANewRecordOtherValues(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		op := func(name string) record.Op {
			return record.Op{
				Verb: record.Upsert, Table: "dept", Match: []string{"name"}, Return: []string{"name", "grp"},
				Set: set("name", name, "grp", "old"), New: set("name", name, "grp", "new"),
			}
		}
		want(t, b.do(enginetest.Admin, op("a"), op("b")), "ok inserted a new", "ok inserted b new")
		want(t, b.do(enginetest.Admin, op("a"), op("c")), "ok changed a old", "ok inserted c new")
		wrong := insert("dept", "", "name", "d")
		wrong.New = set("name", "e")
		want(t, b.do(enginetest.Admin, wrong), "invalid")
		// By its key, and only if there is none: what is there stays.
		only := record.Op{
			Verb: record.Upsert, Table: "item", Match: []string{"id"}, Set: set("id", 1), New: set("id", 1, "amount", "5"),
			If: []record.Condition{{Field: "id", Values: []record.Value{record.IntValue(1)}, Negate: true}},
		}
		want(t, b.do(enginetest.Admin, only), "ok inserted")
		want(t, b.do(enginetest.Admin, only), "precondition id")
	})
}
