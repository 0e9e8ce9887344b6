package now

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

var _ dialect.Batcher = (*Dialect)(nil)

// IsBatch reports whether path is /api/now/batch, with or without a version. Real instances differ in which of them they
// serve; all are served here.
func (d *Dialect) IsBatch(_, path string) bool {
	if !strings.HasSuffix(strings.TrimSuffix(path, "/"), "/batch") {
		return false
	}
	at, ok := parsePath(path)
	return ok && at.api == "batch" && len(at.rest) == 0
}

// Batch runs a batch of the Batch API: an envelope of items, each with a base64 body, of any dialect. The answer is 200
// whatever became of the items, unless the envelope itself cannot be read.
//
// Beyond the vendor's API an item may have "depends_on", an id or an array of ids of other items: it is run after they
// succeeded, and answered 424 if one failed. In its URL and body "${id.path}" then stands for a value of the answer of item
// id, such as "${11.result.sys_id}"; see [dialect.Join]. In a URL such a reference is a dependency by itself. In a body
// it is plain text unless depends_on names the id, since bodies hold what people wrote.
func (d *Dialect) Batch(ctx context.Context, b *dialect.BatchRun, c *dialect.Call, a *wire.Answer) []dialect.ItemRecord {
	env, parts, err := d.runBatch(ctx, b, c)
	if err != nil {
		if b.Public != nil {
			err = b.Public(err)
		}
		d.Fail(c, err, a)
		return nil
	}
	head(a, http.StatusOK, formatJSON)
	a.Body = appendBatch(a.Body, env, parts)
	records := make([]dialect.ItemRecord, len(parts))
	for i := range parts {
		records[i] = parts[i].ItemRecord
	}
	return records
}

func (d *Dialect) runBatch(ctx context.Context, b *dialect.BatchRun, c *dialect.Call) (*envelope, []dialect.Part, error) {
	if methodOf(c) != http.MethodPost {
		return nil, nil, notAllowed()
	}
	if f, err := bodyFormat(c.Header.Get("Content-Type"), c.Body); err != nil || f.xml() {
		return nil, nil, record.Errorf(record.Unsupported, "Content-Type", "a batch is application/json")
	}
	if f, err := negotiate(c.Header.Get("Accept")); err != nil || f.xml() {
		return nil, nil, record.Errorf(record.NotAcceptable, "Accept", "the answer to a batch is application/json; each item has an Accept of its own")
	}
	env, err := readEnvelope(c.Body, d.opt.Batch.MaxItems)
	if err != nil {
		return nil, nil, err
	}
	join := dialect.Join{Config: d.opt.Batch}
	opt := dialect.Options{Ordered: env.ordered}
	if n, err := strconv.Atoi(strings.TrimSpace(c.Header.Get("X-BATCHREQUEST-MAX-OUTPUT-SIZE"))); err == nil && n > 0 {
		opt.MaxOutput = n
	}
	parts, err := join.Run(ctx, b, d, c, env.items, opt)
	return env, parts, err
}

// appendBatch writes the answer, its members in the vendor's order.
func appendBatch(dst []byte, env *envelope, parts []dialect.Part) []byte {
	size := 128
	for i := range parts {
		size += base64.StdEncoding.EncodedLen(len(parts[i].Body)) + 192
		if !env.bare[i] {
			size += 384
		}
	}
	if cap(dst)-len(dst) < size {
		dst = append(make([]byte, 0, len(dst)+size), dst...)
	}
	dst = append(dst, `{"batch_request_id":`...)
	dst = wire.AppendQuote(dst, env.id)
	dst = append(dst, `,"serviced_requests":[`...)
	first := true
	for i := range parts {
		if parts[i].Unserviced {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = appendPart(dst, &parts[i], env.bare[i])
	}
	dst = append(dst, `],"unserviced_requests":[`...)
	first = true
	for i := range parts {
		if !parts[i].Unserviced {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = wire.AppendQuote(dst, parts[i].ID)
	}
	return append(dst, "]}"...)
}

func appendPart(dst []byte, p *dialect.Part, bare bool) []byte {
	dst = append(dst, `{"id":`...)
	dst = wire.AppendQuote(dst, p.ID)
	dst = append(dst, `,"body":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, p.Body)
	dst = append(dst, `","status_code":`...)
	dst = strconv.AppendInt(dst, int64(p.Answer.Status), 10)
	dst = append(dst, `,"status_text":`...)
	dst = wire.AppendQuote(dst, http.StatusText(p.Answer.Status))
	dst = append(dst, `,"headers":[`...)
	if !bare {
		dst = appendPartHeaders(dst, p)
	}
	dst = append(dst, `],"execution_time":`...)
	dst = strconv.AppendInt(dst, int64((p.Time+time.Millisecond/2)/time.Millisecond), 10)
	if p.Fault != "" {
		dst = append(dst, `,"error_message":`...)
		dst = wire.AppendQuote(dst, p.Fault)
	}
	return append(dst, '}')
}

// usualHeaders stand first in an item's answer, in the order and spelling of the vendor's sample.
var usualHeaders = []string{"Pragma", "Expires", "Content-Length", "Content-Type", "Cache-control"}

func appendPartHeaders(dst []byte, p *dialect.Part) []byte {
	for _, name := range usualHeaders {
		value := p.Header.Get(name)
		if name == "Content-Length" {
			value = strconv.Itoa(len(p.Body))
		}
		if value != "" {
			dst = appendPartHeader(dst, name, value)
		}
	}
	for _, f := range p.Header {
		if !isUsualHeader(f.Name) {
			dst = appendPartHeader(dst, f.Name, f.Value)
		}
	}
	return dst[:len(dst)-1] // Content-Length is always there, so a comma is the last
}

func isUsualHeader(name string) bool {
	for _, u := range usualHeaders {
		if strings.EqualFold(u, name) {
			return true
		}
	}
	return false
}

func appendPartHeader(dst []byte, name, value string) []byte {
	dst = append(dst, `{"name":`...)
	dst = wire.AppendQuote(dst, name)
	dst = append(dst, `,"value":`...)
	dst = wire.AppendQuote(dst, value)
	return append(dst, "},"...)
}
