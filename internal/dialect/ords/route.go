package ords

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
)

// model is what one snapshot's definitions mean to this dialect. It never changes.
type model struct {
	snap    *catalog.Snapshot
	schemas map[string]*schema // by alias
}

// schema is what stands below /ords/ALIAS/.
type schema struct {
	alias  string
	first  map[string][]*handler // by literal first segment: all that a path beginning with it can mean, best first
	others []*handler            // for paths with another first segment
	tables tables
}

// modelOf is the model of a snapshot. That of the newest one is kept; a call that still has an older one makes it again.
func (d *Dialect) modelOf(snap *catalog.Snapshot) *model {
	last := d.model.Load()
	if last != nil && last.snap == snap {
		return last
	}
	m := &model{snap: snap, schemas: map[string]*schema{}}
	all := map[*schema][]*handler{}
	for _, e := range snap.SQLEndpoints() {
		if e.SQL.Unpublished || e.SQL.Compiled == nil {
			continue // answered as if it were not there; what is not compiled is for another database
		}
		s := m.schema(e.SQL.Schema)
		all[s] = append(all[s], compile(e))
	}
	for s, list := range all {
		s.index(list)
	}
	m.addTables()
	if last == nil || last.snap.Version <= snap.Version {
		d.model.Store(m)
	}
	return m
}

// schema is the schema with an alias, made when it is new.
func (m *model) schema(alias string) *schema {
	s := m.schemas[alias]
	if s == nil {
		s = &schema{alias: alias}
		m.schemas[alias] = s
	}
	return s
}

// index sorts handlers: by priority, 9 is the highest (protocol notes, section 2), then the more specific pattern first.
func (s *schema) index(list []*handler) {
	slices.SortStableFunc(list, func(a, b *handler) int {
		if c := cmp.Compare(b.def.SQL.Priority, a.def.SQL.Priority); c != 0 {
			return c
		}
		return slices.CompareFunc(a.segments, b.segments, func(x, y segment) int { return cmp.Compare(x.kind, y.kind) })
	})
	s.first = map[string][]*handler{}
	for _, h := range list {
		if len(h.segments) > 0 && h.segments[0].kind == literal {
			s.first[h.segments[0].text] = nil
		} else {
			s.others = append(s.others, h)
		}
	}
	for name := range s.first {
		for _, h := range list {
			if len(h.segments) == 0 || h.segments[0].kind != literal || h.segments[0].text == name {
				s.first[name] = append(s.first[name], h)
			}
		}
	}
}

// segment is one part of a pattern between slashes.
type segment struct {
	kind segmentKind
	text string // the literal, or the name of the value
}

type segmentKind uint8

// The kinds of segments, the more specific first.
const (
	literal  segmentKind = iota
	value                // :name
	optional             // :name? at the end
	rest                 // :name* at the end: what is left of the path
)

// parsePattern reads base path and pattern of a template (protocol notes, section 3). slash says that the path ends with one.
func parsePattern(base, pattern string) (list []segment, slash bool) {
	if pattern == "." {
		pattern = ""
	}
	whole := strings.TrimPrefix(base+pattern, "/")
	for text := range strings.SplitSeq(whole, "/") {
		switch name, bound := strings.CutPrefix(text, ":"); {
		case text == "":
		case strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}"):
			list = append(list, segment{value, text[1 : len(text)-1]})
		case !bound:
			list = append(list, segment{literal, text})
		case strings.HasSuffix(name, "?"):
			list = append(list, segment{optional, name[:len(name)-1]})
		case strings.HasSuffix(name, "*"):
			list = append(list, segment{rest, name[:len(name)-1]})
		default:
			list = append(list, segment{value, name})
		}
	}
	return list, whole == "" || strings.HasSuffix(whole, "/")
}

// address is a path taken apart.
type address struct {
	path     string   // as it was sent, percent-encoded, without query
	schema   string   // alias
	segments []string // what follows it, decoded
	slash    bool     // the path ends with one
}

