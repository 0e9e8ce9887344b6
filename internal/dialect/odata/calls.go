package odata

import (
	"strconv"
	"strings"
	"time"

	"weir/internal/edm"
	"weir/internal/record"
)

// function is a function of the filter languages.
type function struct {
	v2, v4      bool
	least, most int // arguments
	call        func(p *filterParser, at int, name string, args []operand) (operand, error)
}

// functions are those of V2 (protocol notes, section 2) and V4 (OData 4.01, part 2, sections 5.1.1.5 to 5.1.1.14) that have no types
// as arguments.
var functions map[string]function

func init() {
	functions = map[string]function{
		"substringof": {true, false, 2, 2, func(p *filterParser, at int, _ string, args []operand) (operand, error) {
			return p.search(at, record.Contains, args[1], args[0])
		}},
		"contains":       {false, true, 2, 2, searching(record.Contains)},
		"startswith":     {true, true, 2, 2, searching(record.StartsWith)},
		"endswith":       {true, true, 2, 2, searching(record.EndsWith)},
		"matchespattern": {false, true, 2, 2, (*filterParser).matches},

		"length":    {true, true, 1, 1, texting(record.Length, edm.Int32)},
		"indexof":   {true, true, 2, 2, texting(record.IndexOf, edm.Int32)},
		"replace":   {true, false, 3, 3, texting(record.Replace, edm.String)},
		"tolower":   {true, true, 1, 1, texting(record.Lower, edm.String)},
		"toupper":   {true, true, 1, 1, texting(record.Upper, edm.String)},
		"trim":      {true, true, 1, 1, texting(record.Trim, edm.String)},
		"concat":    {true, true, 2, 2, texting(record.Concat, edm.String)},
		"substring": {true, true, 2, 3, (*filterParser).substring},

		"year":              {true, true, 1, 1, parting(record.Year)},
		"month":             {true, true, 1, 1, parting(record.Month)},
		"day":               {true, true, 1, 1, parting(record.Day)},
		"hour":              {true, true, 1, 1, parting(record.Hour)},
		"minute":            {true, true, 1, 1, parting(record.Minute)},
		"second":            {true, true, 1, 1, parting(record.Second)},
		"fractionalseconds": {false, true, 1, 1, parting(record.Fraction)},
		"date":              {false, true, 1, 1, (*filterParser).date},
		"time":              {false, true, 1, 1, (*filterParser).timeOfDay},
		"totalseconds":      {false, true, 1, 1, (*filterParser).totalSeconds},
		"now": {false, true, 0, 0, func(p *filterParser, at int, _ string, _ []operand) (operand, error) {
			return constantTime(at, record.TimeValue(p.q.d.now())), nil
		}},
		"mindatetime": {false, true, 0, 0, func(_ *filterParser, at int, _ string, _ []operand) (operand, error) {
			return constantTime(at, record.TimeValue(time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC))), nil
		}},
		"maxdatetime": {false, true, 0, 0, func(_ *filterParser, at int, _ string, _ []operand) (operand, error) {
			return constantTime(at, record.Value{Form: record.Time, N: maxMoment}), nil
		}},

		"round":   {true, true, 1, 1, rounding(record.Round)},
		"floor":   {true, true, 1, 1, rounding(record.Floor)},
		"ceiling": {true, true, 1, 1, rounding(record.Ceiling)},
	}
}

// known are functions of V4 that are not built, as opposed to those that do not exist.
var known = map[string]bool{
	"hassubset": true, "hassubsequence": true, "case": true, "totaloffsetminutes": true,
	"geo.distance": true, "geo.length": true, "geo.intersects": true,
}

// call reads a call whose name has been read.
func (p *filterParser) call(at int, name string) (operand, error) {
	if p.q.ver == v4 {
		name = strings.ToLower(name) // 4.01: names of functions in any case
	}
	if err := p.term(at); err != nil {
		return operand{}, err
	}
	if name == "isof" || name == "cast" {
		return p.typed(at, name)
	}
	f, ok := functions[name]
	switch {
	case known[name] && p.q.ver == v4:
		return operand{}, p.unsupported(at, "the function %s is not supported", name)
	case !ok || p.q.ver == v2 && !f.v2 || p.q.ver == v4 && !f.v4:
		return operand{}, p.invalid(at, "unknown function '%s'", cut(name))
	}
	args, err := p.args(at)
	if err != nil {
		return operand{}, err
	}
	if len(args) < f.least || len(args) > f.most {
		return operand{}, p.invalid(at, "%s takes %s, not %d", name, arguments(f.least, f.most), len(args))
	}
	for i := range args {
		if a := &args[i]; a.rows != nil || a.nav != nil || a.agg != nil || a.having != nil {
			return operand{}, p.invalid(a.at, "%s is no argument of %s", p.what(a), name)
		}
	}
	return f.call(p, at, name, args)
}

