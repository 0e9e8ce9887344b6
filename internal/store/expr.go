package store

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// maxJoins is how many walks are joins of one statement; further ones are subqueries. SQLite joins no more than 64 tables, and
// PostgreSQL plans as many for long.
const maxJoins = 48

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
