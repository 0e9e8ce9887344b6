package engine

import (
	"maps"
	"slices"

	"weir/internal/catalog"
	"weir/internal/record"
)

// footprint is the stored tables that an op reads and writes, directly or not. Sequences are no part of it: numbers are
// drawn before.
type footprint struct {
	reads, writes []int
	keyed         []int // looked into for records by their keys, which weir alone gives out: a record that is inserted later is none of them
	keeps         []int // records of these get the totals of what is written; who reads them comes after, who looks at other fields by key need not
	rows          []int // of these it reads records alone that earlier ops of the unit insert: no other insert matters to it
	selfish       bool  // reads what it writes: two such ops cannot share a set
}

func (f *footprint) read(id int) {
	if !slices.Contains(f.reads, id) {
		f.reads = append(f.reads, id)
	}
}

func (f *footprint) row(id int) {
	if !slices.Contains(f.rows, id) {
		f.rows = append(f.rows, id)
	}
}

func (f *footprint) wrote(id int) {
	if !slices.Contains(f.writes, id) {
		f.writes = append(f.writes, id)
	}
}

// footprints works out what writes of a table touch: what its rules look up, derive and keep, what constraints check, what
// deletes take with them.
func (m *model) footprints(info *tableInfo, journaled bool) {
	w := &outline{m: m}
	w.write(info.t, map[string]bool{})
	if journaled && len(info.journals) > 0 {
		if t, err := m.snap.Table(JournalTable); err == nil {
			w.wrote(m.stored(t))
		}
	}
	info.write = w.done()
	d := &outline{m: m}
	d.delete(info.t, map[string]bool{})
	info.del = d.done()
	m.narrow(info)
}

// narrow finds the tables of which an insert reads no more than the records that fields of its own refer to, and whether an insert leaves
// all other records of its table alone. A deep insert needs both: its children refer to parents that the same unit makes, and many of
// them shall be one set of parents and one of children, in whatever order they come.
func (m *model) narrow(info *tableInfo) {
	t := info.t
	info.touched = make([]bool, len(t.Fields))
	touch := func(name string) {
		if f := t.Field(name); f != nil {
			info.touched[f.Index] = true
		}
	}
	other := &outline{m: m} // what rules do that is no look at one record
	info.pure = true
	for _, f := range t.Fields {
		if f.Compute != "" || f.Default != "" {
			touch(f.Name)
		}
	}
	byField := map[int][]*catalog.Field{}
	for i := range t.Rules {
		r := &t.Rules[i]
		for name := range r.Set {
			touch(name)
		}
		switch {
		case r.Lookup != nil:
			for name := range r.Lookup.Set {
				touch(name)
			}
			if ref, f := m.lookedUpByKey(t, r.Lookup); f != nil {
				id := m.stored(ref)
				byField[id] = append(byField[id], f)
				continue
			}
		case r.Choose != nil:
			for name := range r.Choose.Set {
				touch(name)
			}
		case r.Derive != nil && r.Derive.Result != nil:
			touch(r.Derive.Result.Key)
			touch(r.Derive.Result.State)
		case r.Position != nil:
			touch(r.Position.Field)
			if f := t.Field(r.Position.Within); f != nil {
				if ref, err := m.snap.Table(f.Reference); err == nil {
					byField[m.stored(ref)] = append(byField[m.stored(ref)], f)
					continue
				}
			}
		}
		other.rule(t, r, map[string]bool{})
	}
	what := other.done()
	info.pure = !slices.Contains(what.writes, info.id) && !slices.Contains(what.keeps, info.id)
	if len(t.Classes) > 1 {
		return
	}
	for _, f := range t.Fields {
		if ref, err := m.snap.Table(f.Reference); err == nil && f.ForeignKey {
			id := m.stored(ref)
			byField[id] = append(byField[id], f)
		}
	}
	for id, fields := range byField {
		if id == info.id || slices.Contains(what.reads, id) || slices.Contains(what.keyed, id) || slices.Contains(what.writes, id) || slices.Contains(what.keeps, id) ||
			slices.ContainsFunc(fields, func(f *catalog.Field) bool { return info.touched[f.Index] }) {
			continue
		}
		if info.rows == nil {
			info.rows = map[int][]*catalog.Field{}
		}
		info.rows[id] = fields
	}
}

// lookedUpByKey is the table and the own field of a lookup that reads the record whose key the field holds; nil if it does more.
func (m *model) lookedUpByKey(t *catalog.Table, l *catalog.LookupDef) (*catalog.Table, *catalog.Field) {
	ref, err := m.snap.Table(l.Table)
	if err != nil || len(l.Match) != 1 || ref.SingleKey() == nil {
		return nil, nil
	}
	return ref, t.Field(l.Match[ref.SingleKey().Name])
}

