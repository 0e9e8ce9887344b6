package odata

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// envelope is a batch as its body says it, in whichever form.
type envelope struct {
	// items are all operations in the order given, those of changesets included. An ID is the Content-ID, "" for none. The texts
	// and bodies are views of the batch's body.
	items []dialect.Item
	// inner says of each item that its Content-ID stood among the headers of the request, not of the part.
	inner []bool
	parts []envelopePart
	json  bool // the body is JSON

	refers     bool            // some header refers to the ETag of an earlier answer
	conditions map[int]*ifExpr // by item, of a JSON batch
	looks      bool            // some of them looks into the bodies of answers
}

// envelopePart is one part of the outer level: one operation, or a changeset of any number.
type envelopePart struct {
	first, n  int // items
	changeset bool
	name      string // of an atomicity group; "" in multipart
}

// multipartReader reads a multipart body. It goes over the body twice at most, once for each level, and copies nothing of it.
type multipartReader struct {
	env    envelope
	body   []byte
	limits *BatchOptions
	prefer string // of the batch, for the operations that say nothing themselves
	fields []wire.HeaderField
	single bool // inside of a changeset
}

// readMultipart reads a multipart/mixed body (protocol notes, section 5). Lines may end with CRLF or LF alone; parts end where a boundary
// line begins, whatever a Content-Length says; what stands before the first boundary and behind the closing one is nothing. The
// error is an Invalid that tells part and byte when the frame is broken, and a TooLarge when a bound is passed.
func readMultipart(body []byte, boundary string, limits *BatchOptions, prefer string) (*envelope, error) {
	r := &multipartReader{body: body, limits: limits, prefer: prefer}
	n := min(estimate(body, "application/http"), limits.MaxParts)
	r.env.items, r.env.inner = make([]dialect.Item, 0, n), make([]bool, 0, n)
	if err := r.level(body, boundary); err != nil {
		return nil, err
	}
	return &r.env, nil
}

// estimate is about how often text occurs in body, going by its beginning.
func estimate(body []byte, text string) int {
	const sample = 32 << 10
	if len(body) <= sample {
		return bytes.Count(body, []byte(text))
	}
	return (bytes.Count(body[:sample], []byte(text)) + 1) * (len(body)/sample + 1)
}

// level reads the parts between the boundary lines of b.
func (r *multipartReader) level(b []byte, boundary string) error {
	delimiter := []byte("--" + boundary)
	line, ok := nextBoundary(b, delimiter, 0)
	if !ok {
		return r.fault(b, "there is no line --%s", boundary)
	}
	for !line.last {
		from := line.end
		if line, ok = nextBoundary(b, delimiter, from); !ok {
			return r.fault(b[len(b):], "the closing line --%s-- is missing", boundary)
		}
		if err := r.part(b[from:max(from, line.start)]); err != nil {
			return err
		}
	}
	return nil
}

// boundaryLine is one line that separates parts. The line break before it belongs to it.
type boundaryLine struct {
	start, end int
	last       bool // it closes
}

// nextBoundary finds the first boundary line at or behind from. Blanks may follow a boundary, and anything the last one; else the line is text.
func nextBoundary(b, delimiter []byte, from int) (boundaryLine, bool) {
	for {
		k := bytes.Index(b[from:], delimiter)
		if k < 0 {
			return boundaryLine{}, false
		}
		l := boundaryLine{start: from + k}
		from = l.start + len(delimiter)
		if l.start > 0 && b[l.start-1] != '\n' {
			continue
		}
		l.end = from
		if l.last = bytes.HasPrefix(b[l.end:], []byte("--")) && !bytes.HasPrefix(b[l.end:], []byte("---")); l.last {
			// What follows on the same line is epilogue already.
			if end := bytes.IndexByte(b[l.end:], '\n'); end >= 0 {
				l.end += end
			} else {
				l.end = len(b)
			}
		}
		for l.end < len(b) && (b[l.end] == ' ' || b[l.end] == '\t') {
			l.end++
		}
		if l.end < len(b) && b[l.end] == '\r' {
			l.end++
		}
		if l.end < len(b) {
			if b[l.end] != '\n' {
				continue
			}
			l.end++
		}
		if l.start > 0 {
			l.start--
		}
		if l.start > 0 && b[l.start-1] == '\r' {
			l.start--
		}
		return l, true
	}
}

