package now

import (
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// decodeTable reads a call of the Table API: /table/{table} and /table/{table}/{sys_id}.
func (d *Dialect) decodeTable(snap *catalog.Snapshot, c *dialect.Call, at address) (*dialect.Exchange, error) {
	if len(at.rest) > 2 {
		return nil, noPath()
	}
	q, err := d.begin(snap, c, at)
	if err != nil {
		return nil, err
	}
	if len(at.rest) == 1 {
		switch q.method {
		case "GET", "HEAD":
			return q.list()
		case "POST":
			return q.insert()
		}
		return nil, notAllowed()
	}
	switch q.method {
	case "GET", "HEAD":
		return q.get()
	case "PUT", "PATCH": // documented apart, the same: fields not given keep their values
		return q.update()
	case "DELETE":
		return q.remove()
	}
	return nil, notAllowed()
}

// fail writes an error in mid-reply.
func (q *request) fail(a *wire.Answer, err error) { q.d.Fail(q.call, err, a) }

// single writes an answer that holds one record.
func (q *request) single(a *wire.Answer, status int, p *projection, rows *record.Rows) {
	head(a, status, q.format)
	if q.method == "HEAD" {
		return
	}
	var row []record.Value
	if rows != nil {
		row, _ = rows.Next()
	}
	r := q.renderer(p)
	if q.format.xml() {
		a.Body = append(a.Body, xmlHead+"<response>"...)
		a.Body = appendElement(a.Body, "result", func(b []byte) []byte {
			if row == nil {
				return b
			}
			return r.record(b, row)
		})
		a.Body = append(a.Body, "</response>"...)
		return
	}
	a.Body = append(a.Body, `{"result":`...)
	if row == nil {
		a.Body = append(a.Body, "{}"...) // written, but not to be seen by its writer
	} else {
		a.Body = r.record(a.Body, row)
	}
	a.Body = append(a.Body, '}')
}

// recordURL is the absolute address of a record of the request's table.
func (q *request) recordURL(key []record.Value) string {
	return q.base() + "/table/" + q.table.Name + "/" + string(appendSegment(nil, record.TextValue(keyText(key))))
}

// ignoredHeader names the conditions of a query that were dropped as invalid.
const ignoredHeader = "X-Weir-Ignored-Query"

// maxIgnoredHeader bounds the header.
const maxIgnoredHeader = 500

// reportIgnored adds the header if there is something to report. Bytes that a header cannot hold become '?'.
func reportIgnored(a *wire.Answer, ignored []string) {
	if len(ignored) == 0 {
		return
	}
	text := strings.Join(ignored, "^")
	if len(text) > maxIgnoredHeader {
		text = text[:maxIgnoredHeader] + "..."
	}
	clean := []byte(text)
	for i, c := range clean {
		if c < 0x20 || c >= 0x7f {
			clean[i] = '?'
		}
	}
	a.Header.Add(ignoredHeader, string(clean))
}
