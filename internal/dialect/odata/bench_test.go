package odata

import (
	"path/filepath"
	"testing"

	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/record"
	"weir/internal/store/sqlite"
	"weir/internal/wire"
)

// product is a row of ProductSet with a value in every column that is read.
func product(t testing.TB, s *shape) *record.Rows {
	values := map[string]record.Value{
		"id": record.TextValue("HT-1000"), "name": record.TextValue("Notebook Basic 15"), "category": record.TextValue("Notebooks"),
		"supplier": record.TextValue("0100000046"), "supplier.name": record.TextValue("SAP"), "price": record.TextValue("956.00"),
		"stock": record.IntValue(12), "weight": record.NumValue(4.2), "active": record.BoolValue(true),
		"created": {Form: record.Time, N: 1706695200123456}, "since": record.TextValue("2024-01-31"),
		"lead": record.IntValue(3661), "opens": record.TextValue("08:30:00"), "uid": record.TextValue("0123456789abcdef0123456789abcdef"),
		"photo": record.TextValue("\x00\x01\x02"), "changed": {Form: record.Time, N: 1706695200000000},
	}
	row := make([]record.Value, len(s.paths))
	for i, p := range s.paths {
		v, ok := values[p]
		if !ok {
			t.Fatalf("no value of %s", p)
		}
		row[i] = v
	}
	return record.Of(s.paths, make([]record.Type, len(s.paths)), row)
}

// BenchmarkEntry is the answer of one product: finding its shape, headers, the body.
func BenchmarkEntry(b *testing.B) {
	m := marketSnapshot(b)
	set := m.svc.Set("ProductSet")
	for name, f := range map[string]format{"json2": json2{}, "json4": jsonOf4(minimal, true, false), "atom": atom2{}} {
		b.Run(name, func(b *testing.B) {
			ver := v2
			if name == "json4" {
				ver = v4
			}
			call := &dialect.Call{Base: dialecttest.Base}
			first := &request{d: m.d, snap: m.snap, svc: m.svc, ver: ver, call: call, format: f, root: "/odata/v2/MARKET"}
			rows := product(b, first.shape(set, nil))
			var body []byte
			b.ReportAllocs()
			for b.Loop() {
				q := &request{d: m.d, snap: m.snap, svc: m.svc, ver: ver, call: call, format: f, root: "/odata/v2/MARKET"}
				a := &wire.Answer{Body: body[:0]}
				q.replyEntry(a, 201, &node{shape: q.shape(set, nil), rows: rows}, 0)
				body = a.Body
			}
			b.ReportMetric(float64(len(body)), "bytes")
		})
	}
}

// BenchmarkExpand answers 1,000 orders with their 3,000 items from SQLite.
func BenchmarkExpand(b *testing.B) {
	s, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "weir.db")})
	if err != nil {
		b.Fatal(err)
	}
	m := newMarket(b, s)
	m.many(b, 1000)
	m.svc.Set("OrderSet").MaxPage = 0
	qy := m.expand("OrderSet", "ToItems")
	b.ReportAllocs()
	for b.Loop() {
		status, body, _ := m.asked(b, v2, "OrderSet", qy)
		if status != 200 || len(body) < 1_000_000 {
			b.Fatal(status, len(body))
		}
	}
	b.ReportMetric(4000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
