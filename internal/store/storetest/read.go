package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

type expr = record.Expr

var (
	f = record.F
	c = func(v any) *expr { return record.C(value(v)) }
	x = func(op record.ExprOp, args ...*expr) *expr { return &expr{Op: op, Args: args} }
)

func folded(e *expr) *expr {
	e.Fold = true
	return e
}

func in(path string, list ...any) *expr {
	return &expr{Op: record.In, Args: []*expr{f(path)}, Values: values(list...)}
}

func instance(class string) *expr { return &expr{Op: record.Instance, Value: record.TextValue(class)} }

func related(tab, field, own string, cmp record.ExprOp, n int64, where *expr) *expr {
	return &expr{Op: record.Related, Rel: &record.Relation{Table: tab, Field: field, Own: own, Cmp: cmp, Count: n, Where: where}}
}

// via is a value of the first row of another table that belongs to a task.
func via(tab, field, own string, value *expr, where *expr, more ...record.Tie) *expr {
	return &expr{Op: record.Via, Rel: &record.Relation{Table: tab, Field: field, Own: own, More: more, Where: where, Value: value}}
}

// tied is a relation with further pairs.
func tied(e *expr, more ...record.Tie) *expr {
	e.Rel.More = more
	return e
}

// conditions are at least one for every operator, over tasks.
func conditions() []*expr {
	day, _ := record.ParseTime("2026-02-01 00:00:00.5")
	list := []*expr{
		nil, x(record.Always), x(record.Never), x(record.And), x(record.Or),
		record.Negate(x(record.Always)), record.Negate(x(record.Eq, f("priority"), c(1))),
		record.Negate(record.Negate(x(record.Lt, f("priority"), c(2)))),
		x(record.Eq, f("short"), c("Disk full")), folded(x(record.Eq, f("short"), c("DISK full"))),
		x(record.Ne, f("short"), c("Disk full")), folded(x(record.Ne, f("short"), c("disk full"))),
		x(record.Eq, f("short"), c(nil)), x(record.Ne, f("short"), c(nil)), x(record.Eq, c(nil), f("caller.name")),
		x(record.Eq, c(nil), c(nil)), x(record.Ne, c(nil), c(nil)), x(record.Eq, c("a"), c("a")), x(record.Lt, c(1), c(1.5)),
		x(record.Eq, f("caller.team"), f("caller.team.sys_id")), x(record.Ne, f("priority"), f("severity1")),
		x(record.Eq, f("priority"), f("caller.age")), x(record.Ne, f("priority"), f("caller.age")),
		x(record.Lt, f("priority"), f("caller.age")), x(record.Lt, f("priority"), c(nil)), x(record.Ge, c(nil), c(nil)),
		x(record.Le, f("short"), c("Disk")), x(record.Gt, f("short"), c("Disk")), folded(x(record.Gt, f("short"), c("disk"))),
		x(record.Lt, c("a"), f("short")), folded(x(record.Le, c("DISK"), f("short"))),
		x(record.Ge, f("amount"), c("9.99")), x(record.Lt, f("amount"), c(10)), x(record.Eq, f("amount"), c(100)),
		x(record.Eq, f("amount"), c("100.000")), x(record.Gt, f("amount"), c(-0.25)), x(record.Gt, c(9.99), f("amount")),
		x(record.Eq, f("amount"), f("caller.team.cost")), x(record.Gt, f("amount"), f("priority")), x(record.Lt, f("score"), f("amount")),
		x(record.Gt, f("score"), c(2)), x(record.Gt, f("priority"), c(1.5)), x(record.Eq, f("priority"), c("2")), x(record.Eq, f("score"), c("2.5")),
		x(record.Eq, f("effort"), c(60)), x(record.Eq, f("effort"), f("priority")),
		x(record.Eq, f("active"), c(true)), x(record.Ne, f("active"), c(true)), x(record.Eq, f("active"), c("false")), f("active"), record.Negate(f("active")),
		x(record.Eq, f("due"), c(day)), x(record.Lt, f("due"), c(day)), x(record.Ge, f("due"), c("2026-02-01 00:00:00.5")),
		x(record.Ge, f("day"), c("2026-02-01")), x(record.Lt, f("day"), f("due")), x(record.Eq, f("due"), f("day")),
		in("priority"), in("priority", 1), in("priority", 1, 3), in("priority", nil), in("priority", nil, 2), in("priority", nil, 2, 5), in("priority", 1, 2.0),
		in("short", "Disk", "zebra", "O'x"), folded(in("short", "DISK FULL", "ZEBRA")), folded(in("short", "DISK FULL")), in("amount", "9.99", "100.0"), in("amount", 100, "0.10"),
		in("due", day), in("due", day, "1999-01-01"), in("day", "2026-02-01", "2026-03-15"), in("caller.team.name", "Network", "Secret"), in("active", true), in("active", true, false), in("number", "INC01", "INC02", "x"), in("score", 2.5, 4),
		x(record.Contains, f("short"), c("isk")), folded(x(record.Contains, f("short"), c("ISK f"))), x(record.Contains, f("short"), c("%_")), x(record.Contains, f("short"), c("\\")),
		x(record.Contains, f("short"), c("")), x(record.Contains, f("short"), c(nil)), x(record.Contains, f("short"), f("cause1")), x(record.Contains, f("short"), c("😀")), x(record.Contains, f("priority"), c("1")), x(record.Contains, f("active"), c("ru")),
		x(record.StartsWith, f("short"), c("Disk")), folded(x(record.StartsWith, f("short"), c("DISK"))), x(record.StartsWith, f("short"), c("")), x(record.StartsWith, f("short"), c("100%")), x(record.StartsWith, f("number"), c("INC0")), x(record.StartsWith, f("short"), c("Äpfel 😀")), x(record.StartsWith, f("short"), c("\U0010ffff")), x(record.StartsWith, f("short"), x(record.Lower, c("D"))), x(record.StartsWith, f("due"), c("2026-0")),
		x(record.EndsWith, f("short"), c("full")), folded(x(record.EndsWith, f("short"), c("full"))), x(record.EndsWith, f("short"), c("")), x(record.EndsWith, f("short"), c("xxxxxxxxxxxxxxxxxxxxxxDisk full")), x(record.EndsWith, f("short"), c("'q'")), x(record.EndsWith, f("short"), x(record.Trim, c(" a "))),
		x(record.IsEmpty, f("short")), x(record.IsEmpty, f("caller.name")), x(record.IsEmpty, f("priority")), record.Negate(x(record.IsEmpty, f("caller.team.parent"))),
		instance("task"), instance("incident"), instance("outage"), instance("problem"), instance("person"), instance("nosuch"), record.Negate(instance("incident")),
		x(record.Eq, f("caller.team.parent.name"), c("Board")), x(record.Ne, f("caller.team.parent.name"), c("Board")), x(record.Eq, f("caller.team.parent.parent.name"), c(nil)),
		related("person", "sys_id", "caller", record.Ge, 1, nil), related("person", "sys_id", "caller", record.Eq, 0, nil),
		related("person", "sys_id", "caller", record.Ge, 1, x(record.Eq, f("team.parent.name"), c("Board"))),
		related("incident", "caller", "caller", record.Gt, 1, nil), related("task", "caller", "caller", record.Le, 2, x(record.Gt, f("priority"), c(1))), related("task", "caller.team", "caller.team", record.Ne, 3, nil), related("outage", "priority", "priority", record.Lt, 1, nil),
		related("task", "amount", "amount", record.Eq, 1, nil),
		tied(related("task", "caller", "caller", record.Ge, 2, nil), record.Tie{Field: "active", Own: "active"}),
		tied(related("task", "caller", "caller", record.Eq, 0, x(record.Gt, f("priority"), c(1))), record.Tie{Field: "active", Own: "active"}, record.Tie{Field: "caller.team", Own: "caller.team.sys_id"}),
		x(record.Eq, via("person", "sys_id", "caller", f("name"), nil), c("Abel Tuter")), x(record.Eq, via("person", "sys_id", "caller", f("name"), nil), c(nil)), x(record.Ne, via("person", "sys_id", "caller", f("team.name"), nil), f("caller.team.name")),
		x(record.Eq, via("team", "sys_id", "caller.team", x(record.Lower, f("parent.name")), nil), c("board")), folded(x(record.Contains, via("team", "sys_id", "caller.team", f("name"), nil), c("NET"))), x(record.Eq, via("task", "caller", "caller", f("number"), nil), f("number")),
		x(record.Gt, via("task", "caller", "caller", f("priority"), x(record.Gt, f("priority"), c(1))), c(2)), x(record.Eq, via("task", "caller", "caller", f("active"), nil, record.Tie{Field: "active", Own: "active"}), c(true)), record.Negate(x(record.Eq, via("person", "sys_id", "caller", f("active"), nil), c(true))),
		x(record.Eq, via("task", "caller", "caller", f("due"), nil), f("due")), x(record.Gt, x(record.Sub, f("due"), via("task", "caller", "caller", f("due"), nil)), c(0)), x(record.Eq, via("person", "sys_id", "caller", via("team", "sys_id", "team", f("cost"), nil), nil), c("20.25")), x(record.IsEmpty, via("person", "sys_id", "caller", f("name"), nil)),
		x(record.Eq, via("person", "sys_id", "caller", x(record.Eq, f("age"), c(30)), nil), c(true)),
		{Op: record.In, Args: []*expr{via("person", "sys_id", "caller", f("age"), nil)}, Values: values(30, 41)},
		x(record.Eq, x(record.Add, via("person", "sys_id", "caller", f("age"), nil), c(1)), c(31)),
		x(record.Eq, x(record.Fraction, f("due")), c(0.5)), x(record.Eq, x(record.Fraction, f("due")), c(0)), x(record.Eq, x(record.Fraction, f("day")), c(0)), x(record.Eq, x(record.Fraction, f("due")), c(nil)), x(record.Gt, x(record.Add, x(record.Fraction, c(day)), c(1)), c(1.25)),
		x(record.Eq, x(record.Substring, f("due"), c(0), c(10)), f("day")), x(record.Eq, x(record.Substring, f("due"), c(11), c(8)), c("12:07:59")), x(record.Ge, x(record.Substring, f("due"), c(0), c(10)), c("2026-02-01")),
		x(record.Eq, x(record.Lower, f("short")), c("disk full")), x(record.Eq, x(record.Upper, f("short")), c("DISK FULL")), x(record.Gt, x(record.Length, f("short")), c(9)), x(record.Eq, x(record.Length, f("short")), c(9)),
		x(record.Eq, x(record.Trim, f("short")), c("padded")), x(record.Eq, x(record.Concat, f("number"), c("-"), f("priority")), c("INC01-2")), x(record.Eq, x(record.Concat, f("short"), c("x")), c(nil)),
		x(record.Eq, x(record.Substring, f("short"), c(5)), c("full")), x(record.Eq, x(record.Substring, f("short"), c(0), c(4)), c("Disk")), x(record.Eq, x(record.Substring, f("short"), c(-3), c(2)), c("Di")), x(record.Eq, x(record.Substring, f("short"), c(2), c(-1)), c("")), x(record.Eq, x(record.Substring, f("short"), f("priority"), c(1)), c("i")), x(record.Eq, x(record.Substring, f("short"), c(6), c(1)), c("😀")),
		x(record.Eq, x(record.IndexOf, f("short"), c("full")), c(5)), x(record.Eq, x(record.IndexOf, f("short"), c("nope")), c(-1)), x(record.Eq, x(record.IndexOf, f("short"), c("z")), c(8)), x(record.Eq, x(record.IndexOf, f("short"), c("")), c(0)),
		x(record.Eq, x(record.Replace, f("short"), c("Disk"), c("Disc")), c("Disc full")), x(record.Eq, x(record.Replace, f("short"), c(""), c("y")), c("zebra")), x(record.Eq, x(record.Replace, f("short"), c(""), f("caller.name")), c(nil)),
		x(record.Eq, x(record.Add, f("priority"), c(1)), c(3)), x(record.Eq, x(record.Sub, f("priority"), f("effort")), c(-58)), x(record.Gt, x(record.Mul, f("priority"), f("score")), c(3)), x(record.Eq, x(record.Div, f("priority"), c(2)), c(1)), x(record.Eq, x(record.Div, f("priority"), c(2.0)), c(0.5)), x(record.Eq, x(record.Div, c(7), f("effort")), c(nil)), x(record.Eq, x(record.Mod, f("effort"), c(7)), c(4)), x(record.Eq, x(record.Mod, f("score"), c(2)), c(0.5)), x(record.Eq, x(record.Mod, f("effort"), c(0)), c(nil)),
		x(record.Gt, x(record.Mul, f("amount"), c(2)), c(19.975)), x(record.Lt, x(record.Neg, f("priority")), c(-2)), x(record.Lt, x(record.Neg, f("amount")), c(0)), x(record.Eq, x(record.Round, f("score")), c(3)), x(record.Eq, x(record.Round, f("score")), c(-1)), x(record.Eq, x(record.Floor, f("score")), c(-9)), x(record.Eq, x(record.Ceiling, f("amount")), c(-7)), x(record.Eq, x(record.Round, f("priority")), c(2)),
		x(record.Eq, x(record.Add, f("due"), c(0.5)), c("2026-02-01 00:00:01")), x(record.Eq, x(record.Sub, f("due"), c(60)), c("2025-12-31 11:59:00")), x(record.Gt, x(record.Sub, f("due"), f("day")), c(43199)), x(record.Eq, x(record.Sub, f("due"), c(day)), c(86399.5)), x(record.Ge, x(record.Add, f("day"), f("effort")), c("2026-02-01 01:00:01")), x(record.Eq, x(record.Add, c(1), f("due")), c("2026-02-01 00:00:00")),
		x(record.Eq, f("caller.active"), x(record.Eq, f("priority"), c(1))), x(record.Eq, x(record.Contains, f("short"), c("Disk")), c(true)), x(record.Eq, x(record.Contains, f("short"), c("Disk")), c(false)),
		record.AnyOf(x(record.Eq, f("priority"), c(1)), record.AllOf(x(record.Contains, f("short"), c("isk")), f("active"))),
	}
	for op, n := range map[record.ExprOp]int{record.Year: 2026, record.Month: 2, record.Day: 1, record.Hour: 12, record.Minute: 7, record.Second: 59, record.Weekday: 7, record.Quarter: 1} {
		list = append(list, x(record.Eq, x(op, f("due")), c(n)), x(record.Eq, x(op, f("day")), c(n)), x(record.Eq, x(op, f("due")), c(nil)))
	}
	return slices.DeleteFunc(list, func(e *expr) bool { // columns that only some classes have are no fields of task
		return !e.Walk("", func(_ string, e *expr) bool { return e.Path != "severity1" && e.Path != "cause1" })
	})
}

