package odata

import (
	"strings"

	"weir/internal/edm"
	"weir/internal/record"
)

// systemOptions are the options of each version that mean something here or elsewhere; those of V4 without their $.
var (
	systemOptions2 = map[string]bool{
		"$filter": true, "$orderby": true, "$top": true, "$skip": true, "$skiptoken": true, "$select": true, "$expand": true,
		"$inlinecount": true, "$format": true,
	}
	systemOptions4 = map[string]bool{
		"filter": true, "orderby": true, "top": true, "skip": true, "skiptoken": true, "select": true, "expand": true, "count": true,
		"search": true, "apply": true, "format": true, "compute": true, "deltatoken": true, "id": true, "index": true,
		"schemaversion": true, "levels": true,
	}
)

// systemOption is the name of a system query option as the parser knows it, "" for an option of somebody else: sap-client,
// sap-language, aliases. V4 knows its options in any case and without $ too (4.01). The error is that of an option that does not exist.
func (q *request) systemOption(name string) (string, error) {
	unknown := func() (string, error) {
		return "", record.Errorf(record.Invalid, name, "unknown query option %s", cut(name))
	}
	if q.ver == v2 {
		switch {
		case name == "search":
			return "$search", nil
		case systemOptions2[name]:
			return name, nil
		case strings.HasPrefix(name, "$"):
			return unknown()
		}
		return "", nil
	}
	plain, dollar := strings.CutPrefix(name, "$")
	plain = strings.ToLower(plain)
	switch {
	case systemOptions4[plain]:
		return "$" + plain, nil
	case dollar:
		return unknown()
	}
	return "", nil
}

// queryOptions are the values of the system query options of a call, by name.
type queryOptions map[string]string

// systemOptions finds the system query options. One that stands there twice is Invalid.
func (q *request) systemOptions(t *target) (queryOptions, error) {
	var list queryOptions
	for _, p := range q.query {
		if t.function != nil && isParameter(t.function, p.name) {
			continue
		}
		name, err := q.systemOption(p.name)
		switch {
		case err != nil:
			return nil, err
		case name == "":
			continue
		}
		if _, twice := list[name]; twice {
			return nil, record.Errorf(record.Invalid, name, "the query option %s stands there twice", name)
		}
		if list == nil {
			list = queryOptions{}
		}
		list[name] = p.value
	}
	return list, nil
}

func isParameter(f *edm.Function, name string) bool {
	for _, p := range f.Parameters {
		if p.Name == name {
			return true
		}
	}
	return false
}

// parseQuery reads the system query options for entities of the set that the path ends in (protocol notes, sections 2 and 9). An option
// that does not exist, that stands there twice or that does not fit what the path addresses is Invalid; what V4 knows and we do not is
// answered by 501. $format is up to negotiate.
//
// The annotations sortable and filterable tell clients what to offer. Gateway leaves it to the service whether more is possible, and
// here everything is that has a field.
func (q *request) parseQuery(t *target) (*query, error) {
	out := &query{top: -1, all: true}
	if len(q.query) == 0 {
		return out, nil
	}
	given, err := q.systemOptions(t)
	if err != nil || len(given) == 0 {
		return out, err
	}
	set, many := q.answers(t)
	if err := q.applicable(given, t, set != nil, many); err != nil {
		return nil, err
	}
	if set == nil {
		return out, nil
	}
	r := &queryReader{q: q, given: given, set: set, out: out, spent: &spent{}}
	return out, r.read()
}

// answers is the set whose entities answer the call, nil if there are none, and whether they may be many.
func (q *request) answers(t *target) (set *edm.Set, many bool) {
	switch t.kind {
	case setTarget:
		return t.end(), true
	case entityTarget:
		return t.end(), false
	case functionTarget:
		return t.function.Set, t.function.Collection
	}
	return nil, false
}

