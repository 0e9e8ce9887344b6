package odata

import "weir/internal/dialect"

// read is the exchange of a GET.
func (q *request) read(t *target) (*dialect.Exchange, error) { return nil, noPath(q.rest) }
