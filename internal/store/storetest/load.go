package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// crowd writes n teams.
func crowd(t *testing.T, s store.Store, n int) {
	t.Helper()
	snap := Snapshot(t)
	for at := 0; at < n; at += 10000 {
		set := insertSet(table(t, snap, "team"), []string{"sys_id", "name"})
		for i := at; i < min(n, at+10000); i++ {
			set.Rows = append(set.Rows, values(fmt.Sprintf("%08d", i), fmt.Sprintf("team number %d of very many with a long name", i)))
		}
		mustInsert(t, s, set)
	}
}

func testIsolation(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	team := table(t, snap, "team")
	q := &store.Read{Snapshot: snap, Table: team, Fields: []string{"sys_id"}, Query: all(nil)}
	mustTx(t, s, func(tx store.Tx) {
		if _, err := tx.Insert(t.Context(), insertSet(team, []string{"sys_id"}, []any{"a"})); err != nil {
			t.Fatal(err)
		}
		if n := len(mustRows(t, s, q)); n != 0 {
			t.Error("a reader sees what is not committed")
		}
		if n := len(mustRows(t, tx, q)); n != 1 {
			t.Error("the transaction does not see its own record")
		}
	})
	if n := len(mustRows(t, s, q)); n != 1 {
		t.Error("a reader does not see what is committed")
	}
}

