package ords

import (
	"encoding/json"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
)

// The catalog as OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.0).

// object is a JSON object whose members are written in the order of their names, so that the document of a schema is always the same.
type object = map[string]any

// openAPI answers the document of the schema, or of what has a path.
func (q *request) openAPI(segments []string) (*dialect.Exchange, error) {
	list := q.things()
	if name := strings.Join(segments, "/"); name != "" {
		kept := list[:0:0]
		for _, t := range list {
			if t.name == name || strings.HasPrefix(t.name, name+"/") {
				kept = append(kept, t)
			}
		}
		if list = kept; len(list) == 0 {
			return nil, notFound()
		}
	}
	doc := q.document31(list)
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return q.said(func(b []byte) []byte { return append(b, text...) }), nil
}

// document31 is the document of some things.
func (q *request) document31(list []*thing) object {
	paths, schemas := object{}, object{}
	for _, t := range list {
		switch {
		case t.object == nil:
			q.endpointPaths(paths, t)
		case t.object.Routine != nil:
			q.routinePaths(paths, t)
		default:
			q.tablePaths(paths, schemas, t)
		}
	}
	title := q.schema.alias
	if s := q.schema.tables.Schema; s != nil && s.Def.Label != "" {
		title = s.Def.Label
	}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": title, "version": strconv.FormatUint(q.snap.Version, 10)},
		"servers": []any{object{"url": strings.TrimSuffix(q.root(), "/")}},
		"paths":   paths,
		"components": object{
			"schemas": schemas,
			"responses": object{"problem": object{
				"description": "What went wrong.",
				"content":     object{"application/problem+json": object{"schema": problemSchema}},
			}},
			"securitySchemes": object{
				"basic": object{"type": "http", "scheme": "basic"},
				"oauth": object{"type": "oauth2", "flows": object{"clientCredentials": object{"tokenUrl": q.root() + "oauth/token", "scopes": object{}}}},
			},
		},
		"security": []any{object{"basic": []any{}}, object{"oauth": []any{}}},
	}
}

var problemSchema = object{"type": "object", "properties": object{
	"code": text, "title": text, "message": text, "o:errorCode": text, "cause": text, "action": text, "type": text, "instance": text,
}, "required": []any{"code", "message", "type", "instance"}}

var text = object{"type": "string"}

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

// schema is a column's values as a JSON Schema.
func (c *thingColumn) schema() object {
	s := object{}
	kind := "string"
	switch {
	case c.json, c.typ == untyped:
		return s
	case c.typ == record.TypeInteger, c.typ == record.TypeDuration:
		kind, s["format"] = "integer", "int64"
	case c.typ == record.TypeDecimal:
		kind = "number"
	case c.typ == record.TypeFloat:
		kind, s["format"] = "number", "double"
	case c.typ == record.TypeBoolean:
		kind = "boolean"
	case c.typ == record.TypeDateTime, c.typ == record.TypeDate:
		s["format"] = "date-time"
	case c.typ == record.TypeBytes:
		s["contentEncoding"] = "base64"
	case c.length > 0:
		s["maxLength"] = c.length
	}
	s["type"] = kind
	if !c.mandatory {
		s["type"] = []any{kind, "null"}
	}
	if c.comment != "" {
		s["description"] = c.comment
	}
	return s
}

func columnsSchema(columns []thingColumn) object {
	props := object{}
	for i := range columns {
		props[columns[i].name] = columns[i].schema()
	}
	return object{"type": "object", "properties": props}
}

var linksSchema = object{"type": "array", "items": object{"type": "object", "properties": object{
	"rel": text, "href": object{"type": "string", "format": "uri"},
}, "required": []any{"rel", "href"}}}

// withLinks is the schema of rows as answers have them.
func withLinks(row object) object {
	return object{"allOf": []any{row, object{"type": "object", "properties": object{"links": linksSchema}}}}
}

// pageSchema is the schema of a page of rows.
func pageSchema(row object) object {
	count := object{"type": "integer", "minimum": 0}
	return object{"type": "object", "properties": object{
		"items": object{"type": "array", "items": row}, "hasMore": object{"type": "boolean"}, "limit": count, "offset": count, "count": count,
		"links": linksSchema,
	}, "required": []any{"items"}}
}

func parameter(name, in, what string, schema object) object {
	p := object{"name": name, "in": in, "schema": schema}
	if what != "" {
		p["description"] = what
	}
	if in == "path" {
		p["required"] = true
	}
	return p
}

// answers are the responses of an operation: what a good one is, and the problem document for all others.
func answers(status, what, media string, schema object) object {
	good := object{"description": what}
	if media != "" {
		good["content"] = object{media: object{"schema": schema}}
	}
	return object{status: good, "default": ref("responses", "problem")}
}

func pageParameters() []any {
	count := object{"type": "integer", "minimum": 0}
	return []any{
		parameter("q", "query", "Which rows: a filter object, as JSON.", text),
		parameter("limit", "query", "How many rows at most.", count), parameter("offset", "query", "How many rows to leave out.", count),
	}
}

