package store

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// compilation is the making of one statement.
type compilation struct {
	*Flavor
	snap    *catalog.Snapshot
	guard   func(*catalog.Table) *record.Expr // nil: none
	touched []*catalog.Table                  // tables other than weir's idea of constants, whose guards count
	params  []Param
	sources []source
	aliases int
}

// param is the placeholder of a source. One source in several places is one parameter.
func (c *compilation) arg(s source, p Param) string {
	for i := range c.sources {
		if c.sources[i] == s && c.params[i] == p {
			return c.param(i+1, p)
		}
	}
	c.sources = append(c.sources, s)
	c.params = append(c.params, p)
	return c.param(len(c.params), p)
}

// guardOf is the guard of t, numbered, nil if it has none.
func (c *compilation) guardOf(t *catalog.Table) *numbered {
	if c.guard == nil {
		return nil
	}
	found := false
	for _, x := range c.touched {
		found = found || x == t
	}
	if !found {
		c.touched = append(c.touched, t)
	}
	e := c.guard(t)
	if e == nil || e.Op == record.Always {
		return nil
	}
	n := numbering{guard: t}
	return n.number(e)
}

// scope is one occurrence of a table in a statement, with the joins that walks from it need.
type scope struct {
	c     *compilation
	table *catalog.Table
	alias string
	from  *strings.Builder  // where joins are written
	joins map[string]string // walked path -> alias
	// guard says that this is the condition of a guard: the operator's own, so that its walks see all records. They are
	// written as subqueries, since a condition of a join has no place for joins.
	guard bool
}

func (c *compilation) scope(t *catalog.Table) *scope {
	s := &scope{c: c, table: t, alias: fmt.Sprintf("t%d", c.aliases), from: &strings.Builder{}, joins: map[string]string{}}
	c.aliases++
	fmt.Fprintf(s.from, "%s AS %s", c.tableName(t), s.alias)
	return s
}

func (c *compilation) tableName(t *catalog.Table) string { return c.table(t.Schema, t.Stored) }

// own is the condition that limits an occurrence of a table to its class and its guard, "" for none.
func (s *scope) own() (string, error) {
	var list []string
	if t := s.table; t.ClassField != "" && len(t.Parents) > 0 {
		list = append(list, s.classes(t))
	}
	if g := s.c.guardOf(s.table); g != nil {
		inner := *s
		inner.guard = true
		cond, err := inner.cond(g)
		if err != nil {
			return "", fmt.Errorf("access rule of %s: %w", s.table.Name, err)
		}
		list = append(list, "("+cond+")")
	}
	return strings.Join(list, " AND "), nil
}

// classes is the condition that a record is of t or below. Class names come from the catalog and are written as literals:
// that keeps them out of the parameters of every statement on a hierarchy, and lets the planner see them.
func (s *scope) classes(t *catalog.Table) string {
	col := s.alias + "." + quoteName(s.table.Field(s.table.ClassField).Column)
	if len(t.Classes) == 1 {
		return col + " = " + quoteText(t.Classes[0])
	}
	list := make([]string, len(t.Classes))
	for i, name := range t.Classes {
		list[i] = quoteText(name)
	}
	return col + " IN (" + strings.Join(list, ", ") + ")"
}

func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// node is a compiled value.
type node struct {
	sql    string
	typ    record.Type
	native string
	field  *catalog.Field // of a bare column
	null   bool           // known to be null
	value  bool           // a constant, never null unless null
}

// walk compiles a path.
func (s *scope) walk(path string) (node, error) {
	steps, err := s.c.snap.Resolve(s.table, path)
	if err != nil {
		return node{}, err
	}
	last := steps[len(steps)-1].Field
	n := node{typ: last.Type, native: last.Native, field: last}
	if len(steps) == 1 {
		n.sql = s.alias + "." + quoteName(last.Column)
		return n, nil
	}
	if s.guard {
		n.sql, err = s.subwalk(steps)
		return n, err
	}
	alias, prefix := s.alias, ""
	for i, step := range steps[:len(steps)-1] {
		prefix += step.Field.Name + "."
		next := s.joins[prefix]
		if next == "" && len(s.joins) >= maxJoins {
			n.sql, err = s.subwalk(steps)
			return n, err
		}
		if next == "" {
			next = fmt.Sprintf("t%d", s.c.aliases)
			s.c.aliases++
			target := scope{c: s.c, table: steps[i+1].Table, alias: next}
			if target.table, err = s.c.snap.Table(step.Field.Reference); err != nil {
				return node{}, err
			}
			on := s.c.link(step.Field, alias, target.table, next)
			own, err := target.own()
			if err != nil {
				return node{}, err
			}
			if own != "" {
				on += " AND " + own
			}
			fmt.Fprintf(s.from, " LEFT JOIN %s AS %s ON %s", s.c.tableName(target.table), next, on)
			s.joins[prefix] = next
		}
		alias = next
	}
	n.sql = alias + "." + quoteName(last.Column)
	return n, nil
}

