package ords

import (
	"slices"
	"strconv"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/wire"
)

const (
	typeJSON = "application/json"
	typeCSV  = "text/csv"
)

// reply answers a call of a query.
type reply struct {
	*request
	h    *handler
	page page

	headers, body int // lengths of the answer before this one was begun
	sent          bool
}

// head sets status and the fields that every answer has.
func (q *request) head(a *wire.Answer, contentType string) {
	a.Status = 200
	if q.status != 0 {
		a.Status = q.status
	}
	if a.Header == nil {
		a.Header = make(wire.Header, 0, 4+len(q.headers))
	}
	q.opt.trace(a, q.id)
	if contentType != "" {
		a.Header.Add("Content-Type", contentType)
	}
	for _, f := range q.headers {
		a.Header.Set(f.Name, f.Value)
	}
}

// write writes the answer. It streams unless something in front of the body depends on all of it.
func (r *reply) write(out []record.Outcome, a *wire.Answer) {
	o := &out[0]
	r.headers, r.body = len(a.Header), len(a.Body)
	if o.Err != nil {
		r.fail(a, r.namedFault(o.Err))
		return
	}
	if r.unchanged(o, a) {
		return
	}
	if err := r.render(o, a); err != nil {
		if r.sent {
			a.Err = err
			return
		}
		a.Header, a.Body = a.Header[:r.headers], a.Body[:r.body]
		o.Err = r.namedFault(record.AsError(err)) // for the log
		r.fail(a, o.Err)
		return
	}
	r.finish(a)
}

// namedFault is an error with the name of the parameter in the place of the database's own, "$2". Those behind the handler's own are of
// the filter.
func (r *reply) namedFault(e *record.Error) *record.Error {
	n, err := strconv.Atoi(trimDollar(e.Field))
	if err != nil || n < 1 {
		return e
	}
	named := *e
	if params := r.h.def.SQL.Compiled.Statements[0].Params; n <= len(params) {
		named.Field = r.h.binds[params[n-1]].name
	} else {
		named.Field = "q"
	}
	return &named
}

func trimDollar(s string) string {
	if len(s) > 1 && s[0] == '$' {
		return s[1:]
	}
	return ""
}

// unchanged answers what the caller has already, by the tag query's tag.
func (r *reply) unchanged(o *record.Outcome, a *wire.Answer) bool {
	if o.SQL == nil || o.SQL.Tag == "" {
		return false
	}
	etag := `"` + o.SQL.Tag + `"`
	if !o.SQL.Same && !slices.Contains(tagsOf(r.call.Header, "If-None-Match"), anyTag) {
		addTag(a, etag)
		return false
	}
	r.head(a, "")
	a.Status = 304
	addTag(a, etag)
	return true
}

// render writes head and body.
func (r *reply) render(o *record.Outcome, a *wire.Answer) error {
	rows := o.Rows
	if rows == nil {
		rows = record.NewRows(nil, nil)
	}
	switch r.h.def.SQL.Source {
	case catalog.SourceCollection:
		return r.collection(rows, a)
	case catalog.SourceItem, catalog.SourceSingle:
		return r.item(rows, a)
	case catalog.SourceQuery, catalog.SourceFeed:
		return r.old(rows, a)
	case catalog.SourceCSV:
		return r.csv(rows, a)
	case catalog.SourceMedia:
		return r.media(rows, a)
	}
	return record.Errorf(record.Unsupported, "", "the endpoint is of the unknown kind %s", r.h.def.SQL.Source)
}

// hashes reports whether the answer's tag is a hash of its body, which is kept until it is whole.
func (r *reply) hashes() bool {
	tag := r.h.def.SQL.ETag
	return tag == "" || tag == catalog.ETagHash
}

// finish makes the tag of a whole body, and leaves the body out where the caller has it or wants none.
func (r *reply) finish(a *wire.Answer) {
	if !r.sent {
		r.request.finish(a, r.body, r.hashes())
	}
}

// finish is the end of an answer whose body begins at from and is not on its way yet.
func (q *request) finish(a *wire.Answer, from int, hash bool) {
	if hash && a.Status == 200 {
		began := time.Now()
		etag := hashTag(a.Body[from:])
		a.Hashed = time.Since(began)
		if hasTag(tagsOf(q.call.Header, "If-None-Match"), etag) {
			a.Status, a.Body = 304, a.Body[:from]
			a.Header.Del("Content-Type")
		}
		addTag(a, etag)
	}
	if q.call.Item && q.call.Method == "HEAD" {
		a.Body = a.Body[:from]
	}
}

