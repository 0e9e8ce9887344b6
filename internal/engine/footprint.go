package engine

import (
	"slices"

	"weir/internal/catalog"
	"weir/internal/record"
)

// footprint is the stored tables that an op reads and writes, directly or not. Sequences are no part of it: numbers are
// drawn before.
type footprint struct {
	reads, writes []int
	selfish       bool // reads what it writes: two such ops cannot share a set
}

func (f *footprint) read(id int) {
	if !slices.Contains(f.reads, id) {
		f.reads = append(f.reads, id)
	}
}

func (f *footprint) wrote(id int) {
	if !slices.Contains(f.writes, id) {
		f.writes = append(f.writes, id)
	}
}

// footprints works out what writes of a table touch: what its rules look up and derive, what constraints check, what
// deletes take with them.
func (m *model) footprints(info *tableInfo, journaled bool) {
	m.writeFootprint(&info.write, info.t, map[string]bool{})
	if journaled && len(info.journals) > 0 {
		m.wroteTable(&info.write, JournalTable)
	}
	m.deleteFootprint(&info.del, info.t, map[string]bool{})
	for _, f := range []*footprint{&info.write, &info.del} {
		f.selfish = slices.ContainsFunc(f.reads, func(id int) bool { return slices.Contains(f.writes, id) })
	}
}

func (m *model) wroteTable(f *footprint, name string) {
	if t, err := m.snap.Table(name); err == nil {
		f.wrote(m.stored(t))
	}
}

func (m *model) writeFootprint(f *footprint, t *catalog.Table, seen map[string]bool) {
	if seen[t.Name] {
		return
	}
	seen[t.Name] = true
	f.wrote(m.stored(t))
	for _, field := range t.Fields {
		if !field.ForeignKey {
			continue
		}
		if ref, err := m.snap.Table(field.Reference); err == nil {
			f.read(m.stored(ref))
		}
	}
	for _, r := range t.Rules {
		m.ruleFootprint(f, &r, seen)
	}
	// A write through a parent's table runs the rules of the record's own class.
	for _, name := range t.Classes {
		if c, err := m.snap.Table(name); err == nil {
			m.writeFootprint(f, c, seen)
		}
	}
}

func (m *model) ruleFootprint(f *footprint, r *catalog.RuleDef, seen map[string]bool) {
	for _, name := range []string{lookupTable(r), chooseTable(r)} {
		if t, err := m.snap.Table(name); err == nil {
			f.read(m.stored(t))
		}
	}
	if r.Derive == nil {
		return
	}
	if t, err := m.snap.Table(r.Derive.Table); err == nil {
		m.writeFootprint(f, t, seen)
	}
}

func lookupTable(r *catalog.RuleDef) string {
	if r.Lookup == nil {
		return ""
	}
	return r.Lookup.Table
}

func chooseTable(r *catalog.RuleDef) string {
	if r.Choose == nil {
		return ""
	}
	return r.Choose.Table
}

// deleteFootprint adds the referrers: a restriction is a read, a cascade a delete of theirs, a cleared reference a write.
func (m *model) deleteFootprint(f *footprint, t *catalog.Table, seen map[string]bool) {
	if seen[t.Name] {
		return
	}
	seen[t.Name] = true
	f.wrote(m.stored(t))
	for _, name := range t.Classes {
		if c, err := m.snap.Table(name); err == nil {
			for i := range c.Rules {
				m.ruleFootprint(f, &c.Rules[i], map[string]bool{})
			}
			m.deleteFootprint(f, c, seen)
		}
	}
	for _, r := range m.snap.Referrers(t) {
		switch r.Field.OnDelete {
		case catalog.OnDeleteNone:
			if r.Field.ForeignKey {
				f.read(m.stored(r.Table))
			}
		case catalog.OnDeleteRestrict:
			f.read(m.stored(r.Table))
		case catalog.OnDeleteClear:
			f.read(m.stored(r.Table))
			f.wrote(m.stored(r.Table))
		case catalog.OnDeleteCascade:
			f.read(m.stored(r.Table))
			m.deleteFootprint(f, r.Table, seen)
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
