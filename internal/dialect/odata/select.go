package odata

import (
	"cmp"
	"slices"
	"strings"

	"weir/internal/edm"
	"weir/internal/record"
)

// choice is what $select names of one type: *, properties, navigation properties, and what it names of the entities behind those.
type choice struct {
	all   bool
	props []*edm.Property
	navs  []*edm.Nav
	inner []innerChoice
}

// innerChoice is what $select names of the entities behind a navigation property: ToSupplier/Name.
type innerChoice struct {
	nav *edm.Nav
	sel *choice
}

// choose reads the items of $select, separated by commas.
func (p *scanner) choose(typ *edm.Type, sel *choice, depth int) error {
	for {
		p.spaces()
		if err := p.chooseItem(typ, sel, depth); err != nil {
			return err
		}
		if !p.take(',') {
			return nil
		}
	}
}

func (p *scanner) chooseItem(typ *edm.Type, sel *choice, depth int) error {
	if p.peek() == '*' {
		p.i++
		sel.all = true
		return nil
	}
	at := p.i
	name := p.name()
	if schema, short, ok := cutLast(name, '.'); ok && schema == p.q.svc.Schema && short == typ.Name && p.peek() == '/' {
		p.i++
		at = p.i
		name = p.name()
	}
	if name == "" {
		return p.invalid(at, "a property expected, %s found", p.found())
	}
	if prop := typ.Property(name); prop != nil {
		if p.peek() == '/' && prop.Kind == edm.ComplexKind { // all of it is written
			p.i++
			at = p.i
			if member := p.name(); prop.Part(member) == nil {
				return p.invalid(at, "unknown property '%s' of %s", cut(member), prop.Complex.Name)
			}
		}
		if p.peek() == '(' {
			return p.unsupported(p.i, "options within $select are not supported")
		}
		sel.props = append(sel.props, prop)
		return nil
	}
	nav := typ.Nav(name)
	if nav == nil {
		if p.q.ver == v4 && name == p.q.svc.Schema+"." && p.peek() == '*' { // the operations of the type, which are not written
			p.i++
			return nil
		}
		return p.invalid(at, "unknown property '%s' of %s", cut(name), typ.Name)
	}
	if p.peek() != '/' {
		sel.navs = append(sel.navs, nav)
		return nil
	}
	if depth > p.q.d.opt.MaxDepth {
		return p.invalid(p.i, "nested deeper than %d; see odata.max_depth", p.q.d.opt.MaxDepth)
	}
	p.i++
	return p.chooseItem(nav.Target.Type, sel.under(nav), depth+1)
}

// under is the choice behind a navigation property.
func (s *choice) under(nav *edm.Nav) *choice {
	for _, b := range s.inner {
		if b.nav == nav {
			return b.sel
		}
	}
	sel := &choice{}
	s.inner = append(s.inner, innerChoice{nav, sel})
	return sel
}

// applyTo makes a query ask for what is selected. Expanded navigation properties are written whether they are selected or not; one
// that is selected alone is written whole, and what is selected of one that is not expanded is its address.
func (s *choice) applyTo(q *query) {
	q.all = s.all
	if !s.all {
		q.props = slices.Clone(s.props)
		slices.SortFunc(q.props, func(a, b *edm.Property) int { return cmp.Compare(a.Index, b.Index) })
		q.props = slices.Compact(q.props)
	}
	expanded := func(nav *edm.Nav) *expansion {
		for _, e := range q.expand {
			if e.nav == nav {
				return e
			}
		}
		return nil
	}
	navs := slices.Clone(s.navs)
	for _, b := range s.inner {
		e := expanded(b.nav)
		switch {
		case e == nil:
			navs = append(navs, b.nav)
		case !slices.Contains(s.navs, b.nav):
			b.sel.applyTo(&e.query)
		}
	}
	for _, nav := range navs {
		if expanded(nav) == nil && !slices.Contains(q.navs, nav) {
			q.navs = append(q.navs, nav)
		}
	}
	slices.SortFunc(q.navs, func(a, b *edm.Nav) int { return cmp.Compare(a.Index, b.Index) })
}

