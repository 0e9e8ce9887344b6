package main

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// handler answers GET /one/{key} and GET /list?n=25 with the columns as strings, as the Now dialect does; with count=true it
// also counts all records for X-Total-Count.
func handler(d database, o options) http.Handler {
	w := newWriter(o)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /one/{key}", func(rw http.ResponseWriter, r *http.Request) {
		b := buffers.Get().(*[]byte)
		defer buffers.Put(b)
		*b = append((*b)[:0], `{"result":`...)
		found := false
		err := d.one(r.Context(), r.PathValue("key"), func(values [][]byte) {
			*b, found = w.append(*b, values), true
		})
		*b = append(*b, '}')
		if err == nil && !found {
			http.NotFound(rw, r)
			return
		}
		send(rw, *b, err)
	})
	mux.HandleFunc("GET /list", func(rw http.ResponseWriter, r *http.Request) {
		n := 25
		if s := r.URL.Query().Get("n"); s != "" {
			var err error
			if n, err = strconv.Atoi(s); err != nil || n < 1 {
				http.Error(rw, "n must be a number of rows", http.StatusBadRequest)
				return
			}
		}
		if r.URL.Query().Get("count") == "true" {
			total, err := d.count(r.Context())
			if err != nil {
				http.Error(rw, err.Error(), http.StatusInternalServerError)
				return
			}
			rw.Header().Set("X-Total-Count", strconv.FormatInt(total, 10))
		}
		b := buffers.Get().(*[]byte)
		defer buffers.Put(b)
		*b = append((*b)[:0], `{"result":[`...)
		first := true
		err := d.list(r.Context(), n, func(values [][]byte) {
			if !first {
				*b = append(*b, ',')
			}
			*b, first = w.append(*b, values), false
		})
		*b = append(*b, `]}`...)
		send(rw, *b, err)
	})
	if o.child == "" {
		return mux
	}
	key := slices.Index(o.columns, o.key)
	cw := newWriter(options{columns: o.childColumns[1:]})
	mux.HandleFunc("GET /expand", func(rw http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.URL.Query().Get("n"))
		if err != nil || n < 1 {
			http.Error(rw, "n must be a number of rows", http.StatusBadRequest)
			return
		}
		b := buffers.Get().(*[]byte)
		defer buffers.Put(b)
		*b, err = expand(r.Context(), d, (*b)[:0], n, key, w, cw)
		send(rw, *b, err)
	})
	return mux
}

// expand writes n rows with their children: two statements, merged by key.
func expand(ctx context.Context, d database, b []byte, n, key int, w, cw writer) ([]byte, error) {
	of := make(map[string][]byte, n) // the children's text by key
	err := d.children(ctx, n, func(values [][]byte) {
		text := of[string(values[0])]
		if len(text) > 0 {
			text = append(text, ',')
		}
		of[string(values[0])] = cw.append(text, values[1:])
	})
	if err != nil {
		return b, err
	}
	b = append(b, `{"value":[`...)
	first := true
	err = d.list(ctx, n, func(values [][]byte) {
		if !first {
			b = append(b, ',')
		}
		first = false
		b = w.append(b, values)
		b = append(b[:len(b)-1], `,"children":[`...)
		b = append(b, of[string(values[key])]...)
		b = append(b, "]}"...)
	})
	return append(b, "]}"...), err
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func send(rw http.ResponseWriter, b []byte, err error) {
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json;charset=UTF-8")
	rw.Header().Set("Content-Length", strconv.Itoa(len(b)))
	rw.Write(b)
}

// writer holds what of a row's JSON does not change: the names, and the links' beginnings.
type writer struct {
	names, links [][]byte
	kinds        []kind
}

// kind is how a column's bytes are shown.
type kind byte

const (
	plain kind = iota
	truth      // t, 1: true, f, 0: false
	whole      // to the second
)

// secondsLength is the length of 2026-01-31 23:59:59.
const secondsLength = 19

func (k kind) show(v []byte) []byte {
	switch {
	case k == truth && len(v) == 1 && (v[0] == 't' || v[0] == '1'):
		return []byte("true")
	case k == truth && len(v) == 1:
		return []byte("false")
	case k == whole && len(v) > secondsLength:
		return v[:secondsLength]
	}
	return v
}

// newWriter prepares the columns; open has replaced an empty list by all of them.
func newWriter(o options) writer {
	var w writer
	for _, c := range o.columns {
		name, _ := jsontext.AppendQuote(nil, c)
		w.names = append(w.names, append(name, ':'))
		w.links = append(w.links, []byte(o.refs[c]))
		k := plain
		if slices.Contains(o.flags, c) {
			k = truth
		} else if slices.Contains(o.seconds, c) {
			k = whole
		}
		w.kinds = append(w.kinds, k)
	}
	return w
}

func (w writer) append(b []byte, values [][]byte) []byte {
	b = append(b, '{')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, w.names[i]...)
		if len(w.links[i]) == 0 || len(v) == 0 {
			b, _ = jsontext.AppendQuote(b, w.kinds[i].show(v))
			continue
		}
		b = append(b, `{"link":`...)
		b, _ = jsontext.AppendQuote(b, string(w.links[i])+string(v))
		b = append(b, `,"value":`...)
		b, _ = jsontext.AppendQuote(b, v)
		b = append(b, '}')
	}
	return append(b, '}')
}
