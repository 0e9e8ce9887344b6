package odata

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
)

// use says what a body is for, which decides what of it counts.
type use uint8

const (
	creating  use = iota // a new entity: properties that can be set then
	updating             // a stored one: properties that can be changed
	upserting            // either
	wanting              // parameters of an action: all of them
)

// takes reports whether a value that a client sends for p counts; what does not is passed over, as Gateway does. Keys count always: they say
// which entity is meant.
func (u use) takes(p *edm.Property) bool {
	switch {
	case u == wanting:
		return true
	case p.IsKey:
		return u != creating || p.Creatable
	case u == creating:
		return p.Creatable
	case u == updating:
		return p.Updatable
	}
	return p.Creatable || p.Updatable
}

// bodyReader reads the entities of one request body. A deep insert holds thousands of them, and a batch thousands of bodies, so a reader
// is kept and used again: nothing but the texts that it finds is left behind. These are pieces of the body, where nothing was escaped.
type bodyReader struct {
	ver  version
	use  use
	max  int // how deep entities may nest
	body []byte
	text string // the same bytes
	pos  int
	err  *record.Error

	levels []*level // by depth
	depth  int      // of the entity being read, from 1
	nested int      // of JSON values that are passed over

	entities slab[entity]
	props    slab[propValue]
	navs     slab[navValue]
	lists    slab[*entity]
	room     []byte // for texts that were escaped
}

// level is what entities at one depth share.
type level struct {
	props  []propValue // of the entity being read
	keys   []propValue
	navs   []navValue
	list   []*entity // of the navigation property being read
	orders []order
}

// order is how entities of a type are laid out: clients write all of them alike, so what follows a member is mostly what followed it in
// the entity before.
type order struct {
	typ     *edm.Type
	members []member
	seen    []uint32 // by property, then by navigation property: the entity that last had it
	entity  uint32
	misses  int
}

// member is what a name in an entity means.
type member struct {
	name string
	what memberKind
	prop *edm.Property
	nav  *edm.Nav
}

type memberKind uint8

const (
	propMember memberKind = iota
	navMember
	metaMember    // V2 __metadata
	bindMember    // V4 Nav@odata.bind
	deltaMember   // V4 Nav@delta
	contextMember // V4 @odata.context
	etagMember    // V4 @odata.etag
	idMember      // V4 @odata.id
	cidMember     // V4 @Core.ContentID
	goneMember    // V4 @removed
	otherMember   // nothing that matters here
)

// maxOrder bounds the members of an order: names with @ are the client's.
const maxOrder = 200

// slab hands out slices of one piece of memory.
type slab[T any] struct {
	piece []T
	used  int
	first []T // the first piece, to begin with again
	least int // elements of the first piece
}

// slabMost is how many elements a piece has at most, if nobody needs more at once.
const slabMost = 2048

// take is n zero elements.
func (s *slab[T]) take(n int) []T {
	if len(s.piece)-s.used < n {
		s.piece = make([]T, max(n, min(max(2*len(s.piece), s.least), slabMost)))
		s.used = 0
		if s.first == nil {
			s.first = s.piece
		}
	}
	out := s.piece[s.used : s.used+n : s.used+n]
	s.used += n
	return out
}

// keep is a copy of list.
func (s *slab[T]) keep(list []T) []T {
	out := s.take(len(list))
	copy(out, list)
	return out
}

// reset takes back all that was handed out.
func (s *slab[T]) reset() {
	used := len(s.first)
	if len(s.piece) > 0 && len(s.first) > 0 && &s.piece[0] == &s.first[0] {
		used = s.used
	}
	clear(s.first[:used])
	s.piece, s.used = s.first, 0
}

var readers = sync.Pool{New: func() any {
	r := new(bodyReader)
	r.entities.least, r.props.least, r.navs.least, r.lists.least = 16, 64, 16, 16
	return r
}}

// reader begins to read a body. Whoever has no more need of the entities gives it back by release.
func (q *request) reader(u use) *bodyReader {
	r := readers.Get().(*bodyReader)
	r.ver, r.use, r.max = q.ver, u, q.d.opt.MaxDepth
	r.body = bytes.TrimPrefix(q.call.Body, byteOrderMark)
	r.text = unsafe.String(unsafe.SliceData(r.body), len(r.body))
	return r
}

// byteOrderMark begins what some Windows clients send.
var byteOrderMark = []byte("\ufeff")

