package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// load runs a unit of one load. Where a new record of the table is no more than its values (and constants, audit fields, a drawn key),
// the database takes them as fast as it can; otherwise they are inserts, with everything that inserts do. Both commit once.
func (e *Engine) load(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	e.count.units.Add(1)
	op := &u.Ops[0]
	refused := func(err *record.Error) record.Outcome { return record.Outcome{Err: err, Unserviced: true, Total: -1} }
	if op.Load == nil || op.Actor < 0 || op.Actor >= len(u.Actors) {
		return refused(record.Errorf(record.Invalid, "", "a load has records and an actor"))
	}
	t, err := snap.Table(op.Table)
	if err != nil {
		return refused(record.AsError(err))
	}
	l := &loader{e: e, snap: snap, unit: u, op: op, t: t, rec: telemetry.From(ctx), out: &record.Loaded{}}
	m := e.models.of(snap)
	l.info, l.who = m.table(t), newWho(m, &u.Actors[op.Actor])
	if err := l.prepare(); err != nil {
		return refused(err)
	}
	if l.rows > e.opt.MaxOps {
		return refused(record.Errorf(record.TooLarge, "", "%d records are more than the %d allowed in one request; see engine.max_ops", l.rows, e.opt.MaxOps))
	}
	if l.plan() {
		err = l.plain(ctx)
	} else {
		err = l.inserts(ctx)
	}
	if err != nil {
		return record.Outcome{Err: record.AsError(err), Total: -1}
	}
	slices.SortFunc(l.out.Errs, func(a, b record.RowError) int { return a.Row - b.Row })
	l.out.Rows = int64(l.rows - len(l.out.Errs))
	return record.Outcome{Load: l.out, Total: -1, Inserted: l.out.Rows > 0, Changed: l.out.Rows > 0}
}

// loader is a load under way.
type loader struct {
	e    *Engine
	snap *catalog.Snapshot
	unit *record.Unit
	op   *record.Op
	t    *catalog.Table
	info *tableInfo
	who  *who
	rec  *telemetry.Recorder
	out  *record.Loaded

	keep  bool             // audit fields that are given count
	given []*catalog.Field // by op.Load.Fields; nil for one whose values do not count
	rows  int

	fields []string        // that are written
	from   []int           // by fields: column of the load, -1: constant
	fixed  []record.Value  // by fields: what it is otherwise
	key    *catalog.Field  // it is drawn where it is empty
	keyAt  int             // in fields
	musts  []mandatoryCell // that must not be empty
}

type mandatoryCell struct {
	f  *catalog.Field
	at int // in fields, -1: it is never given
}

// prepare checks what concerns all records: that the table may be written, and the fields be given.
func (l *loader) prepare() *record.Error {
	if l.info.err != nil {
		return l.info.err
	}
	if !l.t.Writable() && !(l.who.actor.System && l.t.Kept()) {
		return record.Errorf(record.NotAllowed, "", "table %s is read-only", l.t.Name)
	}
	if isNever(l.who.may(l.t, record.Insert)) {
		return forbidden(record.Insert, l.t)
	}
	l.keep = l.op.Keep && l.who.actor.Admin()
	width := len(l.op.Load.Fields)
	if width == 0 || len(l.op.Load.Cells)%width != 0 {
		return record.Errorf(record.Invalid, "", "the cells of a load are whole records")
	}
	l.rows = len(l.op.Load.Cells) / width
	seen := make(map[string]bool, width)
	for _, name := range l.op.Load.Fields {
		f := l.t.Field(name)
		switch {
		case f == nil:
			return record.Errorf(record.Invalid, name, "table %s has no field %.80s", l.t.Name, name)
		case seen[name]:
			return record.Errorf(record.Invalid, name, "the field is given twice")
		case f.Generated || f.ReadOnly || l.audits(f) && !l.keep:
			f = nil // left out in silence, as in inserts
		case !l.who.sets(f):
			return record.Errorf(record.Forbidden, name, "you may not set %s.%s", l.t.Name, f.Name)
		}
		seen[name] = true
		l.given = append(l.given, f)
	}
	return nil
}

