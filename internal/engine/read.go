package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// querier is a store or a transaction.
type querier interface {
	Query(ctx context.Context, q *store.Read) (*store.Result, error)
}

// reads reports whether two gets can share a statement.
func (t *task) reads(o *task) bool {
	return o.op.Verb == record.Get && o.err == nil && o.t == t.t && o.who == t.who && slices.Equal(o.op.Return, t.op.Return)
}

// reads runs reads and invocations that need nothing of each other: gets of one table by one statement, identical lists
// once, everything beside each other as far as the unit's bound allows.
func (x *unit) reads(ctx context.Context, tasks []*task) {
	var jobs []func()
	var gets [][]*task
	var lists map[string][]*task
	for _, t := range tasks {
		if err := x.ready(t); err != nil {
			x.settle(t, err)
			continue
		}
		switch t.op.Verb {
		case record.Get:
			i := slices.IndexFunc(gets, func(g []*task) bool { return t.reads(g[0]) })
			if i < 0 || !*x.e.opt.Fuse {
				gets = append(gets, []*task{t})
			} else {
				gets[i] = append(gets[i], t)
			}
		case record.Invoke:
			jobs = append(jobs, func() { x.invoke(ctx, t) })
		default:
			if len(tasks) == 1 || !*x.e.opt.Fuse {
				jobs = append(jobs, func() { x.query(ctx, x.e.store, []*task{t}) })
				continue
			}
			if lists == nil {
				lists = map[string][]*task{}
			}
			key := x.readID(t)
			lists[key] = append(lists[key], t)
			if len(lists[key]) == 1 {
				jobs = append(jobs, func() { x.query(ctx, x.e.store, lists[key]) })
			}
		}
	}
	for _, g := range gets {
		jobs = append(jobs, func() { x.get(ctx, x.e.store, g) })
	}
	x.parallel(jobs)
}

// parallel runs jobs, at most so many at once as the unit allows, and waits for them.
func (x *unit) parallel(jobs []func()) {
	bound := x.u.Parallel
	if bound <= 0 {
		bound = x.e.opt.Parallel
	}
	defer x.rec.Enter(telemetry.App)()
	if len(jobs) == 1 || bound == 1 {
		for _, job := range jobs {
			job()
		}
		return
	}
	var wg sync.WaitGroup
	next := make(chan func(), len(jobs))
	for _, job := range jobs {
		next <- job
	}
	close(next)
	var failed atomic.Pointer[any]
	for range min(bound, len(jobs)) {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					failed.Store(&p)
				}
			}()
			for job := range next {
				job()
			}
		})
	}
	wg.Wait()
	if p := failed.Load(); p != nil {
		panic(*p) // in the request's own goroutine, where the door catches it
	}
}

// late settles tasks that the unit has no time left for.
func (x *unit) late(tasks []*task) bool {
	if !x.overdue() {
		return false
	}
	for _, t := range tasks {
		x.settle(t, x.timeout())
		t.out.Unserviced = true
	}
	return true
}

func (x *unit) invoke(ctx context.Context, t *task) {
	if x.late([]*task{t}) {
		return
	}
	if t.op.Invoke.SQL != nil {
		x.runSQL(ctx, t, false)
		return
	}
	start := time.Now()
	x.e.count.invocations.Add(1)
	ctx, add := telemetry.Aside(ctx) // it may run units, beside others that do
	defer add()
	result, err := x.e.opt.Invoker.Invoke(ctx, x.snap, t.who.actor, t.op.Invoke)
	t.out.Result = result
	x.measure([]*task{t}, start, 0, 0)
	x.settle(t, err)
}

