package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a configuration of one pool, with no session limits unless a test sets them.
func small(slots, queue int, wait time.Duration) Config {
	c := Auto(1, 1)
	c.Pools = Pools{DefaultPool: {Slots: slots, Queue: queue, Wait: wait}}
	c.Session = SessionConfig{}
	return c
}

func newGate(t testing.TB, c Config) *Gate {
	t.Helper()
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustEnter(t testing.TB, g *Gate, pool, session string) *Slot {
	t.Helper()
	s, err := g.Enter(t.Context(), pool, session)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustReject(t testing.TB, g *Gate, pool, session, limit string) *RejectedError {
	t.Helper()
	s, err := g.Enter(t.Context(), pool, session)
	if s != nil {
		t.Fatal("admitted, want rejected by", limit)
	}
	var r *RejectedError
	if !errors.As(err, &r) || r.Limit != limit {
		t.Fatalf("got %v, want rejected by %s", err, limit)
	}
	return r
}

func poolStats(t testing.TB, g *Gate, name string) PoolStats {
	t.Helper()
	for _, p := range g.Stats().Pools {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("no pool %q", name)
	return PoolStats{}
}

// recorder starts requests inside a synctest bubble and keeps the slots they got.
type recorder struct {
	t     *testing.T
	g     *Gate
	mu    sync.Mutex
	errs  []error
	slots map[string]*Slot
}

func newRecorder(t *testing.T, g *Gate) *recorder {
	return &recorder{t: t, g: g, slots: map[string]*Slot{}}
}

// enter starts a request and returns when it is settled in its slot or in line. With service it releases its slot after that time.
func (r *recorder) enter(ctx context.Context, pool, session, name string, service time.Duration) {
	go func() {
		s, err := r.g.Enter(ctx, pool, session)
		r.mu.Lock()
		if err != nil {
			r.errs = append(r.errs, err)
		} else {
			r.slots[name] = s
		}
		r.mu.Unlock()
		if err == nil && service > 0 {
			time.Sleep(service) // the bubble's clock: it is the request's work, not a wait for the test
			s.Release()
		}
	}()
	synctest.Wait()
}

// waits returns how long a request waited for its pool and for its session.
func (r *recorder) waits(name string) [2]time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue, session := r.slots[name].Waits()
	return [2]time.Duration{queue, session}
}

// want checks the order in which requests got their slots; those of one instant count as in order of their names.
func (r *recorder) want(order ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := slices.SortedFunc(maps.Keys(r.slots), func(a, b string) int {
		return cmp.Or(r.slots[a].granted.Compare(r.slots[b].granted), strings.Compare(a, b))
	})
	if diff := gocmp.Diff(order, got); diff != "" {
		r.t.Fatalf("order of admission (-want +got):\n%s", diff)
	}
	if len(r.errs) > 0 {
		r.t.Fatal(r.errs)
	}
}

func TestGate_FullQueueAnswersAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, ServiceNow())
		r := newRecorder(t, g)
		for i := range 54 {
			r.enter(t.Context(), APIPool, fmt.Sprint("s", i), fmt.Sprint(i), time.Second)
		}
		start := time.Now()
		e := mustReject(t, g, APIPool, "late", LimitPoolQueue)
		if time.Since(start) != 0 {
			t.Errorf("the answer took %v", time.Since(start))
		}
		if got, want := e.Error(), `pool "api_int": 4 slots busy, 50 of 50 waiting; see gate.pools.api_int.queue`; got != want {
			t.Errorf("text\n got %s\nwant %s", got, want)
		}
		want := &RejectedError{
			Pool: APIPool, Session: "late", Limit: LimitPoolQueue, Running: 4, Slots: 4, Waiting: 50, Queue: 50,
			RetryAfter: time.Second, Setting: "gate.pools.api_int.queue",
		}
		if diff := gocmp.Diff(want, e); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		time.Sleep(time.Minute)
		s := poolStats(t, g, APIPool)
		if s.Served != 54 || s.Rejected[LimitPoolQueue] != 1 || s.MaxInUse != 4 || s.MaxWaiting != 50 {
			t.Errorf("stats %+v", s)
		}
		if s.Service != time.Second || s.ServiceTotal != 54*time.Second {
			t.Errorf("service %v, in total %v; want 1s and 54s", s.Service, s.ServiceTotal)
		}
	})
}

