package rule

import (
	"weir/internal/catalog"
	"weir/internal/record"
)

// derive writes a record of another table in the same atom.
type derive struct {
	table     *catalog.Table
	match     string
	values    []derivedValue
	result    *catalog.DeriveResult
	skipEmpty bool // what gives nothing is not written
}

type derivedValue struct {
	theirs *catalog.Field
	ours   *expression
}

func (c *compiler) derive(what string, d *catalog.DeriveDef) *derive {
	t := c.other(what, d.Table)
	if t == nil {
		return nil
	}
	dv := &derive{table: t, match: d.Match, result: d.Result, skipEmpty: d.SkipEmpty}
	if d.Match != "" {
		c.field(what+": match", t, d.Match)
	}
	if d.Result != nil {
		for _, name := range []string{d.Result.Key, d.Result.State} {
			if name != "" {
				c.field(what+": result", c.table, name)
			}
		}
	}
	for _, name := range sorted(d.Values) {
		if f := c.field(what+": values", t, name); f != nil {
			dv.values = append(dv.values, derivedValue{theirs: f, ours: c.expr(what+": "+name, d.Values[name])})
		}
	}
	return dv
}

func (r *run) derive(s *step, row *Row) {
	d := s.derive
	op := record.Op{Verb: record.Insert, Table: d.table.Name}
	if d.match != "" {
		op.Verb, op.Match = record.Upsert, []string{d.match}
	}
	for i := range d.values {
		dv := &d.values[i]
		x, err := r.eval(dv.ours, row)
		var v record.Value
		if err == nil {
			v, err = fieldValue(dv.theirs, x)
		}
		if err != nil {
			row.Err = r.failed(dv.ours, s.name, err).At(dv.theirs.Name)
			return
		}
		if op.Verb == record.Upsert && dv.theirs.Name == d.match && v.Empty() {
			reject(row, s, d.match, "%s must not be empty, since it finds the record", dv.theirs.Label)
			return
		}
		if !v.IsNull() || op.Verb == record.Upsert && !(d.skipEmpty && v.Empty()) {
			op.Set = append(op.Set, record.Assign{Field: dv.theirs.Name, Value: v})
		}
	}
	row.Derive = append(row.Derive, Derived{Op: op, Result: d.result})
}
