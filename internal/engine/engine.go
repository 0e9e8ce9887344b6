package engine

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// Invoker runs scripted endpoints for the engine.
type Invoker interface {
	Invoke(ctx context.Context, snap *catalog.Snapshot, actor *record.Actor, call *record.Invocation) ([]byte, *record.Error)
}

// SQLRunner runs SQL endpoints for the engine.
type SQLRunner interface {
	// RunSQL runs the endpoint for actor. With stream the rows of a query are a cursor that the caller closes, else they are
	// held in memory, within limit bytes.
	RunSQL(ctx context.Context, snap *catalog.Snapshot, actor *record.Actor, call *record.Invocation, stream bool, limit int64) (*record.Rows, *record.SQLOutcome, *record.Error)
}

// slowWatcher is a [SQLRunner] that wants to know how long the database worked on a call, when all of its rows are read.
type slowWatcher interface {
	Took(ctx context.Context, snap *catalog.Snapshot, call *record.Invocation, took time.Duration)
}

// Executor is what runs units: an [Engine], or something that passes them on to one.
type Executor interface {
	Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome
	Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome
}

// Engine executes units on one store. It is safe for concurrent use.
type Engine struct {
	store   store.Store
	opt     Options
	models  models
	numbers numbers
	gather  gatherer
	trim    trimmer
	count   counters

	background sync.WaitGroup
}

// New is an engine on s. Options are completed by their defaults; the error lists what is wrong with them.
func New(s store.Store, opt Options) (*Engine, error) {
	opt.Defaults()
	if opt.CoalesceFlights == 0 {
		opt.CoalesceFlights = 3
		if s.Name() == "sqlite" {
			opt.CoalesceFlights = 1
		}
	}
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{store: s, opt: opt}
	e.numbers.store = s
	e.gather.e = e
	return e, nil
}

// Close waits until nothing of the engine runs any more. It does not close the store.
func (e *Engine) Close() error {
	e.background.Wait()
	return nil
}

// Execute runs the unit and returns one outcome for each op. Faults of the whole unit are in every outcome.
func (e *Engine) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	if len(u.Ops) == 1 && u.Ops[0].Verb == record.Load {
		return []record.Outcome{e.load(ctx, snap, u)}
	}
	if len(u.Ops) == 1 && *e.opt.Coalesce && coalescible(&u.Ops[0]) && u.Ops[0].Actor >= 0 && u.Ops[0].Actor < len(u.Actors) {
		return []record.Outcome{e.gather.do(ctx, snap, u)}
	}
	return e.execute(ctx, snap, u)
}

func (e *Engine) execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	if len(u.Ops) > e.opt.MaxOps {
		return everywhere(len(u.Ops), record.Errorf(record.TooLarge, "",
			"%d operations are more than the %d allowed in one request; see engine.max_ops", len(u.Ops), e.opt.MaxOps))
	}
	x := e.begin(ctx, snap, u)
	if x.alone && !u.Ops[0].Verb.Writes() {
		x.readAlone(ctx)
	} else {
		x.run(ctx)
	}
	return x.out
}

// readAlone runs a unit of one read or invocation, which needs no plan.
func (x *unit) readAlone(ctx context.Context) {
	t := &x.tasks[0]
	if err := x.ready(t); err != nil {
		x.settle(t, err)
		return
	}
	defer x.rec.Enter(telemetry.App)()
	x.solo.list[0] = t
	switch t.op.Verb {
	case record.Get:
		x.get(ctx, x.e.store, x.solo.list[:])
	case record.Invoke:
		x.invoke(ctx, t)
	default:
		x.query(ctx, x.e.store, x.solo.list[:])
	}
}

// Stream runs a unit of one list, or of one invocation of a SQL endpoint. The outcome of a read holds a streaming Rows that the
// caller closes.
func (e *Engine) Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	if len(u.Ops) != 1 || u.Ops[0].Verb != record.List && (u.Ops[0].Verb != record.Invoke || u.Ops[0].Invoke == nil || u.Ops[0].Invoke.SQL == nil) {
		return record.Outcome{Err: record.Errorf(record.Invalid, "", "only a unit of one list or of one SQL endpoint streams"), Total: -1}
	}
	x := e.begin(ctx, snap, u)
	t := &x.tasks[0]
	if err := x.ready(t); err != nil {
		x.settle(t, err)
		return x.out[0]
	}
	defer x.rec.Enter(telemetry.App)()
	if t.op.Verb == record.Invoke {
		x.runSQL(ctx, t, true)
		return x.out[0]
	}
	e.count.set(1)
	if err := x.list(ctx, e.store, t, true); err != nil {
		x.settle(t, err)
	}
	x.out[0].Rows = x.stream(x.out[0].Rows, nil)
	return x.out[0]
}

func everywhere(n int, err *record.Error) []record.Outcome {
	out := make([]record.Outcome, n)
	for i := range out {
		out[i] = record.Outcome{Err: err, Unserviced: true, Total: -1}
	}
	return out
}

