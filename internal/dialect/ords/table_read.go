package ords

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"net/url"
	"strconv"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// get reads one row.
func (q *tableCall) get(key []record.Value) *dialect.Exchange {
	return &dialect.Exchange{
		Ops: []record.Op{{Verb: record.Get, Table: q.Table.Name, Key: key, Return: q.paths()}},
		Reply: func(out []record.Outcome, a *wire.Answer) {
			row, err := only(&out[0])
			if err != nil {
				q.d.Fail(q.call, err, a)
				return
			}
			tag := q.tag(row)
			if none := tagsOf(q.call.Header.Get("If-None-Match")); len(none) > 0 && has(none, tag) {
				a.Status = 304
				a.Header.Set("ETag", tag)
				return
			}
			document(a, 200)
			a.Header.Set("ETag", tag)
			a.Body = q.appendItem(a.Body, row)
		},
	}
}

// only is the one row of an outcome.
func only(o *record.Outcome) ([]record.Value, error) {
	if o.Err != nil {
		return nil, o.Err
	}
	if o.Rows == nil || o.Rows.Len() == 0 {
		return nil, record.Errorf(record.NotFound, "", "there is no such row")
	}
	return o.Rows.At(0), nil
}

// tablePage is which rows of a collection are asked for.
type tablePage struct {
	offset, limit int64 // limit 0: all that there are, up to the bound on all answers
	given         bool  // the caller said the limit, so its links repeat it
}

// page reads limit and offset (protocol notes, section 7).
func (q *tableCall) page() (p tablePage, err error) {
	if p.offset, _, err = q.number("offset"); err != nil {
		return p, err
	}
	if p.limit, p.given, err = q.number("limit"); err != nil {
		return p, err
	}
	if !p.given {
		p.limit = int64(q.schema.Def.PageSize)
		if p.limit == 0 {
			p.limit = int64(*q.opt.PageSize)
		}
	}
	if most := int64(q.opt.MaxRows); p.limit > most || p.limit == 0 && !p.given {
		p.limit = most
	}
	return p, nil
}

