package rule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Position numbers new records within the one that they belong to. The engine does it, when all other rules have run.
type Position struct {
	Rule   string
	Of     *catalog.Table // whose records are numbered: the one that defines the rule
	Field  *catalog.Field
	Within *catalog.Field
	Table  *catalog.Table // that Within refers to
	step   int64
	digits int
}

// Next is the value after last, which is empty when there is none yet.
func (p *Position) Next(last record.Value) (record.Value, *record.Error) {
	var n int64
	switch last.Form {
	case record.Int:
		n = last.N
	case record.Text:
		var err error
		if n, err = strconv.ParseInt(last.S, 10, 64); last.S != "" && err != nil {
			return record.Value{}, p.spent(last)
		}
	}
	if n+p.step < n {
		return record.Value{}, p.spent(last)
	}
	n += p.step
	if p.Field.Type == record.TypeInteger {
		return record.IntValue(n), nil
	}
	digits := strconv.FormatInt(n, 10)
	if len(digits) > p.digits {
		return record.Value{}, p.spent(last)
	}
	return record.TextValue(strings.Repeat("0", p.digits-len(digits)) + digits), nil
}

func (p *Position) spent(last record.Value) *record.Error {
	err := record.Errorf(record.Rejected, p.Field.Name, "there is no number after %.40s", last.Text())
	err.Rule = p.Rule
	return err
}

// Total keeps sums over records in the one that they belong to. The engine does it, after the write.
type Total struct {
	Of     *catalog.Table // whose records are added up: the one that defines the rule
	In     *catalog.Field
	Table  *catalog.Table   // that In refers to
	Theirs []*catalog.Field // that hold the sums
	Ours   []*catalog.Field // that are added up
}

// Values are the sums as they are kept: of what the database added up, nil when there was nothing.
func (t *Total) Values(sums []record.Value) ([]record.Value, error) {
	values := make([]record.Value, len(t.Theirs))
	for i, f := range t.Theirs {
		text := "0"
		if i < len(sums) && !sums[i].IsNull() {
			text = sums[i].Text()
		}
		var err error
		if values[i], err = record.Parse(f.Type, text); err != nil {
			return nil, fmt.Errorf("sum of %s: %w", t.Ours[i].Name, err)
		}
	}
	return values, nil
}

// Positions are the numbers within other records that new records of the table get.
func (p *Program) Positions() []*Position { return p.positions }

// Totals are the sums over records of this table that are kept in others.
func (p *Program) Totals() []*Total { return p.totals }

// belonging compiles a rule that is a position or a total.
func (c *compiler) belonging(what string, d *catalog.RuleDef) {
	if len(d.On) > 0 || d.When != "" {
		c.check(what, errors.New("on and when do not apply"))
	}
	other := d.Check != "" || d.Transition != nil || d.Lookup != nil || d.Choose != nil || d.Derive != nil || len(d.Set)+len(d.Require) > 0
	if other || d.Position != nil && d.Total != nil {
		c.check(what, errors.New("a position, and a total, is a rule of its own"))
	}
	if d.Position != nil {
		c.position(what+": position", d.Name, d.Position)
	}
	if d.Total != nil {
		c.total(what+": total", d.Total)
	}
}

// owner is the field of ours that refers to the record that ours belong to, with its table.
func (c *compiler) owner(what, name string) (*catalog.Field, *catalog.Table) {
	f := c.field(what, c.table, name)
	if f == nil {
		return nil, nil
	}
	if f.Type != record.TypeReference {
		c.check(what, fmt.Errorf("%s is no reference", name))
		return nil, nil
	}
	return f, c.other(what, f.Reference)
}

func (c *compiler) position(what, name string, d *catalog.PositionDef) {
	p := &Position{Rule: name, step: max(d.Step, 1), digits: d.Digits, Of: c.defining(func(r *catalog.RuleDef) bool { return r.Position == d })}
	p.Field = c.field(what+": field", c.table, d.Field)
	p.Within, p.Table = c.owner(what+": within", d.Within)
	if p.Field == nil || p.Table == nil {
		return
	}
	switch {
	case d.Step < 0:
		c.check(what, errors.New("step is less than 1"))
	case p.Field.Type == record.TypeInteger:
	case p.Field.Type != record.TypeString:
		c.check(what, fmt.Errorf("%s is neither an integer nor a text", d.Field))
	case d.Digits < 1 || d.Digits > 19 || p.Field.MaxLength > 0 && d.Digits > p.Field.MaxLength:
		// Texts of one length alone are in the order of their numbers.
		c.check(what, fmt.Errorf("digits: %s is a text, which needs from 1 to 19, and no more than it may have characters", d.Field))
	}
	c.p.positions = append(c.p.positions, p)
}

func (c *compiler) total(what string, d *catalog.TotalDef) {
	t := &Total{Of: c.defining(func(r *catalog.RuleDef) bool { return r.Total == d })}
	if t.In, t.Table = c.owner(what+": in", d.In); t.Table == nil {
		return
	}
	if len(d.Set) == 0 {
		c.check(what, errors.New("set names no field"))
	}
	for _, name := range sorted(d.Set) {
		theirs, ours := c.field(what+": set", t.Table, name), c.field(what+": set", c.table, d.Set[name])
		if theirs == nil || ours == nil {
			continue
		}
		whole := ours.Type == record.TypeInteger
		if !whole && ours.Type != record.TypeDecimal || theirs.Type != ours.Type && !(whole && theirs.Type == record.TypeDecimal) {
			c.check(what, fmt.Errorf("set: the sum of %s (%s) does not fit %s (%s)", ours.Name, ours.Type, theirs.Name, theirs.Type))
		}
		t.Theirs, t.Ours = append(t.Theirs, theirs), append(t.Ours, ours)
	}
	if c.leadsBack(t.Table, map[string]bool{}) {
		c.check(what, errors.New("in: these sums go round in a circle"))
	}
	c.p.totals = append(c.p.totals, t)
}

// defining is the highest table of the hierarchy that has the rule.
func (c *compiler) defining(is func(*catalog.RuleDef) bool) *catalog.Table {
	top := c.table
	for _, name := range c.table.Parents {
		t, err := c.snap.Table(name)
		if err != nil || !slices.ContainsFunc(t.Rules, func(r catalog.RuleDef) bool { return is(&r) }) {
			break
		}
		top = t
	}
	return top
}

// leadsBack reports whether totals kept in t are added up, over any number of tables, in the table at hand.
func (c *compiler) leadsBack(t *catalog.Table, seen map[string]bool) bool {
	if t.Root == c.table.Root {
		return true
	}
	if seen[t.Name] {
		return false
	}
	seen[t.Name] = true
	for _, name := range t.Classes {
		class, err := c.snap.Table(name)
		if err != nil {
			continue
		}
		for i := range class.Rules {
			d := class.Rules[i].Total
			if d == nil || class.Field(d.In) == nil {
				continue
			}
			if next, err := c.snap.Table(class.Field(d.In).Reference); err == nil && c.leadsBack(next, seen) {
				return true
			}
		}
	}
	return false
}
