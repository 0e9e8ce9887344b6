package ords

import (
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// headerField is a header of an answer.
type headerField = wire.HeaderField

// handler is a SQL endpoint as requests see it, worked out once for a snapshot.
type handler struct {
	def      *catalog.Endpoint
	segments []segment
	slash    bool   // its path ends with one
	pattern  string // base path and pattern of its template
	binds    []bind
	members  bool // a bind may be a member of the body
	pager    bool // it pages by itself
	full     bool // it does so by :page_size, so a full page may have a next one
	row      rowPlan
	columns  map[string]filterColumn // of its rows, that a filter may name
	outs     []outParam              // of a block
}

func compile(e *catalog.Endpoint) *handler {
	d := e.SQL
	h := &handler{def: e, pattern: d.Base + d.Pattern}
	if d.Pattern == "." {
		h.pattern = d.Base
	}
	h.segments, h.slash = parsePattern(d.Base, d.Pattern)
	if d.Compiled == nil {
		return h // calls are refused
	}
	h.bind()
	if d.Source == catalog.SourceBlock {
		h.outs = outParams(d)
		return h
	}
	if len(d.Compiled.Statements) != 1 {
		return h
	}
	columns := d.Compiled.Statements[0].Columns
	h.row = planRow(columns)
	h.columns = make(map[string]filterColumn, len(columns))
	for i := range columns {
		c := &columns[i]
		t := typeNamed(c.Type)
		if c.Rel == "" && !c.JSON && t != record.TypeJSON && t != record.TypeBytes {
			h.columns[c.Name] = filterColumn{c.Name, t}
		}
	}
	return h
}

// typeNamed is a type by its name, untyped for "".
func typeNamed(name string) record.Type {
	if t, ok := record.ParseType(name); ok {
		return t
	}
	return untyped
}

func (h *handler) find(name string) (filterColumn, bool) {
	c, ok := h.columns[name]
	return c, ok
}

// decodeHandler makes the exchange of a call of a SQL endpoint. slash says that the slash at the end of its path was left out.
func (q *request) decodeHandler(h *handler, values []string, slash bool) (*dialect.Exchange, error) {
	d := h.def.SQL
	if slash && q.method == "GET" && !q.call.Item && q.forwards == 0 {
		return q.redirect(), nil
	}
	if d.Compiled == nil {
		return nil, record.Errorf(record.Unavailable, "", "the endpoint was not compiled for this database; apply the project again")
	}
	if err := q.accepts(h); err != nil {
		return nil, err
	}
	call := &record.SQLCall{Limit: -1, ID: q.id}
	p, err := q.handlerPage(h)
	if err != nil {
		return nil, err
	}
	if err := q.filter(h, call); err != nil {
		return nil, err
	}
	if call.Binds, err = q.bindValues(h, values, &p); err != nil {
		return nil, err
	}
	if d.Source == catalog.SourceBlock {
		return q.decodeBlock(h, call)
	}
	switch d.Source {
	case catalog.SourceItem, catalog.SourceSingle, catalog.SourceMedia:
		call.Limit = 1
	default:
		call.Offset, call.Limit = p.offset, p.limit+1
	}
	if d.ETag == catalog.ETagQuery {
		call.Tags = tagsOf(q.call.Header, "If-None-Match")
	}
	r := &reply{request: q, h: h, page: p}
	x := q.exchange(h, call)
	x.Reply = r.write
	return x, nil
}

// exchange is an exchange of one call of an endpoint.
func (q *request) exchange(h *handler, call *record.SQLCall) *dialect.Exchange {
	return &dialect.Exchange{Ops: []record.Op{{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: h.def.Name, SQL: call}}}}
}

// accepts checks the type of a body (protocol notes, section 2).
func (q *request) accepts(h *handler) error {
	mimes := h.def.SQL.Mimes
	if len(mimes) == 0 || q.method == "GET" {
		return nil
	}
	kind := mediaType(q.call.Header.Get("Content-Type"))
	if kind == "" && len(q.call.Body) == 0 {
		return nil
	}
	for _, m := range mimes {
		m = strings.ToLower(m)
		if main, any := strings.CutSuffix(m, "*"); m == kind || any && strings.HasPrefix(kind, main) {
			return nil
		}
	}
	return record.Errorf(record.Unsupported, "Content-Type", "%.80q is not one of %s", kind, strings.Join(mimes, ", "))
}

// handlerPage is the page that a call asks for. The old sources count pages by the parameter page, from 0.
func (q *request) handlerPage(h *handler) (page, error) {
	size := *q.opt.PageSize
	switch d := h.def.SQL; {
	case d.PageSize != nil:
		size = *d.PageSize
	case d.Source == catalog.SourceCSV:
		size = 0 // a table for a program is whole
	}
	p, err := q.page(size)
	if err != nil {
		return p, err
	}
	n, given, err := q.query.count("page")
	if err != nil {
		return p, err
	}
	if src := h.def.SQL.Source; given && (src == catalog.SourceQuery || src == catalog.SourceFeed) {
		if p.limit > 0 && n > maxCount/p.limit {
			return p, record.Errorf(record.Invalid, "page", "there is no page %d", n)
		}
		p.offset = n * p.limit
	}
	return p, nil
}

// filter reads the filter object. A block has no rows to filter, but what is no filter object is refused all the same (protocol notes,
// section 3).
func (q *request) filter(h *handler, call *record.SQLCall) error {
	text, ok := q.query.get("q")
	if !ok || text == "" {
		return nil
	}
	if h.def.SQL.Source == catalog.SourceBlock {
		return isObject(text)
	}
	f, err := parseFilter(text, q.opt.MaxConditions, h.find)
	if err != nil {
		return err
	}
	call.Where, call.Sort = f.where, f.sort
	return nil
}

// redirect answers with the path that has a slash at its end, which links relative to it need.
func (q *request) redirect() *dialect.Exchange {
	to := q.url() + "/"
	if q.call.RawQuery != "" {
		to += "?" + q.call.RawQuery
	}
	return &dialect.Exchange{Reply: func(_ []record.Outcome, a *wire.Answer) {
		a.Status = 301
		q.opt.trace(a, q.id)
		a.Header.Add("Location", to)
	}}
}

// options answers what methods a path has.
func (q *request) options(allow []string) *dialect.Exchange {
	if slices.Contains(allow, "GET") {
		allow = append(allow, "HEAD")
	}
	allow = append(allow, "OPTIONS")
	return &dialect.Exchange{Reply: func(_ []record.Outcome, a *wire.Answer) {
		a.Status = 204
		q.opt.trace(a, q.id)
		a.Header.Add("Allow", strings.Join(allow, ", "))
	}}
}
