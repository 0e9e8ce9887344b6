package odata

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"weir/internal/edm"
	"weir/internal/record"
)

// nsAtom is the namespace of Atom itself.
const nsAtom = "http://www.w3.org/2005/Atom"

// atomReader reads an Atom entry. Old clients write them; it is not made to be fast.
type atomReader struct {
	r     *bodyReader
	dec   *xml.Decoder
	depth int
}

// maxElements bounds the nesting of elements: an entity nested in another takes five.
const maxElements = 8

// readAtom reads a body that is one Atom entry, with the entries inside its links.
func (r *bodyReader) readAtom(typ *edm.Type) *entity {
	if !r.valid() {
		return nil
	}
	x := &atomReader{r: r, dec: xml.NewDecoder(bytes.NewReader(r.body))}
	x.dec.CharsetReader = func(label string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("the charset %.40q is not UTF-8", label)
	}
	root, err := x.root()
	if err == nil && (root.Name.Local != "entry" || root.Name.Space != nsAtom) {
		err = fmt.Errorf("an Atom entry is expected, not <%.40s>", root.Name.Local)
	}
	e := r.begin(typ, nil, nil, -1)
	if err == nil {
		err = x.entry(e)
	}
	if err == nil {
		err = x.over()
	}
	if err != nil {
		x.fail(err)
		return nil
	}
	return e
}

// fail keeps an error of the text, where nothing more exact is known.
func (x *atomReader) fail(err error) {
	if x.r.err == nil {
		x.r.pos = int(x.dec.InputOffset())
		x.r.broken(strings.TrimPrefix(err.Error(), "XML "))
	}
}

// errRefused says that the reader holds the error.
var errRefused = errors.New("refused")

func (x *atomReader) refuse(e *entity, name, format string, args ...any) error {
	x.r.refuse(e, name, format, args...)
	return errRefused
}

// token is the next token that says something.
func (x *atomReader) token() (xml.Token, error) {
	t, err := x.dec.Token()
	if err != nil {
		if err == io.EOF {
			err = errors.New("the body ends before its XML does")
		}
		return nil, err
	}
	switch t.(type) {
	case xml.Directive:
		return nil, errors.New("document types are not accepted")
	case xml.StartElement:
		if x.depth++; x.depth > maxElements*(x.r.max+2) {
			return nil, errors.New("elements nest too deep")
		}
	case xml.EndElement:
		x.depth--
	}
	return t, nil
}

// root finds the first element.
func (x *atomReader) root() (xml.StartElement, error) {
	for {
		t, err := x.token()
		if err != nil {
			return xml.StartElement{}, err
		}
		if s, ok := t.(xml.StartElement); ok {
			return s, nil
		}
		if c, ok := t.(xml.CharData); ok && len(bytes.TrimSpace(c)) > 0 {
			return xml.StartElement{}, errors.New("the body holds no XML")
		}
	}
}

// over checks that nothing follows the root.
func (x *atomReader) over() error {
	for {
		t, err := x.dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			return errors.New("the body has more than one root element")
		case xml.CharData:
			if len(bytes.TrimSpace(t)) > 0 {
				return errors.New("more follows after the XML")
			}
		case xml.Directive:
			return errors.New("document types are not accepted")
		}
	}
}

// children calls each for every element up to the end of the one at hand. It reads the element to its end.
func (x *atomReader) children(each func(s xml.StartElement) error) error {
	for {
		t, err := x.token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := each(t); err != nil {
				return err
			}
		case xml.EndElement:
			return nil
		}
	}
}

// elements is children where text between them is a mistake.
func (x *atomReader) elements(e *entity, name string, each func(s xml.StartElement) error) error {
	for {
		t, err := x.token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := each(t); err != nil {
				return err
			}
		case xml.CharData:
			if t = bytes.TrimSpace(t); len(t) > 0 {
				return x.refuse(e, name, "an entry or a feed is expected, not %.20q", t)
			}
		case xml.EndElement:
			return nil
		}
	}
}

// skip reads to the end of the element at hand.
func (x *atomReader) skip() error {
	return x.children(func(xml.StartElement) error { return x.skip() })
}

// text reads the text of the element at hand.
func (x *atomReader) text() (string, error) {
	var text []byte
	for {
		t, err := x.token()
		if err != nil {
			return "", err
		}
		switch t := t.(type) {
		case xml.CharData:
			text = append(text, t...)
		case xml.StartElement:
			return "", fmt.Errorf("<%.40s> stands where a text is expected", t.Name.Local)
		case xml.EndElement:
			return string(text), nil
		}
	}
}