func arguments(least, most int) string {
	switch {
	case least != most:
		return strconv.Itoa(least) + " or " + strconv.Itoa(most) + " arguments"
	case least == 1:
		return "1 argument"
	}
	return strconv.Itoa(least) + " arguments"
}

// args reads arguments in parentheses.
func (p *filterParser) args(at int) ([]operand, error) {
	p.i++
	if err := p.enter(at); err != nil {
		return nil, err
	}
	defer p.leave()
	if p.take(')') {
		return nil, nil
	}
	var list []operand
	for {
		o, err := p.or()
		if err != nil {
			return nil, err
		}
		list = append(list, o)
		if p.take(',') {
			continue
		}
		return list, p.need(')')
	}
}

// arg is an argument of a class as an expression.
func (p *filterParser) arg(o *operand, c class, of string) (*record.Expr, error) {
	if o.lit != nil && o.lit.null() {
		return record.C(record.Value{}), nil
	}
	if classOf(o.shown()) != c || o.cond {
		return nil, p.invalid(o.at, "%s is no argument of %s, which takes %s", p.what(o), of, classNames[c])
	}
	return o.value(), nil
}

var classNames = [...]string{
	textClass: "texts", truthClass: "booleans", numberClass: "numbers", momentClass: "times", clockClass: "times of day", spanClass: "durations", guidClass: "GUIDs", byteClass: "bytes",
}

func searching(op record.ExprOp) func(*filterParser, int, string, []operand) (operand, error) {
	return func(p *filterParser, at int, name string, args []operand) (operand, error) {
		return p.search(at, op, args[0], args[1])
	}
}

// search is a condition on two texts: of null, in V4, it is unknown.
func (p *filterParser) search(at int, op record.ExprOp, hay, needle operand) (operand, error) {
	name := map[record.ExprOp]string{record.Contains: "contains", record.StartsWith: "startswith", record.EndsWith: "endswith"}[op]
	x, err := p.arg(&hay, textClass, name)
	if err != nil {
		return operand{}, err
	}
	y, err := p.arg(&needle, textClass, name)
	if err != nil {
		return operand{}, err
	}
	yes := record.Compare(op, x, y)
	return operand{cond: true, at: at, yes: yes, no: p.unknown(p.unless(yes, x, y))}, nil
}

// unless is that a function is false: not true, and none of its arguments is null.
func (p *filterParser) unless(yes *record.Expr, args ...*record.Expr) *record.Expr {
	list := []*record.Expr{negate(yes)}
	for _, a := range args {
		switch {
		case a.Op != record.Const:
			list = append(list, record.Compare(record.Ne, a, record.C(record.Value{})))
		case a.Value.IsNull():
			return never
		}
	}
	return record.AllOf(list...)
}

// matches is matchesPattern for patterns that say no more than that a text contains, begins with or ends with another. The
// databases know other regular expressions than ECMAScript's, and not the same ones.
func (p *filterParser) matches(at int, _ string, args []operand) (operand, error) {
	pattern := &args[1]
	if pattern.lit == nil || pattern.lit.kind != edm.String {
		return operand{}, p.unsupported(pattern.at, "the pattern of matchesPattern is a text")
	}
	text := pattern.lit.value.S
	text, begin := strings.CutPrefix(text, "^")
	text, end := strings.CutSuffix(text, "$")
	if strings.ContainsAny(text, `\.^$|?*+()[]{}`) {
		return operand{}, p.unsupported(pattern.at, "a pattern is plain text here, with ^ in front and $ at its end if need be; regular expressions are not supported")
	}
	needle := *pattern
	needle.lit = &literal{edm.String, record.TextValue(text)}
	switch {
	case begin && end:
		x, err := p.arg(&args[0], textClass, "matchesPattern")
		if err != nil {
			return operand{}, err
		}
		yes := record.Compare(record.Eq, x, record.C(needle.lit.value))
		return operand{cond: true, at: at, yes: yes, no: p.unknown(p.unless(yes, x))}, nil
	case begin:
		return p.search(at, record.StartsWith, args[0], needle)
	case end:
		return p.search(at, record.EndsWith, args[0], needle)
	}
	return p.search(at, record.Contains, args[0], needle)
}

