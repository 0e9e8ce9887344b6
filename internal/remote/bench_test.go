package remote_test

import (
	"context"
	"fmt"
	"testing"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/remote"
)

// BenchmarkExecute is what the line costs: the backend does nothing but hand out the same outcomes.
func BenchmarkExecute(b *testing.B) {
	for _, n := range []int{1, 1000} {
		fields := make([]string, 15)
		types := make([]record.Type, len(fields))
		for i := range fields {
			fields[i] = fmt.Sprintf("field_%d", i)
		}
		u := unitOf()
		out := make([]record.Outcome, n)
		for i := range n {
			op := record.Op{Verb: record.Insert, Table: "item", Return: fields}
			row := make([]record.Value, len(fields))
			for k, f := range fields {
				row[k] = record.TextValue(fmt.Sprintf("value %d of %d", k, i))
				op.Set = append(op.Set, record.Assign{Field: f, Value: row[k]})
			}
			u.Ops = append(u.Ops, op)
			out[i] = record.Outcome{Rows: record.Of(fields, types, row), Total: -1, Inserted: true}
		}
		m := start(b, "127.0.0.1:0", remote.Options{Exec: &fake{execute: func(context.Context, *catalog.Snapshot, *record.Unit) []record.Outcome { return out }}})
		c := hub(b, m)
		snap := snapshot(b, 1)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if out := c.Execute(b.Context(), snap, u); out[0].Err != nil {
					b.Fatal(out[0].Err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/record")
		})
	}
}
