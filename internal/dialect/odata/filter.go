package odata

import (
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/catalog"
	"weir/internal/edm"
	"weir/internal/record"
)

// The filter languages of V2 (protocol notes, section 2) and V4 (OData 4.01, part 2, section 5.1.1), read by recursive descent into
// conditions over records. Where the two differ the version decides; operators and their precedence are the same.
//
// Null. A comparison is true or false, never unknown, as 4.01 says: null equals null alone and orders before nothing. In V4 a function of
// null is null and a condition may be unknown: `not contains(Name,'x')` does not find entities without a name. In V2 it does, as on
// systems whose fields are initial and never null. The empty text is null in tables that weir creates, so `Name eq ''` finds both.
//
// Times. V2 clients know milliseconds, so V2 compares a time with a literal as if both were cut to milliseconds; V4 compares what is stored.
// Numbers. Decimals compare exactly; arithmetic and rounding of them are floating-point.

// filterScope is what names mean in an expression: properties of a type, of the variable of an any or all, or what an aggregation made.
type filterScope struct {
	typ      *edm.Type
	variable string // "" outside any and all
	outer    *filterScope
	grouped  *apply // names are those of its groups and aggregates; nil: properties
}

// operand is a value or condition that has been read.
type operand struct {
	kind edm.Kind
	at   int    // position
	name string // of a property, for errors
	text string // of a literal, for errors

	lit   *literal       // a constant
	expr  *record.Expr   // a value that is none
	field *catalog.Field // of a property; nil in shells and for what is computed

	cond   bool            // a condition: yes, no or neither, which is null
	yes    *record.Expr    // it is true; nil if all of it is in having
	no     *record.Expr    // it is false; nil: whenever it is not true
	having []record.Having // conditions on aggregates, ANDed to yes

	rows *countOf   // Nav/$count
	nav  *edm.Nav   // an entity: it can be compared with null, which compares expr, its key
	agg  *aggregate // a value of an aggregation

	moment *record.Expr // expr is the day of this DateTimeOffset
}

// countOf is the number of entities that a navigation property leads to.
type countOf struct {
	walk  walk
	rel   record.Relation
	where *record.Expr
}

// filterParser reads one expression.
type filterParser struct {
	*scanner
	scope *filterScope
	// aliases are those being read, which may not name themselves.
	aliases []string
}

// condition reads an expression that is true or false, up to what cannot go on with it.
func (p *filterParser) condition() (operand, error) {
	o, err := p.or()
	if err != nil {
		return o, err
	}
	is, err := p.truth(o)
	if err != nil && !strings.ContainsRune("),;", rune(p.spaces().peek())) && p.i < len(p.s) {
		err = p.end() // what follows was meant to make it one
	}
	return is, err
}

// where reads a condition for records, which all is about entities.
func (p *filterParser) where() (*record.Expr, error) {
	o, err := p.condition()
	if err != nil {
		return nil, err
	}
	if o.having != nil {
		return nil, p.unsupported(o.at, "a condition on an aggregate is not possible here")
	}
	return o.yes, nil
}

// end refuses what is left behind an expression.
func (p *scanner) end() error {
	if p.done() {
		return nil
	}
	if p.peek() == ')' {
		return p.invalid(p.i, "')' without '('")
	}
	return p.invalid(p.i, "an operator or the end expected, %s found", p.found())
}

// word is the operator that comes next, "" if none does.
func (p *filterParser) word() string {
	p.spaces()
	return nameAt(p.s[p.i:])
}

func (p *filterParser) or() (operand, error)  { return p.junction("or", record.Or, p.and) }
func (p *filterParser) and() (operand, error) { return p.junction("and", record.And, p.equality) }

func (p *filterParser) junction(word string, op record.ExprOp, next func() (operand, error)) (operand, error) {
	first, err := next()
	if err != nil || p.word() != word {
		return first, err
	}
	if first, err = p.truth(first); err != nil {
		return first, err
	}
	parts := []operand{first}
	var compared map[string]bool
	if op == record.Or {
		compared = map[string]bool{}
		gatherable(compared, first.yes)
	}
	for p.word() == word {
		p.i += len(word)
		o, err := next()
		if err != nil {
			return o, err
		}
		if o, err = p.truth(o); err != nil {
			return o, err
		}
		if op == record.Or {
			p.spent.terms -= gatherable(compared, o.yes)
		}
		parts = append(parts, o)
	}
	return p.joined(op, parts)
}

