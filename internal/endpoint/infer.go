package endpoint

import (
	"weir/internal/record"
)

// SQLite tells no types of parameters: what is written into a column is stored as it comes, a time in whatever form a client has. So
// a bind that stands alone beside a column of the catalog, or where its value goes into one, takes the type of its field. A bind that
// stands beside columns of several types, or beside none, takes every value as it comes.

// infer finds the types of a statement's binds.
func (c *compiler) infer(q *statement) map[int]record.Type {
	if c.postgres {
		return nil
	}
	found, torn := map[int]record.Type{}, map[int]bool{}
	s := q.src
	tables := c.tablesOf(q)
	note := func(i int, t record.Type, ok bool) {
		if !ok {
			return
		}
		b := c.bind(s.text[s.code[i].from+1 : s.code[i].to])
		if was, twice := found[b]; twice && was != t {
			torn[b] = true
		}
		found[b] = t
	}
	for i := q.lo; i < q.hi; i++ {
		if s.code[i].kind == bind {
			t, ok := c.beside(q, i, tables)
			note(i, t, ok)
		}
	}
	if q.verb == "INSERT" {
		c.inserted(q, tables, note)
	}
	for b := range torn {
		delete(found, b)
	}
	return found
}

// tablesOf are the stored tables whose names stand in a statement.
func (c *compiler) tablesOf(q *statement) map[string]bool {
	tables := map[string]bool{}
	for i := q.lo; i < q.hi; i++ {
		if q.src.isName(i) {
			tables[lowerASCII(q.src.name(q.src.code[i]))] = true
		}
	}
	return tables
}

// typeOf is the type of a column by its name, if all tables of the statement that have one agree.
func (c *compiler) typeOf(column string, tables map[string]bool) (record.Type, bool) {
	var (
		t     record.Type
		known bool
	)
	for at, f := range c.fields {
		if at[1] != lowerASCII(column) || !tables[at[0]] {
			continue
		}
		if known && f.Type != t {
			return 0, false
		}
		t, known = f.Type, true
	}
	return t, known
}

// beside is the type that what stands around the bind at code token i gives it.
func (c *compiler) beside(q *statement, i int, tables map[string]bool) (record.Type, bool) {
	s := q.src
	if s.is(i-1, "LIMIT", "OFFSET") {
		return record.TypeInteger, true
	}
	left := i - 1
	switch {
	case s.compares(i - 1):
		for s.compares(left) {
			left--
		}
	case s.is(i-1, "BETWEEN"):
		left = i - 2
	case s.is(i-1, "AND") && s.is(i-3, "BETWEEN"):
		left = i - 4
	case s.is(i-1, "(", ",") && i-2 > q.lo:
		for left > q.lo && (s.code[left].kind == bind || s.is(left, ",")) {
			left--
		}
		if !s.is(left, "(") || !s.is(left-1, "IN") {
			return 0, false
		}
		if left -= 2; s.is(left, "NOT") {
			left--
		}
	default:
		return c.right(q, i, tables)
	}
	if s.is(left, "NOT") {
		left--
	}
	if left >= q.lo && s.isName(left) {
		from, _ := s.chain(left, q.lo, q.hi)
		if !s.computes(from-1) && !s.computes(i+1) {
			if t, ok := c.typeOf(s.name(s.code[left]), tables); ok {
				return t, true
			}
		}
	}
	return c.right(q, i, tables)
}

// right is the type of a column that the bind at i is compared with, behind it.
func (c *compiler) right(q *statement, i int, tables map[string]bool) (record.Type, bool) {
	s := q.src
	at := i + 1
	if !s.compares(at) || s.computes(i-1) {
		return 0, false
	}
	for s.compares(at) {
		at++
	}
	if at >= q.hi || !s.isName(at) {
		return 0, false
	}
	_, to := s.chain(at, q.lo, q.hi)
	if s.computes(to) || s.is(to, "(") {
		return 0, false
	}
	return c.typeOf(s.name(s.code[to-1]), tables)
}

func (s *source) compares(i int) bool { return s.is(i, "=", "<", ">", "!") }

func (s *source) computes(i int) bool { return s.is(i, "+", "-", "*", "/", "%", "|", "&") }

// inserted notes the binds that are values of INSERT INTO table (columns) VALUES (…), ….
func (c *compiler) inserted(q *statement, tables map[string]bool, note func(int, record.Type, bool)) {
	s := q.src
	at := q.main
	for at < q.hi && !s.is(at, "INTO") {
		at++
	}
	_, at = s.chain(min(at+1, q.hi-1), q.lo, q.hi)
	if !s.is(at, "(") {
		return
	}
	columns := s.items(at)
	for at = s.after(at); at < q.hi && !s.is(at, "VALUES"); at++ {
		if s.is(at, "(") || s.is(at, "SELECT") {
			return
		}
	}
	for at++; s.is(at, "("); {
		for i, item := range s.items(at) {
			if i < len(columns) && item[1] == item[0]+1 && s.code[item[0]].kind == bind {
				t, ok := c.typeOf(s.name(s.code[columns[i][1]-1]), tables)
				note(item[0], t, ok)
			}
		}
		if at = s.after(at); s.is(at, ",") {
			at++
		}
	}
}

// items are the ranges of code tokens between the commas in the brackets that open at i.
func (s *source) items(i int) [][2]int {
	var list [][2]int
	end := s.after(i) - 1
	from := i + 1
	for at := from; at <= end; at++ {
		switch {
		case at < end && s.is(at, "("):
			at = s.after(at) - 1
		case at == end || s.is(at, ","):
			if at > from {
				list = append(list, [2]int{from, at})
			}
			from = at + 1
		}
	}
	return list
}