// footRows narrows the footprint of an insert: a table of which it reads nothing but records that ops before it insert is read by row.
func (x *unit) footRows(t *task) {
	if x.alone || t.op.Verb != record.Insert || len(t.info.rows) == 0 {
		return
	}
	var kept []int
	for _, id := range t.foot.reads {
		fields := t.info.rows[id]
		if fields == nil || !x.inserted(t, id, fields) {
			kept = append(kept, id)
			continue
		}
		t.foot.row(id)
	}
	if len(t.foot.rows) > 0 {
		t.foot.reads = kept
	}
}

// inserted reports whether fields of a new record refer to nothing but records that ops before it insert into table id.
func (x *unit) inserted(t *task, id int, fields []*catalog.Field) bool {
	for i := range t.op.Set {
		a := &t.op.Set[i]
		for _, f := range fields {
			if f.Name == a.Field && !a.Value.Empty() && !x.inserts(t, &a.Value, id) {
				return false
			}
		}
	}
	return true
}

// walksToInserted reports whether a path that a new record returns leads to a record that an op before inserts, or nowhere.
func (x *unit) walksToInserted(t *task, steps []catalog.Step) bool {
	return t.op.Verb == record.Insert && len(steps) == 2 && !t.info.touched[steps[0].Field.Index] && t.who.guard(steps[1].Table) == nil &&
		x.inserted(t, x.m.table(steps[1].Table).id, []*catalog.Field{steps[0].Field})
}

// inserts reports whether a value is the key of a record that an op before t inserts into table id.
func (x *unit) inserts(t *task, v *record.Value, id int) bool {
	if v.Form != record.Ref || v.N < 0 || v.N >= int64(t.i) {
		return false
	}
	o := &x.tasks[v.N]
	return o.op != nil && o.op.Verb == record.Insert && o.info != nil && o.info.id == id && o.t.SingleKey() != nil && (v.S == "" || v.S == o.t.Key[0])
}

// outline is a footprint in the making.
type outline struct {
	footprint
	m      *model
	looked map[int][]string // fields that are looked at by key
	kept   map[int][]string // fields that hold totals
}

// done sorts out what is looked at by key: where the same op writes the table, or keeps the very field there, it reads.
func (o *outline) done() footprint {
	f := o.footprint
	for id, fields := range o.looked {
		changes := slices.Contains(f.writes, id) || slices.ContainsFunc(fields, func(name string) bool { return slices.Contains(o.kept[id], name) })
		if changes {
			f.read(id)
		} else if !slices.Contains(f.reads, id) {
			f.keyed = append(f.keyed, id)
		}
	}
	slices.Sort(f.reads)
	slices.Sort(f.keyed)
	f.selfish = slices.ContainsFunc(f.reads, func(id int) bool { return slices.Contains(f.writes, id) || slices.Contains(f.keeps, id) })
	return f
}

// look notes that fields of records of t are looked at that are found by their keys.
func (o *outline) look(t *catalog.Table, fields ...string) {
	id := o.m.stored(t)
	if !drawsKeys(t) {
		o.read(id)
		return
	}
	if o.looked == nil {
		o.looked = map[int][]string{}
	}
	o.looked[id] = append(o.looked[id], fields...)
}

// drawsKeys reports whether the keys of a table come from a sequence and from nowhere else, so that nobody can name one
// before it is given.
func drawsKeys(t *catalog.Table) bool {
	f := t.SingleKey()
	return f != nil && f.Sequence != nil && f.ReadOnly
}

// keep notes that totals are kept in t, and the totals of those above.
func (o *outline) keep(t *catalog.Table, fields []string, seen map[string]bool) {
	id := o.m.stored(t)
	if !slices.Contains(o.keeps, id) {
		o.keeps = append(o.keeps, id)
	}
	if o.kept == nil {
		o.kept = map[int][]string{}
	}
	o.kept[id] = append(o.kept[id], fields...)
	if seen[t.Name] {
		return
	}
	seen[t.Name] = true
	for _, name := range t.Classes {
		if c, err := o.m.snap.Table(name); err == nil {
			for i := range c.Rules {
				o.total(c, c.Rules[i].Total, seen)
			}
		}
	}
}

func (o *outline) total(t *catalog.Table, d *catalog.TotalDef, seen map[string]bool) {
	if d == nil || t.Field(d.In) == nil {
		return
	}
	if in, err := o.m.snap.Table(t.Field(d.In).Reference); err == nil {
		o.keep(in, slices.Collect(maps.Keys(d.Set)), seen)
	}
}

