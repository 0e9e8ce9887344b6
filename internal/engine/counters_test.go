package engine_test

import (
	"testing"

	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
	"weir/internal/store"
)

func TestCounters_TellHowManyOpsAStatementServed(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		before := b.e.Counters()
		f := func(what string, units, sets, ops float64) {
			t.Helper()
			c := b.e.Counters()
			got := [3]float64{}
			for i, name := range []string{"weir_engine_units_total", "weir_engine_sets_total", "weir_engine_set_ops_total"} {
				got[i] = c[name] - before[name]
			}
			if got != [3]float64{units, sets, ops} {
				t.Errorf("%s: %v units, sets and ops", what, got)
			}
			before = c
		}
		b.must(insert("dept", id(1), "name", "a"), insert("dept", id(2), "name", "b"), insert("dept", id(3), "name", "c"))
		f("three inserts", 1, 1, 3)
		b.must(get("dept", id(1), "name"), get("dept", id(2), "name"), list("dept", nil, "name"))
		f("two gets and a list", 1, 2, 3)
		o := b.e.Stream(t.Context(), b.snap, &record.Unit{Ops: []record.Op{list("dept", nil, "name")}, Actors: []record.Actor{enginetest.Admin}})
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		o.Rows.Close()
		f("a stream", 1, 1, 1)
		if n := before["weir_engine_splits_total"]; n != 0 {
			t.Errorf("%v splits", n)
		}
		bad := insert("dept", id(1), "name", "twice")
		good := insert("dept", id(4), "name", "d")
		bad.Group, good.Group = 1, 1
		want(t, b.do(enginetest.Admin, insert("dept", id(5), "name", "e"), good, bad), "ok inserted", "dependency 2", "conflict sys_id")
		if n := b.e.Counters()["weir_engine_splits_total"]; n == 0 {
			t.Error("a group that failed was not split off")
		}
	})
}
