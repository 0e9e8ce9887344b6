package engine_test

import (
	"testing"

	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
)

func benchEngine(b *testing.B) *bench {
	return newBench(b, openers(b)["sqlite"](b), engine.Options{})
}

func BenchmarkGet_One(b *testing.B) {
	e := benchEngine(b)
	e.must(insert("task", id(1), "title", "a"))
	u := &record.Unit{Ops: []record.Op{get("task", id(1), "title", "state", "number")}, Actors: []record.Actor{enginetest.Agent}}
	b.ReportAllocs()
	for b.Loop() {
		if out := e.x.Execute(b.Context(), e.snap, u); out[0].Err != nil {
			b.Fatal(out[0].Err)
		}
	}
}

func BenchmarkInsert_Fused100(b *testing.B) {
	e := benchEngine(b)
	ops := make([]record.Op, 100)
	for i := range ops {
		ops[i] = insert("task", "", "title", "a", "prio", 2, "owner", "beth")
	}
	u := &record.Unit{Ops: ops, Actors: []record.Actor{enginetest.Agent}}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if out := e.x.Execute(b.Context(), e.snap, u); out[0].Err != nil {
			b.Fatal(out[0].Err)
		}
		n += len(ops)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
