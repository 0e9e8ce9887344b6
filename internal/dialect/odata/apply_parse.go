package odata

import (
	"slices"
	"strings"

	"weir/internal/edm"
	"weir/internal/record"
)

// applying is the reading of $apply (OData Data Aggregation 4.0): transformations separated by slashes, of which one aggregates. What
// comes before it filters, what comes after it filters, sorts and cuts its result. Without an aggregation the transformations are
// those that the other query options have too.
type applying struct {
	set        *edm.Set
	out        *apply
	aggregated bool
	cut        bool // top and skip have been applied: what was cut off cannot be filtered or sorted any more
}

// applyVerbs are the transformations of the specification that are not built.
var applyVerbs = map[string]bool{
	"concat": true, "compute": true, "expand": true, "join": true, "outerjoin": true, "nest": true, "addnested": true,
	"topsum": true, "toppercent": true, "bottomsum": true, "bottompercent": true, "ancestors": true, "descendants": true, "traverse": true,
}

// apply reads $apply for entities of a set.
func (p *scanner) apply(set *edm.Set) (*applying, error) {
	a := &applying{set: set, out: &apply{top: -1}}
	for {
		p.spaces()
		if err := a.transform(p); err != nil {
			return nil, err
		}
		if !p.take('/') {
			return a, p.end()
		}
	}
}

func (a *applying) transform(p *scanner) error {
	at := p.i
	verb := p.name()
	if err := p.term(at); err != nil {
		return err
	}
	switch {
	case verb == "identity":
		return nil
	case applyVerbs[verb]:
		return p.unsupported(at, "the transformation %s is not supported", verb)
	}
	step := map[string]func(*scanner) error{
		"filter": a.filter, "search": a.search, "aggregate": a.aggregate, "groupby": a.groupby, "orderby": a.orderby,
		"top": a.top, "skip": a.skip, "topcount": a.topcount, "bottomcount": a.bottomcount,
	}[verb]
	if step == nil {
		return p.invalid(at, "a transformation such as filter, groupby or aggregate expected, '%s' found", cut(verb))
	}
	if err := p.need('('); err != nil {
		return err
	}
	if a.cut && verb != "top" && verb != "skip" {
		return p.unsupported(at, "%s behind a transformation that cuts the result is not supported", verb)
	}
	if a.aggregated && (verb == "aggregate" || verb == "groupby" || verb == "search") {
		return p.unsupported(at, "%s behind an aggregation is not supported", verb)
	}
	if err := step(p); err != nil {
		return err
	}
	return p.need(')')
}

// scope is what names mean at present.
func (a *applying) scope() *filterScope {
	s := &filterScope{typ: a.set.Type}
	if a.aggregated {
		s.grouped = a.out
	}
	return s
}

func (a *applying) filter(p *scanner) error {
	if a.cut {
		return p.unsupported(p.i, "a filter behind a transformation that cuts the result is not supported")
	}
	f := &filterParser{scanner: p, scope: a.scope()}
	at := p.i
	o, err := f.condition()
	if err != nil {
		return err
	}
	if err := p.bounded(at, o.yes); err != nil {
		return err
	}
	// A condition on groups holds for all of a group or for none of it, so it may come before the aggregation.
	a.out.filter = record.AllOf(a.out.filter, o.yes)
	a.out.having = append(a.out.having, o.having...)
	return nil
}

func (a *applying) search(p *scanner) error {
	where, err := p.search(a.set)
	a.out.filter = record.AllOf(a.out.filter, where)
	return err
}

func (a *applying) orderby(p *scanner) error {
	if a.cut || a.out.sort != nil {
		return p.unsupported(p.i, "sorting again is not supported")
	}
	var err error
	a.out.sort, err = p.orderby(a.scope())
	return err
}

func (a *applying) top(p *scanner) error {
	n, err := p.whole()
	a.take(n)
	return err
}

// take keeps the first n of what is left.
func (a *applying) take(n int64) {
	if a.cut = true; a.out.top < 0 || n < a.out.top {
		a.out.top = n
	}
}

func (a *applying) skip(p *scanner) error {
	n, err := p.whole()
	a.drop(n)
	return err
}

// drop leaves the first n of what is left out.
func (a *applying) drop(n int64) {
	a.cut = true
	a.out.skip += n
	if a.out.top >= 0 {
		a.out.top = max(a.out.top-n, 0)
	}
}

func (a *applying) topcount(p *scanner) error    { return a.best(p, true) }
func (a *applying) bottomcount(p *scanner) error { return a.best(p, false) }

