package odata

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strings"

	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// A body may nest entities in any depth and width (protocol notes, section 7). A child refers to the op of its parent, whoever chooses the
// key, so that the engine makes one set of all entities of a level, and of those of many calls.

// planned is the entities of one set that stand below one navigation property, in the order of the request.
type planned struct {
	set      *edm.Set
	shape    *shape
	ops      []int     // by entity: the op that writes it, -1 in a transport shell
	entities []*entity // by entity; nil where the body does not say all of it
	shells   [][]record.Value
	branches []plannedBranch
}

// plannedBranch is one navigation property of all entities of a planned. of is nil for those that nest nothing there.
type plannedBranch struct {
	nav  *edm.Nav
	node *planned
	of   [][]int32
}

// foreign is a value that a property has because of the entity around it or one that it links to.
type foreign struct {
	prop  *edm.Property
	value record.Value
	known record.Value // the same, null if only the server knows
	said  record.Value // what the body says of it where the server knows better, null if nothing
}

// create is the exchange of a POST to a set, or to the entities that another one navigates to.
func (q *request) create(t *target) (*dialect.Exchange, error) {
	set := t.end()
	if !set.Creatable {
		return nil, notAllowed(q.method, "the set "+set.Name, setMethods(q.ver, set)...)
	}
	if t.filter != nil {
		return nil, notAllowed(q.method, "a filtered set", "GET", "HEAD")
	}
	w := q.writing(set)
	var given []foreign
	if len(t.path) > 0 {
		var err error
		if given, err = w.parent(t); err != nil {
			return nil, err
		}
	}
	e, r, err := q.readEntity(set.Type, creating)
	if err != nil {
		return nil, err
	}
	if err := w.insert(w.root, e, given); err != nil {
		r.release()
		return nil, err
	}
	w.show(w.root)
	if q.refs != nil && set.Type.Table != nil {
		w.makesNew(e)
	}
	x, err := w.finish(t, e, r, w.replyCreate)
	if err == nil && !w.echo.minimal {
		w.totals(x)
	}
	return x, err
}

// makesNew notes the entity that the call creates.
func (w *writing) makesNew(e *entity) {
	key := make([]record.Value, len(e.typ.Key))
	known := make([]record.Value, len(e.typ.Key))
	op := w.root.ops[0]
	for i, p := range e.typ.Key {
		key[i], known[i] = w.ref(op, p.Field.Name), e.value(p)
	}
	w.makes(w.root.set, key, known)
}

// value is what the body says of a property, null if nothing.
func (e *entity) value(p *edm.Property) record.Value {
	for i := range e.props {
		if e.props[i].prop == p {
			return e.props[i].value
		}
	}
	return record.Value{}
}

// said is what the body says of a key property that the server makes, null if nothing: a deep entity that has been read and is sent again names
// its old key in the entities nested in it too.
func (e *entity) said(p *edm.Property) record.Value {
	for i := range e.keys {
		if e.keys[i].prop == p {
			return e.keys[i].value
		}
	}
	return record.Value{}
}

// finish ends the decoding of a body: a reader whose entities the answer does not need serves others at once.
func (w *writing) finish(t *target, e *entity, r *bodyReader, reply func([]record.Outcome, *wire.Answer)) (*dialect.Exchange, error) {
	if len(e.navs) == 0 {
		for i := range w.of {
			w.of[i].e = nil
		}
		if e.typ.Table != nil {
			w.root.entities = nil
		}
		r.release()
	}
	x, err := w.exchange(reply)
	if err == nil && !w.echo.minimal && w.ver == v4 {
		err = w.reread(t, x)
	}
	return x, err
}

