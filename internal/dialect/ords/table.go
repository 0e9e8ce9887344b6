package ords

import (
	"net/url"
	"slices"
	"strings"

	"weir/internal/autorest"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// tables is what a service of protocol ords has below the alias of a schema: AutoREST (protocol notes, section 8).
type tables struct {
	*autorest.Schema // nil: no service has this alias
	shapes           map[string]*shape
	err              error
}

// shape is what the rows of an object have in common on the wire.
type shape struct {
	*autorest.Object
	members [][]byte      // by column: `"name":`, with the comma or brace before it
	types   []record.Type // by column: what its values are written as
	called  *handler      // of a routine: what calls it; nil where the database has none
}

// addTables adds the schemas of tables to a model.
func (m *model) addTables() {
	list := m.snap.Services()
	for i := range list {
		if list[i].Protocol != autorest.Protocol {
			continue
		}
		t := &m.schema(list[i].Name).tables
		t.Schema, t.err = autorest.Compile(m.snap, &list[i]) // apply has checked it, so an error is a bug of ours
		t.shapes = map[string]*shape{}
		for _, o := range t.Objects {
			t.shapes[o.Alias] = shapeOf(o)
			if o.Routine != nil {
				t.shapes[o.Alias].called = routineOf(m.snap, list[i].Name, o.Alias)
			}
		}
	}
}

func shapeOf(o *autorest.Object) *shape {
	s := &shape{Object: o}
	for i, col := range o.Columns {
		mark := byte(',')
		if i == 0 {
			mark = '{'
		}
		kind := col.Type
		if kind == record.TypeInteger && col.Field.Type == record.TypeReference {
			kind = record.TypeDecimal // the engine holds references as text
		}
		s.types = append(s.types, kind)
		s.members = append(s.members, append(wire.AppendQuote([]byte{mark}, col.Name), ':'))
	}
	return s
}

// nameTable names the table or view that a path leads to.
func (s *schema) nameTable(at *address) (name string, known bool) {
	if len(at.segments) == 0 || s.tables.Schema == nil {
		return "", false
	}
	o := s.tables.shapes[at.segments[0]]
	if o == nil {
		return "", false
	}
	name = "ords/" + s.alias + "/" + o.Alias
	if len(at.segments) == 2 && o.Routine == nil {
		if at.segments[1] == loadSegment {
			return name + "/" + loadSegment, true
		}
		return name + "/:key", true
	}
	return name, true
}

// tableCall is one call of a table or view.
type tableCall struct {
	*request
	*shape
}

// decodeTable reads a call of a table or view. Nil means that the path leads to none.
func (q *request) decodeTable() (*dialect.Exchange, error) {
	t, at := &q.schema.tables, &q.at
	if t.Schema == nil || len(at.segments) == 0 {
		return nil, nil
	}
	if t.err != nil {
		return nil, t.err
	}
	o := t.shapes[at.segments[0]]
	if o == nil {
		return nil, nil
	}
	if err := q.mayCall(); err != nil {
		return nil, err
	}
	c := &tableCall{q, o}
	switch {
	case o.Routine != nil:
		return c.routine()
	case len(at.segments) == 1:
		return c.collection()
	case len(at.segments) > 2:
		return nil, record.Errorf(record.NoPath, "", "a row of %s is addressed by one segment, its key", o.Alias)
	case at.segments[1] == loadSegment && q.method == "POST":
		return nil, record.Errorf(record.Invalid, "", "a batch load is a request of its own, not part of a batch")
	}
	// The key is taken from the path as it was sent: a comma between values is not one within a value.
	path := strings.TrimSuffix(at.path, "/")
	return c.item(path[strings.LastIndexByte(path, '/')+1:])
}

// mayCall checks the roles that the service asks for.
func (q *request) mayCall() error {
	roles := q.schema.tables.Def.Roles
	if len(roles) == 0 || slices.ContainsFunc(roles, q.call.Actor.Has) {
		return nil
	}
	return record.Errorf(record.Forbidden, "", "%s has none of the roles that schema %s asks for", q.call.Actor.Name, q.schema.alias)
}

// place is the address of the object, with a slash at its end.
func (q *tableCall) place() string { return q.root() + url.PathEscape(q.Alias) + "/" }

// describedBy is the address of the description of the object, or of one row of it.
func (q *tableCall) describedBy(item bool) string {
	s := q.root() + "metadata-catalog/" + url.PathEscape(q.Alias) + "/"
	if item {
		s += "item"
	}
	return s
}

// collection is a call of all rows.
func (q *tableCall) collection() (*dialect.Exchange, error) {
	switch {
	case q.method == "GET":
		return q.list()
	case q.method == "POST" && q.Create:
		return q.insert()
	case q.method == "DELETE" && q.Delete:
		return q.deleteMany()
	}
	allow := []string{"GET", "HEAD"}
	if q.Create {
		allow = append(allow, "POST")
	}
	if q.Delete {
		allow = append(allow, "DELETE")
	}
	return nil, notAllowed(allow)
}

// item is a call of one row, whose key is percent-encoded.
func (q *tableCall) item(text string) (*dialect.Exchange, error) {
	if len(q.Key) == 0 {
		return nil, record.Errorf(record.NoPath, "", "%s has no primary key, so its rows have no address", q.Alias)
	}
	key, err := q.readKey(text)
	if err != nil {
		return nil, err
	}
	switch {
	case q.method == "GET":
		return q.get(key), nil
	case q.method == "PUT" && q.Update && q.Create:
		return q.put(key)
	case q.method == "PATCH" && q.Update:
		return q.patch(key)
	case q.method == "DELETE" && q.Delete:
		return q.deleteOne(key)
	}
	allow := []string{"GET", "HEAD"}
	if q.Update && q.Create {
		allow = append(allow, "PUT")
	}
	if q.Update {
		allow = append(allow, "PATCH")
	}
	if q.Delete {
		allow = append(allow, "DELETE")
	}
	return nil, notAllowed(allow)
}

// refuse answers with an error of the engine, about columns instead of fields. What a rule of the table refuses is the caller's doing.
func (q *tableCall) refuse(a *wire.Answer, err error) {
	e := *record.AsError(err)
	if e.Kind == record.Rejected {
		e.Kind = record.Invalid
	}
	for _, col := range q.Columns {
		if e.Field != "" && col.Field.Name == e.Field {
			e.Field = col.Name
			break
		}
	}
	q.fail(a, &e)
}

// document begins an answer of JSON.
func (q *request) document(a *wire.Answer, status int) {
	a.Status = status
	a.Header.Add("Content-Type", jsonType)
	q.opt.trace(a, q.id)
}
