package odata

import (
	"strconv"

	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// json2 is the JSON of V2 (protocol notes, section 3), on one line.
type json2 struct{}

const contentJSON2 = "application/json;charset=utf-8"

func (json2) xml() bool { return false }

func (json2) begin(a *wire.Answer) {
	a.Header.Add("Content-Type", contentJSON2)
	a.Body = append(a.Body, `{"d":`...)
}

func (f json2) feed(q *request, a *wire.Answer, n *node, total int64, next func() string) {
	f.begin(a)
	a.Body = append(a.Body, `{"results":[`...)
	e := encoder2{base: q.jsonAddress()}
	start := len(a.Body)
	for i := 0; ; i++ {
		row, ok := n.next()
		if !ok {
			break
		}
		if i > 0 {
			a.Body = append(a.Body, ',')
		}
		a.Body = e.entity(a.Body, n, row, i)
		if !q.wrote(a, n, start, i) {
			return
		}
	}
	a.Body = append(a.Body, ']')
	f.end(a, total, next())
	a.Body = append(a.Body, '}')
}

// end closes an object with results.
func (json2) end(a *wire.Answer, total int64, next string) {
	if total >= 0 {
		a.Body = append(a.Body, `,"__count":"`...)
		a.Body = append(strconv.AppendInt(a.Body, total, 10), '"')
	}
	if next != "" {
		a.Body = append(a.Body, `,"__next":`...)
		a.Body = wire.AppendQuote(a.Body, next)
	}
	a.Body = append(a.Body, '}')
}

func (f json2) entry(q *request, a *wire.Answer, n *node, i int) {
	f.begin(a)
	e := encoder2{base: q.jsonAddress()}
	a.Body = e.entity(a.Body, n, n.rows.At(i), i)
	a.Body = append(a.Body, '}')
}

// encoder2 writes entities.
type encoder2 struct {
	base string // address of the service root, as it stands in a text
}

func (e *encoder2) entity(dst []byte, n *node, row []record.Value, i int) []byte {
	s := n.shape
	dst = append(dst, `{"__metadata":{"id":"`...)
	at := len(dst)
	dst = append(dst, e.base...)
	dst = s.appendRowPath(dst, v2, row)
	end := len(dst)
	dst = append(dst, `","uri":"`...)
	dst = append(dst, dst[at:end]...)
	dst = append(dst, `","type":"`...)
	dst = append(dst, s.name...)
	dst = append(dst, '"')
	if s.etag >= 0 && !row[s.etag].IsNull() {
		dst = append(dst, `,"etag":`...)
		dst = appendJSONETag(dst, v2, s.set.Type.ETag, row[s.etag])
	}
	dst = append(dst, '}')
	for k := range s.props {
		dst = e.prop(dst, &s.props[k], row)
	}
	for k := range n.branch {
		b := &n.branch[k]
		if b.bare != nil && b.bare[i] {
			dst = deferred2(dst, s, b.exp.nav, at, end)
			continue
		}
		dst = append(dst, s.nav[b.exp.nav.Index]...)
		if !b.exp.nav.Many {
			if len(b.of[i]) == 0 {
				dst = append(dst, "null"...)
			} else {
				r := int(b.of[i][0])
				dst = e.entity(dst, b.node, b.node.rows.At(r), r)
			}
			continue
		}
		dst = append(dst, `{"results":[`...)
		for j, r := range b.of[i] {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = e.entity(dst, b.node, b.node.rows.At(int(r)), int(r))
		}
		dst = append(dst, "]}"...)
	}
	for _, nav := range s.navs {
		dst = deferred2(dst, s, nav, at, end)
	}
	return append(dst, '}')
}

// deferred2 writes the address of a navigation property that is not expanded; that of the entity stands in dst[at:end].
func deferred2(dst []byte, s *shape, nav *edm.Nav, at, end int) []byte {
	dst = append(dst, s.nav[nav.Index]...)
	dst = append(dst, `{"__deferred":{"uri":"`...)
	dst = append(dst, dst[at:end]...)
	dst = append(dst, '/')
	dst = append(dst, nav.Name...)
	return append(dst, `"}}`...)
}

func (e *encoder2) prop(dst []byte, p *shapeProp, row []record.Value) []byte {
	dst = append(dst, p.json...)
	if p.col >= 0 {
		return appendJSON2(dst, p.prop, row[p.col])
	}
	dst = append(dst, `{"__metadata":{"type":"`...)
	dst = append(dst, p.typ...)
	dst = append(dst, `"}`...)
	for k := range p.parts {
		dst = e.prop(dst, &p.parts[k], row)
	}
	return append(dst, '}')
}

func (f json2) property(q *request, a *wire.Answer, of *edm.Set, p *edm.Property, values []record.Value) {
	f.begin(a)
	a.Body = append(a.Body, '{')
	a.Body = wire.AppendQuote(a.Body, p.Name)
	a.Body = append(a.Body, ':')
	if p.Kind == edm.ComplexKind {
		a.Body = f.complex(q, a.Body, p.Complex.Name, p.Parts, values)
	} else {
		a.Body = appendJSON2(a.Body, p, values[0])
	}
	a.Body = append(a.Body, "}}"...)
}

// complex writes a complex value.
func (json2) complex(q *request, dst []byte, name string, parts []*edm.Property, values []record.Value) []byte {
	dst = append(dst, `{"__metadata":{"type":`...)
	dst = append(wire.AppendQuote(dst, q.svc.Schema+"."+name), '}')
	for i, part := range parts {
		dst = append(dst, ',')
		dst = append(wire.AppendQuote(dst, part.Name), ':')
		dst = appendJSON2(dst, part, values[i])
	}
	return append(dst, '}')
}

func (f json2) links(q *request, a *wire.Answer, n *node, single bool, total int64, next func() string) {
	f.begin(a)
	base := q.jsonAddress()
	if !single {
		a.Body = append(a.Body, `{"results":[`...)
	}
	start := len(a.Body)
	for i := 0; ; i++ {
		row, ok := n.next()
		if !ok {
			break
		}
		if i > 0 {
			a.Body = append(a.Body, ',')
		}
		a.Body = append(append(a.Body, `{"uri":"`...), base...)
		a.Body = append(n.shape.appendRowPath(a.Body, v2, row), `"}`...)
		if single {
			break
		}
		if !q.wrote(a, n, start, i) {
			return
		}
	}
	if !single {
		a.Body = append(a.Body, ']')
		f.end(a, total, next())
	}
	a.Body = append(a.Body, '}')
}

func (f json2) result(q *request, a *wire.Answer, fn *edm.Function, values []record.Value) {
	f.begin(a)
	if fn.Collection {
		a.Body = append(a.Body, `{"results":[`...)
		a.Body = eachResult(a.Body, fn, values, func(dst []byte, v []record.Value) []byte { return f.value(q, dst, fn, v) }, ",")
		a.Body = append(a.Body, "]}}"...)
		return
	}
	a.Body = append(a.Body, '{')
	a.Body = append(wire.AppendQuote(a.Body, fn.Name), ':')
	if len(values) == 0 {
		a.Body = append(a.Body, "null"...)
	} else {
		a.Body = f.value(q, a.Body, fn, values)
	}
	a.Body = append(a.Body, "}}"...)
}

func (f json2) value(q *request, dst []byte, fn *edm.Function, values []record.Value) []byte {
	if fn.Complex != nil {
		return f.complex(q, dst, fn.Complex.Name, fn.Complex.Properties, values)
	}
	return appendJSON2(dst, &edm.Property{Kind: fn.Kind, Nullable: true}, values[0])
}

// eachResult calls write for each value that a function returned, with sep between them.
func eachResult(dst []byte, fn *edm.Function, values []record.Value, write func([]byte, []record.Value) []byte, sep string) []byte {
	width := 1
	if fn.Complex != nil {
		width = len(fn.Complex.Properties)
	}
	for i := 0; i+width <= len(values); i += width {
		if i > 0 {
			dst = append(dst, sep...)
		}
		dst = write(dst, values[i:i+width])
	}
	return dst
}