// reread lets the answer show what $select and $expand ask for, which is read when the change is committed.
func (w *writing) reread(t *target, x *dialect.Exchange) error {
	asked := false
	for _, p := range w.query {
		name := strings.TrimPrefix(p.name, "$")
		asked = asked || (name == "select" || name == "expand")
	}
	if !asked || t.end().Type.Table == nil || !t.end().Readable {
		return nil
	}
	qy, err := w.parseQuery(t)
	if err != nil {
		return err
	}
	reply, op := x.Reply, w.root.ops[0]
	x.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
		if guilty(out) >= 0 {
			return nil, nil
		}
		q := *w.request
		q.first, q.group = 0, 0
		next, err := q.get(&target{kind: entityTarget, set: w.root.set, key: out[op].Key}, qy)
		if err != nil {
			return nil, err
		}
		inner := next.Reply
		next.Reply = func(read []record.Outcome, a *wire.Answer) {
			if inner(read, a); a.Status == 404 {
				// It is there, but whoever made it may not see it.
				a.Header, a.Body = a.Header[:0], a.Body[:0]
				reply(out, a)
				return
			}
			if (w.method == "POST" || out[op].Inserted) && a.Status == 200 {
				a.Status = 201
				w.located(a, out[op].Key)
			}
			w.applied(a)
		}
		return next, nil
	}
	return nil
}

// parent is what a new entity below a navigation path has of the entity before it.
func (w *writing) parent(t *target) ([]foreign, error) {
	last := len(t.path) - 1
	nav := t.path[last].nav
	at, err := w.find(w.rest, t, last)
	if err != nil {
		return nil, err
	}
	// A parent of the same changeset is there if its op has succeeded; any other is looked for.
	get := -1
	if len(at.ifs) > 0 || slices.ContainsFunc(at.key, func(v record.Value) bool { return v.Form != record.Ref }) {
		get = w.get(&at, source{set: at.set, role: parentOp})
	}
	given := make([]foreign, len(nav.On))
	for i, link := range nav.On {
		if link.Other.Field == nil || link.Own.Field == nil {
			return nil, unsupported("", "nothing can be created through %s", nav.Name)
		}
		given[i] = foreign{prop: link.Other, value: record.RefTo(int(at.key[0].N), link.Own.Field.Name)}
		if get >= 0 {
			given[i].value = w.ref(get, link.Own.Field.Name)
		}
		if n := slices.Index(at.set.Type.Key, link.Own); n >= 0 && at.known != nil {
			given[i].known = at.known[n]
		}
	}
	return given, nil
}

// insert plans an entity and what is nested in it; given are the values that follow from the entity around it.
func (w *writing) insert(n *planned, e *entity, given []foreign) error {
	if e.gone {
		return record.Errorf(record.Invalid, e.place(), "what is new cannot be removed")
	}
	if e.typ.Table == nil {
		n.shells = append(n.shells, w.shell(e))
		n.ops, n.entities = append(n.ops, -1), append(n.entities, e)
		return w.after(e, n, true)
	}
	foreign, err := w.before(e, n, given)
	if err != nil {
		return err
	}
	op := w.add(source{set: n.set, e: e}, record.Op{Verb: record.Insert, Table: e.typ.Table.Name, Set: w.assigns(e, creating, foreign)})
	n.ops, n.entities = append(n.ops, op), append(n.entities, e)
	return w.after(e, n, true)
}

// assigns are the fields that get values: those of the body, but for foreign ones, whose values are known better.
func (w *writing) assigns(e *entity, u use, list []foreign) []record.Assign {
	set := w.slots.take(len(e.props) + len(list))[:0]
props:
	for i := range e.props {
		p := e.props[i].prop
		if p.Field == nil || u == creating && !p.Creatable || u == updating && !p.Updatable {
			continue
		}
		for k := range list {
			if list[k].prop == p {
				continue props
			}
		}
		set = append(set, record.Assign{Field: p.Field.Name, Value: e.props[i].value})
	}
	for k := range list {
		set = append(set, record.Assign{Field: list[k].prop.Field.Name, Value: list[k].value})
	}
	return set
}

// holds reports whether the entity that has nav holds the foreign key, so that what nav leads to is there first.
func holds(nav *edm.Nav) bool {
	if nav.Many || len(nav.On) == 0 {
		return false
	}
	for _, link := range nav.On {
		if !link.Other.IsKey {
			return false
		}
	}
	return true
}

