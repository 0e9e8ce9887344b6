package odata

import (
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// format writes what a version answers in one format: V2 JSON, Atom, V4 JSON. The methods append to the body and set the
// Content-Type; status and other headers are the caller's.
type format interface {
	// feed writes a collection; total is what $inlinecount or $count=true asks for, -1: not asked. next, called after the last
	// row, is the address of the following page or "".
	feed(q *request, a *wire.Answer, n *node, total int64, next func() string)
	// entry writes row i of n.
	entry(q *request, a *wire.Answer, n *node, i int)
	// property writes a property of one entity; a complex one has the values of its parts.
	property(q *request, a *wire.Answer, of *edm.Set, p *edm.Property, values []record.Value)
	// links writes the addresses of the entities of n; one alone if single.
	links(q *request, a *wire.Answer, n *node, single bool, total int64)
	// result writes the values that a function import returned, entities aside.
	result(q *request, a *wire.Answer, f *edm.Function, values []record.Value)
	// service writes the service document.
	service(q *request, a *wire.Answer)
	// xml reports whether errors are written as XML: beside Atom.
	xml() bool
}

// negotiate chooses the format of the answer: $format, else Accept. The error is a NotAcceptable.
func (q *request) negotiate() (format, error) { return nil, nil }
