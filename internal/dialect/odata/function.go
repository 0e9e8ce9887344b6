package odata

import (
	"slices"
	"strings"
	"unsafe"

	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// invoke is the exchange of a call of a function or action import: it runs a scripted endpoint, whose body are the parameters. Entities that
// the script names by their keys are read as the caller in a following round.
func (q *request) invoke(t *target) (*dialect.Exchange, error) {
	f := t.function
	if err := q.calls(f); err != nil {
		return nil, err
	}
	qy, err := q.parseQuery(t)
	if err != nil {
		return nil, err
	}
	if f.Collection && len(qy.expand) > 0 {
		return nil, unsupported("$expand", "what %s returns cannot be expanded", f.Name)
	}
	args := slices.Clone(t.args)
	if q.ver == v4 && f.Post {
		if args, err = q.readParameters(f, args); err != nil {
			return nil, err
		}
	}
	c := &called{request: q, f: f, query: qy}
	x := &dialect.Exchange{
		Ops:   []record.Op{{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: f.Endpoint, Args: q.scriptArgs(f, args)}}},
		Reply: c.reply,
		Next:  c.next,
	}
	return x, nil
}

// calls checks that the method is the one that f is called by.
func (q *request) calls(f *edm.Function) error {
	switch {
	case f.Post && q.method != "POST":
		return notAllowed(q.method, f.Name, "POST")
	case !f.Post && q.method != "GET":
		return notAllowed(q.method, f.Name, "GET", "HEAD")
	}
	return nil
}

// readParameters reads the parameters of an action of V4: {"SalesOrderID":"0500000000"}. What the address says of them stays.
func (q *request) readParameters(f *edm.Function, args []record.Value) ([]record.Value, error) {
	given := make([]bool, len(args))
	if len(strings.TrimSpace(string(q.call.Body))) > 0 {
		m, err := mediaOf(q.call.Header.Get("Content-Type"), q.call.Body)
		if err == nil && m != jsonMedia {
			err = record.Errorf(record.Unsupported, "Content-Type", "bodies of V4 are JSON")
		}
		if err != nil {
			return nil, err
		}
		r := q.reader(wanting)
		defer r.release()
		_ = r.valid() && r.members(func(name string) bool {
			i := slices.IndexFunc(f.Parameters, func(p *edm.Property) bool { return p.Name == name })
			switch {
			case i < 0 && strings.IndexByte(name, '@') >= 0:
				return r.skip()
			case i < 0:
				return r.refuse(nil, name, "%s has no parameter %.80s", f.Name, name)
			case given[i]:
				return r.refuse(nil, name, "the parameter is there twice")
			}
			s, ok := r.scalar()
			if !ok {
				return false
			}
			v, fault := valueOf(v4, f.Parameters[i], s)
			if fault != "" {
				return r.refuse(nil, name, "%s", fault)
			}
			args[i], given[i] = v, true
			return true
		}) && r.over()
		if err := r.failure(); err != nil {
			return nil, err
		}
	}
	for i, p := range f.Parameters {
		if args[i].IsNull() && !p.Nullable {
			return nil, record.Errorf(record.Invalid, p.Name, "%s: the parameter %s is missing", f.Name, p.Name)
		}
	}
	return args, nil
}

// scriptArgs are the arguments of the endpoint: parameters as a JSON object, in the forms of V4.
func (q *request) scriptArgs(f *edm.Function, args []record.Value) []byte {
	body := []byte{'{'}
	for i, p := range f.Parameters {
		body = append(wire.AppendQuote(comma(body), p.Name), ':')
		body = appendJSON4(body, p, args[i], false)
	}
	body = append(body, '}')
	url := q.call.RawPath
	if url == "" {
		url = q.call.Path
	}
	if q.call.RawQuery != "" {
		url += "?" + q.call.RawQuery
	}
	s := dialect.ScriptArgs{Method: q.method, URL: url, Base: q.call.Base, Query: q.call.RawQuery, Body: body}
	for _, p := range q.query {
		s.Values = append(s.Values, [2]string{p.name, p.value})
	}
	for _, h := range q.call.Header {
		if !strings.EqualFold(h.Name, "Content-Type") { // that of the caller says nothing of the body that the script sees
			s.Header = append(s.Header, h)
		}
	}
	s.Header.Add("Content-Type", "application/json")
	return s.Append(nil)
}

