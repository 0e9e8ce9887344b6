package job

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

// onEach runs a test on each database that there is.
func onEach(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "jobs.db")})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, prepared(t, s))
	})
	t.Run("postgres", func(t *testing.T) {
		url := storetest.Postgres(t)
		if url == "" {
			t.Skip("no PostgreSQL")
		}
		s, err := postgres.Open(t.Context(), postgres.Options{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, prepared(t, s))
	})
}

func prepared(t *testing.T, s store.Store) store.Store {
	t.Helper()
	plan, err := s.Schema().Plan(t.Context(), catalog.System())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Schema().Apply(t.Context(), plan.Additive); err != nil {
		t.Fatal(err)
	}
	return s
}

// clock is a time that only moves when it is told to.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) pass(d time.Duration) { c.at.Add(int64(d)) }

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestStore_AJobGoesToOneNodeUntilItFallsSilent(t *testing.T) {
	onEach(t, func(t *testing.T, db store.Store) {
		ctx, claim := t.Context(), must[*Job](t)
		clock := &clock{}
		clock.at.Store(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).UnixNano())
		one, two := New(db), New(db)
		one.now, two.now = clock.now, clock.now
		if err := one.Put(ctx, &Job{ID: "a", User: "eve", Head: []byte("head"), Body: []byte("\x00\xffbody")}, 10); err != nil {
			t.Fatal(err)
		}
		clock.pass(time.Millisecond)
		if err := one.Put(ctx, &Job{ID: "b", User: "ann"}, 10); err != nil {
			t.Fatal(err)
		}
		if err := one.Put(ctx, &Job{ID: "c"}, 2); record.KindOf(err) != record.Busy {
			t.Errorf("beyond the limit: %v", err)
		}
		a := claim(one.Claim(ctx, time.Minute))
		if a == nil || a.ID != "a" || a.User != "eve" || string(a.Head) != "head" || string(a.Body) != "\x00\xffbody" || a.Attempts != 1 {
			t.Fatalf("claimed %+v", a)
		}
		if b := claim(two.Claim(ctx, time.Minute)); b == nil || b.ID != "b" {
			t.Fatalf("claimed %+v", b)
		}
		if none := claim(two.Claim(ctx, time.Minute)); none != nil {
			t.Fatalf("claimed %+v", none)
		}
		clock.pass(50 * time.Second)
		if canceled, lost, err := one.Renew(ctx, a, time.Minute); canceled || lost || err != nil {
			t.Error(canceled, lost, err)
		}
		clock.pass(50 * time.Second) // b's node is silent
		b := claim(one.Claim(ctx, time.Minute))
		if b == nil || b.ID != "b" || b.Attempts != 2 {
			t.Fatalf("taken over %+v", b)
		}
		clock.pass(time.Minute)
		again := claim(two.Claim(ctx, time.Minute))
		if again == nil || again.ID != "a" {
			t.Fatalf("taken over %+v", again)
		}
		if _, lost, err := one.Renew(ctx, a, time.Minute); !lost || err != nil {
			t.Error("still held", err)
		}
		if err := one.Finish(ctx, a, []byte("late"), []byte("late")); err != nil {
			t.Error(err)
		}
		if j := claim(one.Find(ctx, "a")); j.State != Running {
			t.Errorf("somebody who lost it finished it: %+v", j)
		}
		if err := two.Finish(ctx, again, []byte("answer"), []byte("result\x00")); err != nil {
			t.Error(err)
		}
		if j := claim(one.Find(ctx, "a")); j.State != Done || string(j.Answer) != "answer" || string(j.Result) != "result\x00" || j.User != "eve" {
			t.Errorf("found %+v", j)
		}
		if n, err := one.Trim(ctx, clock.now().Add(-time.Second)); n != 0 || err != nil {
			t.Error(n, err)
		}
		if n, err := one.Trim(ctx, clock.now().Add(time.Second)); n != 1 || err != nil {
			t.Error(n, err)
		}
		if j := claim(one.Find(ctx, "a")); j != nil {
			t.Errorf("found %+v", j)
		}
	})
}

func TestStore_CancelForgetsWhatWaitsAndTellsWhoIsAtWork(t *testing.T) {
	onEach(t, func(t *testing.T, db store.Store) {
		ctx, claim, yes := t.Context(), must[*Job](t), must[bool](t)
		s := New(db)
		for _, id := range []string{"waits", "runs"} {
			if err := s.Put(ctx, &Job{ID: id}, 10); err != nil {
				t.Fatal(err)
			}
		}
		first := claim(s.Claim(ctx, time.Minute))
		other := map[string]string{"waits": "runs", "runs": "waits"}[first.ID]
		if yes(s.Cancel(ctx, other)) || claim(s.Find(ctx, other)) != nil {
			t.Error("what waits is not forgotten at once")
		}
		if !yes(s.Cancel(ctx, first.ID)) {
			t.Error("what runs does not say so")
		}
		if canceled, lost, err := s.Renew(ctx, first, time.Minute); !canceled || lost || err != nil {
			t.Error(canceled, lost, err)
		}
		if err := s.Drop(ctx, first); err != nil || claim(s.Find(ctx, first.ID)) != nil {
			t.Error("not dropped", err)
		}
		if yes(s.Cancel(ctx, "unknown")) {
			t.Error("there is none")
		}
	})
}

func TestStore_ManyNodesTakeEachJobOnce(t *testing.T) {
	onEach(t, func(t *testing.T, db store.Store) {
		ctx := t.Context()
		const n = 20
		put := New(db)
		for i := range n {
			if err := put.Put(ctx, &Job{ID: string(rune('a' + i))}, 100); err != nil {
				t.Fatal(err)
			}
		}
		var taken sync.Map
		var count atomic.Int64
		var work sync.WaitGroup
		for range 4 {
			s := New(db)
			work.Go(func() {
				for count.Load() < n {
					j, err := s.Claim(ctx, time.Minute)
					if err != nil {
						t.Error(err)
						return
					}
					if j == nil {
						continue
					}
					if _, twice := taken.LoadOrStore(j.ID, true); twice {
						t.Errorf("%s was taken twice", j.ID)
					}
					count.Add(1)
				}
			})
		}
		work.Wait()
	})
}
