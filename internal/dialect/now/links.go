package now

import (
	"strconv"

	"weir/internal/wire"
)

// maxLinkAddress is how long, in bytes, an address may be of which a Link header holds four: Node takes 16 KiB for all
// headers of an answer.
const maxLinkAddress = 3 << 10

// link adds the Link header of a list, as instances write it: absolute addresses, the other parameters before
// &sysparm_limit, no blank after the semicolons and commas, in the order first, prev, next, last:
//
//	<https://h/api/now/table/t?&sysparm_limit=5&sysparm_offset=0>;rel="first",<…&sysparm_offset=5>;rel="next",…
//
// There is none when one page holds everything. total is the number of matching records; without a count it is where the
// list ends, or negative if that is not known, and rel="last" is left out. Addresses that together would be longer than
// clients take a header to be are left out but for next: without that a client would think that it has read everything.
func (l *list) link(a *wire.Answer, total int64, counted bool) {
	limit, offset := l.page.limit, l.page.offset
	if l.page.noLink || limit == 0 || total >= 0 && total <= limit && offset == 0 {
		return
	}
	base := l.pageURL()
	var b []byte
	add := func(rel string, at int64) {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(b, '<')
		b = append(b, base...)
		b = append(b, "&sysparm_limit="...)
		b = strconv.AppendInt(b, limit, 10)
		b = append(b, "&sysparm_offset="...)
		b = strconv.AppendInt(b, at, 10)
		b = append(b, `>;rel="`...)
		b = append(b, rel...)
		b = append(b, '"')
	}
	alone := len(base) > maxLinkAddress
	if !alone {
		add("first", 0)
	}
	if offset > 0 && !alone {
		prev := max(0, offset-limit)
		if counted && offset >= total {
			prev = max(0, total-1) / limit * limit // beyond the end: the page before is the last one
		}
		add("prev", prev)
	}
	// Written so that no sum can overflow: offset and limit are the caller's.
	if total < 0 || offset < total && limit < total-offset {
		if offset <= offset+limit {
			add("next", offset+limit)
		}
	}
	if counted && total > 0 && !alone {
		add("last", (total-1)/limit*limit)
	}
	if len(b) > 0 {
		a.Header.Add("Link", string(b))
	}
}

// pageURL is the address of the list with all parameters but those of the page. They stand as they came; bytes that a
// header or the angle brackets around an address cannot hold are escaped.
func (l *list) pageURL() []byte {
	b := append([]byte(nil), l.base()+"/table/"+l.table.Name+"?"...)
	n := 0
	for _, p := range l.params {
		if p.name == "sysparm_limit" || p.name == "sysparm_offset" {
			continue
		}
		if n++; n > 1 {
			b = append(b, '&')
		}
		for i := range len(p.raw) {
			const hex = "0123456789ABCDEF"
			if c := p.raw[i]; c <= ' ' || c >= 0x7f || c == '<' || c == '>' || c == '"' {
				b = append(b, '%', hex[c>>4], hex[c&15])
			} else {
				b = append(b, c)
			}
		}
	}
	return b
}
