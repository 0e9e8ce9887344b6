package odata

import (
	"strings"

	"weir/internal/edm"
)

// What JSON bodies of V2 have of their own (protocol notes, sections 3 and 7).

// meaning2 is what a name in an entity of V2 means. Names that begin with two underscores are the protocol's.
func meaning2(typ *edm.Type, name string) (member, bool) {
	if m, ok := meaningOf(typ, name); ok {
		return m, true
	}
	switch {
	case name == "__metadata":
		return member{what: metaMember}, true
	case strings.HasPrefix(name, "__"):
		return member{what: otherMember}, true
	}
	return member{}, false
}

// unwrap passes over {"d": where a body has been wrapped like an answer.
func (r *bodyReader) unwrap(typ *edm.Type) bool {
	at := r.pos
	if r.peek() == '{' {
		r.pos++
		if r.peek() == '"' && strings.HasPrefix(r.text[r.pos:], `"d"`) && (typ == nil || typ.Property("d") == nil) {
			if _, ok := r.name(); ok && r.peek() == '{' {
				return true
			}
		}
	}
	r.pos, r.err = at, nil
	return false
}

// metadata2 reads __metadata: its address stands for the entity where nothing else is said of it.
func (r *bodyReader) metadata2(e *entity) bool {
	if r.peek() != '{' {
		return r.skip()
	}
	return r.members(func(name string) bool {
		if name != "uri" && name != "etag" || r.peek() != '"' {
			return r.skip()
		}
		s, ok := r.quoted()
		if name == "uri" {
			e.id = s
		} else {
			e.etag = s
		}
		return ok
	})
}

// nav2 reads what an entity holds below a navigation property: an array, {"results":[…]}, one entity, or nothing: null and __deferred.
func (r *bodyReader) nav2(e *entity, nav *edm.Nav) bool {
	v := navValue{nav: nav}
	switch r.peek() {
	case '[':
		if !nav.Many {
			return r.refuse(e, nav.Name, "one entity is expected, not an array")
		}
		return r.list(e, nav, &v) && r.nest(v)
	case '{':
		if nav.Many {
			return r.results2(e, nav)
		}
		if r.deferred2() {
			return r.skip()
		}
		return r.single(e, nav)
	}
	s, ok := r.scalar()
	if ok && s.kind != 'n' {
		return r.refuse(e, nav.Name, "%.20q is no entity", s.text)
	}
	return ok
}

// deferred2 reports whether an object is a mere link that an answer has left, and reads nothing.
func (r *bodyReader) deferred2() bool {
	at := r.pos
	r.pos++
	r.peek()
	found := strings.HasPrefix(r.text[r.pos:], `"__deferred"`)
	r.pos = at
	return found
}

// results2 reads {"results":[…]}. What else an answer has around it says nothing.
func (r *bodyReader) results2(e *entity, nav *edm.Nav) bool {
	v := navValue{nav: nav}
	found := false
	return r.members(func(name string) bool {
		switch {
		case name == "results" && r.peek() == '[' && !found:
			found = true
			return r.list(e, nav, &v)
		case strings.HasPrefix(name, "__"):
			return r.skip()
		}
		return r.refuse(e, nav.Name, "an array of entities is expected, or an object that holds one as results")
	}) && (!found || r.nest(v))
}

// single reads the one entity below a navigation property.
func (r *bodyReader) single(e *entity, nav *edm.Nav) bool {
	v := navValue{nav: nav}
	child := r.begin(nav.Target.Type, e, nav, -1)
	if !r.entity(child) {
		return false
	}
	if child.linked() {
		v.binds = []string{child.id}
	} else {
		v.list = r.lists.take(1)
		v.list[0] = child
	}
	return r.nest(v)
}
