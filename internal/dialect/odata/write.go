package odata

import "weir/internal/dialect"

// write is the exchange of a POST, PUT, PATCH, MERGE or DELETE.
func (q *request) write(t *target) (*dialect.Exchange, error) { return nil, noPath(q.rest) }
