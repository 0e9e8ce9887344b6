package odata

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"weir/internal/edm"
	"weir/internal/record"
)

// class is what values can be compared with each other.
type class uint8

const (
	textClass class = iota
	truthClass
	numberClass
	momentClass // points in time and days
	clockClass  // times of day
	spanClass
	guidClass
	byteClass
)

func classOf(k edm.Kind) class {
	switch k {
	case edm.Boolean:
		return truthClass
	case edm.DateTimeOffset, edm.Date:
		return momentClass
	case edm.TimeOfDay:
		return clockClass
	case edm.Duration:
		return spanClass
	case edm.GUID:
		return guidClass
	case edm.Binary:
		return byteClass
	}
	if k.Numeric() {
		return numberClass
	}
	return textClass
}

var flipped = map[record.ExprOp]record.ExprOp{
	record.Eq: record.Eq, record.Ne: record.Ne, record.Lt: record.Gt, record.Gt: record.Lt, record.Le: record.Ge, record.Ge: record.Le,
}

// compare makes the condition `a op b`. A comparison of what cannot be compared is Invalid and names both.
func (p *filterParser) compare(at int, op record.ExprOp, a, b operand) (operand, error) {
	if a.lit != nil && b.lit == nil {
		a, b, op = b, a, flipped[op]
	}
	out := operand{cond: true, at: a.at}
	ordered := op != record.Eq && op != record.Ne
	if b.having != nil || a.having != nil {
		return out, p.unsupported(at, "a condition on an aggregate cannot be compared")
	}
	var err error
	switch {
	case a.agg != nil || b.agg != nil:
		out.having, err = p.having(at, op, &a, &b)
		return out, err
	case a.rows != nil || b.rows != nil:
		out.yes, err = p.counted(at, op, &a, &b)
		return out, err
	case b.lit != nil && b.lit.null():
		out.yes, err = p.withNull(at, op, &a)
		return out, err
	case a.nav != nil || b.nav != nil:
		return out, p.invalid(at, "%s can be compared with null alone", p.what(firstNav(&a, &b)))
	}
	kindA, kindB := a.shown(), b.shown()
	if classOf(kindA) != classOf(kindB) && !p.fits(&a, &b) {
		return out, p.invalid(b.at, "%s cannot be compared with %s", p.what(&a), p.what(&b))
	}
	if c := classOf(kindA); ordered && (c == truthClass || c == byteClass) {
		return out, p.invalid(at, "%s has no order", p.what(&a))
	}
	switch {
	case a.lit != nil:
		out.yes = constants(op, &a, &b)
	case b.lit != nil && a.cond:
		out.yes = a.yes
		if b.lit.value.N == 0 {
			out.yes = a.falsity()
		}
		if op == record.Ne { // also where it is unknown
			out.yes = negate(out.yes)
		}
	case b.lit != nil:
		out.yes, err = p.withLiteral(op, &a, &b)
	default:
		x, y := a.value(), b.value()
		out.yes = record.Compare(op, x, y)
		if p.q.ver == v4 && (op == record.Ge || op == record.Le) { // "or equal" includes two nulls
			null := record.C(record.Value{})
			out.yes = record.AnyOf(out.yes, record.AllOf(record.Compare(record.Eq, x, null), record.Compare(record.Eq, y, null)))
		}
	}
	return out, err
}

func firstNav(a, b *operand) *operand {
	if a.nav != nil {
		return a
	}
	return b
}

// shown is the kind that an operand has in comparisons.
func (o *operand) shown() edm.Kind {
	switch {
	case o.cond:
		return edm.Boolean
	case o.lit != nil:
		return o.lit.kind
	}
	return o.kind
}

// fits reports whether a literal of another class can stand beside a value: its spelling does not say all.
func (p *filterParser) fits(a, b *operand) bool {
	if b.lit == nil || a.lit != nil {
		return false
	}
	own := classOf(a.shown())
	switch b.lit.kind {
	case edm.Int64:
		return own == truthClass && p.q.ver == v2 && (b.lit.value.N == 0 || b.lit.value.N == 1)
	case edm.Duration:
		return own == clockClass && p.q.ver == v2
	case edm.String:
		_, ok := readDuration(b.lit.value.S)
		return own == spanClass && p.q.ver == v4 && ok
	}
	return false
}

// value is an operand as an expression.
func (o *operand) value() *record.Expr {
	switch {
	case o.cond:
		return o.yes
	case o.lit == nil:
		return o.expr
	case o.lit.kind == edm.Decimal:
		return record.C(record.NumValue(o.lit.value.Float()))
	case o.lit.kind == edm.Date:
		day, _ := dayOf(o.lit.value.S)
		return record.C(record.TimeValue(day))
	}
	return record.C(o.lit.value)
}

