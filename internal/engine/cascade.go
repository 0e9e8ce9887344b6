package engine

import (
	"context"
	"fmt"
	"slices"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// remove deletes records by key, with what their referrers ask for: refusal, deletion along with them, or an emptied
// reference. Everything is found out before anything is written.
func (w *writer) remove(ctx context.Context, tasks []*task) error {
	list, err := w.current(ctx, tasks, record.Delete)
	if err != nil || w.fault {
		return err
	}
	c := &cascade{w: w, doomed: map[recordID]*pending{}, cleared: map[recordID]*pending{}}
	if err := c.follow(ctx, list); err != nil || w.fault {
		return err
	}
	for _, p := range w.living(slices.Clone(c.order)) {
		if p.depth > 0 {
			continue
		}
		t := p.t
		t.out.Key, t.out.Changed, t.out.Stat.Rows = keyOf(p.info.t, p.row.Old), true, 1
		t.row, t.rowOf = p.row.Old, p.info.t
		if t.op.Return != nil {
			if err := w.readBack(ctx, []*pending{p}); err != nil {
				return err
			}
		}
	}
	if err := c.write(ctx); err != nil || w.fault {
		return err
	}
	return w.totals(ctx, c.order)
}

type recordID struct {
	stored int
	key    string
}

// cascade is what deleting some records does to others.
type cascade struct {
	w       *writer
	order   []*pending // records to delete, the referred before the referring
	doomed  map[recordID]*pending
	cleared map[recordID]*pending
	clears  []*pending
}

func (c *cascade) id(p *pending) recordID {
	return recordID{p.info.id, keyID(keyOf(p.info.t, p.current()))}
}

// follow adds level after level of records that go with the ones before.
func (c *cascade) follow(ctx context.Context, level []*pending) error {
	for depth := 0; len(level) > 0; depth++ {
		fresh := level[:0:0]
		for _, p := range level {
			if id := c.id(p); c.doomed[id] == nil {
				c.doomed[id] = p
				p.depth = depth
				fresh = append(fresh, p)
			}
		}
		if err := c.w.rules(ctx, fresh); err != nil {
			return err
		}
		fresh = c.w.living(fresh)
		if err := c.w.derive(ctx, fresh); err != nil || c.w.fault {
			return err
		}
		failed := len(fresh)
		refs := c.referrers(fresh)
		for _, r := range refs {
			if r.Field.OnDelete == catalog.OnDeleteRestrict {
				if err := c.restrict(ctx, r); err != nil || c.w.fault {
					return err
				}
			}
		}
		fresh = c.w.living(fresh)
		if depth > 0 && len(fresh) < failed {
			// What a failed delete would have taken along may belong to another one of the set too.
			c.w.fault = true
			return nil
		}
		c.order = append(c.order, fresh...)
		level = nil
		for _, r := range refs {
			var err error
			switch r.Field.OnDelete {
			case catalog.OnDeleteCascade:
				var more []*pending
				more, err = c.referring(ctx, r)
				level = append(level, more...)
			case catalog.OnDeleteClear:
				err = c.clear(ctx, r)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// reference is a referring field with the doomed records of one level that it can refer to.
type reference struct {
	catalog.Referrer
	owners map[string]*pending
	values []record.Value
}

func (c *cascade) referrers(level []*pending) []*reference {
	var list []*reference
	for _, p := range level {
		key := keyOf(p.info.t, p.row.Old)
		for _, r := range c.w.x.snap.Referrers(p.info.t) {
			if r.Field.OnDelete == catalog.OnDeleteNone || len(key) != 1 {
				continue
			}
			i := slices.IndexFunc(list, func(o *reference) bool { return o.Referrer == r })
			if i < 0 {
				i = len(list)
				list = append(list, &reference{Referrer: r, owners: map[string]*pending{}})
			}
			list[i].owners[key[0].Text()] = p
			list[i].values = append(list[i].values, key[0])
		}
	}
	return list
}

// living are the values whose owners have not failed.
func (r *reference) living() []record.Value {
	return slices.DeleteFunc(slices.Clone(r.values), func(v record.Value) bool { return r.owners[v.Text()].t.done })
}

func (r *reference) where() *record.Query {
	return &record.Query{Limit: -1, Where: &record.Expr{
		Op: record.In, Args: []*record.Expr{record.F(r.Field.Name)}, Values: r.living(),
	}}
}

// referring reads and locks the records that refer to doomed ones, in key order.
func (c *cascade) referring(ctx context.Context, r *reference) ([]*pending, error) {
	if len(r.living()) == 0 {
		return nil, nil
	}
	found, err := c.w.lock(ctx, r.Table, &store.Read{Query: r.where()})
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(found))
	for id := range found {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	list := make([]*pending, 0, len(ids))
	for _, id := range ids {
		p := found[id]
		owner := r.owners[p.row.Old[p.info.t.Field(r.Field.Name).Index].Text()]
		if owner == nil {
			continue
		}
		p.t, p.row.Actor, p.row.Event = owner.t, owner.row.Actor, owner.row.Event
		list = append(list, p)
	}
	return list, nil
}

func (c *cascade) restrict(ctx context.Context, r *reference) error {
	list, err := c.referring(ctx, r)
	if err != nil {
		return err
	}
	for _, p := range list {
		if c.doomed[c.id(p)] == nil {
			c.w.fail(p.t, record.Errorf(record.Restricted, "", "a record of %s refers to it in %s", r.Table.Name, r.Field.Name))
		}
	}
	return nil
}

func (c *cascade) clear(ctx context.Context, r *reference) error {
	list, err := c.referring(ctx, r)
	if err != nil {
		return err
	}
	for _, p := range list {
		known := c.cleared[c.id(p)]
		if known == nil {
			c.cleared[c.id(p)] = p
			c.clears = append(c.clears, p)
			p.row.New = slices.Clone(p.row.Old)
			p.row.Given = make([]bool, len(p.row.Old))
			p.changed = true
			c.w.stamp(p)
			known = p
		}
		known.row.New[p.info.t.Field(r.Field.Name).Index] = record.Value{}
	}
	return nil
}

// write carries it out: references are emptied, then the referring go before the referred.
func (c *cascade) write(ctx context.Context) error {
	w := c.w
	clears := slices.DeleteFunc(c.clears, func(p *pending) bool { return p.t.done || c.doomed[c.id(p)] != nil })
	if err := w.statement(ctx, clears); err != nil || w.fault {
		return err
	}
	list := w.living(slices.Clone(c.order))
	for len(list) > 0 {
		last := list[len(list)-1]
		var same, rest []*pending
		for _, p := range list {
			if p.depth == last.depth && p.info == last.info {
				same = append(same, p)
			} else {
				rest = append(rest, p)
			}
		}
		s := &store.DeleteSet{Table: last.info.t}
		for _, p := range same {
			s.Keys = append(s.Keys, keyOf(p.info.t, p.row.Old))
		}
		written, err := w.tx.Delete(ctx, s)
		if err != nil {
			return fmt.Errorf("delete from %s: %w", last.info.t.Name, err)
		}
		for i, p := range same {
			switch {
			case written.Errs != nil && written.Errs[i] != nil:
				w.fail(p.t, written.Errs[i])
			case written.Hit != nil && !written.Hit[i]:
				w.fail(p.t, notFound())
			default:
				w.mine(p.t)
			}
		}
		if w.fault {
			return nil
		}
		if err := w.forget(ctx, same); err != nil {
			return err
		}
		list = rest
	}
	return nil
}
