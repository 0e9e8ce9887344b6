package rule

import (
	"context"
	"slices"

	"weir/internal/catalog"
	"weir/internal/record"
)

// lookup copies fields of one record of another table. One query serves the whole set.
type lookup struct {
	table  *catalog.Table
	match  []pair
	fields []string // what is read: the match fields, then the copied ones
	copies []copied
	none   bool // no record is an error
	many   bool // several records are an error
}

func (c *compiler) lookup(what string, d *catalog.LookupDef) *lookup {
	t := c.other(what, d.Table)
	if t == nil {
		return nil
	}
	l := &lookup{table: t, match: c.pairs(what, t, d.Match), none: d.None == "error", many: d.Many == "error"}
	for _, p := range l.match {
		l.fields = append(l.fields, p.theirs.Name)
	}
	l.copies = c.copies(what+": set", t, d.Set, &l.fields)
	c.oneOf(what+": none", d.None, "ignore", "error")
	c.oneOf(what+": many", d.Many, "first", "error")
	return l
}

func (c *compiler) oneOf(what, value string, allowed ...string) {
	if value != "" && !slices.Contains(allowed, value) {
		c.check(what, record.Errorf(record.Invalid, "", "%q is not one of %v", value, allowed))
	}
}

// wanted evaluates the match expressions of a row; ok is false if one of them is empty or fails.
func (r *run) wanted(s *step, match []pair, row *Row) (values []record.Value, ok bool) {
	values = make([]record.Value, len(match))
	ok = true
	for i, p := range match {
		x, err := r.eval(p.ours, row)
		if err == nil {
			values[i], err = fieldValue(p.theirs, x)
		}
		if err != nil {
			row.Err = r.failed(p.ours, s.name, err)
			return nil, false
		}
		ok = ok && !values[i].Empty()
	}
	return values, ok
}

func textKey(values []record.Value) string {
	if len(values) == 1 {
		return values[0].Text()
	}
	var b []byte
	for _, v := range values {
		b = append(v.AppendText(b), 0)
	}
	return string(b)
}

// among is a condition that all wanted records satisfy: each match field is among the values wanted for it. With several
// match fields it may find more, which the caller sorts out by key.
func among(match []pair, wanted [][]record.Value, orEmpty bool) *record.Expr {
	conds := make([]*record.Expr, len(match))
	for i, p := range match {
		seen := map[string]bool{}
		in := &record.Expr{Op: record.In, Args: []*record.Expr{record.F(p.theirs.Name)}}
		for _, w := range wanted {
			if v := w[i]; !v.Empty() && !seen[v.Text()] {
				seen[v.Text()] = true
				in.Values = append(in.Values, v)
			}
		}
		conds[i] = in
		if orEmpty {
			conds[i] = record.AnyOf(in, &record.Expr{Op: record.IsEmpty, Args: []*record.Expr{record.F(p.theirs.Name)}})
		}
	}
	return record.AllOf(conds...)
}

func (r *run) lookup(ctx context.Context, s *step, rows []*Row) error {
	l := s.lookup
	wanted := make([][]record.Value, 0, len(rows))
	keys := make([]string, len(rows))
	for i, row := range rows {
		if values, ok := r.wanted(s, l.match, row); ok {
			wanted = append(wanted, values)
			keys[i] = textKey(values)
		}
	}
	found := map[string][][]record.Value{}
	if len(wanted) > 0 {
		result, err := r.env.Data.Find(ctx, l.table, l.fields, among(l.match, wanted, false))
		if err != nil {
			return err
		}
		for i := range result.Len() {
			values := result.At(i)
			key := textKey(values[:len(l.match)])
			found[key] = append(found[key], values)
		}
	}
	for i, row := range rows {
		if row.Err != nil {
			continue
		}
		var hits [][]record.Value
		if keys[i] != "" {
			hits = found[keys[i]]
		}
		switch {
		case len(hits) == 0 && l.none && s.message != "":
			reject(row, s, s.field, "%s", s.message)
		case len(hits) == 0 && l.none:
			reject(row, s, s.field, "no %s is found for it", l.table.Label)
		case len(hits) > 1 && l.many:
			reject(row, s, s.field, "%d records of %s fit it", len(hits), l.table.Label)
		case len(hits) > 0 && row.New != nil:
			copyFields(row, l.copies, hits[0])
		}
	}
	return nil
}

func copyFields(row *Row, copies []copied, from []record.Value) {
	for _, c := range copies {
		v := from[c.col]
		if v.Form != record.Null {
			// A copy may change the type, integer to text say.
			if cast, err := record.Parse(c.ours.Type, v.Text()); err == nil {
				v = cast
			}
		}
		row.New[c.ours.Index] = v
	}
}
