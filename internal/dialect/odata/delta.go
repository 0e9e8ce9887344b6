package odata

import (
	"slices"
	"strconv"

	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// Mass operations of V4 (protocol notes, section 9): a PATCH of a collection with a delta payload changes, makes and removes entities, a PATCH
// or DELETE of its $each changes or removes all that a filter finds.

// deltaItem is one entity of a delta payload.
type deltaItem struct {
	op      int
	row     int // of the planned entities, -1: it is removed
	removed bool
	ops     int // how many ops it takes, up to and with op
	e       *entity
}

// delta is the exchange of a PATCH of a collection: all or nothing, or with Prefer: continue-on-error each entity by itself.
func (q *request) delta(t *target) (*dialect.Exchange, error) {
	set := t.end()
	if !set.Creatable && !set.Updatable && !set.Deletable || set.Type.Table == nil {
		return nil, notAllowed(q.method, "the set "+set.Name, setMethods(q.ver, set)...)
	}
	w := q.writing(set)
	var given []foreign
	var err error
	if len(t.path) > 0 {
		if given, err = w.parent(t); err != nil {
			return nil, err
		}
	}
	m, err := mediaOf(q.call.Header.Get("Content-Type"), q.call.Body)
	if err != nil {
		return nil, err
	}
	if m != jsonMedia {
		return nil, record.Errorf(record.Unsupported, "Content-Type", "bodies of V4 are JSON")
	}
	r := q.reader(upserting)
	list := r.readDelta(set.Type)
	err = r.failure()
	items := make([]deltaItem, 0, len(list))
	apart := q.continues() && q.group == 0
	for _, e := range list {
		if err != nil {
			break
		}
		before := len(w.ops)
		if apart {
			w.links = nil // what one entity needs is no part of another's fate
		}
		it := deltaItem{e: e, row: -1, removed: e.gone}
		if it.op, err = w.merge(w.root, e, given); err == nil {
			if !e.gone {
				it.row = len(w.root.ops) - 1
			}
			it.ops = len(w.ops) - before
			items = append(items, it)
		}
	}
	if err != nil {
		r.release()
		return nil, err
	}
	if !w.echo.minimal {
		w.show(w.root)
	}
	d := &deltaReply{writing: w, items: items, apart: apart}
	x, err := w.exchange(d.reply)
	if err == nil && apart {
		d.ungroup(len(w.ops))
	}
	return x, err
}

// deltaReply answers a delta.
type deltaReply struct {
	*writing
	items []deltaItem
	apart bool
}

// ungroup lets every entity succeed or fail by itself. Ops before the first entity's are reads that all refer to.
func (d *deltaReply) ungroup(n int) {
	for i := range d.ops {
		d.ops[i].Group = 0
	}
	at := n
	for i := len(d.items) - 1; i >= 0; i-- {
		it := &d.items[i]
		first := at - it.ops
		for k := first; k < at && it.ops > 1; k++ {
			d.ops[k].Group = i + 1
		}
		at = first
	}
}

// merge plans an entity of a delta: it is removed, changed or made, whichever fits. It returns the op.
func (w *writing) merge(n *planned, e *entity, given []foreign) (int, error) {
	set, typ, place := n.set, e.typ, e.place()
	at, err := w.keyOf(n.set, e, given)
	if err != nil {
		return 0, err
	}
	v := versionField(typ)
	if values, any := w.versions(typ, e.etag); e.etag != "" && v != nil && !any {
		at.ifs = append(at.ifs, record.Condition{Field: v.Name, Values: values})
	}
	place = below(place, "")
	switch {
	case e.gone && at.key == nil:
		return 0, record.Errorf(record.Invalid, place, "the entity to remove is not named, by @id or its key")
	case e.gone && !set.Deletable:
		return 0, notAllowed("DELETE", "an entity of "+set.Name, entityMethods(w.ver, set)...)
	case e.gone:
		return w.add(source{set: set, e: e}, record.Op{Verb: record.Delete, Table: typ.Table.Name, Key: at.key, If: at.ifs}), nil
	case at.key == nil && !set.Creatable:
		return 0, notAllowed("POST", "the set "+set.Name, setMethods(w.ver, set)...)
	case at.key == nil:
		err := w.insert(n, e, given)
		if err != nil {
			return 0, err
		}
		return n.ops[len(n.ops)-1], nil
	}
	foreign, err := w.before(e, nil, given)
	if err != nil {
		return 0, err
	}
	var op record.Op
	switch {
	case set.Creatable && choosesKey(typ) && e.etag == "" && len(at.ifs) == 0:
		op = w.upserts(e, &at, foreign)
		if !set.Updatable {
			op.If = append(op.If, record.Condition{Field: op.Match[0], Values: []record.Value{at.key[0]}, Negate: true})
		}
	case set.Updatable:
		op = record.Op{Verb: record.Update, Table: typ.Table.Name, Key: at.key, If: at.ifs, Set: w.assigns(e, updating, foreign)}
	default:
		return 0, notAllowed("PATCH", "an entity of "+set.Name, entityMethods(w.ver, set)...)
	}
	k := w.add(source{set: set, e: e}, op)
	n.ops, n.entities = append(n.ops, k), append(n.entities, e)
	return k, w.after(e, n, false)
}

// keyOf is the entity that one of a delta means: by its address, or by the key among its values. The key is nil if it is new.
func (w *writing) keyOf(set *edm.Set, e *entity, given []foreign) (aim, error) {
	at := aim{set: set}
	if e.id != "" {
		t, path, err := w.entityAt(e.id)
		if err == nil {
			at, err = w.find(path, t, len(t.path))
		}
		if err == nil && at.set.Type != set.Type {
			err = record.Errorf(record.Invalid, "", "%.200q is no entity of %s", e.id, set.Name)
		}
		if err != nil {
			return at, record.AsError(err).At(e.place())
		}
		return at, nil
	}
	key := make([]record.Value, len(set.Type.Key))
	for i, p := range set.Type.Key {
		key[i] = e.value(p)
		for k := range given {
			if given[k].prop != p {
				continue
			}
			if err := agrees(e, &given[k]); err != nil {
				return at, err
			}
			if key[i] = given[k].known; key[i].IsNull() {
				key[i] = given[k].value
			}
		}
		if key[i].Empty() {
			return at, nil
		}
	}
	at.key = key
	for k := range given {
		// What is named by a key of its own must hang together with the entity around it, where it is there already.
		if p := given[k].prop; e.gone && !p.IsKey {
			at.ifs = append(at.ifs, record.Condition{Field: p.Field.Name, Values: []record.Value{given[k].value}})
		}
	}
	return at, nil
}

// nestedDelta plans a delta nested in an update (V4, Nav@delta).
func (w *writing) nestedDelta(v *navValue, given []foreign) error {
	n := &planned{set: v.nav.Target}
	for _, e := range v.list {
		if _, err := w.merge(n, e, given); err != nil {
			return err
		}
	}
	return nil
}

// reply answers 200 with what became of each entity, or 204 if nobody wants to know and all went well.
func (d *deltaReply) reply(out []record.Outcome, a *wire.Answer) {
	if !d.apart && d.failed(out, a) {
		return
	}
	if d.echo.minimal && guilty(out) < 0 {
		d.head(a, 204)
		d.applied(a)
		return
	}
	f, ok := d.format.(*json4)
	if !ok {
		f = jsonOf4(minimal, false, false)
	}
	set := d.root.set
	d.head(a, 200)
	d.applied(a)
	if d.apart {
		a.Header.Add("Preference-Applied", "continue-on-error")
	}
	f.content(a)
	var n *node
	if !d.echo.minimal {
		n = d.root.node(out)
	}
	dst := f.context(d.request, append(a.Body, '{'), []byte(set.Name+"/$delta"))
	dst = append(dst, `"value":[`...)
	enc := f.encoder(d.request)
	first := true
	end := len(d.ops)
	from := make([]int, len(d.items))
	for i := len(d.items) - 1; i >= 0; i-- {
		end -= d.items[i].ops
		from[i] = end
	}
	for i := range d.items {
		it := &d.items[i]
		bad := guilty(out[from[i] : from[i]+it.ops])
		if bad < 0 && d.echo.minimal {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(dst, '{')
		switch {
		case bad >= 0:
			bad += from[i]
			dst = d.appendException(dst, it, d.faultOf(bad, out[bad].Err))
		case it.removed:
			dst = append(dst, `"@removed":{"reason":"deleted"},"@id":"`...)
			dst = append(appendEntityPath(dst, v4, set, d.ops[it.op].Key), '"')
		default:
			dst = enc.members(dst, n, n.rows.At(it.row), it.row)
		}
		dst = closed(dst)
	}
	a.Body = append(dst, "]}"...)
}

// appendException writes an entity that could not be changed: its key, and why (Org.OData.Core.V1, DataModificationException).
func (d *deltaReply) appendException(dst []byte, it *deltaItem, f *fault) []byte {
	typ := it.e.typ
	for _, p := range typ.Key {
		if v := it.e.value(p); !v.IsNull() {
			dst = append(wire.AppendQuote(comma(dst), p.Name), ':')
			dst = appendJSON4(dst, p, v, false)
		}
	}
	if it.e.id != "" {
		dst = wire.AppendQuote(append(comma(dst), `"@id":`...), it.e.id)
	}
	what := d.ops[it.op].Verb.String()
	dst = append(comma(dst), `"@Core.DataModificationException":{"failedOperation":"`...)
	dst = append(append(dst, what...), `","responseCode":`...)
	dst = strconv.AppendInt(dst, int64(f.status), 10)
	dst = wire.AppendQuote(append(dst, `,"info":{"code":`...), f.code)
	dst = wire.AppendQuote(append(dst, `,"message":`...), f.message)
	dst = wire.AppendQuote(append(dst, `,"severity":"error","target":`...), f.target)
	return append(dst, "}}"...)
}

// each is the exchange of a PATCH or DELETE of …/$each: the entities are found first, then all are changed, or none.
func (q *request) each(t *target) (*dialect.Exchange, error) {
	set := t.end()
	typ := set.Type
	switch {
	case typ.Table == nil, q.method == "PATCH" && !set.Updatable, q.method == "DELETE" && !set.Deletable:
		return nil, notAllowed(q.method, "the entities of "+set.Name, entityMethods(q.ver, set)...)
	case q.group != 0:
		return nil, unsupported("", "$each cannot be part of an atomicity group")
	}
	w := q.writing(set)
	where := []*record.Expr{t.filter}
	if len(t.path) > 0 {
		last := len(t.path) - 1
		at, err := w.find(q.rest, t, last)
		if err != nil {
			return nil, err
		}
		own, err := w.values(&at, t.path[last].nav)
		if err != nil {
			return nil, err
		}
		for i, link := range t.path[last].nav.On {
			where = append(where, record.Compare(record.Eq, record.F(link.Other.Path), record.C(own[i])))
		}
	}
	var set1 []record.Assign
	if q.method == "PATCH" {
		e, r, err := q.readEntity(typ, updating)
		if err != nil {
			return nil, err
		}
		set1 = slices.Clone(w.assigns(e, updating, nil))
		nested := len(e.navs) > 0
		r.release()
		if nested {
			return nil, unsupported("", "$each changes properties alone")
		}
	}
	sort := make([]record.Sort, len(typ.Key))
	keys := make([]string, len(typ.Key))
	for i, p := range typ.Key {
		keys[i], sort[i].Path = p.Path, p.Path
	}
	find := w.add(source{set: set}, record.Op{
		Verb: record.List, Table: typ.Table.Name, Return: keys, Query: &record.Query{Where: record.AllOf(where...), Sort: sort, Limit: -1},
	})
	x, err := w.exchange(nil)
	if err != nil {
		return nil, err
	}
	for i := range x.Ops {
		x.Ops[i].Group = 0
	}
	x.Reply = func(out []record.Outcome, a *wire.Answer) { w.failed(out, a) }
	x.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
		if guilty(out) >= 0 {
			return nil, nil
		}
		again := *q
		again.first, again.group = 0, 0
		w := again.writing(set)
		rows := out[find].Rows
		for i := range rows.Len() {
			op := record.Op{Verb: record.Delete, Table: typ.Table.Name, Key: slices.Clone(rows.At(i))}
			if q.method == "PATCH" {
				op.Verb, op.Set = record.Update, set1
			}
			w.root.ops = append(w.root.ops, w.add(source{set: set}, op))
		}
		if q.method == "DELETE" {
			w.echo.minimal = true
		} else if !w.echo.minimal {
			w.show(w.root)
		}
		x, err := w.exchange(w.replyEach)
		return x, err
	}
	return x, nil
}

// replyEach answers a change of many entities.
func (w *writing) replyEach(out []record.Outcome, a *wire.Answer) {
	switch {
	case w.failed(out, a):
	case w.echo.minimal:
		w.head(a, 204)
		w.applied(a)
	default:
		w.head(a, 200)
		w.applied(a)
		w.format.feed(w.request, a, w.root.node(out), -1, func() string { return "" })
	}
}