// expand reads the items of $expand, separated by commas, into list. depth is that of the items.
func (p *scanner) expand(typ *edm.Type, list *[]*expansion, depth int) error {
	for {
		p.spaces()
		if err := p.expandItem(typ, list, depth); err != nil {
			return err
		}
		if !p.take(',') {
			return nil
		}
	}
}

func (p *scanner) expandItem(typ *edm.Type, list *[]*expansion, depth int) error {
	at := p.i
	if p.peek() == '*' && p.q.ver == v4 {
		p.i++
		return p.expandAll(at, typ, list, depth)
	}
	for {
		at = p.i
		name := p.name()
		if schema, short, ok := cutLast(name, '.'); ok && schema == p.q.svc.Schema && short == typ.Name && p.peek() == '/' {
			p.i++
			at = p.i
			name = p.name()
		}
		nav := typ.Nav(name)
		switch {
		case name == "":
			return p.invalid(at, "a navigation property expected, %s found", p.found())
		case nav == nil && typ.Property(name) != nil:
			return p.invalid(at, "%s of %s is no navigation property", cut(name), typ.Name)
		case nav == nil:
			return p.invalid(at, "unknown navigation property '%s' of %s", cut(name), typ.Name)
		}
		e, isNew, err := p.expansionOf(at, nav, list, depth)
		if err != nil {
			return err
		}
		if p.peek() == '/' && strings.HasPrefix(p.s[p.i:], "/$") && p.q.ver == v4 {
			if !isNew {
				return p.invalid(at, "%s is expanded twice", nav.Name)
			}
			p.i++
			at := p.i
			p.i++
			switch word := p.name(); {
			case word == "ref":
				e.refs = true
			case word == "count" && nav.Many:
				e.only = true
			default:
				p.i = at
				return p.invalid(at, "$ref or, of many entities, $count expected, %s found", p.found())
			}
		}
		if p.peek() == '(' && p.q.ver == v4 {
			if !isNew {
				return p.invalid(at, "%s is expanded twice", nav.Name)
			}
			return p.expandOptions(e, depth)
		}
		if p.peek() != '/' {
			return nil
		}
		p.i++
		typ, list, depth = nav.Target.Type, &e.query.expand, depth+1
	}
}

// expansionOf finds or adds the expansion of a navigation property.
func (p *scanner) expansionOf(at int, nav *edm.Nav, list *[]*expansion, depth int) (e *expansion, isNew bool, err error) {
	for _, e := range *list {
		if e.nav == nav {
			if e.refs || e.only {
				return nil, false, p.invalid(at, "%s is expanded twice", nav.Name)
			}
			return e, false, nil
		}
	}
	if depth > p.q.d.opt.MaxDepth {
		return nil, false, p.invalid(at, "nested deeper than %d; see odata.max_depth", p.q.d.opt.MaxDepth)
	}
	if p.spent.expands++; p.spent.expands > p.q.d.opt.MaxExpand {
		return nil, false, p.invalid(at, "more than %d navigation properties; see odata.max_expand", p.q.d.opt.MaxExpand)
	}
	e = &expansion{nav: nav, query: query{top: -1, all: true}}
	*list = append(*list, e)
	return e, true, nil
}

// expandAll reads what follows *: all navigation properties, with $levels theirs too.
func (p *scanner) expandAll(at int, typ *edm.Type, list *[]*expansion, depth int) error {
	refs := false
	if p.peek() == '/' {
		if !strings.HasPrefix(p.s[p.i:], "/$ref") {
			return p.invalid(p.i, "$ref expected behind '*/'")
		}
		p.i += len("/$ref")
		refs = true
	}
	levels := 1
	if p.peek() == '(' {
		p.i++
		p.take('$')
		p.spaces()
		word := p.i
		if name := p.name(); !strings.EqualFold(name, "levels") || refs {
			return p.invalid(word, "$levels is the only option of *")
		}
		if err := p.need('='); err != nil {
			return err
		}
		n, err := p.levels()
		if err != nil {
			return err
		}
		if levels = n; n < 0 {
			levels = p.q.d.opt.MaxDepth
		}
		if err := p.need(')'); err != nil {
			return err
		}
	}
	return p.expandEvery(at, typ, list, depth, levels, refs)
}

