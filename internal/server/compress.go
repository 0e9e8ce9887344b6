package server

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"weir/internal/dialect"
	"weir/internal/wire"
)

// zips reports whether an answer of which so much is known goes out compressed: the client takes gzip, and it is worth the while.
func (v *Visit) zips(a *wire.Answer) bool {
	c := &v.s.cfg.Compress
	return c.Level > 0 && len(a.Body) >= c.Least && a.Status != http.StatusNoContent && a.Status != http.StatusNotModified &&
		!a.Header.Has("Content-Encoding") && compressible(a.Header.Get("Content-Type")) && takesGzip(v.r.Header.Values("Accept-Encoding"))
}

// compressible reports whether a format is text: pictures and archives only get larger.
func compressible(contentType string) bool {
	switch f := dialect.FormatOf(contentType); f {
	case "", "json", "xml", "atom", "atomsvc", "text", "multipart", "http":
		return true
	}
	return strings.Contains(contentType, "xml") || strings.Contains(contentType, "json")
}

// takesGzip reads Accept-Encoding. A client that names gzip with q=0 does not want it.
func takesGzip(values []string) bool {
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(part, ";")
			if name = strings.TrimSpace(name); !strings.EqualFold(name, "gzip") && !strings.EqualFold(name, "x-gzip") {
				continue
			}
			key, weight, _ := strings.Cut(params, "=")
			if !strings.EqualFold(strings.TrimSpace(key), "q") {
				return true
			}
			q, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			return err == nil && q > 0
		}
	}
	return false
}

// deflaters are writers by level: one holds a megabyte or so.
var deflaters [gzip.BestCompression + 1]sync.Pool

// deflater starts a compressed answer; its head says so from then on.
func (v *Visit) deflater(to io.Writer) *gzip.Writer {
	h := v.w.Header()
	h["Content-Encoding"] = []string{"gzip"}
	h.Add("Vary", "Accept-Encoding")
	level := v.s.cfg.Compress.Level
	if z, ok := deflaters[level].Get().(*gzip.Writer); ok {
		z.Reset(to)
		return z
	}
	z, err := gzip.NewWriterLevel(to, level)
	if err != nil {
		panic("server: compress.level was checked with the settings: " + err.Error())
	}
	return z
}

func (v *Visit) giveBack(z *gzip.Writer) { deflaters[v.s.cfg.Compress.Level].Put(z) }