// best reads the number and the expression of topcount and bottomcount.
func (a *applying) best(p *scanner, desc bool) error {
	at := p.i
	n, err := p.whole()
	if err != nil {
		return err
	}
	if err := p.need(','); err != nil {
		return err
	}
	p.spaces()
	f := &filterParser{scanner: p, scope: a.scope()}
	o, err := f.unary()
	if err != nil {
		return err
	}
	key, err := f.sortKey(o.at, &o)
	if err != nil {
		return err
	}
	if a.out.sort != nil {
		return p.unsupported(at, "sorting again is not supported")
	}
	key.Desc = desc
	a.out.sort = []record.Sort{key}
	a.take(n)
	return nil
}

// groupby reads ((Category,ToSupplier/Name),aggregate(…)).
func (a *applying) groupby(p *scanner) error {
	if a.out.sort != nil {
		return p.unsupported(p.i, "groups of a sorted result are not supported")
	}
	if err := p.need('('); err != nil {
		return err
	}
	for {
		p.spaces()
		if err := a.group(p); err != nil {
			return err
		}
		if !p.take(',') {
			break
		}
	}
	if err := p.need(')'); err != nil {
		return err
	}
	if p.take(',') {
		p.spaces()
		at := p.i
		if verb := p.name(); verb != "aggregate" {
			return p.unsupported(at, "'%s' within groupby is not supported; aggregate is", cut(verb))
		}
		if err := p.need('('); err != nil {
			return err
		}
		if err := a.aggregate(p); err != nil {
			return err
		}
		if err := p.need(')'); err != nil {
			return err
		}
		if p.peek() == '/' {
			return p.unsupported(p.i, "a sequence within groupby is not supported")
		}
	}
	a.aggregated = true
	return nil
}

// group reads one path to group by.
func (a *applying) group(p *scanner) error {
	at := p.i
	if err := p.term(at); err != nil {
		return err
	}
	path, prop, names, err := a.path(p)
	if err != nil {
		return err
	}
	if slices.Contains(a.out.groupPaths, path) {
		return p.invalid(at, "%s stands there twice", strings.Join(names, "/"))
	}
	a.out.group = append(a.out.group, prop)
	a.out.groupPaths = append(a.out.groupPaths, path)
	a.out.groupNames = append(a.out.groupNames, names)
	return nil
}

// path reads a path to a property with a record path of its own.
func (a *applying) path(p *scanner) (path string, prop *edm.Property, names []string, err error) {
	start := p.i
	w := p.q.walk(a.set.Type)
	for {
		at := p.i
		name := p.name()
		if p.peek() == '(' && name != "" {
			return "", nil, nil, p.unsupported(at, "%s within $apply is not supported", cut(name))
		}
		names = append(names, name)
		if prop = w.typ.Property(name); prop != nil {
			break
		}
		nav := w.typ.Nav(name)
		switch {
		case name == "":
			return "", nil, nil, p.invalid(at, "a property expected, %s found", p.found())
		case nav == nil:
			return "", nil, nil, p.invalid(at, "unknown property '%s' of %s", cut(name), w.typ.Name)
		case nav.Many:
			return "", nil, nil, p.unsupported(at, "aggregation over %s, which leads to many entities, is not supported", nav.Name)
		case !w.step(nav):
			return "", nil, nil, p.invalid(at, "%s of %s compares nothing and cannot be asked for", nav.Name, nav.Owner.Name)
		case p.peek() != '/':
			return "", nil, nil, p.unsupported(at, "%s is an entity; its properties can be named", nav.Name)
		}
		p.i++
	}
	if prop.Kind == edm.ComplexKind {
		if p.peek() != '/' {
			return "", nil, nil, p.invalid(start, "%s is complex; its members can be named", prop.Name)
		}
		p.i++
		at := p.i
		name := p.name()
		names = append(names, name)
		part := prop.Part(name)
		if part == nil {
			return "", nil, nil, p.invalid(at, "unknown property '%s' of %s", cut(name), prop.Complex.Name)
		}
		prop = part
	}
	path, ok := w.path(prop)
	if !ok {
		return "", nil, nil, p.unsupported(start, "aggregation over navigation that is no reference is not supported")
	}
	return path, prop, names, nil
}

var aggregateWords = map[string]record.AggFunc{
	"sum": record.Sum, "min": record.Min, "max": record.Max, "average": record.Avg, "countdistinct": record.CountDistinct,
}

// aggregate reads `Price with sum as Total,$count as N`.
func (a *applying) aggregate(p *scanner) error {
	if a.out.sort != nil {
		return p.unsupported(p.i, "aggregation of a sorted result is not supported")
	}
	for {
		p.spaces()
		if err := p.term(p.i); err != nil {
			return err
		}
		agg, err := a.aggregation(p)
		if err != nil {
			return err
		}
		a.out.aggs = append(a.out.aggs, agg)
		if !p.take(',') {
			a.aggregated = true
			return nil
		}
	}
}

