package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/telemetry"
)

// coalescible reports whether an op, alone in its unit, may share a statement with those of other requests.
func coalescible(op *record.Op) bool {
	if !op.Verb.Writes() || op.Group != 0 || slices.ContainsFunc(op.Key, isRef) {
		return false
	}
	// What names other ops of its unit means nothing in another unit.
	refs := func(a record.Assign) bool { return isRef(a.Value) }
	return !slices.ContainsFunc(op.Set, refs) && !slices.ContainsFunc(op.New, refs) &&
		!slices.ContainsFunc(op.If, func(c record.Condition) bool { return c.Field == "" || slices.ContainsFunc(c.Values, isRef) })
}

func isRef(v record.Value) bool { return v.Form == record.Ref }

// gatherer joins single writes that arrive at the same time into one unit: while one is under way the next gathers, so a
// flood of single calls costs the database what a batch would. An idle engine adds no wait: the first write runs at once,
// in its own goroutine.
type gatherer struct {
	e     *Engine
	mu    sync.Mutex
	lines map[lineKey]*line
}

// lineKey is what writes must have in common to share a set. Who acts is per op.
type lineKey struct {
	version uint64
	snap    *catalog.Snapshot
	table   string
	verb    record.Verb
}

// line is the writes of one kind: how many units of them are under way, and what gathers meanwhile.
type line struct {
	flights int
	waiting []*single
}

// single is one write that waits for its outcome.
type single struct {
	u   *record.Unit
	out record.Outcome
	// done is closed when out is there. claimed says that its unit has begun, so that its outcome must be waited for.
	done    chan struct{}
	claimed bool
	alone   bool // set before done is closed: it got no outcome in company, and its own request runs it
	since   time.Time
}

func (g *gatherer) do(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	key := lineKey{snap.Version, snap, u.Ops[0].Table, u.Ops[0].Verb}
	g.mu.Lock()
	l := g.lines[key]
	if l == nil {
		if g.lines == nil {
			g.lines = map[lineKey]*line{}
		}
		l = &line{}
		g.lines[key] = l
	}
	if l.flights < g.e.opt.CoalesceFlights {
		l.flights++
		g.mu.Unlock()
		defer g.land(key, l)
		return g.e.execute(ctx, snap, u)[0]
	}
	s := &single{u: u, done: make(chan struct{}), since: time.Now()}
	l.waiting = append(l.waiting, s)
	g.mu.Unlock()
	return g.wait(ctx, snap, l, s)
}

// wait is for the outcome of s. A caller that goes away before its unit has begun takes its write with it.
func (g *gatherer) wait(ctx context.Context, snap *catalog.Snapshot, l *line, s *single) record.Outcome {
	defer telemetry.From(ctx).Enter(telemetry.App)()
	var expired <-chan time.Time
	if s.u.Budget > 0 {
		timer := time.NewTimer(s.u.Budget)
		defer timer.Stop()
		expired = timer.C
	}
	var err *record.Error
	select {
	case <-s.done:
		return g.landed(ctx, snap, s)
	case <-ctx.Done():
		err = record.Errorf(record.Canceled, "", "the caller went away").Because(ctx.Err())
	case <-expired:
		err = record.Errorf(record.Timeout, "", "not begun within the %s allowed for the request", s.u.Budget)
	}
	g.mu.Lock()
	if s.claimed {
		g.mu.Unlock()
		<-s.done // it is being written: the answer must be true
		return g.landed(ctx, snap, s)
	}
	for i, o := range l.waiting {
		if o == s {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			break
		}
	}
	g.mu.Unlock()
	return record.Outcome{Err: err, Unserviced: true, Total: -1}
}

// landed is the outcome of a write whose unit has run.
func (g *gatherer) landed(ctx context.Context, snap *catalog.Snapshot, s *single) record.Outcome {
	if s.alone {
		return g.e.execute(ctx, snap, s.u)[0]
	}
	telemetry.From(ctx).Statement(s.out.Stat.SQL)
	return s.out
}

// land ends a unit of the line and starts the next one with what has gathered.
func (g *gatherer) land(key lineKey, l *line) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(l.waiting), g.e.opt.CoalesceMax)
	if n == 0 {
		l.flights--
		if l.flights == 0 {
			delete(g.lines, key)
		}
		return
	}
	batch := make([]*single, n)
	copy(batch, l.waiting)
	l.waiting = append(l.waiting[:0:0], l.waiting[n:]...)
	for _, s := range batch {
		s.claimed = true
	}
	g.e.background.Go(func() {
		defer g.land(key, l)
		g.fly(key, batch)
	})
}

// fly executes gathered writes as one unit. It belongs to no single request: none of their contexts ends it.
func (g *gatherer) fly(key lineKey, batch []*single) {
	u := &record.Unit{Version: key.version, Ops: make([]record.Op, len(batch)), Actors: make([]record.Actor, len(batch))}
	for i, s := range batch {
		u.Ops[i] = s.u.Ops[0]
		u.Actors[i] = s.u.Actors[u.Ops[i].Actor]
		u.Ops[i].Actor = i
	}
	ctx := context.Background()
	if key.verb != record.Insert && len(batch) > 1 {
		// Updates and deletes may wait for the locks of others; all together only for a short time.
		short, cancel := context.WithTimeout(ctx, g.e.opt.CoalesceWait)
		defer cancel()
		ctx = short
	}
	if len(batch) > 1 {
		g.e.count.coalesced.Add(int64(len(batch)))
		g.e.count.gathered.Add(1)
	}
	began := time.Now()
	out, lost := g.e.guarded(ctx, key.snap, u)
	for i, s := range batch {
		// Out of time together, with nothing committed: each may try alone.
		s.alone = ctx.Err() != nil && !lost && out[i].Err != nil && !isRowFault(out[i].Err.Kind)
		waited := began.Sub(s.since) // its own unit began when it arrived
		out[i].Stat.Start += waited
		out[i].Stat.End += waited
		s.out = out[i]
		close(s.done)
	}
}

// guarded is execute for goroutines that have no door behind them which would catch a panic. lost says that a commit
// failed, so that nobody knows what is stored.
func (e *Engine) guarded(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) (out []record.Outcome, lost bool) {
	defer func() {
		if p := recover(); p != nil {
			out, lost = everywhere(len(u.Ops), panicked(p)), true
		}
	}()
	x := e.begin(ctx, snap, u)
	x.run(ctx)
	return x.out, slices.ContainsFunc(x.tasks, func(t task) bool { return t.lost })
}
