package rule

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"weir/internal/catalog"
	"weir/internal/record"
)

// expression is one compiled expression of a rule, in the syntax of expr-lang: the names of fields are their new values
// (nil when empty), previous.f the stored ones, changed("f"), now() in whole seconds, instant() which is now()
// with milliseconds and so tells versions of a record apart, user.sys_id, user.name, user.roles and lookup("matrix", …). Comparison by order with nil is false, arithmetic with nil is nil.
type expression struct {
	text     string
	program  *vm.Program
	fields   []*catalog.Field // read as new values
	previous []*catalog.Field
	changed  []*catalog.Field
	ordered  []*catalog.Field // direct operands of order comparisons and arithmetic
	now      bool             // reads the time, in one of its forms
	user     bool
	constant bool // reads nothing of the record and its actor
}

// The names under which values that are no fields stand in the environment. No identifier can contain "@".
const (
	envNow     = "@now"
	envInstant = "@instant"
	envChanged = "@changed."
	envUser    = "user"
	envPrev    = "previous"
)

func compileExpression(t *catalog.Table, text string) (*expression, error) {
	e := &expression{text: text}
	c := &collector{table: t, e: e}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, firstLine(err)
	}
	ast.Walk(&tree.Node, c)
	if c.err != nil {
		return nil, c.err
	}
	e.constant = len(e.fields)+len(e.previous)+len(e.changed) == 0 && !e.user
	e.program, err = expr.Compile(text, expr.Env(map[string]any{}), expr.AllowUndefinedVariables(), expr.DisableBuiltin("now"), expr.Patch(rewriter{}),
		operator("@lt", ordered(func(c int) bool { return c < 0 })), operator("@le", ordered(func(c int) bool { return c <= 0 })),
		operator("@gt", ordered(func(c int) bool { return c > 0 })), operator("@ge", ordered(func(c int) bool { return c >= 0 })),
		operator("@add", arithmetic('+')), operator("@sub", arithmetic('-')), operator("@mul", arithmetic('*')),
		operator("@div", arithmetic('/')), operator("@mod", arithmetic('%')),
		expr.Function("lookup", lookupIn(t.Matrices)),
	)
	if err != nil {
		return nil, firstLine(err)
	}
	return e, nil
}

// firstLine keeps the message of an expr-lang error and drops its picture of the source.
func firstLine(err error) error {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s", line)
}

// collector finds what an expression reads and refuses names that mean nothing.
type collector struct {
	table *catalog.Table
	e     *expression
	err   error
}

var functions = map[string]bool{"now": true, "instant": true, "changed": true, "lookup": true}

func (c *collector) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		switch {
		case n.Value == envUser:
			c.e.user = true
		case n.Value == envPrev || functions[n.Value]:
		default:
			if f := c.field(n.Value); f != nil {
				c.e.fields = add(c.e.fields, f)
			}
		}
	case *ast.MemberNode:
		name, ok := n.Property.(*ast.StringNode)
		base, isName := n.Node.(*ast.IdentifierNode)
		if ok && isName && base.Value == envPrev {
			if f := c.field(name.Value); f != nil {
				c.e.previous = add(c.e.previous, f)
			}
		}
	case *ast.CallNode:
		callee, _ := n.Callee.(*ast.IdentifierNode)
		if callee == nil {
			return
		}
		switch callee.Value {
		case "now", "instant":
			c.e.now = true
		case "changed":
			name, ok := stringArg(n)
			if !ok {
				c.err = fmt.Errorf(`changed takes the name of a field: changed("state")`)
				return
			}
			if f := c.field(name); f != nil {
				c.e.changed = add(c.e.changed, f)
			}
		case "lookup":
			name, ok := firstString(n)
			if ok && c.table.Matrices[name] == nil {
				c.err = fmt.Errorf("lookup: table %s has no matrix %q", c.table.Name, name)
			}
		}
	case *ast.BuiltinNode:
		// Ours takes the time of the write; the library's own reads the clock and is switched off below.
		c.e.now = c.e.now || n.Name == "now"
	case *ast.BinaryNode:
		if operators[n.Operator] != "" {
			for _, side := range []ast.Node{n.Left, n.Right} {
				if id, ok := side.(*ast.IdentifierNode); ok {
					if f := c.table.Field(id.Value); f != nil {
						c.e.ordered = add(c.e.ordered, f)
					}
				}
			}
		}
	}
}

func (c *collector) field(name string) *catalog.Field {
	f := c.table.Field(name)
	if f == nil && c.err == nil {
		c.err = fmt.Errorf("table %s has no field %q", c.table.Name, name)
	}
	return f
}

func add(list []*catalog.Field, f *catalog.Field) []*catalog.Field {
	for _, have := range list {
		if have == f {
			return list
		}
	}
	return append(list, f)
}

func stringArg(n *ast.CallNode) (string, bool) {
	if len(n.Arguments) != 1 {
		return "", false
	}
	return firstString(n)
}

func firstString(n *ast.CallNode) (string, bool) {
	if len(n.Arguments) == 0 {
		return "", false
	}
	s, ok := n.Arguments[0].(*ast.StringNode)
	if !ok {
		return "", false
	}
	return s.Value, true
}

// rewriter turns now(), instant() and changed("f") into plain names of the environment, and operators into forms that take nil.
type rewriter struct{}

var operators = map[string]string{
	"<": "@lt", "<=": "@le", ">": "@gt", ">=": "@ge", "+": "@add", "-": "@sub", "*": "@mul", "/": "@div", "%": "@mod",
}

