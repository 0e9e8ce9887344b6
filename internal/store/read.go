package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Read compiles q. count is the statement that counts all matching records, nil unless Query.Count asks for it. The
// arguments of st are appended to args, those of count to countArgs. Paths that lead nowhere and values that do not fit
// what they are compared with are Invalid.
//
// Rows come in the order of Query.Sort and then of the key, so that the order is total; an aggregate's in that of
// Query.Sort and then of its groups. Null sorts before all values. A guard's own walks and relations see all records: it is
// the operator's condition, not the caller's.
func (c *Compiler) Read(q *Read, args, countArgs []Arg) (st, count *Statement, _, _ []Arg, err error) {
	r := newRequest()
	defer r.done()
	if err := r.read(q); err != nil {
		return nil, nil, args, countArgs, err
	}
	e := c.find(q.Table, r.shape)
	if e == nil {
		if e, err = c.compileRead(q); err != nil {
			return nil, nil, args, countArgs, err
		}
		c.keep(q.Table, slices.Clone(r.shape), e)
	}
	if q.Guard != nil && len(e.touched) > 0 {
		// The second shape: the guards of the tables that the first one touches.
		for _, t := range e.touched {
			if err := r.expr(q.Guard(t), r.guard(), 0); err != nil {
				return nil, nil, args, countArgs, err
			}
		}
		touched := e.touched
		if e = c.find(q.Table, r.shape); e == nil {
			if e, err = c.compileRead(q); err != nil {
				return nil, nil, args, countArgs, err
			}
			e.touched = touched
			c.keep(q.Table, slices.Clone(r.shape), e)
		}
	}
	if args, err = r.bind(e.main, e.touched, q, args); err != nil {
		return nil, nil, args, countArgs, err
	}
	if e.count != nil {
		if countArgs, err = r.bind(e.count, e.touched, q, countArgs); err != nil {
			return nil, nil, args, countArgs, err
		}
	}
	return e.main, e.count, args, countArgs, nil
}

// read writes the shape of q.
func (r *request) read(q *Read) error {
	r.shape = append(r.shape, 'R', byte(min(len(q.Keys), 2)))
	r.flag(q.Keys != nil)
	r.flag(q.Lock)
	r.flag(q.Guard != nil)
	r.shape = binary.AppendUvarint(r.shape, uint64(len(q.Fields)))
	for _, f := range q.Fields {
		r.text(f)
	}
	query := q.Query
	if query == nil {
		return nil
	}
	r.shape = append(r.shape, 'Q')
	if err := r.expr(query.Where, &r.where, 0); err != nil {
		return err
	}
	r.flag(query.Offset > 0)
	r.flag(query.Limit >= 0)
	if usualLimit(query.Limit) {
		r.shape = binary.AppendUvarint(r.shape, uint64(query.Limit))
	} else {
		r.shape = append(r.shape, 0)
	}
	r.flag(query.Count)
	if each := query.Each; each != nil {
		r.shape = append(r.shape, 'E')
		r.flag(each.Limit >= 0)
		r.shape = binary.AppendUvarint(r.shape, uint64(len(each.Paths)))
		for _, p := range each.Paths {
			r.text(p)
		}
	}
	r.shape = binary.AppendUvarint(r.shape, uint64(len(query.Sort)))
	for i := range query.Sort {
		s := &query.Sort[i]
		r.text(s.Path)
		r.flag(s.Desc)
		if s.Agg != nil {
			r.shape = append(r.shape, byte(s.Agg.Func)+1)
			r.text(s.Agg.Path)
		} else {
			r.shape = append(r.shape, 0)
		}
	}
	r.shape = binary.AppendUvarint(r.shape, uint64(len(query.Group)))
	for _, g := range query.Group {
		r.text(g)
	}
	r.shape = binary.AppendUvarint(r.shape, uint64(len(query.Aggs)))
	for i := range query.Aggs {
		r.shape = append(r.shape, byte(query.Aggs[i].Func))
		r.text(query.Aggs[i].Path)
	}
	r.shape = binary.AppendUvarint(r.shape, uint64(len(query.Having)))
	for i := range query.Having {
		h := &query.Having[i]
		r.shape = append(r.shape, byte(h.Agg.Func), byte(h.Cmp), constShape(h.Value))
		r.text(h.Agg.Path)
		r.having = append(r.having, h.Value)
	}
	return nil
}

