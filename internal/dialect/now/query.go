package now

import (
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// encoded is what an encoded query says.
type encoded struct {
	where   *record.Expr // nil: all records
	sort    []record.Sort
	group   []string // GROUPBY fields
	ignored []string // invalid terms, as they stood
	walks   walks    // references that conditions and sort keys walk through
}

// queryParser reads encoded queries:
//
//	query := group ( "^NQ" group )*           groups are ORed
//	group := term ( "^" term )* ["^EQ"]       terms are ANDed, ^EQ means nothing
//	term  := cond ( "^OR" cond )*             ^OR binds to the condition before it
//
// A term that cannot be read, or names a field that is not there, is dropped and reported: clients depend on that.
type queryParser struct {
	q     *request
	clock clock
	out   encoded
	terms int
}

// maxQueryDepth bounds related-list queries within related-list queries.
const maxQueryDepth = 3

// parseQuery reads an encoded query over the request's table.
func (q *request) parseQuery(text string) (*encoded, error) {
	p := q.newParser()
	p.out.where = p.query(splitTerms(text), q.table, 0)
	return p.finish("sysparm_query")
}

func (q *request) newParser() *queryParser {
	return &queryParser{q: q, clock: clock{q.d.opt.Clock().UTC(), q.d.opt.Location}, out: encoded{walks: walks{max: q.d.opt.MaxWalks}}}
}

// parseShorthand reads <field>=<value> parameters, ANDed: equality, where choices and references may be given by what is
// shown of them.
func (q *request) parseShorthand(list params) (*encoded, error) {
	p := q.newParser()
	var all []*record.Expr
	for i := range list {
		p.terms++
		if e := p.shorthand(list[i].name, list[i].value); e != nil {
			all = append(all, e)
		} else {
			p.ignore(list[i].name + "=" + list[i].value)
		}
	}
	p.out.where = record.AllOf(all...)
	return p.finish(list[0].name)
}

func (p *queryParser) finish(param string) (*encoded, error) {
	if limit := p.q.d.opt.MaxConditions; p.terms > limit {
		return nil, record.Errorf(record.TooLarge, param, "%d conditions, %d are allowed; see now.max_conditions", p.terms, limit)
	}
	if err := p.out.walks.check(param); err != nil {
		return nil, err
	}
	if len(p.out.ignored) > 0 && p.q.d.opt.InvalidQueryReturnsNoRows {
		p.out.where = &record.Expr{Op: record.Never}
	}
	return &p.out, nil
}

func (p *queryParser) ignore(term string) { p.out.ignored = append(p.out.ignored, term) }

// splitTerms cuts a query at each ^ that is not doubled; ^^ is one ^ within a value.
func splitTerms(text string) []string {
	if !strings.Contains(text, "^^") {
		return strings.Split(text, "^")
	}
	var list []string
	var term []byte
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '^':
			term = append(term, text[i])
		case i+1 < len(text) && text[i+1] == '^':
			term = append(term, '^')
			i++
		default:
			list = append(list, string(term))
			term = term[:0]
		}
	}
	return append(list, string(term))
}

// alternatives are conditions of which one must hold; empty when all were invalid.
type alternatives []*record.Expr

// conjunction is one group of a query while it is read.
type conjunction struct {
	terms []alternatives
}

func (c *conjunction) add(e *record.Expr, or bool) {
	if or && len(c.terms) > 0 {
		last := &c.terms[len(c.terms)-1]
		if e != nil {
			*last = append(*last, e)
		}
		return
	}
	if e == nil {
		c.terms = append(c.terms, nil)
	} else {
		c.terms = append(c.terms, alternatives{e})
	}
}

// expr is the group as a condition; false when nothing valid is in it.
func (c *conjunction) expr() (*record.Expr, bool) {
	var all []*record.Expr
	valid := false
	for _, t := range c.terms {
		if len(t) > 0 {
			valid = true
			all = append(all, record.AnyOf(t...))
		}
	}
	return record.AllOf(all...), valid
}