func TestGate_RetryAfterIsWhenTheLineWillHaveBeenServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, small(4, 50, time.Hour))
		r := newRecorder(t, g)
		for range 4 { // the past: 2 s each
			r.enter(t.Context(), DefaultPool, "", "past", 2*time.Second)
		}
		time.Sleep(3 * time.Second)
		for range 54 {
			r.enter(t.Context(), DefaultPool, "", "line", 2*time.Second)
		}
		e := mustReject(t, g, DefaultPool, "", LimitPoolQueue)
		if e.RetryAfter != 26*time.Second { // 50 waiting, 4 at a time, 2 s each
			t.Fatalf("Retry-After %v, want 26s", e.RetryAfter)
		}
		time.Sleep(e.RetryAfter)
		synctest.Wait()
		if s := poolStats(t, g, DefaultPool); s.Waiting != 0 {
			t.Errorf("%d still wait when the rejected client comes back as told", s.Waiting)
		}
		time.Sleep(time.Hour)
	})
}

func TestGate_RetryAfterSeesThatThePoolHasBecomeSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, small(1, 1, time.Hour))
		mustEnter(t, g, DefaultPool, "").Release() // the past was fast
		slow := mustEnter(t, g, DefaultPool, "")
		r := newRecorder(t, g)
		r.enter(t.Context(), DefaultPool, "", "line", time.Second)
		time.Sleep(40 * time.Second)
		if e := mustReject(t, g, DefaultPool, "", LimitPoolQueue); e.RetryAfter != 40*time.Second {
			t.Errorf("Retry-After %v, want the 40s that the running request has taken", e.RetryAfter)
		}
		slow.Release()
		time.Sleep(2 * time.Second)
	})
}

func TestGate_SessionsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, small(1, 100, time.Hour))
		r := newRecorder(t, g)
		r.enter(t.Context(), DefaultPool, "flood", "f0", time.Second)
		for _, n := range []string{"f1", "f2", "f3", "f4"} {
			r.enter(t.Context(), DefaultPool, "flood", n, time.Second)
		}
		r.enter(t.Context(), DefaultPool, "b", "b1", time.Second)
		r.enter(t.Context(), DefaultPool, "b", "b2", time.Second)
		r.enter(t.Context(), DefaultPool, "c", "c1", time.Second)
		time.Sleep(time.Minute)
		r.want("f0", "f1", "b1", "c1", "f2", "b2", "f3", "f4")
	})
}

func TestGate_SessionAtItsMaximumHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := small(2, 100, time.Hour)
		c.Session = SessionConfig{Running: 1, Waiting: 10}
		g := newGate(t, c)
		r := newRecorder(t, g)
		r.enter(t.Context(), DefaultPool, "a", "a1", 4*time.Second)
		r.enter(t.Context(), DefaultPool, "a", "a2", time.Second) // waits for its session; a slot is free
		r.enter(t.Context(), DefaultPool, "b", "b1", time.Second) // takes it
		r.want("a1", "b1")
		r.enter(t.Context(), DefaultPool, "c", "c1", 5*time.Second) // waits for a slot, 1 s
		time.Sleep(time.Minute)
		r.want("a1", "b1", "c1", "a2")
		got := map[string][2]time.Duration{"a1": r.waits("a1"), "b1": r.waits("b1"), "c1": r.waits("c1"), "a2": r.waits("a2")}
		want := map[string][2]time.Duration{"a1": {}, "b1": {}, "c1": {time.Second, 0}, "a2": {0, 4 * time.Second}}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("queue and session wait (-want +got):\n%s", diff)
		}
	})
}