// joined is a junction of conditions.
func (p *filterParser) joined(op record.ExprOp, parts []operand) (operand, error) {
	out := operand{cond: true, at: parts[0].at}
	other, unknown := record.Or, false
	if op == record.Or {
		other = record.And
	}
	var yes, no []*record.Expr
	for _, o := range parts {
		if o.having != nil {
			if op == record.Or {
				return out, p.unsupported(o.at, "conditions on aggregates can be joined by and alone")
			}
			out.having = append(out.having, o.having...)
		}
		if o.yes != nil {
			yes = append(yes, o.yes)
		}
		unknown = unknown || o.no != nil
	}
	if len(yes) > 0 {
		out.yes = flat(op, yes)
	}
	if unknown && out.having == nil {
		for _, o := range parts {
			no = append(no, o.falsity())
		}
		out.no = flat(other, no)
	}
	return out, nil
}

// falsity is when a condition is false, as opposed to unknown.
func (o *operand) falsity() *record.Expr {
	if o.no != nil {
		return o.no
	}
	return negate(o.yes)
}

func negate(e *record.Expr) *record.Expr {
	switch e.Op {
	case record.Always:
		return never
	case record.Never:
		return always
	case record.Not:
		return e.Args[0]
	}
	return record.Negate(e)
}

var (
	always = &record.Expr{Op: record.Always}
	never  = &record.Expr{Op: record.Never}
)

func constantly(b bool) *record.Expr {
	if b {
		return always
	}
	return never
}

// flat is a junction of conditions, without nesting of its like. Equalities of one property with constants, joined by or, are one In.
func flat(op record.ExprOp, list []*record.Expr) *record.Expr {
	unit, zero := record.Always, record.Never
	if op == record.Or {
		unit, zero = zero, unit
	}
	args := make([]*record.Expr, 0, len(list))
	var add func(e *record.Expr) bool
	add = func(e *record.Expr) bool {
		switch e.Op {
		case zero:
			return false
		case unit:
		case op:
			for _, a := range e.Args {
				if !add(a) {
					return false
				}
			}
		default:
			args = append(args, e)
		}
		return true
	}
	for _, e := range list {
		if !add(e) {
			return &record.Expr{Op: zero}
		}
	}
	if op == record.Or {
		args = gathered(args)
	}
	switch len(args) {
	case 0:
		return &record.Expr{Op: unit}
	case 1:
		return args[0]
	}
	return &record.Expr{Op: op, Args: args}
}

// gathered makes one In of the equalities of each field with constants.
func gathered(args []*record.Expr) []*record.Expr {
	type group struct {
		at int // in out
		in *record.Expr
	}
	groups := map[string]*group{}
	out := make([]*record.Expr, 0, len(args))
	for _, e := range args {
		path, values := equalities(e)
		if path == "" {
			out = append(out, e)
			continue
		}
		g := groups[path]
		if g == nil {
			groups[path] = &group{at: len(out)}
			out = append(out, e)
			continue
		}
		if g.in == nil {
			_, first := equalities(out[g.at])
			g.in = &record.Expr{Op: record.In, Args: e.Args[:1], Values: slices.Clone(first)}
			out[g.at] = g.in
		}
		g.in.Values = append(g.in.Values, values...)
	}
	return out
}

// gatherable is how many comparisons of e will be part of an In with others, whose properties are in compared.
func gatherable(compared map[string]bool, e *record.Expr) (n int) {
	if e == nil {
		return 0
	}
	list := []*record.Expr{e}
	if e.Op == record.Or {
		list = e.Args
	}
	for _, e := range list {
		if path, _ := equalities(e); path != "" {
			if compared[path] {
				n++
			}
			compared[path] = true
		}
	}
	return n
}

// equalities are the constants that a field is compared with, "" if e is nothing of the kind.
func equalities(e *record.Expr) (path string, values []record.Value) {
	if len(e.Args) == 0 || e.Fold || e.Args[0].Op != record.Field {
		return "", nil
	}
	switch {
	case e.Op == record.In:
		return e.Args[0].Path, e.Values
	case e.Op == record.Eq && e.Args[1].Op == record.Const && !e.Args[1].Value.IsNull():
		return e.Args[0].Path, []record.Value{e.Args[1].Value}
	}
	return "", nil
}

