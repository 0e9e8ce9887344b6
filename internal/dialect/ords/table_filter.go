package ords

import "weir/internal/record"

// filter reads the parameter q.
func (q *tableCall) filter() (*record.Expr, []record.Sort, error) {
	if q.query.Get("q") == "" {
		return nil, nil, nil
	}
	return nil, nil, record.Errorf(record.Invalid, "q", "it cannot be read yet")
}
