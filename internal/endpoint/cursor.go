package endpoint

import (
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// inOne makes a CURSOR part of the statement around it: a subquery that answers its rows as a JSON array. around are the CURSORs
// around it, from the outermost, path their names.
func (c *compiler) inOne(cur *cursor, around []*cursor, path string, swaps map[int]swap) bool {
	s, q := cur.within.src, cur.inner
	chain := append(around[:len(around):len(around)], cur)
	path += c.member(cur.name) + "."
	for _, inner := range q.cursors {
		if !c.inOne(inner, chain, path, swaps) {
			return false
		}
	}
	columns, ok := c.innerColumns(chain, path)
	if !ok {
		return false
	}
	at := s.code[cur.from].from
	swaps[at] = swap{s.code[cur.to-1].to, func(w *text) {
		if c.postgres {
			c.postgresJSON(w, at, columns)
		} else {
			c.sqliteJSON(w, at, columns)
		}
		w.add(at, "FROM (")
		c.bounded(w, q, swaps)
		w.add(at, ") AS w_)")
		if c.postgres {
			w.add(at, " AS w_)")
		}
	}}
	return true
}

// member is the name under which a CURSOR's rows are answered.
func (c *compiler) member(name string) string {
	return strings.TrimPrefix(name, "{}")
}

// bounded appends a nested query with the bound on the rows of each cursor (protocol notes, section 5.3). The mark is replaced when
// the statement is run.
func (c *compiler) bounded(w *text, q *statement, swaps map[int]swap) {
	s := q.src
	at := s.code[q.lo].from
	if q.bounded || q.verb != "SELECT" || s.is(q.main, "(") {
		w.add(at, "SELECT * FROM (")
		c.copyCode(w, s, q.lo, q.hi, swaps)
		w.add(at, ") AS w_ LIMIT "+catalog.MaxRowsMark)
		return
	}
	c.copyCode(w, s, q.lo, q.hi, swaps)
	w.add(at, " LIMIT "+catalog.MaxRowsMark)
}

// postgresJSON appends the beginning of the subquery up to FROM: each row is aggregated as it is, from columns that are in the form
// in which they are answered.
func (c *compiler) postgresJSON(w *text, at int, columns []queryColumn) {
	w.add(at, "(SELECT coalesce(json_agg(w_), '[]'::json) FROM (SELECT ")
	for i := range columns {
		if i > 0 {
			w.add(at, ", ")
		}
		col := &columns[i]
		w.add(at, postgresMember("w_."+store.Quote(col.db), col)+" AS "+store.Quote(col.Name))
	}
	w.add(at, " ")
}

// postgresMember is a column in a form that json_agg writes as the answer has it: see wire.AppendValue.
func postgresMember(x string, col *queryColumn) string {
	if col.JSON || col.typ == record.TypeJSON {
		return x + "::json"
	}
	switch col.Native {
	case "timestamp", "timestamp without time zone":
		return postgresTime(x)
	case "timestamptz", "timestamp with time zone":
		return postgresTime(x + "::timestamp")
	}
	switch col.typ {
	case record.TypeBoolean:
		return x + "::boolean"
	case record.TypeInteger, record.TypeDuration:
		return x
	case record.TypeFloat:
		return "CASE WHEN " + x + "::float8 BETWEEN '-1.7976931348623157e308' AND '1.7976931348623157e308' THEN " + x + "::float8 END"
	case record.TypeDecimal:
		// Infinity and what is no number have no scale.
		return "CASE WHEN scale(" + x + "::numeric) IS NOT NULL THEN trim_scale(" + x + "::numeric) END"
	case record.TypeDateTime:
		return postgresTime(x + "::timestamp")
	case record.TypeDate:
		if col.Native == "date" || col.Native == "" {
			return "CASE WHEN " + x + " BETWEEN '0001-01-01' AND '9999-12-31' THEN " + x + "::text || 'T00:00:00Z' ELSE " + x + "::text END"
		}
		return "CASE WHEN length(" + x + "::text) = 10 THEN " + x + "::text || 'T00:00:00Z' ELSE " + x + "::text END"
	case record.TypeBytes:
		return "translate(encode(" + x + ", 'base64'), E'\\n', '')"
	}
	if strings.HasSuffix(col.Native, "[]") {
		return x
	}
	return x + "::text"
}

// postgresTime is a timestamp as the answer has it. Sessions write times in ISO 8601; those before the year 1 and after 9999 become
// the nearest ones within, as they do elsewhere.
func postgresTime(x string) string {
	const first, last = "'0001-01-01T00:00:00", "'9999-12-31T23:59:59.999999"
	return "CASE WHEN " + x + " BETWEEN " + first + "' AND " + last + "' THEN replace(" + x + "::text, ' ', 'T') || 'Z'" +
		" WHEN " + x + " < " + first + "' THEN " + first + "Z' WHEN " + x + " IS NOT NULL THEN " + last + "Z' END"
}

// sqliteJSON appends the beginning of the subquery up to FROM.
func (c *compiler) sqliteJSON(w *text, at int, columns []queryColumn) {
	w.add(at, "(SELECT json_group_array(json_object(")
	for i := range columns {
		if i > 0 {
			w.add(at, ", ")
		}
		col := &columns[i]
		w.add(at, quoteText(col.Name)+", "+sqliteMember("w_."+store.Quote(col.db), col))
	}
	w.add(at, ")) ")
}

// sqliteMember is a column in a form that json_object writes as the answer has it. What is common is said in SQL; the rest is the
// function of the database's package that does what wire.AppendValue does.
func sqliteMember(x string, col *queryColumn) string {
	if col.JSON || col.typ == record.TypeJSON {
		return "json(" + x + ")"
	}
	switch col.typ {
	case record.TypeInteger, record.TypeDuration:
		return x
	case record.TypeDateTime:
		return "iif(length(" + x + ") = 19, replace(" + x + ", ' ', 'T') || 'Z', " + sqliteCall(x, col.typ) + ")"
	case record.TypeDate:
		return "iif(length(" + x + ") = 10, " + x + " || 'T00:00:00Z', " + x + ")"
	case record.TypeBoolean, record.TypeDecimal, record.TypeBytes, record.TypeFloat, store.Untyped:
		return sqliteCall(x, col.typ)
	}
	return "(" + x + " || '')"
}

// sqliteCall is the value of a column as JSON.
func sqliteCall(x string, t record.Type) string {
	name := ""
	if t != store.Untyped {
		name = t.String()
	}
	return store.JSONFunction + "(" + x + ", " + quoteText(name) + ")"
}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// innerColumns is the columns of the last CURSOR of a chain, each within the one before.
func (c *compiler) innerColumns(chain []*cursor, path string) ([]queryColumn, bool) {
	q := chain[len(chain)-1].inner
	if !c.postgres {
		in, ok := c.resolve(chain)
		if !ok {
			return nil, false
		}
		return c.columns(q, in.described, path)
	}
	var w text
	d := c.describe(q.src, &w, func(w *text) {
		c.lateral(w, chain, func(w *text) { c.copyCode(w, q.src, q.lo, q.hi, c.stubs(q)) })
	})
	if d == nil {
		return nil, false
	}
	return c.columns(q, d, path)
}

// lateral appends a query of the columns of a last one, which sees what the query of the last CURSOR of a chain sees around it: that is
// how PostgreSQL tells the types of that.
func (c *compiler) lateral(w *text, chain []*cursor, last func(*text)) {
	cur := chain[0]
	s, q := cur.within.src, cur.within
	at := s.code[cur.from].from
	c.copyCode(w, s, q.lo, q.main, nil) // WITH
	w.add(at, " SELECT i_.* FROM ")
	if from := q.arms[cur.arm].from; from[0] < from[1] {
		c.copyCode(w, s, from[0], from[1], nil)
		w.add(at, ", LATERAL ")
	}
	w.add(at, "(")
	if len(chain) > 1 {
		c.lateral(w, chain[1:], last)
	} else {
		last(w)
	}
	w.add(at, ") AS i_")
}

// stubs stand for the CURSORs in a query when only its own columns are asked for.
func (c *compiler) stubs(q *statement) map[int]swap {
	swaps := map[int]swap{}
	for _, cur := range q.cursors {
		at := q.src.code[cur.from].from
		swaps[at] = swap{q.src.code[cur.to-1].to, func(w *text) {
			if c.postgres {
				w.add(at, "NULL::json")
			} else {
				w.add(at, "NULL")
			}
		}}
	}
	return swaps
}
