package ords_test

import (
	"fmt"
	"testing"

	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/ords"
	"weir/internal/record"
	"weir/internal/wire"
)

// BenchmarkCollection is what the dialect itself costs: 25 flat rows, decoded and answered.
func BenchmarkCollection(b *testing.B) {
	snap := hr(b)
	d := ords.New(ords.Options{})
	for _, name := range []string{"departments", "hashed"} {
		b.Run(name, func(b *testing.B) {
			fields, types := []string{"deptno", "dname"}, []record.Type{record.TypeInteger, record.TypeString}
			var cells []record.Value
			for i := range 25 {
				cells = append(cells, record.IntValue(int64(i)), record.TextValue(fmt.Sprint("Department of the number ", i)))
			}
			call := &dialect.Call{Method: "GET", Path: "/ords/hr/v1/" + name + "/", RawPath: "/ords/hr/v1/" + name + "/", RawQuery: "limit=25&dname=x", Base: "https://h", Actor: dialecttest.Actors["admin"]}
			a := &wire.Answer{}
			b.ReportAllocs()
			for b.Loop() {
				x, err := d.Decode(snap, call)
				if err != nil {
					b.Fatal(err)
				}
				a.Header, a.Body = a.Header[:0], a.Body[:0]
				x.Reply([]record.Outcome{{Rows: record.Of(fields, types, cells), SQL: &record.SQLOutcome{}}}, a)
			}
			b.SetBytes(int64(len(a.Body)))
		})
	}
}
