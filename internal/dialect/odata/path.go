package odata

import (
	"strings"
	"unicode/utf8"

	"weir/internal/edm"
	"weir/internal/record"
)

// parsePath reads what follows the service root. Errors are NoPath for segments that name nothing and Invalid for malformed keys
// and parameters, with the segment.
//
// A key is a literal alone or names with values in any order (protocol notes, section 2); in V4 it may also be a segment of its own, and
// a key after navigation may leave out what the entity before it says. A slash at the end says nothing.
func (q *request) parsePath() (*target, error) {
	if set := q.svc.Set(q.rest); set != nil {
		return &target{kind: setTarget, set: set}, nil // creates, of which a batch has thousands
	}
	p := &pathParser{q: q, t: &target{}}
	raw := splitPath(q.rest)
	if n := len(raw); raw[n-1] == "" {
		raw = raw[:n-1]
	}
	p.segments = make([]pathSegment, 0, len(raw))
	for _, s := range raw {
		text, ok := unescape(s, false)
		if !ok {
			return nil, record.Errorf(record.Invalid, "", "the segment %.80q has a bad escape or is not UTF-8", s)
		}
		p.segments = append(p.segments, pathSegment{raw: s, text: text})
	}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.t, nil
}

// splitPath cuts a path that is still percent-encoded at its slashes. Those within parentheses stay: they belong to a quoted key
// that the client should have encoded, or to an expression.
func splitPath(s string) []string {
	if strings.IndexByte(s, '(') < 0 && !strings.Contains(s, "%28") {
		return strings.Split(s, "/")
	}
	var list []string
	depth, quoted, from := 0, false, 0
	for i := 0; i < len(s); i++ {
		c, size := s[i], 1
		if c == '%' && i+2 < len(s) {
			switch s[i : i+3] {
			case "%27":
				c, size = '\'', 3
			case "%28":
				c, size = '(', 3
			case "%29":
				c, size = ')', 3
			}
		}
		switch {
		case c == '\'' && depth > 0:
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth = max(depth-1, 0)
		case c == '/' && depth == 0:
			list = append(list, s[from:i])
			from = i + 1
		}
		i += size - 1
	}
	if depth > 0 || quoted {
		return strings.Split(s, "/")
	}
	return append(list, s[from:])
}

// pathSegment is one segment of a path, as sent and decoded.
type pathSegment struct{ raw, text string }

// head splits a segment into its name and what stands in the parentheses behind it. It is false if they are not closed.
func (s pathSegment) head() (name, args string, call, ok bool) {
	open := strings.IndexByte(s.text, '(')
	if open < 0 {
		return s.text, "", false, true
	}
	if s.text[len(s.text)-1] != ')' {
		return "", "", false, false
	}
	return s.text[:open], s.text[open+1 : len(s.text)-1], true, true
}

func (s pathSegment) malformed(format string, args ...any) error {
	return record.Errorf(record.Invalid, "", "segment '%.120s': "+format, append([]any{s.text}, args...)...)
}

// pathParser reads the segments of one path from left to right.
type pathParser struct {
	q        *request
	t        *target
	segments []pathSegment
	next     int

	typ  *edm.Type      // of the entities reached so far
	many bool           // all entities of a collection, not one of them
	key  []record.Value // of the entity reached, nil if the path does not say it
}

func (p *pathParser) more() bool { return p.next < len(p.segments) }

func (p *pathParser) take() pathSegment {
	p.next++
	return p.segments[p.next-1]
}

// end refuses what follows the last segment that means something.
func (p *pathParser) end() error {
	if p.more() {
		return noPath(p.segments[p.next].text)
	}
	return nil
}

func (p *pathParser) parse() error {
	if !p.more() {
		p.t.kind = serviceTarget
		return nil
	}
	s := p.take()
	switch s.text {
	case "$metadata":
		p.t.kind = metadataTarget
		return p.end()
	case "$batch":
		p.t.kind = batchTarget
		return p.end()
	}
	if id, ok := strings.CutPrefix(s.text, "$"); ok {
		if p.q.refs == nil {
			return noPath(s.text)
		}
		ref, ok := p.q.refs(id)
		if !ok {
			return s.malformed("no earlier request of the same changeset or batch has that Content-ID and an entity")
		}
		p.t.kind, p.t.set, p.t.key = entityTarget, ref.set, ref.key
		p.typ, p.key = ref.set.Type, ref.key
		return p.follow()
	}
	name, args, call, ok := s.head()
	if !ok {
		return s.malformed("the parenthesis is not closed")
	}
	if set := p.q.svc.Set(name); set != nil {
		p.t.kind, p.t.set, p.typ, p.many = setTarget, set, set.Type, true
		if call && strings.TrimSpace(args) != "" {
			key, err := p.keyOf(s, args, nil)
			if err != nil {
				return err
			}
			p.t.key = key
			p.reach(key)
		}
		return p.follow()
	}
	if f := p.q.svc.Function(name); f != nil {
		p.t.kind, p.t.function = functionTarget, f
		if p.q.ver == v2 {
			if err := p.q.calls(f); err != nil {
				return err // before its parameters are missed
			}
		}
		var err error
		if p.t.args, err = p.q.parameters(s, f, args); err != nil {
			return err
		}
		return p.end()
	}
	return noPath(s.text)
}