// called is a function import under way.
type called struct {
	*request
	f      *edm.Function
	query  *query
	script wire.Header // what the script wants its answer to say
	values []record.Value
}

// result reads what the script gave back. The error is what it failed with, or a bug of it.
func (c *called) result(out []record.Outcome) (*dialect.ScriptResult, error) {
	if out[0].Err != nil {
		return nil, out[0].Err
	}
	r, err := dialect.ReadScriptResult(out[0].Result)
	if err != nil {
		return nil, record.Errorf(record.Internal, "", "internal error").Because(err)
	}
	if r.Failed || r.Status >= 400 {
		msg := r.Message
		if msg == "" {
			msg = "the function " + c.f.Name + " failed"
		}
		if r.Detail != "" && r.Detail != msg {
			msg += ": " + r.Detail
		}
		e := &record.Error{Kind: record.Rejected, Msg: msg, Err: &statusError{status: max(min(r.Status, 599), 400)}}
		if r.Status < 400 || r.Status >= 500 {
			e.Kind, e.Err = record.Internal, &statusError{status: 500}
		}
		return nil, e
	}
	c.script = r.Header
	if r.Streamed {
		r.Body = wire.AppendQuote(nil, r.Stream) // what it wrote as it is, is a text
	}
	return r, nil
}

// reply answers what the script gave back.
func (c *called) reply(out []record.Outcome, a *wire.Answer) {
	if _, err := c.result(out); err != nil {
		c.fail(a, err)
		return
	}
	if c.f.Void || c.f.Set != nil {
		c.head(a, 204)
		c.says(a)
		return
	}
	c.head(a, 200)
	c.says(a)
	c.format.result(c.request, a, c.f, c.values)
}

// next reads the result. It is the round that reads the entities whose keys the script gave; nil if there are none.
func (c *called) next(out []record.Outcome) (*dialect.Exchange, error) {
	r, err := c.result(out)
	switch {
	case err != nil || r.Body == nil || c.f.Void:
		return nil, nil // reply says so
	case c.f.Set != nil:
		return c.entities(r.Body)
	}
	c.values, err = c.read(r.Body)
	return nil, err
}

// says passes on the message that the script wants to be shown: the JSON of the header, or a plain text.
func (c *called) says(a *wire.Answer) {
	text := c.script.Get("sap-message")
	switch {
	case text == "":
		return
	case strings.HasPrefix(text, "{"):
		text = headerJSON(text)
	default:
		text = (&message{text: text, severity: "success"}).header()
	}
	a.Header.Add("sap-message", text)
}

// scriptReader reads what a script gave back.
func (c *called) scriptReader(body []byte) *bodyReader {
	r := c.reader(wanting)
	r.body = body
	r.text = unsafe.String(unsafe.SliceData(body), len(body))
	return r
}

// wrong is the error of a result that does not fit the function: a bug of the project.
func (c *called) wrong(r *bodyReader) error {
	return record.Errorf(record.Internal, "", "the result of %s is none that the service defines", c.f.Name).Because(r.err)
}

