package record

// ExprOp is the operator of an [Expr].
type ExprOp uint8

// The operators. Logic is two-valued: a comparison with null is false, except that Eq holds between two nulls and Ne is
// the opposite of Eq, so `a != 1` finds rows whose a is null; Not is the opposite of its argument. A value operator with
// a null argument is null.
const (
	Const  ExprOp = iota // Value
	Field                // Path: a field, or a dot-walk over references ("caller_id.department.name"); a walk through an empty reference is null
	Always               // true
	Never                // false
	And                  // all Args (none: true)
	Or                   // any Args (none: false)
	Not                  // Args[0] is false

	Eq // Args[0], Args[1]
	Ne
	Lt
	Le
	Gt
	Ge
	In         // Args[0] equals any of Values; empty: false
	Contains   // text Args[0] contains text Args[1]; no wildcards
	StartsWith // text
	EndsWith   // text
	IsEmpty    // Args[0] is null or ''
	Instance   // the record's class is Value (a table name) or descends from it
	Related    // Rel: rows of another table that belong to this one

	// Value operators.
	Lower  // of text
	Upper  // of text
	Length // of text, in characters
	Trim
	Concat
	Substring // Args[0] from the 0-based character Args[1], for Args[2] characters if given
	IndexOf   // 0-based character position of Args[1] in Args[0], -1 if absent
	Replace
	Add // numbers; a DateTime plus seconds
	Sub // numbers; a DateTime minus seconds, or the seconds between two DateTimes
	Mul
	Div
	Mod
	Neg
	Round
	Floor
	Ceiling
	Year // parts of a DateTime or Date, UTC
	Month
	Day
	Hour
	Minute
	Second
	Weekday // 1 = Monday … 7 = Sunday
	Quarter
	Fraction // of the second of a DateTime or Date, 0 up to 1
	Via      // Rel.Value of the row of another table that belongs to this one: the first by key if there are several, null if none

	Like // text Args[0] is as the pattern Args[1] says: % stands for any characters, _ for one; nothing escapes them
	numExprOps
)

// Expr is a condition or a value over the fields of one record: a tree of data, compiled to SQL by the store and
// evaluated in memory by tests.
type Expr struct {
	Op     ExprOp
	Path   string    // Field
	Value  Value     // Const, Instance (class name in S)
	Values []Value   // In
	Args   []*Expr   // operands
	Fold   bool      // Eq, Ne, Lt … EndsWith, In, Contains on text: without regard to case
	Rel    *Relation // Related, Via
}

// Relation is rows of another table: those whose Field equals the Own field of the record at hand, likewise all of More, and
// that satisfy Where. Null equals nothing here. Related holds if the number of rows compares to Count by Cmp (Eq, Ne, Lt, Le, Gt,
// Ge); existence is Ge 1. Via is Value of such a row.
type Relation struct {
	Table string
	Field string // a path in Table
	Own   string // a path in the record's table
	More  []Tie
	Where *Expr // over Table; nil: all
	Cmp   ExprOp
	Count int64
	Value *Expr // over Table
}

// Tie is a further pair of paths that a relation compares.
type Tie struct{ Field, Own string }

// F is a field or dot-walk as an expression.
func F(path string) *Expr { return &Expr{Op: Field, Path: path} }

// C is a constant expression.
func C(v Value) *Expr { return &Expr{Op: Const, Value: v} }

// Compare is an expression of two operands.
func Compare(op ExprOp, a, b *Expr) *Expr { return &Expr{Op: op, Args: []*Expr{a, b}} }

// AllOf joins conditions by And, leaving out nils; nil if none is left.
func AllOf(list ...*Expr) *Expr {
	kept := make([]*Expr, 0, len(list))
	for _, e := range list {
		if e != nil && e.Op != Always {
			kept = append(kept, e)
		}
	}
	switch len(kept) {
	case 0:
		return nil
	case 1:
		return kept[0]
	}
	return &Expr{Op: And, Args: kept}
}

// AnyOf joins conditions by Or; Never if there are none.
func AnyOf(list ...*Expr) *Expr {
	switch len(list) {
	case 0:
		return &Expr{Op: Never}
	case 1:
		return list[0]
	}
	return &Expr{Op: Or, Args: list}
}

// Negate is the opposite of e.
func Negate(e *Expr) *Expr { return &Expr{Op: Not, Args: []*Expr{e}} }

// Walk calls f for e and every expression below it, those of relations included (with their table: "" is the record's
// own). It stops when f returns false.
func (e *Expr) Walk(table string, f func(table string, e *Expr) bool) bool {
	if e == nil {
		return true
	}
	if !f(table, e) {
		return false
	}
	for _, a := range e.Args {
		if !a.Walk(table, f) {
			return false
		}
	}
	if e.Rel != nil {
		return e.Rel.Where.Walk(e.Rel.Table, f) && e.Rel.Value.Walk(e.Rel.Table, f)
	}
	return true
}
