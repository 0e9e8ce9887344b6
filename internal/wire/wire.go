// Package wire is bytes: headers, answers, JSON and XML as they stand on the connection. It knows no protocol.
package wire

import (
	"strings"
	"time"
)

// Header is an ordered list of header fields. Names are compared without regard to case. The zero Header is empty.
type Header []HeaderField

// HeaderField is one header field.
type HeaderField struct{ Name, Value string }

// Get is the first value of a field, or "".
func (h Header) Get(name string) string {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			return h[i].Value
		}
	}
	return ""
}

// Has reports whether the field is there.
func (h Header) Has(name string) bool {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			return true
		}
	}
	return false
}

// Set gives the field one value, replacing others.
func (h *Header) Set(name, value string) {
	h.Del(name)
	*h = append(*h, HeaderField{name, value})
}

// Add appends a field.
func (h *Header) Add(name, value string) { *h = append(*h, HeaderField{name, value}) }

// Del removes a field.
func (h *Header) Del(name string) {
	kept := (*h)[:0]
	for _, f := range *h {
		if !strings.EqualFold(f.Name, name) {
			kept = append(kept, f)
		}
	}
	*h = kept
}

// Answer is one answer being written: alone on a connection, or one part of a batch. Body grows by append. Flush, if not
// nil, may be called with Body between complete pieces of output when it has grown past FlushAt: it sends status, headers
// and Body on their way and empties Body; afterwards status and headers are fixed. An error of Flush means that the
// client is gone.
type Answer struct {
	Status int
	Header Header
	Body   []byte
	Flush  func(*Answer) error
	// Err says that the answer could not be completed after part of it was sent. The connection must then be broken: an
	// answer that ends in order would pass for a whole one.
	Err error
	// Hashed is how long it took to make the answer's entity tag of its body.
	Hashed time.Duration
}

// FlushAt is the size beyond which a streamed answer is sent in pieces.
const FlushAt = 64 << 10

// Grown flushes the answer if it streams and has grown past FlushAt.
func (a *Answer) Grown() error {
	if a.Flush == nil || len(a.Body) < FlushAt {
		return nil
	}
	return a.Flush(a)
}