var taskFields = []string{"sys_id", "number", "short", "caller", "caller.name", "caller.team.parent.name", "priority", "active", "due", "day", "amount", "score", "effort"}

// agree compares a read of the database with the evaluator's.
func agree(t testing.TB, s querier, w *World, q *store.Read) {
	t.Helper()
	if err := differ(t, s, w, q); err != nil {
		t.Fatal(err)
	}
}

func differ(t testing.TB, s querier, w *World, q *store.Read) error {
	want, total, err := w.Read(q)
	if err != nil {
		return fmt.Errorf("evaluator: %w", err)
	}
	q.Guard = w.Guard
	got, n, err := rowsOf(t.Context(), s, q)
	if err != nil {
		return fmt.Errorf("%w (%v) in %s", err, errors.Unwrap(err), show(q.Query.Where))
	}
	if d := cmp.Diff(texts(want), texts(got)); d != "" {
		return fmt.Errorf("%s: -evaluator +database\n%s", show(q.Query.Where), d)
	}
	if n != total {
		return fmt.Errorf("%s: total %d, evaluator %d", show(q.Query.Where), n, total)
	}
	return nil
}

// show is an expression for people.
func show(e *expr) string {
	if e == nil {
		return "all"
	}
	s := fmt.Sprintf("op%d", e.Op)
	switch e.Op {
	case record.Const:
		return fmt.Sprintf("%d:%q", e.Value.Form, e.Value.Text())
	case record.Field:
		return e.Path
	case record.Related, record.Via:
		s += fmt.Sprintf("[%s.%s=%s %v %d %d where %s, %s]", e.Rel.Table, e.Rel.Field, e.Rel.Own, e.Rel.More, e.Rel.Cmp, e.Rel.Count, show(e.Rel.Where), show(e.Rel.Value))
	}
	if e.Fold {
		s += "~"
	}
	var args []string
	for _, a := range e.Args {
		args = append(args, show(a))
	}
	for _, v := range e.Values {
		args = append(args, v.Text())
	}
	return s + "(" + strings.Join(args, " ") + ")"
}