// reach makes the entity of that key what the path has reached.
func (p *pathParser) reach(key []record.Value) {
	p.t.kind, p.many, p.key = entityTarget, false, key
}

// follow reads what comes after a set, an entity or a navigation property.
func (p *pathParser) follow() error {
	for p.more() {
		s := p.take()
		// In V4 a key may be a segment behind a set; its own $ would be encoded.
		if strings.HasPrefix(s.raw, "$") || strings.HasPrefix(s.text, "$") && !(p.many && p.q.ver == v4) {
			if done, err := p.system(s); done || err != nil {
				return err
			}
			continue
		}
		if strings.IndexByte(s.text, '.') >= 0 {
			if done, err := p.qualified(s); done || err != nil {
				return err
			} else if p.isType(s.text) {
				continue
			}
		}
		if p.many {
			if p.q.ver == v2 || s.text == "" || p.t.filter != nil {
				return noPath(s.text)
			}
			if err := p.keySegments(s); err != nil {
				return err
			}
			continue
		}
		name, args, call, ok := s.head()
		if !ok {
			return s.malformed("the parenthesis is not closed")
		}
		if nav := p.typ.Nav(name); nav != nil {
			if err := p.navigate(s, nav, args, call); err != nil {
				return err
			}
			continue
		}
		if prop := p.typ.Property(name); prop != nil && !call {
			return p.property(prop)
		}
		return noPath(s.text)
	}
	return nil
}

// system reads a segment that begins with $. done says that the path ends there.
func (p *pathParser) system(s pathSegment) (done bool, err error) {
	t, is4, name := p.t, p.q.ver == v4, s.text
	switch {
	case name == "$count" && p.many:
		t.count = true
		return true, p.end()
	case name == "$value" && !p.many:
		t.value = true
		return true, p.end()
	case name == "$ref" && is4:
		t.links = true
		return true, p.end()
	case name == "$links" && !is4 && !p.many && p.more():
		t.links = true
		s = p.take()
		name, args, call, ok := s.head()
		nav := p.typ.Nav(name)
		if !ok || nav == nil {
			return true, noPath(s.text)
		}
		if err := p.navigate(s, nav, args, call); err != nil {
			return true, err
		}
		return true, p.end()
	case name == "$each" && is4 && p.many:
		t.each = true
		return true, p.end()
	case strings.HasPrefix(name, "$filter(") && is4 && p.many:
		return false, p.filter(s)
	}
	return true, noPath(s.text)
}

// filter reads a segment $filter(…), which narrows a collection.
func (p *pathParser) filter(s pathSegment) error {
	scan := &scanner{q: p.q, option: "$filter", s: s.text, i: len("$filter("), spent: &spent{}}
	where, err := scan.filter(p.typ)
	if err != nil {
		return err
	}
	if err := scan.need(')'); err != nil {
		return err
	}
	p.t.filter = record.AllOf(p.t.filter, where)
	if p.t.filter == nil {
		p.t.filter = always
	}
	return scan.end()
}

func (p *pathParser) isType(name string) bool {
	schema, typ, ok := cutLast(name, '.')
	return ok && typ == p.typ.Name && schema == p.q.svc.Schema
}

// cutLast cuts s at the last sep.
func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// qualified reads a function or action that is bound to the entity reached: SalesOrderSet('1')/NS.SalesOrder_Confirm.
func (p *pathParser) qualified(s pathSegment) (done bool, err error) {
	name, args, _, ok := s.head()
	schema, short, dotted := cutLast(name, '.')
	if !ok || !dotted || schema != p.q.svc.Schema || p.many {
		return false, nil
	}
	f := p.q.svc.Function(short)
	if f == nil || f.ActionFor != p.typ {
		return false, nil
	}
	bound := make([]record.Value, len(f.Parameters))
	for i, param := range f.Parameters {
		for k, prop := range p.typ.Key {
			if prop.Name == param.Name && k < len(p.key) {
				bound[i] = p.key[k]
			}
		}
	}
	given, err := p.q.parametersWith(s, f, args, bound)
	if err != nil {
		return true, err
	}
	*p.t = target{kind: functionTarget, function: f, args: given}
	return true, p.end()
}