// link is the condition that a reference and the key of the table it refers to are equal.
func (c *compilation) link(f *catalog.Field, alias string, to *catalog.Table, next string) string {
	key := to.SingleKey()
	a, b := alias+"."+quoteName(f.Column), next+"."+quoteName(key.Column)
	if f.Native != key.Native {
		a, b = c.plain(a, f.Type, f.Native), c.plain(b, key.Type, key.Native)
	}
	return b + " = " + a
}

// comparable is n as the database can compare and group it beside its like: what is text to us and a type of the database's
// own, which may know no order (json, xml, point) and no collation (time, inet), becomes text.
func (c *compilation) comparable(n node) node {
	if n.native == "" || !textual(n.typ) {
		return n
	}
	if x := c.plain(n.sql, n.typ, n.native); x != n.sql {
		n.sql, n.native = x, ""
	}
	return n
}

// maxJoins is how many walks are joins of one statement; further ones are subqueries. SQLite joins no more than 64 tables, and
// PostgreSQL plans as many for long.
const maxJoins = 48

// subwalk is a walk as a subquery.
func (s *scope) subwalk(steps []catalog.Step) (string, error) {
	var from strings.Builder
	var where string
	alias := s.alias
	for i, step := range steps[:len(steps)-1] {
		to, err := s.c.snap.Table(step.Field.Reference)
		if err != nil {
			return "", err
		}
		next := fmt.Sprintf("t%d", s.c.aliases)
		s.c.aliases++
		on := s.c.link(step.Field, alias, to, next)
		target := &scope{c: s.c, table: to, alias: next}
		if !s.guard {
			own, err := target.own()
			if err != nil {
				return "", err
			}
			if own != "" {
				on += " AND " + own
			}
		} else if to.ClassField != "" && len(to.Parents) > 0 {
			on += " AND " + target.classes(to)
		}
		if i == 0 {
			fmt.Fprintf(&from, "%s AS %s", s.c.tableName(to), next)
			where = on
		} else {
			fmt.Fprintf(&from, " JOIN %s AS %s ON %s", s.c.tableName(to), next, on)
		}
		alias = next
	}
	last := steps[len(steps)-1].Field
	return fmt.Sprintf("(SELECT %s.%s FROM %s WHERE %s)", alias, quoteName(last.Column), from.String(), where), nil
}

// textual reports whether t compares as text that can be folded and searched.
func textual(t record.Type) bool { return t.Textual() && t != record.TypeDate && t != record.TypeBytes }

func numeric(t record.Type) bool {
	return t == record.TypeInteger || t == record.TypeDuration || t == record.TypeFloat || t == record.TypeDecimal
}

func whole(t record.Type) bool { return t == record.TypeInteger || t == record.TypeDuration }

// constType is the type that a constant of a form takes beside a value of type t. ok is false if there is none beside it.
func constType(form record.Form, t record.Type, ok bool) record.Type {
	if ok && !(numeric(t) && t != record.TypeDecimal && (form == record.Int || form == record.Num)) {
		return t
	}
	switch form {
	case record.Int:
		return record.TypeInteger
	case record.Num:
		return record.TypeFloat
	case record.Bool:
		return record.TypeBoolean
	case record.Time:
		return record.TypeDateTime
	}
	return record.TypeString
}

// constant is a Const beside a value of type t.
func (s *scope) constant(e *numbered, t record.Type, native string, ok bool, form argForm) node {
	if e.Value.Form == record.Null {
		return node{sql: "NULL", typ: t, null: true, value: true}
	}
	typ := constType(e.Value.Form, t, ok)
	p := Param{Type: typ}
	if native != "" && typ == t {
		p.Native = native
	}
	return node{sql: s.c.arg(source{kind: fromConst, guard: e.guard, n: e.n, form: form}, p), typ: typ, native: p.Native, value: true}
}

