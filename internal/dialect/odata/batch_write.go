package odata

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"weir/internal/wire"
)

// multipartWriter writes the answer to a batch as multipart/mixed, in the one layout that all known clients read (protocol notes,
// section 5, "Response"): CRLF everywhere, an empty body as two empty lines, Content-Type spelled so and first, one blank before an
// unquoted boundary, a length of every part.
type multipartWriter struct {
	dst          []byte
	outer, inner string // boundaries
	set          int    // where the length of the changeset under way belongs; 0: none
	body         int    // where its content begins
}

// contentType is the Content-Type of the whole answer.
func (w *multipartWriter) contentType() string { return "multipart/mixed; boundary=" + w.outer }

// beginChangeset opens a changeset; the parts that follow are its operations.
func (w *multipartWriter) beginChangeset() {
	w.delimiter(w.outer)
	w.dst = append(w.dst, "Content-Type: multipart/mixed; boundary="...)
	w.dst = append(w.dst, w.inner...)
	w.dst = append(w.dst, "\r\nContent-Length: "...)
	w.set = len(w.dst)
	w.dst = append(w.dst, "\r\n\r\n"...)
	w.body = len(w.dst)
}

// endChangeset closes the changeset and fills in its length.
func (w *multipartWriter) endChangeset() {
	w.close(w.inner)
	w.dst = slices.Insert(w.dst, w.set, strconv.AppendInt(nil, int64(len(w.dst)-w.body-len("\r\n")), 10)...)
	w.set = 0
}

// end closes the answer.
func (w *multipartWriter) end() { w.close(w.outer) }

// part writes one answer. Its Content-ID, if any, is told among the headers of the part, and again among those of the answer where the
// request had it there.
func (w *multipartWriter) part(a *wire.Answer, id string, inner bool) {
	boundary := w.outer
	if w.set > 0 {
		boundary = w.inner
	}
	w.delimiter(boundary)
	w.dst = append(w.dst, "Content-Type: application/http\r\nContent-Length: "...)
	w.dst = strconv.AppendInt(w.dst, int64(messageSize(a, id, inner)), 10)
	w.dst = append(w.dst, "\r\ncontent-transfer-encoding: binary\r\n"...)
	if id != "" {
		w.field("Content-ID", id)
	}
	w.dst = append(w.dst, "\r\nHTTP/1.1 "...)
	w.dst = strconv.AppendInt(w.dst, int64(a.Status), 10)
	w.dst = append(w.dst, ' ')
	w.dst = append(w.dst, reason(a.Status)...)
	w.dst = append(w.dst, "\r\n"...)
	for i := range a.Header {
		if isContentType(a.Header[i].Name) {
			w.field("Content-Type", a.Header[i].Value)
		}
	}
	w.dst = append(w.dst, "Content-Length: "...)
	w.dst = strconv.AppendInt(w.dst, int64(len(a.Body)), 10)
	w.dst = append(w.dst, "\r\n"...)
	for i := range a.Header {
		if !isContentType(a.Header[i].Name) {
			w.field(a.Header[i].Name, a.Header[i].Value)
		}
	}
	if inner {
		w.field("Content-ID", id)
	}
	w.dst = append(w.dst, "\r\n"...)
	w.dst = append(w.dst, a.Body...)
	w.dst = append(w.dst, "\r\n"...)
}

// messageSize is the length of an answer as part writes it, from its status line to the end of its body.
func messageSize(a *wire.Answer, id string, inner bool) int {
	n := len("HTTP/1.1 200 \r\nContent-Length: \r\n\r\n") + len(reason(a.Status)) + digits(len(a.Body)) + len(a.Body)
	for i := range a.Header {
		n += len(a.Header[i].Name) + len(a.Header[i].Value) + len(": \r\n")
	}
	if inner {
		n += len("Content-ID: \r\n") + len(id)
	}
	return n
}

func digits(n int) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}

// reason is the standard phrase of a status, which clients look for; it is never empty.
func reason(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Unknown"
}

func isContentType(name string) bool {
	return len(name) == len("Content-Type") && strings.EqualFold(name, "Content-Type")
}

// field writes a header line. A line break in a value would begin another one.
func (w *multipartWriter) field(name, value string) {
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, ": "...)
	if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 {
		value = strings.NewReplacer("\n", " ", "\r", " ").Replace(value)
	}
	w.dst = append(w.dst, value...)
	w.dst = append(w.dst, "\r\n"...)
}

func (w *multipartWriter) delimiter(boundary string) {
	w.dst = append(w.dst, "--"...)
	w.dst = append(w.dst, boundary...)
	w.dst = append(w.dst, "\r\n"...)
}

func (w *multipartWriter) close(boundary string) {
	w.dst = append(w.dst, "--"...)
	w.dst = append(w.dst, boundary...)
	w.dst = append(w.dst, "--\r\n"...)
}

// randomBoundary is a boundary that occurs in no body.
func randomBoundary() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
