package postgres

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

func TestQuery_RowsAreReadWithoutAllocating(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	snap := things(t)
	mustApply(t, s, snap)
	table := mustTable(t, snap, "thing")
	set := &store.InsertSet{Table: table, Fields: []string{"id", "b", "n", "ok", "f", "dec", "day"}}
	for i := range 5000 {
		set.Rows = append(set.Rows, row(fmt.Sprintf("%05d", i), strings.Repeat("x", 40), i, true, 1.5, "2.50", "2024-01-01"))
	}
	mustInsert(t, s, set)
	read := func(n int64) float64 {
		q := &store.Read{Snapshot: snap, Table: table, Fields: set.Fields, Query: &record.Query{Limit: n}}
		return testing.AllocsPerRun(5, func() {
			res, err := s.Query(context.Background(), q)
			if err != nil {
				t.Fatal(err)
			}
			var rows int64
			for _, ok := res.Next(); ok; _, ok = res.Next() {
				rows++
			}
			if err := res.Err(); err != nil || rows != n {
				t.Fatal(rows, err)
			}
			res.Close()
		})
	}
	few, many := read(10), read(5000)
	if many-few > 100 { // buffers grow; 34,930 values more are read
		t.Fatalf("10 rows: %v allocations, 5000 rows: %v", few, many)
	}
}

func bench(b *testing.B) (*Store, *catalog.Snapshot) {
	s := open(b, Options{Max: 50, Min: 50})
	if s == nil {
		b.Fatal("needs PostgreSQL")
	}
	snap := things(b)
	mustApply(b, s, snap)
	return s, snap
}

func BenchmarkInsertOne(b *testing.B) {
	s, snap := bench(b)
	table, _ := snap.Table("thing")
	var n atomic.Int64
	b.SetParallelism(25)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		ctx := context.Background()
		for pb.Next() {
			tx, err := s.Begin(ctx)
			if err != nil {
				b.Fatal(err)
			}
			id := fmt.Sprintf("%032x", n.Add(1))
			if _, err := tx.Insert(ctx, &store.InsertSet{Table: table, Fields: []string{"id", "b", "n", "ok"}, Rows: [][]record.Value{row(id, "a short description", 5, true)}}); err != nil {
				b.Fatal(err)
			}
			if err := tx.Commit(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkInsertThousand(b *testing.B) {
	s, snap := bench(b)
	table, _ := snap.Table("thing")
	ctx, n := context.Background(), 0
	b.ReportAllocs()
	for b.Loop() {
		set := &store.InsertSet{Table: table, Fields: []string{"id", "b", "n", "ok"}}
		for range 1000 {
			n++
			set.Rows = append(set.Rows, row(fmt.Sprintf("%032x", n), "a short description", 5, true))
		}
		tx, err := s.Begin(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := tx.Insert(ctx, set); err != nil {
			b.Fatal(err)
		}
		if err := tx.Commit(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	s, snap := bench(b)
	table, _ := snap.Table("thing")
	ctx := context.Background()
	tx, err := s.Begin(ctx)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := tx.Insert(ctx, &store.InsertSet{Table: table, Fields: []string{"id", "b", "n", "ok"}, Rows: [][]record.Value{row("1", "a short description", 5, true)}}); err != nil {
		b.Fatal(err)
	}
	if err := tx.Commit(ctx); err != nil {
		b.Fatal(err)
	}
	q := &store.Read{Snapshot: snap, Table: table, Fields: []string{"id", "b", "n", "ok", "at"}, Keys: [][]record.Value{row("1")}}
	b.SetParallelism(12)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			res, err := s.Query(ctx, q)
			if err != nil {
				b.Fatal(err)
			}
			if _, ok := res.Next(); !ok {
				b.Fatal("no row")
			}
			res.Close()
		}
	})
}
