package record_test

import (
	"fmt"
	"testing"

	"weir/internal/record"
)

// creates is a unit of n creates of 15 fields, and what became of them.
func creates(n int) (*record.Unit, []record.Outcome) {
	u := &record.Unit{Version: 3, Actors: []record.Actor{{Key: "k", Name: "admin", Roles: []string{"admin"}}}}
	out := make([]record.Outcome, n)
	fields := make([]string, 15)
	types := make([]record.Type, 15)
	for i := range fields {
		fields[i] = fmt.Sprintf("field_%d", i)
	}
	for i := range n {
		set := make([]record.Assign, len(fields))
		row := make([]record.Value, len(fields))
		for k, f := range fields {
			set[k] = record.Assign{Field: f, Value: record.TextValue(fmt.Sprintf("value %d of %d", k, i))}
			row[k] = set[k].Value
		}
		u.Ops = append(u.Ops, record.Op{Verb: record.Insert, Table: "product", Set: set, Return: fields, Group: 1})
		out[i] = record.Outcome{Rows: record.Of(fields, types, row), Total: -1, Key: row[:1], Inserted: true, Changed: true}
	}
	return u, out
}

func BenchmarkCodec(b *testing.B) {
	u, out := creates(1000)
	unit, outcomes := record.AppendUnit(nil, u), record.AppendOutcomes(nil, out)
	for name, f := range map[string]func(){
		"encode-unit":     func() { record.AppendUnit(unit[:0], u) },
		"decode-unit":     func() { record.DecodeUnit(unit) },
		"encode-outcomes": func() { record.AppendOutcomes(outcomes[:0], out) },
		"decode-outcomes": func() { record.DecodeOutcomes(outcomes) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/op-of-unit")
		})
	}
}