// applicable refuses options that say nothing about what the path addresses.
func (q *request) applicable(given queryOptions, t *target, entities, many bool) error {
	for _, name := range [...]string{"$compute", "$deltatoken"} {
		if _, ok := given[name]; ok {
			return unsupported(name, "%s is not supported", name)
		}
	}
	for _, name := range [...]string{"$levels", "$filter", "$search", "$orderby", "$top", "$skip", "$skiptoken", "$inlinecount", "$count", "$apply", "$select", "$expand"} {
		if _, ok := given[name]; !ok {
			continue
		}
		switch name {
		case "$levels":
			return record.Errorf(record.Invalid, name, "$levels stands within $expand")
		case "$select", "$expand":
			if !entities {
				return record.Errorf(record.Invalid, name, "%s is for entities, and the path leads to none", name)
			}
		default:
			if !many {
				return record.Errorf(record.Invalid, name, "%s is for collections, and the path leads to none", name)
			}
		}
	}
	if _, ok := given["$id"]; ok && !t.links {
		return record.Errorf(record.Invalid, "$id", "$id is for paths that end in $ref")
	}
	return nil
}

// queryReader reads the options of one query.
type queryReader struct {
	q     *request
	given queryOptions
	set   *edm.Set
	out   *query
	spent *spent
	apply *applying // of $apply, nil without it
}

// over is a scanner over the value of an option; false if it is not given or empty, which is the same to clients.
func (r *queryReader) over(name string) (*scanner, bool) {
	value, ok := r.given[name]
	if !ok {
		return nil, false
	}
	shown := name
	if name == "$search" && r.q.ver == v2 {
		shown = "search"
	}
	p := &scanner{q: r.q, option: shown, s: value, spent: r.spent}
	return p, !p.done()
}

func (r *queryReader) read() error {
	for _, step := range [...]func() error{r.applied, r.filter, r.search, r.orderby, r.bounds, r.counting, r.shape} {
		if err := step(); err != nil {
			return err
		}
	}
	if r.apply != nil {
		return r.apply.finish(r.out)
	}
	return nil
}

func (r *queryReader) applied() error {
	p, ok := r.over("$apply")
	if !ok {
		return nil
	}
	var err error
	r.apply, err = p.apply(r.set)
	return err
}

func (r *queryReader) filter() error {
	p, ok := r.over("$filter")
	if !ok {
		return nil
	}
	if r.apply != nil {
		if err := r.apply.filter(p); err != nil {
			return err
		}
		return p.end()
	}
	where, err := p.filter(r.set.Type)
	if err != nil {
		return err
	}
	r.out.filter = where
	return p.end()
}

// filter reads a condition on entities of typ, up to what cannot go on with it.
func (p *scanner) filter(typ *edm.Type) (*record.Expr, error) {
	f := &filterParser{scanner: p, scope: &filterScope{typ: typ}}
	at := p.i
	e, err := f.where()
	if err != nil {
		return nil, err
	}
	return e, p.bounded(at, e)
}

// bounded refuses a condition that says so much as no terms within their bound should: what may be unknown stands there twice where
// it is asked whether it is.
func (p *scanner) bounded(at int, e *record.Expr) error {
	most := 16 * p.q.d.opt.MaxTerms
	if within(e, most) < 0 {
		return p.invalid(at, "the condition has more than %d parts; see odata.max_terms", most)
	}
	return nil
}

// within is how much of a number of nodes an expression leaves, negative if it has more.
func within(e *record.Expr, left int) int {
	if e == nil {
		return left
	}
	left--
	for i := 0; i < len(e.Args) && left >= 0; i++ {
		left = within(e.Args[i], left)
	}
	if e.Rel != nil && left >= 0 {
		if left = within(e.Rel.Where, left); left >= 0 {
			left = within(e.Rel.Value, left)
		}
	}
	return left
}

func (r *queryReader) search() error {
	p, ok := r.over("$search")
	if !ok {
		return nil
	}
	if r.apply != nil {
		return p.unsupported(0, "a search beside $apply is not supported; search(…) within it is")
	}
	where, err := p.search(r.set)
	if err != nil {
		return err
	}
	r.out.filter = record.AllOf(where, r.out.filter)
	return p.end()
}

func (r *queryReader) orderby() error {
	p, ok := r.over("$orderby")
	if !ok {
		return nil
	}
	if r.apply != nil {
		if err := r.apply.orderby(p); err != nil {
			return err
		}
		return p.end()
	}
	var err error
	if r.out.sort, err = p.orderby(&filterScope{typ: r.set.Type}); err != nil {
		return err
	}
	return p.end()
}