func (rewriter) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.CallNode:
		callee, _ := n.Callee.(*ast.IdentifierNode)
		if callee == nil {
			return
		}
		switch callee.Value {
		case "now":
			ast.Patch(node, &ast.IdentifierNode{Value: envNow})
		case "instant":
			ast.Patch(node, &ast.IdentifierNode{Value: envInstant})
		case "changed":
			name, _ := stringArg(n)
			ast.Patch(node, &ast.IdentifierNode{Value: envChanged + name})
		}
	case *ast.BinaryNode:
		if f := operators[n.Operator]; f != "" {
			ast.Patch(node, &ast.CallNode{Callee: &ast.IdentifierNode{Value: f}, Arguments: []ast.Node{n.Left, n.Right}})
		}
	}
}

func operator(name string, f func(a, b any) any) expr.Option {
	return expr.Function(name, func(p ...any) (any, error) { return f(p[0], p[1]), nil }, new(func(any, any) any))
}

func ordered(holds func(int) bool) func(a, b any) any {
	return func(a, b any) any {
		c, ok := compare(a, b)
		return ok && holds(c)
	}
}

func compare(a, b any) (int, bool) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), true
		}
	case time.Time:
		if y, ok := b.(time.Time); ok {
			return x.Compare(y), true
		}
		return 0, false
	}
	x, okX := number(a)
	y, okY := number(b)
	if !okX || !okY || math.IsNaN(x) || math.IsNaN(y) {
		return 0, false
	}
	switch {
	case x < y:
		return -1, true
	case x > y:
		return 1, true
	}
	return 0, true
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case int:
		return float64(x), true
	case int64:
		return float64(x), true
	case float64:
		return x, true
	case string:
		f, err := strconv.ParseFloat(x, 64)
		return f, err == nil
	}
	return 0, false
}

// arithmetic on integers stays integer but for division; a time plus or minus a number is in seconds, the difference of
// two times too; + joins texts.
func arithmetic(op byte) func(a, b any) any {
	return func(a, b any) any {
		if t, ok := a.(time.Time); ok {
			if u, ok := b.(time.Time); ok && op == '-' {
				return int(t.Sub(u) / time.Second)
			}
			n, ok := number(b)
			if !ok {
				return nil
			}
			d := time.Duration(n * float64(time.Second))
			if op == '-' {
				d = -d
			}
			return t.Add(d)
		}
		x, okX := a.(int)
		y, okY := b.(int)
		if okX && okY {
			switch op {
			case '+':
				return x + y
			case '-':
				return x - y
			case '*':
				return x * y
			case '%':
				if y == 0 {
					return nil
				}
				return x % y
			}
		}
		if s, ok := a.(string); ok && op == '+' {
			if u, ok := b.(string); ok {
				return s + u
			}
		}
		f, okF := number(a)
		g, okG := number(b)
		if !okF || !okG {
			return nil
		}
		switch op {
		case '+':
			return f + g
		case '-':
			return f - g
		case '*':
			return f * g
		case '/':
			if g == 0 {
				return nil
			}
			return f / g
		}
		if g == 0 {
			return nil
		}
		return math.Mod(f, g)
	}
}

// lookupIn finds a row of a matrix whose leading columns equal the arguments and returns its last column, nil if none.
func lookupIn(matrices map[string][][]any) func(p ...any) (any, error) {
	index := map[string]map[string]any{}
	for name, rows := range matrices {
		index[name] = map[string]any{}
		for _, row := range rows {
			if len(row) > 1 {
				index[name][matrixKey(row[:len(row)-1])] = row[len(row)-1]
			}
		}
	}
	return func(p ...any) (any, error) {
		if len(p) == 0 {
			return nil, nil
		}
		name, _ := p[0].(string)
		return index[name][matrixKey(p[1:])], nil
	}
}

func matrixKey(parts []any) string {
	var b []byte
	for _, p := range parts {
		switch x := p.(type) {
		case int:
			b = strconv.AppendInt(b, int64(x), 10)
		case string:
			b = append(b, x...)
		case nil:
		default:
			b = fmt.Append(b, x)
		}
		b = append(b, 0)
	}
	return string(b)
}

// goValue is v as expressions see it: nil, bool, int, float64, string or time.Time. Decimals compute as float64.
func goValue(f *catalog.Field, v record.Value) any {
	switch v.Form {
	case record.Bool:
		return v.N != 0
	case record.Int:
		return int(v.N)
	case record.Num:
		return v.Float()
	case record.Time:
		return v.Time()
	case record.Text:
		if v.S == "" {
			return nil
		}
		if f.Type == record.TypeDecimal {
			return v.Float()
		}
		return v.S
	}
	return nil
}

// fieldValue is the result of an expression as a value of field f.
func fieldValue(f *catalog.Field, x any) (record.Value, error) {
	switch y := x.(type) {
	case nil:
		return record.Value{}, nil
	case time.Time:
		switch f.Type {
		case record.TypeDateTime:
			return record.TimeValue(y), nil
		case record.TypeDate:
			return record.TextValue(y.UTC().Format("2006-01-02")), nil
		}
		return record.Parse(f.Type, record.TimeValue(y).Text())
	case float64:
		if f.Type == record.TypeInteger || f.Type == record.TypeDuration {
			return record.IntValue(int64(math.Round(y))), nil
		}
		return record.Parse(f.Type, strconv.FormatFloat(y, 'f', -1, 64))
	case int:
		if f.Type == record.TypeInteger || f.Type == record.TypeDuration {
			return record.IntValue(int64(y)), nil
		}
		return record.Parse(f.Type, strconv.Itoa(y))
	case string:
		return record.Parse(f.Type, y)
	}
	return record.Parse(f.Type, fmt.Sprint(x))
}