// part reads one part: headers, a blank line, then a request or, on the outer level, a changeset.
func (r *multipartReader) part(b []byte) error {
	if !r.single {
		if len(r.env.parts) >= r.limits.MaxParts {
			return record.Errorf(record.TooLarge, "", "the batch has more than %d parts; see odata.batch.max_parts", r.limits.MaxParts)
		}
		r.env.parts = append(r.env.parts, envelopePart{first: len(r.env.items)})
	}
	start, kind, id := b, "", ""
	for {
		f, rest, ok, err := r.field(b)
		if err != nil {
			return err
		}
		b = rest
		if !ok {
			break
		}
		switch headerOf(f.Name) {
		case contentTypeHeader:
			kind = f.Value
		case contentIDHeader:
			id = f.Value
		case encodingHeader:
			if strings.EqualFold(f.Value, "base64") || strings.EqualFold(f.Value, "quoted-printable") {
				return r.fault(start, "Content-Transfer-Encoding %s cannot be read; binary can", f.Value)
			}
		}
		if len(start)-len(b) > r.limits.MaxHeader {
			return r.longHeader()
		}
	}
	media, boundary := mediaType(kind)
	switch {
	case media == "" || strings.EqualFold(media, "application/http"):
		return r.operation(b, id)
	case !strings.EqualFold(media, "multipart/mixed"):
		return r.fault(start, "Content-Type %.80q is neither application/http nor multipart/mixed", kind)
	case r.single:
		return r.fault(start, "a changeset cannot hold another one")
	case boundary == "":
		return r.fault(start, "the Content-Type of the changeset has no boundary")
	}
	r.single = true
	err := r.level(b, boundary)
	r.single = false
	set := &r.env.parts[len(r.env.parts)-1]
	set.changeset, set.n = true, len(r.env.items)-set.first
	if set.n > 1 {
		// One operation alone needs no group: it succeeds or fails by itself.
		for i := set.first; i < len(r.env.items); i++ {
			r.env.items[i].Group = len(r.env.parts)
		}
	}
	return err
}

// operation reads a request: its line, headers, a blank line and the body. id is the Content-ID of the part.
func (r *multipartReader) operation(b []byte, id string) error {
	if len(r.env.items) >= r.limits.MaxParts {
		return record.Errorf(record.TooLarge, "", "the batch has more than %d operations; see odata.batch.max_parts", r.limits.MaxParts)
	}
	start := b
	line, b := cutLine(b)
	for len(line) == 0 && len(b) > 0 {
		line, b = cutLine(b)
	}
	it := dialect.Item{ID: id}
	var ok bool
	if it.Method, it.URL, ok = requestLine(line); !ok {
		return r.fault(start, "%.80q is no request line", line)
	}
	inner := false
	if cap(r.fields)-len(r.fields) < 32 {
		r.fields = make([]wire.HeaderField, 0, 4096)
	}
	first, prefers, typed := len(r.fields), false, false
	for {
		f, rest, more, err := r.field(b)
		if err != nil {
			return err
		}
		b = rest
		if len(start)-len(b) > r.limits.MaxHeader {
			return r.longHeader()
		}
		if !more {
			break
		}
		switch headerOf(f.Name) {
		case contentIDHeader:
			if it.ID == "" {
				it.ID, inner = f.Value, true
			}
			continue
		case lengthHeader:
			continue
		case contentTypeHeader:
			typed = true
		case preferHeader:
			prefers = true
		case conditionHeader:
			if _, ok := etagReference(f.Name, f.Value); ok {
				r.env.refers = true
			}
		}
		if dialect.OpenHeader(f.Name) {
			r.fields = append(r.fields, f)
		}
	}
	for k := range len(it.ID) {
		if it.ID[k] < ' ' || it.ID[k] == 0x7f {
			return r.fault(start, "the Content-ID %.80q has control characters", it.ID)
		}
	}
	var guess string
	it.Body, guess = trimBody(b)
	if !typed && guess != "" {
		r.fields = append(r.fields, wire.HeaderField{Name: "Content-Type", Value: guess})
	}
	if !prefers && r.prefer != "" {
		r.fields = append(r.fields, wire.HeaderField{Name: "Prefer", Value: r.prefer})
	}
	it.Header = r.fields[first:len(r.fields):len(r.fields)]
	if n := len(r.env.items); n > 0 && !r.env.refers && slices.Equal(it.Header, r.env.items[n-1].Header) {
		// Operations of one client have the same headers, so one list will do.
		it.Header, r.fields = r.env.items[n-1].Header, r.fields[:first]
	}
	if r.single && (it.Method == "GET" || it.Method == "HEAD") {
		it.Err = record.Errorf(record.Invalid, "", "a changeset holds no %s", it.Method)
	}
	if !r.single {
		r.env.parts[len(r.env.parts)-1].n = 1
	}
	r.env.items, r.env.inner = append(r.env.items, it), append(r.env.inner, inner)
	return nil
}