// bind appends the arguments of st.
func (r *request) bind(st *Statement, touched []*catalog.Table, q *Read, args []Arg) ([]Arg, error) {
	for i := range st.args {
		s := &st.args[i]
		var a Arg
		from := &r.where
		if s.guard != nil {
			from = &r.guards[slices.Index(touched, s.guard)]
		}
		switch s.kind {
		case fromConst:
			a.Value = from.values[s.n]
		case fromList:
			a.List, a.Fold = from.lists[s.n], s.form == folded
		case fromHaving:
			a.Value = r.having[s.n]
		case fromKeys:
			a.Rows, a.Col = q.Keys, s.n
		case fromKey:
			a.Value = q.Keys[0][s.n]
		case fromLimit:
			a.Value = record.IntValue(q.Query.Limit)
		case fromOffset:
			a.Value = record.IntValue(q.Query.Offset)
		case fromEachFirst:
			a.Value = record.IntValue(max(q.Query.Each.Offset, 0))
		case fromEachLast:
			first := max(q.Query.Each.Offset, 0)
			a.Value = record.IntValue(first + min(q.Query.Each.Limit, math.MaxInt64-first))
		}
		if !st.Params[i].Array {
			switch v, err := Fit(st.Params[i].Type, a.Value); {
			case err != nil:
				return args, err
			default:
				a.Value = v
			}
			switch s.form {
			case folded:
				a.Value.S = FoldText(a.Value.S)
			case after:
				a.Value.S, _ = prefixEnd(a.Value.S)
			case foldedAfter:
				a.Value.S, _ = prefixEnd(FoldText(a.Value.S))
			}
		}
		args = append(args, a)
	}
	return args, nil
}

// compileRead makes the statements of a read.
func (c *Compiler) compileRead(q *Read) (*compiled, error) {
	for _, k := range q.Keys {
		if len(k) != len(q.Table.Key) {
			return nil, record.Errorf(record.Internal, "", "a key of %s has %d values, not %d", q.Table.Name, len(q.Table.Key), len(k))
		}
	}
	comp := &compilation{Flavor: c.Flavor, snap: q.Snapshot, guard: q.Guard}
	e := &compiled{}
	var err error
	if q.Query != nil && len(q.Query.Group)+len(q.Query.Aggs) > 0 {
		e.main, err = comp.aggregate(q)
	} else {
		e.main, err = comp.list(q)
	}
	if err != nil {
		return nil, err
	}
	e.touched = comp.touched
	if q.Query != nil && q.Query.Count {
		comp := &compilation{Flavor: c.Flavor, snap: q.Snapshot, guard: q.Guard}
		if e.count, err = comp.counting(q); err != nil {
			return nil, err
		}
		for _, t := range comp.touched {
			if !slices.Contains(e.touched, t) {
				e.touched = append(e.touched, t)
			}
		}
	}
	return e, nil
}

func (c *compilation) statement(sql string, out []Output) *Statement {
	return &Statement{SQL: sql, Params: c.params, Out: out, args: c.sources}
}

// where is the conditions that a read's records satisfy, with the word, "" for none.
func (c *compilation) where(s *scope, q *Read) (string, error) {
	var list []string
	if q.Keys != nil {
		keys, err := c.keys(s, q)
		if err != nil {
			return "", err
		}
		list = append(list, keys)
	}
	own, err := s.own()
	if err != nil {
		return "", err
	}
	if own != "" {
		list = append(list, own)
	}
	if q.Query != nil && q.Query.Where != nil {
		var n numbering
		cond, err := s.cond(n.number(q.Query.Where))
		if err != nil {
			return "", err
		}
		list = append(list, cond)
	}
	if len(list) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(list, " AND "), nil
}

