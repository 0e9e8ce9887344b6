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

	"weir/internal/dialect"
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
	// What is announced is reserved, waiting if it must; what is not known before grows while it is read. Of a compressed body no
	// more than a buffer is held before it is inflated, so its length says nothing.
	known := v.r.ContentLength
	if zipped || known < 0 {
		known = 0
	}
	reserve := known
	if known == 0 {
		reserve = firstRead
	}
	hold, err := v.s.o.Gate.Bytes.Reserve(ctx, reserve)
	if err != nil {
		return nil, v.refused(err)
	}
	v.hold = hold
	v.control.SetReadDeadline(time.Now().Add(limits.BodyTime))
	defer v.control.SetReadDeadline(time.Time{}) // from here on the connection is only watched for the client's going away
	var from io.Reader = v.r.Body
	if zipped {
		v.Gzipped = true
		z, err := inflater(v.r.Body)
		if err != nil {
			return nil, v.unread(err)
		}
		defer inflaters.Put(z)
		from = z
	}
	if known > 0 {
		return v.readKnown(from, known)
	}
	return v.readUnknown(from)
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

// readKnown reads a body of n bytes, which are in the hold.
func (v *Visit) readKnown(from io.Reader, n int64) ([]byte, error) {
	body := make([]byte, min(n, firstRead))
	read, err := fill(from, body)
	if err == nil && n > firstRead {
		// It has begun to come, and the budget holds all of it: grown bit by bit it would take twice the room.
		whole := make([]byte, n)
		copy(whole, body)
		body = whole
		var more int
		more, err = fill(from, body[read:])
		read += more
	}
	if err != nil && err != io.EOF {
		return nil, v.unread(err)
	}
	return body[:read], nil
}

// page is a piece of a body while its length is unknown. Pages are used again, so that reading leaves no garbage behind: a slice
// that doubles would leave as much as it holds, and need three times its room while it grows.
type page [64 << 10]byte

var pages = sync.Pool{New: func() any { return new(page) }}

// readUnknown reads to the end, however far that is: into pages, and from them into one piece when its length is known. All
// of it counts against the budget before it is allocated.
func (v *Visit) readUnknown(from io.Reader) ([]byte, error) {
	limit := v.s.cfg.Limits.Body
	first := make([]byte, firstRead)
	n, err := fill(from, first)
	size := int64(n)
	var read []*page
	defer func() {
		for _, p := range read {
			pages.Put(p)
		}
	}()
	for err == nil && size <= limit {
		if err := v.hold.Grow(int64(len(page{}))); err != nil {
			return nil, v.refused(err)
		}
		p := pages.Get().(*page)
		read = append(read, p)
		n, err = fill(from, p[:])
		size += int64(n)
	}
	switch {
	case size > limit:
		return nil, tooLarge(limit)
	case err != io.EOF:
		return nil, v.unread(err)
	case len(read) == 0:
		return first[:size], nil
	}
	held := v.hold.Size()
	if err := v.hold.Grow(size); err != nil {
		return nil, v.refused(err)
	}
	body := append(make([]byte, 0, size), first...)
	for _, p := range read {
		body = append(body, p[:min(int64(len(p)), size-int64(len(body)))]...)
	}
	v.hold.Shrink(held)
	return body, nil
}

// fill reads until b is full or the reader has an error, which is returned as it is: the end of what is read is io.EOF, a reader
// that breaks off is not.
func fill(from io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var more int
		more, err = from.Read(b[n:])
		n += more
	}
	return n, err
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
	return record.Errorf(record.Invalid, "", "the body cannot be read: %v", err).Because(dialect.ErrBody)
}
