// Package dialecttest runs golden wire files: what a client sends, the ops that a dialect makes of it, what became of the
// ops, and what the client gets. The files are txtar archives that people who know the protocol can read.
package dialecttest

import (
	"fmt"
	"strconv"
	"strings"

	"weir/internal/record"
)

// Print is ops as stable text, one op to a line:
//
//	list incident where active = true and state in (1, 2) sort number, sys_id limit 10 offset 5 count returning number
//	insert incident {short_description: "disk full", urgency: 1} returning number, priority
//
// A tilde after an operator says that case does not count. Times are written @2026-11-30 17:02:10.
func Print(ops []record.Op) string {
	var b strings.Builder
	for i := range ops {
		b.WriteString(printOp(&ops[i]))
		b.WriteByte('\n')
	}
	return b.String()
}

func printOp(op *record.Op) string {
	var b strings.Builder
	word := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, format, args...)
	}
	word("%s", op.Verb)
	if op.Table != "" {
		word("%s", op.Table)
	}
	if op.Invoke != nil && op.Invoke.SQL == nil {
		word("%s %s", op.Invoke.Endpoint, op.Invoke.Args)
	} else if op.Invoke != nil {
		word("%s %s", op.Invoke.Endpoint, printSQL(op.Invoke.SQL))
	}
	if len(op.Key) > 0 {
		word("[%s]", printValues(op.Key))
	}
	if len(op.Match) > 0 {
		word("match %s", strings.Join(op.Match, ", "))
	}
	if op.Verb == record.Insert || op.Verb == record.Update || op.Verb == record.Upsert {
		word("%s", printSet(op.Set))
	}
	if op.New != nil {
		word("new %s", printSet(op.New))
	}
	if q := op.Query; q != nil {
		if q.Where != nil {
			word("where %s", PrintExpr(q.Where))
		}
		if len(q.Group) > 0 {
			word("group %s", strings.Join(q.Group, ", "))
		}
		if len(q.Aggs) > 0 {
			var aggs []string
			for _, a := range q.Aggs {
				aggs = append(aggs, PrintAgg(a))
			}
			word("of %s", strings.Join(aggs, ", "))
		}
		for i, h := range q.Having {
			word("%s %s %s %s", []string{"having", "and"}[min(i, 1)], PrintAgg(h.Agg), symbols[h.Cmp], PrintValue(h.Value))
		}
		if len(q.Sort) > 0 {
			var keys []string
			for _, s := range q.Sort {
				key := s.Path
				if s.Agg != nil {
					key = PrintAgg(*s.Agg)
				}
				if s.Desc {
					key += " desc"
				}
				keys = append(keys, key)
			}
			word("sort %s", strings.Join(keys, ", "))
		}
		if e := q.Each; e != nil {
			word("each %s", strings.Join(e.Paths, ", "))
			if e.Limit >= 0 {
				word("limit %d", e.Limit)
			}
			if e.Offset > 0 {
				word("offset %d", e.Offset)
			}
		}
		if q.Limit >= 0 {
			word("limit %d", q.Limit)
		}
		if q.Offset > 0 {
			word("offset %d", q.Offset)
		}
		if q.Count {
			word("count")
		}
	}
	for _, c := range op.If {
		switch {
		case c.Field == "" && c.Failed:
			word("if op %d failed", c.Op)
		case c.Field == "":
			word("if op %d succeeded", c.Op)
		case c.Negate:
			word("if %s not in (%s)", c.Field, printValues(c.Values))
		default:
			word("if %s in (%s)", c.Field, printValues(c.Values))
		}
	}
	if op.Group != 0 {
		word("in group %d", op.Group)
	}
	if op.Actor != 0 {
		word("by actor %d", op.Actor)
	}
	if op.Keep {
		word("keep")
	}
	if op.Token != "" {
		word("token %q", op.Token)
	}
	if len(op.Return) > 0 {
		word("returning %s", strings.Join(op.Return, ", "))
	}
	return b.String()
}

// printSQL is a call of a SQL endpoint: (10, null) where a > 1 sort a limit 26 offset 25 tags x match y.
func printSQL(c *record.SQLCall) string {
	s := "(" + printValues(c.Binds) + ")"
	if c.Where != nil {
		s += " where " + PrintExpr(c.Where)
	}
	for i, k := range c.Sort {
		s += []string{" sort ", ", "}[min(i, 1)] + k.Path
		if k.Desc {
			s += " desc"
		}
	}
	if c.Limit >= 0 {
		s += fmt.Sprintf(" limit %d", c.Limit)
	}
	if c.Offset > 0 {
		s += fmt.Sprintf(" offset %d", c.Offset)
	}
	if len(c.Tags) > 0 {
		s += " tags " + strings.Join(c.Tags, ", ")
	}
	if len(c.Match) > 0 {
		s += " match " + strings.Join(c.Match, ", ")
	}
	return s
}

