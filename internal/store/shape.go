package store

import (
	"encoding/binary"
	"sync"
	"unicode/utf8"

	"weir/internal/catalog"
	"weir/internal/record"
)

// The shape of an expression is everything but its values: two expressions of one shape have the same text. The walk that
// writes the shape also collects the values, in the order that the compiler numbers them by.

// flat is the constants of one tree, in pre-order.
type flat struct {
	values []record.Value
	lists  [][]record.Value
}

// request is the scratch memory of one compilation.
type request struct {
	shape  []byte
	where  flat
	having []record.Value
	guards []flat // by compiled.touched
	within int    // relations that the expression at hand is in
}

var requests = sync.Pool{New: func() any { return &request{} }}

func newRequest() *request {
	r := requests.Get().(*request)
	r.shape = r.shape[:0]
	r.where.reset()
	r.having = r.having[:0]
	r.guards, r.within = r.guards[:0], 0
	return r
}

func (r *request) done() {
	r.where.forget()
	clear(r.having)
	for i := range r.guards {
		r.guards[i].forget()
	}
	requests.Put(r)
}

func (f *flat) reset() { f.values, f.lists = f.values[:0], f.lists[:0] }

// forget lets go of the request's memory.
func (f *flat) forget() {
	clear(f.values)
	clear(f.lists)
}

// guard is the next of the request's guards, its memory reused.
func (r *request) guard() *flat {
	if n := len(r.guards); n < cap(r.guards) {
		r.guards = r.guards[:n+1]
	} else {
		r.guards = append(r.guards, flat{})
	}
	f := &r.guards[len(r.guards)-1]
	f.reset()
	return f
}

func (r *request) text(s string) {
	r.shape = binary.AppendUvarint(r.shape, uint64(len(s)))
	r.shape = append(r.shape, s...)
}

func (r *request) flag(b bool) {
	if b {
		r.shape = append(r.shape, 1)
	} else {
		r.shape = append(r.shape, 0)
	}
}

// constShape is what the text of a statement may depend on: the form of a value, and whether it is a text that begins a
// range of its own.
func constShape(v record.Value) byte {
	s := byte(v.Form)
	if v.Form == record.Text {
		switch _, _, ok := prefixCut(v.S); {
		case v.S == "":
			s |= 0x10
		case ok:
			s |= 0x20
		}
	}
	return s
}

// listKind sorts the Values of an In by what their text depends on.
type listKind struct {
	n    int // non-null values: 0, 1, or 2 for more
	null bool
	form record.Form // of the non-null values; Num if numbers are mixed
}

func kindOf(values []record.Value) listKind {
	var k listKind
	for i := range values {
		switch f := values[i].Form; {
		case f == record.Null:
			k.null = true
		case k.n == 0:
			k.n, k.form = 1, f
		default:
			k.n = 2
			if k.form == record.Int && f == record.Num {
				k.form = f
			}
		}
	}
	return k
}

// onlyValue is the one non-null value of a list.
func onlyValue(values []record.Value) record.Value {
	for _, v := range values {
		if v.Form != record.Null {
			return v
		}
	}
	return record.Value{}
}

// counted reports whether a relation must count rows; if not, existence decides, or its absence.
func counted(rel *record.Relation) (count, exists bool) {
	switch {
	case rel.Cmp == record.Ge && rel.Count == 1, rel.Cmp == record.Gt && rel.Count == 0, rel.Cmp == record.Ne && rel.Count == 0:
		return false, true
	case rel.Cmp == record.Lt && rel.Count == 1, rel.Cmp == record.Le && rel.Count == 0, rel.Cmp == record.Eq && rel.Count == 0:
		return false, false
	}
	return true, false
}

// maxDepth bounds the nesting of expressions, so that no request can exhaust the stack or the database's parser.
const maxDepth = 200

// maxRelated bounds relations within relations. PostgreSQL joins them all and plans a hundred of them for minutes.
const maxRelated = 16

