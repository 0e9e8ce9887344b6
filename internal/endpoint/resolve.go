package endpoint

import (
	"slices"
	"strings"

	"weir/internal/store"
)

// outer is a column of the statement around a CURSOR that its query names: d.id.
type outer struct {
	from, to int // code tokens
	text     string
	alias    string // " AS id" where the column was a whole item of its list
}

// resolved is a query of a CURSOR alone, with parameters in the place of the outer columns.
type resolved struct {
	outers    []outer
	described *store.Described
	text      text // its parameters beyond those of binds are the outer columns, in their order
}

// resolve finds the outer columns of the last CURSOR of a chain: what the database does not know when the query stands alone.
// Whether the statement around has them is found when that is described, with this one in it.
func (c *compiler) resolve(chain []*cursor) (*resolved, bool) {
	q := chain[len(chain)-1].inner
	swaps := c.stubs(q)
	return c.resolveText(q, swaps, func(w *text) { c.copyCode(w, q.src, q.lo, q.hi, swaps) })
}

// resolveText finds the outer columns of a query that write makes with swaps, to which they are added.
func (c *compiler) resolveText(q *statement, swaps map[int]swap, write func(*text)) (*resolved, bool) {
	s := q.src
	r := &resolved{}
	for {
		d, bad := c.try(&r.text, write)
		if c.failed != nil {
			return nil, false
		}
		if bad == nil {
			r.described = d
			return r, true
		}
		from, to := -1, -1
		if bad.Missing != "" {
			if from, to = c.missing(q, &r.text, bad, swaps); from >= 0 && c.isTable(q, bad, from, to) {
				from = -1
			}
		}
		if from < 0 {
			c.database(s, &r.text, bad)
			return nil, false
		}
		o := outer{from: from, to: to, text: s.text[s.code[from].from:s.code[to-1].to]}
		at := s.code[from].from
		if q.isItem(from, to) {
			// The column keeps the name that it has by itself.
			o.alias = " AS " + s.str(s.code[to-1])
		}
		r.outers = append(r.outers, o)
		swaps[at] = swap{s.code[to-1].to, func(w *text) { w.add(at, "NULL"+o.alias) }}
	}
}

// missing is the code tokens of the name that the database does not know: a.b.c. It is -1 if it cannot be found.
func (c *compiler) missing(q *statement, w *text, bad *store.SQLError, swaps map[int]swap) (from, to int) {
	s := q.src
	if bad.Pos >= 0 {
		at := w.origin(bad.Pos)
		for i := q.lo; i < q.hi; i++ {
			if s.code[i].from <= at && at < s.code[i].to && s.isName(i) {
				from, to = s.chain(i, q.lo, q.hi)
				if _, done := swaps[s.code[from].from]; !done {
					return from, to
				}
			}
		}
	}
	for i := q.lo; i < q.hi; i++ {
		if !s.isName(i) || s.is(i-1, ".") {
			continue
		}
		from, to = s.chain(i, q.lo, q.hi)
		if _, done := swaps[s.code[from].from]; !done && strings.EqualFold(s.plain(from, to), bad.Missing) {
			return from, to
		}
	}
	return -1, -1
}

// isTable reports whether what the database does not know is a table rather than a column.
func (c *compiler) isTable(q *statement, bad *store.SQLError, from, to int) bool {
	if !c.postgres {
		return strings.HasPrefix(bad.Msg, "no such table")
	}
	// The same code says that no table of FROM has the name d in d.id.
	const noTable = "42P01"
	return bad.Code == noTable && (to == from+1 || q.src.is(from-1, "FROM", "JOIN", "ONLY", "LATERAL"))
}

func (s *source) isName(i int) bool { return s.code[i].kind == word || s.code[i].kind == quoted }

// chain is the names around code token i that points join.
func (s *source) chain(i, lo, hi int) (from, to int) {
	for from = i; from-2 >= lo && s.is(from-1, ".") && s.isName(from-2); {
		from -= 2
	}
	for to = i + 1; to+1 < hi && s.is(to, ".") && s.isName(to+1); {
		to += 2
	}
	return from, to
}

// plain is names without quotes.
func (s *source) plain(from, to int) string {
	var names []string
	for i := from; i < to; i += 2 {
		names = append(names, s.name(s.code[i]))
	}
	return strings.Join(names, ".")
}

// isItem reports whether code tokens from up to to are a whole item of one of the lists.
func (q *statement) isItem(from, to int) bool {
	s := q.src
	return slices.ContainsFunc(q.arms, func(a arm) bool {
		return a.list[0] <= from && to <= a.list[1] && (from == a.list[0] || s.is(from-1, ",")) && (to == a.list[1] || s.is(to, ",")) &&
			s.depth(a.list[0], from) == 0
	})
}