// keys is the condition that a record's key is one of q.Keys.
func (c *compilation) keys(s *scope, q *Read) (string, error) {
	fields := s.table.KeyFields()
	if len(fields) == 0 {
		return "", record.Errorf(record.Invalid, "", "table %s has no key", s.table.Name)
	}
	if len(q.Keys) == 0 {
		return "1 = 0", nil
	}
	columns, params := make([]string, len(fields)), make([]string, len(fields))
	for i, f := range fields {
		columns[i] = s.alias + "." + quoteName(f.Column)
		src, p := source{kind: fromKey, n: i}, Param{Type: f.Type, Native: f.Native}
		if len(q.Keys) > 1 {
			src.kind, p.Array = fromKeys, true
		}
		params[i] = c.arg(src, p)
	}
	switch {
	case len(q.Keys) == 1:
		for i := range columns {
			columns[i] += " = " + params[i]
		}
		return strings.Join(columns, " AND "), nil
	case len(columns) == 1:
		return c.in(columns[0], params[0]), nil
	}
	return c.tuple(columns, params), nil
}

// output is a column of a result.
func output(n node) Output { return Output{Type: n.typ, Native: n.native} }

// list makes a statement for records.
func (c *compilation) list(q *Read) (*Statement, error) {
	s := c.scope(q.Table)
	fields := make([]string, len(q.Fields))
	out := make([]Output, len(q.Fields))
	for i, path := range q.Fields {
		n, err := s.walk(path)
		if err != nil {
			return nil, err
		}
		fields[i], out[i] = c.shown(n.sql, n.typ, n.native), output(n)
	}
	if len(fields) == 0 {
		fields = []string{"1"}
		out = []Output{{Type: record.TypeInteger}}
	}
	where, err := c.where(s, q)
	if err != nil {
		return nil, err
	}
	terms, err := c.sorting(s, q)
	if err != nil {
		return nil, err
	}
	if q.Query != nil && q.Query.Each != nil {
		sql, err := c.each(s, q, fields, where, terms)
		return c.statement(sql, out), err
	}
	order := ""
	for i, t := range terms {
		order += []string{" ORDER BY ", ", "}[min(i, 1)] + c.term(t, t.sql)
	}
	sql := "SELECT " + strings.Join(fields, ", ") + " FROM " + s.from.String() + where + order + c.page(q)
	if q.Lock && c.Lock {
		sql += " FOR UPDATE OF " + s.alias
	}
	return c.statement(sql, out), nil
}

// each makes the text of a list that Each bounds: records are numbered among those of the same values, and read by number.
func (c *compilation) each(s *scope, q *Read, fields []string, where string, terms []term) (string, error) {
	if q.Lock {
		return "", record.Errorf(record.Internal, "", "a list that is bounded for each value locks nothing")
	}
	var inner, outer, parts, order, again strings.Builder
	for i, f := range fields {
		fmt.Fprintf(&inner, "%s AS c%d, ", f, i)
		fmt.Fprintf(&outer, "%sw.c%d", []string{"", ", "}[min(i, 1)], i)
	}
	for i, t := range terms {
		fmt.Fprintf(&inner, "%s AS k%d, ", t.sql, i)
		sep := []string{"", ", "}[min(i, 1)]
		order.WriteString(sep + c.term(t, t.sql))
		again.WriteString(sep + c.term(t, fmt.Sprintf("w.k%d", i)))
	}
	each := q.Query.Each
	for i, path := range each.Paths {
		n, err := s.walk(path)
		if err != nil {
			return "", err
		}
		parts.WriteString([]string{"", ", "}[min(i, 1)] + c.order(c.plain(n.sql, n.typ, n.native), n.typ))
	}
	over := ""
	if parts.Len() > 0 {
		over = "PARTITION BY " + parts.String()
	}
	if order.Len() > 0 {
		over += " ORDER BY " + order.String()
	}
	sql := "SELECT " + outer.String() + " FROM (SELECT " + inner.String() + "row_number() OVER (" + over + ") AS n FROM " + s.from.String() + where +
		") AS w WHERE w.n > " + c.arg(source{kind: fromEachFirst}, Param{Type: record.TypeInteger})
	if each.Limit >= 0 {
		sql += " AND w.n <= " + c.arg(source{kind: fromEachLast}, Param{Type: record.TypeInteger})
	}
	if again.Len() > 0 {
		sql += " ORDER BY " + again.String()
	}
	return sql + c.page(q), nil
}

// term is one sort key, compiled.
type term struct {
	sql         string
	typ         record.Type
	desc, nulls bool
}

// term is a term of ORDER BY over x, which has the key's value.
func (c *compilation) term(t term, x string) string {
	return c.sorted(c.order(x, t.typ), t.desc, t.nulls)
}