// texting is a function of texts.
func texting(op record.ExprOp, kind edm.Kind) func(*filterParser, int, string, []operand) (operand, error) {
	return func(p *filterParser, at int, name string, args []operand) (operand, error) {
		e := &record.Expr{Op: op}
		for i := range args {
			x, err := p.arg(&args[i], textClass, name)
			if err != nil {
				return operand{}, err
			}
			e.Args = append(e.Args, x)
		}
		return operand{kind: kind, at: at, expr: e}, nil
	}
}

func (p *filterParser) substring(at int, name string, args []operand) (operand, error) {
	x, err := p.arg(&args[0], textClass, name)
	if err != nil {
		return operand{}, err
	}
	e := &record.Expr{Op: record.Substring, Args: []*record.Expr{x}}
	for i := range args[1:] {
		a := &args[i+1]
		n, err := p.arg(a, numberClass, name)
		if err != nil {
			return operand{}, err
		}
		if kind := a.shown(); kind == edm.Decimal || kind == edm.Single || kind == edm.Double {
			return operand{}, p.invalid(a.at, "%s is no position; positions are whole numbers", p.what(a))
		}
		if n.Op == record.Const && n.Value.N < 0 && n.Value.Form == record.Int {
			return operand{}, p.invalid(a.at, "a position is not negative")
		}
		e.Args = append(e.Args, n)
	}
	return operand{kind: edm.String, at: at, expr: e}, nil
}

// parting is a function that takes a part of a time.
func parting(op record.ExprOp) func(*filterParser, int, string, []operand) (operand, error) {
	kind := edm.Int32
	if op == record.Fraction {
		kind = edm.Double
	}
	return func(p *filterParser, at int, name string, args []operand) (operand, error) {
		if classOf(args[0].shown()) == spanClass {
			return operand{}, p.unsupported(args[0].at, "%s of a duration is not supported", name)
		}
		if classOf(args[0].shown()) == clockClass {
			return operand{}, p.unsupported(args[0].at, "%s of a time of day is not supported", name)
		}
		x, err := p.arg(&args[0], momentClass, name)
		if err != nil {
			return operand{}, err
		}
		return operand{kind: kind, at: at, expr: &record.Expr{Op: op, Args: []*record.Expr{x}}}, nil
	}
}

// date is the day of a time.
func (p *filterParser) date(at int, name string, args []operand) (operand, error) {
	a := &args[0]
	if a.lit != nil && a.lit.kind == edm.DateTimeOffset {
		day := record.TextValue(a.lit.value.Time().Format(time.DateOnly))
		return operand{kind: edm.Date, at: at, lit: &literal{edm.Date, day}, text: day.S}, nil
	}
	if a.shown() == edm.Date {
		return *a, nil
	}
	x, err := p.arg(a, momentClass, name)
	if err != nil {
		return operand{}, err
	}
	return operand{kind: edm.Date, at: at, expr: part(x, 0, len(time.DateOnly)), moment: x}, nil
}

// timeOfDay is the time of day of a time, without its fraction.
func (p *filterParser) timeOfDay(at int, name string, args []operand) (operand, error) {
	a := &args[0]
	if a.lit != nil && a.lit.kind == edm.DateTimeOffset {
		clock := record.TextValue(a.lit.value.Time().Format(time.TimeOnly))
		return operand{kind: edm.TimeOfDay, at: at, lit: &literal{edm.TimeOfDay, clock}, text: clock.S}, nil
	}
	if a.shown() == edm.Date {
		return operand{}, p.invalid(a.at, "%s has no time of day", p.what(a))
	}
	x, err := p.arg(a, momentClass, name)
	if err != nil {
		return operand{}, err
	}
	return operand{kind: edm.TimeOfDay, at: at, expr: part(x, len(time.DateOnly)+1, len(time.TimeOnly))}, nil
}

// part is a piece of the text of a time, see record.TimeLayout.
func part(x *record.Expr, from, n int) *record.Expr {
	return &record.Expr{Op: record.Substring, Args: []*record.Expr{x, record.C(record.IntValue(int64(from))), record.C(record.IntValue(int64(n)))}}
}

func constantTime(at int, v record.Value) operand {
	return operand{kind: edm.DateTimeOffset, at: at, lit: &literal{edm.DateTimeOffset, v}, text: v.Text()}
}

