package endpoint

import (
	"sort"
	"strconv"
)

// text is a statement on its way to the database: SQL of the file with pieces of our own, in which each byte knows where it comes
// from.
type text struct {
	sql    []byte
	pieces []piece
	params []int // binds by parameter
}

// piece is the bytes of a text from out on, up to the next piece.
type piece struct {
	out int
	at  int  // in the source
	own bool // ours: it stands for what is at at
}

// swap is what stands in a text instead of source bytes up to to.
type swap struct {
	to    int
	write func(*text)
}

// add appends SQL of our own, which stands for what the source has at at.
func (w *text) add(at int, sql string) {
	w.pieces = append(w.pieces, piece{len(w.sql), at, true})
	w.sql = append(w.sql, sql...)
}

// origin is the byte of the source that byte out of the text comes from.
func (w *text) origin(out int) int {
	i := sort.Search(len(w.pieces), func(i int) bool { return w.pieces[i].out > out }) - 1
	if i < 0 {
		return 0
	}
	if p := w.pieces[i]; !p.own {
		return p.at + out - p.out
	}
	return w.pieces[i].at
}

// copy appends bytes from up to to of the source, with parameters for binds and without comments.
func (c *compiler) copy(w *text, s *source, from, to int, swaps map[int]swap) {
	for i := sort.Search(len(s.tokens), func(i int) bool { return s.tokens[i].from >= from }); i < len(s.tokens) && s.tokens[i].from < to; i++ {
		t := s.tokens[i]
		if sw, ok := swaps[t.from]; ok {
			sw.write(w)
			for i+1 < len(s.tokens) && s.tokens[i+1].from < sw.to {
				i++
			}
			continue
		}
		switch t.kind {
		case comment:
			w.add(t.from, " ")
		case bind:
			c.param(w, t.from, c.bind(s.text[t.from+1:t.to]))
		default:
			w.pieces = append(w.pieces, piece{len(w.sql), t.from, false})
			w.sql = append(w.sql, s.text[t.from:t.to]...)
		}
	}
}

// copyCode appends code tokens lo up to hi.
func (c *compiler) copyCode(w *text, s *source, lo, hi int, swaps map[int]swap) {
	if lo < hi {
		c.copy(w, s, s.code[lo].from, s.code[hi-1].to, swaps)
	}
}

// param appends the parameter of a bind. One bind is one parameter, wherever it stands.
func (c *compiler) param(w *text, at, bind int) {
	cast := c.casts[bind]
	if _, loose := c.loose[at]; loose && cast == "" {
		if cast = c.told[bind]; cast == "" {
			w.add(at, "NULL")
			return
		}
	}
	n := 0
	for n < len(w.params) && w.params[n] != bind {
		n++
	}
	if n == len(w.params) {
		w.params = append(w.params, bind)
	}
	if !c.postgres {
		w.add(at, "?"+strconv.Itoa(n+1))
		return
	}
	w.add(at, "$"+strconv.Itoa(n+1)+cast)
}
