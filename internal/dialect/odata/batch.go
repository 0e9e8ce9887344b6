package odata

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

var _ dialect.Batcher = (*Dialect)(nil)

// IsBatch reports whether the call is a POST of $batch.
func (d *Dialect) IsBatch(method, path string) bool {
	if method != "POST" || !strings.HasSuffix(strings.TrimSuffix(path, "/"), "/$batch") {
		return false
	}
	for _, p := range Prefixes {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

// Batch runs a $batch, in V2 multipart/mixed, in V4 that or application/json (protocol notes, sections 5 and 9; OData 4.01 part 1,
// 11.7, and JSON format, 19).
//
// Operations take effect in the order given. A changeset, or an atomicity group, is a group of ops: all of it commits or none, and it is
// answered after the commit; if it fails, a multipart answer holds the one answer of the operation whose fault it was in its place. What is alike
// shares statements, in a changeset and across them.
//
// V2 goes on after a failure. V4 stops, unless Prefer: continue-on-error asks it not to; a JSON batch goes on unless
// that is false. So a batch without changesets stores each of its rows or says why not, in V2 by itself and in V4 with continue-on-error. A preference
// return=minimal or return=representation of the batch holds for all operations that have no Prefer of their own.
func (d *Dialect) Batch(ctx context.Context, run *dialect.BatchRun, c *dialect.Call, a *wire.Answer) []dialect.ItemRecord {
	b := &batch{d: d, run: run, call: c, answer: a}
	records, err := b.do(ctx)
	if err != nil {
		if run.Public != nil {
			err = run.Public(err)
		}
		d.Fail(c, err, a)
	}
	return records
}

// batch is one $batch under way.
type batch struct {
	d      *Dialect
	run    *dialect.BatchRun
	call   *dialect.Call
	answer *wire.Answer
	svc    request // what all operations on the batch's own service have in common
	env    *envelope
	links  links
	refs   func(id string) (reference, bool)
	spare  []request // for operations to come
	last   struct{ given, full string }

	multipart *multipartWriter // one of the two
	json      *jsonWriter
	part      int // of the envelope, being answered
	answered  int // items
}

func (b *batch) do(ctx context.Context) ([]dialect.ItemRecord, error) {
	if err := b.open(); err != nil {
		return nil, err
	}
	continues, said := preferred(b.call.Header, "continue-on-error")
	if b.svc.ver == v2 || b.env.json && !said {
		continues = "true"
	} else if !said {
		continues = "false"
	}
	for i := range b.env.items {
		it := &b.env.items[i]
		it.URL = b.address(it.URL)
	}
	b.link()
	b.refs = b.links.find
	b.beginAnswer()
	limits := &b.d.opt.Batch
	join := dialect.Join{Name: "odata.batch", Config: dialect.BatchConfig{
		MaxItems: limits.MaxParts, MaxInput: limits.MaxBody, MaxOutput: math.MaxInt, MaxTotal: limits.MaxAnswer, Time: limits.Time, Parallel: limits.Parallel,
	}}
	stop := continues == "false"
	parts, err := join.Run(ctx, b.run, b.d, b.call, b.env.items, dialect.Options{
		Ordered: !b.env.json || stop, StopOnError: stop, Decode: b.decode, Answered: b.write,
	})
	if err != nil {
		return nil, err
	}
	b.endAnswer()
	if said && !stop {
		b.answer.Header.Set("Preference-Applied", "continue-on-error")
	}
	return b.records(parts), nil
}

// open reads the batch.
func (b *batch) open() error {
	c := b.call
	b.svc = request{d: b.d, snap: b.run.Snapshot, call: c, method: "POST"}
	if err := b.svc.locate(); err != nil {
		return err
	}
	b.svc.address() // once for all
	if strings.TrimSuffix(b.svc.rest, "/") != "$batch" && strings.TrimSuffix(b.svc.rest, "/") != "%24batch" {
		return noPath(b.svc.rest)
	}
	if methodOf(c) != "POST" {
		return record.Errorf(record.Invalid, "X-HTTP-Method", "$batch takes POST alone")
	}
	if err := b.svc.checkVersion(); err != nil {
		return err
	}
	limits := &b.d.opt.Batch
	if len(c.Body) > limits.MaxBody {
		return record.Errorf(record.TooLarge, "", "the batch has %d bytes, more than %d; see odata.batch.max_body", len(c.Body), limits.MaxBody)
	}
	prefer := ""
	if v, ok := preferred(c.Header, "return"); ok {
		prefer = "return=" + v
	}
	given := c.Header.Get("Content-Type")
	media, boundary := mediaType(given)
	var err error
	switch {
	case strings.EqualFold(media, "multipart/mixed") && boundary != "":
		b.env, err = readMultipart(c.Body, boundary, limits, prefer)
	case strings.EqualFold(media, "multipart/mixed"):
		err = record.Errorf(record.Invalid, "Content-Type", "multipart/mixed needs a boundary")
	case strings.EqualFold(media, "application/json") && b.svc.ver == v4:
		b.env, err = readJSONBatch(c.Body, limits, prefer)
	case b.svc.ver == v4:
		err = record.Errorf(record.Invalid, "Content-Type", "a batch is multipart/mixed or application/json, not %.80q", given)
	default:
		err = record.Errorf(record.Invalid, "Content-Type", "a batch is multipart/mixed, not %.80q", given)
	}
	return err
}

// address is the URL of an operation as an absolute path or URL. One that is relative is below the service root, and so is an absolute
// path that means nothing from the server's root (protocol notes, section 5, rule 6).
func (b *batch) address(s string) string {
	if s == b.last.given {
		return b.last.full
	}
	full := s
	path, _, _ := strings.Cut(s, "?")
	switch {
	case strings.HasPrefix(s, "/"):
		if b.run.Mux.Find(path) == nil {
			full = b.svc.root + s
		}
	case !isURL(path):
		full = b.svc.root + "/" + strings.TrimPrefix(s, "./")
	}
	if strings.IndexByte(full, '#') >= 0 {
		full = strings.ReplaceAll(full, "#", "%23") // no fragment: a client that did not escape it
	}
	b.last.given, b.last.full = s, full
	return full
}

func isURL(path string) bool {
	return len(path) > 8 && (strings.EqualFold(path[:7], "http://") || strings.EqualFold(path[:8], "https://"))
}

// decode makes the exchange of one operation, see [dialect.Options].
func (b *batch) decode(i int, to dialect.Dialect, c *dialect.Call, before int, parts []dialect.Part) (*dialect.Exchange, error) {
	if err := b.allowed(i, parts); err != nil {
		return nil, err
	}
	if to != dialect.Dialect(b.d) {
		return nil, nil
	}
	q, err := b.begin(c)
	if err != nil {
		return nil, err
	}
	q.first = before
	if b.env.items[i].Group != 0 {
		q.group = 1
	}
	b.links.at = i
	q.refs = b.refs
	if b.env.refers {
		if err := b.etags(i, c, parts); err != nil {
			return nil, err
		}
	}
	e, err := q.decode()
	if err != nil {
		return nil, err
	}
	if q.group != 0 {
		if err := groupable(q, e); err != nil {
			return nil, err
		}
	}
	if b.links.used() {
		b.links.note(i, q, e)
	}
	return e, nil
}

// groupable reports why an exchange cannot be part of a changeset: it does something that cannot be undone with the rest, or only
// when the rest is done.
func groupable(q *request, e *dialect.Exchange) error {
	writes := q.method == "GET"
	for k := range e.Ops {
		if e.Ops[k].Verb == record.Invoke {
			return record.Errorf(record.Invalid, "", "%s runs a script, which cannot be undone with a changeset: call it outside, or in one of its own", lastSegment(q.rest))
		}
		writes = writes || e.Ops[k].Verb.Writes()
	}
	if e.Next != nil && !writes {
		return record.Errorf(record.Invalid, "", "%s of %s looks for what it changes first, which it cannot do within a changeset of several requests", q.method, lastSegment(q.rest))
	}
	return nil
}

// begin is what begin of the dialect does, where the service is known.
func (b *batch) begin(c *dialect.Call) (*request, error) {
	rest, ok := strings.CutPrefix(c.RawPath, b.svc.root)
	if !ok || rest != "" && rest[0] != '/' {
		return b.d.begin(b.run.Snapshot, c)
	}
	if len(b.spare) == 0 {
		b.spare = make([]request, min(len(b.env.items)-b.answered, 64)+1)
	}
	q := &b.spare[0]
	b.spare = b.spare[1:]
	*q = b.svc
	q.call, q.method, q.rest = c, methodOf(c), strings.TrimPrefix(rest, "/")
	return q, q.readQuery()
}

// beginAnswer chooses the form of the answer: that of the request, or the other if Accept names it first. A multipart request is answered in
// JSON only if its client says that it speaks 4.01, which JSON batches belong to: @odata/client accepts JSON of every answer and reads
// multipart. No boundary begins with another one, because many clients cut the answer at "--" and the boundary, wherever that stands.
func (b *batch) beginAnswer() {
	asJSON := b.env.json
	if b.svc.ver == v4 && (asJSON || strings.HasPrefix(b.call.Header.Get("OData-MaxVersion"), "4.01")) {
		accept := strings.ToLower(b.call.Header.Get("Accept"))
		json, multi := strings.Index(accept, "application/json"), strings.Index(accept, "multipart/mixed")
		if json >= 0 || multi >= 0 {
			asJSON = json >= 0 && (multi < 0 || json < multi)
		}
	}
	a := b.answer
	a.Status = 200
	if b.svc.ver == v2 {
		a.Status = 202
		a.Header.Set("DataServiceVersion", "2.0")
	} else {
		a.Header.Set("OData-Version", "4.0")
	}
	if asJSON {
		b.json = &jsonWriter{dst: append(a.Body, `{"responses":[`...)}
		a.Header.Set("Content-Type", "application/json")
		return
	}
	boundary := b.d.opt.Batch.Boundary()
	b.multipart = &multipartWriter{dst: a.Body, outer: boundary, inner: "c" + boundary}
	a.Header.Set("Content-Type", b.multipart.contentType())
}

// write puts the answer of item i behind those of the items before it.
func (b *batch) write(i int, p *dialect.Part) {
	b.room(i, p)
	b.answered = i + 1
	if b.env.items[i].Method == "HEAD" {
		p.Body = nil
	}
	b.links.keep(i, p)
	b.empty()
	part := &b.env.parts[b.part]
	last := i == part.first+part.n-1
	if b.json != nil {
		b.json.part(&p.Answer, b.env.items[i].ID, b.groupName(part))
	} else {
		id, inner := b.env.items[i].ID, b.env.inner[i]
		failed := p.Undone || part.n == 1 && p.Answer.Status >= 400
		switch {
		case !part.changeset || failed && (p.Guilty || part.n == 1):
			b.multipart.part(&p.Answer, id, inner)
		case !failed:
			if i == part.first {
				b.multipart.beginChangeset()
			}
			b.multipart.part(&p.Answer, id, inner)
			if last {
				b.multipart.endChangeset()
			}
		}
	}
	if last {
		b.part++
	}
	if !b.env.refers {
		p.Header = nil // nobody asks for its ETag
	}
}

// empty answers changesets without operations.
func (b *batch) empty() {
	for b.part < len(b.env.parts) && b.env.parts[b.part].n == 0 {
		if b.multipart != nil {
			b.multipart.beginChangeset()
			b.multipart.endChangeset()
		}
		b.part++
	}
}

// room makes place for all answers when the first is known, as they are mostly alike: growing bit by bit would copy them over and over.
func (b *batch) room(i int, p *dialect.Part) {
	n := len(b.env.items)
	if i != 0 || n < 2 {
		return
	}
	size := min(n*(len(p.Body)+400), 4*len(b.call.Body)+1<<20)
	if b.json != nil {
		b.json.dst = slices.Grow(b.json.dst, size)
	} else {
		b.multipart.dst = slices.Grow(b.multipart.dst, size)
	}
}

// groupName is what the answer calls a changeset, "" for what is none.
func (b *batch) groupName(p *envelopePart) string {
	if p.changeset && p.name == "" {
		return "g" + strconv.Itoa(b.part+1)
	}
	return p.name
}

// endAnswer closes the answer. What comes behind the failure at which a batch stops is not in it.
func (b *batch) endAnswer() {
	if b.answered == len(b.env.items) {
		b.empty()
	}
	if b.json != nil {
		b.answer.Body = append(b.json.dst, "]}"...)
	} else {
		b.multipart.end()
		b.answer.Body = b.multipart.dst
	}
}

// records are what the transaction log learns of the operations; one without a Content-ID goes by its place, #2 or #2.1. They live
// longer than the body that their texts are views of.
func (b *batch) records(parts []dialect.Part) []dialect.ItemRecord {
	list := make([]dialect.ItemRecord, len(parts))
	size := 0
	for i := range parts {
		size += len(parts[i].ID)
	}
	ids := make([]byte, 0, size) // all in one piece
	for i := range parts {
		ids = append(ids, parts[i].ID...)
	}
	rest := view(ids)
	url, kept := "", ""
	n := 0
	for i := range parts {
		for n < len(b.env.parts)-1 && i >= b.env.parts[n].first+b.env.parts[n].n {
			n++
		}
		list[i] = parts[i].ItemRecord
		r := &list[i]
		if k := len(r.ID); k > 0 {
			r.ID, rest = rest[:k], rest[k:]
		} else if r.ID = "#" + strconv.Itoa(n+1); b.env.parts[n].changeset {
			r.ID += "." + strconv.Itoa(i-b.env.parts[n].first+1)
		}
		if r.URL != url {
			url, kept = r.URL, strings.Clone(r.URL)
		}
		r.URL = kept
	}
	return list
}

// preferred is the value of a preference of a call, with or without the prefix odata.; one without a value is "true".
func preferred(h wire.Header, name string) (value string, ok bool) {
	for i := range h {
		if !strings.EqualFold(h[i].Name, "Prefer") {
			continue
		}
		for _, n := range []string{name, "odata." + name} {
			switch v, ok := preference(h[i].Value, n); {
			case ok && v == "":
				return "true", true
			case ok:
				return strings.ToLower(v), true
			}
		}
	}
	return "", false
}