// truth makes a condition of an operand: of a boolean property, that it is true.
func (p *filterParser) truth(o operand) (operand, error) {
	switch {
	case o.cond:
		return o, nil
	case o.lit != nil && o.lit.null():
		return operand{cond: true, at: o.at, yes: never, no: p.unknown(never)}, nil
	case o.lit != nil && o.lit.kind == edm.Boolean:
		return operand{cond: true, at: o.at, yes: constantly(o.lit.value.Truth())}, nil
	case o.expr != nil && o.kind == edm.Boolean && o.nav == nil:
		is := func(b bool) *record.Expr { return record.Compare(record.Eq, o.expr, record.C(record.BoolValue(b))) }
		return operand{cond: true, at: o.at, yes: is(true), no: p.unknown(is(false))}, nil
	}
	return o, p.invalid(o.at, "%s is no condition", p.what(&o))
}

// unknown is when a condition that may be unknown is false: of V4, where that can be told.
func (p *filterParser) unknown(no *record.Expr) *record.Expr {
	if p.q.ver == v2 {
		return nil
	}
	return no
}

// what names an operand and its type in errors.
func (p *filterParser) what(o *operand) string {
	switch {
	case o.lit != nil && o.lit.null():
		return "null"
	case o.lit != nil:
		return "the " + kindName(p.q.ver, o.lit.kind) + " " + cut(o.text)
	case o.cond:
		return "a condition"
	case o.rows != nil:
		return "a number of entities"
	case o.nav != nil:
		return "the entity " + o.nav.Name
	case o.name != "":
		return "the " + kindName(p.q.ver, o.kind) + " property " + cut(o.name)
	}
	return "an " + kindName(p.q.ver, o.kind)
}

