package ords

import (
	"net/url"
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// outParam is a parameter that a block assigns (protocol notes, section 2): a member of the answer, or a header.
type outParam struct {
	name   string
	header bool
	prefix string // `"name":`
	typ    record.Type
	rows   bool
	row    rowPlan // of rows
}

// outParams are the parameters of a block in the order of their declaration, which is that of its outcome.
func outParams(d *catalog.SQLDef) []outParam {
	var list []outParam
	for _, p := range d.Params {
		if p.Access == "IN" {
			continue
		}
		o := outParam{name: p.Name, header: p.Source == "HEADER", rows: p.Type == "RESULTSET", typ: paramType(p.Type)}
		o.prefix = string(append(wire.AppendQuote(nil, p.Name), ':'))
		for i := range d.Compiled.Statements {
			st := &d.Compiled.Statements[i]
			for at, bind := range st.Into {
				if p.Type == "" && bind == p.Bind && at < len(st.Columns) {
					o.typ = typeNamed(st.Columns[at].Type) // of a routine: the database says it
				}
			}
			if o.rows && len(st.Into) == 1 && st.Into[0] == p.Bind {
				o.row = planRow(st.Columns)
			}
		}
		list = append(list, o)
	}
	return list
}

// paramType is the type of a declared parameter.
func paramType(name string) record.Type {
	switch name {
	case "INT", "LONG":
		return record.TypeInteger
	case "DOUBLE":
		return record.TypeFloat
	case "BOOLEAN":
		return record.TypeBoolean
	case "TIMESTAMP":
		return record.TypeDateTime
	}
	return record.TypeString
}

// blockReply answers a call of a block.
type blockReply struct {
	*request
	h       *handler
	forward *request // what the block forwards to, nil for nothing
	err     error    // why that cannot be called
}

// decodeBlock makes the exchange of a call of a block.
func (q *request) decodeBlock(h *handler, call *record.SQLCall) (*dialect.Exchange, error) {
	b := &blockReply{request: q, h: h}
	x := q.exchange(h, call)
	x.Reply, x.Next = b.write, b.next
	tags := tagsOf(q.call.Header, "If-Match")
	if q.method == "GET" || len(tags) == 0 || hasTag(tags, anyTag) {
		return x, nil
	}
	if h.def.SQL.Compiled.Tag != nil {
		call.Match = tags
		return x, nil
	}
	return q.guarded(x, tags)
}

// guarded is the exchange x behind a GET of the same path, whose entity tag must be one of tags (protocol notes, section 13). Between
// the two others may write: an endpoint that cannot have that declares a tag query, which is checked with the write.
func (q *request) guarded(x *dialect.Exchange, tags []string) (*dialect.Exchange, error) {
	failed := record.Errorf(record.Precondition, "", "The entity tag asked for is not the current one")
	look := q.again(q.call.Path, q.at.path, "")
	h, values, _ := look.schema.route("GET", &look.at)
	if h == nil || h.def.SQL.Source == catalog.SourceBlock {
		return nil, failed
	}
	first, err := look.decodeHandler(h, values, false)
	if err != nil {
		return nil, err
	}
	reply := first.Reply
	first.Reply = func([]record.Outcome, *wire.Answer) {} // Next never ends here
	first.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
		var a wire.Answer
		reply(out, &a)
		if a.Status == 200 && hasTag(tags, a.Header.Get("ETag")) && a.Header.Has("ETag") {
			return x, nil
		}
		if e := out[0].Err; e != nil && e.Kind != record.NotFound {
			return nil, e
		}
		return nil, failed
	}
	return first, nil
}

// again is a GET by the same caller of another path of the same host.
func (q *request) again(path, raw, query string) *request {
	c := *q.call
	c.Method, c.Path, c.RawPath, c.RawQuery, c.Body = "GET", path, raw, query, nil
	c.Header = nil
	for _, f := range q.call.Header {
		name := strings.ToLower(f.Name)
		if !strings.HasPrefix(name, "if-") && !strings.HasPrefix(name, "content-") && name != "transfer-encoding" {
			c.Header = append(c.Header, f)
		}
	}
	to := &request{d: q.d, opt: q.opt, snap: q.snap, call: &c, method: "GET", id: q.id, forwards: q.forwards + 1, schema: q.schema}
	to.at, _ = addressOf(&c)
	return to
}