// header is a header that reading a batch takes note of.
type header uint8

const (
	otherHeader header = iota
	contentTypeHeader
	contentIDHeader
	encodingHeader
	lengthHeader
	preferHeader
	conditionHeader // If-Match, If-None-Match
)

// headerOf finds out which header a name is, by its length first: a body of 10,000 parts has 100,000 of them.
func headerOf(name string) header {
	is := func(n string, h header) header {
		if strings.EqualFold(name, n) {
			return h
		}
		return otherHeader
	}
	switch len(name) {
	case len("Prefer"):
		return is("Prefer", preferHeader)
	case len("If-Match"):
		return is("If-Match", conditionHeader)
	case len("Content-ID"):
		return is("Content-ID", contentIDHeader)
	case len("Content-Type"):
		return is("Content-Type", contentTypeHeader)
	case len("If-None-Match"):
		return is("If-None-Match", conditionHeader)
	case len("Content-Length"):
		return is("Content-Length", lengthHeader)
	case len("Content-Transfer-Encoding"):
		return is("Content-Transfer-Encoding", encodingHeader)
	}
	return otherHeader
}

// requestLine splits "POST ProductSet HTTP/1.1". The URL may hold blanks, as some clients do not escape them, the version may be
// missing, and the method may be in small letters.
func requestLine(line []byte) (method, target string, ok bool) {
	line = bytes.TrimRight(line, " \t")
	end := bytes.IndexByte(line, ' ')
	if end <= 0 {
		return "", "", false
	}
	for _, c := range line[:end] {
		if c|0x20 < 'a' || c|0x20 > 'z' {
			return "", "", false
		}
	}
	method = methodName(line[:end])
	line = bytes.TrimLeft(line[end:], " \t")
	if last := bytes.LastIndexByte(line, ' '); last >= 0 && isVersion(line[last+1:]) {
		line = bytes.TrimRight(line[:last], " \t")
	}
	if len(line) == 0 || isVersion(line) {
		return "", "", false
	}
	for _, c := range line {
		if c < ' ' || c == 0x7f {
			return "", "", false
		}
	}
	return method, view(line), true
}

func isVersion(b []byte) bool { return len(b) >= 5 && bytes.EqualFold(b[:5], []byte("http/")) }

// methodName is a method in capitals. The usual ones are constants, so that none of them holds a body in memory.
func methodName(b []byte) string {
	for _, m := range []string{"GET", "POST", "PATCH", "MERGE", "PUT", "DELETE", "HEAD"} {
		if len(m) == len(b) && strings.EqualFold(m, view(b)) {
			return m
		}
	}
	return strings.ToUpper(string(b))
}

// trimBody is a body without blank lines around it where it is JSON or XML, and the type that it looks like: some clients put a
// line break too many before or behind it, and some do not say what it is. Other bodies are kept to the byte, unless there is nothing
// but line breaks.
func trimBody(b []byte) (body []byte, kind string) {
	trimmed := bytes.TrimSpace(b)
	if len(trimmed) == 0 {
		return nil, ""
	}
	switch trimmed[0] {
	case '{', '[':
		return trimmed, "application/json"
	case '<':
		return trimmed, "application/xml"
	}
	return b, ""
}

