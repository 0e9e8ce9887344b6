package edm

import (
	"fmt"
	"slices"

	"weir/internal/catalog"
	"weir/internal/record"
)

// navPlan is a navigation property with what its definition says about others.
type navPlan struct {
	*Nav
	at      place
	partner string
	assoc   string
}

// navigation makes the navigation properties of a set's type. All sets must be there.
func (c *compiler) navigation(at place, d *catalog.SetDef) {
	s := c.svc.sets[d.Name]
	if s == nil || s.Type.Set != s {
		return
	}
	t := s.Type
	for i := range d.Navigation {
		nd := &d.Navigation[i]
		at := at.at("navigation", nd.Name)
		if !c.name(at, nd.Name) {
			continue
		}
		if t.properties[nd.Name] != nil || t.navs[nd.Name] != nil {
			c.fault(at, "type %s has a property of that name already", t.Name)
			continue
		}
		n := &Nav{Name: nd.Name, Owner: t, Target: c.svc.sets[nd.Target], Many: nd.Many, Index: len(t.Navs)}
		if n.Target == nil {
			c.fault(at, "there is no set %s", nd.Target)
			continue
		}
		t.Navs = append(t.Navs, n)
		t.navs[n.Name] = n
		c.navs = append(c.navs, &navPlan{n, at, nd.Partner, nd.Association})
		if nd.Association != "" {
			c.name(at.at("association"), nd.Association)
		}
		c.links(at, n, nd.On)
	}
}

// links finds what a navigation property compares. One of its ends must be a single entity: there a whole key is compared.
func (c *compiler) links(at place, n *Nav, on map[string]string) {
	target := n.Target.Type
	switch {
	case target.Table == nil:
		c.fault(at, "%s has no table, so nothing leads to it", n.Target.Name)
		return
	case n.Owner.Table == nil:
		if len(on) > 0 {
			c.fault(at, "on: a set without a table has nothing to compare")
		}
		return
	case len(on) == 0:
		c.fault(at, "on: it says which properties of %s and %s are equal", n.Owner.Name, target.Name)
		return
	}
	ok := true
	for _, name := range sortedKeys(on) {
		l := Link{n.Owner.properties[name], target.properties[on[name]]}
		ok = c.linkable(at, l.Own, n.Owner, name) && c.linkable(at, l.Other, target, on[name]) && ok
		if !ok {
			continue
		}
		if l.Own.Kind != l.Other.Kind && !refersTo(l.Own, target.Table) && !refersTo(l.Other, n.Owner.Table) {
			c.fault(at, "on: %s is an %s and %s an %s", name, l.Own.Kind, on[name], l.Other.Kind)
			ok = false
		}
		n.On = append(n.On, l)
	}
	if !ok {
		return
	}
	one, side := target, func(l Link) *Property { return l.Other }
	if n.Many {
		one, side = n.Owner, func(l Link) *Property { return l.Own }
	}
	if !determines(one, n.On, side) {
		many := "to-one"
		if n.Many {
			many = "to-many"
		}
		c.fault(at, "on: a %s navigation compares the whole key of %s, or what is unique in it", many, one.Name)
		return
	}
	// The order of the key, so that every document and statement has them alike.
	slices.SortFunc(n.On, func(a, b Link) int { return side(a).Index - side(b).Index })
}

func (c *compiler) linkable(at place, p *Property, t *Type, name string) bool {
	if p == nil || p.Field == nil {
		c.fault(at, "on: type %s has no property %s over a field", t.Name, name)
		return false
	}
	return true
}

func refersTo(p *Property, t *catalog.Table) bool {
	return p.Field.Type == record.TypeReference && t.Is(p.Field.Reference)
}

// determines reports whether the properties that links compare of a type are equal for one entity at most.
func determines(t *Type, links []Link, side func(Link) *Property) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(links, func(l Link) bool { return side(l).Field.Name == name })
	}
	all := func(names []string) bool {
		return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !has(name) })
	}
	return all(t.Table.Key) || slices.ContainsFunc(t.Table.Uniques, all)
}

