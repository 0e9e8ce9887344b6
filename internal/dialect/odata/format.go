package odata

import (
	"slices"
	"strings"

	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// format writes what a version answers in one format: V2 JSON, Atom, V4 JSON. The methods append to the body and set the
// Content-Type; status and other headers are the caller's.
type format interface {
	// feed writes a collection; total is what $inlinecount or $count=true asks for, -1: not asked. next, called after the last
	// row, is the address of the following page or "". Rows that end by an error end the feed: the caller looks at them.
	feed(q *request, a *wire.Answer, n *node, total int64, next func() string)
	// entry writes row i of n.
	entry(q *request, a *wire.Answer, n *node, i int)
	// property writes a property of one entity; a complex one has the values of its parts.
	property(q *request, a *wire.Answer, of *edm.Set, p *edm.Property, values []record.Value)
	// links writes the addresses of the entities of n; one alone if single. next is as in feed.
	links(q *request, a *wire.Answer, n *node, single bool, total int64, next func() string)
	// result writes the values that a function import returned, entities aside. A complex value has one for each member; several
	// values stand one after another. No values are null.
	result(q *request, a *wire.Answer, f *edm.Function, values []record.Value)
	// service writes the service document.
	service(q *request, a *wire.Answer)
	// xml reports whether errors are written as XML: beside Atom.
	xml() bool
}

// formatText is the Content-Type of $count and $value.
const contentText = "text/plain;charset=utf-8"

// negotiate chooses the format of the answer: $format, else Accept. The error is a NotAcceptable. What has one format only (metadata,
// numbers, raw values, batches) is answered in it whatever the call accepts.
func (q *request) negotiate() (format, error) {
	param, _ := q.query.get("$format")
	f, err := chooseFormat(q.ver, param, q.call.Header.Get("Accept"))
	if err == nil {
		return q.negotiated(f), nil
	}
	last := q.rest[strings.LastIndexByte(q.rest, '/')+1:]
	switch last {
	case "$metadata", "$count", "$value", "$batch":
		return q.negotiated(defaultFormat(q.ver)), nil
	}
	return nil, err
}

// negotiated is f with what the versions of the call say: names of V4 without "odata." are for those who ask for 4.01.
func (q *request) negotiated(f format) format {
	if j, ok := f.(*json4); ok && strings.TrimSpace(q.call.Header.Get("OData-MaxVersion")) == "4.01" {
		return jsonOf4(j.meta, j.texts, true)
	}
	return f
}

// defaultFormat is the format of a call that says nothing: Atom in V2, JSON in V4 (protocol notes, section 1).
func defaultFormat(ver version) format {
	if ver == v4 {
		return jsonOf4(minimal, false, false)
	}
	return atom2{}
}

// chooseFormat is the format that $format, else Accept asks for. Of the ranges in Accept the one with the highest q decides, and
// among equals the more specific one, then the first. The error is a NotAcceptable and names what cannot be written.
func chooseFormat(ver version, param, accept string) (format, error) {
	if param != "" {
		switch strings.ToLower(param) {
		case "json":
			if ver == v4 {
				return jsonOf4(minimal, false, false), nil
			}
			return json2{}, nil
		case "atom", "xml":
			if ver == v2 {
				return atom2{}, nil
			}
		}
		if f := formatOf(ver, param); f != nil && strings.IndexByte(param, '/') > 0 {
			return f, nil
		}
		return nil, record.Errorf(record.NotAcceptable, "$format", "the format %.60q cannot be written here", param)
	}
	if strings.TrimSpace(accept) == "" {
		return defaultFormat(ver), nil
	}
	var best format
	bestQ, bestRank := 0, 0
	for rest, more := accept, true; more; {
		var item string
		item, rest, more = cutQuoted(rest, ',')
		name, params, _ := cutQuoted(item, ';')
		f := formatOf(ver, item)
		if f == nil {
			continue
		}
		weight := quality(params)
		rank := 3
		switch name = strings.TrimSpace(name); {
		case name == "*/*":
			rank = 1
		case strings.HasSuffix(name, "/*"):
			rank = 2
		}
		if weight > bestQ || weight == bestQ && weight > 0 && rank > bestRank {
			best, bestQ, bestRank = f, weight, rank
		}
	}
	if best == nil {
		return nil, record.Errorf(record.NotAcceptable, "Accept", "none of %.200q can be written here", accept)
	}
	return best, nil
}

// formatOf is the format of a media range with its parameters, nil if it is none of the version's.
func formatOf(ver version, item string) format {
	name, params, _ := cutQuoted(item, ';')
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "*/*" || name == "application/*" {
		return defaultFormat(ver)
	}
	if ver == v2 {
		switch name {
		case "application/json":
			return json2{}
		case "application/atom+xml", "application/atomsvc+xml", "application/xml", "text/xml":
			return atom2{}
		}
		return nil
	}
	if name != "application/json" {
		return nil
	}
	meta, texts := minimal, false
	for more := params != ""; more; {
		var p string
		p, params, more = cutQuoted(params, ';')
		name, value, _ := strings.Cut(p, "=")
		value = strings.ToLower(strings.Trim(strings.TrimSpace(value), `"`))
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "odata.metadata", "metadata":
			switch value {
			case "full":
				meta = full
			case "none":
				meta = none
			case "minimal":
			default:
				return nil
			}
		case "ieee754compatible":
			texts = value == "true"
		}
	}
	return jsonOf4(meta, texts, false)
}