// field reads one header field, which may go on in lines that begin with a blank. At the blank line that ends the headers, or the end
// of b, ok is false.
func (r *multipartReader) field(b []byte) (f wire.HeaderField, rest []byte, ok bool, err error) {
	line, rest := cutLine(b)
	if len(line) == 0 {
		return f, rest, false, nil
	}
	colon := 0
	for colon < len(line) && line[colon] != ':' && line[colon] > ' ' {
		colon++
	}
	end := colon
	for colon < len(line) && (line[colon] == ' ' || line[colon] == '\t') {
		colon++
	}
	if colon == len(line) && end == 0 {
		return f, rest, false, nil // nothing but blanks
	}
	if end == 0 || colon == len(line) || line[colon] != ':' {
		return f, rest, false, r.fault(b, "%.80q is no header line", line)
	}
	value := line[colon+1:]
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	if n := len(value); n > 0 && (value[0] <= ' ' || value[n-1] <= ' ') {
		value = bytes.TrimSpace(value)
	}
	if len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
		value, rest = unfold(value, rest)
	}
	return wire.HeaderField{Name: view(line[:end]), Value: view(value)}, rest, true, nil
}

// unfold is a value with the lines of b that go on with it, and what follows those.
func unfold(value, b []byte) (whole, rest []byte) {
	whole = bytes.Clone(value)
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		line, behind := cutLine(b)
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if len(whole) > 0 {
			whole = append(whole, ' ')
		}
		whole, b = append(whole, line...), behind
	}
	return whole, b
}

// cutLine is the first line of b without its end, and what follows.
func cutLine(b []byte) (line, rest []byte) {
	k := bytes.IndexByte(b, '\n')
	if k < 0 {
		line, rest = b, b[len(b):]
	} else {
		line, rest = b[:k], b[k+1:]
	}
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, rest
}

// view is b as a string without a copy: bodies do not change while their batch lives.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// fault is the error of a broken frame, at the place where at begins.
func (r *multipartReader) fault(at []byte, format string, args ...any) error {
	where := "the batch"
	if n := len(r.env.parts); n > 0 {
		where = "part " + strconv.Itoa(n)
		if r.single {
			where += "." + strconv.Itoa(len(r.env.items)-r.env.parts[n-1].first+1)
		}
	}
	e := record.Errorf(record.Invalid, "", format, args...)
	e.Msg = where + ", byte " + strconv.Itoa(cap(r.body)-cap(at)) + ": " + e.Msg
	return e.Because(dialect.ErrBody)
}

func (r *multipartReader) longHeader() error {
	return record.Errorf(record.TooLarge, "", "the headers of part %d have more than %d bytes; see odata.batch.max_header", len(r.env.parts), r.limits.MaxHeader)
}

// mediaType is the type of a Content-Type without parameters, and its boundary. It takes boundaries that need quotes and have none.
func mediaType(s string) (media, boundary string) {
	media, s, _ = strings.Cut(s, ";")
	for s != "" {
		name, rest, _ := strings.Cut(s, "=")
		rest = strings.TrimLeft(rest, " \t")
		var value string
		if strings.HasPrefix(rest, `"`) {
			value, s = quoted(rest)
			_, s, _ = strings.Cut(s, ";")
		} else {
			value, s, _ = strings.Cut(rest, ";")
			value = strings.TrimRight(value, " \t")
		}
		if strings.EqualFold(strings.TrimSpace(name), "boundary") {
			boundary = value
		}
	}
	return strings.TrimSpace(media), boundary
}

// quoted reads a quoted string and tells what follows it.
func quoted(s string) (value, rest string) {
	end := 1
	for end < len(s) && s[end] != '"' {
		if s[end] == '\\' && end+1 < len(s) {
			end++
		}
		end++
	}
	if end >= len(s) {
		return "", ""
	}
	value = s[1:end]
	if strings.IndexByte(value, '\\') >= 0 {
		var b strings.Builder
		for k := 0; k < len(value); k++ {
			if value[k] == '\\' && k+1 < len(value) {
				k++
			}
			b.WriteByte(value[k])
		}
		value = b.String()
	}
	return value, s[end+1:]
}
