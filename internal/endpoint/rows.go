package endpoint

import (
	"strconv"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/wire"
)

// byRows compiles a SELECT with its nested ones as statements that are run for each row, one after another: what others do, for
// comparison. Columns of a statement that its nested ones name are further columns of its own, which are not answered.
func (c *compiler) byRows(q *statement) (catalog.SQLStatement, bool) {
	st, _, ok := c.rowsOf(q, nil, "")
	return st, ok
}

// rowsOf compiles a query by rows. It is that of the last CURSOR of chain, or the outermost one of none; the outer columns that it
// takes are its last parameters.
func (c *compiler) rowsOf(q *statement, chain []*cursor, path string) (st catalog.SQLStatement, outers []outer, ok bool) {
	s := q.src
	if len(q.cursors) > 0 && len(q.arms) != 1 {
		c.fault(s, s.code[q.main].from, "with @nested rows a SELECT with a CURSOR has no UNION, INTERSECT or EXCEPT")
		return st, nil, false
	}
	swaps := c.stubs(q)
	var hidden []outer
	for _, cur := range q.cursors {
		inner, takes, ok := c.rowsOf(cur.inner, append(chain[:len(chain):len(chain)], cur), path+c.member(cur.name)+".")
		if !ok {
			return st, nil, false
		}
		n := catalog.SQLNested{SQLStatement: inner}
		for _, o := range takes {
			n.Outer = append(n.Outer, len(hidden)) // behind the columns, see below
			hidden = append(hidden, o)
		}
		st.Nested = append(st.Nested, n)
	}
	write := func(w *text) { c.withHidden(w, q, hidden, swaps, len(chain) > 0) }
	var w text
	var binds []int
	if len(chain) > 0 {
		r, ok := c.resolveText(q, swaps, write)
		if !ok {
			return st, nil, false
		}
		binds, outers = r.text.params, c.numbered(r, chain, swaps)
	}
	d := c.describe(s, &w, func(w *text) {
		w.params = append(w.params, binds...)
		write(w)
	})
	if d == nil {
		return st, nil, false
	}
	visible := len(d.Columns) - len(hidden)
	own := *d
	own.Columns = d.Columns[:visible]
	columns, ok := c.columns(q, &own, path)
	if !ok {
		return st, nil, false
	}
	nested := st.Nested
	st = c.compiled(q, &w, d)
	for i := len(st.Params); i < len(d.Params); i++ {
		t := catalog.SQLType{Native: d.Params[i].Native}
		if d.Params[i].Type != store.Untyped {
			t.Type = d.Params[i].Type.String()
		}
		st.Takes = append(st.Takes, t)
	}
	for i := range columns {
		st.Columns = append(st.Columns, columns[i].SQLColumn)
	}
	for i, cur := range q.cursors {
		n := nested[i]
		for j := range n.Outer {
			n.Outer[j] += visible
		}
		for j := range columns {
			if columns[j].db == cur.name {
				n.Column = j
			}
		}
		st.Nested = append(st.Nested, n)
	}
	return st, outers, true
}

// withHidden appends a query with further columns.
func (c *compiler) withHidden(w *text, q *statement, hidden []outer, swaps map[int]swap, bounded bool) {
	s := q.src
	if !bounded && len(hidden) == 0 {
		c.copyCode(w, s, q.lo, q.hi, swaps)
		return
	}
	first := s.code[q.lo].from
	own := bounded && (q.bounded || s.is(q.lo, "(")) // it has bounds of its own
	if own {
		w.add(first, "SELECT * FROM (")
	}
	if len(hidden) > 0 {
		end := q.arms[0].list[1]
		c.copyCode(w, s, q.lo, end, swaps)
		for i, o := range hidden {
			at := s.code[o.from].from
			w.add(at, ", ")
			c.copyCode(w, s, o.from, o.to, swaps)
			w.add(at, ` AS "~`+strconv.Itoa(i+1)+`" `)
		}
		c.copyCode(w, s, end, q.hi, swaps)
	} else {
		c.copyCode(w, s, q.lo, q.hi, swaps)
	}
	if own {
		w.add(first, ") AS w_")
	}
	if bounded {
		w.add(first, "\nLIMIT "+catalog.MaxRowsMark)
	}
}

