package engine

import (
	"context"
	"errors"
	"time"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// errShort says that rules derived more numbered records than numbers were drawn for. Numbers cannot be drawn inside a
// transaction (SQLite has one writer), so the writes start again with more.
var errShort = errors.New("more numbers are needed")

// write runs the writes of atoms, and the reads that must see them, in one transaction.
func (x *unit) write(ctx context.Context, atoms []*atom) {
	if x.fails(atoms) {
		return
	}
	for tries := 0; ; {
		if err := x.drawNumbers(ctx, atoms); err != nil {
			x.failAll(atoms, record.AsError(err))
			return
		}
		err := x.transaction(ctx, atoms)
		switch {
		case err == nil:
			return
		case errors.Is(err, errShort):
			x.e.count.redrawn.Add(1)
			continue
		case err.again && tries < x.e.opt.Retries && ctx.Err() == nil:
			// A deadlock or a serialization failure. Nobody has been told anything yet.
			tries++
			x.e.count.retries.Add(1)
			continue
		case err.err.Kind == record.Internal && len(atoms) > 1 && !err.committing:
			// The database has given up the transaction for a reason we do not know; it need not be everybody's.
			x.write(ctx, atoms[:len(atoms)/2])
			if x.stopOnError() && x.anyFailed(atoms[:len(atoms)/2]) {
				return
			}
			x.write(ctx, atoms[len(atoms)/2:])
			return
		}
		x.spare.rewind(0)
		x.failAll(atoms, err.err)
		return
	}
}

// fails settles atoms that need no transaction to fail: a single op that prepare refused.
func (x *unit) fails(atoms []*atom) bool {
	if len(atoms) != 1 || len(atoms[0].tasks) != 1 {
		return false
	}
	t := atoms[0].tasks[0]
	if err := x.ready(t); err != nil {
		x.settle(t, err)
		return true
	}
	return false
}

func (x *unit) failAll(atoms []*atom, err *record.Error) {
	for _, a := range atoms {
		for _, t := range a.tasks {
			x.settle(t, err)
		}
	}
}

func (x *unit) anyFailed(atoms []*atom) bool {
	for _, a := range atoms {
		for _, t := range a.tasks {
			if t.done && t.out.Err != nil {
				return true
			}
		}
	}
	return false
}

// aborted is the end of a transaction that cannot go on.
type aborted struct {
	err        *record.Error
	cause      error
	again      bool // worth trying again
	committing bool // it may have been committed
}

func (a *aborted) Error() string        { return a.err.Error() }
func (a *aborted) Is(target error) bool { return a.cause == target }

// writer is one transaction under way. It belongs to one goroutine.
type writer struct {
	x      *unit
	tx     store.Tx
	atoms  []*atom // of the run at hand
	fault  bool    // the run at hand must be undone
	apart  bool    // ops run one by one, to see which op of a failing group is the first to fail
	wrote  bool    // there is something to commit
	splits int
	held   map[belonging]*pending // of the set at hand: records that others belong to, as stored
}

func (x *unit) transaction(ctx context.Context, atoms []*atom) *aborted {
	w := &writer{x: x}
	defer func() {
		if w.tx != nil {
			w.tx.Rollback()
		}
	}()
	x.spare.rewind(0)
	err := w.begin(ctx)
	if err != nil {
		return &aborted{err: record.AsError(err)}
	}
	if !*x.e.opt.Fuse {
		w.splits = x.e.opt.Splits
		w.fault = true
	} else {
		err = w.run(ctx, atoms)
	}
	if err == nil && w.fault {
		// Nothing is worth keeping: starting again costs less than a savepoint in every unit that goes well.
		w.tx.Rollback()
		w.tx, w.wrote = nil, false
		if *x.e.opt.Fuse && len(atoms) == 1 && len(atoms[0].tasks) == 1 {
			return nil
		}
		x.spare.rewind(0)
		if err := w.begin(ctx); err != nil {
			return &aborted{err: record.AsError(err)}
		}
		err = w.halve(ctx, atoms)
	}
	if err != nil {
		return w.abort(ctx, err)
	}
	if !w.wrote {
		return nil
	}
	defer x.rec.Enter(telemetry.App)()
	// From here on the caller's going away changes nothing: what is in the transaction is committed, so that the outcomes
	// are true.
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	if err := w.tx.Commit(done); err != nil {
		for _, a := range atoms {
			for _, t := range a.tasks {
				t.lost = true
			}
		}
		x.spare.keep()
		return &aborted{err: record.AsError(err), cause: err, committing: true}
	}
	x.spare.keep()
	return nil
}

// commitTime bounds a commit.
const commitTime = 30 * time.Second

func (w *writer) begin(ctx context.Context) error {
	defer w.x.rec.Enter(telemetry.App)()
	tx, err := w.x.e.store.Begin(ctx)
	w.tx = tx
	return err
}

func (w *writer) abort(ctx context.Context, err error) *aborted {
	e := record.AsError(err)
	if ctx.Err() != nil && e.Kind == record.Internal {
		e = record.Errorf(record.Canceled, "", "the caller went away").Because(err)
	}
	return &aborted{err: e, cause: err, again: e.Kind == record.Unavailable}
}

// run executes atoms together. An error ends the transaction; fault says that the run must be undone.
func (w *writer) run(ctx context.Context, atoms []*atom) error {
	w.reset(atoms)
	end := w.x.rec.Enter(telemetry.BE)
	waves := [][]*set{{{verb: atoms[0].tasks[0].op.Verb, tasks: atoms[0].tasks}}}
	switch {
	case w.apart:
		waves = waves[:0]
		for i, t := range atoms[0].tasks {
			waves = append(waves, []*set{{verb: t.op.Verb, tasks: atoms[0].tasks[i : i+1]}})
		}
	case len(atoms) > 1 || len(atoms[0].tasks) > 1:
		waves = plan(atoms)
	}
	end()
	for _, wave := range waves {
		for _, s := range wave {
			if err := w.set(ctx, s); err != nil {
				return err
			}
			if w.fault {
				w.unfinished()
				return nil
			}
		}
	}
	return nil
}

func (w *writer) reset(atoms []*atom) {
	w.atoms, w.fault = atoms, false
	for _, a := range atoms {
		a.begun, a.guilty = false, nil
		for _, t := range a.tasks {
			stat := t.out.Stat
			*t.out = record.Outcome{Total: -1, Stat: stat}
			t.dirty, t.done, t.row, t.stored = false, false, nil, false
		}
	}
}

// unfinished says of the other ops of a single failed atom that they came to nothing.
func (w *writer) unfinished() {
	if len(w.atoms) != 1 {
		return
	}
	a := w.atoms[0]
	var guilty *task
	for _, t := range a.tasks {
		if t.done && t.out.Err != nil {
			guilty, a.guilty = t, t
			break
		}
	}
	for _, t := range a.tasks {
		if guilty != nil && t != guilty {
			w.x.settle(t, groupFailed(guilty))
		}
	}
}

// fail gives a task its error. A clean failure concerns nobody else; after a write, or in a group, all that the run did
// must be undone.
func (w *writer) fail(t *task, err *record.Error) {
	dirty := t.dirty
	for t.parent != nil {
		t = t.parent
		dirty = true
	}
	if t.done && t.out.Err != nil {
		return
	}
	w.x.settle(t, err)
	last := t.atom == w.atoms[len(w.atoms)-1]
	w.fault = w.fault || dirty || t.dirty || len(t.atom.tasks) > 1 || w.x.stopOnError() && !last
}

// set executes one set.
func (w *writer) set(ctx context.Context, s *set) error {
	x := w.x
	tasks := make([]*task, 0, len(s.tasks))
	overdue := x.overdue()
	for _, t := range s.tasks {
		switch {
		case t.done:
		case overdue && !t.atom.begun:
			for _, o := range t.atom.tasks {
				x.settle(o, x.timeout())
				o.out.Unserviced = true
			}
		default:
			t.atom.begun = true
			if err := x.ready(t); err != nil {
				w.fail(t, err)
			} else {
				tasks = append(tasks, t)
			}
		}
	}
	if len(tasks) == 0 || w.fault {
		return nil
	}
	clear(w.held)
	defer x.rec.Enter(telemetry.App)()
	switch s.verb {
	case record.Get:
		for len(tasks) > 0 {
			same, rest := tasks[:0:0], tasks[:0:0]
			for _, t := range tasks {
				if t == tasks[0] || t.reads(tasks[0]) {
					same = append(same, t)
				} else {
					rest = append(rest, t)
				}
			}
			x.get(ctx, w.tx, same)
			if err := w.readFaults(same); err != nil {
				return err
			}
			tasks = rest
		}
		return nil
	case record.List, record.Aggregate:
		x.query(ctx, w.tx, tasks)
		return w.readFaults(tasks)
	}
	start := time.Now()
	tasks, err := w.repeats(ctx, tasks)
	if err != nil || len(tasks) == 0 {
		return err
	}
	if err := w.writes(ctx, s.verb, tasks); err != nil {
		// A fault of the whole statement: one of several is guilty, and who it is shows when they run apart.
		e := record.AsError(err)
		if e == nil || !isRowFault(e.Kind) || errors.Is(err, errShort) {
			return err
		}
		w.fault = true
		for _, t := range tasks {
			if !t.done {
				w.fail(t, e)
				break
			}
		}
		if len(w.atoms) > 1 {
			return nil
		}
	}
	x.measure(tasks, start, time.Since(start), 1)
	if w.fault {
		return nil
	}
	for _, t := range tasks {
		if !t.done {
			x.settle(t, nil)
		}
	}
	return w.claim(ctx, tasks)
}

// readFaults is what failed reads mean for the run.
func (w *writer) readFaults(tasks []*task) error {
	for _, t := range tasks {
		err := t.out.Err
		if err == nil {
			continue
		}
		if !isRowFault(err.Kind) {
			return err
		}
		t.done = false
		w.fail(t, err)
	}
	return nil
}

// isRowFault reports whether an error concerns the records at hand, so that the transaction can go on from its mark.
func isRowFault(k record.Kind) bool {
	switch k {
	case record.Internal, record.Timeout, record.Canceled, record.Unavailable:
		return false
	}
	return true
}

func (w *writer) writes(ctx context.Context, verb record.Verb, tasks []*task) error {
	switch verb {
	case record.Insert:
		return w.insert(ctx, tasks)
	case record.Update:
		return w.update(ctx, tasks)
	case record.Upsert:
		return w.upsert(ctx, tasks)
	}
	return w.remove(ctx, tasks)
}