// addressOf takes the path of a call apart. False: it does not lie where the dialect lives.
func addressOf(c *dialect.Call) (address, bool) {
	at, escaped := address{path: c.RawPath}, true
	if at.path == "" {
		at.path, escaped = c.Path, false
	}
	tail, ok := strings.CutPrefix(at.path, Prefix)
	if !ok {
		return at, false
	}
	alias, tail, more := strings.Cut(tail, "/")
	if at.schema, ok = decoded(alias, escaped); !ok || alias == "" {
		return at, false
	}
	at.slash = more && (tail == "" || tail[len(tail)-1] == '/')
	if tail = strings.TrimSuffix(tail, "/"); tail == "" {
		return at, true
	}
	at.segments = make([]string, 0, strings.Count(tail, "/")+1)
	for text := range strings.SplitSeq(tail, "/") {
		text, ok = decoded(text, escaped)
		if !ok {
			return at, false
		}
		at.segments = append(at.segments, text)
	}
	return at, true
}

func decoded(s string, escaped bool) (string, bool) {
	if !escaped || strings.IndexByte(s, '%') < 0 {
		return s, true
	}
	s, err := url.PathUnescape(s)
	return s, err == nil
}

// missed is what kept a path from being a handler's as it stands.
type missed struct {
	allow []string // methods of handlers that the path has
	slash bool     // the handler's path ends with a slash, which was left out
}

// route finds the handler of a method and path, with the values in the path. Without one, missed tells what methods the path has. A path
// with a slash too much or too little leads to the handler as well, if none has it as it stands.
func (s *schema) route(method string, at *address) (found *handler, values []string, m missed) {
	for _, h := range s.candidates(at) {
		v, exact, ok := h.match(at)
		if !ok {
			continue
		}
		if h.def.Method != method {
			m.allow = append(m.allow, h.def.Method)
			continue
		}
		if exact {
			return h, v, missed{}
		}
		if found == nil {
			found, values = h, v
			m.slash = !at.slash
		}
	}
	return found, values, m
}

func (s *schema) candidates(at *address) []*handler {
	if len(at.segments) > 0 {
		if list := s.first[at.segments[0]]; list != nil {
			return list
		}
	}
	return s.others
}

// match gives the values in a path that has the handler's pattern. exact says that the slash at its end is as the pattern has it.
func (h *handler) match(at *address) (values []string, exact, ok bool) {
	n, have := len(h.segments), len(at.segments)
	last := literal
	if n > 0 {
		last = h.segments[n-1].kind
	}
	switch {
	case have == n:
	case have == n-1 && last >= optional:
	case have > n && last == rest:
	default:
		return nil, false, false
	}
	for i, seg := range h.segments {
		if seg.kind == literal && (i >= have || at.segments[i] != seg.text) {
			return nil, false, false
		}
	}
	slash := h.slash || have == n-1 // what has an optional value is a collection without it
	for i, seg := range h.segments {
		switch {
		case seg.kind == literal:
		case i >= have:
			values = append(values, "")
		case seg.kind == rest:
			values = append(values, strings.Join(at.segments[i:], "/"))
		case at.segments[i] == "":
			return nil, false, false
		default:
			values = append(values, at.segments[i])
		}
	}
	return values, slash == at.slash, true
}

// resource is the pattern that a path has, "" if there is none.
func (s *schema) resource(at *address) string {
	for _, h := range s.candidates(at) {
		if _, _, ok := h.match(at); ok {
			return h.pattern
		}
	}
	return ""
}

// endpointOf finds the SQL endpoint that a call leads to, nil if there is none.
func (d *Dialect) endpointOf(snap *catalog.Snapshot, c *dialect.Call) *catalog.Endpoint {
	at, ok := addressOf(c)
	if !ok {
		return nil
	}
	s := d.modelOf(snap).schemas[at.schema]
	if s == nil {
		return nil
	}
	h, _, _ := s.route(methodOf(c), &at)
	if h == nil {
		return nil
	}
	return h.def
}