// plan works out what is written, if a new record is no more than its values.
func (l *loader) plan() bool {
	constants, ok := l.info.program.Constants()
	if !ok || len(l.info.positions)+len(l.info.totals)+len(l.info.numbered)+len(l.info.passwords) > 0 || l.who.may(l.t, record.Insert) != nil {
		return false
	}
	add := func(f *catalog.Field, from int, v record.Value) {
		l.fields, l.from, l.fixed = append(l.fields, f.Name), append(l.from, from), append(l.fixed, v)
	}
	for i, f := range l.given {
		switch {
		case f == nil:
			continue
		case f.Audit && f.Name != "sys_tags" && !l.keep, f.Type == record.TypeJournal, f.Type == record.TypePassword:
			return false
		}
		if f.Identity && l.someNull(i) {
			return false // the database numbers those that have no number
		}
		add(f, i, record.Value{})
	}
	now := record.TimeValue(l.e.opt.Now().UTC().Truncate(time.Second))
	audit := func(at int, v record.Value) {
		if at >= 0 && l.at(l.t.Fields[at]) < 0 {
			add(l.t.Fields[at], -1, v)
		}
	}
	audit(l.info.class, record.TextValue(l.t.Name))
	audit(l.info.created, now)
	audit(l.info.createdBy, byActor(l.who.actor))
	audit(l.info.updated, now)
	audit(l.info.updatedBy, byActor(l.who.actor))
	audit(l.info.modCount, record.IntValue(0))
	if f := l.t.SingleKey(); f != nil && (f.Audit || f.Type == record.TypeGUID) && !f.Generated && !f.Identity {
		l.key = f
		if l.at(f) < 0 {
			add(f, -1, record.Value{})
		}
		l.keyAt = l.at(f)
	}
	for _, c := range constants {
		if l.at(c.Field) < 0 {
			add(c.Field, -1, c.Value)
		}
	}
	for _, f := range l.info.mandatory {
		l.musts = append(l.musts, mandatoryCell{f, l.at(f)})
	}
	return true
}

// audits reports whether weir fills a field by itself: the key aside, which may be given, and sys_tags.
func (l *loader) audits(f *catalog.Field) bool {
	return f.Audit && f != l.t.SingleKey() && f.Name != "sys_tags"
}

// someNull reports whether a record of the load has no value in a column.
func (l *loader) someNull(column int) bool {
	for i := column; i < len(l.op.Load.Cells); i += len(l.op.Load.Fields) {
		if l.op.Load.Cells[i].IsNull() {
			return true
		}
	}
	return false
}

// at is where a field stands among those that are written, -1 if it does not.
func (l *loader) at(f *catalog.Field) int { return slices.Index(l.fields, f.Name) }

func (l *loader) fail(row int, err *record.Error) {
	l.out.Errs = append(l.out.Errs, record.RowError{Row: row, Err: err})
}

// plain writes the records as they are.
func (l *loader) plain(ctx context.Context) error {
	end := l.rec.Enter(telemetry.BE)
	width, w := len(l.op.Load.Fields), len(l.fields)
	cells := make([]record.Value, l.rows*w)
	rows, number := make([][]record.Value, 0, l.rows), make([]int, 0, l.rows)
	for i := range l.rows {
		row := cells[i*w : (i+1)*w : (i+1)*w]
		if err := l.fill(row, l.op.Load.Cells[i*width:(i+1)*width]); err != nil {
			l.fail(i, err)
			continue
		}
		rows, number = append(rows, row), append(number, i)
	}
	end()
	if len(rows) == 0 {
		return nil
	}
	defer l.rec.Enter(telemetry.App)()
	found := len(l.out.Errs)
	for tries := 0; ; tries++ {
		err := l.write(ctx, rows, number)
		if err == nil {
			return nil
		}
		if record.KindOf(err) != record.Unavailable || tries >= l.e.opt.Retries || ctx.Err() != nil {
			return err
		}
		l.e.count.retries.Add(1)
		l.out.Errs = l.out.Errs[:found]
	}
}