// exposed are the sets of the tables that a service exposes: named as the table, with all its fields, searchable, and with
// navigation along every reference between them. The names do not depend on what else is exposed, so that more tables
// and fields rename nothing: to_{field} leads along a reference, and {table}_by_{field} back.
func (c *compiler) exposed() []catalog.SetDef {
	var (
		defs   []catalog.SetDef
		tables []*catalog.Table
		at     = map[string]int{} // of a table in both
	)
	for _, name := range c.def.Expose {
		t, err := c.snap.Table(name)
		if err != nil {
			c.fault(place{"expose", name}, "not defined")
			continue
		}
		if _, twice := at[name]; twice {
			c.fault(place{"expose", name}, "named twice")
			continue
		}
		at[name] = len(tables)
		tables = append(tables, t)
		defs = append(defs, catalog.SetDef{Name: name, Type: name, Table: name, Annotations: map[string]string{"searchable": "true"}})
	}
	used := map[string]bool{} // navigation of each set, associations
	free := func(t *catalog.Table, name string) string {
		name = fresh(name, maxName, func(s string) bool { return t.Field(s) != nil || used[t.Name+"/"+s] })
		used[t.Name+"/"+name] = true
		return name
	}
	for i, t := range tables {
		for _, f := range t.Fields {
			if f.Type != record.TypeReference {
				continue
			}
			for j, target := range tables {
				if !target.Is(f.Reference) || len(target.Key) != 1 {
					continue
				}
				key := target.Key[0]
				assoc := fresh("Assoc_"+target.Name+"_"+t.Name+"_"+f.Name, maxName, func(s string) bool { return used[s] })
				used[assoc] = true
				there, back := "", free(target, t.Name+"_by_"+f.Name)
				if target.Name == f.Reference { // a reference to a table leads to any of its kind, so not to those that inherit from it
					there = free(t, "to_"+f.Name)
					defs[i].Navigation = append(defs[i].Navigation, catalog.NavDef{
						Name: there, Target: target.Name, On: map[string]string{f.Name: key}, Association: assoc, Partner: back,
					})
				}
				defs[j].Navigation = append(defs[j].Navigation, catalog.NavDef{
					Name: back, Target: t.Name, Many: true, On: map[string]string{key: f.Name}, Association: assoc, Partner: there,
				})
			}
		}
	}
	for i := range defs { // those along its own references come first
		slices.SortStableFunc(defs[i].Navigation, func(a, b catalog.NavDef) int {
			switch {
			case a.Many == b.Many:
				return 0
			case b.Many:
				return -1
			}
			return 1
		})
	}
	return defs
}

// partners finds for each navigation property the way back: the one it names, or the only one that compares the same
// properties the other way round.
func (c *compiler) partners() {
	for _, n := range c.navs {
		if n.partner == "" {
			continue
		}
		p := n.Target.Type.navs[n.partner]
		switch {
		case p == nil:
			c.fault(n.at, "partner: type %s has no navigation %s", n.Target.Type.Name, n.partner)
		case !mirrors(n.Nav, p):
			c.fault(n.at, "partner: %s does not compare the same properties the other way round", n.partner)
		case n.Partner != nil && n.Partner != p || p.Partner != nil && p.Partner != n.Nav:
			c.fault(n.at, "partner: %s is the way back of another navigation", n.partner)
		default:
			n.Partner, p.Partner = p, n.Nav
		}
	}
	candidate := func(n *navPlan) *navPlan {
		var found *navPlan
		for _, p := range c.navs {
			if p.Partner == nil && p != n && mirrors(n.Nav, p.Nav) && (n.assoc == "" || p.assoc == "" || n.assoc == p.assoc) {
				if found != nil {
					return nil
				}
				found = p
			}
		}
		return found
	}
	type pair struct{ a, b *navPlan }
	var pairs []pair // found before any is tied, so that their order does not decide
	for _, n := range c.navs {
		if n.Partner == nil {
			if p := candidate(n); p != nil && candidate(p) == n {
				pairs = append(pairs, pair{n, p})
			}
		}
	}
	for _, p := range pairs {
		p.a.Partner, p.b.Partner = p.b.Nav, p.a.Nav
	}
}

// mirrors reports whether b leads back where a leads.
func mirrors(a, b *Nav) bool {
	if a.Owner != b.Target.Type || b.Owner != a.Target.Type || len(a.On) == 0 || len(a.On) != len(b.On) || a.Many && b.Many {
		return false
	}
	for _, l := range a.On {
		if !slices.Contains(b.On, Link{l.Other, l.Own}) {
			return false
		}
	}
	return true
}

// maxName is how long a name may be.
const maxName = 128

// maxSetName is how long SAP Gateway lets the name of an association set be.
const maxSetName = 40

