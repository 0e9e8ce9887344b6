package ords

import (
	"net/url"
	"slices"
	"strings"
	"sync"

	"weir/internal/autorest"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// tables is the AutoREST half of a snapshot: the schemas that services of protocol ords define, each compiled when it is first asked for.
type tables struct {
	mu   sync.Mutex
	snap *catalog.Snapshot
	by   map[string]*tableSchema
}

// addTables adds the schemas of tables to a model.
func (m *model) addTables() {
	for _, d := range m.snap.Services() {
		if d.Protocol == autorest.Protocol {
			m.schema(d.Name)
		}
	}
}

// decodeReserved reads a call of what no endpoint or table can be called: catalogs. Nil is none of them.
func (q *request) decodeReserved() (*dialect.Exchange, error) { return nil, nil }

// decodeTable reads a call of a table or view. Nil means that the path leads to none.
func (q *request) decodeTable() (*dialect.Exchange, error) {
	_, rest, _ := strings.Cut(strings.TrimPrefix(q.at.path, Prefix), "/")
	return q.d.table(q.snap, q.call, q.at.schema, rest)
}

// nameTable names the table or view that a path leads to.
func (d *Dialect) nameTable(snap *catalog.Snapshot, at *address) (name string, known bool) {
	s, err := d.tables.of(snap, at.schema)
	if s == nil || err != nil || len(at.segments) == 0 || s.Object(at.segments[0]) == nil {
		return "", false
	}
	return "ords/" + at.schema + "/" + at.segments[0], true
}

// tableSchema is a schema with what its answers are made of.
type tableSchema struct {
	*autorest.Schema
	objects map[*autorest.Object]*shape
}

// shape is what the rows of an object have in common on the wire.
type shape struct {
	*autorest.Object
	members [][]byte      // by column: `"name":`, with the comma or brace before it
	types   []record.Type // by column: what its values are written as
}

// of finds a schema by its alias, nil if no service has it.
func (t *tables) of(snap *catalog.Snapshot, alias string) (*tableSchema, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.snap != snap {
		t.snap, t.by = snap, map[string]*tableSchema{}
	}
	if s, ok := t.by[alias]; ok {
		return s, nil
	}
	list := snap.Services()
	at := slices.IndexFunc(list, func(d catalog.ServiceDef) bool { return d.Name == alias && d.Protocol == autorest.Protocol })
	if at < 0 {
		return nil, nil // not remembered: aliases that nobody has are without number
	}
	compiled, err := autorest.Compile(snap, &list[at])
	if err != nil {
		return nil, err // apply has checked it, so this is a bug of ours
	}
	s := &tableSchema{compiled, map[*autorest.Object]*shape{}}
	for _, o := range compiled.Objects {
		s.objects[o] = shapeOf(o)
	}
	t.by[alias] = s
	return s, nil
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

// tableCall is one call below the alias of a schema that has tables.
type tableCall struct {
	d      *Dialect
	opt    *Options
	snap   *catalog.Snapshot
	call   *dialect.Call
	schema *tableSchema
	*shape
	method string // HEAD is GET
	root   string // address of the schema, with its slash at the end
	query  url.Values
}

// table decodes a call of what the services of protocol ords have below alias; rest is what follows it and its slash, percent-encoded. Both
// results are nil when there is nothing by this name.
func (d *Dialect) table(snap *catalog.Snapshot, c *dialect.Call, alias, rest string) (*dialect.Exchange, error) {
	schema, err := d.tables.of(snap, alias)
	if schema == nil || err != nil {
		return nil, err
	}
	q := &tableCall{
		d: d, opt: d.options(), snap: snap, call: c, schema: schema, method: strings.ToUpper(c.Method),
		root: c.Base + Prefix + url.PathEscape(alias) + "/",
	}
	if q.method == "HEAD" {
		q.method = "GET"
	}
	name, rest, slash := strings.Cut(rest, "/")
	if name, err = url.PathUnescape(name); err != nil {
		return nil, record.Errorf(record.NoPath, "", "the path cannot be read: %v", err)
	}
	o := schema.Object(name)
	if o == nil {
		return nil, nil
	}
	if !permitted(&c.Actor, schema.Def.Roles) {
		return nil, record.Errorf(record.Forbidden, "", "%s may not call schema %s", c.Actor.Name, alias)
	}
	q.shape = schema.objects[o]
	if n := len(c.RawQuery); n > q.opt.MaxQuery {
		return nil, record.Errorf(record.TooLarge, "", "the query has %d bytes, more than %d; see ords.max_query", n, q.opt.MaxQuery)
	}
	if q.query, err = url.ParseQuery(c.RawQuery); err != nil {
		return nil, record.Errorf(record.Invalid, "", "the query string cannot be read: %v", err)
	}
	if o.Routine != nil {
		return q.routine(rest)
	}
	rest = strings.TrimSuffix(rest, "/")
	switch {
	case rest == "" || !slash:
		return q.collection()
	case rest == loadSegment && q.method == "POST":
		return nil, record.Errorf(record.Invalid, "", "a batch load is a request of its own, not part of a batch")
	case strings.Contains(rest, "/"):
		return nil, record.Errorf(record.NoPath, "", "a row of %s is addressed by one segment, its key", o.Alias)
	}
	return q.item(rest)
}

// permitted reports whether an actor has one of roles; none named is anybody.
func permitted(a *record.Actor, roles []string) bool {
	return len(roles) == 0 || slices.ContainsFunc(roles, a.Has)
}

// at is the address of the object.
func (q *tableCall) at() string { return q.root + url.PathEscape(q.Alias) + "/" }

// describedBy is the address of the description of the object, or of one row of it.
func (q *tableCall) describedBy(item bool) string {
	s := q.root + "metadata-catalog/" + url.PathEscape(q.Alias) + "/"
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
	return nil, q.notAllowed(q.Create, false, q.Delete)
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
	return nil, q.notAllowed(false, q.Update, q.Delete)
}

// notAllowed is the error of a method that does not exist here. Its field lists those that do.
func (q *tableCall) notAllowed(create, update, remove bool) error {
	allow := "GET, HEAD"
	if create {
		allow += ", POST"
	}
	if update {
		if q.Create {
			allow += ", PUT"
		}
		allow += ", PATCH"
	}
	if remove {
		allow += ", DELETE"
	}
	return record.Errorf(record.NotAllowed, "", "%.20s cannot be used here; these can: %s", q.call.Method, allow)
}

// paths is the fields of an op's rows.
func (q *tableCall) paths() []string { return q.Paths() }

// known checks that the query has no parameters but those named.
func (q *tableCall) known(names ...string) error {
	for name := range q.query {
		if !slices.Contains(names, name) {
			return record.Errorf(record.Invalid, name, "there is no parameter %.80s here", name)
		}
	}
	return nil
}
