package odata

import (
	"slices"
	"strings"

	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
)

// linked is an entity that a call links to.
type linked struct {
	aim
	get int // the op that looks for it; -1: it is made by an earlier call of the same changeset
}

// value is the value of one of its properties, when it has been found.
func (l *linked) value(w *writing, p *edm.Property) record.Value {
	if l.get >= 0 {
		return w.ref(l.get, p.Field.Name)
	}
	if n := slices.Index(l.set.Type.Key, p); n >= 0 {
		return l.key[n]
	}
	return record.RefTo(int(l.key[0].N), p.Field.Name)
}

// knownValue is the same as far as it is known.
func (l *linked) knownValue(p *edm.Property) record.Value {
	if n := slices.Index(l.set.Type.Key, p); n >= 0 && l.known != nil {
		return l.known[n]
	}
	return record.Value{}
}

// entityAt reads the address of an entity: relative to the service root, a path, or absolute. Which host it names does not matter: there is
// one behind all names.
func (q *request) entityAt(address string) (*target, string, error) {
	rest := address
	if scheme, after, ok := strings.Cut(rest, "://"); ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
		i := strings.IndexByte(after, '/')
		if i < 0 {
			i = len(after)
		}
		rest = after[i:]
		if !strings.HasPrefix(rest, q.root+"/") {
			return nil, "", record.Errorf(record.Invalid, "", "%.200q is no address below %s", address, q.root)
		}
	}
	if below, ok := strings.CutPrefix(rest, q.root+"/"); ok {
		rest = below
	}
	rest = strings.TrimPrefix(rest, "/")
	rest, _, _ = strings.Cut(rest, "#")
	rest, _, _ = strings.Cut(rest, "?")
	sub := *q
	sub.rest = rest
	t, err := sub.parsePath()
	if err == nil && (t.kind != entityTarget || t.value || t.links) {
		err = record.Errorf(record.Invalid, "", "it is no entity")
	}
	if err != nil {
		return nil, "", record.Errorf(record.Invalid, "", "%.200q is not the address of an entity: %s", address, record.AsError(err).Msg)
	}
	return t, rest, nil
}

// linkTo finds the entity at an address that e, or nothing in a body, links to by nav.
func (w *writing) linkTo(e *entity, nav *edm.Nav, address string) (*linked, error) {
	key := nav.Name + " " + address
	if l := w.links[key]; l != nil {
		return l, nil
	}
	place := below(e.place(), nav.Name)
	t, path, err := w.entityAt(address)
	if err != nil {
		return nil, record.AsError(err).At(place)
	}
	at, err := w.find(path, t, len(t.path))
	if err != nil {
		return nil, record.AsError(err).At(place)
	}
	if at.set.Type != nav.Target.Type {
		return nil, record.Errorf(record.Invalid, place, "%.200q is no entity of %s", address, nav.Target.Name)
	}
	l := &linked{aim: at, get: -1}
	if len(at.ifs) > 0 || slices.ContainsFunc(at.key, func(v record.Value) bool { return v.Form != record.Ref }) {
		l.get = w.get(&at, source{set: at.set, e: e, role: boundOp, nav: nav})
	}
	if w.links == nil {
		w.links = make(map[string]*linked)
	}
	w.links[key] = l
	return l, nil
}

// attach lets the entity at an address refer to e.
func (w *writing) attach(e *entity, nav *edm.Nav, address string, given []foreign) error {
	place := below(e.place(), nav.Name)
	if len(given) == 0 {
		return record.Errorf(record.Invalid, place, "a carrier that is not stored links to nothing")
	}
	t, path, err := w.entityAt(address)
	if err != nil {
		return record.AsError(err).At(place)
	}
	at, err := w.find(path, t, len(t.path))
	if err != nil {
		return record.AsError(err).At(place)
	}
	if at.set.Type != nav.Target.Type {
		return record.Errorf(record.Invalid, place, "%.200q is no entity of %s", address, nav.Target.Name)
	}
	op := record.Op{Verb: record.Update, Table: at.set.Type.Table.Name, Key: at.key, If: at.ifs}
	for i := range given {
		if err := movable(place, given[i].prop); err != nil {
			return err
		}
		op.Set = append(op.Set, record.Assign{Field: given[i].prop.Field.Name, Value: given[i].value})
	}
	w.add(source{set: at.set, e: e, role: boundOp, nav: nav}, op)
	return nil
}

// movable checks that a property which holds a link may be changed.
func movable(place string, p *edm.Property) error {
	if p.Field == nil || !p.Updatable {
		return record.Errorf(record.Invalid, place, "the link is in the property %s, which cannot be changed", p.Name)
	}
	return nil
}

