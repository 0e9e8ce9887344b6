package store

import (
	"fmt"
	"strings"

	"weir/internal/record"
)

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
		return node{sql: fmt.Sprintf(s.c.replace, x[0], x[1], x[2]), typ: record.TypeString}, nil
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
