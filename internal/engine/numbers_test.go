package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
	"weir/internal/store"
)

func (b *bench) numbers(t *testing.T, ops ...record.Op) []string {
	t.Helper()
	for i := range ops {
		ops[i].Return = []string{"number"}
	}
	var list []string
	for _, o := range b.do(enginetest.Admin, ops...) {
		if o.Err != nil {
			list = append(list, o.Err.Kind.String())
			continue
		}
		list = append(list, strings.TrimLeft(o.Rows.At(0)[0].S, "TSK0"))
	}
	return list
}

func TestNumbers_StartAtTheStartAndFollowTheOrderOfTheOps(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		var ops []record.Op
		for i := range 5 {
			ops = append(ops, insert("task", "", "title", fmt.Sprint(i)))
		}
		if got, want := b.numbers(t, ops...), []string{"1", "2", "3", "4", "5"}; !slices.Equal(got, want) {
			t.Errorf("numbers %v, not %v", got, want)
		}
		// A refused record gives its number back, and a number that the caller gives draws none.
		given := insert("task", "", "title", "x", "number", "TSK9")
		bad := insert("task", "", "title", "x", "prio", 9)
		if got, want := b.numbers(t, given, bad, insert("task", "", "title", "x")), []string{"9", "rejected", "7"}; !slices.Equal(got, want) {
			t.Errorf("numbers %v, not %v", got, want)
		}
		if got, want := b.numbers(t, insert("task", "", "title", "x")), []string{"6"}; !slices.Equal(got, want) {
			t.Errorf("numbers %v, not %v", got, want)
		}
	})
}

func TestNumbers_ManyRequestsNeverGetTheSame(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		var wg sync.WaitGroup
		var mu sync.Mutex
		seen := map[string]bool{}
		for range 8 {
			wg.Go(func() {
				for range 15 {
					got := b.numbers(t, insert("task", "", "title", "x"))
					mu.Lock()
					if seen[got[0]] {
						t.Errorf("number %s twice", got[0])
					}
					seen[got[0]] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	})
}

// TestNumbers_DerivedRecordsGetThemFromTheirAtom derives more numbered records than the ops foretell, by upserts that
// all insert.
func TestNumbers_DerivedRecordsGetThemFromTheirAtom(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		var ops []record.Op
		for i := range 6 {
			ops = append(ops, insert("incident", "", "title", "x", "ci_name", fmt.Sprint("c", i)))
		}
		b.must(ops...)
		out := b.must(record.Op{Verb: record.List, Table: "ci", Return: []string{"number"}, Query: &record.Query{Limit: -1, Sort: []record.Sort{{Path: "name"}}}})
		want(t, out, "ok CI0001 / CI0002 / CI0003 / CI0004 / CI0005 / CI0006")
	})
}