// fill makes a record of its values, as an insert would.
func (l *loader) fill(row, given []record.Value) *record.Error {
	copy(row, l.fixed)
	for j, from := range l.from {
		if from < 0 {
			continue
		}
		v, f := given[from], l.given[from]
		if v.Form == record.Ref {
			return record.Errorf(record.Invalid, f.Name, "a load refers to no other operations")
		}
		if err := checkForm(f, v); err != nil {
			return err
		}
		if v.Form == record.Text && v.S == "" && !l.t.External {
			v = record.Value{}
		}
		if l.e.opt.StrictChoices && len(f.Choices) > 0 && !v.Empty() && f.ChoiceLabel(v.Text()) == "" && !isChoice(f, v.Text()) {
			return record.Errorf(record.Invalid, f.Name, "%.60q is not one of its choices", v.Text())
		}
		row[j] = v
	}
	if l.key != nil && row[l.keyAt].Empty() {
		row[l.keyAt] = record.TextValue(l.e.opt.NewID())
	}
	for _, m := range l.musts {
		if m.at < 0 || row[m.at].Empty() {
			return mandatory(m.f)
		}
	}
	return nil
}

// write writes the records in one transaction: all at once, or if the database refuses that, those that it takes. number tells which of
// the load each is.
func (l *loader) write(ctx context.Context, rows [][]record.Value, number []int) error {
	tx, err := l.e.store.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.Mark(ctx); err != nil {
		return err
	}
	if err := tx.Load(ctx, l.t, l.fields, rows); err != nil {
		if !isRowFault(record.KindOf(err)) {
			return fmt.Errorf("load %s: %w", l.t.Name, err)
		}
		if err := tx.Back(ctx); err != nil {
			return err
		}
		if err := l.apart(ctx, tx, rows, number); err != nil {
			return err
		}
	}
	// What is in the transaction is committed whether or not somebody still listens, so that the outcome is true.
	done, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTime)
	defer cancel()
	return tx.Commit(done)
}

// apart inserts records of which the database has refused some. It tells itself which ones meet an existing key; of other faults it names
// one at most, so the records are halved until the guilty ones are alone.
func (l *loader) apart(ctx context.Context, tx store.Tx, rows [][]record.Value, number []int) error {
	if err := tx.Mark(ctx); err != nil {
		return err
	}
	w, err := tx.Insert(ctx, &store.InsertSet{Table: l.t, Fields: l.fields, Rows: rows})
	if err == nil {
		for i := range w.Errs {
			if w.Errs[i] != nil {
				l.fail(number[i], w.Errs[i])
			}
		}
		return tx.Drop(ctx)
	}
	if !isRowFault(record.KindOf(err)) {
		return fmt.Errorf("insert into %s: %w", l.t.Name, err)
	}
	if err := tx.Back(ctx); err != nil {
		return err
	}
	if err := tx.Drop(ctx); err != nil {
		return err
	}
	if len(rows) == 1 {
		l.fail(number[0], record.AsError(err))
		return nil
	}
	half := len(rows) / 2
	if err := l.apart(ctx, tx, rows[:half], number[:half]); err != nil {
		return err
	}
	return l.apart(ctx, tx, rows[half:], number[half:])
}

// inserts runs the load as a unit of inserts: rules, sequences and everything else happens as it does for them.
func (l *loader) inserts(ctx context.Context) error {
	width := len(l.op.Load.Fields)
	u := &record.Unit{Version: l.unit.Version, Actors: l.unit.Actors, Ops: make([]record.Op, l.rows)}
	sets := make([]record.Assign, len(l.op.Load.Cells))
	for i := range l.rows {
		set := sets[i*width : (i+1)*width : (i+1)*width]
		for j, v := range l.op.Load.Cells[i*width : (i+1)*width] {
			set[j] = record.Assign{Field: l.op.Load.Fields[j], Value: v}
		}
		u.Ops[i] = record.Op{Verb: record.Insert, Table: l.op.Table, Set: set, Actor: l.op.Actor, Keep: l.op.Keep}
	}
	for i, out := range l.e.execute(ctx, l.snap, u) {
		switch {
		case out.Err == nil:
		case !isRowFault(out.Err.Kind):
			return out.Err // nothing is committed: the unit is one transaction
		default:
			l.fail(i, out.Err)
		}
	}
	return nil
}