// totalSeconds is a duration as the number that it is stored as.
func (p *filterParser) totalSeconds(at int, name string, args []operand) (operand, error) {
	x, err := p.arg(&args[0], spanClass, name)
	if err != nil {
		return operand{}, err
	}
	if a := &args[0]; a.lit != nil {
		return operand{kind: edm.Decimal, at: at, lit: &literal{edm.Int64, a.lit.value}, text: a.text}, nil
	}
	return operand{kind: edm.Int64, at: at, expr: x}, nil
}

// rounding is a function of a number. What it makes of a decimal is floating-point.
func rounding(op record.ExprOp) func(*filterParser, int, string, []operand) (operand, error) {
	return func(p *filterParser, at int, name string, args []operand) (operand, error) {
		x, err := p.arg(&args[0], numberClass, name)
		if err != nil {
			return operand{}, err
		}
		if err := p.finite(&args[0]); err != nil {
			return operand{}, err
		}
		kind := args[0].shown()
		if kind == edm.Decimal || kind == edm.Single {
			kind = edm.Double
		}
		return operand{kind: kind, at: at, expr: &record.Expr{Op: op, Args: []*record.Expr{x}}}, nil
	}
}

// finite refuses INF and NaN, with which databases do not compute alike.
func (p *filterParser) finite(o *operand) error {
	if o.lit != nil && o.lit.value.Form == record.Num && unreal(o.lit.value.Float()) != "" {
		return p.unsupported(o.at, "%s can be compared alone, not computed with", cut(o.text))
	}
	return nil
}

// arithmetic computes with numbers and in V4 with times and durations.
func (p *filterParser) arithmetic(at int, word string, op record.ExprOp, a, b operand) (operand, error) {
	out := operand{at: a.at}
	for _, o := range []*operand{&a, &b} {
		if o.rows != nil || o.nav != nil || o.agg != nil || o.cond {
			return out, p.invalid(at, "%s cannot be computed with", p.what(o))
		}
		if err := p.finite(o); err != nil {
			return out, err
		}
	}
	if a.lit != nil && a.lit.null() || b.lit != nil && b.lit.null() {
		out.lit, out.text = &literal{}, "null"
		return out, nil
	}
	x, y := a.value(), b.value()
	out.expr = record.Compare(op, x, y)
	ca, cb := classOf(a.shown()), classOf(b.shown())
	switch {
	case ca == numberClass && cb == numberClass:
		out.kind = edm.Int64
		if fractional(a.shown()) || fractional(b.shown()) {
			out.kind = edm.Double
		}
		if word == "divby" {
			out.kind = edm.Double
			out.expr.Args[0] = record.Compare(record.Add, x, record.C(record.NumValue(0)))
		}
		return out, nil
	case p.q.ver == v2:
	case ca == momentClass && cb == spanClass && (op == record.Add || op == record.Sub), ca == spanClass && cb == momentClass && op == record.Add:
		out.kind = edm.DateTimeOffset
		return out, nil
	case ca == momentClass && cb == momentClass && op == record.Sub, ca == spanClass && cb == spanClass && (op == record.Add || op == record.Sub),
		ca == spanClass && cb == numberClass && (op == record.Mul || op == record.Div), ca == numberClass && cb == spanClass && op == record.Mul:
		out.kind = edm.Duration
		return out, nil
	}
	return out, p.invalid(at, "%s cannot be computed for %s and %s", word, p.what(&a), p.what(&b))
}

// fractional reports whether numbers of a kind have fractions.
func fractional(k edm.Kind) bool { return k == edm.Decimal || k == edm.Single || k == edm.Double }

// negative is a number or duration with the other sign.
func (p *filterParser) negative(at int, o operand) (operand, error) {
	if err := p.term(at); err != nil {
		return o, err
	}
	if o.lit != nil && o.lit.null() {
		return o, nil
	}
	if c := classOf(o.shown()); c != numberClass && (c != spanClass || p.q.ver == v2) || o.cond || o.rows != nil || o.agg != nil || o.nav != nil {
		return o, p.invalid(o.at, "%s has no sign", p.what(&o))
	}
	if err := p.finite(&o); err != nil {
		return o, err
	}
	kind := o.shown()
	if kind == edm.Decimal || kind == edm.Single {
		kind = edm.Double
	}
	return operand{kind: kind, at: at, expr: &record.Expr{Op: record.Neg, Args: []*record.Expr{o.value()}}}, nil
}

