package odata

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/internal/edm"
	"weir/internal/record"
)

// page is where an answer ends before the rows do: server-driven paging. One row more than the page holds is asked for, so that
// there is a next page only if it has something.
type page struct {
	left int64 // rows that may still be written
	more bool  // there are rows beyond
	cols []int // of the values that the rows are sorted by, the key at their end
	seal uint32
	last []byte // what the next page begins after
}

// mark notes the last row that is written.
func (p *page) mark(row []record.Value) {
	p.last = binary.BigEndian.AppendUint32(append(p.last[:0], tokenVersion), p.seal)
	for _, c := range p.cols {
		p.last = appendTokenValue(p.last, row[c])
	}
}

// pageSize is how many entities of set an answer holds at most, 0 for any number: max_page of the set, else page_size of the service,
// else the setting odata.page_size; the client may ask for less. preferred is what it asked for, 0 for nothing.
func (q *request) pageSize(set *edm.Set) (size, asked int64) {
	size = int64(set.MaxPage)
	if size == 0 {
		size = int64(q.svc.Def.PageSize)
	}
	if size == 0 {
		size = int64(q.d.opt.PageSize)
	}
	if q.ver == v2 {
		return size, 0
	}
	text, ok := preferred(q.call.Header, "maxpagesize")
	n, err := strconv.ParseInt(text, 10, 32)
	if !ok || err != nil || n < 1 { // a preference that cannot be read is none
		return size, 0
	}
	if size == 0 || n < size {
		return n, n
	}
	return size, 0
}

// preference finds a preference in a Prefer header; its value may be "".
func preference(header, name string) (value string, ok bool) {
	for more := header != ""; more; {
		var item string
		item, header, more = cutQuoted(header, ',')
		item, _, _ = cutQuoted(item, ';')
		key, value, _ := strings.Cut(item, "=")
		if strings.EqualFold(strings.TrimSpace(key), name) {
			return strings.Trim(strings.TrimSpace(value), `"`), true
		}
	}
	return "", false
}

// totalOrder is sort with the key at its end, which makes an order total: pages neither skip nor repeat an entity.
func totalOrder(set *edm.Set, sort []record.Sort) []record.Sort {
	list := make([]record.Sort, 0, len(sort)+len(set.Type.Key))
	seen := func(path string) bool {
		for i := range list {
			if list[i].Path == path {
				return true
			}
		}
		return false
	}
	for _, s := range sort {
		if !seen(s.Path) {
			list = append(list, s)
		}
	}
	for _, p := range set.Type.Key {
		if !seen(p.Path) {
			list = append(list, record.Sort{Path: p.Path})
		}
	}
	return list
}

// seal is what a token says of the order that it belongs to.
func seal(set *edm.Set, order []record.Sort) uint32 {
	h := fnv.New32a()
	h.Write([]byte(set.Name))
	for _, s := range order {
		dir := byte(1)
		if s.Desc {
			dir = 2
		}
		h.Write([]byte{0, dir})
		h.Write([]byte(s.Path))
	}
	return h.Sum32()
}

const tokenVersion = 1

// appendTokenValue appends a value to a token: its form, then what it holds.
func appendTokenValue(dst []byte, v record.Value) []byte {
	dst = append(dst, byte(v.Form))
	switch v.Form {
	case record.Null:
	case record.Text:
		dst = binary.AppendUvarint(dst, uint64(len(v.S)))
		dst = append(dst, v.S...)
	default:
		dst = binary.AppendVarint(dst, v.N)
	}
	return dst
}

// readToken reads the values of a token for an order. The error is an Invalid: the token was not made by us, or for another order.
func readToken(set *edm.Set, order []record.Sort, text string) ([]record.Value, error) {
	bad := record.Errorf(record.Invalid, "$skiptoken", "the token %.80q was not given by this service for this request", text)
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 5 || b[0] != tokenVersion || binary.BigEndian.Uint32(b[1:]) != seal(set, order) {
		return nil, bad
	}
	b = b[5:]
	values := make([]record.Value, 0, len(order))
	for range order {
		if len(b) == 0 {
			return nil, bad
		}
		v := record.Value{Form: record.Form(b[0])}
		b = b[1:]
		size := 0
		switch v.Form {
		case record.Null:
		case record.Text:
			n, used := binary.Uvarint(b)
			if used <= 0 || n > uint64(len(b)-used) {
				return nil, bad
			}
			v.S = string(b[used : used+int(n)])
			size = used + int(n)
			if strings.IndexByte(v.S, 0) >= 0 || !utf8.ValidString(v.S) {
				return nil, bad
			}
		case record.Bool, record.Int, record.Num, record.Time:
			v.N, size = binary.Varint(b)
			if size <= 0 {
				return nil, bad
			}
		default:
			return nil, bad
		}
		b = b[size:]
		values = append(values, v)
	}
	if len(b) > 0 {
		return nil, bad
	}
	return values, nil
}

// behind is the condition that a record comes after one with these values in an order. A null comes before all values.
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

const hexDigits = "0123456789ABCDEF"

// nextLink is the address of the following page: that of the call with what remains of $top, and a token instead of $skip. All other
// parameters stand as they came.
func (q *request) nextLink(token []byte, top int64) string {
	b := make([]byte, 0, 256)
	b = append(b, q.address()...)
	b = append(append(b, q.rest...), '?')
	for rest, more := q.call.RawQuery, q.call.RawQuery != ""; more; {
		var pair string
		pair, rest, more = strings.Cut(rest, "&")
		name, _, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		// An option that is none was refused before; V4 knows them without their $ too.
		if option, err := q.systemOption(name); err == nil && option != "" {
			name = option
		}
		switch name {
		case "", "$top", "$skip", "$skiptoken":
			continue
		}
		for i := range len(pair) {
			if c := pair[i]; c <= ' ' || c >= 0x7f || c == '<' || c == '>' || c == '"' || c == '\\' {
				b = append(b, '%', hexDigits[c>>4], hexDigits[c&15])
			} else {
				b = append(b, c)
			}
		}
		b = append(b, '&')
	}
	if top >= 0 {
		b = append(b, "$top="...)
		b = append(strconv.AppendInt(b, top, 10), '&')
	}
	b = append(b, "$skiptoken="...)
	return string(base64.RawURLEncoding.AppendEncode(b, token))
}