// navigate follows a navigation property.
func (p *pathParser) navigate(s pathSegment, nav *edm.Nav, args string, call bool) error {
	from := implied{nav, p.key}
	p.t.path = append(p.t.path, step{nav: nav})
	p.typ, p.many, p.key = nav.Target.Type, nav.Many, nil
	p.t.kind = entityTarget
	if nav.Many {
		p.t.kind = setTarget
	}
	if !call || strings.TrimSpace(args) == "" {
		return nil
	}
	if !nav.Many {
		return s.malformed("%s leads to one entity and takes no key", nav.Name)
	}
	key, err := p.keyOf(s, args, &from)
	if err != nil {
		return err
	}
	p.t.path[len(p.t.path)-1].key = key
	p.reach(key)
	return nil
}

// property reads a property and what may follow it.
func (p *pathParser) property(prop *edm.Property) error {
	p.t.kind = propertyTarget
	p.t.prop = []*edm.Property{prop}
	if prop.Kind == edm.ComplexKind {
		if !p.more() {
			return nil
		}
		s := p.take()
		if prop = prop.Part(s.text); prop == nil {
			return noPath(s.text)
		}
		p.t.prop = append(p.t.prop, prop)
	}
	if p.more() && p.segments[p.next].text == "$value" {
		p.t.value = true
		p.next++
	}
	return p.end()
}

// implied is what the entity before a navigation property says about the keys behind it.
type implied struct {
	nav *edm.Nav
	key []record.Value // of the entity before it
}

// value is the value of a key property of the target, false if it does not follow.
func (m *implied) value(prop *edm.Property) (record.Value, bool) {
	if m == nil {
		return record.Value{}, false
	}
	for _, link := range m.nav.On {
		if link.Other != prop {
			continue
		}
		for i, own := range m.nav.Owner.Key {
			if own == link.Own && i < len(m.key) {
				return m.key[i], true
			}
		}
	}
	return record.Value{}, false
}

// pathArg is one argument in parentheses; its name is "" if it has none.
type pathArg struct{ name, text string }

// splitArgs cuts arguments at commas outside quotes.
func splitArgs(s string) []pathArg {
	var list []pathArg
	quoted, from := false, 0
	add := func(text string) {
		a := pathArg{text: strings.TrimSpace(text)}
		if i := strings.IndexByte(a.text, '='); i > 0 && isName(strings.TrimSpace(a.text[:i])) {
			a.name, a.text = strings.TrimSpace(a.text[:i]), strings.TrimSpace(a.text[i+1:])
		}
		list = append(list, a)
	}
	for i := range len(s) {
		switch {
		case s[i] == '\'':
			quoted = !quoted
		case s[i] == ',' && !quoted:
			add(s[from:i])
			from = i + 1
		}
	}
	add(s[from:])
	return list
}