func TestGate_WaitIsSplitBetweenSessionAndPool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := small(1, 100, time.Hour)
		c.Session = SessionConfig{Running: 1, Waiting: 10}
		g := newGate(t, c)
		r := newRecorder(t, g)
		r.enter(t.Context(), DefaultPool, "a", "a1", 2*time.Second)
		r.enter(t.Context(), DefaultPool, "a", "a2", time.Second)
		r.enter(t.Context(), DefaultPool, "b", "b1", 3*time.Second)
		time.Sleep(time.Minute)
		r.want("a1", "b1", "a2")
		if w := r.waits("a2"); w != [2]time.Duration{3 * time.Second, 2 * time.Second} {
			t.Errorf("waited %v for pool and session, want 3s and 2s", w)
		}
	})
}

func TestGate_SessionQueueRejectsTheOneTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, ServiceNow())
		r := newRecorder(t, g)
		for i := range 11 { // one runs, ten wait
			r.enter(t.Context(), APIPool, "page", fmt.Sprint(i), time.Second)
		}
		e := mustReject(t, g, DefaultPool, "page", LimitSessionQueue) // the limit spans the pools
		want := &RejectedError{
			Pool: DefaultPool, Session: "page", Limit: LimitSessionQueue, Running: 1, Slots: 1, Waiting: 10, Queue: 10,
			RetryAfter: time.Second, Setting: "gate.session.waiting",
		}
		if diff := gocmp.Diff(want, e); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		if got, want := e.Error(), `pool "default": this session has 1 running, 10 of 10 waiting; see gate.session.waiting`; got != want {
			t.Errorf("text\n got %s\nwant %s", got, want)
		}
		mustEnter(t, g, APIPool, "other").Release()
		time.Sleep(time.Minute)
		r.want("0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
	})
}

func TestGate_SessionLimitSpansPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, ServiceNow())
		r := newRecorder(t, g)
		r.enter(t.Context(), APIPool, "a", "api1", time.Second)
		r.enter(t.Context(), DefaultPool, "a", "batch", time.Second)
		r.enter(t.Context(), APIPool, "a", "api2", time.Second)
		r.want("api1")
		time.Sleep(time.Minute)
		r.want("api1", "batch", "api2")
	})
}

func TestGate_WorkWithoutSessionHasNoSessionLimits(t *testing.T) {
	g := newGate(t, ServiceNow())
	for range 8 {
		defer mustEnter(t, g, JobsPool, "").Release()
	}
}

func TestGate_WaitLimitRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, small(1, 5, 3*time.Second))
		s := mustEnter(t, g, DefaultPool, "a")
		start := time.Now()
		e := mustReject(t, g, DefaultPool, "b", LimitWait)
		if d := time.Since(start); d != 3*time.Second || e.Waited != d {
			t.Errorf("rejected after %v, the error says %v; want 3s", d, e.Waited)
		}
		if got, want := e.Error(), `pool "default": no slot within 3s, 1 of 1 slots busy, 0 of 5 waiting; see gate.pools.default.wait`; got != want {
			t.Errorf("text\n got %s\nwant %s", got, want)
		}
		s.Release()
		mustEnter(t, g, DefaultPool, "b").Release()
	})
}

func TestGate_ClientThatGoesAwayLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, small(1, 1, time.Hour))
		s := mustEnter(t, g, DefaultPool, "a")
		ctx, cancel := context.WithCancelCause(t.Context())
		hungUp := errors.New("client hung up")
		r := newRecorder(t, g)
		r.enter(ctx, DefaultPool, "b", "b", 0)
		mustReject(t, g, DefaultPool, "c", LimitPoolQueue)
		cancel(hungUp)
		synctest.Wait()
		if len(r.errs) != 1 || !errors.Is(r.errs[0], hungUp) {
			t.Fatalf("got %v, want the cause", r.errs)
		}
		if st := poolStats(t, g, DefaultPool); st.Waiting != 0 || st.Left != 1 {
			t.Errorf("stats %+v", st)
		}
		r.errs = nil
		r.enter(t.Context(), DefaultPool, "c", "c", time.Second) // the place is free
		s.Release()
		synctest.Wait()
		r.want("c")
		time.Sleep(time.Minute)
		if n := g.Stats().Sessions; n != 0 {
			t.Errorf("%d sessions are kept though nobody is here", n)
		}
	})
}

