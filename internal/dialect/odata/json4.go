package odata

import (
	"strconv"
	"strings"

	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// json4 is the JSON of V4 (protocol notes, section 9; OData JSON Format 4.01).
type json4 struct {
	meta  metadata
	texts bool // IEEE754Compatible=true: Int64 and Decimal are texts
	short bool // 4.01: names of annotations without "odata."
	at    string
}

// metadata is how much an answer of V4 says of itself.
type metadata uint8

const (
	minimal metadata = iota
	none
	full
)

// jsons4 are all kinds of json4, so that choosing one allocates nothing.
var jsons4 = func() (list [3][2][2]json4) {
	for m := range list {
		for t := range list[m] {
			for s := range list[m][t] {
				at := "@odata."
				if s == 1 {
					at = "@"
				}
				list[m][t][s] = json4{metadata(m), t == 1, s == 1, at}
			}
		}
	}
	return list
}()

func jsonOf4(m metadata, texts, short bool) *json4 {
	t, s := 0, 0
	if texts {
		t = 1
	}
	if short {
		s = 1
	}
	return &jsons4[m][t][s]
}

func (*json4) xml() bool { return false }

var contentJSON4 = [3][2]string{
	minimal: {"application/json;odata.metadata=minimal", "application/json;odata.metadata=minimal;IEEE754Compatible=true"},
	none:    {"application/json;odata.metadata=none", "application/json;odata.metadata=none;IEEE754Compatible=true"},
	full:    {"application/json;odata.metadata=full", "application/json;odata.metadata=full;IEEE754Compatible=true"},
}

func (f *json4) content(a *wire.Answer) {
	t := 0
	if f.texts {
		t = 1
	}
	a.Header.Add("Content-Type", contentJSON4[f.meta][t])
}

// annotation begins an annotation of an object or, with a name, of a property: "Name@odata.count":.
func (f *json4) annotation(dst []byte, name, term string) []byte {
	dst = append(append(dst, '"'), name...)
	dst = append(append(dst, f.at...), term...)
	return append(dst, `":`...)
}

// context writes the annotation that says what the answer is, the fragment after $metadata#. Its address is relative to that of the
// call, as clients resolve it. It is nothing without metadata, else a comma follows.
func (f *json4) context(q *request, dst []byte, fragment []byte) []byte {
	if f.meta == none {
		return dst
	}
	dst = f.annotation(dst, "", "context")
	dst = append(dst, '"')
	if f.meta == full {
		dst = append(dst, q.jsonAddress()...)
	} else {
		for range strings.Count(q.rest, "/") {
			dst = append(dst, "../"...)
		}
	}
	dst = append(dst, "$metadata"...)
	if len(fragment) > 0 {
		dst = append(dst, '#')
		at := len(dst)
		dst = wire.AppendQuote(dst, fragment)
		dst = append(dst[:at], dst[at+1:len(dst)-1]...)
	}
	return append(dst, `",`...)
}

// fragment is what the context says of the entities of n: ProductSet(ProductID,ToSupplier(CompanyName)).
func fragment(n *node) []byte {
	dst := append(make([]byte, 0, 64), n.shape.set.Name...)
	return appendSelection(dst, n, nil)
}

// appendSelection appends the list of what is selected and expanded, in brackets; nothing if that is all properties and no
// navigation, unless exp, which the entities belong to, is one of that list. A plus stands for levels that repeat.
func appendSelection(dst []byte, n *node, exp *expansion) []byte {
	at := len(dst)
	dst = append(append(dst, '('), n.shape.select4...)
	for i := range n.branch {
		e := n.branch[i].exp
		if e.only || e.refs || exp != nil && exp.depth != 0 && e.nav == exp.nav {
			continue
		}
		if dst[len(dst)-1] != '(' {
			dst = append(dst, ',')
		}
		dst = append(dst, e.nav.Name...)
		if e.depth != 0 {
			dst = append(dst, '+')
		}
		dst = appendSelection(dst, n.branch[i].node, e)
	}
	if len(dst) == at+1 && exp == nil {
		return dst[:at]
	}
	return append(dst, ')')
}

func (f *json4) feed(q *request, a *wire.Answer, n *node, total int64, next func() string) {
	f.content(a)
	a.Body = f.context(q, append(a.Body, '{'), fragment(n))
	a.Body = f.count(a.Body, total)
	a.Body = append(a.Body, `"value":[`...)
	e := f.encoder(q)
	start := len(a.Body)
	for i := 0; ; i++ {
		row, ok := n.next()
		if !ok {
			break
		}
		if i > 0 {
			a.Body = append(a.Body, ',')
		}
		a.Body = append(e.members(append(a.Body, '{'), n, row, i), '}')
		if !q.wrote(a, n, start, i) {
			return
		}
	}
	a.Body = f.end(a.Body, next())
}

// count writes the number of entities if it is asked for; a comma follows.
func (f *json4) count(dst []byte, total int64) []byte {
	if total < 0 {
		return dst
	}
	dst = f.annotation(dst, "", "count")
	return append(strconv.AppendInt(dst, total, 10), ',')
}

// end closes an object with an array of values.
func (f *json4) end(dst []byte, next string) []byte {
	dst = append(dst, ']')
	if next != "" {
		dst = f.annotation(append(dst, ','), "", "nextLink")
		dst = wire.AppendQuote(dst, next)
	}
	return append(dst, '}')
}

func (f *json4) entry(q *request, a *wire.Answer, n *node, i int) {
	f.content(a)
	a.Body = f.context(q, append(a.Body, '{'), append(fragment(n), "/$entity"...))
	e := f.encoder(q)
	a.Body = closed(e.members(a.Body, n, n.rows.At(i), i))
}

func (f *json4) encoder(q *request) encoder4 {
	e := encoder4{f: f}
	if f.meta == full {
		e.base = q.jsonAddress()
	}
	return e
}

// encoder4 writes entities.
type encoder4 struct {
	f    *json4
	base string // address of the service root; with full metadata only
}

// comma appends a comma unless an object has just begun or a member before ended with one.
func comma(dst []byte) []byte {
	if c := dst[len(dst)-1]; c == '{' || c == ',' {
		return dst
	}
	return append(dst, ',')
}

// closed ends an object, whose last member may have ended with a comma.
func closed(dst []byte) []byte {
	if n := len(dst) - 1; dst[n] == ',' {
		dst[n] = '}'
		return dst
	}
	return append(dst, '}')
}

// named begins a member whose name is quoted with a comma before it.
func named(dst []byte, json string) []byte {
	if c := dst[len(dst)-1]; c == '{' || c == ',' {
		json = json[1:]
	}
	return append(dst, json...)
}

// members writes the members of an entity without the braces around them.
func (e *encoder4) members(dst []byte, n *node, row []record.Value, i int) []byte {
	s, f := n.shape, e.f
	at, end := 0, 0
	if f.meta == full {
		dst = f.annotation(comma(dst), "", "type")
		dst = append(append(append(dst, `"#`...), s.name...), `",`...)
		dst = f.annotation(dst, "", "id")
		dst = append(dst, '"')
		at = len(dst)
		dst = append(dst, e.base...)
		dst = s.appendRowPath(dst, v4, row)
		end = len(dst)
		dst = append(dst, '"')
	}
	if s.etag >= 0 && f.meta != none && !row[s.etag].IsNull() {
		dst = f.annotation(comma(dst), "", "etag")
		dst = appendJSONETag(dst, v4, s.set.Type.ETag, row[s.etag])
	}
	if f.meta == full {
		dst = f.annotation(comma(dst), "", "editLink")
		dst = append(dst, '"')
		dst = append(dst, dst[at:end]...)
		dst = append(dst, '"')
	}
	if n.cids != nil && n.cids[i] != "" {
		dst = append(comma(dst), `"@Core.ContentID":`...)
		dst = wire.AppendQuote(dst, n.cids[i])
	}
	for k := range s.props {
		dst = e.prop(dst, &s.props[k], row)
	}
	for k := range n.branch {
		if b := &n.branch[k]; b.bare == nil || !b.bare[i] {
			dst = e.branch(dst, s, b, i)
		}
	}
	if f.meta == full {
		for _, nav := range s.navs {
			dst = f.annotation(comma(dst), nav.Name, "navigationLink")
			dst = append(dst, '"')
			dst = append(dst, dst[at:end]...)
			dst = append(append(append(dst, '/'), nav.Name...), '"')
		}
	}
	return dst
}

// branch writes what is expanded of entity i.
func (e *encoder4) branch(dst []byte, s *shape, b *branch, i int) []byte {
	nav, f := b.exp.nav, e.f
	if b.totals != nil {
		dst = f.annotation(comma(dst), nav.Name, "count")
		dst = strconv.AppendInt(dst, b.totals[i], 10)
		if b.exp.only {
			return dst
		}
	}
	dst = named(dst, s.nav[nav.Index])
	if !nav.Many {
		if len(b.of[i]) == 0 {
			return append(dst, "null"...)
		}
		return e.object(dst, b, int(b.of[i][0]))
	}
	dst = append(dst, '[')
	for j, r := range b.of[i] {
		if j > 0 {
			dst = append(dst, ',')
		}
		dst = e.object(dst, b, int(r))
	}
	return append(dst, ']')
}

// object writes entity r of what is expanded.
func (e *encoder4) object(dst []byte, b *branch, r int) []byte {
	dst = append(dst, '{')
	row := b.node.rows.At(r)
	if b.exp.refs {
		return append(e.f.ref(dst, e.base, b.node.shape, row), '}')
	}
	return append(e.members(dst, b.node, row, r), '}')
}

// ref writes the address of an entity, which without a base is relative to the context.
func (f *json4) ref(dst []byte, base string, s *shape, row []record.Value) []byte {
	dst = f.annotation(dst, "", "id")
	dst = append(append(dst, '"'), base...)
	return append(s.appendRowPath(dst, v4, row), '"')
}

func (e *encoder4) prop(dst []byte, p *shapeProp, row []record.Value) []byte {
	if p.col >= 0 {
		v := row[p.col]
		if e.f.meta == full {
			dst = e.f.typed(dst, p.prop.Name, p.prop.Kind, v)
		}
		return appendJSON4(named(dst, p.json), p.prop, v, e.f.texts)
	}
	dst = append(named(dst, p.json), '{')
	if e.f.meta == full {
		dst = e.f.annotation(dst, "", "type")
		dst = append(append(append(dst, `"#`...), p.typ...), '"')
	}
	for k := range p.parts {
		dst = e.prop(dst, &p.parts[k], row)
	}
	return append(dst, '}')
}

// typed writes the type of a value whose JSON does not tell it.
func (f *json4) typed(dst []byte, name string, k edm.Kind, v record.Value) []byte {
	if v.IsNull() || k == edm.String || k == edm.Boolean || k == edm.Double {
		return dst
	}
	dst = f.annotation(comma(dst), name, "type")
	return append(append(append(dst, `"#`...), kindNames[k]...), '"')
}

// property of V4 is a value under its context; a null one is no content, which is the caller's to say.
func (f *json4) property(q *request, a *wire.Answer, _ *edm.Set, p *edm.Property, values []record.Value) {
	f.content(a)
	a.Body = f.context(q, append(a.Body, '{'), []byte(q.rest))
	if p.Kind == edm.ComplexKind {
		a.Body = closed(f.parts(a.Body, p.Parts, values))
		return
	}
	a.Body = appendJSON4(append(a.Body, `"value":`...), p, values[0], f.texts)
	a.Body = append(a.Body, '}')
}

// parts writes the members of a complex value.
func (f *json4) parts(dst []byte, parts []*edm.Property, values []record.Value) []byte {
	for i, part := range parts {
		dst = append(wire.AppendQuote(comma(dst), part.Name), ':')
		dst = appendJSON4(dst, part, values[i], f.texts)
	}
	return dst
}

func (f *json4) links(q *request, a *wire.Answer, n *node, single bool, total int64, next func() string) {
	f.content(a)
	base := q.jsonAddress()
	if single {
		a.Body = f.context(q, append(a.Body, '{'), []byte("$ref"))
		if row, ok := n.next(); ok {
			a.Body = f.ref(a.Body, base, n.shape, row)
		}
		a.Body = closed(a.Body)
		return
	}
	a.Body = f.context(q, append(a.Body, '{'), []byte("Collection($ref)"))
	a.Body = f.count(a.Body, total)
	a.Body = append(a.Body, `"value":[`...)
	start := len(a.Body)
	for i := 0; ; i++ {
		row, ok := n.next()
		if !ok {
			break
		}
		if i > 0 {
			a.Body = append(a.Body, ',')
		}
		a.Body = append(f.ref(append(a.Body, '{'), base, n.shape, row), '}')
		if !q.wrote(a, n, start, i) {
			return
		}
	}
	a.Body = f.end(a.Body, next())
}

func (f *json4) result(q *request, a *wire.Answer, fn *edm.Function, values []record.Value) {
	f.content(a)
	name := kindName(v4, fn.Kind)
	if fn.Complex != nil {
		name = q.svc.Schema + "." + fn.Complex.Name
	}
	if fn.Collection {
		a.Body = f.context(q, append(a.Body, '{'), []byte("Collection("+name+")"))
		a.Body = append(a.Body, `"value":[`...)
		a.Body = eachResult(a.Body, fn, values, func(dst []byte, v []record.Value) []byte {
			if fn.Complex == nil {
				return f.value(dst, fn, v)
			}
			return append(f.parts(append(dst, '{'), fn.Complex.Properties, v), '}')
		}, ",")
		a.Body = append(a.Body, "]}"...)
		return
	}
	a.Body = f.context(q, append(a.Body, '{'), []byte(name))
	switch {
	case fn.Complex != nil && len(values) > 0:
		a.Body = f.parts(a.Body, fn.Complex.Properties, values)
	case len(values) > 0:
		a.Body = f.value(append(a.Body, `"value":`...), fn, values)
	default:
		a.Body = append(a.Body, `"value":null`...)
	}
	a.Body = append(a.Body, '}')
}

func (f *json4) value(dst []byte, fn *edm.Function, values []record.Value) []byte {
	return appendJSON4(dst, &edm.Property{Kind: fn.Kind, Nullable: true}, values[0], f.texts)
}