// before plans what must be there before e: the entities that it refers to. n is nil when e is updated. The result is given and the values that
// follow from them.
func (w *writing) before(e *entity, n *planned, given []foreign) ([]foreign, error) {
	for i := range given {
		if err := agrees(e, &given[i]); err != nil {
			return nil, err
		}
	}
	for i := range e.navs {
		v := &e.navs[i]
		if !holds(v.nav) {
			continue
		}
		list, err := w.refers(e, n, v)
		if err != nil {
			return nil, err
		}
		for k := range list {
			if err := agrees(e, &list[k]); err != nil {
				return nil, err
			}
			for _, g := range given {
				if g.prop == list[k].prop && (g.known.IsNull() || g.known != list[k].known) {
					return nil, record.Errorf(record.Invalid, below(e.place(), v.nav.Name), "%s follows from the entity around it", g.prop.Name)
				}
			}
		}
		given = append(given[:len(given):len(given)], list...)
	}
	return given, nil
}

// refers is what follows for e from an entity that it holds the key of.
func (w *writing) refers(e *entity, n *planned, v *navValue) ([]foreign, error) {
	list := make([]foreign, len(v.nav.On))
	for k, link := range v.nav.On {
		if link.Own.Field == nil || link.Other.Field == nil {
			return nil, unsupported(below(e.place(), v.nav.Name), "%s cannot be written", v.nav.Name)
		}
		list[k].prop = link.Own
	}
	switch {
	case len(v.binds) > 0:
		to, err := w.linkTo(e, v.nav, v.binds[0])
		if err != nil {
			return nil, err
		}
		for k, link := range v.nav.On {
			list[k].value = to.value(w, link.Other)
			list[k].known = to.knownValue(link.Other)
		}
		return list, nil
	case v.none:
		if n != nil {
			return nil, nil // nothing is linked to yet
		}
		for _, f := range list {
			if !f.prop.Nullable {
				return nil, record.Errorf(record.Invalid, below(e.place(), v.nav.Name), "null is not allowed")
			}
		}
		return list, nil
	case n == nil:
		return nil, w.noDeepUpdate(e, v)
	}
	if len(v.list) == 0 {
		return nil, nil
	}
	child := v.list[0]
	b := n.branch(v.nav)
	if err := w.insert(b.node, child, nil); err != nil {
		return nil, err
	}
	b = n.branch(v.nav)
	row := len(b.node.ops) - 1
	b.place(len(n.ops), []int32{int32(row)})
	for k, link := range v.nav.On {
		list[k].value = w.ref(b.node.ops[row], link.Other.Field.Name)
		list[k].known = child.value(link.Other)
	}
	return list, nil
}

// noDeepUpdate is the error of entities nested in an update.
func (w *writing) noDeepUpdate(e *entity, v *navValue) error {
	place := below(e.place(), v.nav.Name)
	if w.ver == v2 {
		return record.Errorf(record.Invalid, place, "entities nested in an update are not accepted")
	}
	return unsupported(place, "entities nested in an update are accepted as %s@delta alone", v.nav.Name)
}

// agrees checks what the body says of a property whose value follows from elsewhere. Initial values say nothing.
func agrees(e *entity, f *foreign) error {
	said := e.value(f.prop)
	if said.Empty() || said == f.known || said == f.said {
		return nil
	}
	if f.known.IsNull() {
		return record.Errorf(record.Invalid, below(e.place(), f.prop.Name), "%.60q contradicts the entity that it follows from", said.Text())
	}
	return record.Errorf(record.Invalid, below(e.place(), f.prop.Name), "%.60q contradicts %.60q, which follows from another entity", said.Text(), f.known.Text())
}