func (a *applying) aggregation(p *scanner) (agg aggregate, err error) {
	if strings.HasPrefix(p.s[p.i:], "$count") {
		p.i += len("$count")
		agg.kind = edm.Int64
		return agg, a.alias(p, &agg)
	}
	start := p.i
	path, prop, _, err := a.path(p)
	if err != nil {
		return agg, err
	}
	if p.peek() == '/' && strings.HasPrefix(p.s[p.i:], "/$count") {
		return agg, p.unsupported(start, "a count of navigation is not supported")
	}
	p.spaces()
	at := p.i
	switch word := p.name(); word {
	case "with":
	case "mul", "div", "divby", "add", "sub", "mod":
		return agg, p.unsupported(at, "aggregation of expressions is not supported")
	default:
		p.i = at
		return agg, p.invalid(at, "'with' and a function such as sum expected, %s found", p.found())
	}
	p.spaces()
	at = p.i
	word := p.name()
	fn, ok := aggregateWords[word]
	switch {
	case !ok && strings.IndexByte(word, '.') > 0:
		return agg, p.unsupported(at, "the aggregation %s is not supported", cut(word))
	case !ok:
		p.i = at
		return agg, p.invalid(at, "sum, min, max, average or countdistinct expected, %s found", p.found())
	}
	agg.agg = record.Agg{Func: fn, Path: path}
	agg.kind = prop.Kind
	switch c := classOf(prop.Kind); {
	case fn == record.CountDistinct:
		agg.kind = edm.Int64
	case (fn == record.Sum || fn == record.Avg) && c != numberClass && c != spanClass, c == byteClass, c == truthClass:
		return agg, p.invalid(at, "there is no %s of the %s property %s", word, kindName(p.q.ver, prop.Kind), prop.Name)
	case fn == record.Avg && c == spanClass:
		return agg, p.unsupported(at, "an average of durations is not supported")
	case fn == record.Avg:
		agg.kind = edm.Double
	case fn == record.Sum && !fractional(prop.Kind) && c == numberClass:
		agg.kind = edm.Int64
	case fn == record.Sum && prop.Kind == edm.Single:
		agg.kind = edm.Double
	}
	p.spaces()
	if nameAt(p.s[p.i:]) == "from" {
		return agg, p.unsupported(p.i, "from within aggregate is not supported")
	}
	return agg, a.alias(p, &agg)
}

// alias reads `as Total`.
func (a *applying) alias(p *scanner, agg *aggregate) error {
	p.spaces()
	at := p.i
	if p.name() != "as" {
		p.i = at
		return p.invalid(at, "'as' and a name for the result expected, %s found", p.found())
	}
	p.spaces()
	at = p.i
	agg.alias = p.name()
	switch {
	case !isName(agg.alias):
		p.i = at
		return p.invalid(at, "a name for the result expected, %s found", p.found())
	case a.set.Type.Property(agg.alias) != nil || a.set.Type.Nav(agg.alias) != nil:
		return p.invalid(at, "%s is a property of %s and cannot name a result", agg.alias, a.set.Type.Name)
	case a.out.named(agg.alias) != nil:
		return p.invalid(at, "%s stands there twice", agg.alias)
	}
	return nil
}

// named is the aggregate of that alias, nil if there is none.
func (ap *apply) named(alias string) *aggregate {
	for i := range ap.aggs {
		if ap.aggs[i].alias == alias {
			return &ap.aggs[i]
		}
	}
	return nil
}

// groupedPath is a name behind an aggregation: of an aggregate, or a path that was grouped by.
func (p *filterParser) groupedPath(at int, name string) (operand, error) {
	ap := p.scope.grouped
	if agg := ap.named(name); agg != nil {
		return operand{kind: agg.kind, at: at, name: name, agg: agg}, nil
	}
	o, err := p.steps(at, p.q.walk(p.scope.typ), name)
	if err != nil {
		return o, err
	}
	if o.expr == nil || o.nav != nil || o.expr.Op != record.Field || !slices.Contains(ap.groupPaths, o.expr.Path) {
		return o, p.invalid(at, "%s is not there any more: it was neither grouped by nor aggregated", cut(p.s[at:p.i]))
	}
	return o, nil
}

// finish makes the query of what was read, with $orderby, $top and $skip behind it.
func (a *applying) finish(q *query) error {
	if q.skip > 0 {
		a.drop(q.skip)
	}
	if q.top >= 0 {
		a.take(q.top)
	}
	if a.aggregated {
		if q.token != "" {
			return unsupported("$skiptoken", "$skiptoken beside an aggregation is not supported")
		}
		q.skip, q.top = 0, -1
		q.apply = a.out
		return nil
	}
	q.filter, q.sort, q.skip, q.top = record.AllOf(a.out.filter, q.filter), a.out.sort, a.out.skip, a.out.top
	return nil
}
