package odata

import (
	"strconv"
	"strings"

	"weir/internal/edm"
)

// What JSON bodies of V4 have of their own (protocol notes, section 9): annotations, links by @odata.bind, deltas. 4.01 allows their
// names without "odata.".

// meaning4 is what a name in an entity of V4 means.
func meaning4(typ *edm.Type, name string) (member, bool) {
	at := strings.IndexByte(name, '@')
	if at < 0 {
		return meaningOf(typ, name)
	}
	term := strings.TrimPrefix(name[at+1:], "odata.")
	if at > 0 {
		m := member{what: otherMember, nav: typ.Nav(name[:at])}
		if m.nav != nil {
			switch term {
			case "bind":
				m.what = bindMember
			case "delta":
				m.what = deltaMember
			}
		}
		return m, true
	}
	m := member{what: otherMember}
	switch {
	case term == "context":
		m.what = contextMember
	case term == "etag":
		m.what = etagMember
	case term == "id":
		m.what = idMember
	case term == "removed":
		m.what = goneMember
	case strings.HasSuffix(term, ".ContentID"):
		m.what = cidMember
	}
	return m, true
}

// control4 reads what the protocol says of e beside its values.
func (r *bodyReader) control4(o *order, e *entity, m *member) bool {
	switch m.what {
	case bindMember:
		return r.bind4(e, m.nav)
	case deltaMember:
		if o.twice(len(o.typ.Properties) + m.nav.Index) {
			return r.refuse(e, m.nav.Name, "the navigation property is there twice")
		}
		return r.nav4(e, m.nav, true)
	case goneMember:
		e.gone = true
		return r.skip()
	}
	s, ok := r.scalar()
	if !ok {
		return false
	}
	if s.kind != '"' {
		if s.kind == '{' || s.kind == '[' {
			return r.skip()
		}
		return true
	}
	switch m.what {
	case contextMember:
		if strings.HasSuffix(s.text, "/$deletedEntity") {
			e.gone = true // 4.0: "id" and "reason" follow
			return r.deleted4(e)
		}
	case etagMember:
		e.etag = s.text
	case idMember:
		e.id = s.text
	case cidMember:
		e.cid = s.text
	}
	return true
}

// deleted4 reads the members of a deleted entity of 4.0 up to the brace that ends it.
func (r *bodyReader) deleted4(e *entity) bool {
	for r.peek() == ',' {
		r.pos++
		name, ok := r.name()
		if !ok {
			return false
		}
		if name != "id" || r.peek() != '"' {
			if !r.skip() {
				return false
			}
			continue
		}
		if e.id, ok = r.quoted(); !ok {
			return false
		}
	}
	return true
}

// bind4 reads the addresses of the entities that e shall be linked to.
func (r *bodyReader) bind4(e *entity, nav *edm.Nav) bool {
	v := navValue{nav: nav}
	switch {
	case r.peek() == '"' && !nav.Many:
		s, ok := r.quoted()
		if !ok {
			return false
		}
		v.binds = []string{s}
		return r.nest(v)
	case r.peek() == '[' && nav.Many:
		r.pos++
		for n := 0; ; n++ {
			if r.peek() == ']' {
				r.pos++
				return r.nest(v)
			}
			if n > 0 && !r.end(',') {
				return false
			}
			if r.peek() != '"' {
				return r.refuse(e, nav.Name+"@odata.bind", "the address of an entity is expected")
			}
			s, ok := r.quoted()
			if !ok {
				return false
			}
			v.binds = append(v.binds, s)
		}
	case r.peek() == 'n' && !nav.Many:
		_, ok := r.scalar()
		v.none = true
		return ok && r.nest(v)
	case nav.Many:
		return r.refuse(e, nav.Name+"@odata.bind", "an array of addresses is expected")
	}
	return r.refuse(e, nav.Name+"@odata.bind", "the address of an entity is expected")
}

// nav4 reads what an entity holds below a navigation property.
func (r *bodyReader) nav4(e *entity, nav *edm.Nav, delta bool) bool {
	switch c := r.peek(); {
	case c == '[' && nav.Many:
		v := navValue{nav: nav, delta: delta}
		return r.list(e, nav, &v) && r.nest(v)
	case c == '{' && !nav.Many && !delta:
		return r.single(e, nav)
	case c == 'n' && !nav.Many:
		_, ok := r.scalar()
		return ok && r.nest(navValue{nav: nav, none: true})
	case nav.Many:
		return r.refuse(e, nav.Name, "an array of entities is expected")
	}
	return r.refuse(e, nav.Name, "one entity is expected")
}

// readDelta reads a delta payload: {"@context":"#$delta","value":[…]}.
func (r *bodyReader) readDelta(typ *edm.Type) []*entity {
	if !r.valid() {
		return nil
	}
	var list []*entity
	found := false
	if !r.members(func(name string) (ok bool) {
		switch {
		case name == "value" && !found && r.peek() == '[':
			found = true
			list, ok = r.members4(typ)
			return ok
		case strings.IndexByte(name, '@') >= 0:
			return r.skip()
		}
		return r.refuse(nil, name, "a delta has annotations and an array called value, and nothing else")
	}) || !r.over() {
		return nil
	}
	if !found {
		r.refuse(nil, "value", "a delta has an array called value")
	}
	return list
}

// members4 reads the entities of a delta payload.
func (r *bodyReader) members4(typ *edm.Type) ([]*entity, bool) {
	var list []*entity
	r.pos++
	for n := 0; ; n++ {
		if r.peek() == ']' {
			r.pos++
			return list, true
		}
		if n > 0 && !r.end(',') {
			return nil, false
		}
		if r.peek() != '{' {
			return nil, r.refuse(nil, "value("+strconv.Itoa(n)+")", "an object is expected")
		}
		e := r.begin(typ, nil, nil, n)
		if !r.entity(e) {
			return nil, false
		}
		list = append(list, e)
	}
}