// cut is a text short enough for an error.
func cut(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	n := most
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

var equalityWords = map[string]record.ExprOp{"eq": record.Eq, "ne": record.Ne}

var relationWords = map[string]record.ExprOp{"lt": record.Lt, "le": record.Le, "gt": record.Gt, "ge": record.Ge}

// equality reads `a eq b`, relation `a lt b`, which binds tighter.
func (p *filterParser) equality() (operand, error) { return p.compared(equalityWords, p.relation) }
func (p *filterParser) relation() (operand, error) { return p.compared(relationWords, p.sum) }

func (p *filterParser) compared(words map[string]record.ExprOp, next func() (operand, error)) (operand, error) {
	left, err := next()
	for err == nil {
		word := p.word()
		op, ok := words[word]
		if !ok {
			return left, nil
		}
		at := p.i
		p.i += len(word)
		var right operand
		if right, err = next(); err != nil {
			return right, err
		}
		if err = p.term(at); err != nil {
			return left, err
		}
		left, err = p.compare(at, op, left, right)
	}
	return left, err
}

var sumWords = map[string]record.ExprOp{"add": record.Add, "sub": record.Sub}

var productWords = map[string]record.ExprOp{"mul": record.Mul, "div": record.Div, "mod": record.Mod}

func (p *filterParser) sum() (operand, error)     { return p.computed(sumWords, p.product) }
func (p *filterParser) product() (operand, error) { return p.computed(productWords, p.unary) }

func (p *filterParser) computed(words map[string]record.ExprOp, next func() (operand, error)) (operand, error) {
	left, err := next()
	for err == nil {
		word := p.word()
		op, ok := words[word]
		by := word == "divby" && words["div"] != 0 && p.q.ver == v4
		if !ok && !by {
			return left, nil
		}
		at := p.i
		p.i += len(word)
		var right operand
		if right, err = next(); err != nil {
			return right, err
		}
		if err = p.term(at); err != nil {
			return left, err
		}
		if by {
			op = record.Div
		}
		left, err = p.arithmetic(at, word, op, left, right)
	}
	return left, err
}

// unary reads not and minus, and behind a primary in and has, which bind tightest.
func (p *filterParser) unary() (operand, error) {
	p.spaces()
	at := p.i
	word := nameAt(p.s[p.i:])
	switch {
	case word == "not" && p.i+3 < len(p.s) && (p.s[p.i+3] == ' ' || p.s[p.i+3] == '('):
		p.i += len(word)
		if err := p.enter(at); err != nil {
			return operand{}, err
		}
		defer p.leave()
		o, err := p.unary()
		if err != nil {
			return o, err
		}
		if o, err = p.truth(o); err != nil {
			return o, err
		}
		if o.having != nil {
			return o, p.unsupported(at, "a condition on an aggregate cannot be negated")
		}
		out := operand{cond: true, at: at, yes: o.falsity()}
		if o.no != nil {
			out.no = o.yes
		}
		return out, nil
	case p.peek() == '-':
		if text, _ := p.literalAt(); text == "" {
			p.i++
			if err := p.enter(at); err != nil {
				return operand{}, err
			}
			defer p.leave()
			o, err := p.unary()
			if err != nil {
				return o, err
			}
			return p.negative(at, o)
		}
	}
	o, err := p.primary()
	if err != nil || p.q.ver == v2 {
		return o, err
	}
	switch word := p.word(); word {
	case "in":
		at := p.i
		p.i += len(word)
		return p.in(at, o)
	case "has":
		return o, p.unsupported(p.i, "has is for enumerations, and there are none")
	}
	return o, nil
}

// primary reads a literal, a parenthesis, a call or a path.
func (p *filterParser) primary() (operand, error) {
	p.spaces()
	at := p.i
	if p.peek() == '(' {
		p.i++
		if err := p.enter(at); err != nil {
			return operand{}, err
		}
		defer p.leave()
		o, err := p.or()
		if err != nil {
			return o, err
		}
		return o, p.need(')')
	}
	if text, n := p.literalAt(); n > 0 {
		p.i += n
		return p.literal(at, text)
	}
	if p.peek() == '@' && p.q.ver == v4 {
		return p.alias()
	}
	dollar := ""
	if p.peek() == '$' {
		dollar = "$"
		p.i++
	}
	name := dollar + p.name()
	switch {
	case name == "":
		return operand{}, p.invalid(at, "a property, a literal or a function expected, %s found", p.found())
	case p.peek() == '(':
		return p.call(at, name)
	}
	return p.path(at, name)
}

func (p *filterParser) literal(at int, text string) (operand, error) {
	l, err := readLiteral(p.q.ver, text)
	if err != nil {
		return operand{}, p.invalid(at, "%s", record.AsError(err).Msg)
	}
	return operand{kind: l.kind, at: at, lit: &l, text: text}, nil
}

// alias reads @p, whose value is a query option of that name: an expression like the one it stands in.
func (p *filterParser) alias() (operand, error) {
	at := p.i
	p.i++
	name := "@" + p.name()
	value, ok := p.q.query.get(name)
	if !ok {
		return operand{}, p.invalid(at, "the alias %s has no value in the query", cut(name))
	}
	for _, open := range p.aliases {
		if open == name {
			return operand{}, p.invalid(at, "the alias %s names itself", cut(name))
		}
	}
	inner := &filterParser{
		scanner: &scanner{q: p.q, option: name, s: value, depth: p.depth, spent: p.spent},
		scope:   p.scope, aliases: append(p.aliases[:len(p.aliases):len(p.aliases)], name),
	}
	if err := inner.enter(0); err != nil {
		return operand{}, err
	}
	if err := inner.term(0); err != nil { // an alias that stands in many places costs as much as its text
		return operand{}, err
	}
	o, err := inner.or()
	if err == nil {
		err = inner.end()
	}
	o.at = at
	return o, err
}

// in reads the list of `a in (1,2)`.
func (p *filterParser) in(at int, o operand) (operand, error) {
	if err := p.term(at); err != nil {
		return o, err
	}
	if p.spaces(); p.peek() != '(' {
		return o, p.unsupported(p.i, "in takes a list of literals in parentheses")
	}
	p.i++
	in := &record.Expr{Op: record.In}
	list := []operand{{cond: true, at: o.at, yes: in}}
	for more := true; more; {
		p.spaces()
		item := p.i
		text, n := p.literalAt()
		if n == 0 {
			return o, p.invalid(item, "a literal expected, %s found", p.found())
		}
		p.i += n
		x, err := p.literal(item, text)
		if err != nil {
			return o, err
		}
		if x, err = p.compare(item, record.Eq, o, x); err != nil {
			return o, err
		}
		switch {
		case x.having != nil:
			return o, p.unsupported(at, "an aggregate can be compared with one value")
		case x.yes.Op == record.Eq && x.yes.Args[0] == o.expr && x.yes.Args[1].Op == record.Const:
			in.Args, in.Values = x.yes.Args[:1], append(in.Values, x.yes.Args[1].Value)
		default: // the empty text, which is null too, and days, which are ranges
			if err := p.term(item); err != nil {
				return o, err
			}
			list = append(list, x)
		}
		more = p.take(',')
	}
	if err := p.need(')'); err != nil {
		return o, err
	}
	if in.Values == nil {
		list = list[1:]
	}
	return p.joined(record.Or, list)
}

// path reads a path that begins with name: variables, navigation, properties, and any, all and $count behind navigation.
func (p *filterParser) path(at int, name string) (operand, error) {
	scope := p.scope
	if scope.grouped != nil {
		return p.groupedPath(at, name)
	}
	w := p.q.walk(scope.typ)
	switch {
	case name == "$it" && p.q.ver == v4:
		if scope.variable != "" {
			return operand{}, p.outer(at, name)
		}
		if err := p.slash(); err != nil {
			return operand{}, err
		}
		name = p.name()
	case strings.HasPrefix(name, "$"):
		return operand{}, p.invalid(at, "%s means nothing here", cut(name))
	case scope.variable != "":
		for s := scope; s != nil; s = s.outer {
			if s.variable == name && s != scope {
				return operand{}, p.outer(at, name)
			}
		}
		if scope.variable != name {
			for s := scope.outer; s != nil; s = s.outer {
				if s.variable == "" && (s.typ.Property(name) != nil || s.typ.Nav(name) != nil) {
					return operand{}, p.outer(at, name)
				}
			}
			return operand{}, p.invalid(at, "unknown name '%s'; the variable here is %s", cut(name), scope.variable)
		}
		if err := p.slash(); err != nil {
			return operand{}, err
		}
		name = p.name()
	}
	return p.steps(at, w, name)
}

// outer is the error of a name of an entity outside any or all.
func (p *filterParser) outer(at int, name string) error {
	return p.unsupported(at, "%s is of an entity outside of any or all, with which those inside cannot be compared", cut(name))
}

func (p *filterParser) slash() error {
	if p.peek() != '/' {
		return p.invalid(p.i, "'/' and a property expected, %s found", p.found())
	}
	p.i++
	return nil
}

// steps reads a path from an entity on.
func (p *filterParser) steps(start int, w walk, name string) (operand, error) {
	at := p.i - len(name)
	for {
		if name == "" {
			return operand{}, p.invalid(p.i, "a property expected, %s found", p.found())
		}
		if schema, short, ok := cutLast(name, '.'); ok && schema == p.q.svc.Schema && short == w.typ.Name && p.peek() == '/' {
			p.i++
			at = p.i
			name = p.name()
			continue
		}
		if prop := w.typ.Property(name); prop != nil {
			return p.property(start, &w, prop)
		}
		nav := w.typ.Nav(name)
		if nav == nil {
			return operand{}, p.invalid(at, "unknown property '%s' of %s", cut(name), w.typ.Name)
		}
		if nav.Many {
			return p.collection(start, w, nav)
		}
		if !w.step(nav) {
			return operand{}, p.invalid(at, "%s of %s compares nothing and cannot be asked for", nav.Name, nav.Owner.Name)
		}
		if p.peek() != '/' {
			key, ok := w.value(w.typ.Key[0])
			if !ok {
				return operand{}, p.tooLong(start)
			}
			return operand{kind: w.typ.Key[0].Kind, at: start, name: nav.Name, expr: key, nav: nav}, nil
		}
		p.i++
		at = p.i
		name = p.name()
	}
}

func (p *filterParser) tooLong(at int) error {
	return p.invalid(at, "the path cannot be asked for: it is not stored, or too long")
}

// property is the value of a property or of a member of a complex one.
func (p *filterParser) property(start int, w *walk, prop *edm.Property) (operand, error) {
	if prop.Kind == edm.ComplexKind {
		if p.peek() != '/' {
			return operand{}, p.invalid(start, "%s of %s is complex; its members can be asked for", prop.Name, w.typ.Name)
		}
		p.i++
		at := p.i
		name := p.name()
		part := prop.Part(name)
		if part == nil {
			return operand{}, p.invalid(at, "unknown property '%s' of %s", cut(name), prop.Complex.Name)
		}
		prop = part
	}
	if p.peek() == '/' {
		return operand{}, p.invalid(p.i, "%s has no properties", prop.Name)
	}
	e, ok := w.value(prop)
	if !ok {
		return operand{}, p.tooLong(start)
	}
	return operand{kind: prop.Kind, at: start, name: prop.Name, expr: e, field: p.q.fieldOf(w.typ, prop)}, nil
}

// relationTerms is how many terms a condition over a collection counts for: PostgreSQL plans hundreds of them for seconds.
const relationTerms = 10

// collection reads what follows a navigation property to many: any, all or $count (V4).
func (p *filterParser) collection(start int, w walk, nav *edm.Nav) (operand, error) {
	rel, ok := w.relation(nav)
	if !ok {
		return operand{}, p.invalid(start, "%s of %s compares nothing and cannot be asked for", nav.Name, nav.Owner.Name)
	}
	if p.q.ver == v2 {
		return operand{}, p.invalid(start, "%s leads to many entities, so that there is no one value to compare", nav.Name)
	}
	if p.peek() != '/' {
		return operand{}, p.invalid(p.i, "'/any', '/all' or '/$count' expected behind %s, %s found", nav.Name, p.found())
	}
	p.spent.terms += relationTerms - 1
	if err := p.term(start); err != nil {
		return operand{}, err
	}
	p.i++
	at := p.i
	dollar := p.take('$')
	word := p.name()
	if dollar && word == "count" {
		o := operand{kind: edm.Int64, at: start, rows: &countOf{walk: w, rel: rel}}
		if p.peek() == '(' {
			where, err := p.countFilter(nav)
			if err != nil {
				return operand{}, err
			}
			o.rows.where = where
		}
		return o, nil
	}
	if dollar || word != "any" && word != "all" {
		return operand{}, p.invalid(at, "'any', 'all' or '$count' expected behind %s", nav.Name)
	}
	if err := p.need('('); err != nil {
		return operand{}, err
	}
	if word == "any" && p.take(')') {
		return operand{cond: true, at: start, yes: w.counts(rel, nil, record.Ge, 1)}, nil
	}
	p.spaces()
	at = p.i
	variable := p.name()
	if variable == "" || strings.IndexByte(variable, '.') >= 0 {
		return operand{}, p.invalid(at, "a variable expected, %s found", p.found())
	}
	for s := p.scope; s != nil; s = s.outer {
		if s.variable == variable {
			return operand{}, p.invalid(at, "the variable %s is taken", cut(variable))
		}
	}
	if err := p.need(':'); err != nil {
		return operand{}, err
	}
	cond, err := p.inside(at, &filterScope{typ: nav.Target.Type, variable: variable, outer: p.scope})
	if err != nil {
		return operand{}, err
	}
	if err := p.need(')'); err != nil {
		return operand{}, err
	}
	if word == "any" {
		return operand{cond: true, at: start, yes: w.counts(rel, cond, record.Ge, 1)}, nil
	}
	return operand{cond: true, at: start, yes: w.counts(rel, negate(cond), record.Eq, 0)}, nil
}

// inside reads a condition in another scope.
func (p *filterParser) inside(at int, scope *filterScope) (*record.Expr, error) {
	if err := p.enter(at); err != nil {
		return nil, err
	}
	defer p.leave()
	inner := &filterParser{scanner: p.scanner, scope: scope, aliases: p.aliases}
	return inner.where()
}

// countFilter reads ($filter=…) behind $count.
func (p *filterParser) countFilter(nav *edm.Nav) (*record.Expr, error) {
	p.i++
	at := p.i
	p.take('$')
	if word := p.name(); word != "filter" {
		return nil, p.invalid(at, "$filter expected")
	}
	if err := p.need('='); err != nil {
		return nil, err
	}
	where, err := p.inside(at, &filterScope{typ: nav.Target.Type})
	if err != nil {
		return nil, err
	}
	return where, p.need(')')
}