// expr appends the shape of e and collects its values into f.
func (r *request) expr(e *record.Expr, f *flat, depth int) error {
	if e == nil {
		r.shape = append(r.shape, 0xff)
		return nil
	}
	if depth > maxDepth {
		return record.Errorf(record.Invalid, "", "the condition is nested deeper than %d", maxDepth)
	}
	r.shape = append(r.shape, byte(e.Op))
	r.flag(e.Fold)
	switch e.Op {
	case record.Const:
		r.shape = append(r.shape, constShape(e.Value))
		f.values = append(f.values, e.Value)
	case record.Field:
		r.text(e.Path)
	case record.Instance:
		r.text(e.Value.S)
	case record.In:
		k := kindOf(e.Values)
		r.shape = append(r.shape, byte(k.n), byte(k.form))
		r.flag(k.null)
		switch k.n {
		case 1:
			f.values = append(f.values, onlyValue(e.Values))
		case 2:
			f.lists = append(f.lists, e.Values)
		}
	case record.Related, record.Via:
		if e.Rel == nil {
			return record.Errorf(record.Invalid, "", "a relation is missing")
		}
		if r.within++; r.within > maxRelated {
			return record.Errorf(record.Invalid, "", "the condition has relations nested deeper than %d", maxRelated)
		}
		count, exists := counted(e.Rel)
		r.text(e.Rel.Table)
		r.text(e.Rel.Field)
		r.text(e.Rel.Own)
		r.shape = binary.AppendUvarint(r.shape, uint64(len(e.Rel.More)))
		for i := range e.Rel.More {
			r.text(e.Rel.More[i].Field)
			r.text(e.Rel.More[i].Own)
		}
		r.shape = append(r.shape, byte(e.Rel.Cmp))
		r.flag(count)
		r.flag(exists)
		if count && e.Op == record.Related {
			f.values = append(f.values, record.IntValue(e.Rel.Count))
		}
		if err := r.expr(e.Rel.Where, f, depth+1); err != nil {
			return err
		}
		if err := r.expr(e.Rel.Value, f, depth+1); err != nil {
			return err
		}
		r.within--
	}
	r.shape = binary.AppendUvarint(r.shape, uint64(len(e.Args)))
	for _, a := range e.Args {
		if err := r.expr(a, f, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// numbered is a tree with each node's place among the collected values. The tree is copied, since one node may stand in
// several places.
type numbered struct {
	*record.Expr
	args  []*numbered
	where *numbered // of the relation
	of    *numbered // its Value
	n     int       // of Const, In with one value, counted Related: in flat.values; of In with several: in flat.lists
	guard *catalog.Table
}

type numbering struct {
	guard         *catalog.Table
	values, lists int
}

func (c *numbering) number(e *record.Expr) *numbered {
	if e == nil {
		return nil
	}
	n := &numbered{Expr: e, guard: c.guard}
	switch e.Op {
	case record.Const:
		n.n = c.values
		c.values++
	case record.In:
		switch kindOf(e.Values).n {
		case 1:
			n.n = c.values
			c.values++
		case 2:
			n.n = c.lists
			c.lists++
		}
	case record.Related, record.Via:
		if count, _ := counted(e.Rel); count && e.Op == record.Related {
			n.n = c.values
			c.values++
		}
		n.where = c.number(e.Rel.Where)
		n.of = c.number(e.Rel.Value)
	}
	for _, a := range e.Args {
		n.args = append(n.args, c.number(a))
	}
	return n
}

// prefixEnd is the least text after all texts that begin with s, in the order of code points; false if there is none.
func prefixEnd(s string) (string, bool) {
	head, next, ok := prefixCut(s)
	if !ok {
		return "", false
	}
	return head + string(next), true
}

// prefixCut is prefixEnd in two parts.
func prefixCut(s string) (head string, next rune, ok bool) {
	for s != "" {
		r, n := utf8.DecodeLastRuneInString(s)
		if r == utf8.RuneError && n <= 1 {
			return "", 0, false
		}
		s = s[:len(s)-n]
		switch r {
		case utf8.MaxRune:
			continue
		case 0xd7ff: // the surrogates are no characters
			return s, 0xe000, true
		}
		return s, r + 1, true
	}
	return "", 0, false
}