func (o *outline) write(t *catalog.Table, seen map[string]bool) {
	if seen[t.Name] {
		return
	}
	seen[t.Name] = true
	o.wrote(o.m.stored(t))
	for _, field := range t.Fields {
		if !field.ForeignKey {
			continue
		}
		if ref, err := o.m.snap.Table(field.Reference); err == nil {
			o.look(ref, ref.Key...)
		}
	}
	for i := range t.Rules {
		o.rule(t, &t.Rules[i], seen)
	}
	// A write through a parent's table runs the rules of the record's own class.
	for _, name := range t.Classes {
		if c, err := o.m.snap.Table(name); err == nil {
			o.write(c, seen)
		}
	}
}

func (o *outline) rule(t *catalog.Table, r *catalog.RuleDef, seen map[string]bool) {
	if d := r.Lookup; d != nil {
		if other, err := o.m.snap.Table(d.Table); err == nil {
			fields := slices.AppendSeq(slices.Collect(maps.Keys(d.Match)), maps.Values(d.Set))
			if f := other.SingleKey(); f != nil && d.Match[f.Name] != "" {
				o.look(other, fields...)
			} else {
				o.read(o.m.stored(other))
			}
		}
	}
	if r.Choose != nil {
		if other, err := o.m.snap.Table(r.Choose.Table); err == nil {
			o.read(o.m.stored(other))
		}
	}
	if d := r.Position; d != nil && t.Field(d.Within) != nil {
		if within, err := o.m.snap.Table(t.Field(d.Within).Reference); err == nil {
			o.look(within, within.Key...)
		}
	}
	o.total(t, r.Total, map[string]bool{})
	if r.Derive == nil {
		return
	}
	if other, err := o.m.snap.Table(r.Derive.Table); err == nil {
		o.write(other, seen)
	}
}

// delete adds the referrers: a restriction is a read, a cascade a delete of theirs, a cleared reference a write.
func (o *outline) delete(t *catalog.Table, seen map[string]bool) {
	if seen[t.Name] {
		return
	}
	seen[t.Name] = true
	m := o.m
	o.wrote(m.stored(t))
	for _, name := range t.Classes {
		if c, err := m.snap.Table(name); err == nil {
			for i := range c.Rules {
				o.rule(c, &c.Rules[i], map[string]bool{})
			}
			o.delete(c, seen)
		}
	}
	for _, r := range m.snap.Referrers(t) {
		switch r.Field.OnDelete {
		case catalog.OnDeleteNone:
			if r.Field.ForeignKey {
				o.read(m.stored(r.Table))
			}
		case catalog.OnDeleteRestrict:
			o.read(m.stored(r.Table))
		case catalog.OnDeleteClear:
			o.read(m.stored(r.Table))
			o.wrote(m.stored(r.Table))
		case catalog.OnDeleteCascade:
			o.read(m.stored(r.Table))
			o.delete(r.Table, seen)
		}
	}
}

// asks collects what a read, or a condition of a write, looks at: paths, relations, and the guards of every table on the
// way.
type asks struct {
	w    *who
	m    *model
	f    *footprint
	seen map[*catalog.Table]bool
}

func (a *asks) table(t *catalog.Table) {
	a.f.read(a.m.table(t).id)
	if a.seen[t] {
		return
	}
	if a.seen == nil {
		a.seen = map[*catalog.Table]bool{}
	}
	a.seen[t] = true
	if g := a.w.guard(t); g != nil {
		a.expr(t, g)
	}
}

func (a *asks) steps(steps []catalog.Step) {
	for i := 1; i < len(steps); i++ {
		a.table(steps[i].Table)
	}
}

func (a *asks) expr(own *catalog.Table, e *record.Expr) {
	e.Walk("", func(table string, e *record.Expr) bool {
		t := own
		if table != "" {
			t, _ = a.w.snap.Table(table)
		}
		if t == nil {
			return true
		}
		switch {
		case e.Op == record.Field:
			if steps, err := a.w.snap.Resolve(t, e.Path); err == nil {
				a.steps(steps)
			}
		case e.Rel != nil:
			if rel, err := a.w.snap.Table(e.Rel.Table); err == nil {
				a.table(rel)
				walk := func(t *catalog.Table, path string) {
					if steps, err := a.w.snap.Resolve(t, path); err == nil {
						a.steps(steps)
					}
				}
				walk(rel, e.Rel.Field)
				walk(t, e.Rel.Own)
				for _, tie := range e.Rel.More {
					walk(rel, tie.Field)
					walk(t, tie.Own)
				}
			}
		}
		return true
	})
}
