package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
	"weir/internal/store"
)

// counting is a store that counts transactions and can hold the first one open.
type counting struct {
	store.Store
	begins  atomic.Int64
	commits atomic.Int64
	hold    chan struct{} // the first transaction waits for it before it commits
	held    chan struct{} // closed when the first transaction waits
	once    sync.Once
}

func (c *counting) Begin(ctx context.Context) (store.Tx, error) {
	c.begins.Add(1)
	tx, err := c.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &countingTx{tx, c}, nil
}

type countingTx struct {
	store.Tx
	c *counting
}

func (t *countingTx) Commit(ctx context.Context) error {
	if t.c.hold != nil {
		t.c.once.Do(func() {
			close(t.c.held)
			<-t.c.hold
		})
	}
	t.c.commits.Add(1)
	return t.Tx.Commit(ctx)
}

func onStores(t *testing.T, f func(t *testing.T, s store.Store)) {
	for name, open := range openers(t) {
		t.Run(name, func(t *testing.T) { f(t, open(t)) })
	}
}

func TestCoalesce_SinglesThatArriveTogetherShareACommit(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		c := &counting{Store: s, hold: make(chan struct{}), held: make(chan struct{})}
		b := newBench(t, c, engine.Options{CoalesceFlights: 1})
		const n = 40
		var wg sync.WaitGroup
		results := make([]record.Outcome, n+1)
		run := func(i int, actor record.Actor, op record.Op) {
			wg.Go(func() { results[i] = b.do(actor, op)[0] })
		}
		run(0, enginetest.Admin, insert("task", id(1), "title", "first"))
		<-c.held
		for i := 1; i <= n; i++ {
			op := insert("task", id(100+i), "title", fmt.Sprint(i))
			op.Return = []string{"title", "sys_created_by"}
			switch i % 4 {
			case 1:
				op.Set[0].Value = text("") // mandatory
			case 2:
				run(i, enginetest.Beth, op) // may only create her own
				continue
			}
			run(i, enginetest.Agent, op)
		}
		b.e.WaitForGathered(t, n)
		close(c.hold)
		wg.Wait()
		for i, o := range results {
			want := map[int]string{0: fmt.Sprintf("ok inserted %d agent", i), 3: fmt.Sprintf("ok inserted %d agent", i), 1: "invalid title", 2: "forbidden"}[i%4]
			if i == 0 {
				want = "ok inserted"
			}
			if show(o) != want {
				t.Errorf("%d: %s, not %s: %v", i, show(o), want, o.Err)
			}
		}
		if got := c.commits.Load(); got != 2 {
			t.Errorf("%d commits, not 2", got)
		}
		if c := b.e.Counters(); c["weir_engine_coalesced_ops_total"] != n || c["weir_engine_coalesced_units_total"] != 1 {
			t.Errorf("counters: %v", c)
		}
	})
}

func TestCoalesce_IdleEngineRunsAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		c := &counting{Store: s}
		b := newBench(t, c, engine.Options{})
		for i := range 3 {
			b.must(insert("dept", "", "name", fmt.Sprint(i)))
		}
		if got := c.commits.Load(); got != 3 {
			t.Errorf("%d commits, not 3", got)
		}
	})
}

func TestCoalesce_WhoLeavesBeforeItBeginsTakesItsWriteAlong(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		c := &counting{Store: s, hold: make(chan struct{}), held: make(chan struct{})}
		b := newBench(t, c, engine.Options{CoalesceFlights: 1})
		var wg sync.WaitGroup
		wg.Go(func() { b.do(enginetest.Admin, insert("dept", id(1), "name", "first")) })
		<-c.held
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan record.Outcome)
		go func() {
			left <- b.x.Execute(ctx, b.snap, &record.Unit{Ops: []record.Op{insert("dept", id(2), "name", "gone")}, Actors: []record.Actor{enginetest.Admin}})[0]
		}()
		b.e.WaitForGathered(t, 1)
		cancel()
		o := <-left
		if o.Err == nil || o.Err.Kind != record.Canceled || !o.Unserviced {
			t.Errorf("outcome %+v", o)
		}
		close(c.hold)
		wg.Wait()
		want(t, b.must(list("dept", nil, "name")), "ok first")
	})
}

