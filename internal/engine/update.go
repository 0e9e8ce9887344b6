package engine

import (
	"context"
	"slices"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/rule"
	"weir/internal/store"
)

// update changes records by key.
func (w *writer) update(ctx context.Context, tasks []*task) error {
	list, err := w.current(ctx, tasks, record.Update)
	if err != nil || w.fault {
		return err
	}
	for _, p := range list {
		w.assign(p)
	}
	return w.change(ctx, list)
}

// assign makes the new state of a stored record.
func (w *writer) assign(p *pending) {
	row := p.row
	row.Event = rule.Update
	row.New = slices.Clone(row.Old)
	row.Given = make([]bool, len(row.Old))
	for _, a := range p.t.values() {
		row.New[a.f.Index], row.Given[a.f.Index] = a.v, true
	}
}

// current reads and locks the records of tasks, fails those that are not there, not visible, not allowed or not in the
// state asked for, and returns the rest in the order of the tasks.
func (w *writer) current(ctx context.Context, tasks []*task, verb record.Verb) ([]*pending, error) {
	first := tasks[0]
	keys := make([][]record.Value, len(tasks))
	for i, t := range tasks {
		keys[i] = t.key
	}
	found, err := w.locked(ctx, first.t, keys)
	if err != nil {
		return nil, err
	}
	list := make([]*pending, 0, len(tasks))
	for _, t := range tasks {
		p := found[keyID(t.key)]
		if p == nil {
			w.fail(t, notFound())
			continue
		}
		p.t, p.row.Actor = t, t.who.actor
		if verb == record.Delete {
			p.row.Event = rule.Delete
		}
		list = append(list, p)
	}
	return w.permitted(ctx, list, verb)
}

// permitted fails the tasks whose records the actor may not see or treat by verb, or that are not in the state asked for.
func (w *writer) permitted(ctx context.Context, list []*pending, verb record.Verb) ([]*pending, error) {
	for _, visible := range []bool{true, false} {
		v := verb
		if visible {
			v = record.Get
		}
		if err := w.allow(ctx, list, v, visible); err != nil || w.fault {
			return nil, err
		}
		list = w.living(list)
	}
	for _, p := range list {
		if len(p.t.op.If) == 0 {
			continue
		}
		if err := conditionsOn(p.t, p.info.all, p.row.Old); err != nil {
			w.fail(p.t, err)
		}
	}
	return w.living(list), nil
}

// locked reads and locks records of t by key, each with all fields of its own class.
func (w *writer) locked(ctx context.Context, t *catalog.Table, keys [][]record.Value) (map[string]*pending, error) {
	return w.lock(ctx, t, &store.Read{Keys: keys})
}

// lock runs q with all fields of t and locks what it finds. Records of classes below t are read again with all of theirs.
func (w *writer) lock(ctx context.Context, t *catalog.Table, q *store.Read) (map[string]*pending, error) {
	info := w.x.m.table(t)
	q.Snapshot, q.Table, q.Fields, q.Lock = w.x.snap, t, info.all, true
	rows, err := w.read(ctx, q)
	if err != nil {
		return nil, err
	}
	found := make(map[string]*pending, rows.Len())
	var below map[string][][]record.Value
	for i := range rows.Len() {
		row := rows.At(i)
		key := keyOf(t, row)
		if info.class >= 0 {
			if class := row[info.class].S; class != t.Name && slices.Contains(t.Classes, class) {
				if below == nil {
					below = map[string][][]record.Value{}
				}
				below[class] = append(below[class], key)
				continue
			}
		}
		found[keyID(key)] = &pending{info: info, row: &rule.Row{Table: t, Old: row}}
	}
	for _, class := range t.Classes {
		if below[class] == nil {
			continue
		}
		c, err := w.x.snap.Table(class)
		if err != nil {
			return nil, err
		}
		more, err := w.locked(ctx, c, below[class])
		if err != nil {
			return nil, err
		}
		for id, p := range more {
			found[id] = p
		}
	}
	return found, nil
}