// unit is one unit under way.
type unit struct {
	e     *Engine
	snap  *catalog.Snapshot
	m     *model
	u     *record.Unit
	rec   *telemetry.Recorder
	now   time.Time // what is written, in whole seconds
	began time.Time
	fine  time.Time // now with its fraction of a second
	who   []*who
	tasks []task
	atoms []*atom
	out   []record.Outcome
	wants map[int][]string // fields that Refs ask of ops
	token map[string]int
	room  atomic.Int64 // bytes that results may still take
	sets  atomic.Int64 // how many were executed
	spare spares

	stopped int  // the op at which the unit stopped, -1: none
	alone   bool // one op: nothing to order

	// What a unit of one op needs, in one piece: reads by key are so short that allocations show.
	solo struct {
		task [1]task
		list [1]*task
		who  who
		whos [1]*who
	}
}

// begin prepares a unit.
func (e *Engine) begin(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) *unit {
	n := len(u.Ops)
	e.count.units.Add(1)
	x := &unit{
		e: e, snap: snap, m: e.models.of(snap), u: u, rec: telemetry.From(ctx), fine: e.opt.Now().UTC(),
		began: time.Now(), out: make([]record.Outcome, n), stopped: -1, alone: n == 1,
	}
	x.now = x.fine.Truncate(time.Second)
	defer x.rec.Enter(telemetry.BE)()
	x.room.Store(e.opt.MaxResult)
	if x.alone && len(u.Actors) == 1 {
		x.tasks, x.who = x.solo.task[:], x.solo.whos[:]
		x.solo.who.init(x.m, &u.Actors[0])
		x.who[0] = &x.solo.who
	} else {
		x.tasks, x.who = make([]task, n), make([]*who, len(u.Actors))
		for i := range u.Actors {
			x.who[i] = newWho(x.m, &u.Actors[i])
		}
	}
	for i := range u.Ops {
		if i%64 == 63 {
			runtime.Gosched() // a large unit lets waiting requests go first
		}
		t := &x.tasks[i]
		t.i, t.out = i, &x.out[i]
		t.out.Total = -1
		x.prepare(t, &u.Ops[i])
	}
	if x.alone && !u.Ops[0].Verb.Writes() {
		return x
	}
	x.group()
	return x
}

// group makes atoms of the tasks, in the order of their first op, and checks that nothing refers to what comes later.
func (x *unit) group() {
	atoms := make([]atom, len(x.tasks))
	used := 0
	var groups map[int]*atom
	place := func(t *task) {
		var a *atom
		if g := t.op.Group; g != 0 {
			if a = groups[g]; a == nil {
				if groups == nil {
					groups = map[int]*atom{}
				}
				a = &atoms[used]
				groups[g] = a
			}
		} else {
			a = &atoms[used]
		}
		if len(a.tasks) == 0 {
			used++
			x.atoms = append(x.atoms, a)
			a.pos = used
		}
		a.tasks = append(a.tasks, t)
		t.atom = a
	}
	for i := range x.tasks {
		place(&x.tasks[i])
	}
	for i := range x.tasks {
		t := &x.tasks[i]
		for _, d := range t.deps {
			o := &x.tasks[d]
			if o.atom.pos > t.atom.pos || o.atom == t.atom && o.i > t.i {
				t.fault(record.Errorf(record.Invalid, "", "op %d refers to op %d, which comes later", t.i, d))
				t.deps = nil
				break
			}
		}
	}
}

// run executes all stages.
func (x *unit) run(ctx context.Context) {
	defer x.e.numbers.giveBack(x)
	for _, stage := range x.stages() {
		if x.stopped >= 0 {
			break
		}
		x.stage(ctx, stage)
	}
	for i := range x.tasks {
		if t := &x.tasks[i]; !t.done {
			x.skip(t)
		}
	}
}

// skip is for what is not run because the unit stopped before it.
func (x *unit) skip(t *task) {
	x.settle(t, record.Errorf(record.Dependency, strconv.Itoa(max(x.stopped, 0)), "not run, since an operation before it failed"))
	t.out.Unserviced = true
}

// stages cuts the atoms where invocations must not be run beside the rest: a script sees what is committed, so in an
// ordered unit, or when it depends on a write, everything before it is committed first.
func (x *unit) stages() [][]*atom {
	cut := false
	for i := range x.tasks {
		t := &x.tasks[i]
		if t.op.Verb != record.Invoke {
			continue
		}
		cut = cut || x.u.Ordered && len(x.tasks) > 1
		for _, d := range t.deps {
			cut = cut || x.tasks[d].op.Verb != record.Invoke
		}
	}
	if !cut {
		return [][]*atom{x.atoms}
	}
	var list [][]*atom
	from := 0
	for i, a := range x.atoms {
		if a.tasks[0].op.Verb == record.Invoke {
			if i > from {
				list = append(list, x.atoms[from:i])
			}
			list = append(list, x.atoms[i:i+1])
			from = i + 1
		}
	}
	if from < len(x.atoms) {
		list = append(list, x.atoms[from:])
	}
	return list
}

