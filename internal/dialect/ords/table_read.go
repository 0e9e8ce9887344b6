package ords

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strings"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// get reads one row.
func (q *tableCall) get(key []record.Value) *dialect.Exchange {
	return &dialect.Exchange{
		Ops: []record.Op{{Verb: record.Get, Table: q.Table.Name, Key: key, Return: q.Paths()}},
		Reply: func(out []record.Outcome, a *wire.Answer) {
			row, err := only(&out[0])
			if err != nil {
				q.refuse(a, err)
				return
			}
			tag := q.tag(row)
			if none := tagsOf(q.call.Header, "If-None-Match"); hasTag(none, tag) {
				a.Status = 304
				a.Header.Set("ETag", tag)
				return
			}
			q.document(a, 200)
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

// afterName is a parameter that only our links carry, next to offset: the key of the last row before the page, so that following links
// neither skips nor repeats rows that others write meanwhile, and costs the same on the last page as on the first. Who computes an
// offset of his own leaves it out, or with another offset than it was made for it says nothing.
const afterName = "_after"

// list reads a page of rows.
func (q *tableCall) list() (*dialect.Exchange, error) {
	size := q.schema.tables.Def.PageSize
	if size == 0 {
		size = *q.opt.PageSize
	}
	page, err := q.page(size)
	if err != nil {
		return nil, err
	}
	where, sort, err := q.filter()
	if err != nil {
		return nil, err
	}
	l := &tableList{tableCall: q, page: page, sort: q.total(sort)}
	after, _ := q.query.get(afterName)
	l.withoutAfter()
	query := &record.Query{Where: where, Sort: l.sort, Offset: page.offset, Limit: page.limit + 1}
	if values, ok := l.readAfter(after); ok {
		query.Where, query.Offset = record.AllOf(where, behind(l.sort, values)), 0
	}
	return &dialect.Exchange{
		Ops:   []record.Op{{Verb: record.List, Table: q.Table.Name, Query: query, Return: q.Paths()}},
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
	page page
	sort []record.Sort
}

// reply writes the rows as they come. When they end early by an error and nothing is sent yet, the answer is the error's.
func (l *tableList) reply(out []record.Outcome, a *wire.Answer) {
	o := &out[0]
	if o.Err != nil {
		l.refuse(a, o.Err)
		return
	}
	headers := len(a.Header)
	l.document(a, 200)
	at, sent, place := len(a.Body), false, l.place()
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
			a.Body = append(append(a.Body, `{"rel":"self","href":"`...), place...)
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
		a.Header, a.Body = a.Header[:headers], a.Body[:at]
		l.refuse(a, err)
		return
	}
	edit := ""
	if l.Create || l.Delete {
		edit = place
	}
	a.Body = l.appendEnd(a.Body, &l.page, n, more, edit, l.describedBy(false))
}

// withoutAfter leaves our own parameter out of what links repeat.
func (l *tableList) withoutAfter() {
	kept := make([]string, 0, 4)
	for part := range strings.SplitSeq(l.call.RawQuery, "&") {
		if !strings.HasPrefix(part, afterName+"=") {
			kept = append(kept, part)
		}
	}
	call := *l.call
	call.RawQuery = strings.Join(kept, "&")
	l.call = &call
}

// seal is what a mark says of the page that it was made for: object, condition, order and offset.
func (l *tableList) seal(offset int64) uint64 {
	h := fnv.New64a()
	h.Write([]byte(l.Alias))
	h.Write([]byte{0})
	text, _ := l.query.get("q")
	h.Write([]byte(text))
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
	b := binary.LittleEndian.AppendUint64(nil, l.seal(l.page.offset+l.page.limit))
	l.page.after = "&" + afterName + "=" + base64.RawURLEncoding.EncodeToString(record.AppendRow(b, values))
}

// readAfter reads the mark that a link of ours carries, false if there is none for this very page.
func (l *tableList) readAfter(text string) ([]record.Value, bool) {
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