func (p *scanner) expandEvery(at int, typ *edm.Type, list *[]*expansion, depth, levels int, refs bool) error {
	for _, nav := range typ.Navs {
		if slices.ContainsFunc(*list, func(e *expansion) bool { return e.nav == nav }) {
			continue // with options of its own
		}
		e, _, err := p.expansionOf(at, nav, list, depth)
		if err != nil {
			return err
		}
		if e.refs = refs; levels > 1 {
			if err := p.expandEvery(at, nav.Target.Type, &e.query.expand, depth+1, levels-1, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// levels reads the value of $levels: how many, -1 for max.
func (p *scanner) levels() (int, error) {
	p.spaces()
	at := p.i
	if strings.EqualFold(nameAt(p.s[p.i:]), "max") {
		p.name()
		return -1, nil
	}
	n, err := p.whole()
	if err != nil {
		return 0, err
	}
	if most := p.q.d.opt.MaxDepth; n < 1 || n > int64(most) {
		return 0, p.invalid(at, "$levels is max or a number from 1 to %d; see odata.max_depth", most)
	}
	return int(n), nil
}

// expandOptions reads the options in parentheses behind an expanded navigation property, separated by semicolons.
func (p *scanner) expandOptions(e *expansion, depth int) error {
	p.i++
	seen := map[string]bool{}
	var sel *choice
	for {
		p.spaces()
		at := p.i
		p.take('$')
		name := "$" + strings.ToLower(p.name())
		if err := p.need('='); err != nil {
			return err
		}
		if seen[name] {
			return p.invalid(at, "%s stands there twice", name)
		}
		seen[name] = true
		if name == "$select" && !e.refs && !e.only {
			sel = &choice{}
			if err := p.choose(e.nav.Target.Type, sel, 1); err != nil {
				return err
			}
		} else if err := p.expandOption(at, name, e, depth); err != nil {
			return err
		}
		switch {
		case p.take(';'):
		case p.take(')'):
			if sel != nil {
				sel.applyTo(&e.query)
			}
			return nil
		default:
			return p.invalid(p.i, "';' or ')' expected, %s found", p.found())
		}
	}
}

func (p *scanner) expandOption(at int, name string, e *expansion, depth int) error {
	q, set := &e.query, e.nav.Target
	switch name {
	case "$orderby", "$top", "$skip", "$count", "$search":
		if !e.nav.Many {
			return p.invalid(at, "%s is for collections, and %s leads to one entity", name, e.nav.Name)
		}
	}
	switch name {
	case "$select", "$expand", "$levels":
		if e.refs || e.only {
			return p.invalid(at, "%s is for entities, and here are none", name)
		}
	case "$orderby", "$top", "$skip", "$count":
		if e.only {
			return p.invalid(at, "%s means nothing beside $count", name)
		}
	}
	var err error
	switch name {
	case "$filter":
		where, err := p.filter(set.Type)
		if err != nil {
			return err
		}
		q.filter = record.AllOf(q.filter, where)
	case "$search":
		where, err := p.search(set)
		if err != nil {
			return err
		}
		q.filter = record.AllOf(q.filter, where)
	case "$orderby":
		q.sort, err = p.orderby(&filterScope{typ: set.Type})
	case "$top":
		q.top, err = p.whole()
	case "$skip":
		q.skip, err = p.whole()
	case "$count":
		q.count, err = p.yesOrNo()
	case "$expand":
		err = p.expand(set.Type, &q.expand, depth+1)
	case "$levels":
		var n int
		if n, err = p.levels(); err != nil {
			return err
		}
		if e.nav.Target.Type != e.nav.Owner && n != 1 {
			return p.invalid(at, "%s leads to another type, so that there are no more levels of it", e.nav.Name)
		}
		if e.depth = n - 1; n < 0 {
			e.depth = -1
		}
	case "$compute", "$apply":
		return p.unsupported(at, "%s within $expand is not supported", name)
	default:
		return p.invalid(at, "unknown option %s of $expand", cut(name))
	}
	return err
}