// value compiles a value; a constant takes its own type.
func (s *scope) value(e *numbered) (node, error) {
	switch e.Op {
	case record.Const:
		return s.constant(e, 0, "", false, asIs), nil
	case record.Field:
		return s.walk(e.Path)
	case record.Lower, record.Upper, record.Trim, record.Length:
		x, err := s.textArg(e, 0)
		if err != nil {
			return node{}, err
		}
		switch e.Op {
		case record.Lower:
			return node{sql: fmt.Sprintf(s.c.lower, x), typ: record.TypeString}, nil
		case record.Upper:
			return node{sql: fmt.Sprintf(s.c.upper, x), typ: record.TypeString}, nil
		case record.Trim:
			return node{sql: "trim(" + x + ")", typ: record.TypeString}, nil
		}
		return node{sql: "length(" + x + ")", typ: record.TypeInteger}, nil
	case record.Concat:
		if len(e.args) == 0 {
			return node{}, badArgs(e)
		}
		list := make([]string, len(e.args))
		for i := range e.args {
			x, err := s.textArg(e, i)
			if err != nil {
				return node{}, err
			}
			list[i] = x
		}
		return node{sql: "(" + strings.Join(list, " || ") + ")", typ: record.TypeString}, nil
	case record.Substring:
		x, err := s.textArg(e, 0)
		if err != nil {
			return node{}, err
		}
		at, err := s.wholeArg(e, 1)
		if err != nil {
			return node{}, err
		}
		if len(e.args) < 3 {
			return node{sql: fmt.Sprintf("substr(%s, %s + 1)", x, at), typ: record.TypeString}, nil
		}
		n, err := s.wholeArg(e, 2)
		if err != nil {
			return node{}, err
		}
		return node{sql: fmt.Sprintf("substr(%s, %s + 1, %s)", x, at, n), typ: record.TypeString}, nil
	case record.IndexOf:
		x, err := s.textArg(e, 0)
		if err != nil {
			return node{}, err
		}
		y, err := s.textArg(e, 1)
		if err != nil {
			return node{}, err
		}
		return node{sql: "(" + fmt.Sprintf(s.c.instr, x, y) + " - 1)", typ: record.TypeInteger}, nil
	case record.Replace:
		var x [3]string
		for i := range x {
			var err error
			if x[i], err = s.textArg(e, i); err != nil {
				return node{}, err
			}
		}
		return node{sql: fmt.Sprintf("replace(%s, %s, %s)", x[0], x[1], x[2]), typ: record.TypeString}, nil
	case record.Add, record.Sub, record.Mul, record.Div, record.Mod:
		return s.arithmetic(e)
	case record.Neg, record.Round, record.Floor, record.Ceiling:
		x, err := s.number(e, 0)
		if err != nil {
			return node{}, err
		}
		switch {
		case e.Op == record.Neg:
			return node{sql: "(- " + x.sql + ")", typ: x.typ}, nil
		case x.typ == record.TypeInteger:
			return x, nil
		case e.Op == record.Round:
			return node{sql: fmt.Sprintf(s.c.round, x.sql), typ: record.TypeFloat}, nil
		case e.Op == record.Floor:
			return node{sql: "floor(" + x.sql + ")", typ: record.TypeFloat}, nil
		}
		return node{sql: "ceil(" + x.sql + ")", typ: record.TypeFloat}, nil
	case record.Year, record.Month, record.Day, record.Hour, record.Minute, record.Second, record.Weekday, record.Quarter, record.Fraction:
		if len(e.args) < 1 {
			return node{}, badArgs(e)
		}
		x, err := s.operand(e.args[0], record.TypeDateTime)
		if err != nil {
			return node{}, err
		}
		if x.typ != record.TypeDateTime && x.typ != record.TypeDate {
			return node{}, record.Errorf(record.Invalid, e.args[0].Path, "a part of a time is asked of a %s", x.typ)
		}
		typ := record.TypeInteger
		if e.Op == record.Fraction {
			typ = record.TypeFloat
		}
		return node{sql: fmt.Sprintf(s.c.parts[e.Op], x.sql), typ: typ}, nil
	case record.Via:
		return s.via(e)
	}
	// A condition as a value is true or false, never null.
	cond, err := s.cond(e)
	if err != nil {
		return node{}, err
	}
	return node{sql: "((" + cond + ") IS TRUE)", typ: record.TypeBoolean}, nil
}