// associations makes the associations that V2 sees: one for each navigation property and its partner, and those that the
// definition adds.
func (c *compiler) associations() {
	plans := map[*Nav]*navPlan{}
	for _, n := range c.navs {
		plans[n.Nav] = n
	}
	names := map[string]bool{}
	for _, n := range c.navs {
		if n.Assoc != nil {
			continue
		}
		a := associate(n.Nav)
		name := n.assoc
		if p := plans[n.Partner]; p != nil && p.assoc != "" {
			if name != "" && name != p.assoc {
				c.fault(n.at, "association: the way back, %s, calls it %s", p.Name, p.assoc)
			}
			name = p.assoc
		}
		if name != "" && (names[name] || c.types[name] != nil || c.complex[name] != nil) {
			c.fault(n.at, "association: %s is the name of another one or of a type", name)
		}
		if name == "" {
			name = fresh("Assoc_"+a.From.Set.Type.Name+"_"+a.To.Set.Type.Name, 0, func(s string) bool { return names[s] })
		}
		a.Name = name
		names[name] = true
		c.svc.Assocs = append(c.svc.Assocs, a)
	}
	for i := range c.def.Associations {
		if a := c.association(&c.def.Associations[i], names); a != nil {
			names[a.Name] = true
			c.svc.Assocs = append(c.svc.Assocs, a)
		}
	}
	sets := map[string]bool{}
	for _, a := range c.svc.Assocs {
		a.From.Role, a.To.Role = "FromRole_"+a.Name, "ToRole_"+a.Name
		a.SetName = fresh(a.Name+"_AssocSet", maxSetName, func(s string) bool { return sets[s] || c.svc.sets[s] != nil })
		sets[a.SetName] = true
	}
}

// associate makes the association of a navigation property and its partner.
func associate(n *Nav) *Association {
	one, many := n.Target, n.Owner.Set // to-one: the target is the principal
	principal, dependent := others(n.On), owns(n.On)
	n.Back = true
	if n.Many || n.Partner != nil && !n.Partner.Many && !sameProps(principal, one.Type.Key) {
		one, many, principal, dependent = many, one, dependent, principal
		n.Back = false
	}
	a := &Association{From: End{Set: one, Multiplicity: ExactlyOne}, To: End{Set: many, Multiplicity: Several}}
	if slices.ContainsFunc(dependent, func(p *Property) bool { return p.Nullable }) {
		a.From.Multiplicity = Optional
	}
	if n.Partner != nil && !n.Many && !n.Partner.Many {
		a.To.Multiplicity = Optional
	}
	if len(principal) > 0 && sameProps(principal, one.Type.Key) {
		a.Principal, a.Dependent = principal, dependent
	}
	n.Assoc = a
	if n.Partner != nil {
		n.Partner.Assoc, n.Partner.Back = a, !n.Back
	}
	return a
}

func owns(on []Link) []*Property {
	list := make([]*Property, len(on))
	for i, l := range on {
		list[i] = l.Own
	}
	return list
}

func others(on []Link) []*Property {
	list := make([]*Property, len(on))
	for i, l := range on {
		list[i] = l.Other
	}
	return list
}

// sameProps reports whether both lists have the same properties, in any order.
func sameProps(a, b []*Property) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(p *Property) bool { return !slices.Contains(b, p) })
}

// association makes an association without navigation properties.
func (c *compiler) association(d *catalog.AssociationDef, names map[string]bool) *Association {
	at := place{"associations", d.Name}
	if !c.name(at, d.Name) {
		return nil
	}
	if names[d.Name] || c.types[d.Name] != nil || c.complex[d.Name] != nil {
		c.fault(at, "it is the name of another one or of a type")
	}
	from, to := c.svc.sets[d.From], c.svc.sets[d.To]
	if from == nil || to == nil {
		c.fault(at, "there is no set %s, or none %s", d.From, d.To)
		return nil
	}
	a := &Association{Name: d.Name, From: End{Set: from, Multiplicity: ExactlyOne}, To: End{Set: to, Multiplicity: Several}}
	for _, name := range sortedKeys(d.On) {
		p, q := from.Type.properties[name], to.Type.properties[d.On[name]]
		if p == nil || q == nil || p.Kind == ComplexKind || p.Kind != q.Kind {
			c.fault(at, "on: %s of %s and %s of %s are no two properties of one type", name, from.Type.Name, d.On[name], to.Type.Name)
			continue
		}
		a.Principal, a.Dependent = append(a.Principal, p), append(a.Dependent, q)
	}
	if len(d.On) > 0 && !sameProps(a.Principal, from.Type.Key) {
		c.fault(at, "on: it names the whole key of %s", from.Type.Name)
	}
	return a
}

// fresh is name, cut to most characters if most is not 0, or with a number at its end if it is taken.
func fresh(name string, most int, taken func(string) bool) string {
	cut := func(suffix string) string {
		if most > 0 && len(name)+len(suffix) > most {
			return name[:most-len(suffix)] + suffix
		}
		return name + suffix
	}
	out := cut("")
	for i := 2; taken(out); i++ {
		out = cut(fmt.Sprintf("_%d", i))
	}
	return out
}