// read reads primitive and complex results, several one after another; none for null.
func (c *called) read(body []byte) ([]record.Value, error) {
	r := c.scriptReader(body)
	defer r.release()
	var list []record.Value
	one := func() bool {
		if c.f.Complex != nil {
			return c.object(r, c.f.Complex.Properties, &list)
		}
		s, ok := r.scalar()
		if !ok {
			return false
		}
		v, fault := valueOf(v4, &edm.Property{Name: c.f.Name, Kind: c.f.Kind, Nullable: true}, s)
		if fault != "" {
			return r.refuse(nil, c.f.Name, "%s", fault)
		}
		list = append(list, v)
		return true
	}
	ok := r.valid()
	switch {
	case ok && c.f.Collection:
		ok = r.each(one)
	case ok && r.peek() == 'n':
		ok = r.skip()
	case ok:
		ok = one()
	}
	if !ok || !r.over() {
		return nil, c.wrong(r)
	}
	return list, nil
}

// object reads the values of an object in the order of props; what it leaves out is null.
func (c *called) object(r *bodyReader, props []*edm.Property, list *[]record.Value) bool {
	at := len(*list)
	*list = append(*list, make([]record.Value, len(props))...)
	return r.members(func(name string) bool {
		i := slices.IndexFunc(props, func(p *edm.Property) bool { return p.Name == name })
		if i < 0 {
			return r.skip()
		}
		s, ok := r.scalar()
		if !ok {
			return false
		}
		p := *props[i]
		p.Nullable = true
		v, fault := valueOf(v4, &p, s)
		if fault != "" {
			return r.refuse(nil, name, "%s", fault)
		}
		(*list)[at+i] = v
		return true
	})
}

// each reads an array and lets one read its elements.
func (r *bodyReader) each(one func() bool) bool {
	if r.peek() != '[' {
		return r.broken("an array is expected")
	}
	r.pos++
	for n := 0; ; n++ {
		if r.peek() == ']' {
			r.pos++
			return true
		}
		if n > 0 && !r.end(',') || !one() {
			return false
		}
	}
}

// entities is the round that reads the entities of the keys in body.
func (c *called) entities(body []byte) (*dialect.Exchange, error) {
	r := c.scriptReader(body)
	defer r.release()
	key := c.f.Set.Type.Key
	var values []record.Value
	ok := r.valid()
	switch {
	case ok && c.f.Collection:
		ok = r.each(func() bool { return c.object(r, key, &values) })
	case ok && r.peek() == 'n':
		return nil, nil
	case ok:
		ok = c.object(r, key, &values)
	}
	if !ok || !r.over() {
		return nil, c.wrong(r)
	}
	q := *c.request
	q.first, q.group = 0, 0
	if !c.f.Collection {
		return c.entity(&q, values)
	}
	s := q.shape(c.f.Set, c.query)
	x := &dialect.Exchange{}
	for at := 0; at < len(values); at += len(key) {
		x.Ops = append(x.Ops, record.Op{
			Verb: record.Get, Table: c.f.Set.Type.Table.Name, Key: slices.Clone(values[at : at+len(key)]), Return: s.paths,
		})
	}
	x.Reply = func(out []record.Outcome, a *wire.Answer) {
		rows := record.NewRows(s.paths, nil)
		for i := range out {
			switch e := out[i].Err; {
			case e == nil && hasRow(&out[i]):
				rows.AppendShared(out[i].Rows.At(0))
			case e != nil && e.Kind != record.NotFound: // who may not see an entity does not get it
				q.fail(a, e)
				return
			}
		}
		q.head(a, 200)
		c.says(a)
		q.format.feed(&q, a, &node{shape: s, rows: rows}, -1, func() string { return "" })
	}
	return x, nil
}

// entity is the round that reads the one entity that the script named.
func (c *called) entity(q *request, key []record.Value) (*dialect.Exchange, error) {
	x, err := q.get(&target{kind: entityTarget, set: c.f.Set, key: key}, c.query)
	if err != nil {
		return nil, err
	}
	reply := x.Reply
	x.Reply = func(out []record.Outcome, a *wire.Answer) {
		if reply(out, a); a.Status < 300 {
			c.says(a)
		}
	}
	return x, nil
}
