package ords

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"weir/internal/autorest"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// The catalogs of a schema say what it has: metadata-catalog in ORDS' own words, open-api-catalog as OpenAPI (protocol notes, sections 1
// and 8). A caller finds in them what it may call.

const (
	metadataCatalog = "metadata-catalog"
	openAPICatalog  = "open-api-catalog"
)

// decodeReserved reads a call of what no endpoint or table can be called: catalogs. Nil is none of them.
func (q *request) decodeReserved() (*dialect.Exchange, error) {
	segments := q.at.segments
	if len(segments) == 0 || segments[0] != metadataCatalog && segments[0] != openAPICatalog {
		return nil, nil
	}
	if q.schema.tables.err != nil {
		return nil, q.schema.tables.err
	}
	if q.method != "GET" {
		return nil, notAllowed([]string{"GET", "HEAD"})
	}
	if segments[0] == openAPICatalog {
		return q.openAPI(segments[1:])
	}
	if len(segments) == 1 {
		return q.metadataList()
	}
	name, item := segments[1:], false
	things := q.things()
	if found := q.thing(things, name); found != nil {
		return q.metadata(found, false), nil
	}
	if item = name[len(name)-1] == "item"; item && len(name) > 1 {
		if found := q.thing(things, name[:len(name)-1]); found != nil && found.object != nil {
			return q.metadata(found, true), nil
		}
	}
	return nil, notFound()
}

// thing is one entry of a catalog: a table or view, or the template of SQL endpoints.
type thing struct {
	name     string // path below the schema, without the slash at its end
	path     string // likewise, with it if it has one
	object   *autorest.Object
	handlers []*handler // by method
	columns  []thingColumn
	key      []string
}

// thingColumn is a column of the rows of a thing.
type thingColumn struct {
	name      string
	typ       record.Type
	native    string
	json      bool // any JSON
	mandatory bool
	comment   string
	length    int
}

// things are what the caller may call, by name: endpoints where a name is both, as in routing.
func (q *request) things() []*thing {
	var list []*thing
	for _, e := range q.snap.SQLEndpoints() {
		d := e.SQL
		if d.Schema != q.schema.alias || d.Unpublished || d.Compiled == nil || !e.Public && !q.has(e.Roles) {
			continue
		}
		h := compile(e)
		at := slices.IndexFunc(list, func(t *thing) bool { return t.path == h.pattern })
		if at < 0 {
			at = len(list)
			list = append(list, &thing{name: strings.Trim(h.pattern, "/"), path: h.pattern})
		}
		t := list[at]
		t.handlers = append(t.handlers, h)
		if e.Method == "GET" && d.Source != catalog.SourceBlock && len(d.Compiled.Statements) == 1 {
			t.columns = handlerColumns(d.Compiled.Statements[0].Columns)
		}
	}
	for _, t := range list {
		slices.SortFunc(t.handlers, func(a, b *handler) int { return strings.Compare(a.def.Method, b.def.Method) })
	}
	if s := q.schema.tables.Schema; s != nil && q.has(s.Def.Roles) {
		for _, o := range s.Objects {
			if slices.ContainsFunc(list, func(t *thing) bool { return t.name == o.Alias }) || o.Table != nil && !q.reads(o.Table.Access.Read) {
				continue
			}
			list = append(list, q.tableThing(o))
		}
	}
	slices.SortFunc(list, func(a, b *thing) int { return strings.Compare(a.path, b.path) })
	return list
}

func (q *request) tableThing(o *autorest.Object) *thing {
	t := &thing{name: o.Alias, path: o.Alias + "/", object: o}
	for _, col := range o.Columns {
		f := col.Field
		if !q.has(f.Access.Read) {
			continue
		}
		t.columns = append(t.columns, thingColumn{
			name: col.Name, typ: col.Type, native: f.Native, json: f.Type == record.TypeJSON,
			mandatory: f.Mandatory || slices.Contains(o.Key, col), comment: label(f.Label, f.Name), length: f.MaxLength,
		})
	}
	for _, col := range o.Key {
		t.key = append(t.key, col.Name)
	}
	return t
}

// label is what people call something, "" if that is its name.
func label(label, name string) string {
	if label == name {
		return ""
	}
	return label
}