// orderby reads sort keys separated by commas: paths over navigation to one entity, with asc or desc.
func (p *scanner) orderby(scope *filterScope) ([]record.Sort, error) {
	var list []record.Sort
	for {
		p.spaces()
		at := p.i
		if err := p.term(at); err != nil {
			return nil, err
		}
		f := &filterParser{scanner: p, scope: scope}
		o, err := f.unary()
		if err != nil {
			return nil, err
		}
		key, err := f.sortKey(at, &o)
		if err != nil {
			return nil, err
		}
		p.spaces()
		switch word := nameAt(p.s[p.i:]); strings.ToLower(word) {
		case "desc":
			key.Desc = true
			p.i += len(word)
		case "asc":
			p.i += len(word)
		}
		list = append(list, key)
		if !p.take(',') {
			return list, nil
		}
	}
}

// sortKey is what an operand sorts by.
func (p *filterParser) sortKey(at int, o *operand) (record.Sort, error) {
	switch {
	case o.agg != nil:
		return record.Sort{Agg: &o.agg.agg}, nil
	case o.nav != nil:
		return record.Sort{}, p.invalid(at, "%s is an entity; its properties can be sorted by", o.nav.Name)
	case o.lit != nil:
		return record.Sort{}, p.invalid(at, "a property expected, %s found", cut(o.text))
	case o.expr != nil && o.expr.Op == record.Field:
		return record.Sort{Path: o.expr.Path}, nil
	case o.expr != nil && o.expr.Op == record.Via:
		return record.Sort{}, p.unsupported(at, "sorting over navigation that is no reference is not supported")
	}
	return record.Sort{}, p.unsupported(at, "sorting by expressions is not supported")
}

// bounds reads $top, $skip and $skiptoken.
func (r *queryReader) bounds() error {
	for _, o := range [...]struct {
		name string
		to   *int64
	}{{"$top", &r.out.top}, {"$skip", &r.out.skip}} {
		value, ok := r.given[o.name]
		if !ok {
			continue
		}
		p := &scanner{q: r.q, option: o.name, s: value, spent: r.spent}
		n, err := p.whole()
		if err != nil {
			return err
		}
		if err := p.end(); err != nil {
			return err
		}
		*o.to = n
	}
	r.out.token = r.given["$skiptoken"]
	return nil
}

func (r *queryReader) counting() error {
	if value, ok := r.given["$inlinecount"]; ok {
		switch value {
		case "allpages":
			r.out.count = true
		case "none":
		default:
			return record.Errorf(record.Invalid, "$inlinecount", "$inlinecount is allpages or none, not %q", cut(value))
		}
	}
	if value, ok := r.given["$count"]; ok {
		p := &scanner{q: r.q, option: "$count", s: value, spent: r.spent}
		var err error
		if r.out.count, err = p.yesOrNo(); err != nil {
			return err
		}
		return p.end()
	}
	return nil
}

// yesOrNo reads true or false.
func (p *scanner) yesOrNo() (bool, error) {
	p.spaces()
	at := p.i
	switch word := p.name(); strings.ToLower(word) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	p.i = at
	return false, p.invalid(at, "true or false expected, %s found", p.found())
}

// shape reads $expand and $select.
func (r *queryReader) shape() error {
	if p, ok := r.over("$expand"); ok {
		if r.apply != nil {
			return p.unsupported(0, "$expand beside $apply is not supported")
		}
		if err := p.expand(r.set.Type, &r.out.expand, 1); err != nil {
			return err
		}
		if err := p.end(); err != nil {
			return err
		}
	}
	if p, ok := r.over("$select"); ok {
		if r.apply != nil {
			return p.unsupported(0, "$select beside $apply is not supported")
		}
		sel := &choice{}
		if err := p.choose(r.set.Type, sel, 1); err != nil {
			return err
		}
		if err := p.end(); err != nil {
			return err
		}
		sel.applyTo(r.out)
	}
	return nil
}