// withNull compares with null.
func (p *filterParser) withNull(at int, op record.ExprOp, a *operand) (*record.Expr, error) {
	if op == record.Lt || op == record.Gt || p.q.ver == v2 && op != record.Eq && op != record.Ne {
		return never, nil
	}
	equal := op != record.Ne // also in le and ge, of V4
	switch {
	case a.lit != nil:
		return constantly(a.lit.null() == equal), nil
	case a.cond && a.no == nil:
		return constantly(!equal), nil
	case a.cond:
		known := record.AnyOf(a.yes, a.falsity())
		if equal {
			return negate(known), nil
		}
		return known, nil
	case equal:
		return record.Compare(record.Eq, a.expr, record.C(record.Value{})), nil
	}
	return record.Compare(record.Ne, a.expr, record.C(record.Value{})), nil
}

// constants compares two literals of one class, none of them null.
func constants(op record.ExprOp, a, b *operand) *record.Expr {
	x, y := a.value().Value, b.value().Value
	var n int
	switch classOf(a.lit.kind) {
	case textClass, clockClass, guidClass, byteClass:
		n = strings.Compare(x.S, y.S)
	case truthClass, momentClass:
		n = cmp.Compare(x.N, y.N)
	default:
		f, g := x.Float(), y.Float()
		if math.IsNaN(f) || math.IsNaN(g) {
			return constantly(op == record.Ne)
		}
		if n = cmp.Compare(f, g); x.Form == record.Int && y.Form == record.Int {
			n = cmp.Compare(x.N, y.N)
		}
	}
	return constantly(holdsFor(op, int64(n), 0))
}

// withLiteral compares a value with a literal that is not null.
func (p *filterParser) withLiteral(op record.ExprOp, a, b *operand) (*record.Expr, error) {
	lit := *b.lit
	c := func(v record.Value) *record.Expr { return record.Compare(op, a.expr, record.C(v)) }
	switch classOf(a.kind) {
	case textClass:
		if lit.value.S == "" && (op == record.Eq || op == record.Ne) {
			empty := &record.Expr{Op: record.IsEmpty, Args: []*record.Expr{a.expr}}
			if op == record.Ne {
				return negate(empty), nil
			}
			return empty, nil
		}
	case truthClass:
		return c(record.BoolValue(lit.value.N == 1)), nil
	case numberClass:
		return p.withNumber(op, a, b)
	case momentClass:
		return p.withMoment(op, a, lit), nil
	case clockClass:
		if lit.kind == edm.Duration {
			clock, ok := clockOf(lit.value.Float())
			if !ok {
				return nil, p.invalid(b.at, "%s is no time of day", cut(b.text))
			}
			lit.value = record.TextValue(string(appendTimeOfDay(nil, clock)))
		}
	case spanClass:
		if lit.kind == edm.String {
			lit.value, _ = readDuration(lit.value.S)
		}
	case guidClass:
		lit.value = storedValue(edm.GUID, a.field, lit.value)
	}
	return c(lit.value), nil
}

// withNumber compares a number with a literal, which takes the form that the value has.
func (p *filterParser) withNumber(op record.ExprOp, a, b *operand) (*record.Expr, error) {
	v := b.lit.value
	if a.kind == edm.Single {
		v = record.NumValue(float64(float32(v.Float()))) // what such a property holds
	}
	if v.Form == record.Num {
		switch f := v.Float(); {
		case math.IsNaN(f):
			if op == record.Ne {
				return always, nil
			}
			return never, nil
		case math.IsInf(f, 0):
			less := op == record.Lt || op == record.Le
			switch {
			case op == record.Ne:
				return always, nil
			case op != record.Eq && less == (f > 0):
				return record.Compare(record.Ne, a.expr, record.C(record.Value{})), nil
			}
			return never, nil
		}
	}
	switch a.kind {
	case edm.Decimal:
		if v.Form == record.Num {
			digits, ok := plainDigits(strconv.FormatFloat(v.Float(), 'g', -1, 64))
			if !ok {
				return nil, p.invalid(b.at, "%s has more than %d digits", cut(b.text), maxDigits)
			}
			v = record.TextValue(digits)
		}
		if v.Form == record.Int {
			v = record.TextValue(v.Text())
		}
	case edm.Single, edm.Double:
		v = record.NumValue(v.Float())
	default:
		if n, ok := wholeNumber(v); ok {
			v = record.IntValue(n)
		} else {
			v = record.NumValue(v.Float())
		}
	}
	return record.Compare(op, a.expr, record.C(v)), nil
}

const (
	millisecond = int64(time.Millisecond / time.Microsecond)
	wholeDay    = 24 * int64(time.Hour/time.Microsecond)
)