// release gives the reader back: its entities are no more.
func (r *bodyReader) release() {
	for _, l := range r.levels {
		clear(l.props[:cap(l.props)])
		clear(l.navs[:cap(l.navs)])
		clear(l.list[:cap(l.list)])
	}
	r.entities.reset()
	r.props.reset()
	r.navs.reset()
	r.lists.reset()
	r.body, r.text, r.pos, r.err, r.depth, r.nested = nil, "", 0, nil, 0, 0
	readers.Put(r)
}

// media is what a body is written in.
type media uint8

const (
	jsonMedia media = iota
	xmlMedia
	otherMedia
)

// mediaOf is what a body is written in: its Content-Type says so, or, in parts of batches, its first character. The error is an Unsupported.
func mediaOf(contentType string, body []byte) (media, error) {
	name, params, _ := strings.Cut(contentType, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	for p := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(p, "=")
		if !strings.EqualFold(strings.TrimSpace(key), "charset") {
			continue
		}
		switch value = strings.ToLower(strings.Trim(strings.TrimSpace(value), `"`)); value {
		case "utf-8", "utf8", "us-ascii", "":
		default:
			return 0, record.Errorf(record.Unsupported, "Content-Type", "bodies are read in UTF-8, not in %.40s", value)
		}
	}
	switch {
	case name == "application/json" || strings.HasSuffix(name, "+json"):
		return jsonMedia, nil
	case name == "application/xml" || name == "text/xml" || strings.HasSuffix(name, "+xml"):
		return xmlMedia, nil
	case name != "" && name != "application/octet-stream":
		return otherMedia, record.Errorf(record.Unsupported, "Content-Type", "a body of type %.80s cannot be read here", name)
	}
	switch b := bytes.TrimLeft(bytes.TrimPrefix(body, byteOrderMark), " \t\r\n"); {
	case len(b) > 0 && b[0] == '<':
		return xmlMedia, nil
	case len(b) == 0 || b[0] == '{' || b[0] == '[':
		return jsonMedia, nil
	}
	return otherMedia, record.Errorf(record.Unsupported, "Content-Type", "the body has no type and is neither JSON nor XML")
}

// readEntity reads the entity in the body of the call. It is valid until the reader is released, which is the caller's after success.
func (q *request) readEntity(typ *edm.Type, u use) (*entity, *bodyReader, error) {
	m, err := mediaOf(q.call.Header.Get("Content-Type"), q.call.Body)
	if err != nil {
		return nil, nil, err
	}
	r := q.reader(u)
	var e *entity
	switch {
	case m == jsonMedia:
		e = r.readJSON(typ)
	case q.ver == v2:
		e = r.readAtom(typ)
	default:
		r.err = record.Errorf(record.Unsupported, "Content-Type", "bodies of V4 are JSON")
	}
	if r.err != nil {
		err := r.err
		r.release()
		return nil, nil, err
	}
	return e, r, nil
}

// readJSON reads a body that is one entity.
func (r *bodyReader) readJSON(typ *edm.Type) *entity {
	if !r.valid() {
		return nil
	}
	e := r.begin(typ, nil, nil, -1)
	wrapped := r.ver == v2 && r.unwrap(typ)
	if r.peek() != '{' {
		r.broken("the body holds no object")
		return nil
	}
	if !r.entity(e) || wrapped && !r.end('}') || !r.over() {
		return nil
	}
	return e
}

// failure is the error that ended the reading, nil if none did.
func (r *bodyReader) failure() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// readValue reads a body that is one property: {"Price":9.5} in V2, {"value":9.5} in V4, where a complex one is the object itself.
func (r *bodyReader) readValue(typ *edm.Type, p *edm.Property) []propValue {
	if !r.valid() {
		return nil
	}
	e := r.begin(typ, nil, nil, -1)
	l := &level{}
	name := p.Name
	if r.ver == v4 {
		if p.Kind == edm.ComplexKind {
			if r.peek() != '{' {
				r.broken("the body holds no object")
				return nil
			}
			if !r.complex(l, e, p) || !r.over() {
				return nil
			}
			return l.props
		}
		name = "value"
	}
	wrapped := r.ver == v2 && name != "d" && r.unwrap(typ)
	found := false
	if !r.members(func(member string) bool {
		switch {
		case member == name && !found:
			found = true
			if p.Kind == edm.ComplexKind {
				return r.complex(l, e, p)
			}
			return r.value(l, e, p)
		case strings.HasPrefix(member, "__") && r.ver == v2, strings.IndexByte(member, '@') >= 0 && r.ver == v4:
			return r.skip()
		}
		return r.refuse(nil, member, "the property %s is expected here, and nothing else", propPath(p))
	}) || wrapped && !r.end('}') || !r.over() {
		return nil
	}
	if !found {
		r.refuse(nil, propPath(p), "the body has no value for it")
	}
	return l.props
}

