package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/rule"
	"weir/internal/store"
)

// belonging is the key of one record that others belong to.
type belonging struct {
	table *catalog.Table
	key   string
}

// hold locks records of t, in key order, and remembers them until the set is over: what hangs together with them is then this
// transaction's alone. Those that are not there are remembered as nil.
func (w *writer) hold(ctx context.Context, t *catalog.Table, keys []record.Value) error {
	var missing []string
	byText := make(map[string]record.Value, len(keys))
	for _, k := range keys {
		text := k.Text()
		if _, known := w.held[belonging{t, text}]; known || byText[text].Form != record.Null {
			continue
		}
		byText[text] = k
		missing = append(missing, text)
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	list := make([][]record.Value, len(missing))
	for i, text := range missing {
		list[i] = []record.Value{byText[text]}
	}
	found, err := w.locked(ctx, t, list)
	if err != nil {
		return fmt.Errorf("lock records of %s: %w", t.Name, err)
	}
	if w.held == nil {
		w.held = map[belonging]*pending{}
	}
	for i, text := range missing {
		w.held[belonging{t, text}] = found[keyID(list[i])]
	}
	return nil
}

// positions gives new records their numbers within the records that they belong to. It comes last before the statement, so
// that a record which is refused takes none.
func (w *writer) positions(ctx context.Context, list []*pending) error {
	return eachClass(list, func(info *tableInfo) error {
		for _, pos := range info.positions {
			if err := w.position(ctx, pos, info, list); err != nil || w.fault {
				return err
			}
		}
		return nil
	})
}

// eachClass calls f once for each class that records of the list have.
func eachClass(list []*pending, f func(*tableInfo) error) error {
	for i, p := range list {
		if i > 0 && (p.info == list[i-1].info || slices.ContainsFunc(list[:i], func(o *pending) bool { return o.info == p.info })) {
			continue
		}
		if err := f(p.info); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) position(ctx context.Context, pos *rule.Position, info *tableInfo, list []*pending) error {
	var news []*pending
	var keys []record.Value
	for _, p := range list {
		if p.info != info || p.row.Old != nil || p.t.done || !p.row.New[pos.Field.Index].Empty() {
			continue
		}
		if key := p.row.New[pos.Within.Index]; !key.Empty() {
			news, keys = append(news, p), append(keys, key)
		}
	}
	if len(news) == 0 {
		return nil
	}
	if err := w.hold(ctx, pos.Table, keys); err != nil {
		return err
	}
	last, err := w.aggregated(ctx, pos.Of, pos.Within, keys, []record.Agg{{Func: record.Max, Path: pos.Field.Name}})
	if err != nil {
		return err
	}
	for i, p := range news {
		text := keys[i].Text()
		if w.held[belonging{pos.Table, text}] == nil {
			w.fail(p.t, record.Errorf(record.Restricted, pos.Within.Name, "there is no %s %.80s", pos.Table.Label, text))
			continue
		}
		var highest record.Value
		if len(last[text]) > 0 {
			highest = last[text][0]
		}
		next, err := pos.Next(highest)
		if err != nil {
			w.fail(p.t, err)
			continue
		}
		p.row.New[pos.Field.Index] = next
		last[text] = []record.Value{next}
	}
	return nil
}

// aggregated is aggregates over the records of t, by the text of the field that groups them, for the groups asked for.
func (w *writer) aggregated(ctx context.Context, t *catalog.Table, by *catalog.Field, groups []record.Value, aggs []record.Agg) (map[string][]record.Value, error) {
	where := &record.Expr{Op: record.In, Args: []*record.Expr{record.F(by.Name)}}
	seen := make(map[record.Value]bool, len(groups))
	for _, g := range groups {
		if !seen[g] {
			seen[g] = true
			where.Values = append(where.Values, g)
		}
	}
	rows, err := w.read(ctx, &store.Read{
		Snapshot: w.x.snap, Table: t, Query: &record.Query{Where: where, Group: []string{by.Name}, Aggs: aggs, Limit: -1},
	})
	if err != nil {
		return nil, err
	}
	out := make(map[string][]record.Value, rows.Len())
	for i := range rows.Len() {
		row := rows.At(i)
		out[row[0].Text()] = row[1:]
	}
	return out, nil
}

// holdOwners locks the records whose totals the writes of the list will move. It comes before the statements, since a foreign
// key would take a weaker lock there, which two transactions could not both raise.
func (w *writer) holdOwners(ctx context.Context, list []*pending) error {
	return eachClass(list, func(info *tableInfo) error {
		for _, total := range info.totals {
			if m := movedBy(total, info, list); len(m.keys) > 0 {
				if err := w.hold(ctx, total.Table, m.keys); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// moved is the records whose totals writes move, in key order, and whose write it is that moves each, the first of several.
type moved struct {
	keys []record.Value
	by   map[string]*task
}

func movedBy(total *rule.Total, info *tableInfo, list []*pending) moved {
	m := moved{by: map[string]*task{}}
	add := func(t *task, key record.Value) {
		if text := key.Text(); !key.Empty() && m.by[text] == nil {
			m.by[text] = t
			m.keys = append(m.keys, key)
		}
	}
	in := total.In.Index
	for _, p := range list {
		if p.info != info || p.t.done {
			continue
		}
		old, row := p.row.Old, p.row.New
		switch {
		case old == nil:
			add(p.t, row[in])
		case row == nil:
			add(p.t, old[in])
		case old[in] != row[in]:
			add(p.t, old[in])
			add(p.t, row[in])
		case slices.ContainsFunc(total.Ours, func(f *catalog.Field) bool { return old[f.Index] != row[f.Index] }):
			add(p.t, row[in])
		}
	}
	slices.SortFunc(m.keys, func(a, b record.Value) int { return strings.Compare(a.Text(), b.Text()) })
	return m
}

// totals brings the sums that are kept over written or deleted records up to date, in the records that they belong to, and
// what those are added up in.
func (w *writer) totals(ctx context.Context, list []*pending) error {
	return eachClass(list, func(info *tableInfo) error {
		for _, total := range info.totals {
			if err := w.total(ctx, total, movedBy(total, info, list)); err != nil || w.fault {
				return err
			}
		}
		return nil
	})
}

func (w *writer) total(ctx context.Context, total *rule.Total, m moved) error {
	if len(m.keys) == 0 {
		return nil
	}
	if err := w.hold(ctx, total.Table, m.keys); err != nil {
		return err
	}
	s := &store.UpdateSet{Table: total.Table}
	aggs := make([]record.Agg, len(total.Ours))
	for i, f := range total.Ours {
		aggs[i] = record.Agg{Func: record.Sum, Path: f.Name}
		s.Fields = append(s.Fields, total.Theirs[i].Name)
	}
	sums, err := w.aggregated(ctx, total.Of, total.In, m.keys, aggs)
	if err != nil {
		return err
	}
	var owners []*pending
	for _, key := range m.keys {
		t, held := m.by[key.Text()], w.held[belonging{total.Table, key.Text()}]
		if held == nil {
			continue // it was deleted with what belonged to it, or never was there
		}
		values, err := total.Values(sums[key.Text()])
		if err != nil {
			return err
		}
		row := &rule.Row{Table: held.row.Table, Actor: t.who.actor, Event: rule.Update, Old: held.row.Old, New: slices.Clone(held.row.Old)}
		for i, f := range total.Theirs {
			row.New[f.Index] = values[i]
		}
		if slices.Equal(row.New, row.Old) {
			continue
		}
		s.Keys, s.Rows = append(s.Keys, []record.Value{key}), append(s.Rows, values)
		owners = append(owners, &pending{t: t, info: held.info, row: row, changed: true})
	}
	if len(owners) == 0 {
		return nil
	}
	written, err := w.tx.Update(ctx, s)
	if err != nil {
		return fmt.Errorf("keep totals in %s: %w", total.Table.Name, err)
	}
	for i, p := range owners {
		if written.Errs != nil && written.Errs[i] != nil {
			w.fail(p.t, written.Errs[i])
			continue
		}
		w.mine(p.t)
		w.held[belonging{total.Table, s.Keys[i][0].Text()}].row = &rule.Row{Table: p.row.Table, Old: p.row.New}
	}
	if w.fault {
		return nil
	}
	return w.totals(ctx, owners)
}
