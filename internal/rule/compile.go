package rule

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Program is the compiled rules of one table. It is safe for concurrent use.
type Program struct {
	table    *catalog.Table
	defaults []assignment // for inserts, in field order
	computed []assignment // at every write, in field order
	again    bool         // computed is computed once more after the steps
	steps    []*step

	positions []*Position
	totals    []*Total
}

// assignment gives a field a constant or the result of an expression.
type assignment struct {
	field *catalog.Field
	value record.Value
	expr  *expression // nil: value
}

// step is one rule.
type step struct {
	name    string
	on      [3]bool // by Event
	when    *expression
	require []*catalog.Field
	set     []assignment

	check   *expression
	message string
	field   string

	transition *transition
	lookup     *lookup
	choose     *choose
	derive     *derive
}

type transition struct {
	field *catalog.Field
	from  map[string][]string
}

// Compile compiles the rules, defaults and computed fields of a table. The error joins all faults, each naming its rule.
func Compile(snap *catalog.Snapshot, t *catalog.Table) (*Program, error) {
	c := &compiler{snap: snap, table: t, p: &Program{table: t}}
	for _, f := range t.Fields {
		switch {
		case strings.HasPrefix(f.Default, "="):
			c.p.defaults = append(c.p.defaults, assignment{field: f, expr: c.expr("default of "+f.Name, f.Default[1:])})
		case f.Default != "":
			v, err := record.Parse(f.Type, f.Default)
			c.check("default of "+f.Name, err)
			c.p.defaults = append(c.p.defaults, assignment{field: f, value: v})
		}
		if f.Compute != "" {
			c.p.computed = append(c.p.computed, assignment{field: f, expr: c.expr("compute of "+f.Name, f.Compute)})
		}
	}
	for i := range t.Rules {
		c.rule(&t.Rules[i])
	}
	if len(c.faults) > 0 {
		return nil, errors.Join(c.faults...)
	}
	c.p.again = c.p.computesAgain()
	return c.p, nil
}

// computesAgain reports whether a rule may set a computed field, or a field that one is computed from. Computed fields that are made
// of each other settle the second time.
func (p *Program) computesAgain() bool {
	for _, a := range p.computed {
		if len(p.steps) > 0 && slices.ContainsFunc(p.computed, func(o assignment) bool { return slices.Contains(a.expr.fields, o.field) }) {
			return true
		}
	}
	touched := func(f *catalog.Field) bool {
		return slices.ContainsFunc(p.computed, func(a assignment) bool {
			return a.field == f || slices.Contains(a.expr.fields, f) || slices.Contains(a.expr.changed, f)
		})
	}
	return slices.ContainsFunc(p.steps, func(s *step) bool {
		copies := func(list []copied) bool {
			return slices.ContainsFunc(list, func(c copied) bool { return touched(c.ours) })
		}
		return slices.ContainsFunc(s.set, func(a assignment) bool { return touched(a.field) }) ||
			s.lookup != nil && copies(s.lookup.copies) || s.choose != nil && copies(s.choose.copies)
	})
}

// Empty reports whether Run does nothing.
func (p *Program) Empty() bool { return len(p.defaults)+len(p.computed)+len(p.steps) == 0 }

// Constant is a value that new records get where none is given.
type Constant struct {
	Field *catalog.Field
	Value record.Value
}

// Constants are what the rules do to new records, if that is no more than to fill fields with literals.
func (p *Program) Constants() (list []Constant, all bool) {
	if len(p.computed)+len(p.steps) > 0 {
		return nil, false
	}
	for i := range p.defaults {
		if p.defaults[i].expr != nil {
			return nil, false
		}
		list = append(list, Constant{p.defaults[i].field, p.defaults[i].value})
	}
	return list, true
}

// Reads are the tables that the rules read for lookups and choices; Writes those they derive records in. Both sorted.
func (p *Program) Reads() []string {
	return p.tables(func(s *step) *catalog.Table { return s.readTable() })
}

// Writes are the tables that the rules derive records in, sorted.
func (p *Program) Writes() []string {
	return p.tables(func(s *step) *catalog.Table {
		if s.derive != nil {
			return s.derive.table
		}
		return nil
	})
}

func (s *step) readTable() *catalog.Table {
	switch {
	case s.lookup != nil:
		return s.lookup.table
	case s.choose != nil:
		return s.choose.table
	}
	return nil
}