// query makes a condition of terms over table t; nil is all records. A group in which nothing is valid does not count, so
// that a slip after ^NQ does not turn a query into "everything".
func (p *queryParser) query(terms []string, t *catalog.Table, depth int) *record.Expr {
	var groups []*record.Expr
	everything := false
	current := &conjunction{}
	end := func() {
		if e, valid := current.expr(); valid {
			groups = append(groups, e)
			everything = everything || e == nil // ANYTHING alone
		}
		current = &conjunction{}
	}
	for i := 0; i < len(terms); i++ {
		term := terms[i]
		if term == "" || term == "EQ" {
			continue
		}
		if p.terms++; p.terms > p.q.d.opt.MaxConditions {
			return nil // finish makes it an error
		}
		if rest, ok := strings.CutPrefix(term, "NQ"); ok && !p.readable(term, t) {
			end()
			if term = rest; term == "" {
				continue
			}
		}
		or := false
		if rest, ok := strings.CutPrefix(term, "OR"); ok && !strings.HasPrefix(term, "ORDERBY") && (p.readable(rest, t) || !p.readable(term, t)) {
			term, or = rest, true
		}
		switch {
		case strings.HasPrefix(term, "ORDERBYDESC"):
			p.orderBy(term, term[len("ORDERBYDESC"):], true, t, depth)
		case strings.HasPrefix(term, "ORDERBY"):
			p.orderBy(term, term[len("ORDERBY"):], false, t, depth)
		case strings.HasPrefix(term, "GROUPBY"):
			p.groupBy(term, term[len("GROUPBY"):], t, depth)
		case strings.HasPrefix(term, "RLQUERY"):
			last := endOfRelated(terms, i+1)
			current.add(p.related(term, terms[i+1:last], t, depth), or)
			i = last // the ENDRLQUERY
		case strings.HasPrefix(term, "JOIN"):
			last := i + 1
			e := p.join(terms, &last, term, t, depth)
			current.add(e, or)
			i = last - 1
		default:
			e := p.condition(term, t)
			if e == nil {
				p.ignore(term)
			}
			current.add(e, or)
		}
	}
	end()
	if len(groups) == 0 || everything {
		return nil
	}
	return record.AnyOf(groups...)
}

// readable reports whether a term is a condition on a field that exists. It settles what a name in capitals, as tables
// that weir did not create have them, means after ^: "ORDER_ID=1" is no alternative.
func (p *queryParser) readable(term string, t *catalog.Table) bool {
	_, _, _, steps := p.split(term, t)
	return steps != nil
}

// orderBy adds a sort key. A reference sorts by what is shown of it.
func (p *queryParser) orderBy(term, path string, desc bool, t *catalog.Table, depth int) {
	steps, err := p.q.snap.Resolve(t, path)
	if err != nil || depth > 0 || !comparable(steps[len(steps)-1].Field) {
		p.ignore(term)
		return
	}
	if shown, f := shownPath(p.q.snap, t, path, steps[len(steps)-1].Field); f != nil && comparable(f) {
		path = shown
	}
	for _, s := range p.out.sort {
		if s.Path == path {
			return // an earlier key decides
		}
	}
	p.out.walks.add(path)
	p.out.sort = append(p.out.sort, record.Sort{Path: path, Desc: desc})
}

// comparable reports whether values of the field have an order and may be compared in a query.
func comparable(f *catalog.Field) bool {
	return f.Type != record.TypePassword && f.Type != record.TypeBytes
}

func (p *queryParser) groupBy(term, path string, t *catalog.Table, depth int) {
	if _, err := p.q.snap.Resolve(t, path); err != nil || depth > 0 {
		p.ignore(term)
		return
	}
	p.out.group = append(p.out.group, path)
}