// after plans what comes after the last entity of n: the entities that refer to it. Without deep it is one that is being updated.
func (w *writing) after(e *entity, n *planned, deep bool) error {
	at := len(n.ops) - 1
	op := n.ops[at]
	for i := range e.navs {
		v := &e.navs[i]
		if holds(v.nav) {
			continue
		}
		var given []foreign
		if op >= 0 {
			given = make([]foreign, len(v.nav.On))
		}
		for k, link := range v.nav.On {
			if link.Own.Field == nil || link.Other.Field == nil {
				return unsupported(below(e.place(), v.nav.Name), "%s cannot be written", v.nav.Name)
			}
			given[k] = foreign{link.Other, w.ref(op, link.Own.Field.Name), e.value(link.Own), e.said(link.Own)}
			if !deep {
				given[k].known = w.keyValue(op, link.Own)
			}
		}
		for _, address := range v.binds {
			if err := w.attach(e, v.nav, address, given); err != nil {
				return err
			}
		}
		switch {
		case v.delta && deep:
			return record.Errorf(record.Invalid, below(e.place(), v.nav.Name), "a new entity has no delta")
		case v.delta:
			if err := w.nestedDelta(v, given); err != nil {
				return err
			}
		case !deep && (len(v.list) > 0 || len(v.binds) == 0 && w.ver != v2):
			return w.noDeepUpdate(e, v) // in V2 an empty list says nothing, and SAP Cloud SDK's PUT holds one for each
		case deep && (len(v.list) > 0 || len(v.binds) == 0 && !v.none):
			if err := w.nested(n, at, v, given); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyValue is a value of the key of an op, null if it is no part of it or not known.
func (w *writing) keyValue(op int, p *edm.Property) record.Value {
	o, v := &w.ops[op], record.Value{}
	if n := slices.Index(w.of[op].set.Type.Key, p); n >= 0 && n < len(o.Key) {
		v = o.Key[n]
	} else if n >= 0 && o.Verb == record.Upsert {
		for _, a := range o.Set {
			if a.Field == p.Field.Name {
				v = a.Value
			}
		}
	}
	if v.Form == record.Ref {
		return record.Value{}
	}
	return v
}

// nested plans the entities below one navigation property of entity at of n.
func (w *writing) nested(n *planned, at int, v *navValue, given []foreign) error {
	if !v.nav.Target.Creatable {
		return notAllowed("POST", "the set "+v.nav.Target.Name, setMethods(w.ver, v.nav.Target)...)
	}
	b := n.branch(v.nav)
	to := b.node
	rows := make([]int32, len(v.list))
	for k, child := range v.list {
		rows[k] = int32(len(to.ops))
		if err := w.insert(to, child, given); err != nil {
			return err
		}
	}
	n.branch(v.nav).place(at, rows)
	return nil
}

// branch is what is planned below a navigation property.
func (n *planned) branch(nav *edm.Nav) *plannedBranch {
	for i := range n.branches {
		if n.branches[i].nav == nav {
			return &n.branches[i]
		}
	}
	n.branches = append(n.branches, plannedBranch{nav: nav, node: &planned{set: nav.Target}})
	return &n.branches[len(n.branches)-1]
}

// place notes the rows that belong to entity at.
func (b *plannedBranch) place(at int, rows []int32) {
	for len(b.of) < at {
		b.of = append(b.of, nil)
	}
	b.of = append(b.of, rows)
}

// shell is the row of a transport shell: what the body says, and a key of the server where it says none.
func (w *writing) shell(e *entity) []record.Value {
	var row []record.Value
	add := func(p *edm.Property) {
		v := e.value(p)
		if p.IsKey && v.Empty() {
			v = newKey(p)
		}
		row = append(row, v)
	}
	for _, p := range e.typ.Properties {
		if p.Kind != edm.ComplexKind {
			add(p)
		}
		for _, part := range p.Parts {
			add(part)
		}
	}
	return row
}

// newKey is a key that nobody has chosen.
func newKey(p *edm.Property) record.Value {
	var b [16]byte
	rand.Read(b[:])
	switch p.Kind {
	case edm.String, edm.GUID:
		id := hex.EncodeToString(b[:])
		if p.Kind == edm.String && p.MaxLength > 0 && p.MaxLength < len(id) {
			id = id[:p.MaxLength]
		}
		return storedValue(p.Kind, p.Field, record.TextValue(id))
	case edm.Byte, edm.SByte, edm.Int16, edm.Int32, edm.Int64:
		return record.IntValue(int64(b[0] & 0x7f))
	}
	return record.Value{}
}

// show says what the answer needs of the ops: all of what was sent, or of the root its version.
func (w *writing) show(n *planned) {
	if w.echo.minimal {
		if typ := n.set.Type; typ.Table != nil && typ.ETag != nil {
			n.shape = w.shape(n.set, &query{top: -1, props: []*edm.Property{typ.ETag}})
			w.returns(n)
		}
		return
	}
	qy := &query{top: -1, all: true}
	for i := range n.branches {
		b := &n.branches[i]
		qy.expand = append(qy.expand, &expansion{nav: b.nav, query: query{top: -1, all: true}})
		w.show(b.node)
	}
	n.shape = w.shape(n.set, qy)
	w.returns(n)
}

func (w *writing) returns(n *planned) {
	for _, op := range n.ops {
		if op >= 0 {
			w.ops[op].Return = n.shape.paths
		}
	}
}

// node is what the answer shows of the entities.
func (n *planned) node(out []record.Outcome) *node {
	res := &node{shape: n.shape, rows: n.rows(out)}
	for i, e := range n.entities {
		if e != nil && e.cid != "" {
			if res.cids == nil {
				res.cids = make([]string, len(n.ops))
			}
			res.cids[i] = e.cid
		}
	}
	for i := range n.branches {
		b := &n.branches[i]
		to := branch{exp: &expansion{nav: b.nav, query: query{top: -1, all: true}}, node: b.node.node(out), of: b.of}
		for len(to.of) < len(n.ops) {
			to.of = append(to.of, nil)
		}
		for k := range to.of {
			if to.of[k] == nil {
				if to.bare == nil {
					to.bare = make([]bool, len(to.of))
				}
				to.bare[k] = true
			}
		}
		res.branch = append(res.branch, to)
	}
	return res
}

// rows are the entities as they are now. One that its writer may not see is shown by its key alone.
func (n *planned) rows(out []record.Outcome) *record.Rows {
	if len(n.ops) == 1 && n.ops[0] >= 0 && hasRow(&out[n.ops[0]]) {
		return out[n.ops[0]].Rows
	}
	width := len(n.shape.paths)
	cells := make([]record.Value, 0, len(n.ops)*width)
	var types []record.Type
	shells := n.shells
	for _, op := range n.ops {
		switch {
		case op < 0:
			cells = append(cells, shells[0]...)
			shells = shells[1:]
		case hasRow(&out[op]):
			cells = append(cells, out[op].Rows.At(0)...)
			types = out[op].Rows.Types
		default:
			cells = cells[:len(cells)+width]
			row := cells[len(cells)-width:]
			for i, c := range n.shape.links {
				if i < len(out[op].Key) {
					row[c] = out[op].Key[i]
				}
			}
		}
	}
	return record.Of(n.shape.paths, types, cells)
}

// replyCreate answers a POST.
func (w *writing) replyCreate(out []record.Outcome, a *wire.Answer) {
	if !w.failed(out, a) {
		w.created(out, a)
	}
}

// created answers 201 with the entity, or 204 if that is preferred, and where it is.
func (w *writing) created(out []record.Outcome, a *wire.Answer) {
	n := w.root
	var o *record.Outcome
	var key []record.Value
	if op := n.ops[0]; op >= 0 {
		o = &out[op]
		key = o.Key
	} else {
		key = n.shellKey()
	}
	if w.echo.minimal || o != nil && !hasRow(o) {
		w.head(a, 204)
		if n.shape != nil && o != nil && hasRow(o) {
			w.etagHeader(a, n.shape, o.Rows.At(0))
		}
		if at := w.located(a, key); w.ver == v4 {
			a.Header.Add("OData-EntityId", at)
		}
	} else {
		w.replyEntry(a, 201, n.node(out), 0)
		w.located(a, key)
	}
	w.applied(a)
}

// shellKey is the key of the shell at the root.
func (n *planned) shellKey() []record.Value {
	typ := n.set.Type
	key := make([]record.Value, len(typ.Key))
	at := 0
	for _, p := range typ.Properties {
		if k := slices.Index(typ.Key, p); k >= 0 {
			key[k] = n.shells[0][at]
		}
		at += max(1, len(p.Parts))
	}
	return key
}

// located says where the entity is that was made.
func (w *writing) located(a *wire.Answer, key []record.Value) string {
	b := append(make([]byte, 0, 128), w.address()...)
	at := string(appendEntityPath(b, w.ver, w.root.set, key))
	a.Header.Add("Location", at)
	return at
}
