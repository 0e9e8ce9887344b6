package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"weir/internal/gate"
	"weir/internal/record"
)

var inflaters sync.Pool // of *gzip.Reader

// firstRead is how much is allocated for a body before any of it is seen: a client's promise costs us no memory.
const firstRead = 8 << 10

// body reads the request's body before the gate: bounded in bytes (limits.body) and time (limits.body_time), every byte counted
// against the budget.
func (v *Visit) body(ctx context.Context) ([]byte, error) {
	if v.r.Body == nil || v.r.Body == http.NoBody || v.r.ContentLength == 0 {
		return nil, nil
	}
	limits := &v.s.cfg.Limits
	if v.r.ContentLength > limits.Body {
		return nil, tooLarge(limits.Body)
	}
	zipped, err := v.encoding()
	if err != nil {
		return nil, err
	}
	// What is announced is reserved, waiting if it must; what is not known before grows while it is read.
	hold, err := v.s.o.Gate.Bytes.Reserve(ctx, max(v.r.ContentLength, 0))
	if err != nil {
		return nil, v.refused(err)
	}
	v.hold = hold
	v.control.SetReadDeadline(time.Now().Add(limits.BodyTime))
	defer v.control.SetReadDeadline(time.Time{}) // from here on the connection is only watched for the client's going away
	var from io.Reader = v.r.Body
	counted := max(v.r.ContentLength, 0)
	if zipped {
		v.Gzipped = true
		z, err := inflater(v.r.Body)
		if err != nil {
			return nil, v.unread(err)
		}
		defer inflaters.Put(z)
		from, counted = z, 0
	}
	return v.readAll(from, counted, hold)
}

func (v *Visit) encoding() (zipped bool, err error) {
	switch e := strings.ToLower(strings.TrimSpace(v.r.Header.Get("Content-Encoding"))); e {
	case "", "identity":
		return false, nil
	case "gzip", "x-gzip":
		return true, nil
	default:
		return false, record.Errorf(record.Unsupported, "Content-Encoding", "%.40s cannot be read; gzip can", e)
	}
}

func inflater(r io.Reader) (*gzip.Reader, error) {
	if z, ok := inflaters.Get().(*gzip.Reader); ok {
		return z, z.Reset(r)
	}
	return gzip.NewReader(r)
}

// readAll reads to the end, of which counted bytes are in the hold already.
func (v *Visit) readAll(from io.Reader, counted int64, hold *gate.Hold) ([]byte, error) {
	limit := v.s.cfg.Limits.Body
	// One byte more than announced, so that the end is seen without growing. 0: not announced, or not in plain.
	whole := int64(0)
	if counted > 0 {
		whole = counted + 1
	}
	first := int64(firstRead)
	if whole > 0 {
		first = min(first, whole)
	}
	body := make([]byte, 0, first)
	for {
		switch {
		case len(body) < cap(body):
		case int64(len(body)) < whole:
			// It has begun to come, and the budget holds all of it: grown bit by bit it would take twice the room.
			body = append(make([]byte, 0, whole), body...)
		default:
			body = append(body, 0)[:len(body)]
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if int64(len(body)) > limit {
			return nil, tooLarge(limit)
		}
		if more := int64(len(body)) - counted; more > 0 {
			if err := hold.Grow(more); err != nil {
				return nil, v.refused(err)
			}
			counted += more
		}
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return nil, v.unread(err)
		}
	}
}

func tooLarge(limit int64) error {
	return record.Errorf(record.TooLarge, "", "the body is larger than %d bytes; see limits.body", limit)
}

// unread is why a body could not be read, and lets the connection end: what is left of the body is nobody's request.
func (v *Visit) unread(err error) error {
	v.w.Header().Set("Connection", "close")
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return record.Errorf(record.Timeout, "", "the body did not come within %s; see limits.body_time", v.s.cfg.Limits.BodyTime)
	case v.r.Context().Err() != nil, errors.Is(err, io.ErrUnexpectedEOF) && !v.Gzipped:
		return record.Errorf(record.Canceled, "", "the client went away").Because(err)
	}
	return record.Errorf(record.Invalid, "", "the body cannot be read: %v", err)
}