func (x *unit) stage(ctx context.Context, atoms []*atom) {
	levels, rest := x.early(atoms)
	for _, tasks := range levels {
		x.reads(ctx, tasks)
	}
	if x.stopOnError() {
		rest = x.cutAtFirstFailure(atoms, rest)
	}
	if len(rest) > 0 {
		x.write(ctx, rest)
	}
	if x.stopOnError() {
		x.stopAfterFailure(atoms)
	}
}

func (x *unit) stopOnError() bool { return x.u.Ordered && x.u.StopOnError }

// cutAtFirstFailure leaves out the atoms after the first one that has failed already.
func (x *unit) cutAtFirstFailure(atoms, rest []*atom) []*atom {
	for _, a := range atoms {
		for _, t := range a.tasks {
			if t.done && t.out.Err != nil || t.err != nil {
				for i, r := range rest {
					if r.pos > a.pos {
						return rest[:i]
					}
				}
				return rest
			}
		}
	}
	return rest
}

// stopAfterFailure marks where the unit stopped and takes back what reads beyond that found.
func (x *unit) stopAfterFailure(atoms []*atom) {
	for i, a := range atoms {
		for _, t := range a.tasks {
			if !t.done || t.out.Err == nil || t.out.Unserviced && t.out.Err.Kind == record.Dependency {
				continue
			}
			x.stopped = t.i
			if a.guilty != nil {
				x.stopped = a.guilty.i
			}
			for _, later := range atoms[i+1:] {
				for _, t := range later.tasks {
					*t.out = record.Outcome{Total: -1}
					x.skip(t)
				}
			}
			return
		}
	}
}

// early picks the reads and invocations that no write of the stage can touch, by level: those of a level need only
// outcomes of earlier ones. The rest runs in the transaction.
func (x *unit) early(atoms []*atom) (levels [][]*task, rest []*atom) {
	written := map[int]bool{}
	level := map[int]int{}
next:
	for _, a := range atoms {
		t := a.tasks[0]
		alone := len(a.tasks) == 1 && !t.op.Verb.Writes()
		at := 0
		for _, d := range t.deps {
			if x.tasks[d].done {
				continue
			}
			l, ok := level[d]
			alone = alone && ok
			at = max(at, l+1)
		}
		for _, id := range t.foot.reads {
			alone = alone && !written[id]
		}
		if !alone {
			rest = append(rest, a)
			for _, t := range a.tasks {
				for _, id := range t.foot.writes {
					written[id] = true
				}
				for _, id := range t.foot.keeps {
					written[id] = true
				}
			}
			continue next
		}
		level[t.i] = at
		for len(levels) <= at {
			levels = append(levels, nil)
		}
		levels[at] = append(levels[at], t)
	}
	return levels, rest
}

// ready reports why a task cannot run: what it depends on, or what prepare found. It resolves Refs.
func (x *unit) ready(t *task) *record.Error {
	for _, c := range t.op.If {
		if c.Field != "" || c.Op < 0 || c.Op >= len(x.out) {
			continue
		}
		if failed := x.out[c.Op].Err != nil; failed != c.Failed {
			what := "failed"
			if c.Failed {
				what = "succeeded"
			}
			return record.Errorf(record.Dependency, strconv.Itoa(c.Op), "not run, since operation %d %s", c.Op, what)
		}
	}
	if t.err == nil && t.refs {
		return x.resolve(t)
	}
	return t.err
}

// overdue reports whether the unit's time is over.
func (x *unit) overdue() bool { return x.u.Budget > 0 && time.Since(x.began) > x.u.Budget }

func (x *unit) timeout() *record.Error {
	return record.Errorf(record.Timeout, "", "not begun within the %s allowed for the request", x.u.Budget)
}

// settle gives a task its outcome; the fields of a success are in out already.
func (x *unit) settle(t *task, err *record.Error) {
	t.done = true
	if x.rec != nil && err == nil && t.i >= 0 {
		x.rec.Rows.Add(int64(t.out.Stat.Rows))
	}
	if err != nil {
		stat := t.out.Stat
		*t.out = record.Outcome{Err: err, Total: -1, Stat: stat}
	}
}

// measure adds what running tasks together took to their statistics.
func (x *unit) measure(tasks []*task, start time.Time, sql time.Duration, statements int) {
	end, took := time.Since(x.began), time.Since(start)
	if statements > 0 {
		x.e.count.set(len(tasks))
	}
	set := int(x.sets.Add(1))
	for _, t := range tasks {
		s := &t.out.Stat
		if s.SetOps == 0 {
			s.Start = start.Sub(x.began)
		}
		s.End = end
		s.SQL += sql / time.Duration(len(tasks))
		s.SQLCount += statements
		s.SetOps, s.Set, s.SetTime = len(tasks), set, took
	}
}

// panicked is the error for a bug of ours.
func panicked(p any) *record.Error {
	return &record.Error{Kind: record.Internal, Msg: "internal error", Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
}
