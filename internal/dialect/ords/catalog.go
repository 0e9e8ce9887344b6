package ords

import "weir/internal/dialect"

// decodeReserved reads a call of what no endpoint or table can be called: catalogs. Nil is none of them.
func (q *request) decodeReserved() (*dialect.Exchange, error) { return nil, nil }