func badArgs(e *numbered) error {
	return record.Errorf(record.Invalid, "", "operator %d lacks an operand", e.Op)
}

// operand compiles a value; a constant takes type t.
func (s *scope) operand(e *numbered, t record.Type) (node, error) {
	if e.Op == record.Const {
		return s.constant(e, t, "", true, asIs), nil
	}
	n, err := s.value(e)
	n.sql = s.c.plain(n.sql, n.typ, n.native)
	n.native = ""
	return n, err
}

// textArg compiles operand i as text.
func (s *scope) textArg(e *numbered, i int) (string, error) {
	if i >= len(e.args) {
		return "", badArgs(e)
	}
	n, err := s.operand(e.args[i], record.TypeString)
	if err != nil {
		return "", err
	}
	if n.null {
		return "CAST(NULL AS TEXT)", nil
	}
	if n.typ == record.TypeBytes {
		return "", record.Errorf(record.Invalid, e.args[i].Path, "bytes are no text")
	}
	return s.c.text(n.sql, n.typ), nil
}

// wholeArg compiles operand i as a whole number that is not negative.
func (s *scope) wholeArg(e *numbered, i int) (string, error) {
	if i >= len(e.args) {
		return "", badArgs(e)
	}
	n, err := s.operand(e.args[i], record.TypeInteger)
	if err != nil {
		return "", err
	}
	if n.null {
		return "CAST(NULL AS INTEGER)", nil
	}
	if !whole(n.typ) {
		return "", record.Errorf(record.Invalid, e.args[i].Path, "a position is a whole number, not a %s", n.typ)
	}
	return fmt.Sprintf(s.c.within, n.sql), nil
}

// number compiles operand i as a number: whole, or floating-point, which decimals become in arithmetic on both databases.
func (s *scope) number(e *numbered, i int) (node, error) {
	if i >= len(e.args) {
		return node{}, badArgs(e)
	}
	a := e.args[i]
	var n node
	var err error
	if a.Op == record.Const && a.Value.Form == record.Text {
		n = s.constant(a, record.TypeFloat, "", true, asIs)
	} else if n, err = s.operand(a, record.TypeInteger); err != nil {
		return node{}, err
	}
	switch {
	case n.null:
		return node{sql: "CAST(NULL AS INTEGER)", typ: record.TypeInteger}, nil
	case whole(n.typ):
		n.typ = record.TypeInteger
		return n, nil
	case numeric(n.typ):
		return node{sql: s.c.float(n.sql, n.typ), typ: record.TypeFloat}, nil
	}
	return node{}, record.Errorf(record.Invalid, a.Path, "a %s is no number", n.typ)
}

func (s *scope) arithmetic(e *numbered) (node, error) {
	if len(e.args) < 2 {
		return node{}, badArgs(e)
	}
	if e.Op == record.Add || e.Op == record.Sub {
		if n, ok, err := s.moments(e); ok || err != nil {
			return n, err
		}
	}
	a, err := s.number(e, 0)
	if err != nil {
		return node{}, err
	}
	b, err := s.number(e, 1)
	if err != nil {
		return node{}, err
	}
	typ := record.TypeInteger
	if a.typ == record.TypeFloat || b.typ == record.TypeFloat {
		typ = record.TypeFloat
		a.sql, b.sql = s.c.float(a.sql, a.typ), s.c.float(b.sql, b.typ)
	}
	switch e.Op {
	case record.Add, record.Sub, record.Mul:
		sign := map[record.ExprOp]string{record.Add: "+", record.Sub: "-", record.Mul: "*"}[e.Op]
		return node{sql: "(" + a.sql + " " + sign + " " + b.sql + ")", typ: typ}, nil
	case record.Div:
		return node{sql: "(" + a.sql + " / nullif(" + b.sql + ", 0))", typ: typ}, nil
	}
	if typ == record.TypeInteger {
		return node{sql: "(" + a.sql + " % nullif(" + b.sql + ", 0))", typ: typ}, nil
	}
	return node{sql: fmt.Sprintf(s.c.mod, a.sql, b.sql), typ: typ}, nil
}