// runSQL runs a SQL endpoint.
func (x *unit) runSQL(ctx context.Context, t *task, stream bool) {
	start, waited := time.Now(), x.rec.Waited()
	x.e.count.invocations.Add(1)
	call := t.op.Invoke
	rows, out, err := x.e.opt.SQL.RunSQL(ctx, x.snap, t.who.actor, call, stream, max(x.room.Load(), 1))
	took := time.Since(start)
	t.out.Rows, t.out.SQL = rows, out
	if rows != nil && !rows.Streaming() {
		x.room.Add(-rows.Size())
	}
	x.measure([]*task{t}, start, took, 1)
	var told func(time.Duration)
	if watcher, ok := x.e.opt.SQL.(slowWatcher); ok {
		took -= x.rec.Waited() - waited // for a connection, which is no fault of the statement
		told = func(more time.Duration) { watcher.Took(ctx, x.snap, call, took+more) }
	}
	if t.out.Rows = x.stream(rows, told); told != nil && (t.out.Rows == nil || !t.out.Rows.Streaming()) {
		told(0)
	}
	x.settle(t, err)
}

// get reads records by key: all tasks ask for the same fields of one table, for one actor.
func (x *unit) get(ctx context.Context, q querier, tasks []*task) {
	if x.late(tasks) {
		return
	}
	start := time.Now()
	err := x.getRows(ctx, q, tasks)
	x.measure(tasks, start, time.Since(start), 1)
	for _, t := range tasks {
		if !t.done {
			x.settle(t, err)
		}
	}
}

func (x *unit) getRows(ctx context.Context, q querier, tasks []*task) *record.Error {
	t := tasks[0]
	nk := len(t.t.Key)
	fields := t.ret.keyed
	if fields == nil {
		fields = t.t.Key
	}
	fields = fields[:len(fields):len(fields)] // others read it too
	for _, t := range tasks {
		for _, name := range x.wants[t.i] {
			if f := t.t.Field(name); f != nil && t.who.sees(f) && !slices.Contains(fields, name) {
				fields = append(fields, name)
			}
		}
		for _, c := range t.op.If {
			if f := t.t.Field(c.Field); f != nil && !slices.Contains(fields, c.Field) {
				fields = append(fields, c.Field)
			}
		}
	}
	keys := make([][]record.Value, 0, len(tasks))
	var byID map[string][]*task
	if len(tasks) == 1 {
		keys = append(keys, t.key)
	} else {
		byID = make(map[string][]*task, len(tasks))
		for _, t := range tasks {
			id := keyID(t.key)
			if byID[id] == nil {
				keys = append(keys, t.key)
			}
			byID[id] = append(byID[id], t)
		}
	}
	res, err := q.Query(ctx, &store.Read{Snapshot: x.snap, Table: t.t, Fields: fields, Keys: keys, Guard: t.who.guardFunc()})
	if err != nil {
		return record.AsError(err)
	}
	if err := x.materialise(res.Rows); err != nil {
		return err
	}
	for i := range res.Len() {
		row := res.At(i)
		found := tasks
		if byID != nil {
			found = byID[keyID(row[:nk])]
		}
		for _, t := range found {
			t.out.Key = row[:nk:nk]
			t.out.Stat.Rows = 1
			if t.op.Return != nil {
				t.out.Rows = t.ret.one(row[nk:])
			}
			if len(x.wants[t.i]) > 0 {
				t.remember(fields, row)
			}
			x.settle(t, conditionsOn(t, fields, row))
		}
	}
	for _, t := range tasks {
		if !t.done {
			x.settle(t, notFound())
		}
	}
	return nil
}

func notFound() *record.Error { return record.Errorf(record.NotFound, "", "No Record found") }

// remember keeps values for Refs.
func (t *task) remember(fields []string, row []record.Value) {
	t.rowOf = t.t
	t.row = make([]record.Value, len(t.t.Fields))
	for i, name := range fields {
		if f := t.t.Field(name); f != nil {
			t.row[f.Index] = row[i]
		}
	}
}

// conditionsOn checks the conditions of a task on the fields of its record.
func conditionsOn(t *task, fields []string, row []record.Value) *record.Error {
	for _, c := range t.conditions() {
		if c.Field == "" {
			continue
		}
		at := slices.Index(fields, c.Field)
		if at < 0 {
			return record.Errorf(record.Invalid, c.Field, "table %s has no field %.80s", t.t.Name, c.Field)
		}
		if slices.Contains(c.Values, row[at]) == c.Negate {
			return record.Errorf(record.Precondition, c.Field, "the record has changed, or is not in the state asked for")
		}
	}
	return nil
}