// numbered replaces the outer columns of a query by parameters behind those of its binds, each with its type.
func (c *compiler) numbered(r *resolved, chain []*cursor, swaps map[int]swap) []outer {
	s := chain[0].within.src
	var list []outer
	for _, o := range r.outers {
		n := 0
		for n < len(list) && list[n].text != o.text {
			n++
		}
		if n == len(list) {
			list = append(list, o)
		}
		param := "?" + strconv.Itoa(len(r.text.params)+n+1)
		if c.postgres {
			param = "$" + strconv.Itoa(len(r.text.params)+n+1)
			var w text
			d, _ := c.try(&w, func(w *text) {
				c.lateral(w, chain, func(w *text) {
					w.add(s.code[o.from].from, "SELECT ")
					c.copyCode(w, s, o.from, o.to, nil)
				})
			})
			if d != nil && len(d.Columns) == 1 {
				param += "::" + d.Columns[0].Native
			}
		}
		at := s.code[o.from].from
		was := swaps[at]
		swaps[at] = swap{was.to, func(w *text) { w.add(at, param+o.alias) }}
	}
	return list
}

// nest reads the nested rows of each row and puts them in as JSON.
func (x *run) nest(st *catalog.SQLStatement, p *prepared, rows *record.Rows, binds []record.Value) (*record.Rows, error) {
	if err := rows.Materialise(x.limit); err != nil {
		rows.Close()
		return nil, err
	}
	out := record.NewRows(p.names, p.types)
	left := x.limit
	for row, ok := rows.Next(); ok; row, ok = rows.Next() {
		for i := range st.Nested {
			n := &st.Nested[i]
			json, err := x.array(n, binds, row)
			if err != nil {
				return nil, err
			}
			row[n.Column] = record.TextValue(string(json))
		}
		row = row[:len(st.Columns)]
		if left -= store.RowSize(row); left < 0 {
			return nil, store.TooMany(x.limit)
		}
		out.Append(row)
	}
	return out, rows.Err()
}

// array reads the rows of a nested query for a row of the one around it.
func (x *run) array(n *catalog.SQLNested, binds, around []record.Value) ([]byte, error) {
	x.r.count.nested.Add(1)
	outer := make([]record.Value, len(n.Outer))
	for i, at := range n.Outer {
		outer[i] = around[at]
	}
	p := x.r.nested(&n.SQLStatement)
	rows, err := x.r.st.Select(x.ctx, p.st, x.args(p, binds, outer), x.options)
	if err != nil {
		return nil, err
	}
	if len(n.Nested) > 0 { // a connection at a time
		err = rows.Materialise(x.limit)
	}
	defer rows.Close()
	if err != nil {
		return nil, err
	}
	json := []byte{'['}
	for row, ok := rows.Next(); ok; row, ok = rows.Next() {
		if len(json) > 1 {
			json = append(json, ',')
		}
		json = append(json, '{')
		for i := range n.Columns {
			if i > 0 {
				json = append(json, ',')
			}
			json = append(wire.AppendQuote(json, n.Columns[i].Name), ':')
			if deeper := nestedAt(n, i); deeper != nil {
				inner, err := x.array(deeper, binds, row)
				if err != nil {
					return nil, err
				}
				json = append(json, inner...)
				continue
			}
			t := p.types[i]
			if n.Columns[i].JSON {
				t = record.TypeJSON
			}
			json = wire.AppendValue(json, t, row[i])
		}
		json = append(json, '}')
		if int64(len(json)) > x.limit {
			return nil, store.TooMany(x.limit)
		}
	}
	return append(json, ']'), rows.Err()
}

// nestedAt is the nested query whose rows go into a column, nil if there is none.
func nestedAt(n *catalog.SQLNested, column int) *catalog.SQLNested {
	for i := range n.Nested {
		if n.Nested[i].Column == column {
			return &n.Nested[i]
		}
	}
	return nil
}
