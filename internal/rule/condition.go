package rule

import (
	"fmt"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Condition translates the where of an access grant into a condition that the database can check: comparisons, in,
// contains, startsWith, endsWith, and, or, not over fields (dot-walks too), constants and the actor (user.sys_id,
// user.name, user.roles). It is evaluated by the database, so it works on any number of records at once.
func Condition(snap *catalog.Snapshot, t *catalog.Table, where string, actor *record.Actor) (*record.Expr, error) {
	tree, err := parser.Parse(where)
	if err != nil {
		return nil, firstLine(err)
	}
	tr := &translator{snap: snap, table: t, actor: actor}
	return tr.condition(tree.Node)
}

type translator struct {
	snap  *catalog.Snapshot
	table *catalog.Table
	actor *record.Actor
}

// operand is one side of a comparison: a path of the record or constants.
type operand struct {
	path   string
	field  *catalog.Field
	values []any // one for a scalar, several for a list; nil entries are nil
	list   bool
}

var compareOps = map[string]record.ExprOp{
	"==": record.Eq, "!=": record.Ne, "<": record.Lt, "<=": record.Le, ">": record.Gt, ">=": record.Ge,
	"contains": record.Contains, "startsWith": record.StartsWith, "endsWith": record.EndsWith,
}

var mirrored = map[record.ExprOp]record.ExprOp{
	record.Eq: record.Eq, record.Ne: record.Ne, record.Lt: record.Gt, record.Le: record.Ge, record.Gt: record.Lt, record.Ge: record.Le,
}

func (tr *translator) condition(n ast.Node) (*record.Expr, error) {
	switch n := n.(type) {
	case *ast.BoolNode:
		return truth(n.Value), nil
	case *ast.UnaryNode:
		if n.Operator != "!" && n.Operator != "not" {
			break
		}
		e, err := tr.condition(n.Node)
		if err != nil {
			return nil, err
		}
		return record.Negate(e), nil
	case *ast.BinaryNode:
		switch n.Operator {
		case "&&", "and", "||", "or":
			a, err := tr.condition(n.Left)
			if err != nil {
				return nil, err
			}
			b, err := tr.condition(n.Right)
			if err != nil {
				return nil, err
			}
			op := record.And
			if n.Operator == "||" || n.Operator == "or" {
				op = record.Or
			}
			return record.Compare(op, a, b), nil
		}
		return tr.comparison(n)
	default:
		o, err := tr.operand(n)
		if err != nil {
			return nil, err
		}
		if o.field != nil && o.field.Type == record.TypeBoolean {
			return record.Compare(record.Eq, record.F(o.path), record.C(record.BoolValue(true))), nil
		}
	}
	return nil, fmt.Errorf("%s is not a condition that the database can check", n)
}

func truth(b bool) *record.Expr {
	if b {
		return &record.Expr{Op: record.Always}
	}
	return &record.Expr{Op: record.Never}
}

func (tr *translator) comparison(n *ast.BinaryNode) (*record.Expr, error) {
	left, err := tr.operand(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := tr.operand(n.Right)
	if err != nil {
		return nil, err
	}
	if n.Operator == "in" {
		return tr.membership(n, left, right)
	}
	op, ok := compareOps[n.Operator]
	if !ok || left.list || right.list {
		return nil, fmt.Errorf("%s is not a condition that the database can check", n)
	}
	switch {
	case left.field == nil && right.field == nil:
		return tr.constant(n, op, left.values[0], right.values[0])
	case left.field == nil:
		m, ok := mirrored[op]
		if !ok {
			return nil, fmt.Errorf("%s: write the field first", n)
		}
		left, right, op = right, left, m
	case right.field != nil:
		return record.Compare(op, record.F(left.path), record.F(right.path)), nil
	}
	v, err := fieldValue(left.field, right.values[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	if v.IsNull() {
		empty := &record.Expr{Op: record.IsEmpty, Args: []*record.Expr{record.F(left.path)}}
		switch op {
		case record.Eq:
			return empty, nil
		case record.Ne:
			return record.Negate(empty), nil
		}
		return truth(false), nil
	}
	return record.Compare(op, record.F(left.path), record.C(v)), nil
}

func (tr *translator) membership(n *ast.BinaryNode, left, right operand) (*record.Expr, error) {
	if !right.list || left.list {
		return nil, fmt.Errorf("%s: in takes a list on its right", n)
	}
	if left.field == nil {
		for _, v := range right.values {
			if v == left.values[0] {
				return truth(true), nil
			}
		}
		return truth(false), nil
	}
	in := &record.Expr{Op: record.In, Args: []*record.Expr{record.F(left.path)}}
	for _, x := range right.values {
		v, err := fieldValue(left.field, x)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		in.Values = append(in.Values, v)
	}
	return in, nil
}

func (tr *translator) constant(n ast.Node, op record.ExprOp, a, b any) (*record.Expr, error) {
	switch op {
	case record.Eq:
		return truth(a == b), nil
	case record.Ne:
		return truth(a != b), nil
	}
	return nil, fmt.Errorf("%s: compares two constants", n)
}

func (tr *translator) operand(n ast.Node) (operand, error) {
	switch n := n.(type) {
	case *ast.NilNode:
		return operand{values: []any{nil}}, nil
	case *ast.BoolNode:
		return operand{values: []any{n.Value}}, nil
	case *ast.IntegerNode:
		return operand{values: []any{n.Value}}, nil
	case *ast.FloatNode:
		return operand{values: []any{n.Value}}, nil
	case *ast.StringNode:
		return operand{values: []any{n.Value}}, nil
	case *ast.ConstantNode:
		return operand{values: []any{n.Value}}, nil
	case *ast.ArrayNode:
		o := operand{list: true}
		for _, item := range n.Nodes {
			v, err := tr.operand(item)
			if err != nil || v.list || v.field != nil {
				return operand{}, fmt.Errorf("%s: a list holds constants", n)
			}
			o.values = append(o.values, v.values[0])
		}
		return o, nil
	}
	path, ok := pathOf(n)
	if !ok {
		return operand{}, fmt.Errorf("%s is not a field, a constant or user", n)
	}
	switch path {
	case "user.sys_id", "user.name":
		v := tr.actor.Key
		if path == "user.name" {
			v = tr.actor.Name
		}
		if v == "" {
			return operand{values: []any{nil}}, nil
		}
		return operand{values: []any{v}}, nil
	case "user.roles":
		o := operand{list: true}
		for _, role := range tr.actor.Roles {
			o.values = append(o.values, role)
		}
		return o, nil
	}
	steps, err := tr.snap.Resolve(tr.table, path)
	if err != nil {
		return operand{}, err
	}
	return operand{path: path, field: steps[len(steps)-1].Field}, nil
}

// pathOf is the dotted path of an identifier or a chain of members.
func pathOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return n.Value, true
	case *ast.ChainNode:
		return pathOf(n.Node)
	case *ast.MemberNode:
		base, ok := pathOf(n.Node)
		name, isName := n.Property.(*ast.StringNode)
		return base + "." + nameOf(name), ok && isName
	}
	return "", false
}

func nameOf(n *ast.StringNode) string {
	if n == nil {
		return ""
	}
	return n.Value
}
