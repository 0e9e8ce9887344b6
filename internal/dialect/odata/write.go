package odata

import (
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// write is the exchange of a POST, PUT, PATCH, MERGE or DELETE.
func (q *request) write(t *target) (*dialect.Exchange, error) {
	if q.method == "MERGE" && q.ver == v4 {
		return nil, notAllowed(q.method, "a service of V4", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
	}
	x, err := q.change(t)
	if err != nil {
		return nil, err
	}
	// Repeatable requests of OData have a token of their own: see repeatable.
	if key := strings.TrimSpace(q.call.Header.Get("Idempotency-Key")); key != "" {
		once(x, key)
	}
	return x, nil
}

// once gives an exchange, and those that follow it, an idempotency key.
func once(x *dialect.Exchange, key string) {
	x.Token = key
	if next := x.Next; next != nil {
		x.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
			n, err := next(out)
			if n != nil {
				once(n, key+"+")
			}
			return n, err
		}
	}
}

func (q *request) change(t *target) (*dialect.Exchange, error) {
	what := lastSegment(q.rest)
	switch t.kind {
	case functionTarget:
		return q.invoke(t)
	case setTarget:
		switch {
		case t.count:
			return nil, notAllowed(q.method, "$count", "GET", "HEAD")
		case t.links && q.method == "POST", t.links && q.method == "DELETE" && q.ver == v4:
			return q.changeLink(t)
		case t.links:
			return nil, notAllowed(q.method, "links to many entities", "GET", "HEAD", "POST")
		case t.each && (q.method == "PATCH" || q.method == "DELETE"):
			return q.each(t)
		case t.each:
			return nil, notAllowed(q.method, "$each", "PATCH", "DELETE")
		case q.method == "POST":
			return q.create(t)
		case q.method == "PATCH" && q.ver == v4 && t.filter == nil:
			return q.delta(t)
		}
		return nil, notAllowed(q.method, "the set "+what, setMethods(q.ver, t.end())...)
	case entityTarget:
		switch {
		case t.links && (q.method == "PUT" || q.method == "MERGE" || q.method == "PATCH" || q.method == "DELETE"):
			return q.changeLink(t)
		case t.links:
			return nil, notAllowed(q.method, "a link to one entity", "GET", "HEAD", "PUT", "DELETE")
		case t.value:
			return nil, unsupported("", "%s has no media stream", t.end().Type.Name)
		case q.method == "DELETE":
			return q.remove(t)
		case q.method == "POST":
			return nil, notAllowed(q.method, "one entity", entityMethods(q.ver, t.end())...)
		}
		return q.update(t)
	case propertyTarget:
		if q.method == "POST" {
			return nil, notAllowed(q.method, "a property", "GET", "HEAD", "PUT", "DELETE")
		}
		return q.updateProperty(t)
	}
	return nil, notAllowed(q.method, "this address", "GET", "HEAD")
}

// setMethods are what clients may do with a set.
func setMethods(ver version, s *edm.Set) []string {
	list := []string{}
	if s.Readable {
		list = append(list, "GET", "HEAD")
	}
	if s.Creatable {
		list = append(list, "POST")
	}
	if ver == v4 && (s.Creatable || s.Updatable) && s.Type.Table != nil {
		list = append(list, "PATCH")
	}
	return list
}

// entityMethods are what clients may do with an entity of a set.
func entityMethods(ver version, s *edm.Set) []string {
	list := []string{}
	if s.Readable {
		list = append(list, "GET", "HEAD")
	}
	if s.Updatable {
		list = append(list, "PUT", "PATCH")
		if ver == v2 {
			list = append(list, "MERGE")
		}
	}
	if s.Deletable {
		list = append(list, "DELETE")
	}
	return list
}

// echo is what a change answers with.
type echo struct {
	minimal bool   // nothing
	applied string // what Preference-Applied says, "" for nothing
}

// echo is what the call prefers: return=minimal and return=representation, and their forerunners in V3 (protocol notes, section 7). Without
// a preference the entity is answered.
func (q *request) echo() echo {
	switch v, _ := preferred(q.call.Header, "return"); v {
	case "minimal":
		return echo{true, "return=minimal"}
	case "representation":
		return echo{false, "return=representation"}
	}
	if _, ok := preferred(q.call.Header, "return-no-content"); ok {
		return echo{true, "return-no-content"}
	}
	if _, ok := preferred(q.call.Header, "return-content"); ok {
		return echo{false, "return-content"}
	}
	return echo{}
}

// continues reports whether the call wants to go on where one of several changes fails.
func (q *request) continues() bool {
	v, ok := preferred(q.call.Header, "continue-on-error")
	return ok && v != "false"
}

// writing is a call that changes something: its ops, what they stand for, and what the answer needs.
type writing struct {
	*request
	ops    []record.Op
	of     []source // by op
	slots  slab[record.Assign]
	root   *planned
	echo   echo
	upsert bool
	links  map[string]*linked // entities that the body links to, by navigation property and address

	// What a call of one op needs, in one piece: a batch has thousands of them.
	one struct {
		op   [1]record.Op
		of   [1]source
		root planned
		at   [1]int
	}
}

// writing begins the writing of a call to a set.
func (q *request) writing(set *edm.Set) *writing {
	w := &writing{request: q, echo: q.echo()}
	w.ops, w.of, w.root = w.one.op[:0], w.one.of[:0], &w.one.root
	w.root.set, w.root.ops = set, w.one.at[:0]
	return w
}

// source is what an op stands for.
type source struct {
	set  *edm.Set
	e    *entity // in the body, nil for none
	role role
	nav  *edm.Nav // of a bound op
}

// role is why a call has an op, which decides how its failure looks.
type role uint8

const (
	ownOp    role = iota // an entity that the body or the path is about
	parentOp             // one that the path leads through: not to find it is a 404
	boundOp              // one that the body links to: not to find it is a fault of the body
)

// add appends an op and returns its index.
func (w *writing) add(s source, op record.Op) int {
	w.ops, w.of = append(w.ops, op), append(w.of, s)
	return len(w.ops) - 1
}

// ref is the value of a field of one of the call's own ops.
func (w *writing) ref(op int, field string) record.Value { return record.RefTo(w.first+op, field) }

// exchange is that of the call's ops: several are one group, and in a changeset all are part of its group.
func (w *writing) exchange(reply func([]record.Outcome, *wire.Answer)) (*dialect.Exchange, error) {
	if len(w.ops) > 1 || w.group != 0 {
		g := max(w.group, 1)
		for i := range w.ops {
			w.ops[i].Group = g
		}
	}
	return &dialect.Exchange{Ops: w.ops, Reply: reply}, nil
}

// makes notes what $id of the call means to later ones of its batch.
func (w *writing) makes(set *edm.Set, key, known []record.Value) {
	if w.refs != nil {
		// The join shifts Refs in place, so no op shares them.
		w.made = reference{set: set, key: slices.Clone(key), known: known}
	}
}

// aim is the entity that a change is about, with what must hold of it to be the one that the path means.
type aim struct {
	set   *edm.Set
	key   []record.Value // in the order of the type's key; Refs to ops before
	known []record.Value // the same as far as it is known, null where it is not; nil: nothing is
	ifs   []record.Condition
}

// cannotFollow is the error of a path whose end cannot be found in one go with the change.
func cannotFollow(nav *edm.Nav) error {
	return unsupported("", "what stands behind %s cannot be changed through it", nav.Name)
}

// find is the entity that the first steps of a path lead to, with the ops that it takes. path is its text.
func (w *writing) find(path string, t *target, steps int) (aim, error) {
	at := aim{set: t.set, key: slices.Clone(t.key), known: t.key}
	if t.set.Type.Table == nil || t.key == nil {
		return at, noEntity(t.set)
	}
	if id, ok := strings.CutPrefix(path, "$"); ok && w.refs != nil {
		id, _, _ = strings.Cut(id, "/")
		if r, ok := w.refs(id); ok && r.known != nil {
			at.known = r.known
		}
	}
	for i := range steps {
		next, err := w.step(&at, &t.path[i])
		if err != nil {
			return at, err
		}
		at = next
	}
	for i := range at.known {
		if at.known[i].Form == record.Ref {
			at.known = nil
			break
		}
	}
	return at, nil
}

// step follows one navigation property.
func (w *writing) step(at *aim, s *step) (aim, error) {
	next := aim{set: s.nav.Target}
	typ := next.set.Type
	if typ.Table == nil || s.key == nil && s.nav.Many {
		return next, noEntity(next.set)
	}
	own, err := w.values(at, s.nav)
	if err != nil {
		return next, err
	}
	if s.key != nil {
		next.key, next.known = slices.Clone(s.key), s.key
	} else {
		next.key = make([]record.Value, len(typ.Key))
	}
	for k, link := range s.nav.On {
		n := slices.Index(typ.Key, link.Other)
		switch {
		case link.Other.Field == nil:
			return next, cannotFollow(s.nav)
		case s.key == nil && n >= 0:
			next.key[n] = own[k]
		case n >= 0 && own[k].Form != record.Ref && s.key[n].Form != record.Ref:
			if own[k] != s.key[n] {
				return next, noEntity(next.set)
			}
		default:
			next.ifs = append(next.ifs, record.Condition{Field: link.Other.Field.Name, Values: []record.Value{own[k]}})
		}
	}
	for n := range next.key {
		if next.key[n].IsNull() {
			return next, cannotFollow(s.nav)
		}
	}
	return next, nil
}

// values are what a navigation property compares of the entity at hand. What its address does not say is read before.
func (w *writing) values(at *aim, nav *edm.Nav) ([]record.Value, error) {
	own := make([]record.Value, len(nav.On))
	get := -1
	for k, link := range nav.On {
		if n := slices.Index(at.set.Type.Key, link.Own); n >= 0 && len(at.ifs) == 0 {
			own[k] = at.key[n]
			continue
		}
		if link.Own.Field == nil {
			return nil, cannotFollow(nav)
		}
		if get < 0 {
			get = w.get(at, source{set: at.set, role: parentOp})
		}
		own[k] = w.ref(get, link.Own.Field.Name)
	}
	return own, nil
}

// get reads the entity at hand, so that ops may refer to its fields, and fail if it is not there.
func (w *writing) get(at *aim, s source) int {
	return w.add(s, record.Op{Verb: record.Get, Table: at.set.Type.Table.Name, Key: slices.Clone(at.key), If: at.ifs})
}

// changed is what an update, a delete, or a change of a property or link needs to know of its entity: where it is and what its client asks of its
// version. The error is a 428 where that is required and missing.
func (w *writing) changed(t *target, steps int) (aim, condition, error) {
	at, err := w.find(w.rest, t, steps)
	if err != nil {
		return at, condition{}, err
	}
	cond := w.conditions(at.set.Type)
	if err := cond.required(at.set.Type); err != nil {
		return at, cond, err
	}
	if cond.absent || cond.never {
		return at, cond, record.Errorf(record.Precondition, "", changedText)
	}
	at.ifs = append(at.ifs, cond.list...)
	w.makes(at.set, at.key, at.known)
	return at, cond, nil
}

// update is the exchange of a PUT, PATCH or MERGE of an entity.
func (q *request) update(t *target) (*dialect.Exchange, error) {
	set := t.end()
	typ := set.Type
	w := q.writing(set)
	if q.ver == v4 && q.call.Header.Get("If-Match") == "" && set.Creatable && choosesKey(typ) && len(t.path) == 0 {
		return w.put(t)
	}
	if !set.Updatable {
		return nil, notAllowed(q.method, "an entity of "+set.Name, entityMethods(q.ver, set)...)
	}
	at, _, err := w.changed(t, len(t.path))
	if err != nil {
		return nil, err
	}
	e, r, err := q.readEntity(typ, updating)
	if err != nil {
		return nil, err
	}
	foreign, err := w.before(e, nil, nil)
	if err != nil {
		r.release()
		return nil, err
	}
	op := record.Op{Verb: record.Update, Table: typ.Table.Name, Key: at.key, If: at.ifs, Set: w.assigns(e, updating, foreign)}
	if q.method == "PUT" {
		op.Set = resets(op.Set, typ.Properties)
	}
	return w.changing(t, e, r, op)
}

// put is the exchange of a PUT or PATCH of V4 that makes the entity if there is none (upsert).
func (w *writing) put(t *target) (*dialect.Exchange, error) {
	set := t.set
	typ := set.Type
	at, err := w.find(w.rest, t, 0)
	if err != nil {
		return nil, err
	}
	cond := w.conditions(typ)
	e, r, err := w.readEntity(typ, upserting)
	if err != nil {
		return nil, err
	}
	foreign, err := w.before(e, nil, nil)
	if err != nil {
		r.release()
		return nil, err
	}
	w.upsert = true
	w.makes(set, at.key, at.known)
	op := w.upserts(e, &at, foreign)
	if w.method == "PUT" {
		op.Set = resets(op.Set, typ.Properties)
	}
	op.If = append(op.If, cond.list...)
	if cond.absent || !set.Updatable || versionField(typ) != nil && len(cond.list) == 0 {
		// Nobody has said which version is meant, so one that is there must not be changed.
		op.If = append(op.If, record.Condition{Field: op.Match[0], Values: []record.Value{at.key[0]}, Negate: true})
	}
	return w.changing(t, e, r, op)
}

// upserts is the op that updates or makes an entity of a key that clients choose.
func (w *writing) upserts(e *entity, at *aim, foreign []foreign) record.Op {
	typ := at.set.Type
	op := record.Op{Verb: record.Upsert, Table: typ.Table.Name}
	keys := make([]record.Assign, len(typ.Key))
	for i, p := range typ.Key {
		keys[i] = record.Assign{Field: p.Field.Name, Value: at.key[i]}
		op.Match = append(op.Match, p.Field.Name)
	}
	op.Set = append(w.assigns(e, updating, foreign), keys...)
	op.New = append(w.assigns(e, creating, foreign), keys...)
	return op
}

// choosesKey reports whether clients choose the keys of new entities.
func choosesKey(typ *edm.Type) bool {
	if typ.Table == nil {
		return false
	}
	for _, p := range typ.Key {
		if p.Field == nil || !p.Creatable {
			return false
		}
	}
	return true
}

// changing ends an update: what is nested in the body, and the answer.
func (w *writing) changing(t *target, e *entity, r *bodyReader, op record.Op) (*dialect.Exchange, error) {
	n := w.root
	n.ops = append(n.ops, w.add(source{set: n.set, e: e}, op))
	n.entities = append(n.entities, e)
	if err := w.after(e, n, false); err != nil {
		r.release()
		return nil, err
	}
	n.entities[0] = nil // what has been said of the entity is no more than a part of it
	if w.ver == v2 {
		w.echo = echo{minimal: true} // 204 always (protocol notes, section 4)
	}
	w.show(n)
	return w.finish(t, e, r, w.replyChange)
}

// resets adds what a PUT leaves out: it gets its default, or null (protocol notes, section 4).
func resets(set []record.Assign, props []*edm.Property) []record.Assign {
	for _, p := range props {
		set = resets(set, p.Parts)
		f := p.Field
		if f == nil || !p.Updatable || slices.ContainsFunc(set, func(a record.Assign) bool { return a.Field == f.Name }) {
			continue
		}
		set = append(set, record.Assign{Field: f.Name, Value: initial(f)})
	}
	return set
}

// initial is the default of a field, null if that must be worked out.
func initial(f *catalog.Field) record.Value {
	if f.Default == "" || strings.HasPrefix(f.Default, "=") {
		return record.Value{}
	}
	v, _ := record.Parse(f.Type, f.Default)
	return v
}

// replyChange answers an update.
func (w *writing) replyChange(out []record.Outcome, a *wire.Answer) {
	o := &out[w.root.ops[0]]
	switch {
	case w.failed(out, a):
	case w.upsert && o.Inserted:
		w.created(out, a)
	case w.echo.minimal || !hasRow(o):
		w.noContent(a, o)
	default:
		w.replyEntry(a, 200, w.root.node(out), 0)
		w.applied(a)
	}
}

func hasRow(o *record.Outcome) bool { return o.Rows != nil && o.Rows.Len() > 0 }

// noContent answers 204, with the ETag of the new state where it is known.
func (w *writing) noContent(a *wire.Answer, o *record.Outcome) {
	w.head(a, 204)
	if s := w.root.shape; s != nil && hasRow(o) {
		w.etagHeader(a, s, o.Rows.At(0))
	}
	w.applied(a)
}

// applied says which preference the answer follows.
func (w *writing) applied(a *wire.Answer) {
	if w.echo.applied != "" {
		a.Header.Add("Preference-Applied", w.echo.applied)
	}
}

// remove is the exchange of a DELETE of an entity.
func (q *request) remove(t *target) (*dialect.Exchange, error) {
	set := t.end()
	if !set.Deletable {
		return nil, notAllowed(q.method, "an entity of "+set.Name, entityMethods(q.ver, set)...)
	}
	w := q.writing(set)
	at, _, err := w.changed(t, len(t.path))
	if err != nil {
		return nil, err
	}
	w.add(source{set: set}, record.Op{Verb: record.Delete, Table: set.Type.Table.Name, Key: at.key, If: at.ifs})
	return w.exchange(w.replyDone)
}

// replyDone answers a change that has nothing to tell.
func (w *writing) replyDone(out []record.Outcome, a *wire.Answer) {
	if !w.failed(out, a) {
		w.head(a, 204)
	}
}

// failed answers with the error of the op that failed; false if none did.
func (w *writing) failed(out []record.Outcome, a *wire.Answer) bool {
	k := guilty(out)
	if k < 0 {
		return false
	}
	w.refuse(a, w.faultOf(k, out[k].Err))
	return true
}

// guilty is the op that made a group fail: the first whose error is its own. -1: none has failed.
func guilty(out []record.Outcome) int {
	first := -1
	for i := range out {
		if e := out[i].Err; e != nil {
			if e.Kind != record.Dependency {
				return i
			}
			if first < 0 {
				first = i
			}
		}
	}
	return first
}

// faultOf is how the error of op k looks.
func (w *writing) faultOf(k int, err *record.Error) *fault {
	s := &w.of[k]
	typ := s.set.Type
	switch {
	case s.role == boundOp && (err.Kind == record.NotFound || err.Kind == record.Precondition):
		err = record.Errorf(record.Invalid, s.nav.Name, "there is no such entity of %s to link to", s.set.Name)
		f := w.fault(err)
		f.at(nil, s.e.place())
		return f
	case s.role == parentOp && err.Kind == record.Precondition, err.Kind == record.NotFound:
		f := faultOf(w.ver, noEntity(s.set))
		f.at(nil, s.e.place())
		return f
	case err.Kind == record.Precondition:
		v := versionField(typ)
		switch {
		case v != nil && err.Field == v.Name:
		case w.ops[k].Verb == record.Upsert && err.Field == w.ops[k].Match[0]:
			if v != nil && !w.conditions(typ).absent {
				return w.fault(unconditional())
			}
			if !s.set.Updatable {
				return w.fault(notAllowed(w.method, "an entity of "+s.set.Name, entityMethods(w.ver, s.set)...))
			}
		case err.Field != "":
			return faultOf(w.ver, noEntity(s.set)) // it does not hang together with what the path leads through
		}
	}
	f := w.fault(err)
	f.at(typ, s.e.place())
	return f
}

// updateProperty is the exchange of a PUT, PATCH or MERGE of one property, or of its DELETE, which makes it null.
func (q *request) updateProperty(t *target) (*dialect.Exchange, error) {
	set := t.end()
	if !set.Updatable {
		return nil, notAllowed(q.method, "an entity of "+set.Name, entityMethods(q.ver, set)...)
	}
	w := q.writing(set)
	at, _, err := w.changed(t, len(t.path))
	if err != nil {
		return nil, err
	}
	p := t.prop[len(t.prop)-1]
	if !p.Updatable || p.Kind != edm.ComplexKind && p.Field == nil {
		return nil, record.Errorf(record.Invalid, propPath(p), "the property %s cannot be changed", propPath(p))
	}
	values, err := q.readProperty(set.Type, p, t.value)
	if err != nil {
		return nil, err
	}
	op := record.Op{Verb: record.Update, Table: set.Type.Table.Name, Key: at.key, If: at.ifs}
	for _, v := range values {
		op.Set = append(op.Set, record.Assign{Field: v.prop.Field.Name, Value: v.value})
	}
	if q.method == "PUT" {
		op.Set = resets(op.Set, p.Parts)
	}
	n := w.root
	n.ops = append(n.ops, w.add(source{set: set}, op))
	if q.ver == v2 || w.echo.applied == "" || t.value || q.method == "DELETE" {
		w.echo.minimal = true // 204, unless a client of V4 asks for more
		if w.echo.applied != "return=minimal" {
			w.echo.applied = ""
		}
	}
	w.show(n)
	return w.exchange(func(out []record.Outcome, a *wire.Answer) {
		o := &out[n.ops[0]]
		switch {
		case w.failed(out, a):
			return
		case w.echo.minimal || !hasRow(o):
			w.noContent(a, o)
			return
		}
		row := o.Rows.At(0)
		w.head(a, 200)
		w.etagHeader(a, n.shape, row)
		w.applied(a)
		parts := p.Parts
		if p.Kind != edm.ComplexKind {
			parts = []*edm.Property{p}
		}
		shown := make([]record.Value, len(parts))
		for i, part := range parts {
			shown[i] = row[n.shape.column(columnOf(part))]
		}
		w.format.property(w.request, a, set, p, shown)
	})
}

// readProperty reads the body of a change of one property: the parts of a complex one that it holds. raw: it is the value's plain text.
func (q *request) readProperty(typ *edm.Type, p *edm.Property, raw bool) ([]propValue, error) {
	if q.method == "DELETE" {
		return nullOf(p)
	}
	r := q.reader(updating)
	defer r.release()
	if raw {
		if p.Kind == edm.ComplexKind {
			return nil, unsupported(propPath(p), "%s has no plain value", propPath(p))
		}
		if p.Kind == edm.Binary {
			if p.MaxLength > 0 && len(r.body) > p.MaxLength {
				return nil, record.Errorf(record.Invalid, propPath(p), "%d bytes are more than the %d allowed", len(r.body), p.MaxLength)
			}
			return []propValue{{p, record.TextValue(string(r.body))}}, nil
		}
		if !r.valid() {
			return nil, r.err
		}
		text := r.text
		if p.Kind != edm.String {
			text = strings.TrimSpace(text)
		}
		v, fault := textValueOf(q.ver, p, text)
		if fault != "" {
			return nil, record.Errorf(record.Invalid, propPath(p), "%s", fault)
		}
		return []propValue{{p, v}}, nil
	}
	m, err := mediaOf(q.call.Header.Get("Content-Type"), q.call.Body)
	if err != nil {
		return nil, err
	}
	switch {
	case m == jsonMedia:
		list := r.readValue(typ, p)
		return list, r.failure()
	case q.ver == v2:
		var list []propValue
		r.readAtomValue(p, func(p *edm.Property, v record.Value) { list = append(list, propValue{p, v}) })
		return list, r.failure()
	}
	return nil, record.Errorf(record.Unsupported, "Content-Type", "bodies of V4 are JSON")
}

// nullOf is null for a property, or for all parts of a complex one.
func nullOf(p *edm.Property) ([]propValue, error) {
	if !p.Nullable {
		return nil, record.Errorf(record.Invalid, propPath(p), "null is not allowed")
	}
	if p.Kind != edm.ComplexKind {
		return []propValue{{prop: p}}, nil
	}
	var list []propValue
	for _, part := range p.Parts {
		if part.Updatable && part.Field != nil {
			list = append(list, propValue{prop: part})
		}
	}
	return list, nil
}