func attribute(s xml.StartElement, space, name string) string {
	for _, a := range s.Attr {
		if a.Name.Local == name && a.Name.Space == space {
			return a.Value
		}
	}
	return ""
}

// entry reads what is inside <entry>.
func (x *atomReader) entry(e *entity) error {
	r := x.r
	if r.depth == r.max {
		return x.refuse(e, "", "entities nest more than %d deep; see odata.max_depth", r.max)
	}
	if r.depth == len(r.levels) {
		r.levels = append(r.levels, new(level))
	}
	l := r.levels[r.depth]
	r.depth++
	l.props, l.keys, l.navs = l.props[:0], l.keys[:0], l.navs[:0]
	o := l.order(e.typ)
	o.begin()
	err := x.children(func(s xml.StartElement) error {
		switch {
		case s.Name.Space == nsMetadata && s.Name.Local == "properties":
			return x.properties(l, o, e)
		case s.Name.Space != nsAtom:
			return x.skip()
		}
		switch s.Name.Local {
		case "content":
			return x.children(func(s xml.StartElement) error {
				if s.Name.Space == nsMetadata && s.Name.Local == "properties" {
					return x.properties(l, o, e)
				}
				return x.skip()
			})
		case "id":
			id, err := x.text()
			e.id = strings.TrimSpace(id)
			return err
		case "link":
			return x.link(o, e, s)
		}
		return x.skip()
	})
	if err != nil {
		return err
	}
	e.props, e.keys, e.navs = r.props.keep(l.props), r.props.keep(l.keys), r.navs.keep(l.navs)
	r.depth--
	return nil
}

// properties reads what is inside <m:properties>.
func (x *atomReader) properties(l *level, o *order, e *entity) error {
	return x.children(func(s xml.StartElement) error {
		if s.Name.Space != nsData {
			return x.skip()
		}
		name := s.Name.Local
		p := e.typ.Property(name)
		switch {
		case p == nil:
			return x.refuse(e, name, "type %s has no property %.80s", e.typ.Name, name)
		case o.twice(p.Index):
			return x.refuse(e, name, "the property is there twice")
		case p.Kind != edm.ComplexKind:
			return x.value(l, e, p, s)
		}
		if isNull(s) {
			if !p.Nullable {
				return x.refuse(e, p.Name, "null is not allowed")
			}
			for _, part := range p.Parts {
				if x.r.use.takes(part) {
					l.props = append(l.props, propValue{prop: part})
				}
			}
			return x.skip()
		}
		first := len(l.props)
		return x.children(func(s xml.StartElement) error {
			if s.Name.Space != nsData {
				return x.skip()
			}
			part := p.Part(s.Name.Local)
			if part == nil {
				return x.refuse(e, p.Name+"/"+s.Name.Local, "type %s has no property %.80s", p.Complex.Name, s.Name.Local)
			}
			for _, old := range l.props[first:] {
				if old.prop == part {
					return x.refuse(e, p.Name+"/"+part.Name, "the property is there twice")
				}
			}
			return x.value(l, e, part, s)
		})
	})
}

func isNull(s xml.StartElement) bool {
	null := attribute(s, nsMetadata, "null")
	return null == "true" || null == "1"
}

// value reads one primitive property.
func (x *atomReader) value(l *level, e *entity, p *edm.Property, s xml.StartElement) error {
	takes := x.r.use.takes(p)
	if !takes && !p.IsKey {
		return x.skip()
	}
	text, err := x.text()
	if err != nil {
		return err
	}
	v, fault := atomValue(p, text, isNull(s))
	if !takes {
		if fault == "" {
			l.keys = append(l.keys, propValue{p, v})
		}
		return nil
	}
	if fault == "" && v.IsNull() && p.IsKey && filled(e.typ, p) {
		return nil
	}
	if fault != "" {
		return x.refuse(e, propPath(p), "%s", fault)
	}
	l.props = append(l.props, propValue{p, v})
	return nil
}

// atomValue is the text of an element as a value of p. An empty element of another type than a text is null, as old clients write it.
func atomValue(p *edm.Property, text string, null bool) (record.Value, string) {
	if p.Kind != edm.String {
		if text = strings.TrimSpace(text); text == "" {
			null = true
		}
	}
	if null {
		return valueOf(v2, p, scalar{kind: 'n'})
	}
	return textValueOf(v2, p, text)
}

