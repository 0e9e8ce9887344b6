package odata

import "weir/internal/dialect"

func (q *request) invoke(t *target) (*dialect.Exchange, error) { return nil, noPath("") }
