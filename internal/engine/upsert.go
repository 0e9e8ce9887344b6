package engine

import (
	"context"
	"slices"

	"weir/internal/record"
	"weir/internal/store"
)

// upsert updates the records that have the match fields of the tasks, and inserts the others. All tasks match by the same
// fields and no two by the same values.
func (w *writer) upsert(ctx context.Context, tasks []*task) error {
	first := tasks[0]
	wanted := make([][]record.Value, len(tasks))
	lead := w.leading(first)
	byKey := len(first.op.Match) > 1 && slices.Equal(first.op.Match, first.t.Key)
	var values []record.Value
	var keys [][]record.Value
	for i, t := range tasks {
		for _, name := range t.op.Match {
			v, _ := t.matchValue(name)
			v, err := w.x.value(t, v)
			if err != nil {
				w.fail(t, err)
				break
			}
			wanted[i] = append(wanted[i], v)
		}
		switch {
		case len(wanted[i]) < len(t.op.Match):
		case byKey:
			keys = append(keys, wanted[i])
		case !wanted[i][lead].Empty():
			values = append(values, wanted[i][lead])
		}
	}
	found := map[string]*pending{}
	var err error
	switch {
	case len(keys) > 0:
		found, err = w.locked(ctx, first.t, keys)
	case len(values) > 0:
		found, err = w.lock(ctx, first.t, matching(first.op.Match[lead], values))
	}
	if err != nil {
		return err
	}
	byMatch := map[string][]*pending{}
	for _, p := range found {
		values := make([]record.Value, len(first.op.Match))
		for i, name := range first.op.Match {
			values[i] = p.row.Old[p.info.t.Field(name).Index]
		}
		id := keyID(values)
		byMatch[id] = append(byMatch[id], p)
	}
	var list, old []*pending
	for i, t := range tasks {
		if t.done {
			continue
		}
		hits := byMatch[keyID(wanted[i])]
		switch {
		case len(hits) > 1:
			w.fail(t, record.Errorf(record.Conflict, t.op.Match[0], "%d records match, so it is not known which to update", len(hits)))
		case len(hits) == 1:
			p := hits[0]
			p.t, p.row.Actor = t, t.who.actor
			old, list = append(old, p), append(list, p)
		default:
			if len(t.op.If) > 0 && hasFieldCondition(t) {
				w.fail(t, record.Errorf(record.Precondition, "", "there is no record to hold the state asked for"))
				continue
			}
			p, err := w.fresh(t)
			if err != nil {
				return err
			}
			list = append(list, p)
		}
	}
	if w.fault {
		return nil
	}
	// A record that the actor may not see exists all the same: the upsert is refused like an update.
	if err := w.allow(ctx, old, record.Update, false); err != nil || w.fault {
		return err
	}
	for _, p := range w.living(old) {
		if err := conditionsOn(p.t, p.info.all, p.row.Old); err != nil {
			w.fail(p.t, err)
			continue
		}
		w.assign(p)
	}
	return w.change(ctx, w.living(list))
}

func hasFieldCondition(t *task) bool {
	return slices.ContainsFunc(t.op.If, func(c record.Condition) bool { return c.Field != "" && !c.Negate })
}

// leading is the match field that finds the fewest records: a key, else a unique one, else the first.
func (w *writer) leading(t *task) int {
	for i, name := range t.op.Match {
		if len(t.t.Key) == 1 && t.t.Key[0] == name {
			return i
		}
	}
	for i, name := range t.op.Match {
		if f := t.t.Field(name); f != nil && f.Unique {
			return i
		}
	}
	return 0
}

func matching(field string, values []record.Value) *store.Read {
	where := &record.Expr{Op: record.In, Args: []*record.Expr{record.F(field)}, Values: values}
	return &store.Read{Query: &record.Query{Where: where, Limit: -1}}
}

// raced looks for the record that an upsert did not find and could not insert either. If it is there now, another writer
// has inserted it in between: the error makes the transaction start again, and then it is found.
func (w *writer) raced(ctx context.Context, t *task) error {
	if t.op.Verb != record.Upsert {
		return nil
	}
	lead := w.leading(t)
	v, _ := t.matchValue(t.op.Match[lead])
	v, err := w.x.value(t, v)
	if err != nil || v.Empty() {
		return nil
	}
	q := matching(t.op.Match[lead], []record.Value{v})
	q.Snapshot, q.Table, q.Fields = w.x.snap, t.t, t.op.Match
	rows, rerr := w.read(ctx, q)
	if rerr != nil {
		return rerr
	}
	for i := range rows.Len() {
		same := true
		for j, name := range t.op.Match {
			v, _ := t.matchValue(name)
			v, _ = w.x.value(t, v)
			same = same && rows.At(i)[j] == v
		}
		if same {
			return record.Errorf(record.Unavailable, "", "another request is writing the same record; try again")
		}
	}
	return nil
}