// link reads a link: with <m:inline> it holds entities, else it may link to one that is there. The links that answers carry, from the
// entity to what it navigates to, say nothing.
func (x *atomReader) link(o *order, e *entity, s xml.StartElement) error {
	name, ok := strings.CutPrefix(attribute(s, "", "rel"), relRelated)
	if !ok {
		return x.skip()
	}
	nav := e.typ.Nav(name)
	if nav == nil {
		return x.refuse(e, name, "type %s has no navigation property %.80s", e.typ.Name, name)
	}
	v := navValue{nav: nav}
	inline, full := false, false
	err := x.children(func(s xml.StartElement) error {
		if s.Name.Space != nsMetadata || s.Name.Local != "inline" {
			return x.skip()
		}
		inline = true
		return x.elements(e, nav.Name, func(s xml.StartElement) error {
			if s.Name.Space != nsAtom {
				return x.skip()
			}
			switch {
			case s.Name.Local == "entry" && !nav.Many && !full:
				full = true
				return x.nested(e, nav, -1, &v, nil)
			case s.Name.Local == "feed" && nav.Many && !full:
				full = true
				var list []*entity
				n := 0
				err := x.children(func(s xml.StartElement) error {
					if s.Name.Space != nsAtom || s.Name.Local != "entry" {
						return x.skip()
					}
					n++
					return x.nested(e, nav, n-1, &v, &list)
				})
				v.list = list
				return err
			}
			return x.refuse(e, nav.Name, "<%.40s> is not expected here", s.Name.Local)
		})
	})
	if err != nil {
		return err
	}
	href := attribute(s, "", "href")
	switch {
	case inline && !full:
		return nil // <m:inline/>: nothing
	case inline:
		if o.twice(len(e.typ.Properties) + nav.Index) {
			return x.refuse(e, nav.Name, "the navigation property is there twice")
		}
	case href == "" || strings.HasSuffix(href, "/"+nav.Name):
		return nil
	default:
		v.binds = append(v.binds, href)
	}
	x.r.nest(v)
	return nil
}

// nested reads an entry below nav.
func (x *atomReader) nested(e *entity, nav *edm.Nav, nth int, v *navValue, list *[]*entity) error {
	child := x.r.begin(nav.Target.Type, e, nav, nth)
	if err := x.entry(child); err != nil {
		return err
	}
	switch {
	case child.linked():
		v.binds = append(v.binds, child.id)
	case list == nil:
		v.list = []*entity{child}
	default:
		*list = append(*list, child)
	}
	return nil
}

// readAtomValue reads a body that is one property: <d:Price>9.50</d:Price>, or of a complex one its members inside. values has one place for each
// part, or one; ok[i] says that part i is there.
func (r *bodyReader) readAtomValue(p *edm.Property, set func(p *edm.Property, v record.Value)) {
	if !r.valid() {
		return
	}
	x := &atomReader{r: r, dec: xml.NewDecoder(bytes.NewReader(r.body))}
	root, err := x.root()
	if err == nil && root.Name.Local != p.Name {
		err = fmt.Errorf("the property %s is expected, not <%.40s>", p.Name, root.Name.Local)
	}
	one := func(p *edm.Property, name string, s xml.StartElement) error {
		text, err := x.text()
		if err != nil {
			return err
		}
		v, fault := atomValue(p, text, isNull(s))
		if fault != "" {
			return x.refuse(nil, name, "%s", fault)
		}
		set(p, v)
		return nil
	}
	switch {
	case err != nil:
	case p.Kind != edm.ComplexKind:
		err = one(p, p.Name, root)
	default:
		err = x.children(func(s xml.StartElement) error {
			part := p.Part(s.Name.Local)
			if part == nil {
				return x.refuse(nil, p.Name+"/"+s.Name.Local, "type %s has no property %.80s", p.Complex.Name, s.Name.Local)
			}
			return one(part, p.Name+"/"+part.Name, s)
		})
	}
	if err == nil {
		err = x.over()
	}
	if err != nil {
		x.fail(err)
	}
}

// readAtomLink reads <uri>…</uri>.
func (r *bodyReader) readAtomLink() string {
	if !r.valid() {
		return ""
	}
	x := &atomReader{r: r, dec: xml.NewDecoder(bytes.NewReader(r.body))}
	root, err := x.root()
	if err == nil && root.Name.Local != "uri" {
		err = fmt.Errorf("<uri> is expected, not <%.40s>", root.Name.Local)
	}
	var text string
	if err == nil {
		text, err = x.text()
	}
	if err == nil {
		err = x.over()
	}
	if err != nil {
		x.fail(err)
	}
	return strings.TrimSpace(text)
}