// readLink reads a body that names an entity: {"uri":"…"} in V2, {"@odata.id":"…"} in V4.
func (r *bodyReader) readLink() string {
	if !r.valid() {
		return ""
	}
	address := ""
	wrapped := r.ver == v2 && r.unwrap(nil)
	if !r.members(func(member string) bool {
		if r.peek() != '"' || member != "uri" && r.ver == v2 || member != "@odata.id" && member != "@id" && r.ver == v4 {
			return r.skip()
		}
		var ok bool
		address, ok = r.quoted()
		return ok
	}) || wrapped && !r.end('}') || !r.over() {
		return ""
	}
	return address
}

// members reads an object and lets each read the values.
func (r *bodyReader) members(each func(name string) bool) bool {
	if r.peek() != '{' {
		return r.broken("the body holds no object")
	}
	r.pos++
	for n := 0; ; n++ {
		if r.peek() == '}' {
			r.pos++
			return true
		}
		if n > 0 && !r.end(',') {
			return false
		}
		name, ok := r.name()
		if !ok || !each(name) {
			return false
		}
	}
}

// valid checks what holds for all of the body.
func (r *bodyReader) valid() bool {
	if utf8.Valid(r.body) {
		return true
	}
	at := 0
	for at < len(r.body) {
		c, size := utf8.DecodeRune(r.body[at:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	r.pos = at
	return r.broken("the text is not valid UTF-8")
}

// begin is a new entity at a place.
func (r *bodyReader) begin(typ *edm.Type, up *entity, via *edm.Nav, nth int) *entity {
	e := &r.entities.take(1)[0]
	e.typ, e.up, e.via, e.nth = typ, up, via, nth
	return e
}

// entity reads an object into e, whose place is known.
func (r *bodyReader) entity(e *entity) bool {
	if r.depth == r.max {
		return r.refuse(e, "", "entities nest more than %d deep; see odata.max_depth", r.max)
	}
	if r.depth == len(r.levels) {
		r.levels = append(r.levels, new(level))
	}
	l := r.levels[r.depth]
	r.depth++
	l.props, l.keys, l.navs = l.props[:0], l.keys[:0], l.navs[:0]
	o := l.order(e.typ)
	o.begin()
	r.pos++ // {
	at := 0
	for first := true; ; first = false {
		if r.peek() == '}' {
			r.pos++
			break
		}
		if !first && !r.end(',') {
			return false
		}
		name, ok := r.name()
		if !ok {
			return false
		}
		m, next, ok := r.find(o, name, at)
		if !ok {
			return r.refuse(e, name, "type %s has no property %.80s", e.typ.Name, name)
		}
		at = next
		if !r.member(l, o, e, &m) {
			return false
		}
	}
	o.settle()
	e.props, e.keys, e.navs = r.props.keep(l.props), r.props.keep(l.keys), r.navs.keep(l.navs)
	r.depth--
	return true
}

// order finds how entities of a type are laid out at this depth.
func (l *level) order(typ *edm.Type) *order {
	for i := range l.orders {
		if l.orders[i].typ == typ {
			return &l.orders[i]
		}
	}
	if len(l.orders) == 8 {
		l.orders = l.orders[:0] // types of services that are no more, or of many at once
	}
	l.orders = append(l.orders, order{typ: typ, seen: make([]uint32, len(typ.Properties)+len(typ.Navs))})
	return &l.orders[len(l.orders)-1]
}

func (o *order) begin() {
	o.entity++
	if o.entity == 0 {
		clear(o.seen)
		o.entity = 1
	}
	o.misses = 0
}

// settle forgets an order that did not fit, so that the next entity sets it anew.
func (o *order) settle() {
	if o.misses > 4 && 2*o.misses > len(o.members) {
		o.members = o.members[:0]
	}
}

// twice notes a property or navigation property of the entity; true if it has been there already.
func (o *order) twice(index int) bool {
	if o.seen[index] == o.entity {
		return true
	}
	o.seen[index] = o.entity
	return false
}

// find is what a name means. The one at position at of the order is the likely one, else one that is left out now and then.
func (r *bodyReader) find(o *order, name string, at int) (m member, next int, ok bool) {
	for i := at; i < min(at+3, len(o.members)); i++ {
		if o.members[i].name == name {
			return o.members[i], i + 1, true
		}
	}
	if r.ver == v2 {
		m, ok = meaning2(o.typ, name)
	} else {
		m, ok = meaning4(o.typ, name)
	}
	if !ok {
		return m, at, false
	}
	if at < len(o.members) || at >= maxOrder {
		o.misses++
		return m, at, true
	}
	m.name = strings.Clone(name) // it outlives the body
	o.members = append(o.members, m)
	return m, at + 1, true
}

// meaningOf is the property or navigation property of that name.
func meaningOf(typ *edm.Type, name string) (member, bool) {
	if p := typ.Property(name); p != nil {
		return member{what: propMember, prop: p}, true
	}
	if n := typ.Nav(name); n != nil {
		return member{what: navMember, nav: n}, true
	}
	return member{}, false
}

// member reads the value of a member of e.
func (r *bodyReader) member(l *level, o *order, e *entity, m *member) bool {
	switch m.what {
	case propMember:
		p := m.prop
		if o.twice(p.Index) {
			return r.refuse(e, p.Name, "the property is there twice")
		}
		switch {
		case p.Kind == edm.ComplexKind:
			return r.complex(l, e, p)
		case !r.use.takes(p) && (!p.IsKey || r.peek() != '"'):
			return r.skip()
		case !r.use.takes(p):
			s, ok := r.scalar()
			if ok {
				if v, fault := valueOf(r.ver, p, s); fault == "" {
					l.keys = append(l.keys, propValue{p, v})
				}
			}
			return ok
		}
		return r.value(l, e, p)
	case navMember:
		if o.twice(len(o.typ.Properties) + m.nav.Index) {
			return r.refuse(e, m.nav.Name, "the navigation property is there twice")
		}
		if r.ver == v2 {
			return r.nav2(e, m.nav)
		}
		return r.nav4(e, m.nav, false)
	case metaMember:
		return r.metadata2(e)
	case otherMember:
		return r.skip()
	}
	return r.control4(o, e, m)
}

// value reads a primitive value.
func (r *bodyReader) value(l *level, e *entity, p *edm.Property) bool {
	s, ok := r.scalar()
	if !ok {
		return false
	}
	if s.kind == 'n' && p.IsKey && filled(e.typ, p) {
		return true // the server is asked to make one
	}
	v, fault := valueOf(r.ver, p, s)
	if fault != "" {
		return r.refuse(e, propPath(p), "%s", fault)
	}
	l.props = append(l.props, propValue{p, v})
	return true
}

// filled reports whether the server makes a value of a key property that the client does not give.
func filled(typ *edm.Type, p *edm.Property) bool {
	f := p.Field
	return typ.Table == nil || f != nil && (f.Sequence != nil || f.Identity || f.Generated || f.Audit || f.Type == record.TypeGUID || f.Default != "")
}

// complex reads the members of a complex property; null is null in all of them.
func (r *bodyReader) complex(l *level, e *entity, p *edm.Property) bool {
	switch r.peek() {
	case 'n':
		if _, ok := r.scalar(); !ok {
			return false
		}
		if !p.Nullable {
			return r.refuse(e, p.Name, "null is not allowed")
		}
		for _, part := range p.Parts {
			if r.use.takes(part) {
				l.props = append(l.props, propValue{prop: part})
			}
		}
		return true
	case '{':
	default:
		return r.refuse(e, p.Name, "an object of type %s is expected", p.Complex.Name)
	}
	first := len(l.props)
	r.pos++
	for n := 0; ; n++ {
		if r.peek() == '}' {
			r.pos++
			return true
		}
		if n > 0 && !r.end(',') {
			return false
		}
		name, ok := r.name()
		if !ok {
			return false
		}
		part := p.Part(name)
		switch {
		case part == nil && (strings.IndexByte(name, '@') >= 0 && r.ver == v4 || strings.HasPrefix(name, "__") && r.ver == v2):
			if !r.skip() {
				return false
			}
			continue
		case part == nil:
			return r.refuse(e, p.Name+"/"+name, "type %s has no property %.80s", p.Complex.Name, name)
		}
		for _, old := range l.props[first:] {
			if old.prop == part {
				return r.refuse(e, p.Name+"/"+name, "the property is there twice")
			}
		}
		if !r.use.takes(part) {
			ok = r.skip()
		} else {
			ok = r.value(l, e, part)
		}
		if !ok {
			return false
		}
	}
}

// list reads an array of entities below nav.
func (r *bodyReader) list(e *entity, nav *edm.Nav, v *navValue) bool {
	l := r.levels[r.depth-1]
	list := l.list[:0]
	r.pos++
	for n := 0; ; n++ {
		if r.peek() == ']' {
			r.pos++
			break
		}
		if n > 0 && !r.end(',') {
			return false
		}
		if r.peek() != '{' {
			return r.refuse(e, nav.Name+"("+strconv.Itoa(n)+")", "an object is expected")
		}
		child := r.begin(nav.Target.Type, e, nav, n)
		if !r.entity(child) {
			return false
		}
		if child.linked() {
			v.binds = append(v.binds, child.id)
			continue
		}
		list = append(list, child)
	}
	l.list = list
	v.list = r.lists.keep(list)
	return true
}

// linked reports whether a nested entity is a mere link to one that is there.
func (e *entity) linked() bool {
	return e.id != "" && len(e.props) == 0 && len(e.navs) == 0 && !e.gone
}

// nest notes what e holds below a navigation property.
func (r *bodyReader) nest(v navValue) bool {
	l := r.levels[r.depth-1]
	l.navs = append(l.navs, v)
	return true
}

// place is where in the body an entity stands: "ToProducts(3)/ToSupplier", "" for the root.
func (e *entity) place() string {
	if e == nil || e.up == nil && e.nth < 0 {
		return ""
	}
	return string(e.appendPlace(nil))
}

func (e *entity) appendPlace(dst []byte) []byte {
	if e.up != nil {
		if dst = e.up.appendPlace(dst); len(dst) > 0 {
			dst = append(dst, '/')
		}
	}
	switch {
	case e.via != nil:
		dst = append(dst, e.via.Name...)
	case e.nth >= 0:
		dst = append(dst, "value"...)
	}
	if e.nth >= 0 {
		dst = append(strconv.AppendInt(append(dst, '('), int64(e.nth), 10), ')')
	}
	return dst
}

// refuse ends the reading with an error about a property of e; it returns false.
func (r *bodyReader) refuse(e *entity, name, format string, args ...any) bool {
	r.err = record.Errorf(record.Invalid, below(e.place(), name), format, args...)
	return false
}

// below is the place of a property at a place.
func below(place, name string) string {
	const most = 80
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	switch {
	case place == "":
		return name
	case name == "":
		return place
	}
	return place + "/" + name
}

// broken ends the reading of a text that is no JSON; it returns false.
func (r *bodyReader) broken(what string) bool {
	if r.err == nil {
		r.err = record.Errorf(record.Invalid, "", "%s, at byte %d", what, r.pos).Because(dialect.ErrBody)
	}
	return false
}

// scalar is a JSON value that holds no others.
type scalar struct {
	kind byte // as it begins: " 0 t f n, and { [ for values that do hold others
	text string
}

// peek is the next byte that is no blank, 0 at the end.
func (r *bodyReader) peek() byte {
	for r.pos < len(r.body) {
		switch c := r.body[r.pos]; c {
		case ' ', '\n', '\r', '\t':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

// end reads one byte of punctuation.
func (r *bodyReader) end(c byte) bool {
	if r.peek() != c {
		if r.pos == len(r.body) {
			return r.broken("the body ends before its JSON does")
		}
		return r.broken(strconv.QuoteRune(rune(c)) + " is expected")
	}
	r.pos++
	return true
}

// over checks that nothing follows.
func (r *bodyReader) over() bool {
	if r.peek() != 0 || r.pos < len(r.body) {
		return r.broken("more follows after the JSON")
	}
	return true
}

// name reads the name of a member and the colon.
func (r *bodyReader) name() (string, bool) {
	if r.peek() != '"' {
		if r.pos == len(r.body) {
			return "", r.broken("the body ends before its JSON does")
		}
		return "", r.broken("a name in quotes is expected")
	}
	s, ok := r.quoted()
	if !ok {
		return "", false
	}
	if r.pos < len(r.body) && r.body[r.pos] == ':' {
		r.pos++
		return s, true
	}
	return s, r.end(':')
}

// quoted reads a text.
func (r *bodyReader) quoted() (string, bool) {
	r.pos++
	start := r.pos
	for i, c := range r.body[start:] {
		switch {
		case c == '"':
			r.pos = start + i + 1
			return r.text[start : start+i], true
		case c == '\\':
			return r.escaped(start, start+i)
		case c < 0x20:
			r.pos = start + i
			return "", r.broken("a control character stands in a text")
		}
	}
	r.pos = len(r.body)
	return "", r.broken("a text does not end")
}

// escaped reads a text that begins at start and has its first backslash at i.
func (r *bodyReader) escaped(start, i int) (string, bool) {
	end := i
	for end < len(r.body) && r.body[end] != '"' {
		if r.body[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(r.body) {
		r.pos = len(r.body)
		return "", r.broken("a text does not end")
	}
	if cap(r.room)-len(r.room) < end-start {
		r.room = make([]byte, 0, max(end-start, 1024))
	}
	at := len(r.room)
	out := append(r.room, r.body[start:i]...)
	for i < end {
		c := r.body[i]
		if c < 0x20 {
			r.pos = i
			return "", r.broken("a control character stands in a text")
		}
		if c != '\\' {
			out = append(out, c)
			i++
			continue
		}
		r.pos = i
		switch c = r.body[i+1]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			c, ok := hex4(r.body[i+2 : end])
			if !ok {
				return "", r.broken("an escape is not \\u and four digits")
			}
			i += 4
			if c >= 0xD800 && c < 0xE000 {
				var low rune
				if ok = c < 0xDC00 && i+4 < end && r.body[i+2] == '\\' && r.body[i+3] == 'u'; ok {
					low, ok = hex4(r.body[i+4 : end])
				}
				if !ok || low < 0xDC00 || low >= 0xE000 {
					return "", r.broken("half of a surrogate pair stands alone")
				}
				c = 0x10000 + (c-0xD800)<<10 + low - 0xDC00
				i += 6
			}
			out = utf8.AppendRune(out, c)
		default:
			return "", r.broken("an escape is none that JSON has")
		}
		i += 2
	}
	r.room, r.pos = out, end+1
	if at == len(out) {
		return "", true
	}
	return unsafe.String(&out[at], len(out)-at), true
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var n rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// scalar reads a value; of an object or array it says only that there is one, and does not read it.
func (r *bodyReader) scalar() (scalar, bool) {
	switch c := r.peek(); c {
	case '"':
		s, ok := r.quoted()
		return scalar{'"', s}, ok
	case 't':
		return scalar{c, "true"}, r.word("true")
	case 'f':
		return scalar{c, "false"}, r.word("false")
	case 'n':
		return scalar{c, "null"}, r.word("null")
	case '{', '[':
		return scalar{kind: c}, true
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return r.number()
	case 0:
		if r.pos == len(r.body) {
			return scalar{}, r.broken("the body ends before its JSON does")
		}
	}
	return scalar{}, r.broken("a value is expected")
}

func (r *bodyReader) word(w string) bool {
	if !strings.HasPrefix(r.text[r.pos:], w) {
		return r.broken("a value is expected")
	}
	r.pos += len(w)
	return true
}

func (r *bodyReader) number() (scalar, bool) {
	start, i := r.pos, r.pos
	digits := func() bool {
		from := i
		for i < len(r.body) && r.body[i] >= '0' && r.body[i] <= '9' {
			i++
		}
		return i > from
	}
	if r.body[i] == '-' {
		i++
	}
	ok := true
	if i < len(r.body) && r.body[i] == '0' {
		i++
	} else {
		ok = digits()
	}
	if ok && i < len(r.body) && r.body[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(r.body) && r.body[i]|0x20 == 'e' {
		i++
		if i < len(r.body) && (r.body[i] == '+' || r.body[i] == '-') {
			i++
		}
		ok = digits()
	}
	if ok && i < len(r.body) {
		switch r.body[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
		default:
			ok = false
		}
	}
	if !ok {
		return scalar{}, r.broken("a number is malformed")
	}
	r.pos = i
	return scalar{'0', r.text[start:i]}, true
}

// maxSkip bounds the nesting of values that nobody reads.
const maxSkip = 100

// skip passes over a value.
func (r *bodyReader) skip() bool {
	s, ok := r.scalar()
	if !ok || s.kind != '{' && s.kind != '[' {
		return ok
	}
	if r.nested == maxSkip {
		return r.broken("values nest too deep")
	}
	r.nested++
	closing := s.kind + 2 // { and }, [ and ]
	r.pos++
	for n := 0; ; n++ {
		if r.peek() == closing {
			r.pos++
			r.nested--
			return true
		}
		if n > 0 && !r.end(',') {
			return false
		}
		if s.kind == '{' {
			if _, ok := r.name(); !ok {
				return false
			}
		}
		if !r.skip() {
			return false
		}
	}
}