// one makes the result of one record: row holds src.
func (p *project) one(row []record.Value) *record.Rows {
	if !p.masked && len(row) == len(p.fields) {
		return record.Of(p.fields, p.types, row) // a column of its own for each path, in their order
	}
	return record.Of(p.fields, p.types, p.pick(make([]record.Value, 0, len(p.fields)), row))
}

func (p *project) pick(dst, row []record.Value) []record.Value {
	for _, c := range p.col {
		if c < 0 {
			dst = append(dst, record.Value{})
		} else {
			dst = append(dst, row[c])
		}
	}
	return dst
}

// query runs one list or aggregate for all tasks, which ask for the same.
func (x *unit) query(ctx context.Context, q querier, tasks []*task) {
	if x.late(tasks) {
		return
	}
	start := time.Now()
	t := tasks[0]
	var err *record.Error
	if t.op.Verb == record.Aggregate {
		err = x.aggregate(ctx, q, t)
	} else {
		err = x.list(ctx, q, t, false)
	}
	x.measure(tasks, start, time.Since(start), 1)
	x.settle(t, err)
	for _, o := range tasks[1:] {
		stat := o.out.Stat
		*o.out = *t.out
		o.out.Stat = stat
		o.out.Stat.Rows = t.out.Stat.Rows
		if t.out.Rows != nil {
			rows := *t.out.Rows // its own cursor over the same rows
			o.out.Rows = &rows
		}
		o.done = true
	}
}

func (x *unit) list(ctx context.Context, q querier, t *task, stream bool) *record.Error {
	p := t.ret
	fields := p.src
	if len(fields) == 0 {
		fields = []string{t.t.Fields[0].Name}
		if len(t.t.Key) > 0 {
			fields = t.t.Key[:1]
		}
	}
	res, err := q.Query(ctx, &store.Read{Snapshot: x.snap, Table: t.t, Fields: fields, Query: t.query(), Guard: t.who.guardFunc()})
	if err != nil {
		return record.AsError(err)
	}
	rows := res.Rows
	if p.masked {
		rows = record.StreamRows(p.fields, p.types, &masked{rows: res.Rows, p: p})
	}
	if !stream {
		if err := x.materialise(rows); err != nil {
			return err
		}
		t.out.Stat.Rows = rows.Len()
	}
	t.out.Rows, t.out.Total = rows, res.Total
	t.done = true
	return nil
}

func (x *unit) aggregate(ctx context.Context, q querier, t *task) *record.Error {
	res, err := q.Query(ctx, &store.Read{Snapshot: x.snap, Table: t.t, Query: t.query(), Guard: t.who.guardFunc()})
	if err != nil {
		return record.AsError(err)
	}
	if err := x.materialise(res.Rows); err != nil {
		return err
	}
	t.out.Rows, t.out.Total, t.out.Stat.Rows = res.Rows, res.Total, res.Len()
	return nil
}

// materialise reads rows into memory within what the unit's results may still take.
func (x *unit) materialise(rows *record.Rows) *record.Error {
	err := rows.Materialise(max(x.room.Load(), 1))
	if err != nil {
		return record.AsError(err)
	}
	x.room.Add(-rows.Size())
	return nil
}

// masked is a cursor that shows null where the actor may not read.
type masked struct {
	rows *record.Rows
	p    *project
	row  []record.Value
}

func (m *masked) Next() ([]record.Value, bool) {
	row, ok := m.rows.Next()
	if !ok {
		return nil, false
	}
	m.row = m.p.pick(m.row[:0], row)
	return m.row, true
}

func (m *masked) Err() error   { return m.rows.Err() }
func (m *masked) Close() error { return m.rows.Close() }

// readID tells reads apart: two reads with the same one have the same result.
func (x *unit) readID(t *task) string {
	op := *t.op
	op.Query = t.query()
	op.If, op.Group = nil, 0
	return string(record.AppendOp(nil, &op))
}