func TestGate_EndedContextGetsNoSlot(t *testing.T) {
	g := newGate(t, small(1, 1, time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s, err := g.Enter(ctx, DefaultPool, "a"); s != nil || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, %v", s, err)
	}
}

func TestSlot_ReleaseCountsOnce(t *testing.T) {
	g := newGate(t, small(2, 0, time.Hour))
	a, b := mustEnter(t, g, DefaultPool, "a"), mustEnter(t, g, DefaultPool, "b")
	a.Release()
	a.Release()
	(*Slot)(nil).Release()
	if n := poolStats(t, g, DefaultPool).InUse; n != 1 {
		t.Fatalf("%d in use, want 1", n)
	}
	b.Release()
}

func TestGate_ReconfigureLosesNoWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := small(3, 10, time.Hour)
		g := newGate(t, c)
		r := newRecorder(t, g)
		for i := range 8 {
			r.enter(t.Context(), DefaultPool, "", fmt.Sprint(i), 10*time.Second)
		}
		r.want("0", "1", "2")

		c = small(1, 1, time.Hour) // below what runs and waits
		if err := g.Reconfigure(c); err != nil {
			t.Fatal(err)
		}
		st := poolStats(t, g, DefaultPool)
		if st.InUse != 3 || st.Waiting != 5 || st.Slots != 1 || st.Queue != 1 {
			t.Fatalf("stats %+v", st)
		}
		mustReject(t, g, DefaultPool, "", LimitPoolQueue)
		time.Sleep(11 * time.Second)
		r.want("0", "1", "2", "3") // three went, one slot is left

		c = small(3, 10, time.Hour) // growing lets waiters in at once
		if err := g.Reconfigure(c); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.want("0", "1", "2", "3", "4", "5")
		time.Sleep(time.Minute)
		r.want("0", "1", "2", "3", "4", "5", "6", "7")
	})
}

func TestGate_ReconfigureRaisesSessionLimitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := small(3, 10, time.Hour)
		c.Session = SessionConfig{Running: 1, Waiting: 10}
		g := newGate(t, c)
		r := newRecorder(t, g)
		for _, n := range []string{"1", "2", "3"} {
			r.enter(t.Context(), DefaultPool, "a", n, time.Minute)
		}
		r.want("1")
		time.Sleep(time.Second)
		c.Session.Running = 2
		if err := g.Reconfigure(c); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.want("1", "2")
		if w := r.waits("2"); w != [2]time.Duration{0, time.Second} {
			t.Errorf("waited %v for pool and session, want 0s and 1s", w)
		}
		time.Sleep(time.Hour)
		r.want("1", "2", "3")
	})
}

func TestGate_RemovedPoolServesItsLineAndTakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, ServiceNow())
		r := newRecorder(t, g)
		for i := range 6 {
			r.enter(t.Context(), APIPool, fmt.Sprint("s", i), fmt.Sprint(i), time.Second)
		}
		if err := g.Reconfigure(small(1, 1, time.Hour)); err != nil {
			t.Fatal(err)
		}
		if got := g.Route(RequestInfo{Path: "/api/now/table/incident"}); got != DefaultPool {
			t.Errorf("routed to %q", got)
		}
		e := mustReject(t, g, APIPool, "late", LimitPoolClosed)
		if got, want := e.Error(), `pool "api_int": closed; see gate.pools.api_int`; got != want || e.RetryAfter != 0 {
			t.Errorf("text %s, want %s; Retry-After %v", got, want, e.RetryAfter)
		}
		time.Sleep(time.Minute)
		r.want("0", "1", "2", "3", "4", "5")
		if n := len(g.Stats().Pools); n != 1 {
			t.Errorf("%d pools, want the default only", n)
		}
		mustReject(t, g, APIPool, "late", LimitPoolClosed)
		if n := g.Stats().NoPool; n != 1 {
			t.Errorf("%d rejections without a pool, want 1", n)
		}
	})
}

