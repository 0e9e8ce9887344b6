package odata

import (
	"strconv"

	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// atom2 is Atom with the properties of V2 in it (protocol notes, section 3; OData V2, Atom format).
type atom2 struct{}

const (
	xmlHead    = `<?xml version="1.0" encoding="utf-8"?>`
	nsData     = "http://schemas.microsoft.com/ado/2007/08/dataservices"
	nsMetadata = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
	relRelated = "http://schemas.microsoft.com/ado/2007/08/dataservices/related/"
	scheme     = "http://schemas.microsoft.com/ado/2007/08/dataservices/scheme"

	spaces = ` xmlns="http://www.w3.org/2005/Atom" xmlns:m="` + nsMetadata + `" xmlns:d="` + nsData + `" xml:base="`

	contentFeed  = "application/atom+xml;type=feed;charset=utf-8"
	contentEntry = "application/atom+xml;type=entry;charset=utf-8"
	contentXML   = "application/xml;charset=utf-8"
)

func (atom2) xml() bool { return true }

// encoderX writes entities as Atom.
type encoderX struct {
	base    []byte // address of the service root, as it stands in XML
	updated []byte // when an entity without a time of its own was updated: now
}

func (q *request) encoderX() encoderX {
	return encoderX{
		base:    wire.AppendXMLText(nil, q.address()),
		updated: append(appendDateTime(nil, q.d.now().UTC().Unix()*1_000_000), 'Z'),
	}
}

func (f atom2) feed(q *request, a *wire.Answer, n *node, total int64, next func() string) {
	a.Header.Add("Content-Type", contentFeed)
	e := q.encoderX()
	dst := append(a.Body, xmlHead+"<feed"+spaces...)
	dst = append(append(dst, e.base...), `">`...)
	dst = append(append(append(dst, "<id>"...), e.base...), n.shape.set.Name...)
	dst = e.head(append(dst, "</id>"...), n.shape.set.Name)
	dst = append(dst, `<author><name/></author><link rel="self" title="`...)
	dst = append(append(dst, n.shape.set.Name...), `" href="`...)
	dst = append(wire.AppendXMLText(dst, q.rest), `"/>`...)
	if total >= 0 {
		dst = append(dst, "<m:count>"...)
		dst = append(strconv.AppendInt(dst, total, 10), "</m:count>"...)
	}
	a.Body = dst
	start := len(a.Body)
	for i := 0; ; i++ {
		row, ok := n.next()
		if !ok {
			break
		}
		a.Body = e.entity(a.Body, n, row, i, "<entry")
		if !q.wrote(a, n, start, i) {
			return
		}
	}
	if s := next(); s != "" {
		a.Body = append(a.Body, `<link rel="next" href="`...)
		a.Body = append(wire.AppendXMLText(a.Body, s), `"/>`...)
	}
	a.Body = append(a.Body, "</feed>"...)
}

// head writes title and time of a feed or an entry.
func (e *encoderX) head(dst []byte, title string) []byte {
	dst = append(append(dst, `<title type="text">`...), title...)
	dst = append(append(dst, "</title><updated>"...), e.updated...)
	return append(dst, "</updated>"...)
}

func (f atom2) entry(q *request, a *wire.Answer, n *node, i int) {
	a.Header.Add("Content-Type", contentEntry)
	e := q.encoderX()
	a.Body = append(a.Body, xmlHead...)
	a.Body = e.entity(a.Body, n, n.rows.At(i), i, "<entry"+spaces+string(e.base)+`"`)
}

// entity writes an entry; begin is its tag without the bracket at its end.
func (e *encoderX) entity(dst []byte, n *node, row []record.Value, i int, begin string) []byte {
	s := n.shape
	dst = append(dst, begin...)
	var version record.Value
	if s.etag >= 0 {
		version = row[s.etag]
	}
	if !version.IsNull() {
		var room [96]byte
		dst = append(dst, ` m:etag="`...)
		dst = wire.AppendXMLText(dst, string(appendETag(room[:0], v2, s.set.Type.ETag, version)))
		dst = append(dst, '"')
	}
	dst = append(append(dst, "><id>"...), e.base...)
	at := len(dst)
	dst = s.appendRowPath(dst, v2, row)
	end := len(dst)
	dst = append(dst, `</id><title type="text">`...)
	dst = append(dst, dst[at:end]...)
	dst = append(dst, "</title><updated>"...)
	if version.Form == record.Time {
		dst = append(appendDateTime(dst, version.N), 'Z')
	} else {
		dst = append(dst, e.updated...)
	}
	dst = append(dst, "</updated>"...)
	if len(begin) > len("<entry") {
		dst = append(dst, "<author><name/></author>"...)
	}
	dst = append(append(dst, `<category term="`...), s.name...)
	dst = append(dst, `" scheme="`+scheme+`"/><link rel="edit" title="`...)
	dst = append(append(dst, s.set.Type.Name...), `" href="`...)
	dst = append(append(dst, dst[at:end]...), `"/>`...)
	for k := range n.branch {
		b := &n.branch[k]
		dst = navLink(dst, b.exp.nav, at, end)
		if b.bare != nil && b.bare[i] {
			dst = append(dst, "/>"...)
			continue
		}
		dst = append(dst, "><m:inline>"...)
		dst = e.inline(dst, b, i, at, end)
		dst = append(dst, "</m:inline></link>"...)
	}
	for _, nav := range s.navs {
		dst = append(navLink(dst, nav, at, end), "/>"...)
	}
	dst = append(dst, `<content type="application/xml"><m:properties>`...)
	for k := range s.props {
		dst = e.prop(dst, &s.props[k], row)
	}
	return append(dst, "</m:properties></content></entry>"...)
}

// navLink begins the link of a navigation property of the entity whose address stands in dst[at:end].
func navLink(dst []byte, nav *edm.Nav, at, end int) []byte {
	dst = append(append(dst, `<link rel="`+relRelated...), nav.Name...)
	dst = append(dst, `" type="application/atom+xml;type=`...)
	if nav.Many {
		dst = append(dst, "feed"...)
	} else {
		dst = append(dst, "entry"...)
	}
	dst = append(append(dst, `" title="`...), nav.Name...)
	dst = append(append(dst, `" href="`...), dst[at:end]...)
	return append(append(append(dst, '/'), nav.Name...), '"')
}

// inline writes what is expanded of entity i.
func (e *encoderX) inline(dst []byte, b *branch, i, at, end int) []byte {
	nav := b.exp.nav
	if !nav.Many {
		if len(b.of[i]) == 0 {
			return dst
		}
		r := int(b.of[i][0])
		return e.entity(dst, b.node, b.node.rows.At(r), r, "<entry")
	}
	dst = append(append(dst, "<feed><id>"...), e.base...)
	dst = append(append(append(dst, dst[at:end]...), '/'), nav.Name...)
	dst = e.head(append(dst, "</id>"...), nav.Target.Name)
	for _, r := range b.of[i] {
		dst = e.entity(dst, b.node, b.node.rows.At(int(r)), int(r), "<entry")
	}
	return append(dst, "</feed>"...)
}

func (e *encoderX) prop(dst []byte, p *shapeProp, row []record.Value) []byte {
	if p.col >= 0 {
		return appendElement(dst, p.prop.Name, "", p.prop, row[p.col])
	}
	dst = append(append(dst, "<d:"...), p.prop.Name...)
	dst = append(append(append(dst, ` m:type="`...), p.typ...), `">`...)
	for k := range p.parts {
		dst = e.prop(dst, &p.parts[k], row)
	}
	return append(append(append(dst, "</d:"...), p.prop.Name...), '>')
}

// appendElement writes a value as an element of that name, which carries further attributes.
func appendElement(dst []byte, name, attributes string, p *edm.Property, v record.Value) []byte {
	dst = append(append(append(dst, "<d:"...), name...), attributes...)
	v = shown(p, v)
	if v.IsNull() {
		return append(dst, ` m:null="true"/>`...)
	}
	dst = append(dst, '>')
	if p.Kind == edm.String && v.Form == record.Text {
		dst = wire.AppendXMLText(dst, v.S)
	} else {
		var room [64]byte
		dst = wire.AppendXMLText(dst, string(appendRaw(room[:0], v2, p, v)))
	}
	return append(append(append(dst, "</d:"...), name...), '>')
}

const elementSpaces = ` xmlns:d="` + nsData + `" xmlns:m="` + nsMetadata + `"`

func (f atom2) property(q *request, a *wire.Answer, _ *edm.Set, p *edm.Property, values []record.Value) {
	a.Header.Add("Content-Type", contentXML)
	a.Body = append(a.Body, xmlHead...)
	if p.Kind != edm.ComplexKind {
		a.Body = appendElement(a.Body, p.Name, elementSpaces, p, values[0])
		return
	}
	a.Body = f.complex(q, a.Body, p.Name, elementSpaces, p.Complex.Name, p.Parts, values)
}

// complex writes a complex value as an element of that name.
func (atom2) complex(q *request, dst []byte, name, attributes, typ string, parts []*edm.Property, values []record.Value) []byte {
	dst = append(append(append(dst, "<d:"...), name...), attributes...)
	dst = append(append(append(append(dst, ` m:type="`...), q.svc.Schema...), '.'), typ...)
	dst = append(dst, `">`...)
	for i, part := range parts {
		dst = appendElement(dst, part.Name, "", part, values[i])
	}
	return append(append(append(dst, "</d:"...), name...), '>')
}

func (f atom2) links(q *request, a *wire.Answer, n *node, single bool, total int64, next func() string) {
	a.Header.Add("Content-Type", contentXML)
	base := wire.AppendXMLText(nil, q.address())
	a.Body = append(a.Body, xmlHead...)
	if single {
		if row, ok := n.next(); ok {
			a.Body = append(append(a.Body, `<uri xmlns="`+nsData+`">`...), base...)
			a.Body = append(n.shape.appendRowPath(a.Body, v2, row), "</uri>"...)
		}
		return
	}
	a.Body = append(a.Body, `<links xmlns="`+nsData+`">`...)
	if total >= 0 {
		a.Body = append(a.Body, `<m:count xmlns:m="`+nsMetadata+`">`...)
		a.Body = append(strconv.AppendInt(a.Body, total, 10), "</m:count>"...)
	}
	start := len(a.Body)
	for i := 0; ; i++ {
		row, ok := n.next()
		if !ok {
			break
		}
		a.Body = append(append(a.Body, "<uri>"...), base...)
		a.Body = append(n.shape.appendRowPath(a.Body, v2, row), "</uri>"...)
		if !q.wrote(a, n, start, i) {
			return
		}
	}
	if s := next(); s != "" {
		a.Body = append(wire.AppendXMLText(append(a.Body, "<next>"...), s), "</next>"...)
	}
	a.Body = append(a.Body, "</links>"...)
}

func (f atom2) result(q *request, a *wire.Answer, fn *edm.Function, values []record.Value) {
	a.Header.Add("Content-Type", contentXML)
	a.Body = append(a.Body, xmlHead...)
	value := func(dst []byte, name, attributes string, v []record.Value) []byte {
		if fn.Complex != nil {
			return f.complex(q, dst, name, attributes, fn.Complex.Name, fn.Complex.Properties, v)
		}
		return appendElement(dst, name, attributes, &edm.Property{Kind: fn.Kind, Nullable: true}, v[0])
	}
	switch {
	case fn.Collection:
		a.Body = append(append(append(a.Body, "<d:"...), fn.Name...), elementSpaces+">"...)
		a.Body = eachResult(a.Body, fn, values, func(dst []byte, v []record.Value) []byte { return value(dst, "element", "", v) }, "")
		a.Body = append(append(append(a.Body, "</d:"...), fn.Name...), '>')
	case len(values) == 0:
		a.Body = appendElement(a.Body, fn.Name, elementSpaces, &edm.Property{Nullable: true}, record.Value{})
	default:
		a.Body = value(a.Body, fn.Name, elementSpaces, values)
	}
}