// typed reads isof and cast, whose last argument is a type: quoted in V2, bare in V4.
func (p *filterParser) typed(at int, name string) (operand, error) {
	p.i++
	if err := p.enter(at); err != nil {
		return operand{}, err
	}
	defer p.leave()
	if typ, ok := p.typeName(); ok {
		if err := p.need(')'); err != nil {
			return operand{}, err
		}
		if name == "cast" {
			return operand{}, p.unsupported(at, "a cast of the entity itself is not supported")
		}
		short, ours := strings.CutPrefix(typ, p.q.svc.Schema+".")
		for _, t := range p.q.svc.Types {
			if ours && t.Name == short {
				return operand{cond: true, at: at, yes: constantly(t == p.scope.typ && p.scope.grouped == nil)}, nil
			}
		}
		return operand{}, p.invalid(at, "unknown type %s", cut(typ))
	}
	o, err := p.or()
	if err != nil {
		return o, err
	}
	if err := p.need(','); err != nil {
		return o, err
	}
	typ, ok := p.typeName()
	if !ok {
		return o, p.invalid(p.i, "a type expected, %s found", p.found())
	}
	if err := p.need(')'); err != nil {
		return o, err
	}
	if o.rows != nil || o.nav != nil || o.agg != nil || o.cond {
		return o, p.unsupported(at, "%s of %s is not supported", name, p.what(&o))
	}
	kind, ok := p.kindNamed(typ, o.shown())
	if !ok {
		return o, p.invalid(at, "unknown type %s", cut(typ))
	}
	if name == "isof" {
		if o.shown() != kind || o.lit != nil && o.lit.null() {
			return operand{cond: true, at: at, yes: never}, nil
		}
		if o.lit != nil {
			return operand{cond: true, at: at, yes: always}, nil
		}
		return operand{cond: true, at: at, yes: record.Compare(record.Ne, o.expr, record.C(record.Value{}))}, nil
	}
	return p.cast(at, o, kind)
}

// typeName reads the name of a type, if one comes next.
func (p *filterParser) typeName() (string, bool) {
	p.spaces()
	from := p.i
	if p.peek() == '\'' {
		n := quotedAt(p.s[p.i:])
		if text, ok := unquote(p.s[p.i : p.i+n]); ok && nameAt(text) == text && strings.IndexByte(text, '.') > 0 {
			p.i += n
			return text, true
		}
		return "", false
	}
	if name := p.name(); p.q.ver == v4 && strings.IndexByte(name, '.') > 0 && p.peek() != '/' && p.peek() != '(' && p.peek() != '\'' {
		if c := name[0]; c < '0' || c > '9' {
			return name, true
		}
	}
	p.i = from
	return "", false
}

// kindNamed is the primitive type of a name; a name of V2 that means several is the one that the value has.
func (p *filterParser) kindNamed(name string, own edm.Kind) (edm.Kind, bool) {
	if p.q.ver == v2 && own.NameV2() == name {
		return own, true
	}
	for k := range edm.ComplexKind {
		if kindName(p.q.ver, k) == name || k.Name() == name {
			return k, true
		}
	}
	return 0, false
}

// cast makes a value of another type, where both databases do it alike.
func (p *filterParser) cast(at int, o operand, kind edm.Kind) (operand, error) {
	own := o.shown()
	out := operand{kind: kind, at: at}
	switch {
	case own == kind, o.lit != nil && o.lit.null():
		return o, nil
	case kind == edm.String && own.Numeric() && !fractional(own), kind == edm.String && own == edm.Date:
		out.expr = &record.Expr{Op: record.Concat, Args: []*record.Expr{textOf(&o)}}
		return out, nil
	case fractional(kind) && own.Numeric():
		if err := p.finite(&o); err != nil {
			return o, err
		}
		out.kind = edm.Double
		out.expr = record.Compare(record.Add, o.value(), record.C(record.NumValue(0)))
		return out, nil
	case kind.Numeric() && own.Numeric() && !fractional(own):
		o.kind = kind
		return o, nil
	case kind == edm.Date && own == edm.DateTimeOffset:
		return p.date(at, "cast", []operand{o})
	case kind == edm.DateTimeOffset && own == edm.Date:
		out.expr = record.Compare(record.Add, o.value(), record.C(record.IntValue(0)))
		return out, nil
	}
	return out, p.unsupported(at, "a cast of %s to %s is not supported", p.what(&o), kindName(p.q.ver, kind))
}

// textOf is an operand as an expression whose text is that of a literal.
func textOf(o *operand) *record.Expr {
	if o.lit != nil {
		return record.C(record.TextValue(o.lit.value.Text()))
	}
	return o.expr
}
