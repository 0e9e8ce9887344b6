package ords

import (
	"net/url"
	"strconv"
	"strings"

	"weir/internal/wire"
)

// page is which rows of a collection are asked for.
type page struct {
	limit, offset int64
	given         bool   // the client said how many
	whole         bool   // there are no pages: limit is the most that any answer holds
	after         string // what the link to the next page says besides
}

// page reads limit and offset (protocol notes, section 7). size is the page's size when the client names none, 0: no paging. A limit beyond
// ords.max_rows is lowered.
func (q *request) page(size int) (page, error) {
	p := page{limit: int64(size), whole: size == 0}
	n, given, err := q.query.count("limit")
	if err != nil {
		return p, err
	}
	if given {
		p.limit, p.given, p.whole = n, true, false
	}
	if most := int64(q.opt.MaxRows); p.whole || p.limit > most {
		p.limit = most
	}
	p.offset, _, err = q.query.count("offset")
	return p, err
}

// url is the URL of the call without its query.
func (q *request) url() string { return q.call.Base + q.at.path }

// pageLink is the URL of another page of the call's collection: other parameters of the query are kept, limit if the client gave it
// (protocol notes, section 5.1). An offset of 0 is left out.
func (q *request) pageLink(p *page, offset int64) string {
	b := make([]byte, 0, 128)
	b = append(b, q.call.Base...)
	b = append(b, q.at.path...)
	sep := byte('?')
	for part := range strings.SplitSeq(q.call.RawQuery, "&") {
		name, _, _ := strings.Cut(part, "=")
		if name, _ = unescape(name); part == "" || name == "offset" || name == "limit" || name == "page" {
			continue
		}
		b = append(append(b, sep), part...)
		sep = '&'
	}
	if offset > 0 {
		b = append(append(b, sep), "offset="...)
		b = strconv.AppendInt(b, offset, 10)
		sep = '&'
	}
	if p.given {
		b = append(append(b, sep), "limit="...)
		b = strconv.AppendInt(b, p.limit, 10)
	}
	return string(b)
}

// appendLink appends {"rel":…,"href":…}, with a comma before it unless it is the first of its list.
func appendLink(dst []byte, rel, href string) []byte {
	if len(dst) > 0 && dst[len(dst)-1] == '}' {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"rel":`...)
	dst = wire.AppendQuote(dst, rel)
	dst = append(dst, `,"href":`...)
	dst = wire.AppendQuote(dst, href)
	return append(dst, '}')
}

// appendEnd appends what follows the items of a collection: hasMore, limit, offset, count and the links in the order that clients have
// seen (protocol notes, section 5.1): self, edit, describedby, first, next, prev. edit is "" where rows cannot be written.
func (q *request) appendEnd(dst []byte, p *page, count int64, more bool, edit, describedby string) []byte {
	dst = append(dst, `],"hasMore":`...)
	dst = strconv.AppendBool(dst, more)
	dst = append(dst, `,"limit":`...)
	limit := p.limit
	if p.whole {
		limit = 0
	}
	dst = strconv.AppendInt(dst, limit, 10)
	dst = append(dst, `,"offset":`...)
	dst = strconv.AppendInt(dst, p.offset, 10)
	dst = append(dst, `,"count":`...)
	dst = strconv.AppendInt(dst, count, 10)
	dst = append(dst, `,"links":[`...)
	first := q.pageLink(p, 0)
	self := first
	if p.given { // self is the collection, whatever its pages
		self = q.pageLink(&page{}, 0)
	}
	dst = appendLink(dst, "self", self)
	if edit != "" {
		dst = appendLink(dst, "edit", edit)
	}
	if describedby != "" {
		dst = appendLink(dst, "describedby", describedby)
	}
	if !p.whole || more || p.offset > 0 {
		dst = appendLink(dst, "first", first)
	}
	if more && p.limit > 0 {
		dst = appendLink(dst, "next", q.pageLink(p, p.offset+p.limit)+p.after)
	}
	if p.offset > 0 {
		dst = appendLink(dst, "prev", q.pageLink(p, max(p.offset-p.limit, 0)))
	}
	return append(dst, "]}"...)
}

// parent is the URL of the collection that an item belongs to: the call's without its last segment.
func (q *request) parent() string {
	path := strings.TrimSuffix(q.at.path, "/")
	return q.call.Base + path[:strings.LastIndexByte(path, '/')+1]
}

// root is the URL of the schema, with a slash at its end.
func (q *request) root() string {
	return q.call.Base + Prefix + url.PathEscape(q.schema.alias) + "/"
}

// resolver resolves references against the URL of a call.
type resolver struct {
	dir  string // the URL up to and with its last slash
	base *url.URL
}

func (q *request) resolver() *resolver {
	at := q.url()
	return &resolver{dir: at[:strings.LastIndexByte(at, '/')+1]}
}

// resolve is ref as an absolute URL. Most are "./7369" or "7369" and need no parser.
func (r *resolver) resolve(ref string) string {
	short := strings.TrimPrefix(ref, "./")
	if short != "" && short[0] != '/' && short[0] != '?' && short[0] != '#' && !strings.ContainsAny(short, ":") && !strings.Contains(short, "./") && !strings.HasSuffix(short, ".") {
		return r.dir + short
	}
	if r.base == nil {
		base, err := url.Parse(r.dir)
		if err != nil {
			return ref
		}
		r.base = base
	}
	to, err := r.base.Parse(ref)
	if err != nil {
		return ref
	}
	return to.String()
}
