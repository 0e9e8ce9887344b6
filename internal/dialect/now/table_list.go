package now

import (
	"strconv"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// list reads GET /table/{table}.
func (q *request) list() (*dialect.Exchange, error) {
	l := &list{request: q}
	var err error
	if l.projection, err = q.projection(); err != nil {
		return nil, err
	}
	if l.page, err = q.page(); err != nil {
		return nil, err
	}
	query, err := q.conditions()
	if err != nil {
		return nil, err
	}
	query.walks.join(l.projection.walks)
	if err := query.walks.check("sysparm_fields"); err != nil {
		return nil, err
	}
	l.ignored = query.ignored
	op := record.Op{Verb: record.List, Table: q.table.Name, Return: l.projection.paths, Query: &record.Query{
		Where: query.where, Sort: q.total(query.sort), Offset: l.page.offset, Limit: l.page.limit, Count: !l.page.noCount,
	}}
	if q.method == "HEAD" && op.Query.Count {
		op.Query.Limit = 0 // clients ask HEAD for X-Total-Count: there is no need to read a record
	}
	x := q.exchange(op)
	x.Reply = l.reply
	return x, nil
}

// conditions reads sysparm_query, or else the <field>=<value> parameters.
func (q *request) conditions() (*encoded, error) {
	if text := q.params.get("sysparm_query"); text != "" {
		return q.parseQuery(text)
	}
	if fields := q.params.shorthand(); len(fields) > 0 {
		return q.parseShorthand(fields)
	}
	return &encoded{walks: walks{max: q.d.opt.MaxWalks}}, nil
}

// total makes an order total by adding the key, so that pages neither skip nor repeat a record.
func (q *request) total(sort []record.Sort) []record.Sort {
key:
	for _, name := range q.table.Key {
		for _, s := range sort {
			if s.Path == name {
				continue key
			}
		}
		sort = append(sort, record.Sort{Path: name})
	}
	return sort
}

// page is which part of a list is asked for.
type page struct {
	limit, offset int64
	noCount       bool
	noLink        bool
}

func (q *request) page() (page, error) {
	p := page{noCount: q.params.truth("sysparm_no_count"), noLink: q.params.truth("sysparm_suppress_pagination_header")}
	var err error
	if p.limit, err = q.params.count("sysparm_limit", q.d.opt.DefaultLimit); err != nil {
		return p, err
	}
	if most := q.d.opt.MaxLimit; most > 0 {
		p.limit = min(p.limit, most)
	}
	p.offset, err = q.params.count("sysparm_offset", 0)
	return p, err
}

// list is a list being answered.
type list struct {
	*request
	projection *projection
	page       page
	ignored    []string
	sent       bool // part of the answer is on its way: status and headers are fixed
}

// reply writes the rows as they come. If they end early by an error, an answer of which nothing was sent becomes the error's;
// else a.Err tells the server to break the connection, so that a cut list cannot pass for a whole one.
func (l *list) reply(out []record.Outcome, a *wire.Answer) {
	o := &out[0]
	if o.Err != nil {
		l.fail(a, o.Err)
		return
	}
	rows := o.Rows
	if rows == nil {
		rows = record.NewRows(nil, nil)
	}
	headers, body := len(a.Header), len(a.Body)
	counted := !l.page.noCount && o.Total >= 0
	begin := func() {
		head(a, 200, l.format)
		if counted {
			a.Header.Add("X-Total-Count", strconv.FormatInt(o.Total, 10))
		}
		reportIgnored(a, l.ignored)
	}
	if l.method == "HEAD" {
		if l.at.version == "v1" && isEmpty(o, rows, counted) {
			l.fail(a, noRecord())
			return
		}
		begin()
		l.link(a, o.Total, counted)
		return
	}
	row, more := rows.Next()
	if !more && rows.Err() == nil && l.at.version == "v1" && l.page.limit > 0 {
		l.fail(a, noRecord()) // version 1 alone answers an empty list so
		return
	}
	begin()
	if counted {
		l.link(a, o.Total, true)
	}
	r := l.renderer(l.projection)
	l.open(a)
	n := int64(0)
	for ; more; row, more = rows.Next() {
		l.row(a, r, row, n == 0)
		n++
		if len(a.Body) < wire.FlushAt || a.Flush == nil {
			continue
		}
		if !counted && !l.sent {
			l.link(a, -1, false)
		}
		l.sent = true
		if err := a.Grown(); err != nil {
			a.Err = err
			return
		}
	}
	if err := rows.Err(); err != nil {
		if l.sent {
			a.Err = err
			return
		}
		a.Header, a.Body = a.Header[:headers], a.Body[:body]
		l.fail(a, err)
		return
	}
	l.close(a, n)
	if counted || l.sent {
		return
	}
	if n == l.page.limit {
		l.link(a, -1, false) // a full page: there may be a next one
	} else {
		l.link(a, l.page.offset+n, false)
	}
}

func isEmpty(o *record.Outcome, rows *record.Rows, counted bool) bool {
	if counted {
		return o.Total == 0
	}
	_, more := rows.Next()
	return !more
}

func (l *list) open(a *wire.Answer) {
	if l.format.xml() {
		a.Body = append(a.Body, xmlHead+"<response>"...)
		return
	}
	a.Body = append(a.Body, `{"result":[`...)
}

func (l *list) row(a *wire.Answer, r *renderer, row []record.Value, first bool) {
	if l.format.xml() {
		a.Body = append(a.Body, "<result>"...)
		a.Body = r.record(a.Body, row)
		a.Body = append(a.Body, "</result>"...)
		return
	}
	if !first {
		a.Body = append(a.Body, ',')
	}
	a.Body = r.record(a.Body, row)
}

func (l *list) close(a *wire.Answer, rows int64) {
	switch {
	case !l.format.xml():
		a.Body = append(a.Body, "]}"...)
	case rows == 0:
		a.Body = append(a.Body[:len(a.Body)-len("<response>")], "<response/>"...)
	default:
		a.Body = append(a.Body, "</response>"...)
	}
}