func TestGate_DrainFinishesWhatItAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, small(1, 5, time.Hour))
		r := newRecorder(t, g)
		for i := range 3 {
			r.enter(t.Context(), DefaultPool, "", fmt.Sprint(i), time.Second)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := g.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("drain ended with %v before the work did", err)
		}
		e := mustReject(t, g, DefaultPool, "", LimitDraining)
		if got, want := e.Error(), `pool "default": draining, 1 running and 2 waiting finish first`; got != want {
			t.Errorf("text\n got %s\nwant %s", got, want)
		}
		if err := g.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.want("0", "1", "2")
		if s := poolStats(t, g, DefaultPool); s.Served != 3 || !g.Stats().Draining {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestGate_DrainOfAnIdleGateReturnsAtOnce(t *testing.T) {
	g := newGate(t, small(1, 1, time.Hour))
	for range 2 {
		if err := g.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// checkLaw looks at the inside: counts within bounds, nothing counted twice, no waiter beside a free slot that it may have.
func checkLaw(t *testing.T, d *door) {
	d.mu.Lock()
	defer d.mu.Unlock()
	running, waits, inUse, inLine := 0, 0, 0, 0
	for name, s := range d.sessions {
		running, waits = running+s.running, waits+s.waiting
		if s.running+s.waiting == 0 {
			t.Errorf("session %q is kept for nothing", name)
		}
		n := 0
		for _, l := range s.lines {
			n += l.slots.Len()
			if l.slots.Len() == 0 {
				t.Errorf("session %q keeps an empty line", name)
			}
			if l.pool.inUse < l.pool.slots && !d.full(s) {
				t.Errorf("session %q waits in pool %q beside a free slot", name, l.pool.name)
			}
			if l.turn == nil && !d.full(s) {
				t.Errorf("session %q has lost its turn in pool %q", name, l.pool.name)
			}
		}
		if n != s.waiting {
			t.Errorf("session %q: %d in lines, %d counted", name, n, s.waiting)
		}
	}
	for _, p := range d.pools {
		inUse, inLine = inUse+p.inUse, inLine+p.waiting
	}
	if running != inUse || waits != inLine || d.busy != inUse+inLine {
		t.Errorf("sessions run %d and wait %d, pools run %d and wait %d, busy %d", running, waits, inUse, inLine, d.busy)
	}
}

func TestGate_ManySessionsKeepEveryBoundAndLoseNothing(t *testing.T) {
	const workers, rounds = 48, 250
	c := small(5, 20, 200*time.Microsecond)
	c.Pools["side"] = PoolConfig{Slots: 2, Queue: 6, Wait: time.Millisecond}
	c.Session = SessionConfig{Running: 3, Waiting: 6}
	g := newGate(t, c)
	var ok, rejected, left atomic.Uint64
	var inside [2]atomic.Int64
	names := []string{DefaultPool, "side"}
	var perSession [6]atomic.Int64

	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			for range rounds {
				pool, sess := rnd.IntN(2), rnd.IntN(len(perSession))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rnd.IntN(400))*time.Microsecond)
				s, err := g.Enter(ctx, names[pool], fmt.Sprint("s", sess))
				var r *RejectedError
				switch {
				case err == nil:
					ok.Add(1)
					if n := inside[pool].Add(1); n > int64(c.Pools[names[pool]].Slots) {
						t.Errorf("%d inside pool %q", n, names[pool])
					}
					if n := perSession[sess].Add(1); n > int64(c.Session.Running) {
						t.Errorf("session runs %d", n)
					}
					for range rnd.IntN(30) { // some work, in which others come
						runtime.Gosched()
					}
					perSession[sess].Add(-1)
					inside[pool].Add(-1)
					s.Release()
				case errors.As(err, &r):
					rejected.Add(1)
				case errors.Is(err, context.DeadlineExceeded):
					left.Add(1)
				default:
					t.Error(err)
				}
				cancel()
				checkLaw(t, &g.door)
			}
		})
	}
	wg.Wait()
	if n := ok.Load() + rejected.Load() + left.Load(); n != workers*rounds {
		t.Errorf("%d answers to %d requests", n, workers*rounds)
	}
	var served, refused uint64
	for _, p := range g.Stats().Pools {
		served += p.Served
		for _, n := range p.Rejected {
			refused += n
		}
		if p.InUse != 0 || p.Waiting != 0 || p.MaxInUse > p.Slots || p.MaxWaiting > p.Queue {
			t.Errorf("stats %+v", p)
		}
	}
	if served != ok.Load() || refused != rejected.Load() {
		t.Errorf("served %d of %d, rejected %d of %d", served, ok.Load(), refused, rejected.Load())
	}
	if ok.Load() == 0 || rejected.Load() == 0 || left.Load() == 0 {
		t.Errorf("not every way was walked: %d ok, %d rejected, %d left", ok.Load(), rejected.Load(), left.Load())
	}
	if n := g.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions left behind", n)
	}
}

