package odata

import (
	"slices"
	"strings"
	"sync"

	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// shapeKey is what a shape depends on. A set belongs to one snapshot, so its address stands for the snapshot's version too.
type shapeKey struct {
	set    *edm.Set
	ver    version
	choice string // the selection, as request.choice writes it
}

// shapes caches shapes. It is bounded in number and in the size of a key, since callers choose what they select.
type shapes struct {
	mu sync.RWMutex
	m  map[shapeKey]*shape
}

const (
	maxShapes = 1000
	maxChoice = 4000
)

func (c *shapes) get(set *edm.Set, ver version, choice []byte) *shape {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.m[shapeKey{set, ver, string(choice)}]
}

func (c *shapes) put(set *edm.Set, ver version, choice []byte, s *shape) {
	if len(choice) > maxChoice {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil || len(c.m) >= maxShapes {
		c.m = make(map[shapeKey]*shape)
	}
	c.m[shapeKey{set, ver, string(choice)}] = s
}

// shape is what is written of the entities of set that qy asks for; nil asks for all properties. The key, the version, what
// expanded navigation compares and what the entities are sorted by are read whether they are selected or not.
func (q *request) shape(set *edm.Set, qy *query) *shape { return q.shapeWith(set, qy, nil) }

// shapeWith is a shape that reads further paths too.
func (q *request) shapeWith(set *edm.Set, qy *query, paths []string) *shape {
	if qy == nil {
		qy = &everything
	}
	var room [256]byte
	choice := appendChoice(room[:0], qy, paths)
	if s := q.d.shapes.get(set, q.ver, choice); s != nil {
		return s
	}
	s := q.newShape(set, qy, paths)
	q.d.shapes.put(set, q.ver, choice, s)
	return s
}

var everything = query{top: -1, all: true}

// appendChoice writes what of qy a shape depends on.
func appendChoice(dst []byte, qy *query, paths []string) []byte {
	name := func(kind byte, s string) {
		dst = append(dst, kind)
		dst = append(dst, s...)
		dst = append(dst, 0)
	}
	if qy.all {
		dst = append(dst, '*')
	} else {
		for _, p := range qy.props {
			if p.Parent != nil {
				name('c', p.Parent.Name)
			}
			name('p', p.Name)
		}
		for _, n := range qy.navs {
			name('n', n.Name)
		}
	}
	for _, e := range qy.expand {
		name('e', e.nav.Name)
	}
	for i := range qy.sort {
		name('s', qy.sort[i].Path)
	}
	for _, p := range paths {
		name('s', p)
	}
	return dst
}

func (q *request) newShape(set *edm.Set, qy *query, paths []string) *shape {
	t := set.Type
	s := &shape{set: set, etag: -1, name: q.svc.Schema + "." + t.Name, nav: make([]string, len(t.Navs))}
	var selected []string
	for _, n := range t.Navs {
		s.nav[n.Index] = jsonName(n.Name)
		expanded := slices.ContainsFunc(qy.expand, func(e *expansion) bool { return e.nav == n && !e.only && !e.refs })
		if !expanded && (qy.all || slices.Contains(qy.navs, n)) {
			s.navs = append(s.navs, n)
		}
	}
	if qy.all {
		for _, p := range t.Properties {
			s.props = append(s.props, q.shapeProp(s, p, p.Parts))
		}
	} else {
		for i := 0; i < len(qy.props); i++ {
			p := qy.props[i]
			selected = append(selected, propPath(p))
			if p.Parent == nil {
				s.props = append(s.props, q.shapeProp(s, p, p.Parts))
				continue
			}
			parts := []*edm.Property{p}
			for i+1 < len(qy.props) && qy.props[i+1].Parent == p.Parent {
				i++
				parts = append(parts, qy.props[i])
				selected = append(selected, propPath(qy.props[i]))
			}
			s.props = append(s.props, q.shapeProp(s, p.Parent, parts))
		}
		for _, n := range qy.navs {
			selected = append(selected, n.Name)
		}
		s.select4 = strings.Join(selected, ",")
	}
	for _, p := range t.Key {
		s.links = append(s.links, s.read(p))
	}
	if t.ETag != nil {
		s.etag = s.read(t.ETag)
	}
	for _, e := range qy.expand {
		for _, l := range e.nav.On {
			s.read(l.Own)
		}
	}
	for i := range qy.sort {
		s.readPath(qy.sort[i].Path)
	}
	for _, p := range paths {
		s.readPath(p)
	}
	return s
}

func (q *request) shapeProp(s *shape, p *edm.Property, parts []*edm.Property) shapeProp {
	sp := shapeProp{prop: p, col: -1, json: jsonName(p.Name), typ: q.typeName(p)}
	if p.Kind != edm.ComplexKind {
		sp.col = s.read(p)
		return sp
	}
	for _, part := range parts {
		sp.parts = append(sp.parts, q.shapeProp(s, part, part.Parts))
	}
	return sp
}

// read is the column of a property. Below a transport shell, whose properties have no path, columns are named as properties.
func (s *shape) read(p *edm.Property) int { return s.readPath(columnOf(p)) }

func (s *shape) readPath(path string) int {
	if c := s.column(path); c >= 0 {
		return c
	}
	s.paths = append(s.paths, path)
	return len(s.paths) - 1
}

// columnOf is the name of the column that a property's value stands in.
func columnOf(p *edm.Property) string {
	switch {
	case p.Path != "":
		return p.Path
	case p.Parent != nil:
		return p.Parent.Name + "/" + p.Name
	}
	return p.Name
}

// propPath is a property as a path names it: Address/City.
func propPath(p *edm.Property) string {
	if p.Parent != nil {
		return p.Parent.Name + "/" + p.Name
	}
	return p.Name
}

// jsonName is a member's name with what stands around it: `,"Name":`.
func jsonName(name string) string {
	return string(append(wire.AppendQuote([]byte{','}, name), ':'))
}

// kindNames are the primitive types as V4 names them, without "Edm.".
var kindNames = [...]string{
	edm.String: "String", edm.Boolean: "Boolean", edm.Byte: "Byte", edm.SByte: "SByte", edm.Int16: "Int16", edm.Int32: "Int32",
	edm.Int64: "Int64", edm.Decimal: "Decimal", edm.Single: "Single", edm.Double: "Double", edm.DateTimeOffset: "DateTimeOffset",
	edm.Date: "Date", edm.TimeOfDay: "TimeOfDay", edm.Duration: "Duration", edm.GUID: "Guid", edm.Binary: "Binary",
}

// kindName is a primitive type with its namespace, as the version names it.
func kindName(ver version, k edm.Kind) string {
	if ver == v2 {
		switch k {
		case edm.Date, edm.DateTimeOffset:
			return "Edm.DateTime"
		case edm.TimeOfDay, edm.Duration:
			return "Edm.Time"
		}
	}
	return "Edm." + kindNames[k]
}

// typeName is the type of a property with its namespace.
func (q *request) typeName(p *edm.Property) string {
	if p.Kind == edm.ComplexKind {
		return q.svc.Schema + "." + p.Complex.Name
	}
	return kindName(q.ver, p.Kind)
}

// appendEntityPath appends the address of an entity below the service root: ProductSet('HT-1000').
func appendEntityPath(dst []byte, ver version, set *edm.Set, key []record.Value) []byte {
	dst = append(append(dst, set.Name...), '(')
	for i, p := range set.Type.Key {
		dst = appendKeyPart(dst, set.Type, i)
		dst = appendLiteral(dst, ver, p.Kind, key[i])
	}
	return append(dst, ')')
}

// appendRowPath is appendEntityPath for a row.
func (s *shape) appendRowPath(dst []byte, ver version, row []record.Value) []byte {
	dst = append(append(dst, s.set.Name...), '(')
	for i, p := range s.set.Type.Key {
		dst = appendKeyPart(dst, s.set.Type, i)
		dst = appendLiteral(dst, ver, p.Kind, row[s.links[i]])
	}
	return append(dst, ')')
}

// appendKeyPart appends what stands before value i of a key: a key of one value stands bare.
func appendKeyPart(dst []byte, t *edm.Type, i int) []byte {
	if len(t.Key) == 1 {
		return dst
	}
	if i > 0 {
		dst = append(dst, ',')
	}
	return append(append(dst, t.Key[i].Name...), '=')
}