// TestCoalesce_FloodLosesAndDuplicatesNothing lets many requests insert, update and delete at once, on the same and on
// different records, and counts what is there against what was acknowledged.
func TestCoalesce_FloodLosesAndDuplicatesNothing(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{CoalesceMax: 16})
		b.must(insert("dept", id(1), "name", "shared", "grp", "x"))
		var wg sync.WaitGroup
		var mu sync.Mutex
		var alive []string
		var bumps int64
		for w := range 12 {
			wg.Go(func() {
				for i := range 10 {
					key := id(1000 + w*100 + i)
					if o := b.do(enginetest.Admin, insert("task", key, "title", "t"))[0]; o.Err != nil {
						t.Errorf("insert: %v", o.Err)
					}
					if o := b.do(enginetest.Admin, update("dept", id(1), "grp", key))[0]; o.Err != nil {
						t.Errorf("update: %v", o.Err)
					} else if o.Changed {
						atomic.AddInt64(&bumps, 1)
					}
					if i%2 == 0 {
						if o := b.do(enginetest.Admin, del("task", key))[0]; o.Err != nil {
							t.Errorf("delete: %v", o.Err)
						}
						continue
					}
					mu.Lock()
					alive = append(alive, key)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		out := b.must(list("task", nil, "sys_id", "number"), get("dept", id(1), "sys_mod_count"))
		rows := out[0].Rows
		var got []string
		numbers := map[string]bool{}
		for i := range rows.Len() {
			got = append(got, rows.At(i)[0].S)
			numbers[rows.At(i)[1].S] = true
		}
		slices.Sort(alive)
		if !slices.Equal(got, alive) || len(numbers) != len(got) {
			t.Errorf("%d records with %d numbers are there, %d were acknowledged", len(got), len(numbers), len(alive))
		}
		if n := out[1].Rows.At(0)[0].N; n != bumps {
			t.Errorf("the shared record was changed %d times, acknowledged were %d", n, bumps)
		}
	})
}

// failing is a store whose transactions fail a number of times as a deadlock would.
type failing struct {
	store.Store
	left atomic.Int64
}

func (f *failing) Begin(ctx context.Context) (store.Tx, error) {
	tx, err := f.Store.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &failingTx{tx, f}, nil
}

type failingTx struct {
	store.Tx
	f *failing
}

func (t *failingTx) Insert(ctx context.Context, s *store.InsertSet) (*store.Written, error) {
	if t.f.left.Add(-1) >= 0 {
		return nil, record.Errorf(record.Unavailable, "", "deadlock").Because(errors.New("40P01"))
	}
	return t.Tx.Insert(ctx, s)
}

func TestWrite_DeadlockIsTriedAgainABoundedNumberOfTimes(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		f := &failing{Store: s}
		b := newBench(t, f, engine.Options{Retries: 2})
		f.left.Store(2)
		want(t, b.do(enginetest.Admin, insert("dept", id(1), "name", "a"), insert("dept", id(2), "name", "b")), "ok inserted", "ok inserted")
		f.left.Store(3)
		want(t, b.do(enginetest.Admin, insert("dept", id(3), "name", "c")), "unavailable")
		want(t, b.must(list("dept", nil, "name")), "ok a / b")
	})
}

func TestUpsert_RequestsThatMeetMakeOneRecord(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{Retries: 20})
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Go(func() {
				// Every other request by a derived record, so that both ways are taken.
				op := insert("incident", "", "title", fmt.Sprint(i), "ci_name", fmt.Sprint("srv", i%3))
				if i%2 == 0 {
					op = record.Op{Verb: record.Upsert, Table: "ci", Match: []string{"name"}, Set: set("name", fmt.Sprint("srv", i%3), "seen", "x")}
				}
				if o := b.do(enginetest.Admin, op)[0]; o.Err != nil {
					t.Errorf("%d: %v", i, o.Err)
				}
			})
		}
		wg.Wait()
		want(t, b.must(record.Op{
			Verb: record.List, Table: "ci", Return: []string{"name"}, Query: &record.Query{Limit: -1, Sort: []record.Sort{{Path: "name"}}},
		}), "ok srv0 / srv1 / srv2")
	})
}

// TestCoalesce_ALockedRecordHoldsUpNobodyElse locks a record and lets updates of it and of others share a statement: the
// others are done while the lock still holds.
func TestCoalesce_ALockedRecordHoldsUpNobodyElse(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		if s.Name() == "sqlite" {
			s.Close() // one writer: whoever writes holds up everybody
			return
		}
		c := &counting{Store: s}
		b := newBench(t, c, engine.Options{CoalesceFlights: 1, CoalesceWait: 200 * time.Millisecond})
		for i := range 6 {
			b.must(insert("dept", id(i), "name", fmt.Sprint(i)))
		}
		tx, err := s.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		dept, err := b.snap.Table("dept")
		if err != nil {
			t.Fatal(err)
		}
		locked, err := tx.Query(t.Context(), &store.Read{Snapshot: b.snap, Table: dept, Fields: []string{"name"}, Keys: [][]record.Value{{text(id(3))}}, Lock: true})
		if err != nil {
			t.Fatal(err)
		}
		locked.Close()

		c.hold, c.held = make(chan struct{}), make(chan struct{})
		var first, others, blocked sync.WaitGroup
		first.Go(func() { b.must(update("dept", id(0), "grp", "x")) })
		<-c.held
		for i := 1; i < 6; i++ {
			wait := &others
			if i == 3 {
				wait = &blocked
			}
			wait.Go(func() {
				if o := b.do(enginetest.Admin, update("dept", id(i), "grp", "x"))[0]; o.Err != nil || !o.Changed {
					t.Errorf("%d: %+v", i, o)
				}
			})
		}
		b.e.WaitForGathered(t, 5)
		close(c.hold)
		first.Wait()
		others.Wait()
		tx.Rollback()
		blocked.Wait()
	})
}