func testStreaming(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	const n = 100_000
	crowd(t, s, n)
	q := &store.Read{Snapshot: snap, Table: table(t, snap, "team"), Fields: []string{"sys_id", "name", "cost"}, Query: all(nil)}
	rec := telemetry.New()
	res, err := s.Query(telemetry.With(t.Context(), rec), q)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if !res.Streaming() {
		t.Error("a list without limit does not stream")
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var last string
	for i := range n {
		row, ok := res.Next()
		if !ok {
			t.Fatalf("ends at row %d: %v", i, res.Err())
		}
		if row[0].S <= last {
			t.Fatalf("row %d: %s after %s", i, row[0].S, last)
		}
		last = strings.Clone(row[0].S)
	}
	runtime.ReadMemStats(&after)
	if _, ok := res.Next(); ok || res.Err() != nil {
		t.Errorf("more than %d rows, or %v", n, res.Err())
	}
	if perRow := float64(after.Mallocs-before.Mallocs) / n; perRow > 1.2 { // one is the test's own
		t.Errorf("%.2f allocations for each row", perRow)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	res.Close()
	if rec.SQLCount.Load() != 1 || rec.SQL.Load() <= 0 {
		t.Errorf("%d statements of %d ns recorded, want one", rec.SQLCount.Load(), rec.SQL.Load())
	}
	// A stream left early gives its connection back.
	for range 20 {
		res, err := s.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		res.Next()
		res.Close()
		res.Close()
	}
	if st := s.Stats(); st.InUse != 0 {
		t.Errorf("%d connections in use after all are closed", st.InUse)
	}
}

func testCancel(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	crowd(t, s, 20_000)
	// A condition that takes far longer than the test may: all pairs of teams.
	slow := &store.Read{Snapshot: snap, Table: table(t, snap, "team"), Fields: []string{"sys_id"}, Query: all(
		related("team", "cost", "cost", record.Gt, 30_000, x(record.Contains, x(record.Upper, f("name")), c("nowhere"))))}
	mustTx(t, s, func(tx store.Tx) { // one cost for all, which has no index
		set := &store.UpdateSet{Table: table(t, snap, "team"), Fields: []string{"cost"}}
		for i := range 20_000 {
			set.Keys = append(set.Keys, values(fmt.Sprintf("%08d", i)))
			set.Rows = append(set.Rows, values("1"))
		}
		if _, err := tx.Update(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	})
	for _, kind := range []record.Kind{record.Canceled, record.Timeout} {
		ctx, cancel := context.WithCancel(t.Context())
		if kind == record.Timeout {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		} else {
			time.AfterFunc(50*time.Millisecond, cancel)
		}
		begin := time.Now()
		_, _, err := rowsOf(ctx, s, slow)
		cancel()
		if record.KindOf(err) != kind {
			t.Errorf("%v, want %v", err, kind)
		}
		if d := time.Since(begin); d > 3*time.Second {
			t.Errorf("%v: ended after %s", kind, d)
		}
	}
	// The connections serve again.
	slow.Query.Where = nil
	slow.Query.Limit = 3
	for range 8 {
		if n := len(mustRows(t, s, slow)); n != 3 {
			t.Errorf("%d rows", n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Query(ctx, slow); record.KindOf(err) != record.Canceled {
		t.Errorf("a read for a caller who is gone: %v", err)
	}
	if _, err := s.Begin(ctx); record.KindOf(err) != record.Canceled {
		t.Errorf("a transaction for a caller who is gone: %v", err)
	}
}

func testConcurrency(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	team := table(t, snap, "team")
	const batches, size = 40, 50
	var wg sync.WaitGroup
	var done atomic.Bool
	for range 4 {
		wg.Go(func() {
			q := &store.Read{Snapshot: snap, Table: team, Fields: []string{"sys_id", "name"}, Query: all(nil)}
			q.Query.Count = true
			seen := 0
			for end := false; !end; {
				end = done.Load()
				rows, total, err := rowsOf(t.Context(), s, q)
				if err != nil {
					t.Error(err)
					return
				}
				// Commits are whole: a reader sees all of a batch or nothing of it, and never less than before.
				if len(rows)%size != 0 || len(rows) < seen {
					t.Errorf("%d records seen after %d", len(rows), seen)
				}
				if s.Name() == "sqlite" && int(total) != len(rows) {
					t.Errorf("%d rows, but a count of %d", len(rows), total)
				}
				seen = len(rows)
			}
			if seen != batches*size {
				t.Errorf("%d records at the end", seen)
			}
		})
	}
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range batches / 2 {
				set := insertSet(team, []string{"sys_id", "name"})
				for j := range size {
					set.Rows = append(set.Rows, values(fmt.Sprintf("%d-%d-%d", w, i, j), "n"))
				}
				tx, err := s.Begin(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := tx.Insert(t.Context(), set); err != nil {
					t.Error(err)
				}
				if err := tx.Commit(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	done.Store(true)
	wg.Wait()
}

func testNumbers(t *testing.T, s store.Store) {
	if n, err := s.Numbers(t.Context(), "other", 1000, 5); err != nil || n != 1000 {
		t.Fatal(n, err)
	}
	var mu sync.Mutex
	var all []int64
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 25 {
				n := 1 + (g+i)%7
				first, err := s.Numbers(t.Context(), "incident.number", 10001, n)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for k := range n {
					all = append(all, first+int64(k))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	if len(all) == 0 || all[0] != 10001 {
		t.Fatal("the sequence does not begin at its start")
	}
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			t.Fatalf("%d was drawn twice", all[i])
		}
	}
	if n, err := s.Numbers(t.Context(), "other", 1000, 1); err != nil || n != 1005 {
		t.Error(n, err)
	}
}

func testExhausted(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	crowd(t, s, 5000)
	q := &store.Read{Snapshot: snap, Table: table(t, snap, "team"), Fields: []string{"sys_id", "name"}, Query: all(nil)}
	var held []*store.Result
	for range 4 {
		res, err := s.Query(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		res.Next()
		held = append(held, res)
	}
	rec := telemetry.New()
	begin := time.Now()
	_, err := s.Query(telemetry.With(t.Context(), rec), q)
	if record.KindOf(err) != record.Unavailable {
		t.Fatalf("%v, want unavailable", err)
	}
	for _, part := range []string{"4 of 4 in use", "0 idle", "database.pool.wait", "database.pool.max"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("refused after %s", d)
	}
	if rec.Borrow.Load() == 0 {
		t.Error("the wait was not recorded")
	}
	// One who waits is served when a connection comes back.
	got := make(chan error, 1)
	go func() {
		res, err := s.Query(t.Context(), q)
		if err == nil {
			err = res.Close()
		}
		got <- err
	}()
	for s.Stats().Waiting == 0 {
		runtime.Gosched()
	}
	held[0].Close()
	if err := <-got; err != nil {
		t.Errorf("who waited got %v", err)
	}
	for _, res := range held {
		res.Close()
	}
	if st := s.Stats(); st.InUse != 0 || st.Waiting != 0 || st.WaitTime == 0 {
		t.Errorf("%+v", st)
	}
}

func testWatch(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 100)
	ended := make(chan error, 1)
	go func() { ended <- s.Watch(ctx, func() { changed <- struct{}{} }) }()
	heard := false
	for deadline := time.After(20 * time.Second); !heard; {
		if err := s.Notify(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			heard = true
		case <-time.After(100 * time.Millisecond): // the watcher had not begun yet
		case <-deadline:
			t.Fatal("no notice")
		}
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Error("Watch does not end with its context")
	}
}