func testExpressions(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	w := Fill(t, s, snap)
	for _, e := range conditions() {
		for _, where := range []*expr{e, record.Negate(record.AllOf(e, x(record.Ne, f("number"), c("TSK01"))))} {
			for range 2 { // the second is from the cache
				q := &store.Read{Snapshot: snap, Table: table(t, snap, "task"), Fields: taskFields, Query: all(where)}
				if err := differ(t, s, w, q); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// drawn makes random expressions over tasks.
type drawn struct{ *rapid.T }

func (d drawn) pick(n int, label string) int { return rapid.IntRange(0, n-1).Draw(d.T, label) }

func one[T any](d drawn, list ...T) T { return list[d.pick(len(list), "one")] }

func (d drawn) text(depth int) *expr {
	switch d.pick(8, "text") {
	case 0, 1:
		return f(one(d, "short", "number", "caller.name", "caller.team.name", "caller", "caller.team.parent.name"))
	case 2, 3:
		return c(one[any](d, "Disk full", "disk", "", "a", "z", "%", "_", "'", "\\", "😀", "Ä", " ", "INC", "Network", "p1"))
	}
	if depth == 0 {
		return f("short")
	}
	switch d.pick(6, "text operator") {
	case 0:
		return x(record.Lower, d.text(depth-1))
	case 1:
		return x(record.Upper, d.text(depth-1))
	case 2:
		return x(record.Trim, d.text(depth-1))
	case 3:
		return x(record.Concat, d.text(depth-1), d.text(depth-1))
	case 4:
		return x(record.Substring, d.text(depth-1), d.integer(depth-1), d.integer(depth-1))
	}
	return x(record.Replace, d.text(depth-1), d.text(0), d.text(0))
}

func (d drawn) integer(depth int) *expr {
	if depth == 0 || d.pick(2, "leaf") == 0 {
		if d.pick(2, "const") == 0 {
			return c(d.pick(9, "n") - 3)
		}
		return f(one(d, "priority", "effort", "caller.age"))
	}
	switch d.pick(5, "integer operator") {
	case 0:
		return x(record.Length, d.text(depth-1))
	case 1:
		return x(record.IndexOf, d.text(depth-1), d.text(0))
	case 2:
		return x(one(d, record.Year, record.Month, record.Day, record.Hour, record.Minute, record.Second, record.Weekday, record.Quarter), f(one(d, "due", "day")))
	case 3:
		return x(record.Neg, d.integer(depth-1))
	}
	return x(one(d, record.Add, record.Sub, record.Mul, record.Div, record.Mod), d.integer(depth-1), d.integer(depth-1))
}

func (d drawn) number(depth int) *expr {
	switch d.pick(6, "number") {
	case 0:
		return f(one(d, "amount", "caller.team.cost"))
	case 1:
		return f(one(d, "score", "caller.score"))
	case 2:
		return c(one[any](d, 1.5, -0.5, 0.0, 2.5, 100.0))
	case 3:
		return x(one(d, record.Round, record.Floor, record.Ceiling), f(one(d, "score", "amount")))
	}
	return d.integer(depth)
}

func (d drawn) time() *expr {
	switch d.pick(4, "time") {
	case 0:
		return c(time.Date(2026, 2, 1, 0, 0, 0, 500000000, time.UTC))
	case 1:
		return x(one(d, record.Add, record.Sub), f(one(d, "due", "day")), d.integer(0))
	}
	return f(one(d, "due", "day"))
}

func (d drawn) cond(depth int) *expr {
	if depth > 0 {
		switch d.pick(5, "junction") {
		case 0:
			return x(record.And, d.cond(depth-1), d.cond(depth-1))
		case 1:
			return x(record.Or, d.cond(depth-1), d.cond(depth-1))
		case 2:
			return record.Negate(d.cond(depth - 1))
		}
	}
	compare := one(d, record.Eq, record.Ne, record.Lt, record.Le, record.Gt, record.Ge)
	e := &expr{}
	switch d.pick(10, "condition") {
	case 9:
		tab, field := one(d, "task", "incident"), one(d, "caller", "sys_id", "caller.team")
		var more []record.Tie
		if d.pick(3, "tie") == 0 {
			more = []record.Tie{{Field: "active", Own: "active"}}
		}
		switch d.pick(3, "value") {
		case 0:
			*e = *x(compare, via(tab, field, one(d, "caller", "sys_id", "caller.team.parent"), d.text(1), nil, more...), d.text(1))
		case 1:
			*e = *x(compare, d.number(1), via(tab, field, "caller", d.number(1), nil, more...))
		default:
			*e = *x(compare, via(tab, field, "caller", d.time(), nil, more...), d.time())
		}
	case 0:
		*e = *x(compare, d.text(1), d.text(1))
	case 1:
		*e = *x(compare, d.number(1), d.number(1))
	case 2:
		*e = *x(compare, d.time(), d.time())
	case 3:
		*e = *x(one(d, record.Contains, record.StartsWith, record.EndsWith), d.text(1), d.text(1))
	case 4:
		*e = *x(record.IsEmpty, one(d, d.text(1), d.number(1), d.time()))
	case 5:
		*e = *in("short", one[any](d, nil, "Disk", "zebra"), one[any](d, "Disk full", "a", nil), "DISK FULL")
	case 6:
		*e = *in("priority", one[any](d, nil, 1, 2), one[any](d, 2, 3.0, nil))
	case 7:
		return instance(one(d, "task", "incident", "outage", "problem"))
	default:
		var where *expr
		if depth > 0 && d.pick(2, "where") == 0 {
			where = d.cond(0)
		}
		return related(one(d, "task", "incident", "outage"), one(d, "caller", "caller.team", "sys_id", "priority"),
			one(d, "caller", "caller.team", "sys_id", "caller.team.parent"), compare, int64(d.pick(3, "count")), where)
	}
	e.Fold = d.pick(3, "fold") == 0
	return e
}

func testRandom(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	w := Fill(t, s, snap)
	guards := []func(*catalog.Table) *expr{nil, hideTeams}
	rapid.Check(t, func(rt *rapid.T) {
		d := drawn{rt}
		w := *w
		w.Guard = guards[d.pick(2, "guard")]
		q := &store.Read{Snapshot: snap, Table: table(t, snap, one(d, "task", "task", "incident", "outage")), Fields: taskFields, Query: all(d.cond(2))}
		if d.pick(2, "sorted") == 0 {
			q.Query.Sort = []record.Sort{{Path: one(d, "short", "priority", "amount", "due", "caller.team.name", "active"), Desc: d.pick(2, "desc") == 0}}
		}
		if d.pick(2, "paged") == 0 {
			q.Query.Limit, q.Query.Offset, q.Query.Count = int64(d.pick(6, "limit")), int64(d.pick(4, "offset")), d.pick(2, "count") == 0
		}
		if err := differ(t, s, &w, q); err != nil {
			rt.Fatal(err)
		}
	})
}

// testManyWalks reads over 120 references at once, which is more than SQLite joins.
func testManyWalks(t *testing.T, s store.Store) {
	defs := Definitions()
	no := false
	fan := catalog.TableDef{Name: "fan", Audit: &no, Key: []string{"id"}, Fields: []catalog.FieldDef{{Name: "id", Type: "string"}}}
	fields, paths, rows := []string{"id"}, []string{"id"}, [][]any{{"f1"}, {"f2"}}
	for i := range 60 {
		name := fmt.Sprintf("r%d", i)
		fan.Fields = append(fan.Fields, catalog.FieldDef{Name: name, Type: "reference", Reference: "person"})
		fields, paths = append(fields, name), append(paths, name+".team.name")
		rows[0], rows[1] = append(rows[0], fmt.Sprintf("p%d", i%7)), append(rows[1], fmt.Sprintf("p%d", (i+1)%5))
	}
	defs.Tables = append(defs.Tables, fan)
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	Create(t, s, snap)
	w := Fill(t, s, snap)
	set := insertSet(table(t, snap, "fan"), fields, rows...)
	mustInsert(t, s, set)
	for _, row := range set.Rows {
		r := Record{}
		for i, f := range fields {
			r[f] = row[i]
		}
		w.Rows["fan"] = append(w.Rows["fan"], r)
	}
	for _, guard := range []func(*catalog.Table) *expr{nil, hideTeams} {
		w.Guard = guard
		for _, where := range []*expr{nil, x(record.Eq, f("r59.team.parent.name"), c("Board")), x(record.Ne, f("r58.name"), c(nil))} {
			agree(t, s, w, &store.Read{
				Snapshot: snap, Table: table(t, snap, "fan"), Fields: paths,
				Query: all(where, record.Sort{Path: "r57.team.parent.name"}, record.Sort{Path: "r1.name", Desc: true}),
			})
		}
	}
}

// testDeep reads conditions as deep as the compiler lets pass, and junctions of thousands.
func testDeep(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	w := Fill(t, s, snap)
	read := func(e *expr) *store.Read {
		return &store.Read{Snapshot: snap, Table: table(t, snap, "task"), Fields: []string{"sys_id"}, Query: all(e)}
	}
	for name, deeper := range map[string]func(e *expr) *expr{
		"lower":     func(e *expr) *expr { return x(record.Lower, e) },
		"substring": func(e *expr) *expr { return x(record.Substring, f("short"), x(record.Length, e)) },
		"add":       func(e *expr) *expr { return x(record.Add, e, c(1)) },
		"remainder": func(e *expr) *expr { return x(record.Mod, e, c(2.5)) },
		"round":     func(e *expr) *expr { return x(record.Round, x(record.Add, e, c(0.5))) },
		"equal":     func(e *expr) *expr { return x(record.Eq, e, f("active")) },
		"not":       record.Negate,
		"via": func(e *expr) *expr {
			return via("person", "sys_id", "caller", via("task", "caller", "sys_id", e, nil), nil)
		},
		"related": func(e *expr) *expr { return related("task", "caller", "caller", record.Ge, 1, e) },
	} {
		for _, depth := range []int{5, 90, 198} {
			var e *expr
			switch name {
			case "lower", "substring", "via":
				e = x(record.Lower, record.F("short"))
			case "add", "remainder", "round":
				e = record.F("priority")
			case "equal", "not":
				e = record.F("active")
			case "related":
				e = x(record.Eq, record.F("active"), c(true))
			}
			for range depth {
				e = deeper(e)
			}
			if name != "equal" && name != "not" && name != "related" {
				e = x(record.Eq, e, e)
			}
			if _, _, err := rowsOf(t.Context(), s, read(e)); err != nil && record.KindOf(err) != record.Invalid && record.KindOf(err) != record.TooLarge {
				t.Errorf("%s, %d deep: %.300v", name, depth, err)
			}
		}
	}
	// The connections are as good as before, and what is long is not deep.
	for _, op := range []record.ExprOp{record.And, record.Or} {
		e := x(op)
		for i := range 3000 {
			e.Args = append(e.Args, x(record.Ne, f("priority"), c(i%4)))
		}
		agree(t, s, w, read(e))
	}
}

func testAggregates(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	w := Fill(t, s, snap)
	num := func(fn record.AggFunc, path string) record.Agg { return record.Agg{Func: fn, Path: path} }
	count, amount := num(record.Count, ""), num(record.Sum, "amount")
	most := num(record.Max, "priority")
	for i, q := range []*record.Query{
		{Aggs: []record.Agg{count}},
		{Aggs: []record.Agg{count, amount}, Where: x(record.Never)},
		{Aggs: []record.Agg{num(record.Count, "short"), num(record.CountDistinct, "short"), num(record.CountDistinct, "amount"), num(record.CountDistinct, "priority")}},
		{Aggs: []record.Agg{amount, num(record.Sum, "priority"), num(record.Sum, "score"), num(record.Sum, "effort"), num(record.Avg, "priority"), num(record.Avg, "score")}},
		{Aggs: []record.Agg{
			num(record.Min, "short"), num(record.Max, "short"), num(record.Min, "amount"), num(record.Max, "amount"), num(record.Min, "due"), num(record.Max, "day"),
			num(record.Min, "active"), num(record.Max, "active"), num(record.Min, "effort"), num(record.Max, "score"),
		}},
		{Group: []string{"priority"}, Aggs: []record.Agg{count, amount}},
		{Group: []string{"caller.team.name"}, Aggs: []record.Agg{count}, Sort: []record.Sort{{Agg: &count, Desc: true}}},
		{Group: []string{"caller.team.parent.name", "active"}, Aggs: []record.Agg{amount, most}, Sort: []record.Sort{{Path: "active", Desc: true}, {Agg: &most}}},
		{Group: []string{"short"}, Having: []record.Having{{Agg: count, Cmp: record.Gt, Value: record.IntValue(1)}}},
		{Group: []string{"priority"}, Aggs: []record.Agg{count}, Having: []record.Having{{Agg: amount, Cmp: record.Ge, Value: record.TextValue("9.99")}, {Agg: count, Cmp: record.Lt, Value: record.IntValue(4)}}},
		{Group: []string{"priority"}, Having: []record.Having{{Agg: most, Cmp: record.Ne, Value: record.IntValue(2)}}},
		{Group: []string{"priority"}, Having: []record.Having{{Agg: most, Cmp: record.Eq}}},
		{Group: []string{"day"}, Aggs: []record.Agg{count}, Where: instance("incident"), Count: true},
		{Group: []string{"sys_class_name"}, Aggs: []record.Agg{count}},
	} {
		q.Limit = -1
		for _, page := range []int64{-1, 2} {
			if page >= 0 {
				q.Limit, q.Offset = page, 1
			}
			if err := differ(t, s, w, &store.Read{Snapshot: snap, Table: table(t, snap, "task"), Query: q}); err != nil {
				t.Errorf("aggregate %d: %v", i, err)
			}
		}
	}
}

func testSort(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	w := Fill(t, s, snap)
	for _, path := range append([]string{"caller.team.cost", "caller.age"}, taskFields...) {
		for _, desc := range []bool{false, true} {
			for _, page := range [][2]int64{{0, -1}, {0, 3}, {3, 3}, {9, 5}, {50, 5}, {2, -1}, {0, 0}, {0, 2000}} {
				agree(t, s, w, &store.Read{Snapshot: snap, Table: table(t, snap, "task"), Fields: taskFields, Query: &record.Query{
					Sort: []record.Sort{{Path: path, Desc: desc}, {Path: "active"}}, Offset: page[0], Limit: page[1], Count: true,
				}})
			}
		}
	}
	agree(t, s, w, &store.Read{Snapshot: snap, Table: table(t, snap, "pair"), Fields: []string{"a", "b", "note"}, Query: all(nil, record.Sort{Path: "b", Desc: true})})
}

func testEach(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	w := Fill(t, s, snap)
	for _, paths := range [][]string{{"caller"}, {"priority"}, {"caller.team"}, {"priority", "active"}, {"amount"}, {"score"}, {"due"}, {"day"}, {}} {
		for _, sort := range [][]record.Sort{nil, {{Path: "short", Desc: true}}, {{Path: "amount"}, {Path: "caller.name"}}} {
			for _, page := range [][2]int64{{0, 1}, {0, 2}, {1, 1}, {1, -1}, {0, -1}, {0, 0}, {math.MaxInt64, math.MaxInt64}} {
				each := &record.Each{Paths: paths, Offset: page[0], Limit: page[1]}
				if each.Offset == math.MaxInt64 {
					each.Offset-- // what the evaluator adds up must not overflow
					each.Limit = 1
				}
				for _, outer := range [][2]int64{{0, -1}, {1, 2}, {0, 1500}} {
					agree(t, s, w, &store.Read{Snapshot: snap, Table: table(t, snap, "task"), Fields: taskFields, Query: &record.Query{
						Where: x(record.Ne, f("number"), c("INC03")), Sort: sort, Each: each, Offset: outer[0], Limit: outer[1], Count: true,
					}})
				}
			}
		}
	}
	rows := mustRows(t, s, &store.Read{Snapshot: snap, Table: table(t, snap, "task"), Fields: []string{"number"}, Query: &record.Query{
		Each: &record.Each{Paths: []string{"caller"}, Offset: 1, Limit: math.MaxInt64}, Limit: -1,
	}})
	if len(rows) == 0 {
		t.Error("a bound that is no bound leaves nothing")
	}
	_, _, err := rowsOf(t.Context(), s, &store.Read{Snapshot: snap, Table: table(t, snap, "task"), Fields: []string{"number"}, Query: &record.Query{
		Each: &record.Each{Paths: []string{"nosuch"}}, Limit: -1,
	}})
	if record.KindOf(err) != record.Invalid {
		t.Errorf("each of an unknown field: %v", err)
	}
}

func testBadQueries(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	deep := x(record.Always)
	for range 5000 {
		deep = record.Negate(deep)
	}
	task := table(t, snap, "task")
	read := func(e *expr) *store.Read {
		return &store.Read{Snapshot: snap, Table: task, Fields: []string{"number"}, Query: all(e)}
	}
	for name, q := range map[string]*store.Read{
		"field":       {Snapshot: snap, Table: task, Fields: []string{"nosuch"}},
		"walk":        {Snapshot: snap, Table: task, Fields: []string{"short.name"}},
		"where":       read(x(record.Eq, f("nosuch"), c(1))),
		"value":       read(x(record.Eq, f("priority"), c("many"))),
		"values":      read(in("priority", "many", 1)),
		"time":        read(x(record.Gt, f("due"), c("yesterday"))),
		"text":        read(x(record.Eq, f("short"), c("a\x00b"))),
		"utf8":        read(x(record.Contains, f("short"), c("\xff"))),
		"condition":   read(f("short")),
		"operand":     read(x(record.Eq, f("short"))),
		"no operand":  read(x(record.Not)),
		"sum":         {Snapshot: snap, Table: task, Query: &record.Query{Aggs: []record.Agg{{Func: record.Sum, Path: "short"}}, Limit: -1}},
		"nothing":     {Snapshot: snap, Table: task, Query: &record.Query{Aggs: []record.Agg{{Func: record.Sum}}, Limit: -1}},
		"group":       {Snapshot: snap, Table: task, Query: &record.Query{Group: []string{"nosuch"}, Limit: -1}},
		"sort":        {Snapshot: snap, Table: task, Query: &record.Query{Group: []string{"short"}, Sort: []record.Sort{{Path: "number"}}, Limit: -1}},
		"arithmetic":  read(x(record.Gt, x(record.Add, f("short"), c(1)), c(1))),
		"part":        read(x(record.Eq, x(record.Year, f("short")), c(1))),
		"deep":        read(deep),
		"times added": read(x(record.Eq, x(record.Add, f("due"), f("due")), c(1))),
	} {
		_, _, err := rowsOf(t.Context(), s, q)
		if err == nil || record.KindOf(err) != record.Invalid {
			t.Errorf("%s: %v, want invalid", name, err)
		}
	}
	_, _, err := rowsOf(t.Context(), s, read(related("nosuch", "a", "b", record.Ge, 1, nil)))
	if record.KindOf(err) != record.NoTable {
		t.Errorf("relation to an unknown table: %v", err)
	}
}

// hideTeams hides the teams marked so, people of inactive teams by a walk, and tasks of low priority.
func hideTeams(t *catalog.Table) *expr {
	switch t.Root {
	case "team":
		return x(record.Ne, f("hidden"), c(true))
	case "person":
		return x(record.Ne, f("team.parent.name"), c("Nobody"))
	case "task":
		return x(record.Le, f("priority"), c(4))
	}
	return nil
}

func testGuards(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	w := Fill(t, s, snap)
	secret := func(name string) func(*catalog.Table) *expr {
		return func(t *catalog.Table) *expr {
			if t.Name == "team" {
				return x(record.Ne, f("name"), c(name))
			}
			return nil
		}
	}
	related := related("person", "sys_id", "caller", record.Ge, 1, x(record.Eq, f("team.name"), c("Secret")))
	for _, guard := range []func(*catalog.Table) *expr{
		hideTeams, secret("Secret"), secret("Network"), // the same shape, other values
		func(t *catalog.Table) *expr { return x(record.Never) },
		func(t *catalog.Table) *expr {
			if t.Name == "person" {
				return x(record.Eq, f("team.parent.name"), c("Board"))
			}
			return nil
		},
		func(t *catalog.Table) *expr {
			if t.Root == "task" {
				return record.AnyOf(x(record.Eq, f("caller.team.name"), c("Secret")), in("caller", "p1", "p4"), related)
			}
			return nil
		},
	} {
		guarded := *w
		guarded.Guard = guard
		for _, e := range []*expr{
			nil, x(record.Eq, f("caller.team.name"), c("Secret")), x(record.Ne, f("caller.team.name"), c("Secret")),
			x(record.IsEmpty, f("caller.team.name")), related, in("caller.team", "t2", "t3"), x(record.Gt, f("priority"), c(1)),
		} {
			for _, name := range []string{"task", "incident"} {
				agree(t, s, &guarded, &store.Read{
					Snapshot: snap, Table: table(t, snap, name), Fields: append(taskFields, "caller.team.name"),
					Query: &record.Query{Where: e, Sort: []record.Sort{{Path: "caller.team.name", Desc: true}}, Limit: -1, Count: true},
				})
				agree(t, s, &guarded, &store.Read{
					Snapshot: snap, Table: table(t, snap, name),
					Query: &record.Query{Where: e, Group: []string{"caller.team.name"}, Aggs: []record.Agg{{}}, Limit: -1},
				})
			}
		}
	}
}

func testHierarchy(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	Fill(t, s, snap)
	for name, want := range map[string]int{"task": 11, "incident": 7, "problem": 2, "outage": 2} {
		q := &store.Read{Snapshot: snap, Table: table(t, snap, name), Fields: []string{"sys_id"}, Query: all(nil)}
		if got := len(mustRows(t, s, q)); got != want {
			t.Errorf("%s: %d records, want %d", name, got, want)
		}
	}
	// A key of another class is no record of this table.
	q := &store.Read{Snapshot: snap, Table: table(t, snap, "outage"), Fields: []string{"number"}, Keys: [][]record.Value{values("k03"), values("k10")}}
	if d := cmp.Diff([]string{"OUT01"}, texts(mustRows(t, s, q))); d != "" {
		t.Error(d)
	}
	q = &store.Read{Snapshot: snap, Table: table(t, snap, "outage"), Fields: []string{"severity", "downtime"}, Query: all(nil)}
	if d := cmp.Diff([]string{"1|120", "4|5"}, texts(mustRows(t, s, q))); d != "" {
		t.Error(d)
	}
}

func testKeys(t *testing.T, s store.Store) {
	snap := Snapshot(t)
	Create(t, s, snap)
	w := Fill(t, s, snap)
	key := func(list ...any) [][]record.Value {
		var keys [][]record.Value
		for _, k := range list {
			keys = append(keys, values(k))
		}
		return keys
	}
	var many []any
	for i := range 3000 {
		many = append(many, fmt.Sprintf("k%02d", i))
	}
	for _, keys := range [][][]record.Value{key("k03"), key("nosuch"), key("k03", "k01", "nosuch"), key("'", "\"", "\\"), {}, key(many...)} {
		for _, lock := range []bool{false, true} {
			q := &store.Read{Snapshot: snap, Table: table(t, snap, "task"), Fields: taskFields, Keys: keys, Query: all(x(record.Ne, f("number"), c("TSK01"))), Lock: lock}
			mustTx(t, s, func(tx store.Tx) { agree(t, tx, w, q) })
			q.Lock = false
			agree(t, s, w, q)
		}
	}
	for _, keys := range [][][]record.Value{
		{values("x", 2)}, {values("x", 9)}, {values("x", 1), values("y", 2), values("z'\"", -5), values("y", 3)}, {values("x", 1), values("y", 1)},
	} {
		agree(t, s, w, &store.Read{Snapshot: snap, Table: table(t, snap, "pair"), Fields: []string{"a", "b", "note"}, Keys: keys, Query: all(nil)})
	}
}