func handlerColumns(columns []catalog.SQLColumn) (list []thingColumn) {
	for i := range columns {
		c := &columns[i]
		if c.Rel != "" {
			continue
		}
		t := typeNamed(c.Type)
		list = append(list, thingColumn{name: c.Name, typ: t, native: c.Native, json: c.JSON || t == record.TypeJSON || t == untyped})
	}
	return list
}

// has reports whether the caller has one of roles; none named is anybody.
func (q *request) has(roles []string) bool {
	return len(roles) == 0 || slices.ContainsFunc(roles, q.call.Actor.Has)
}

// reads reports whether grants let the caller read anything.
func (q *request) reads(grants []catalog.GrantDef) bool {
	return grants == nil || q.call.Actor.Admin() || slices.ContainsFunc(grants, func(g catalog.GrantDef) bool { return q.has(g.Roles) })
}

// thing finds an entry by its path, nil if there is none.
func (q *request) thing(list []*thing, segments []string) *thing {
	name := strings.Join(segments, "/")
	for _, t := range list {
		if t.name == name {
			return t
		}
	}
	return nil
}

// describes is where a thing is, and canonical where it is described.
func (q *request) describes(t *thing) string { return q.root() + escapePath(t.path) }

func (q *request) canonical(t *thing) string {
	return q.root() + metadataCatalog + "/" + escapePath(t.name) + "/"
}

func escapePath(path string) string {
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = strings.ReplaceAll(url.PathEscape(parts[i]), "%3A", ":")
	}
	return strings.Join(parts, "/")
}

// metadataList answers what there is, in pages.
func (q *request) metadataList() (*dialect.Exchange, error) {
	p, err := q.page(*q.opt.PageSize)
	if err != nil {
		return nil, err
	}
	list := q.things()
	list = list[min(p.offset, int64(len(list))):]
	more := int64(len(list)) > p.limit
	list = list[:min(p.limit, int64(len(list)))]
	return q.said(func(b []byte) []byte {
		b = append(b, `{"items":[`...)
		for i, t := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(wire.AppendQuote(append(b, `{"name":`...), t.name), `,"links":[`...)
			b = appendLink(b, "describes", q.describes(t))
			b = append(appendLink(b, "canonical", q.canonical(t)), "]}"...)
		}
		return q.appendEnd(b, &p, int64(len(list)), more, "", "")
	}), nil
}

// metadata answers what one thing, or one row of it, is like.
func (q *request) metadata(t *thing, item bool) *dialect.Exchange {
	return q.said(func(b []byte) []byte {
		b = wire.AppendQuote(append(b, `{"name":`...), t.name)
		if t.object != nil && t.object.Routine == nil {
			key, _ := json.Marshal(append([]string{}, t.key...)) // texts have JSON
			b = append(append(b, `,"primarykey":`...), key...)
		}
		b = append(b, `,"members":[`...)
		for i, c := range t.columns {
			if i > 0 {
				b = append(b, ',')
			}
			b = wire.AppendQuote(append(b, `{"name":`...), c.name)
			b = append(wire.AppendQuote(append(b, `,"type":`...), c.sqlType()), '}')
		}
		b = append(b, `],"links":[`...)
		canonical, describes := q.canonical(t), q.describes(t)
		if item {
			canonical += "item"
			describes += "{id}"
		}
		b = appendLink(b, "collection", q.root()+metadataCatalog+"/")
		b = appendLink(b, "canonical", canonical)
		return append(appendLink(b, "describes", describes), "]}"...)
	})
}

// sqlType is a column's type as ORDS' clients know types, or the database's own where weir did not make the column.
func (c *thingColumn) sqlType() string {
	switch {
	case c.native != "":
		return strings.ToUpper(c.native)
	case c.json:
		return "JSON"
	}
	switch c.typ {
	case record.TypeInteger, record.TypeDecimal, record.TypeDuration:
		return "NUMBER"
	case record.TypeFloat:
		return "BINARY_DOUBLE"
	case record.TypeBoolean:
		return "BOOLEAN"
	case record.TypeDateTime:
		return "TIMESTAMP"
	case record.TypeDate:
		return "DATE"
	case record.TypeBytes:
		return "BLOB"
	}
	return "VARCHAR2"
}

// said is an exchange that answers with JSON and asks nobody.
func (q *request) said(body func([]byte) []byte) *dialect.Exchange {
	return &dialect.Exchange{Reply: func(_ []record.Outcome, a *wire.Answer) {
		q.head(a, typeJSON)
		a.Body = body(a.Body)
	}}
}