// isName reports whether s is a name of the entity data model.
func isName(s string) bool {
	for i := range len(s) {
		if !isNameByte(s[i]) || i == 0 && s[0] >= '0' && s[0] <= '9' {
			return false
		}
	}
	return s != ""
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// keyOf reads a key in parentheses into the order of the type's key.
func (p *pathParser) keyOf(s pathSegment, args string, from *implied) ([]record.Value, error) {
	props := p.typ.Key
	key := make([]record.Value, len(props))
	set := make([]bool, len(props))
	list := splitArgs(args)
	if len(list) == 1 && list[0].name == "" {
		at, open := 0, 0
		for i, prop := range props {
			if v, ok := from.value(prop); ok && len(props) > 1 {
				key[i], set[i] = v, true
			} else {
				at, open = i, open+1
			}
		}
		if open != 1 {
			return nil, s.malformed("the key of %s has %d properties, each with its name", p.typ.Name, len(props))
		}
		v, err := p.q.keyValue(s, props[at], list[0].text)
		if err != nil {
			return nil, err
		}
		key[at] = v
		return key, nil
	}
	for _, a := range list {
		if a.name == "" {
			return nil, s.malformed("the key of %s has %d properties, each with its name", p.typ.Name, len(props))
		}
		at := -1
		for i, prop := range props {
			if prop.Name == a.name {
				at = i
			}
		}
		switch {
		case at < 0:
			return nil, s.malformed("%.80s is no key property of %s", a.name, p.typ.Name)
		case set[at]:
			return nil, s.malformed("%s stands there twice", a.name)
		}
		v, err := p.q.keyValue(s, props[at], a.text)
		if err != nil {
			return nil, err
		}
		key[at], set[at] = v, true
	}
	for i, prop := range props {
		if set[i] {
			continue
		}
		v, ok := from.value(prop)
		if !ok || p.q.ver == v2 {
			return nil, s.malformed("the key property %s is missing", prop.Name)
		}
		key[i] = v
	}
	return key, nil
}

// keySegments reads a key whose values are segments, one for each property of the key (V4, 4.01).
func (p *pathParser) keySegments(s pathSegment) error {
	var from *implied
	if n := len(p.t.path); n > 0 {
		before := p.t.key
		if n > 1 {
			before = p.t.path[n-2].key
		}
		from = &implied{p.t.path[n-1].nav, before}
	}
	key := make([]record.Value, len(p.typ.Key))
	first := true
	for i, prop := range p.typ.Key {
		if v, ok := from.value(prop); ok && len(key) > 1 {
			key[i] = v
			continue
		}
		if !first {
			if !p.more() {
				return s.malformed("the key property %s is missing", prop.Name)
			}
			s = p.take()
		}
		first = false
		text := s.text
		switch prop.Kind {
		case edm.String:
			text = "'" + strings.ReplaceAll(text, "'", "''") + "'"
		case edm.Duration:
			text = "duration'" + text + "'"
		case edm.Binary:
			text = "binary'" + text + "'"
		}
		v, err := p.q.keyValue(s, prop, text)
		if err != nil {
			return err
		}
		key[i] = v
	}
	if first {
		return noPath(s.text)
	}
	if n := len(p.t.path); n > 0 {
		p.t.path[n-1].key = key
	} else {
		p.t.key = key
	}
	p.reach(key)
	return nil
}

// keyValue reads one value of a key.
func (q *request) keyValue(s pathSegment, prop *edm.Property, text string) (record.Value, error) {
	v, err := q.argument(s, prop, text)
	if err == nil && v.IsNull() {
		err = s.malformed("the key property %s cannot be null", prop.Name)
	}
	return v, err
}

// argument reads a literal, or in V4 the alias of one, as a value of a key property or parameter.
func (q *request) argument(s pathSegment, prop *edm.Property, text string) (record.Value, error) {
	if q.ver == v4 && strings.HasPrefix(text, "@") {
		value, ok := q.query.get(text)
		if !ok {
			return record.Value{}, s.malformed("the alias %.80s has no value in the query", text)
		}
		text = strings.TrimSpace(value)
	}
	v, err := parseLiteral(q.ver, prop.Kind, text)
	if err != nil {
		return v, s.malformed("%s: %s", prop.Name, record.AsError(err).Msg)
	}
	if n := prop.MaxLength; n > 0 && v.Form == record.Text {
		long := prop.Kind == edm.Binary && len(v.S) > n || prop.Kind == edm.String && len(v.S) > n && utf8.RuneCountInString(v.S) > n
		if long {
			return v, s.malformed("%s is longer than %d", prop.Name, n)
		}
	}
	return storedValue(prop.Kind, prop.Field, v), nil
}

// parameters reads the parameters of a function import. V2 takes them from the query, V4 from parentheses, whose values may be
// aliases, or (4.01) from query options of their names. Those of an action of V4 are in the body.
func (q *request) parameters(s pathSegment, f *edm.Function, args string) ([]record.Value, error) {
	return q.parametersWith(s, f, args, make([]record.Value, len(f.Parameters)))
}

// parametersWith is parameters where some are known already.
func (q *request) parametersWith(s pathSegment, f *edm.Function, args string, values []record.Value) ([]record.Value, error) {
	given := make([]bool, len(values))
	take := func(i int, text string) error {
		v, err := q.argument(s, f.Parameters[i], text)
		values[i], given[i] = v, true
		return err
	}
	if args = strings.TrimSpace(args); args != "" {
		if q.ver == v2 || f.Post {
			return nil, s.malformed("%s takes no parameters in parentheses", f.Name)
		}
		for _, a := range splitArgs(args) {
			at := -1
			for i, param := range f.Parameters {
				if param.Name == a.name {
					at = i
				}
			}
			switch {
			case at < 0:
				return nil, s.malformed("%s has no parameter %.80s", f.Name, a.name)
			case given[at]:
				return nil, s.malformed("%s stands there twice", a.name)
			}
			if err := take(at, a.text); err != nil {
				return nil, err
			}
		}
	}
	if q.ver == v4 && f.Post {
		return values, nil
	}
	for i, param := range f.Parameters {
		if given[i] {
			continue
		}
		if text, ok := q.query.get(param.Name); ok {
			if err := take(i, strings.TrimSpace(text)); err != nil {
				return nil, err
			}
		}
		if values[i].IsNull() && !param.Nullable {
			return nil, record.Errorf(record.Invalid, param.Name, "%s: the parameter %s is missing", f.Name, param.Name)
		}
	}
	return values, nil
}
