package odata

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/engine"
	"weir/internal/record"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
	"weir/internal/wire"
)

// manyCreates is a batch of n creates in one changeset, as UI5 writes it; keys begin at from.
func manyCreates(from, n int) *dialect.Call {
	var b bytes.Buffer
	b.WriteString("\r\n--batch_6d13\r\nContent-Type: multipart/mixed; boundary=changeset_31a4\r\n\r\n")
	for i := from; i < from+n; i++ {
		body := fmt.Sprintf(`{"ID":"P%d","Name":"Notebook %d","Price":"956.00","Stock":5,"Active":true,"Weight":4.2,"Since":"\/Date(1700000000000)\/","Opens":"PT08H00M00S","Day":"\/Date(1700000000000)\/"}`, i, i)
		fmt.Fprintf(&b, "--changeset_31a4\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
			"POST ProductSet HTTP/1.1\r\nsap-cancel-on-close: false\r\nsap-contextid-accept: header\r\nAccept: application/json\r\nAccept-Language: en\r\n"+
			"DataServiceVersion: 2.0\r\nMaxDataServiceVersion: 2.0\r\nX-Requested-With: XMLHttpRequest\r\nContent-Type: application/json\r\n"+
			"Content-ID: id-1796058342597-%d\r\nContent-Length: %d\r\n\r\n%s\r\n", i, len(body), body)
	}
	b.WriteString("--changeset_31a4--\r\n\r\n--batch_6d13--\r\n")
	c := &dialect.Call{Method: "POST", Path: "/sap/opu/odata/sap/SHOP/$batch", RawPath: "/sap/opu/odata/sap/SHOP/$batch", Base: dialecttest.Base, Actor: dialecttest.Actors["admin"], Body: b.Bytes()}
	c.Header.Add("Content-Type", "multipart/mixed;boundary=batch_6d13")
	c.Header.Add("Accept", "multipart/mixed")
	return c
}

// inserted answers inserts as an engine does.
type inserted struct{ row []record.Value }

func (x *inserted) Execute(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
	out := make([]record.Outcome, len(u.Ops))
	for i := range out {
		op := &u.Ops[i]
		out[i] = record.Outcome{Inserted: true, Changed: true, Total: -1, Key: []record.Value{op.Set[0].Value}}
		rows := record.NewRows(op.Return, make([]record.Type, len(op.Return)))
		x.row = x.row[:0]
		for _, f := range op.Return {
			var v record.Value
			for k := range op.Set {
				if op.Set[k].Field == f {
					v = op.Set[k].Value
				}
			}
			x.row = append(x.row, v)
		}
		rows.AppendShared(x.row)
		out[i].Rows = rows
	}
	return out
}

func (x *inserted) Stream(context.Context, *catalog.Snapshot, *record.Unit) record.Outcome {
	panic("streamed")
}

// BenchmarkBatch_Creates is 1,000 creates in one changeset: reading the batch, and the gateway's whole share without an engine and with
// one.
func BenchmarkBatch_Creates(b *testing.B) {
	const n = 1000
	snap := shop(b)
	d := shopDialect()
	mux := &dialect.Mux{}
	mux.Handle("/sap/opu/odata/", d)
	per := func(b *testing.B) { b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/entity") }
	b.Run("read", func(b *testing.B) {
		c := manyCreates(0, n)
		b.ReportAllocs()
		b.SetBytes(int64(len(c.Body)))
		for b.Loop() {
			if _, err := readMultipart(c.Body, "batch_6d13", limits(), ""); err != nil {
				b.Fatal(err)
			}
		}
		per(b)
	})
	run := func(b *testing.B, x dialect.Executor, c *dialect.Call) {
		a := &wire.Answer{}
		records := d.Batch(b.Context(), &dialect.BatchRun{Snapshot: snap, Exec: x, Mux: mux}, c, a)
		if len(records) != n || records[n-1].Status != 201 {
			b.Fatalf("%d: %.2000s", a.Status, a.Body)
		}
	}
	b.Run("dialect", func(b *testing.B) {
		c := manyCreates(0, n)
		b.ReportAllocs()
		for b.Loop() {
			run(b, &inserted{}, c)
		}
		per(b)
	})
	b.Run("sqlite", func(b *testing.B) {
		s, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "weir.db")})
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		storetest.Create(b, s, snap)
		e, err := engine.New(s, engine.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer e.Close()
		from := 0
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			c := manyCreates(from, n)
			from += n
			b.StartTimer()
			run(b, e, c)
		}
		per(b)
	})
}