// sorting is the order of records: what was asked for, then the key.
func (c *compilation) sorting(s *scope, q *Read) ([]term, error) {
	if len(q.Keys) == 1 {
		return nil, nil
	}
	var terms []term
	seen := map[string]bool{}
	add := func(path string, desc bool) error {
		if seen[path] {
			return nil
		}
		seen[path] = true
		n, err := s.walk(path)
		if err != nil {
			return err
		}
		key := slices.Contains(s.table.Key, path)
		terms = append(terms, term{c.plain(n.sql, n.typ, n.native), n.typ, desc, !key})
		return nil
	}
	if q.Query != nil {
		for i := range q.Query.Sort {
			k := &q.Query.Sort[i]
			if k.Agg != nil {
				return nil, record.Errorf(record.Invalid, k.Agg.Path, "a list cannot be sorted by an aggregate")
			}
			if err := add(k.Path, k.Desc); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range s.table.Key {
		if err := add(k, false); err != nil {
			return nil, err
		}
	}
	return terms, nil
}

// usualLimit reports whether a limit is one of the few that many clients ask for. Such a limit stands in the text: PostgreSQL
// takes a tenth of all rows for a limit that it does not know when it makes a plan for good, finds that dear, and plans
// every execution anew, which costs more than reading a page of 25 records.
func usualLimit(n int64) bool {
	switch n {
	case 3, 6, 11, 16, 21, 26, 51, 101, 201, 501, 1001, 10001: // the same and one more, to see whether there is a next page
		return true
	case 1, 2, 5, 10, 15, 20, 25, 50, 100, 200, 500, 1000, 10000:
		return true
	}
	return false
}

// page is LIMIT and OFFSET.
func (c *compilation) page(q *Read) string {
	if q.Query == nil {
		return ""
	}
	var sql string
	if usualLimit(q.Query.Limit) {
		sql = " LIMIT " + strconv.FormatInt(q.Query.Limit, 10)
	} else if q.Query.Limit >= 0 {
		sql = " LIMIT " + c.arg(source{kind: fromLimit}, Param{Type: record.TypeInteger})
	} else if q.Query.Offset > 0 && c.Name == SQLite.Name {
		sql = " LIMIT -1" // SQLite has no OFFSET alone
	}
	if q.Query.Offset > 0 {
		sql += " OFFSET " + c.arg(source{kind: fromOffset}, Param{Type: record.TypeInteger})
	}
	return sql
}

// counting makes the statement that counts all records, or all groups of an aggregate.
func (c *compilation) counting(q *Read) (*Statement, error) {
	out := []Output{{Type: record.TypeInteger}}
	if len(q.Query.Group)+len(q.Query.Aggs) > 0 {
		page := *q.Query
		page.Limit, page.Offset, page.Sort = -1, 0, nil
		all := *q
		all.Query = &page
		st, err := c.aggregate(&all)
		if err != nil {
			return nil, err
		}
		return c.statement("SELECT count(*) FROM ("+st.SQL+") AS g", out), nil
	}
	s := c.scope(q.Table)
	where, err := c.where(s, q)
	if err != nil {
		return nil, err
	}
	return c.statement("SELECT count(*) FROM "+s.from.String()+where, out), nil
}

// aggregate makes a statement for groups.
func (c *compilation) aggregate(q *Read) (*Statement, error) {
	s := c.scope(q.Table)
	query := q.Query
	var columns, groups, terms []string
	var out []Output
	byPath := map[string]string{}
	for _, path := range query.Group {
		n, err := s.walk(path)
		if err != nil {
			return nil, err
		}
		n = c.comparable(n)
		columns, out = append(columns, n.sql), append(out, output(n))
		// Decimals group as numbers; under the collation of columns weir did not create, texts that are equal group too.
		g := n.sql
		if n.typ == record.TypeDecimal {
			g = c.order(n.sql, n.typ)
		}
		groups = append(groups, g)
		byPath[path] = c.order(c.plain(n.sql, n.typ, n.native), n.typ)
	}
	aggs := make([]node, len(query.Aggs))
	for i := range query.Aggs {
		n, err := c.agg(s, &query.Aggs[i])
		if err != nil {
			return nil, err
		}
		aggs[i] = n
		columns, out = append(columns, fmt.Sprintf("%s AS a%d", n.sql, i)), append(out, output(n))
	}
	where, err := c.where(s, q)
	if err != nil {
		return nil, err
	}
	having, err := c.having(s, query)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i := range query.Sort {
		k := &query.Sort[i]
		if k.Agg != nil {
			n, err := c.agg(s, k.Agg)
			if err != nil {
				return nil, err
			}
			terms = append(terms, c.sorted(c.order(n.sql, n.typ), k.Desc, true))
			continue
		}
		x, ok := byPath[k.Path]
		if !ok {
			return nil, record.Errorf(record.Invalid, k.Path, "an aggregate is sorted by its groups and aggregates only")
		}
		seen[k.Path] = true
		terms = append(terms, c.sorted(x, k.Desc, true))
	}
	for _, path := range query.Group {
		if !seen[path] {
			seen[path] = true
			terms = append(terms, c.sorted(byPath[path], false, true))
		}
	}
	sql := "SELECT " + strings.Join(columns, ", ") + " FROM " + s.from.String() + where
	if len(groups) > 0 {
		sql += " GROUP BY " + strings.Join(groups, ", ")
	}
	sql += having
	if len(terms) > 0 {
		sql += " ORDER BY " + strings.Join(terms, ", ")
	}
	return c.statement(sql+c.page(q), out), nil
}

// agg compiles one aggregate.
func (c *compilation) agg(s *scope, a *record.Agg) (node, error) {
	if a.Path == "" {
		if a.Func != record.Count && a.Func != record.CountDistinct {
			return node{}, record.Errorf(record.Invalid, "", "an aggregate names no field")
		}
		return node{sql: "count(*)", typ: record.TypeInteger}, nil
	}
	n, err := s.walk(a.Path)
	if err != nil {
		return node{}, err
	}
	x := c.plain(n.sql, n.typ, n.native)
	switch a.Func {
	case record.Count:
		return node{sql: "count(" + x + ")", typ: record.TypeInteger}, nil
	case record.CountDistinct:
		if n.typ == record.TypeDecimal {
			x = c.order(x, n.typ)
		}
		return node{sql: "count(DISTINCT " + x + ")", typ: record.TypeInteger}, nil
	case record.Sum, record.Avg:
		if !numeric(n.typ) {
			return node{}, record.Errorf(record.Invalid, a.Path, "a %s cannot be added up", n.typ)
		}
		if a.Func == record.Avg {
			return node{sql: c.avg(x, n.typ), typ: record.TypeFloat}, nil
		}
		return node{sql: c.sum(x, n.typ), typ: n.typ}, nil
	case record.Min, record.Max:
		word := "min"
		if a.Func == record.Max {
			word = "max"
		}
		switch n.typ {
		case record.TypeBytes:
			return node{}, record.Errorf(record.Invalid, a.Path, "bytes have no least and greatest")
		case record.TypeBoolean:
			return node{sql: c.bool(word, x), typ: n.typ}, nil
		}
		return node{sql: word + "(" + c.order(x, n.typ) + ")", typ: n.typ}, nil
	}
	return node{}, record.Errorf(record.Invalid, a.Path, "unknown aggregate %d", a.Func)
}

func (c *compilation) having(s *scope, query *record.Query) (string, error) {
	var list []string
	for i := range query.Having {
		h := &query.Having[i]
		n, err := c.agg(s, &h.Agg)
		if err != nil {
			return "", err
		}
		op, ok := comparisons[h.Cmp]
		if !ok {
			return "", record.Errorf(record.Invalid, h.Agg.Path, "an aggregate is compared by an unknown operator")
		}
		if h.Value.IsNull() {
			switch h.Cmp {
			case record.Eq:
				list = append(list, n.sql+" IS NULL")
			case record.Ne:
				list = append(list, n.sql+" IS NOT NULL")
			default:
				list = append(list, "1 = 0")
			}
			continue
		}
		if h.Cmp == record.Ne {
			op = c.same[1]
		}
		b := node{typ: constType(h.Value.Form, n.typ, true)}
		b.sql = c.arg(source{kind: fromHaving, n: i}, Param{Type: b.typ})
		s.meet(&n, &b)
		list = append(list, c.order(n.sql, n.typ)+" "+op+" "+b.sql)
	}
	if len(list) == 0 {
		return "", nil
	}
	return " HAVING " + chain(list, " AND "), nil
}
