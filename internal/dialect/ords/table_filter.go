package ords

import "weir/internal/record"

// filter reads the parameter q (protocol notes, section 9).
func (q *tableCall) filter() (*record.Expr, []record.Sort, error) {
	text, ok := q.query.get("q")
	if !ok || text == "" {
		return nil, nil, nil
	}
	f, err := parseFilter(text, q.opt.MaxConditions, func(name string) (filterColumn, bool) {
		col := q.Column(name)
		if col == nil {
			return filterColumn{}, false
		}
		return filterColumn{Path: col.Field.Name, Type: col.Field.Type}, true
	})
	if err != nil {
		return nil, nil, err
	}
	return f.where, f.sort, nil
}