// changeLink is the exchange of a change of links alone: V2 …/$links/Nav, V4 …/Nav/$ref (OData V2, Operations, 2.9 to 2.11).
func (q *request) changeLink(t *target) (*dialect.Exchange, error) {
	if len(t.path) == 0 {
		return nil, notAllowed(q.method, "an address without navigation", "GET", "HEAD")
	}
	last := t.path[len(t.path)-1]
	w := q.writing(t.end())
	at, err := w.find(q.rest, t, len(t.path)-1)
	if err != nil {
		return nil, err
	}
	address := ""
	switch {
	case q.method != "DELETE":
		if last.key != nil {
			return nil, notAllowed(q.method, "a link to one of many", "GET", "HEAD", "DELETE")
		}
		if address, err = q.readLink(); err != nil {
			return nil, err
		}
	case last.nav.Many && last.key == nil:
		if address, _ = q.query.get("$id"); address == "" {
			return nil, record.Errorf(record.Invalid, "$id", "the link to remove is not named")
		}
	}
	if holds(last.nav) {
		return w.changeOwnLink(&at, last.nav, address)
	}
	if !last.nav.Many {
		return nil, unsupported("", "the link %s is changed at its other end", last.nav.Name)
	}
	return w.changeTheirLink(&at, last, address)
}

// changeOwnLink changes the entity that holds the link itself.
func (w *writing) changeOwnLink(at *aim, nav *edm.Nav, address string) (*dialect.Exchange, error) {
	if !at.set.Updatable {
		return nil, notAllowed(w.method, "an entity of "+at.set.Name, entityMethods(w.ver, at.set)...)
	}
	cond := w.conditions(at.set.Type)
	if cond.never {
		return nil, record.Errorf(record.Precondition, "", changedText)
	}
	op := record.Op{Verb: record.Update, Table: at.set.Type.Table.Name, Key: at.key, If: append(at.ifs, cond.list...)}
	var to *linked
	if address != "" {
		var err error
		if to, err = w.linkTo(nil, nav, address); err != nil {
			return nil, err
		}
	}
	for _, link := range nav.On {
		if err := movable("", link.Own); err != nil {
			return nil, err
		}
		var v record.Value
		switch {
		case to != nil:
			v = to.value(w, link.Other)
		case !link.Own.Nullable:
			return nil, record.Errorf(record.Invalid, link.Own.Name, "the link cannot be removed, only be changed")
		}
		op.Set = append(op.Set, record.Assign{Field: link.Own.Field.Name, Value: v})
	}
	w.add(source{set: at.set}, op)
	return w.exchange(w.replyDone)
}

// changeTheirLink changes the entity that a link of many leads to, which holds it.
func (w *writing) changeTheirLink(at *aim, last step, address string) (*dialect.Exchange, error) {
	nav := last.nav
	if !nav.Target.Updatable {
		return nil, notAllowed(w.method, "an entity of "+nav.Target.Name, entityMethods(w.ver, nav.Target)...)
	}
	if len(nav.On) == 0 {
		return nil, noEntity(at.set)
	}
	there := aim{set: nav.Target, key: slices.Clone(last.key)}
	if address != "" {
		t, path, err := w.entityAt(address)
		if err == nil {
			there, err = w.find(path, t, len(t.path))
		}
		if err == nil && there.set.Type != nav.Target.Type {
			err = record.Errorf(record.Invalid, "", "%.200q is no entity of %s", address, nav.Target.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	get := w.get(at, source{set: at.set, role: parentOp})
	op := record.Op{Verb: record.Update, Table: there.set.Type.Table.Name, Key: there.key, If: there.ifs}
	for _, link := range nav.On {
		if err := movable("", link.Other); err != nil {
			return nil, err
		}
		if link.Own.Field == nil {
			return nil, cannotFollow(nav)
		}
		v := w.ref(get, link.Own.Field.Name)
		if w.method == "DELETE" {
			if !link.Other.Nullable {
				return nil, record.Errorf(record.Invalid, link.Other.Name, "the link cannot be removed, only be changed")
			}
			op.If = append(op.If, record.Condition{Field: link.Other.Field.Name, Values: []record.Value{v}})
			v = record.Value{}
		}
		op.Set = append(op.Set, record.Assign{Field: link.Other.Field.Name, Value: v})
	}
	w.add(source{set: there.set}, op)
	return w.exchange(w.replyDone)
}

// readLink reads the address in the body of a change of a link.
func (q *request) readLink() (string, error) {
	m, err := mediaOf(q.call.Header.Get("Content-Type"), q.call.Body)
	if err != nil {
		return "", err
	}
	r := q.reader(updating)
	defer r.release()
	address := ""
	if m == xmlMedia && q.ver == v2 {
		address = r.readAtomLink()
	} else {
		address = r.readLink()
	}
	if err := r.failure(); err != nil {
		return "", err
	}
	if address == "" {
		return "", record.Errorf(record.Invalid, "", "the body names no entity")
	}
	return strings.Clone(address), nil
}