// moments compiles what Add and Sub do with times; ok is false if neither operand is one.
func (s *scope) moments(e *numbered) (n node, ok bool, err error) {
	isTime := func(a *numbered) (bool, error) {
		if a.Op == record.Const {
			return a.Value.Form == record.Time, nil
		}
		t, err := s.typeOf(a)
		return t == record.TypeDateTime || t == record.TypeDate, err
	}
	left, err := isTime(e.args[0])
	if err != nil {
		return node{}, false, err
	}
	right, err := isTime(e.args[1])
	if err != nil || !left && !right {
		return node{}, false, err
	}
	moment := func(i int) (string, error) {
		n, err := s.operand(e.args[i], record.TypeDateTime)
		if n.typ == record.TypeDate {
			n.sql = fmt.Sprintf(s.c.moment, n.sql)
		}
		return n.sql, err
	}
	if left && right {
		if e.Op == record.Add {
			return node{}, true, record.Errorf(record.Invalid, "", "two times cannot be added")
		}
		a, err := moment(0)
		if err != nil {
			return node{}, true, err
		}
		b, err := moment(1)
		return node{sql: fmt.Sprintf(s.c.since, a, b), typ: record.TypeFloat}, true, err
	}
	at, by := 0, 1
	if right {
		if e.Op == record.Sub {
			return node{}, true, record.Errorf(record.Invalid, "", "a time cannot be taken from a number")
		}
		at, by = 1, 0
	}
	a, err := moment(at)
	if err != nil {
		return node{}, true, err
	}
	b, err := s.number(e, by)
	if err != nil {
		return node{}, true, err
	}
	if e.Op == record.Sub {
		b.sql = "(- " + b.sql + ")"
	}
	return node{sql: fmt.Sprintf(s.c.shift, a, b.sql), typ: record.TypeDateTime}, true, nil
}

// typeOf is the type of a value that is no constant, without compiling it.
func (s *scope) typeOf(e *numbered) (record.Type, error) {
	switch e.Op {
	case record.Field:
		steps, err := s.c.snap.Resolve(s.table, e.Path)
		if err != nil {
			return 0, err
		}
		return steps[len(steps)-1].Field.Type, nil
	case record.Add, record.Sub:
		for _, a := range e.args {
			if a.Op == record.Const && a.Value.Form == record.Time {
				return record.TypeDateTime, nil
			}
			if t, err := s.typeOf(a); err != nil {
				return 0, err
			} else if t == record.TypeDateTime || t == record.TypeDate {
				if e.Op == record.Sub && a == e.args[0] && len(e.args) > 1 {
					if u, err := s.typeOf(e.args[1]); err != nil || u == record.TypeDateTime || u == record.TypeDate {
						return record.TypeFloat, err
					}
				}
				return record.TypeDateTime, nil
			}
		}
		return record.TypeFloat, nil
	case record.Lower, record.Upper, record.Trim, record.Concat, record.Substring, record.Replace:
		return record.TypeString, nil
	case record.Const:
		return constType(e.Value.Form, 0, false), nil
	case record.Via:
		t, err := s.c.snap.Table(e.Rel.Table)
		if err != nil || e.of == nil {
			return 0, err
		}
		return (&scope{c: s.c, table: t}).typeOf(e.of)
	}
	return record.TypeFloat, nil
}

// pair compiles the two sides of a comparison so that they compare: a constant takes the type of the other side, numbers
// of two kinds meet as floating-point, a date beside a time begins that day, and all else meets as text.
func (s *scope) pair(e *numbered, fold, native bool) (a, b node, err error) {
	if len(e.args) < 2 {
		return a, b, badArgs(e)
	}
	x, y := e.args[0], e.args[1]
	swap := x.Op == record.Const && y.Op != record.Const
	if swap {
		x, y = y, x
	}
	if a, err = s.value(x); err != nil {
		return a, b, err
	}
	if y.Op == record.Const {
		form := asIs
		if fold && textual(a.typ) {
			form = folded
		}
		if native && a.native == "uuid" && !fold && x.Op == record.Field {
			b = s.constant(y, a.typ, "uuid", true, form)
		} else {
			a.sql = s.c.plain(a.sql, a.typ, a.native)
			b = s.constant(y, a.typ, "", !a.value, form)
		}
	} else {
		if b, err = s.value(y); err != nil {
			return a, b, err
		}
		if a.native != b.native || !native {
			a.sql, b.sql = s.c.plain(a.sql, a.typ, a.native), s.c.plain(b.sql, b.typ, b.native)
		} else {
			a, b = s.c.comparable(a), s.c.comparable(b)
		}
		if fold && textual(b.typ) {
			b.sql = fmt.Sprintf(s.c.lower, b.sql)
		}
	}
	if fold && textual(a.typ) {
		a.sql = fmt.Sprintf(s.c.lower, a.sql)
	}
	if !a.null && !b.null {
		s.meet(&a, &b)
	}
	if swap {
		a, b = b, a
	}
	return a, b, nil
}

