package engine

import (
	"context"

	"weir/internal/record"
	"weir/internal/rule"
)

// insert writes new records.
func (w *writer) insert(ctx context.Context, tasks []*task) error {
	list := make([]*pending, 0, len(tasks))
	for _, t := range tasks {
		p, err := w.fresh(t)
		if err != nil {
			return err
		}
		list = append(list, p)
	}
	return w.change(ctx, list)
}

// fresh is a new record: what the caller gave, its key, its class, its numbers, its audit fields.
func (w *writer) fresh(t *task) (*pending, error) {
	x, info := w.x, t.info
	n := len(t.t.Fields)
	p := &pending{t: t, info: info, row: &rule.Row{
		Table: t.t, Actor: t.who.actor, Event: rule.Insert, New: make([]record.Value, n), Given: make([]bool, n),
	}}
	row := p.row
	for _, a := range t.newValues() {
		row.New[a.f.Index], row.Given[a.f.Index] = a.v, true
	}
	if f := t.t.SingleKey(); f != nil && row.New[f.Index].Empty() && (f.Audit || f.Type == record.TypeGUID) && !f.Generated && !f.Identity {
		if t.newID == "" {
			t.newID = x.e.opt.NewID() // kept when the run is repeated
		}
		row.New[f.Index] = record.TextValue(t.newID)
	}
	if info.class >= 0 {
		row.New[info.class] = record.TextValue(t.t.Name)
	}
	set := func(at int, v record.Value) {
		if at >= 0 && !(row.Given[at] && t.op.Keep) {
			row.New[at] = v
		}
	}
	set(info.created, record.TimeValue(x.now))
	set(info.createdBy, byActor(t.who.actor))
	set(info.updated, record.TimeValue(x.now))
	set(info.updatedBy, byActor(t.who.actor))
	set(info.modCount, record.IntValue(0))
	for i, f := range info.numbered {
		if !row.New[f.Index].Empty() {
			continue
		}
		v, err := x.nextNumber(t, i)
		if err != nil {
			return nil, err
		}
		row.New[f.Index] = number(f, v)
	}
	return p, nil
}
