package ords

import (
	"slices"
	"strings"

	"weir/internal/record"
)

// bind is where one value of a SQL endpoint comes from.
type bind struct {
	from source
	name string // outside: of the parameter, header or member
	at   int    // of the values in the path; -1: it stands in none
	typ  record.Type
}

// source is a place where a value comes from.
type source uint8

// The sources: places that names stand in, and the implicit parameters (protocol notes, section 6).
const (
	fromNowhere source = iota // a block assigns it
	fromName                  // path, then query, then body
	fromHeader
	fromBody
	fromBodyText
	fromBodyJSON
	fromContentType
	fromUser
	fromFetchOffset
	fromFetchSize
	fromRowOffset
	fromRowCount
	fromPageOffset
	fromPageSize
)

var implicit = map[string]source{
	"body": fromBody, "body_text": fromBodyText, "body_json": fromBodyJSON, "content_type": fromContentType, "current_user": fromUser,
	"fetch_offset": fromFetchOffset, "fetch_size": fromFetchSize, "row_offset": fromRowOffset, "row_count": fromRowCount,
	"page_offset": fromPageOffset, "page_size": fromPageSize, "status_code": fromNowhere, "forward_location": fromNowhere,
}

// bind works out where the values of the handler's binds come from. A bind that reads the body whole excludes members of it.
func (h *handler) bind() {
	var inPath []string
	for _, s := range h.segments {
		if s.kind != literal {
			inPath = append(inPath, s.text)
		}
	}
	whole := false
	for _, b := range h.def.SQL.Compiled.Binds {
		x := bind{from: fromName, name: b.Name, at: slices.Index(inPath, b.Name), typ: typeNamed(b.Type)}
		if src, ok := implicit[b.Name]; ok && x.at < 0 {
			x.from = src
			whole = whole || src == fromBody || src == fromBodyText
			h.pager = h.pager || src >= fromFetchOffset
			h.full = h.full || src == fromPageSize || src == fromPageOffset
		}
		if b.Out {
			x.from = fromNowhere // a variable of the block, unless it is declared to come in
		}
		for _, p := range h.def.SQL.Params {
			if p.Bind != b.Name {
				continue
			}
			x.name = p.Name
			switch {
			case p.Access == "OUT":
				x.from = fromNowhere
			case p.Source == "HEADER":
				x.from = fromHeader
			case p.Source == "URI":
				x.from = fromName
				if at := slices.Index(inPath, p.Name); at >= 0 {
					x.at = at
				}
			}
		}
		h.members = h.members || x.from == fromName && x.at < 0
		h.binds = append(h.binds, x)
	}
	if whole {
		h.members = false
	}
}

// bindValues are the values of a call for the handler's binds, in their order. A text that does not fit its bind's type is an Invalid
// that names the parameter.
func (q *request) bindValues(h *handler, path []string, p *page) ([]record.Value, error) {
	if len(h.binds) == 0 {
		return nil, nil
	}
	list := make([]record.Value, len(h.binds))
	var body *members
	for i := range h.binds {
		b := &h.binds[i]
		var err error
		switch b.from {
		case fromName:
			if text, ok := q.named(b, path); ok {
				list[i], err = textFor(b, text)
				break
			}
			if !h.members || len(q.call.Body) == 0 || q.method == "GET" {
				break
			}
			if body == nil {
				if body, err = readMembers(q.call); err != nil {
					return nil, err
				}
			}
			if m := body.find(b.name); m != nil {
				list[i], err = m.value(b)
			}
		case fromHeader:
			list[i], err = textFor(b, q.call.Header.Get(b.name))
		case fromBody, fromBodyText:
			if len(q.call.Body) > 0 {
				list[i] = record.TextValue(string(q.call.Body))
			}
		case fromBodyJSON:
			list[i], err = formAsJSON(q.call)
		case fromContentType:
			list[i] = textOrNull(q.call.Header.Get("Content-Type"))
		case fromUser:
			if !h.def.Public || !isGuest(&q.call.Actor) {
				list[i] = textOrNull(q.call.Actor.Name)
			}
		case fromFetchOffset:
			list[i] = record.IntValue(p.offset)
		case fromFetchSize:
			list[i] = record.IntValue(p.limit + 1) // one more, by which hasMore is known
		case fromRowOffset:
			list[i] = record.IntValue(p.offset + 1)
		case fromRowCount:
			list[i] = record.IntValue(p.offset + p.limit + 1)
		case fromPageOffset:
			list[i] = record.IntValue(p.offset / max(p.limit, 1))
		case fromPageSize:
			list[i] = record.IntValue(p.limit)
		}
		if err != nil {
			return nil, record.AsError(err).At(b.name)
		}
	}
	return list, nil
}

// named is the text of a name in path or query. An optional part of the path that is left out may stand in the query.
func (q *request) named(b *bind, path []string) (string, bool) {
	if b.at >= 0 && path[b.at] != "" {
		return path[b.at], true
	}
	return q.query.get(b.name)
}

// textFor is a text as the value of a bind; the empty text is null, as it is for Oracle.
func textFor(b *bind, text string) (record.Value, error) {
	if b.typ == untyped || b.typ == record.TypeJSON {
		return textOrNull(text), nil
	}
	return record.Parse(b.typ, text)
}

func textOrNull(s string) record.Value {
	if s == "" {
		return record.Value{}
	}
	return record.TextValue(s)
}

// isGuest reports whether an actor is nobody.
func isGuest(a *record.Actor) bool { return a.Key == "" && strings.EqualFold(a.Name, "guest") }
