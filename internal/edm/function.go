package edm

import (
	"slices"
	"strings"

	"weir/internal/catalog"
)

// function makes a function import.
func (c *compiler) function(d *catalog.FunctionDef) {
	at := place{"functions", d.Name}
	if !c.name(at, d.Name) {
		return
	}
	if c.svc.functions[d.Name] != nil || c.svc.sets[d.Name] != nil {
		c.fault(at, "there is a function or set of that name already")
		return
	}
	c.taken(at, d.Name) // functions of V4 share the namespace of types
	f := &Function{Name: d.Name, Endpoint: d.Endpoint, Label: d.Label, Annotations: d.Annotations}
	c.svc.functions[d.Name] = f
	c.svc.Functions = append(c.svc.Functions, f)
	c.annotations(at, d.Annotations, "action-for", "label")
	switch strings.ToUpper(d.Method) {
	case "", "GET":
	case "POST":
		f.Post = true
	default:
		c.fault(at, "method %q is not GET or POST", d.Method)
	}
	if e := c.snap.Endpoint(d.Endpoint); e == nil || e.SQL != nil {
		c.fault(at, "endpoint: there is no scripted endpoint %q", d.Endpoint)
	}
	for i := range d.Parameters {
		pd := &d.Parameters[i]
		at := at.at("parameters", pd.Name)
		if slices.ContainsFunc(f.Parameters, func(p *Property) bool { return p.Name == pd.Name }) {
			c.fault(at, "defined twice")
			continue
		}
		if pd.Field != "" || len(pd.Members) > 0 || pd.Creatable != nil || pd.Updatable != nil {
			c.fault(at, "a parameter has a name, a type, and what its values look like")
		}
		p := c.bare(at, pd)
		if pd.Nullable == nil {
			p.Nullable = false
		}
		p.Index = len(f.Parameters)
		f.Parameters = append(f.Parameters, p)
	}
	c.returns(at, d, f)
	if d.ActionFor == "" {
		return
	}
	if f.ActionFor = c.types[c.local(d.ActionFor)]; f.ActionFor == nil {
		c.fault(at, "action_for: there is no entity type %s", d.ActionFor)
		return
	}
	for _, key := range f.ActionFor.Key {
		if !slices.ContainsFunc(f.Parameters, func(p *Property) bool { return p.Name == key.Name && p.Kind == key.Kind }) {
			c.fault(at, "action_for: it has no parameter %s of type %s for the key of %s", key.Name, key.Kind, f.ActionFor.Name)
		}
	}
}

// local is the name of a type of this service without its namespace.
func (c *compiler) local(name string) string { return strings.TrimPrefix(name, c.svc.Schema+".") }

// returns finds what a function returns: nothing, or one or a collection of values, objects or entities.
func (c *compiler) returns(at place, d *catalog.FunctionDef, f *Function) {
	name := d.Returns
	if inner, ok := strings.CutPrefix(name, "Collection("); ok {
		name, f.Collection = strings.TrimSuffix(inner, ")"), true
	}
	local := c.local(name)
	typ := c.types[local]
	switch {
	case name == "":
		if f.Void = true; !f.Post {
			c.fault(at, "returns: a function that is called by GET returns something")
		}
	case typ != nil:
		if f.Set = typ.Set; d.Set != "" {
			f.Set = c.svc.sets[d.Set]
		}
		switch {
		case f.Set == nil:
			c.fault(at, "set: there is no set %s", d.Set)
		case f.Set.Type != typ:
			c.fault(at, "set: %s holds entities of type %s, not %s", d.Set, f.Set.Type.Name, typ.Name)
		case typ.Table == nil:
			c.fault(at, "returns: %s has no table, so no entities", typ.Name)
		}
	case c.complex[local] != nil:
		f.Complex = c.complex[local]
	default:
		var ok bool
		if f.Kind, ok = namedKind(name, everyKind); !ok {
			c.fault(at, "returns: there is no type %s", name)
		}
	}
	if typ == nil && d.Set != "" {
		c.fault(at, "set: only entities come from a set")
	}
}