// meet gives two values one type.
func (s *scope) meet(a, b *node) {
	switch {
	case a.typ == b.typ, textual(a.typ) && textual(b.typ), whole(a.typ) && whole(b.typ):
		return
	case numeric(a.typ) && numeric(b.typ):
		for _, n := range []*node{a, b} {
			n.sql, n.typ = s.c.float(n.sql, n.typ), record.TypeFloat
		}
		return
	}
	for _, n := range []*node{a, b} {
		other := a.typ
		if n == a {
			other = b.typ
		}
		if n.typ == record.TypeDate && other == record.TypeDateTime {
			n.sql, n.typ = fmt.Sprintf(s.c.moment, n.sql), record.TypeDateTime
			return
		}
	}
	for _, n := range []*node{a, b} {
		n.sql, n.typ = s.c.text(n.sql, n.typ), record.TypeString
	}
}

var comparisons = map[record.ExprOp]string{
	record.Eq: "=", record.Ne: "<>", record.Lt: "<", record.Le: "<=", record.Gt: ">", record.Ge: ">=",
}

// cond compiles a condition. The text may be null where the condition is false, which is the same to WHERE, AND, OR and
// ON; only Not must tell them apart.
func (s *scope) cond(e *numbered) (string, error) {
	switch e.Op {
	case record.Always:
		return "1 = 1", nil
	case record.Never:
		return "1 = 0", nil
	case record.And, record.Or:
		return s.junction(e)
	case record.Not:
		if len(e.args) < 1 {
			return "", badArgs(e)
		}
		x, err := s.cond(e.args[0])
		return "((" + x + ") IS NOT TRUE)", err
	case record.Eq, record.Ne:
		return s.equal(e)
	case record.Lt, record.Le, record.Gt, record.Ge:
		a, b, err := s.pair(e, e.Fold, false)
		if err != nil {
			return "", err
		}
		if a.null || b.null {
			return "1 = 0", nil
		}
		return s.c.order(a.sql, a.typ) + " " + comparisons[e.Op] + " " + b.sql, nil
	case record.In:
		return s.in(e)
	case record.Contains, record.StartsWith, record.EndsWith, record.Like:
		return s.search(e)
	case record.IsEmpty:
		if len(e.args) < 1 {
			return "", badArgs(e)
		}
		x, err := s.value(e.args[0])
		if err != nil {
			return "", err
		}
		x.sql = s.c.plain(x.sql, x.typ, x.native)
		if textual(x.typ) && !x.null {
			return "(" + x.sql + " IS NULL OR " + x.sql + " = '')", nil
		}
		return x.sql + " IS NULL", nil
	case record.Instance:
		t, err := s.c.snap.Table(e.Value.S)
		switch {
		case err != nil:
			return "1 = 0", nil
		case s.table.Is(t.Name):
			return "1 = 1", nil
		case s.table.ClassField == "" || !t.Is(s.table.Name):
			return "1 = 0", nil
		}
		return s.classes(t), nil
	case record.Related:
		return s.related(e)
	}
	x, err := s.value(e)
	if err != nil {
		return "", err
	}
	if x.typ != record.TypeBoolean {
		return "", record.Errorf(record.Invalid, e.Path, "a %s is no condition", x.typ)
	}
	return x.sql, nil
}

