package ords

import (
	"bytes"
	"errors"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
)

// Functions and procedures of the database (protocol notes, section 8): POST of a JSON object with the IN parameters, answered by one with the
// OUT parameters, and a function's value as ~ret. The call is one of a SQL endpoint that was made of the routine when the project was applied.

// routineOf is the endpoint of a routine, nil where the database has none.
func routineOf(snap *catalog.Snapshot, schema, alias string) *handler {
	e := snap.Endpoint("ords/" + schema + "/" + alias)
	if e == nil || e.SQL == nil || e.SQL.Compiled == nil {
		return nil
	}
	return compile(e)
}

// routine is a call of a function or procedure.
func (q *tableCall) routine() (*dialect.Exchange, error) {
	if len(q.at.segments) > 1 {
		return nil, notFound()
	}
	if q.method != "POST" {
		return nil, notAllowed([]string{"POST"})
	}
	h := q.called
	if h == nil {
		return nil, record.Errorf(record.NoPath, "", "%s cannot be called: the database that is used has no functions", q.Alias)
	}
	if err := q.checkArguments(h); err != nil {
		return nil, err
	}
	return q.decodeHandler(h, nil, false)
}

// checkArguments refuses members of the body that are no IN parameter.
func (q *tableCall) checkArguments(h *handler) error {
	if len(bytes.TrimSpace(q.call.Body)) == 0 {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(q.call.Body))
	if dec.PeekKind() != '{' {
		return record.Errorf(record.Invalid, "", "the body is one JSON object, with a member for each parameter").Because(dialect.ErrBody)
	}
	err := dialect.EachMember(dec, func(name string) error {
		if !slices.ContainsFunc(h.def.SQL.Params, func(p catalog.SQLParam) bool { return p.Name == name && p.Access == "IN" }) {
			return record.Errorf(record.Invalid, name, "%s has no parameter %.80s", q.Alias, name)
		}
		return dec.SkipValue()
	})
	if e := (*record.Error)(nil); err != nil && !errors.As(err, &e) {
		return record.Errorf(record.Invalid, "", "the body is no JSON object: %v", err).Because(dialect.ErrBody)
	}
	return err
}

// routinePaths adds the path of a routine.
func (q *request) routinePaths(paths object, t *thing) {
	h := q.schema.tables.shapes[t.object.Alias].called
	if h == nil {
		return
	}
	in, out := object{}, object{}
	for i := range h.binds {
		if b := &h.binds[i]; b.from == fromName {
			c := thingColumn{typ: b.typ, json: b.typ == record.TypeJSON}
			in[b.name] = c.schema()
		}
	}
	for i := range h.outs {
		o := &h.outs[i]
		c := thingColumn{typ: o.typ, json: o.typ == record.TypeJSON || o.typ == untyped}
		out[o.name] = c.schema()
		if o.rows {
			out[o.name] = object{"type": "array", "items": object{"type": "object"}}
		}
	}
	op := operation("call_"+t.object.Alias, t.object.Label, nil, answers("200", "What it gives.", typeJSON, object{"type": "object", "properties": out}))
	op["requestBody"] = object{"content": object{typeJSON: object{"schema": object{"type": "object", "properties": in, "additionalProperties": false}}}}
	paths["/"+escapePath(t.path)] = object{"post": op}
}
