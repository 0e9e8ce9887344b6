package odata

import (
	"strings"

	"weir/internal/catalog"
	"weir/internal/edm"
	"weir/internal/record"
)

// walk is a path over navigation properties that lead to one entity each, from the entity that an expression is about. A
// navigation property that stands over a reference is a dot-walk; any other one is a relation, and what follows it a value through it.
type walk struct {
	q    *request
	base *edm.Type // whose table prefix begins at
	typ  *edm.Type // reached
	// prefix is the dot-walk from base, with its last dot.
	prefix string
	// through are the relations before base, outermost first.
	through []record.Relation
}

func (q *request) walk(typ *edm.Type) walk { return walk{q: q, base: typ, typ: typ} }

// relation is the rows that nav leads to. It is false for a navigation property that compares nothing, below a transport shell.
func (w *walk) relation(nav *edm.Nav) (record.Relation, bool) {
	if len(nav.On) == 0 || nav.Target.Type.Table == nil || nav.Owner.Table == nil {
		return record.Relation{}, false
	}
	r := record.Relation{Table: nav.Target.Type.Table.Name, Field: nav.On[0].Other.Path, Own: w.prefix + nav.On[0].Own.Path}
	for _, link := range nav.On[1:] {
		r.More = append(r.More, record.Tie{Field: link.Other.Path, Own: w.prefix + link.Own.Path})
	}
	return r, true
}

// step follows a navigation property to one entity. It is false where relation is.
func (w *walk) step(nav *edm.Nav) bool {
	r, ok := w.relation(nav)
	if !ok {
		return false
	}
	w.typ = nav.Target.Type
	if w.q.walkable(nav) && strings.Count(w.prefix, ".") < catalog.MaxWalk {
		w.prefix += nav.On[0].Own.Path + "."
		return true
	}
	w.through = append(w.through[:len(w.through):len(w.through)], r)
	w.base, w.prefix = w.typ, ""
	return true
}

// walkable reports whether a navigation property is what a reference field means.
func (q *request) walkable(nav *edm.Nav) bool {
	target := nav.Target.Type.Table
	if len(nav.On) != 1 || target.SingleKey() == nil || nav.On[0].Other.Field != target.SingleKey() {
		return false
	}
	f := q.fieldOf(nav.Owner, nav.On[0].Own)
	return f != nil && f.Type == record.TypeReference && f.Reference == target.Name
}

// fieldOf is the field that a property of typ stands over, also at the end of a dot-walk; nil in shells.
func (q *request) fieldOf(typ *edm.Type, p *edm.Property) *catalog.Field {
	if p.Field != nil || p.Path == "" || typ.Table == nil {
		return p.Field
	}
	steps, err := q.snap.Resolve(typ.Table, p.Path)
	if err != nil {
		return nil
	}
	return steps[len(steps)-1].Field
}

// path is the record path of a property of the entity reached, false if it is no path.
func (w *walk) path(p *edm.Property) (string, bool) {
	if p.Path == "" || len(w.through) > 0 {
		return "", false
	}
	path := w.prefix + p.Path
	if strings.Count(path, ".") > catalog.MaxWalk {
		return "", false
	}
	return path, true
}

// value is a property of the entity reached as an expression. It is false for what has no value, and for walks that are too long.
func (w *walk) value(p *edm.Property) (*record.Expr, bool) {
	path := w.prefix + p.Path
	if p.Path == "" || strings.Count(path, ".") > catalog.MaxWalk {
		return nil, false
	}
	e := record.F(path)
	for i := len(w.through) - 1; i >= 0; i-- {
		r := w.through[i]
		r.Value = e
		e = &record.Expr{Op: record.Via, Rel: &r}
	}
	return e, true
}

// counts is the condition that the rows of r that satisfy where are so many. Through an entity that is not there they are none.
func (w *walk) counts(r record.Relation, where *record.Expr, cmp record.ExprOp, n int64) *record.Expr {
	r.Where, r.Cmp, r.Count = where, cmp, n
	none := holdsFor(cmp, 0, n)
	if none && len(w.through) > 0 {
		r.Cmp = opposite[cmp]
	}
	e := &record.Expr{Op: record.Related, Rel: &r}
	for i := len(w.through) - 1; i >= 0; i-- {
		t := w.through[i]
		t.Where, t.Cmp, t.Count = e, record.Ge, 1
		e = &record.Expr{Op: record.Related, Rel: &t}
	}
	if none && len(w.through) > 0 {
		e = record.Negate(e)
	}
	return e
}

// opposite is the comparison that holds where another does not.
var opposite = map[record.ExprOp]record.ExprOp{
	record.Eq: record.Ne, record.Ne: record.Eq, record.Lt: record.Ge, record.Ge: record.Lt, record.Gt: record.Le, record.Le: record.Gt,
}

// holdsFor reports whether a compares to b by op.
func holdsFor(op record.ExprOp, a, b int64) bool {
	switch op {
	case record.Eq:
		return a == b
	case record.Ne:
		return a != b
	case record.Lt:
		return a < b
	case record.Le:
		return a <= b
	case record.Gt:
		return a > b
	}
	return a >= b
}
