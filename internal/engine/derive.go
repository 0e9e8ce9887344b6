package engine

import (
	"context"
	"slices"

	"weir/internal/record"
	"weir/internal/rule"
)

// derive writes the records that rules derived, within the atoms of the records they were derived from, and copies their
// keys and states back. The records of one rule form sets; two that would write the same record follow each other.
func (w *writer) derive(ctx context.Context, list []*pending) error {
	type derived struct {
		from *pending
		d    *rule.Derived
		t    *task
	}
	var todo []*derived
	for _, p := range list {
		for i := range p.row.Derive {
			d := &p.row.Derive[i]
			if p.t.depth >= maxDerive {
				return record.Errorf(record.Rejected, "", "the rules of %s derive records more than %d deep", p.info.t.Name, maxDerive)
			}
			// A rule may write what its actor may not: it is the table that acts. The actor's name stays on the record.
			actor := *p.row.Actor
			actor.System = true
			t := &task{i: -1, op: &d.Op, who: newWho(w.x.m, &actor), atom: p.t.atom, parent: p.t, depth: p.t.depth + 1, out: &record.Outcome{Total: -1}}
			w.x.prepareDerived(t)
			if t.err != nil {
				w.fail(p.t, t.err)
				break
			}
			todo = append(todo, &derived{p, d, t})
		}
	}
	for len(todo) > 0 && !w.fault {
		var now, later []*derived
		var tasks []*task
		ids := map[string]bool{}
		first := todo[0].t
		for _, d := range todo {
			t := d.t
			if d.from.t.done {
				continue
			}
			if t.t != first.t || t.op.Verb != first.op.Verb || !slices.Equal(t.op.Match, first.op.Match) ||
				t.info.write.selfish && len(now) > 0 || t.op.Verb == record.Upsert && (t.id == "" || ids[t.id]) && len(now) > 0 {
				later = append(later, d)
				continue
			}
			ids[t.id] = true
			now, tasks = append(now, d), append(tasks, t)
		}
		if len(tasks) == 0 {
			return nil
		}
		if err := w.writes(ctx, first.op.Verb, tasks); err != nil || w.fault {
			return err
		}
		for _, d := range now {
			d.t.done = true
			w.copyBack(d.from, d.d, d.t)
		}
		todo = later
	}
	return nil
}

func (w *writer) copyBack(p *pending, d *rule.Derived, t *task) {
	if d.Result == nil || t.out.Err != nil {
		return
	}
	if f := p.info.t.Field(d.Result.Key); f != nil && len(t.out.Key) == 1 {
		p.row.New[f.Index] = t.out.Key[0]
	}
	if f := p.info.t.Field(d.Result.State); f != nil {
		state := "ignored"
		switch {
		case t.out.Inserted:
			state = "inserted"
		case t.out.Changed:
			state = "updated"
		}
		p.row.New[f.Index] = record.TextValue(state)
	}
}

// prepareDerived is prepare for a derived record.
func (x *unit) prepareDerived(t *task) {
	table, err := x.snap.Table(t.op.Table)
	if err != nil {
		t.fault(record.AsError(err))
		return
	}
	t.t, t.info = table, x.m.table(table)
	if !table.Kept() {
		t.fault(record.Errorf(record.NotAllowed, "", "table %s is read-only", table.Name))
		return
	}
	x.prepareSet(t)
	if t.op.Verb == record.Upsert && t.err == nil {
		x.prepareMatch(t)
	}
}