func operation(id, summary string, parameters []any, responses object) object {
	op := object{"operationId": id, "responses": responses}
	if summary != "" {
		op["summary"] = summary
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	return op
}

func jsonBody(schema object) object {
	return object{"required": true, "content": object{typeJSON: object{"schema": schema}}}
}

// tablePaths adds the paths of a table or view.
func (q *request) tablePaths(paths, schemas object, t *thing) {
	o := t.object
	schemas[o.Alias] = columnsSchema(t.columns)
	row := ref("schemas", o.Alias)
	path := "/" + escapePath(t.path)
	all := object{"get": operation("list_"+o.Alias, "Rows of "+o.Label, pageParameters(), answers("200", "A page of rows.", typeJSON, pageSchema(withLinks(row))))}
	if o.Create {
		op := operation("insert_"+o.Alias, "Make a row", nil, answers("201", "The new row.", typeJSON, withLinks(row)))
		op["requestBody"] = jsonBody(row)
		all["post"] = op
		load := operation("load_"+o.Alias, "Load rows of a CSV file, whose first line names the columns", loadParameters(), answers("200", "How many rows were loaded, and which were not.", "text/plain", text))
		load["requestBody"] = object{"required": true, "content": object{"text/csv": object{"schema": text}}}
		paths[path+loadSegment] = object{"post": load}
	}
	gone := object{"type": "object", "properties": object{"rowsDeleted": object{"type": "integer"}}}
	if o.Delete {
		filter := parameter("q", "query", "Which rows: a filter object, as JSON.", text)
		filter["required"] = true
		all["delete"] = operation("delete_"+o.Alias, "Delete rows", []any{filter}, answers("200", "How many rows were deleted.", typeJSON, gone))
	}
	paths[path] = all
	if len(o.Key) == 0 {
		return
	}
	key := []any{parameter("key", "path", "The primary key: "+strings.Join(t.key, ",")+".", text)}
	match := append(key[:1:1], parameter("If-Match", "header", "The entity tag that the row must still have.", text))
	one := object{"get": operation("get_"+o.Alias, "One row", append(key[:1:1], parameter("If-None-Match", "header", "The entity tag that the caller has.", text)), answers("200", "The row.", typeJSON, withLinks(row)))}
	if o.Update && o.Create {
		op := operation("put_"+o.Alias, "Change a row, or make it", match, answers("200", "The row as it is now.", typeJSON, withLinks(row)))
		op["responses"].(object)["201"] = answers("201", "The new row.", typeJSON, withLinks(row))["201"]
		op["requestBody"] = jsonBody(row)
		one["put"] = op
	}
	if o.Update {
		op := operation("patch_"+o.Alias, "Change columns of a row", match, answers("200", "The row as it is now.", typeJSON, withLinks(row)))
		op["requestBody"] = jsonBody(row)
		one["patch"] = op
	}
	if o.Delete {
		one["delete"] = operation("delete_one_"+o.Alias, "Delete a row", match, answers("200", "How many rows were deleted.", typeJSON, gone))
	}
	paths[path+"{key}"] = one
}

func loadParameters() (list []any) {
	for _, name := range loadNames {
		list = append(list, parameter(name, "query", "", text))
	}
	return list
}

// endpointPaths adds the paths of a template of SQL endpoints: one for each way to leave out an optional value.
func (q *request) endpointPaths(paths object, t *thing) {
	for _, h := range t.handlers {
		short, long := "/", "/"
		var names, shortNames []string
		for i, s := range h.segments {
			part := s.text
			if s.kind != literal {
				part = "{" + s.text + "}"
				names = append(names, s.text)
			}
			if s.kind < optional {
				short += part + "/"
				shortNames = names
			}
			if long += part; i+1 < len(h.segments) || h.slash {
				long += "/"
			}
		}
		q.endpointPath(paths, h, h.def.Name, long, names)
		if len(shortNames) < len(names) {
			q.endpointPath(paths, h, h.def.Name+"_all", short, shortNames)
		}
	}
}

func (q *request) endpointPath(paths object, h *handler, id, path string, names []string) {
	d := h.def.SQL
	method := strings.ToLower(h.def.Method)
	var parameters []any
	body := object{}
	for _, name := range names {
		parameters = append(parameters, parameter(name, "path", "", text))
	}
	for i := range h.binds {
		b := &h.binds[i]
		col := thingColumn{typ: b.typ, json: b.typ == untyped}
		switch {
		case b.from == fromHeader:
			parameters = append(parameters, parameter(b.name, "header", "", col.schema()))
		case b.from != fromName || b.at >= 0:
		case method == "post" || method == "put" || method == "patch":
			body[b.name] = col.schema()
		default:
			parameters = append(parameters, parameter(b.name, "query", "", col.schema()))
		}
	}
	row := columnsSchema(nil)
	if d.Compiled != nil && len(d.Compiled.Statements) == 1 {
		row = columnsSchema(handlerColumns(d.Compiled.Statements[0].Columns))
	}
	var good object
	switch d.Source {
	case catalog.SourceItem, catalog.SourceSingle:
		good = answers("200", "The row.", typeJSON, row)
	case catalog.SourceCSV:
		good = answers("200", "The rows, after a line of their columns' names.", typeCSV, text)
	case catalog.SourceMedia:
		good = answers("200", "The content.", "*/*", object{})
	case catalog.SourceBlock:
		good = answers("200", "What the endpoint says.", typeJSON, object{})
	default:
		parameters = append(parameters, pageParameters()...)
		good = answers("200", "A page of rows.", typeJSON, pageSchema(row))
	}
	op := operation(id, d.Comment, parameters, good)
	if len(body) > 0 {
		op["requestBody"] = object{"content": object{typeJSON: object{"schema": object{"type": "object", "properties": body}}}}
	}
	if h.def.Public {
		op["security"] = []any{}
	}
	item, ok := paths[path].(object)
	if !ok {
		item = object{}
		paths[path] = item
	}
	item[method] = op
}