func (s *scope) junction(e *numbered) (string, error) {
	word, none := " AND ", "1 = 1"
	if e.Op == record.Or {
		word, none = " OR ", "1 = 0"
	}
	if len(e.args) == 0 {
		return none, nil
	}
	list := make([]string, len(e.args))
	for i, a := range e.args {
		var err error
		if list[i], err = s.cond(a); err != nil {
			return "", err
		}
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return "(" + chain(list, word) + ")", nil
}

// chain joins conditions by AND or OR. A long one is halves of halves, since databases take a chain for as deep as it is long.
func chain(list []string, word string) string {
	const most = 32
	if len(list) <= most {
		return strings.Join(list, word)
	}
	half := len(list) / 2
	return "(" + chain(list[:half], word) + ")" + word + "(" + chain(list[half:], word) + ")"
}

func (s *scope) equal(e *numbered) (string, error) {
	a, b, err := s.pair(e, e.Fold, true)
	if err != nil {
		return "", err
	}
	ne := e.Op == record.Ne
	switch {
	case a.null && b.null:
		if ne {
			return "1 = 0", nil
		}
		return "1 = 1", nil
	case a.null || b.null:
		x := a.sql
		if a.null {
			x = b.sql
		}
		if ne {
			return x + " IS NOT NULL", nil
		}
		return x + " IS NULL", nil
	case !ne && (a.value || b.value):
		return s.c.equate(a) + " = " + b.sql, nil
	case ne:
		return s.c.equate(a) + " " + s.c.same[1] + " " + b.sql, nil
	}
	return s.c.equate(a) + " " + s.c.same[0] + " " + b.sql, nil
}

// equate is a value as the left side of an equality: decimals that are kept as text are equal as numbers.
func (f *Flavor) equate(n node) string {
	if n.typ == record.TypeDecimal {
		return f.order(n.sql, n.typ)
	}
	return n.sql
}

func (s *scope) in(e *numbered) (string, error) {
	if len(e.args) < 1 {
		return "", badArgs(e)
	}
	k := kindOf(e.Values)
	if k.n == 0 && !k.null {
		return "1 = 0", nil
	}
	x, err := s.value(e.args[0])
	if err != nil {
		return "", err
	}
	if x.null {
		if k.null {
			return "1 = 1", nil
		}
		return "1 = 0", nil
	}
	var list []string
	if k.n > 0 {
		fold := e.Fold && textual(x.typ)
		form := asIs
		if fold {
			form = folded
		}
		p := Param{Type: constType(k.form, x.typ, !x.value), Array: k.n > 1}
		left := x
		if x.native == "uuid" && x.field != nil && !fold {
			p.Native = x.native
		} else {
			left.sql = s.c.plain(x.sql, x.typ, x.native)
		}
		if fold {
			left.sql = fmt.Sprintf(s.c.lower, left.sql)
		}
		right := node{typ: p.Type}
		src := source{kind: fromConst, guard: e.guard, n: e.n, form: form}
		if k.n > 1 {
			src.kind = fromList
			if left.typ != p.Type && !(textual(left.typ) && textual(p.Type)) && !(numeric(left.typ) && numeric(p.Type)) {
				left.sql = s.c.text(left.sql, left.typ)
				p.Type = record.TypeString
			}
			list = append(list, s.c.in(s.c.equate(left), s.c.arg(src, p)))
		} else {
			right.sql = s.c.arg(src, p)
			s.meet(&left, &right)
			list = append(list, s.c.equate(left)+" = "+right.sql)
		}
	}
	if k.null {
		list = append(list, x.sql+" IS NULL")
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return "(" + strings.Join(list, " OR ") + ")", nil
}

// search compiles Contains, StartsWith and EndsWith. A constant prefix is a range, which an index serves.
func (s *scope) search(e *numbered) (string, error) {
	if len(e.args) < 2 {
		return "", badArgs(e)
	}
	x, err := s.textArg(e, 0)
	if err != nil {
		return "", err
	}
	if e.Fold {
		x = fmt.Sprintf(s.c.lower, x)
	}
	y := e.args[1]
	if y.Op == record.Const && y.Value.Form == record.Null {
		return "1 = 0", nil
	}
	if y.Op == record.Const && y.Value.Form == record.Text {
		if y.Value.S == "" && e.Op != record.Like {
			return x + " IS NOT NULL", nil
		}
		form, end := asIs, after
		if e.Fold {
			form, end = folded, foldedAfter
		}
		needle := s.constant(y, record.TypeString, "", true, form).sql
		if _, ok := prefixEnd(y.Value.S); ok && e.Op == record.StartsWith {
			x = s.c.order(x, record.TypeString)
			return fmt.Sprintf("(%s >= %s AND %s < %s)", x, needle, x, s.constant(y, record.TypeString, "", true, end).sql), nil
		}
		return s.find(e.Op, x, needle), nil
	}
	needle, err := s.textArg(e, 1)
	if err != nil {
		return "", err
	}
	if e.Fold {
		needle = fmt.Sprintf(s.c.lower, needle)
	}
	return s.find(e.Op, x, needle), nil
}

func (s *scope) find(op record.ExprOp, x, needle string) string {
	switch op {
	case record.Contains:
		return fmt.Sprintf(s.c.instr, x, needle) + " > 0"
	case record.Like:
		return s.c.like(x, needle)
	case record.StartsWith:
		return fmt.Sprintf("substr(%s, 1, length(%s)) = %s", x, needle, needle)
	}
	return fmt.Sprintf(s.c.suffix, x, needle)
}

// relation compiles the rows of another table that belong to this record, as FROM and WHERE. A null Own has none.
func (s *scope) relation(e *numbered) (*scope, string, error) {
	t, err := s.c.snap.Table(e.Rel.Table)
	if err != nil {
		return nil, "", err
	}
	in := s.c.scope(t)
	in.guard = s.guard
	var cond []string
	if !s.guard {
		limit, err := in.own()
		if err != nil {
			return nil, "", err
		}
		if limit != "" {
			cond = append(cond, limit)
		}
	} else if t.ClassField != "" && len(t.Parents) > 0 {
		cond = append(cond, in.classes(t))
	}
	tie := func(theirs, ours string) error {
		own, err := s.walk(ours)
		if err != nil {
			return err
		}
		field, err := in.walk(theirs)
		if err != nil {
			return err
		}
		if field.native != own.native {
			field.sql, own.sql = s.c.plain(field.sql, field.typ, field.native), s.c.plain(own.sql, own.typ, own.native)
		} else {
			field, own = s.c.comparable(field), s.c.comparable(own)
		}
		s.meet(&field, &own)
		cond = append(cond, s.c.equate(field)+" = "+own.sql)
		return nil
	}
	if err := tie(e.Rel.Field, e.Rel.Own); err != nil {
		return nil, "", err
	}
	for _, m := range e.Rel.More {
		if err := tie(m.Field, m.Own); err != nil {
			return nil, "", err
		}
	}
	if e.where != nil {
		x, err := in.cond(e.where)
		if err != nil {
			return nil, "", err
		}
		cond = append(cond, x)
	}
	return in, strings.Join(cond, " AND "), nil
}

// via compiles a value of the row of another table that belongs to this record.
func (s *scope) via(e *numbered) (node, error) {
	if e.of == nil {
		return node{}, badArgs(e)
	}
	in, where, err := s.relation(e)
	if err != nil {
		return node{}, err
	}
	n, err := in.value(e.of)
	if err != nil {
		return node{}, err
	}
	n.sql = s.c.plain(n.sql, n.typ, n.native)
	var order string
	if !keyed(e.Rel, in.table) {
		terms := make([]string, len(in.table.Key))
		for i, f := range in.table.KeyFields() {
			terms[i] = s.c.order(s.c.plain(in.alias+"."+quoteName(f.Column), f.Type, f.Native), f.Type)
		}
		if order = " LIMIT 1"; len(terms) > 0 {
			order = " ORDER BY " + strings.Join(terms, ", ") + order
		}
	}
	return node{sql: "(SELECT " + n.sql + " FROM " + in.from.String() + " WHERE " + where + order + ")", typ: n.typ, null: n.null}, nil
}

// keyed reports whether a relation names all of the key, so that it has one row at most.
func keyed(rel *record.Relation, t *catalog.Table) bool {
	for _, k := range t.Key {
		if k != rel.Field && !slices.ContainsFunc(rel.More, func(m record.Tie) bool { return m.Field == k }) {
			return false
		}
	}
	return len(t.Key) > 0
}

// related compiles a condition on the number of rows of another table that belong to this record.
func (s *scope) related(e *numbered) (string, error) {
	in, where, err := s.relation(e)
	if err != nil {
		return "", err
	}
	body := " FROM " + in.from.String() + " WHERE " + where
	count, exists := counted(e.Rel)
	switch {
	case count:
		op, ok := comparisons[e.Rel.Cmp]
		if !ok {
			return "", record.Errorf(record.Invalid, e.Rel.Table, "a number of related records is compared by an unknown operator")
		}
		n := s.c.arg(source{kind: fromConst, guard: e.guard, n: e.n}, Param{Type: record.TypeInteger})
		return "(SELECT count(*)" + body + ") " + op + " " + n, nil
	case exists:
		return "EXISTS (SELECT 1" + body + ")", nil
	}
	return "NOT EXISTS (SELECT 1" + body + ")", nil
}