// number reads a parameter that counts rows.
func (q *tableCall) number(name string) (n int64, given bool, err error) {
	list := q.query[name]
	if len(list) == 0 {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(list[0], 10, 64)
	if err != nil || n < 0 || n > 1<<53 || len(list) > 1 {
		return 0, false, record.Errorf(record.Invalid, name, "%s is one number of rows, not %.60q", name, list)
	}
	return n, true, nil
}

// afterName is a parameter that only our links carry, next to offset: the key of the last row before the page, so that following links
// neither skips nor repeats rows that others write meanwhile, and costs the same on the last page as on the first. Who computes an
// offset of his own leaves it out, or with another offset than it was made for it says nothing.
const afterName = "after"

// list reads a page of rows.
func (q *tableCall) list() (*dialect.Exchange, error) {
	if err := q.known("q", "limit", "offset", afterName); err != nil {
		return nil, err
	}
	page, err := q.page()
	if err != nil {
		return nil, err
	}
	where, sort, err := q.filter()
	if err != nil {
		return nil, err
	}
	l := &tableList{tableCall: q, page: page, sort: q.total(sort)}
	query := &record.Query{Where: where, Sort: l.sort, Offset: page.offset, Limit: page.limit + 1}
	if values, ok := l.readAfter(); ok {
		query.Where, query.Offset = record.AllOf(where, behind(l.sort, values)), 0
	}
	return &dialect.Exchange{
		Ops:   []record.Op{{Verb: record.List, Table: q.Table.Name, Query: query, Return: q.paths()}},
		Reply: l.reply,
	}, nil
}

// total makes an order total by adding the key.
func (q *tableCall) total(sort []record.Sort) []record.Sort {
	for _, col := range q.Key {
		found := false
		for i := range sort {
			found = found || sort[i].Path == col.Field.Name
		}
		if !found {
			sort = append(sort, record.Sort{Path: col.Field.Name})
		}
	}
	return sort
}

// tableList is a page of rows being answered.
type tableList struct {
	*tableCall
	page tablePage
	sort []record.Sort
	last []byte // what the next page begins after
}

// reply writes the rows as they come. When they end early by an error and nothing is sent yet, the answer is the error's.
func (l *tableList) reply(out []record.Outcome, a *wire.Answer) {
	o := &out[0]
	if o.Err != nil {
		l.d.Fail(l.call, o.Err, a)
		return
	}
	document(a, 200)
	at, sent := len(a.Body), false
	a.Body = append(a.Body, `{"items":[`...)
	n, more := int64(0), false
	for {
		row, ok := o.Rows.Next()
		if !ok {
			break
		}
		if n == l.page.limit {
			more = true
			break
		}
		if n++; n > 1 {
			a.Body = append(a.Body, ',')
		}
		a.Body = l.appendColumns(a.Body, row)
		a.Body = append(a.Body, `,"links":[`...)
		if len(l.Key) > 0 {
			before := len(a.Body)
			a.Body = append(append(a.Body, `{"rel":"self","href":"`...), l.at()...)
			var ok bool
			if a.Body, ok = l.appendKey(a.Body, row); ok {
				a.Body = append(a.Body, `"}`...)
			} else {
				a.Body = a.Body[:before]
			}
		}
		a.Body = append(a.Body, "]}"...)
		if n == l.page.limit {
			l.mark(row)
		}
		if a.Flush != nil && len(a.Body) >= wire.FlushAt {
			sent = true
			if err := a.Grown(); err != nil {
				a.Err = err
				return
			}
		}
	}
	if err := o.Rows.Err(); err != nil {
		if sent {
			a.Err = err
			return
		}
		a.Header, a.Body = a.Header[:0], a.Body[:at]
		l.d.Fail(l.call, err, a)
		return
	}
	a.Body = append(a.Body, `],"hasMore":`...)
	a.Body = strconv.AppendBool(a.Body, more)
	a.Body = strconv.AppendInt(append(a.Body, `,"limit":`...), l.page.limit, 10)
	a.Body = strconv.AppendInt(append(a.Body, `,"offset":`...), l.page.offset, 10)
	a.Body = strconv.AppendInt(append(a.Body, `,"count":`...), n, 10)
	a.Body = l.appendLinks(append(a.Body, `,"links":[`...), more)
	a.Body = append(a.Body, "]}"...)
}

// appendLinks appends the links of a page: self, edit, describedby, first, next, prev (protocol notes, section 5.1).
func (l *tableList) appendLinks(dst []byte, more bool) []byte {
	dst = appendLink(dst, "self", l.at())
	if l.Create || l.Delete {
		dst = appendLink(dst, "edit", l.at())
	}
	dst = appendLink(dst, "describedby", l.describedBy(false))
	dst = appendLink(dst, "first", l.pageAt(0, nil))
	if more && l.page.limit > 0 {
		dst = appendLink(dst, "next", l.pageAt(l.page.offset+l.page.limit, l.last))
	}
	if l.page.offset > 0 {
		dst = appendLink(dst, "prev", l.pageAt(max(0, l.page.offset-l.page.limit), nil))
	}
	return dst
}

// pageAt is the address of a page.
func (l *tableList) pageAt(offset int64, after []byte) string {
	v := url.Values{}
	if q := l.query.Get("q"); q != "" {
		v.Set("q", q)
	}
	if offset > 0 {
		v.Set("offset", strconv.FormatInt(offset, 10))
	}
	if l.page.given {
		v.Set("limit", strconv.FormatInt(l.page.limit, 10))
	}
	if after != nil {
		v.Set(afterName, base64.RawURLEncoding.EncodeToString(after))
	}
	if len(v) == 0 {
		return l.at()
	}
	return l.at() + "?" + v.Encode()
}

// seal is what a mark says of the page that it was made for: object, condition, order and offset.
func (l *tableList) seal(offset int64) uint64 {
	h := fnv.New64a()
	h.Write([]byte(l.Alias))
	h.Write([]byte{0})
	h.Write([]byte(l.query.Get("q")))
	h.Write(binary.AppendVarint(nil, offset))
	return h.Sum64()
}

// mark notes the last row of a page, if its order is one that rows can be found by.
func (l *tableList) mark(row []record.Value) {
	if len(l.Key) == 0 {
		return
	}
	values := make([]record.Value, len(l.sort))
	for i, s := range l.sort {
		for _, col := range l.Columns {
			if col.Field.Name == s.Path {
				values[i] = row[col.Index]
			}
		}
	}
	l.last = binary.LittleEndian.AppendUint64(nil, l.seal(l.page.offset+l.page.limit))
	l.last = record.AppendRow(l.last, values)
}

// readAfter reads the mark that a link of ours carries, false if there is none for this very page.
func (l *tableList) readAfter() ([]record.Value, bool) {
	text := l.query.Get(afterName)
	if text == "" || len(l.Key) == 0 {
		return nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 8 || binary.LittleEndian.Uint64(b) != l.seal(l.page.offset) {
		return nil, false
	}
	values := make([]record.Value, len(l.sort))
	rest, err := record.DecodeRow(b[8:], values)
	if err != nil || len(rest) > 0 {
		return nil, false
	}
	for i := range values {
		// Somebody may have made it himself: a value is one that its field could have.
		if values[i].Form > record.Time || !fits(l.Table.Field(l.sort[i].Path), values[i]) {
			return nil, false
		}
	}
	return values, true
}

// behind is the condition that a row comes after one with these values in an order. A null comes before all values.
func behind(order []record.Sort, values []record.Value) *record.Expr {
	var cond *record.Expr
	for i := len(order) - 1; i >= 0; i-- {
		field, v := record.F(order[i].Path), values[i]
		same := record.Compare(record.Eq, field, record.C(v))
		beyond := &record.Expr{Op: record.Never}
		switch {
		case v.IsNull() && !order[i].Desc:
			beyond = record.Compare(record.Ne, field, record.C(v))
		case v.IsNull():
		case order[i].Desc:
			beyond = record.AnyOf(record.Compare(record.Lt, field, record.C(v)), record.Compare(record.Eq, field, record.C(record.Value{})))
		default:
			beyond = record.Compare(record.Gt, field, record.C(v))
		}
		switch {
		case cond == nil:
			cond = beyond
		case beyond.Op == record.Never:
			cond = record.AllOf(same, cond)
		default:
			cond = record.AnyOf(beyond, record.AllOf(same, cond))
			if i == 0 && beyond.Op == record.Gt {
				// Said once more in a way that an index serves.
				cond = record.AllOf(record.Compare(record.Ge, field, record.C(v)), cond)
			}
		}
	}
	return cond
}