// grown sends what there is of an answer that streams.
func (r *reply) grown(a *wire.Answer) error {
	if a.Flush == nil || len(a.Body) < wire.FlushAt || r.hashes() {
		return nil
	}
	r.sent = true
	return a.Grown()
}

// collection writes json/collection (protocol notes, section 5.1). That there are more rows is known by one that is not answered.
func (r *reply) collection(rows *record.Rows, a *wire.Answer) error {
	r.head(a, typeJSON)
	a.Body = append(a.Body, `{"items":[`...)
	n, more, err := r.items(rows, a)
	if err != nil {
		return err
	}
	a.Body = r.appendEnd(a.Body, &r.page, n, more, "", r.root()+"metadata-catalog/"+r.h.pattern)
	return nil
}

// items writes the rows of a page, with commas between.
func (r *reply) items(rows *record.Rows, a *wire.Answer) (n int64, more bool, err error) {
	plan := &r.h.row
	var res *resolver
	if len(plan.links) > 0 {
		res = r.resolver()
	}
	for {
		row, ok := rows.Next()
		if !ok {
			return n, r.h.full && n > 0 && n == r.page.limit, rows.Err()
		}
		if n == r.page.limit {
			return n, true, nil
		}
		if n > 0 {
			a.Body = append(a.Body, ',')
		}
		n++
		if a.Body, err = plan.appendMembers(a.Body, row); err != nil {
			return n, false, err
		}
		if res != nil {
			a.Body = r.openLinks(a.Body)
			a.Body = plan.appendLinks(a.Body, row, res)
			a.Body = append(a.Body, ']')
		}
		a.Body = append(a.Body, '}')
		if err := r.grown(a); err != nil {
			return n, false, err
		}
	}
}

// openLinks begins the list of links of a row whose members stand at the end of dst.
func (r *reply) openLinks(dst []byte) []byte {
	if len(r.h.row.data) > 0 {
		dst = append(dst, ',')
	}
	return append(dst, `"links":[`...)
}

// item writes json/item with the link to its collection, or json/query;type=single, which has none (protocol notes, sections 5.2, 5.4).
func (r *reply) item(rows *record.Rows, a *wire.Answer) error {
	row, ok := rows.Next()
	if !ok {
		if err := rows.Err(); err != nil {
			return err
		}
		return notFound()
	}
	r.head(a, typeJSON)
	plan := &r.h.row
	var err error
	if a.Body, err = plan.appendMembers(a.Body, row); err != nil {
		return err
	}
	if r.h.def.SQL.Source == catalog.SourceSingle {
		a.Body = plan.appendRefs(a.Body, row, r.resolver())
	} else {
		a.Body = r.openLinks(a.Body)
		a.Body = plan.appendLinks(a.Body, row, r.resolver())
		a.Body = append(appendLink(a.Body, "collection", r.parent()), ']')
	}
	a.Body = append(a.Body, '}')
	return nil
}

// media writes the bytes of resource/lob with the content type that stands beside them (protocol notes, section 4).
func (r *reply) media(rows *record.Rows, a *wire.Answer) error {
	row, ok := rows.Next()
	if !ok {
		if err := rows.Err(); err != nil {
			return err
		}
		return notFound()
	}
	if len(row) < 2 {
		return record.Errorf(record.Rejected, "", "the query of a resource/lob answers two columns")
	}
	if row[1].IsNull() {
		return notFound()
	}
	kind := printable(row[0].Text())
	if kind == "" {
		kind = "application/octet-stream"
	}
	r.head(a, kind)
	a.Body = row[1].AppendText(a.Body)
	return nil
}

// printable is a text that may stand in a header: what may not is left out.
func printable(s string) string {
	for i := 0; i < len(s); i++ {
		if s[i] >= ' ' && s[i] != 0x7f || s[i] == '\t' {
			continue
		}
		b := make([]byte, 0, len(s))
		for j := 0; j < len(s); j++ {
			if s[j] >= ' ' && s[j] != 0x7f || s[j] == '\t' {
				b = append(b, s[j])
			}
		}
		return string(b)
	}
	return s
}