// endOfRelated is the index of the ENDRLQUERY that closes a related-list query begun before terms[from], or the end.
func endOfRelated(terms []string, from int) int {
	open := 1
	for i := from; i < len(terms); i++ {
		switch {
		case terms[i] == "ENDRLQUERY":
			if open--; open == 0 {
				return i
			}
		case strings.HasPrefix(terms[i], "RLQUERY"), strings.HasPrefix(terms[i], "ORRLQUERY"), strings.HasPrefix(terms[i], "NQRLQUERY"):
			open++
		}
	}
	return len(terms)
}

// related reads RLQUERY<table>.<field>,<op><n>[,m2m]: the number of rows of a table whose field refers to this record.
func (p *queryParser) related(term string, inner []string, t *catalog.Table, depth int) *record.Expr {
	head, rest, _ := strings.Cut(strings.TrimPrefix(term, "RLQUERY"), ",")
	count, _, _ := strings.Cut(rest, ",")
	name, field, _ := strings.Cut(head, ".")
	other, err := p.q.snap.Table(name)
	cmp, n, ok := parseCount(count)
	if err != nil || !ok || depth >= maxQueryDepth || len(t.Key) != 1 {
		p.ignore(term)
		return nil
	}
	if steps, err := p.q.snap.Resolve(other, field); err != nil || !comparable(steps[len(steps)-1].Field) {
		p.ignore(term)
		return nil
	}
	where := p.query(inner, other, depth+1)
	return &record.Expr{Op: record.Related, Rel: &record.Relation{
		Table: name, Field: field, Own: t.Key[0], Where: where, Cmp: cmp, Count: n,
	}}
}

func parseCount(s string) (record.ExprOp, int64, bool) {
	for _, op := range comparisons {
		if digits, ok := strings.CutPrefix(s, op.text); ok {
			n, ok := parseInt(digits)
			return op.op, n, ok && n >= 0
		}
	}
	return 0, 0, false
}

// comparisons are the symbols of comparison, longer ones first.
var comparisons = []struct {
	text string
	op   record.ExprOp
}{
	{">=", record.Ge}, {"<=", record.Le}, {"!=", record.Ne}, {">", record.Gt}, {"<", record.Lt}, {"=", record.Eq},
}

// join reads JOIN<t>.<field>=<t2>.<field2>![cond]: this record has a match in t2. With a condition after the !, the
// conditions that follow belong to t2 too as long as they can be read there, since that is how clients append them.
// next is the index of the term after the join, moved past what belongs to it.
func (p *queryParser) join(terms []string, next *int, term string, t *catalog.Table, depth int) *record.Expr {
	link, first, _ := strings.Cut(strings.TrimPrefix(term, "JOIN"), "!")
	left, right, _ := strings.Cut(link, "=")
	ownTable, own, _ := strings.Cut(left, ".")
	name, field, _ := strings.Cut(right, ".")
	other, err := p.q.snap.Table(name)
	if err != nil || !sameHierarchy(p.q.snap, t, ownTable) || depth >= maxQueryDepth {
		p.ignore(term)
		return nil
	}
	ownSteps, err := p.q.snap.Resolve(t, own)
	otherSteps, errOther := p.q.snap.Resolve(other, field)
	if err != nil || errOther != nil || !comparable(ownSteps[len(ownSteps)-1].Field) || !comparable(otherSteps[len(otherSteps)-1].Field) {
		p.ignore(term)
		return nil
	}
	var where *record.Expr
	if first != "" {
		inner := []string{first}
		for ; *next < len(terms) && p.readable(strings.TrimPrefix(terms[*next], "OR"), other); *next++ {
			inner = append(inner, terms[*next])
		}
		where = p.query(inner, other, depth+1)
	}
	return &record.Expr{Op: record.Related, Rel: &record.Relation{
		Table: name, Field: field, Own: own, Where: where, Cmp: record.Ge, Count: 1,
	}}
}

func sameHierarchy(snap *catalog.Snapshot, t *catalog.Table, name string) bool {
	other, err := snap.Table(name)
	return err == nil && (t.Is(name) || other.Is(t.Name))
}