// cutQuoted is strings.Cut that passes over quoted text.
func cutQuoted(s string, sep byte) (before, after string, found bool) {
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// quality is the q of a media range in thousandths; what cannot be read is 1.
func quality(params string) int {
	for more := params != ""; more; {
		var p string
		p, params, more = cutQuoted(params, ';')
		name, value, ok := strings.Cut(p, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		value = strings.TrimSpace(value)
		n, unit := 0, 1000
		for i := range len(value) {
			switch c := value[i]; {
			case c == '.' && unit == 1000:
				unit = 100
			case c >= '0' && c <= '9' && unit > 0:
				n += int(c-'0') * unit
				if unit < 1000 {
					unit /= 10
				}
			default:
				return 1000
			}
		}
		return min(n, 1000)
	}
	return 1000
}

// head sets the status and the headers that every answer of the version has.
func (q *request) head(a *wire.Answer, status int) {
	a.Status = status
	if a.Header == nil {
		a.Header = make(wire.Header, 0, 4)
	}
	if q.ver == v2 {
		a.Header.Add("DataServiceVersion", "2.0")
		return
	}
	a.Header.Add("OData-Version", q.version4())
}

// version4 is the version that an answer of V4 names: 4.0 exactly, which clients insist on, unless the call asks for 4.01.
func (q *request) version4() string {
	if j, ok := q.format.(*json4); ok && j.short {
		return "4.01"
	}
	return "4.0"
}

// address is the absolute URL of the service root with a slash at its end.
func (q *request) address() string {
	if q.absolute == "" {
		q.absolute = q.call.Base + q.root + "/"
	}
	return q.absolute
}

// jsonAddress is address as it stands in a JSON text.
func (q *request) jsonAddress() string {
	s := q.address()
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '"' || c == '\\' {
			quoted := wire.AppendQuote(nil, s)
			return string(quoted[1 : len(quoted)-1])
		}
	}
	return s
}

// sample is how many rows are written before the size of all is estimated.
const sample = 8

// flushRead is the size beyond which an answer whose rows are in memory is sent in pieces. It is larger than that of a cursor's: an answer that is
// whole when it is sent says its length and releases its slot first.
const flushRead = 1 << 20

// wrote is told that row i of n is written, the first of them at a length of start. It makes room for the rest once it can be
// estimated, and flushes an answer that has become large; false if there is no use in going on.
func (q *request) wrote(a *wire.Answer, n *node, start, i int) bool {
	most := wire.FlushAt
	if !n.rows.Streaming() {
		most = flushRead
		if i+1 == sample {
			size := (len(a.Body) - start) / sample * (n.rows.Len() - sample) * 9 / 8
			if a.Flush != nil {
				size = min(size, flushRead)
			}
			a.Body = slices.Grow(a.Body, size)
		}
	}
	if a.Flush == nil || len(a.Body) < most {
		return true
	}
	q.sent = true
	if err := a.Flush(a); err != nil {
		a.Err = err
		return false
	}
	return true
}

// replyEntry answers with row i of n: status, headers with the ETag, and the entity. n is in memory.
func (q *request) replyEntry(a *wire.Answer, status int, n *node, i int) {
	q.head(a, status)
	q.etagHeader(a, n.shape, n.rows.At(i))
	q.format.entry(q, a, n, i)
}

// etagHeader adds the ETag of a row, if its type has one.
func (q *request) etagHeader(a *wire.Answer, s *shape, row []record.Value) {
	if s.etag < 0 {
		return
	}
	if tag := etagOf(q.ver, s.set.Type.ETag, row[s.etag]); tag != "" {
		a.Header.Add("ETag", tag)
	}
}
