package ords

import (
	"net/url"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/wire"
)

// old writes json/query and json/feed (protocol notes, section 5.4). What leads to the pages before and after stands in front of the
// items, so nothing is sent before all rows are known.
func (r *reply) old(rows *record.Rows, a *wire.Answer) error {
	r.head(a, typeJSON)
	res := r.resolver()
	items := make([]byte, 0, 4<<10)
	n, more := int64(0), false
	for {
		row, ok := rows.Next()
		if !ok {
			if err := rows.Err(); err != nil {
				return err
			}
			more = r.h.full && n > 0 && n == r.page.limit
			break
		}
		if n == r.page.limit {
			more = true
			break
		}
		if n > 0 {
			items = append(items, ',')
		}
		n++
		var err error
		if items, err = r.oldRow(items, row, res); err != nil {
			return err
		}
	}
	a.Body = append(a.Body, '{')
	if more && r.page.limit > 0 {
		a.Body = appendRef(a.Body, "next", r.oldPage(r.page.offset/r.page.limit+1))
	}
	if r.page.offset > 0 {
		at := max(r.page.offset/max(r.page.limit, 1)-1, 0)
		a.Body = appendRef(a.Body, "previous", r.oldPage(at))
		a.Body = appendRef(a.Body, "first", r.oldPage(0))
	}
	if a.Body[len(a.Body)-1] != '{' {
		a.Body = append(a.Body, ',')
	}
	a.Body = append(a.Body, `"items":[`...)
	a.Body = append(a.Body, items...)
	a.Body = append(a.Body, "]}"...)
	return nil
}

// oldRow writes a row with its links. The first column of a feed is the key of the item that the row is a summary of.
func (r *reply) oldRow(dst []byte, row []record.Value, res *resolver) ([]byte, error) {
	plan := &r.h.row
	var err error
	if r.h.def.SQL.Source != catalog.SourceFeed || len(plan.data) == 0 {
		if dst, err = plan.appendMembers(dst, row); err != nil {
			return dst, err
		}
	} else {
		dst = appendRef(append(dst, '{'), "uri", res.resolve("./"+url.PathEscape(row[plan.data[0].at].Text())))
		summary := rowPlan{data: plan.data[1:], all: plan.all[1:]} // without the key
		if len(summary.data) > 0 {
			if dst, err = summary.appendMembers(dst, row); err != nil {
				return dst, err
			}
		}
	}
	return append(plan.appendRefs(dst, row, res), '}'), nil
}

// oldPage is the URL of a page by its number.
func (r *reply) oldPage(n int64) string {
	base := r.pageLink(&r.page, 0)
	if n == 0 {
		return base
	}
	sep := "?"
	if strings.IndexByte(base, '?') >= 0 {
		sep = "&"
	}
	return base + sep + "page=" + strconv.FormatInt(n, 10)
}