func TestGate_ReconfigureUnderLoadKeepsTheLaw(t *testing.T) {
	g := newGate(t, ServiceNow())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 24 {
		wg.Go(func() {
			for range 300 {
				pool := g.Route(RequestInfo{Path: "/api/now/table/incident", Batch: w%3 == 0})
				if s, err := g.Enter(t.Context(), pool, fmt.Sprint("s", w%5)); err == nil {
					s.Release()
				} else if !errors.As(err, new(*RejectedError)) {
					t.Error(err)
				}
			}
		})
	}
	changes := make(chan int)
	go func() {
		defer close(changes)
		rnd := rand.New(rand.NewPCG(7, 7))
		for ctx.Err() == nil {
			c := ServiceNow()
			if rnd.IntN(3) == 0 {
				c = small(1+rnd.IntN(20), rnd.IntN(10), time.Minute)
			}
			c.Session.Running = rnd.IntN(4)
			if err := g.Reconfigure(c); err != nil {
				t.Error(err)
			}
			checkLaw(t, &g.door)
		}
	}()
	wg.Wait()
	cancel()
	<-changes
	checkLaw(t, &g.door)
	if err := g.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPermits_TakeTurnsAndNameTheirSetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := small(1, 1, time.Hour)
		c.Permits.Scripts = PoolConfig{Slots: 1, Queue: 1, Wait: time.Hour}
		g := newGate(t, c)
		s, err := g.Scripts.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() {
			s, err := g.Scripts.Acquire(t.Context(), "b")
			s.Release()
			got <- err
		}()
		synctest.Wait()
		_, err = g.Scripts.Acquire(t.Context(), "c")
		if want := `pool "scripts": 1 slots busy, 1 of 1 waiting; see gate.permits.scripts.queue`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		s.Release()
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if st := g.Scripts.Stats(); st.Served != 2 || st.InUse != 0 {
			t.Errorf("stats %+v", st)
		}
	})
}

func TestGate_UncontendedEntryAllocatesLittle(t *testing.T) {
	g := newGate(t, small(4, 4, time.Hour))
	ctx := t.Context()
	n := testing.AllocsPerRun(1000, func() {
		s, err := g.Enter(ctx, DefaultPool, "a")
		if err != nil {
			t.Fatal(err)
		}
		s.Release()
	})
	if n > 2 { // the slot and the session
		t.Errorf("%v allocations, want 2 at most", n)
	}
}

func BenchmarkGate_Uncontended(b *testing.B) {
	g := newGate(b, small(4, 4, time.Hour))
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		s, err := g.Enter(ctx, DefaultPool, "a")
		if err != nil {
			b.Fatal(err)
		}
		s.Release()
	}
}