func (p *Program) tables(of func(*step) *catalog.Table) []string {
	var names []string
	for _, s := range p.steps {
		if t := of(s); t != nil && !slices.Contains(names, t.Name) {
			names = append(names, t.Name)
		}
	}
	sort.Strings(names)
	return names
}

type compiler struct {
	snap   *catalog.Snapshot
	table  *catalog.Table
	p      *Program
	faults []error
}

func (c *compiler) check(what string, err error) {
	if err != nil {
		c.faults = append(c.faults, fmt.Errorf("table %s: %s: %w", c.table.Name, what, err))
	}
}

func (c *compiler) expr(what, text string) *expression {
	e, err := compileExpression(c.table, text)
	c.check(what, err)
	return e
}

func (c *compiler) field(what string, t *catalog.Table, name string) *catalog.Field {
	f := t.Field(name)
	if f == nil {
		c.check(what, fmt.Errorf("table %s has no field %q", t.Name, name))
	}
	return f
}

func (c *compiler) other(what, name string) *catalog.Table {
	t, err := c.snap.Table(name)
	if err != nil {
		c.check(what, fmt.Errorf("table %q is not defined", name))
		return nil
	}
	return t
}

func (c *compiler) rule(d *catalog.RuleDef) {
	what := "rule " + d.Name
	s := &step{name: d.Name, message: d.Message, field: d.Field}
	if d.Name == "" {
		c.check("rule", errors.New("has no name"))
	}
	if d.Position != nil || d.Total != nil {
		c.belonging(what, d)
		return
	}
	on := d.On
	if len(on) == 0 {
		on = []string{"insert", "update"}
	}
	for _, name := range on {
		i := slices.Index([]string{"insert", "update", "delete"}, name)
		if i < 0 {
			c.check(what, fmt.Errorf("on: %q is not insert, update or delete", name))
			continue
		}
		s.on[i] = true
	}
	if d.When != "" {
		s.when = c.expr(what+": when", d.When)
	}
	for _, name := range d.Require {
		if f := c.field(what+": require", c.table, name); f != nil {
			s.require = append(s.require, f)
		}
	}
	for _, name := range sorted(d.Set) {
		if f := c.field(what+": set", c.table, name); f != nil {
			s.set = append(s.set, assignment{field: f, expr: c.expr(what+": set "+name, d.Set[name])})
		}
	}
	if d.Check != "" {
		s.check = c.expr(what+": check", d.Check)
	}
	if d.Transition != nil {
		if f := c.field(what+": transition", c.table, d.Transition.Field); f != nil {
			s.transition = &transition{field: f, from: d.Transition.From}
		}
	}
	if d.Lookup != nil {
		s.lookup = c.lookup(what+": lookup", d.Lookup)
	}
	if d.Choose != nil {
		s.choose = c.choose(what+": choose", d.Choose)
	}
	if d.Derive != nil {
		s.derive = c.derive(what+": derive", d.Derive)
	}
	if d.Check == "" && d.Transition == nil && d.Lookup == nil && d.Choose == nil && d.Derive == nil && len(d.Set)+len(d.Require) == 0 {
		c.check(what, errors.New("does nothing; give it set, require, check, transition, lookup, choose, derive, position or total"))
	}
	c.p.steps = append(c.p.steps, s)
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// pair matches a field of another table with an expression over ours.
type pair struct {
	theirs *catalog.Field
	ours   *expression
}

func (c *compiler) pairs(what string, t *catalog.Table, m map[string]string) []pair {
	var list []pair
	for _, name := range sorted(m) {
		if f := c.field(what, t, name); f != nil {
			list = append(list, pair{theirs: f, ours: c.expr(what+": "+name, m[name])})
		}
	}
	if len(list) == 0 {
		c.check(what, errors.New("match names no field"))
	}
	return list
}

// copied is a field of ours that takes the value of column col of a found record.
type copied struct {
	ours *catalog.Field
	col  int
}

// copies adds the fields of theirs that set reads to fields and returns where to find them.
func (c *compiler) copies(what string, t *catalog.Table, set map[string]string, fields *[]string) []copied {
	var list []copied
	for _, name := range sorted(set) {
		ours := c.field(what, c.table, name)
		theirs := c.field(what, t, set[name])
		if ours == nil || theirs == nil {
			continue
		}
		*fields = append(*fields, theirs.Name)
		list = append(list, copied{ours: ours, col: len(*fields) - 1})
	}
	return list
}
