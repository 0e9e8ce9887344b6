package engine_test

import (
	"sync"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
	"weir/internal/store"
)

func TestToken_RequestsThatMeetWriteOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		off := false
		b := newBench(t, s, engine.Options{Coalesce: &off, Retries: 10})
		var wg sync.WaitGroup
		results := make([]string, 10)
		for i := range results {
			wg.Go(func() {
				op := insert("task", "", "title", "once")
				op.Token, op.Return = "same", []string{"number", "sys_id"}
				results[i] = show(b.do(enginetest.Admin, op)[0])
			})
		}
		wg.Wait()
		for _, r := range results {
			if r != results[0] {
				t.Errorf("outcomes %v", results)
				break
			}
		}
		want(t, b.must(list("task", nil, "title")), "ok once")
	})
}

func TestToken_IsForgottenByAge(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		now := clock
		b := newBench(t, s, engine.Options{TokenAge: time.Hour, Now: func() time.Time { return now }})
		op := insert("task", "", "title", "x")
		op.Token = "t"
		b.must(op)
		now = now.Add(2 * time.Hour)
		if err := b.e.TrimTokens(t.Context(), now.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		tokens, err := catalog.System().Table("token")
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.Query(t.Context(), &store.Read{Snapshot: catalog.System(), Table: tokens, Fields: []string{"token"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Materialise(0); err != nil || res.Len() != 0 {
			t.Errorf("%d tokens are left, %v", res.Len(), err)
		}
		b.must(op)
		want(t, b.must(list("task", nil, "title")), "ok x / x")
	})
}

func TestHalve_FindsTheGuiltyAmongManyGroups(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		c := &counting{Store: s}
		b := newBench(t, c, engine.Options{})
		var ops []record.Op
		for g := range 64 {
			name := "ok"
			if g == 37 {
				name = "much longer than the twenty characters allowed"
			}
			a, z := insert("task", id(1000+g), "title", "a"), insert("step", id(2000+g), "task", record.RefTo(2*g, "sys_id"))
			if name != "ok" {
				z = insert("task", id(1000), "title", "exists")
			}
			a.Group, z.Group = g+1, g+1
			ops = append(ops, a, z)
		}
		out := b.unit(record.Unit{Ops: ops})
		for i, o := range out {
			want := "ok inserted"
			switch i {
			case 74:
				want = "dependency 75"
			case 75:
				want = "conflict sys_id"
			}
			if show(o) != want {
				t.Errorf("op %d: %s, not %s", i, show(o), want)
			}
		}
		if got := c.commits.Load(); got != 1 {
			t.Errorf("%d commits, not 1", got)
		}
	})
}

func TestOptions_NameAllFaults(t *testing.T) {
	o := engine.Options{Parallel: -1, MaxOps: -1, MaxResult: -1, CoalesceMax: -1, CoalesceWait: -1, Splits: -1, Retries: -1, CoalesceFlights: -1, TokenAge: -1}
	o.Defaults()
	err := o.Validate()
	if err == nil {
		t.Fatal("no fault")
	}
	const want = "engine.parallel: -1 is not positive\nengine.max_ops: -1 is not positive\nengine.max_result: -1 is not positive\n" +
		"engine.coalesce_max: -1 is not positive\nengine.coalesce_wait: -1 is not positive\nengine.splits: -1 is not positive\n" +
		"engine.token_age: -1 is not positive\nengine.retries: -1 is negative\nengine.coalesce_flights: -1 is negative"
	if err.Error() != want {
		t.Errorf("%v", err)
	}
	var fresh engine.Options
	fresh.Defaults()
	if err := fresh.Validate(); err != nil {
		t.Error(err)
	}
}
