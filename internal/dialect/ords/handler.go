package ords

import (
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// headerField is a header of an answer.
type headerField = wire.HeaderField

// handler is a SQL endpoint as requests see it, worked out once for a snapshot.
type handler struct {
	def      *catalog.Endpoint
	segments []segment
	slash    bool   // its path ends with one
	pattern  string // base path and pattern of its template
}

func compile(e *catalog.Endpoint) *handler {
	h := &handler{def: e, pattern: e.SQL.Base + e.SQL.Pattern}
	if e.SQL.Pattern == "." {
		h.pattern = e.SQL.Base
	}
	h.segments, h.slash = parsePattern(e.SQL.Base, e.SQL.Pattern)
	return h
}

func (q *request) decodeHandler(h *handler, values []string, slash bool) (*dialect.Exchange, error) {
	return nil, record.Errorf(record.Unavailable, "", "not yet")
}

// allowed answers OPTIONS.
func allowed(allow []string) *dialect.Exchange { return nil }