// next calls what the block forwards to: a GET of the location by the same caller, whose body is the answer (protocol notes, section 6).
func (b *blockReply) next(out []record.Outcome) (*dialect.Exchange, error) {
	o := out[0].SQL
	if out[0].Err != nil || o == nil || o.Forward == "" {
		return nil, nil
	}
	location := b.resolver().resolve(o.Forward)
	b.says(o.Status)
	b.headers = b.appendHeaders(append(b.headers, headerField{Name: "Location", Value: printable(location)}), o)
	u, err := url.Parse(location)
	switch {
	case err != nil:
		return nil, record.Errorf(record.Rejected, "", "the block forwards to what is no URL").Because(err)
	case b.forwards >= b.opt.MaxForwards:
		return nil, record.Errorf(record.Rejected, "", "blocks forward to each other more than %d times; see ords.max_forwards", b.opt.MaxForwards)
	case !strings.HasPrefix(location, b.call.Base+Prefix):
		if b.status == 0 {
			b.status = 302 // it is another's, who can be asked by the client alone
		}
		b.forward = b.request
		return nil, nil
	}
	to := b.again(u.Path, u.EscapedPath(), u.RawQuery)
	to.status, to.headers, to.from = b.status, b.headers, b.h
	x, err := to.decode()
	if err != nil {
		b.forward, b.err = to, err // the block has done its work: its answer says so, with what became of the rest
		return nil, nil
	}
	return x, nil
}

// says notes the status that a block has set. That of the first of several that forward to each other stands.
func (b *blockReply) says(status int) {
	if b.status == 0 {
		b.status = status
	}
}

// appendHeaders appends the parameters that are headers.
func (b *blockReply) appendHeaders(list []headerField, o *record.SQLOutcome) []headerField {
	b.each(o, func(p *outParam, v *record.Value) {
		if p.header && v != nil && !v.Empty() {
			text := v.Text()
			if v.Form == record.Time {
				text = string(wire.AppendTime(nil, *v))
			}
			list = append(list, headerField{Name: p.name, Value: printable(text)})
		}
	})
	return list
}

// each calls f for the parameters of an outcome in the order of their declaration; v is nil for rows.
func (b *blockReply) each(o *record.SQLOutcome, f func(p *outParam, v *record.Value)) {
	at := 0
	for i := range b.h.outs {
		p := &b.h.outs[i]
		switch {
		case p.rows:
			f(p, nil)
		case at < len(o.Out) && o.Out[at].Field == p.name:
			f(p, &o.Out[at].Value)
			at++
		}
	}
}

// write answers with what the block has assigned.
func (b *blockReply) write(out []record.Outcome, a *wire.Answer) {
	if out[0].Err != nil {
		b.fail(a, out[0].Err)
		return
	}
	if b.err != nil {
		b.forward.fail(a, b.err)
		return
	}
	if b.forward != nil {
		b.head(a, "")
		return
	}
	o := out[0].SQL
	if o == nil {
		o = &record.SQLOutcome{}
	}
	b.says(o.Status)
	b.headers = b.appendHeaders(b.headers, o)
	headers, body := len(a.Header), len(a.Body)
	members := false
	var err error
	b.each(o, func(p *outParam, v *record.Value) {
		if p.header || err != nil {
			return
		}
		lead := byte(',')
		if !members {
			lead, members = '{', true
		}
		a.Body = append(append(a.Body, lead), p.prefix...)
		if !p.rows {
			a.Body = wire.AppendValue(a.Body, p.typ, *v)
			return
		}
		err = b.appendSet(a, p, o)
	})
	if err != nil {
		a.Header, a.Body = a.Header[:headers], a.Body[:body]
		out[0].Err = record.AsError(err)
		b.headers, b.status = nil, 0
		b.fail(a, err)
		return
	}
	kind := ""
	if members {
		a.Body = append(a.Body, '}')
		kind = typeJSON
	}
	b.head(a, kind)
	if a.Status == 204 || a.Status == 304 {
		a.Body = a.Body[:body]
		a.Header.Del("Content-Type")
	}
	b.finish(a, body, b.method == "GET" && members && b.h.def.SQL.ETag != catalog.ETagNone)
}

func (b *blockReply) appendSet(a *wire.Answer, p *outParam, o *record.SQLOutcome) (err error) {
	for i := range o.Sets {
		if o.Sets[i].Name == p.name {
			a.Body, err = p.row.appendRows(a.Body, o.Sets[i].Rows)
			return err
		}
	}
	a.Body = append(a.Body, "[]"...)
	return nil
}