func printSet(list []record.Assign) string {
	set := make([]string, len(list))
	for i, a := range list {
		set[i] = a.Field + ": " + PrintValue(a.Value)
	}
	return "{" + strings.Join(set, ", ") + "}"
}

var aggNames = [...]string{"count", "sum", "avg", "min", "max", "count distinct"}

// PrintAgg is an aggregate as text: count, avg(reassignment_count).
func PrintAgg(a record.Agg) string {
	if a.Path == "" {
		return aggNames[a.Func]
	}
	return aggNames[a.Func] + "(" + a.Path + ")"
}

// PrintValue is a value as text.
func PrintValue(v record.Value) string {
	switch v.Form {
	case record.Null:
		return "null"
	case record.Text:
		return strconv.Quote(v.S)
	case record.Time:
		return "@" + v.Text()
	}
	return v.Text()
}

func printValues(list []record.Value) string {
	var texts []string
	for _, v := range list {
		texts = append(texts, PrintValue(v))
	}
	return strings.Join(texts, ", ")
}

var symbols = map[record.ExprOp]string{
	record.Eq: "=", record.Ne: "!=", record.Lt: "<", record.Le: "<=", record.Gt: ">", record.Ge: ">=",
	record.Contains: "contains", record.Like: "like", record.StartsWith: "starts", record.EndsWith: "ends",
}

var functions = map[record.ExprOp]string{
	record.Lower: "lower", record.Upper: "upper", record.Length: "length", record.Trim: "trim", record.Concat: "concat",
	record.Substring: "substring", record.IndexOf: "indexof", record.Replace: "replace", record.Add: "add", record.Sub: "sub",
	record.Mul: "mul", record.Div: "div", record.Mod: "mod", record.Neg: "neg", record.Round: "round", record.Floor: "floor",
	record.Ceiling: "ceiling", record.Year: "year", record.Month: "month", record.Day: "day", record.Hour: "hour",
	record.Minute: "minute", record.Second: "second", record.Weekday: "weekday", record.Quarter: "quarter",
	record.Fraction: "fraction",
}

// PrintExpr is an expression as text. Its depth is that of the expression.
func PrintExpr(e *record.Expr) string {
	if e == nil {
		return "always"
	}
	fold := ""
	if e.Fold {
		fold = "~"
	}
	switch e.Op {
	case record.Const:
		return PrintValue(e.Value)
	case record.Field:
		return e.Path
	case record.Always:
		return "always"
	case record.Never:
		return "never"
	case record.And:
		return joinArgs(e.Args, " and ", record.Or)
	case record.Or:
		return joinArgs(e.Args, " or ", record.And)
	case record.Not:
		return "not (" + PrintExpr(e.Args[0]) + ")"
	case record.In:
		return PrintExpr(e.Args[0]) + " in" + fold + " (" + printValues(e.Values) + ")"
	case record.IsEmpty:
		return PrintExpr(e.Args[0]) + " empty"
	case record.Instance:
		return "instance of " + e.Value.S
	case record.Related, record.Via:
		r := e.Rel
		rows := r.Table + "." + r.Field + " = " + r.Own
		for _, tie := range r.More {
			rows += ", " + tie.Field + " = " + tie.Own
		}
		if r.Where != nil {
			rows += " where " + PrintExpr(r.Where)
		}
		if e.Op == record.Via {
			return fmt.Sprintf("via(%s: %s)", rows, PrintExpr(r.Value))
		}
		return fmt.Sprintf("count(%s) %s %d", rows, symbols[r.Cmp], r.Count)
	}
	if s, ok := symbols[e.Op]; ok {
		return PrintExpr(e.Args[0]) + " " + s + fold + " " + PrintExpr(e.Args[1])
	}
	var args []string
	for _, a := range e.Args {
		args = append(args, PrintExpr(a))
	}
	return functions[e.Op] + fold + "(" + strings.Join(args, ", ") + ")"
}

// joinArgs puts brackets around arguments that are the other junction.
func joinArgs(args []*record.Expr, sep string, other record.ExprOp) string {
	var texts []string
	for _, a := range args {
		s := PrintExpr(a)
		if a.Op == other {
			s = "(" + s + ")"
		}
		texts = append(texts, s)
	}
	return strings.Join(texts, sep)
}