// withMoment compares a point in time or a day with a literal.
func (p *filterParser) withMoment(op record.ExprOp, a *operand, lit literal) *record.Expr {
	at := lit.value
	if lit.kind == edm.Date {
		day, _ := dayOf(at.S)
		at = record.TimeValue(day)
	}
	switch {
	case a.moment != nil && lit.kind == edm.Date:
		return spanOf(op, a.moment, at.N, wholeDay) // the days of a time are ranges of it, which an index serves
	case a.kind == edm.DateTimeOffset && p.q.ver == v2:
		return spanOf(op, a.expr, floorTo(at.N, millisecond), millisecond)
	case a.kind == edm.DateTimeOffset:
		return record.Compare(op, a.expr, record.C(at))
	}
	// A day begins at midnight, so a time later than that is between two of them.
	begin := floorTo(at.N, wholeDay)
	day := record.C(record.TextValue(record.Value{Form: record.Time, N: begin}.Time().Format(time.DateOnly)))
	if begin != at.N {
		switch op {
		case record.Eq:
			return never
		case record.Ne:
			return always
		case record.Lt:
			op = record.Le
		case record.Ge:
			op = record.Gt
		}
	}
	return record.Compare(op, a.expr, day)
}

// floorTo is the last multiple of unit that is not after n.
func floorTo(n, unit int64) int64 {
	rest := n % unit
	if rest < 0 {
		rest += unit
	}
	return n - rest
}

// maxMoment is the last point in time that is stored: the end of the year 9999.
const maxMoment = 253402300799_999999

// spanOf compares a time that is cut to a unit with a multiple of that unit, without cutting it.
func spanOf(op record.ExprOp, x *record.Expr, begin, unit int64) *record.Expr {
	at := func(op record.ExprOp, n int64) *record.Expr {
		if n > maxMoment {
			if op == record.Lt {
				return record.Compare(record.Ne, x, record.C(record.Value{}))
			}
			return never
		}
		return record.Compare(op, x, record.C(record.Value{Form: record.Time, N: n}))
	}
	switch op {
	case record.Lt:
		return at(record.Lt, begin)
	case record.Le:
		return at(record.Lt, begin+unit)
	case record.Gt:
		return at(record.Ge, begin+unit)
	case record.Ge:
		return at(record.Ge, begin)
	}
	in := record.AllOf(at(record.Ge, begin), at(record.Lt, begin+unit))
	if op == record.Ne {
		return negate(in)
	}
	return in
}

// counted compares a number of entities with a constant.
func (p *filterParser) counted(at int, op record.ExprOp, a, b *operand) (*record.Expr, error) {
	if a.rows == nil || b.lit == nil {
		return nil, p.unsupported(at, "a number of entities can be compared with a constant alone")
	}
	if b.lit.null() {
		return constantly(op == record.Ne), nil
	}
	if !b.lit.kind.Numeric() {
		return nil, p.invalid(b.at, "%s cannot be compared with %s", p.what(a), p.what(b))
	}
	n, ok := wholeNumber(b.lit.value)
	if !ok {
		f := b.lit.value.Float()
		switch {
		case math.IsNaN(f) || op == record.Eq || op == record.Ne:
			return constantly(op == record.Ne), nil
		case math.Abs(f) >= 1<<62:
			return constantly((op == record.Lt || op == record.Le) == (f > 0)), nil
		}
		// Between two whole numbers.
		n = int64(math.Floor(f))
		if op == record.Lt {
			op = record.Le
		} else if op == record.Ge {
			op = record.Gt
		}
	}
	return a.rows.walk.counts(a.rows.rel, a.rows.where, op, n), nil
}

// having compares an aggregate with a constant.
func (p *filterParser) having(at int, op record.ExprOp, a, b *operand) ([]record.Having, error) {
	if a.agg == nil || b.lit == nil {
		return nil, p.unsupported(at, "an aggregate can be compared with a constant alone")
	}
	v := b.lit.value
	if !b.lit.null() {
		if classOf(a.agg.kind) != classOf(b.lit.kind) {
			return nil, p.invalid(b.at, "%s cannot be compared with %s", p.what(a), p.what(b))
		}
		switch classOf(a.agg.kind) {
		case numberClass:
			e, err := p.withNumber(op, &operand{kind: a.agg.kind, expr: never}, b)
			if err != nil {
				return nil, err
			}
			if len(e.Args) < 2 {
				return nil, p.unsupported(b.at, "an aggregate cannot be compared with %s", cut(b.text))
			}
			v = e.Args[1].Value
		case momentClass:
			var err error
			if v, err = b.lit.as(p.q.ver, a.agg.kind, b.text); err != nil {
				return nil, p.invalid(b.at, "%s", record.AsError(err).Msg)
			}
		}
	}
	return []record.Having{{Agg: a.agg.agg, Cmp: op, Value: v}}, nil
}
