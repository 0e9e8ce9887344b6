package edm

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Fault is one mistake of a definition.
type Fault struct {
	Service string
	Path    []string // where it stands in the definition: keys, and the names of entries of lists: sets, ProductSet, properties, Price
	Msg     string
}

// Error names the service, the set, the property and so on, and says what is wrong with it.
func (f *Fault) Error() string {
	var b strings.Builder
	b.WriteString("service " + f.Service)
	for i := 0; i+1 < len(f.Path); i += 2 {
		b.WriteString(": " + entryWords[f.Path[i]] + " " + f.Path[i+1])
	}
	if len(f.Path)%2 == 1 {
		b.WriteString(": " + f.Path[len(f.Path)-1])
	}
	return b.String() + ": " + f.Msg
}

// entryWords are what an entry of a list is called.
var entryWords = map[string]string{
	"sets": "set", "properties": "property", "navigation": "navigation", "complex": "complex type", "functions": "function",
	"parameters": "parameter", "associations": "association", "expose": "table",
}

// Compile resolves a definition against the tables of snap. The error joins all faults, each a [*Fault].
func Compile(snap *catalog.Snapshot, def *catalog.ServiceDef) (*Service, error) {
	c := &compiler{
		snap: snap, def: def,
		svc: &Service{
			Def: def, Name: def.Name, Namespace: def.Namespace, Schema: def.Schema,
			sets: map[string]*Set{}, functions: map[string]*Function{},
		},
		types: map[string]*Type{}, complex: map[string]*Complex{},
	}
	c.head()
	for i := range def.Complex {
		c.complexType(&def.Complex[i])
	}
	exposed := c.exposed()
	for i := range def.Sets {
		c.set(place{"sets", def.Sets[i].Name}, &def.Sets[i])
	}
	for i := range exposed {
		c.set(place{"expose", exposed[i].Name}, &exposed[i])
	}
	for i := range def.Sets {
		c.navigation(place{"sets", def.Sets[i].Name}, &def.Sets[i])
	}
	for i := range exposed {
		c.navigation(place{"expose", exposed[i].Name}, &exposed[i])
	}
	c.partners()
	c.associations()
	for i := range def.Functions {
		c.function(&def.Functions[i])
	}
	if len(c.faults) > 0 {
		return nil, errors.Join(c.faults...)
	}
	return c.svc, nil
}

type compiler struct {
	snap    *catalog.Snapshot
	def     *catalog.ServiceDef
	svc     *Service
	types   map[string]*Type
	complex map[string]*Complex
	navs    []*navPlan
	faults  []error
}

// place is where in the definition the compiler is.
type place []string

func (p place) at(names ...string) place { return append(p[:len(p):len(p)], names...) }

func (c *compiler) fault(at place, format string, args ...any) {
	c.faults = append(c.faults, &Fault{c.def.Name, at, fmt.Sprintf(format, args...)})
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) // maxName
	segment    = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	attribute  = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// name checks that a name is one of those that OData allows, as both versions do.
func (c *compiler) name(at place, name string) bool {
	if !identifier.MatchString(name) {
		c.fault(at, "a name is letters, digits and underscores, does not begin with a digit and has at most 128 of them")
		return false
	}
	return true
}

func (c *compiler) head() {
	c.name(place{"name"}, c.def.Name)
	if c.def.Protocol != "" && c.def.Protocol != "odata" {
		c.fault(place{"protocol"}, "%q is not a protocol of services; there are odata and ords", c.def.Protocol)
	}
	if c.svc.Namespace == "" {
		c.svc.Namespace = "sap"
	}
	if !segment.MatchString(c.svc.Namespace) {
		c.fault(place{"namespace"}, "%q is not a segment of a path", c.svc.Namespace)
	}
	if c.svc.Schema == "" {
		c.svc.Schema = c.def.Name
	}
	for part := range strings.SplitSeq(c.svc.Schema, ".") {
		if !identifier.MatchString(part) && c.def.Schema != "" {
			c.fault(place{"schema"}, "%q is not a namespace: names of letters, digits and underscores, with dots between", c.def.Schema)
			break
		}
	}
	if c.def.PageSize < 0 {
		c.fault(place{"page_size"}, "%d is less than 0", c.def.PageSize)
	}
	if len(c.def.Sets) == 0 && len(c.def.Expose) == 0 {
		c.fault(place{"name"}, "it has no sets and exposes no tables")
	}
}

// taken reports a name that an entity type, a complex type or the container has already; they share one namespace.
func (c *compiler) taken(at place, name string) bool {
	if name == Container {
		c.fault(at, "%s is the name of what holds the sets", name)
		return true
	}
	if c.types[name] != nil || c.complex[name] != nil {
		c.fault(at, "there is a type %s already", name)
		return true
	}
	return false
}

func (c *compiler) complexType(d *catalog.ComplexDef) {
	at := place{"complex", d.Name}
	if !c.name(at, d.Name) || c.taken(at, d.Name) {
		return
	}
	x := &Complex{Name: d.Name}
	c.complex[d.Name] = x
	c.svc.Complex = append(c.svc.Complex, x)
	if len(d.Properties) == 0 {
		c.fault(at, "it has no properties")
	}
	for i := range d.Properties {
		pd := &d.Properties[i]
		at := at.at("properties", pd.Name)
		if slices.ContainsFunc(x.Properties, func(p *Property) bool { return p.Name == pd.Name }) {
			c.fault(at, "defined twice")
			continue
		}
		if pd.Field != "" || len(pd.Members) > 0 {
			c.fault(at, "members of a complex type have no fields; each property of that type maps them")
		}
		p := c.bare(at, pd)
		p.Index = len(x.Properties)
		x.Properties = append(x.Properties, p)
	}
}

// TimePrecision is how many digits of a second the store keeps.
const TimePrecision = 6

// bare is a property that stands over no field: of a transport shell, a complex type, a parameter.
func (c *compiler) bare(at place, d *catalog.PropertyDef) *Property {
	p := &Property{Name: d.Name, Label: d.Label, Annotations: d.Annotations, Nullable: true, Creatable: true, Updatable: true}
	c.name(at, d.Name)
	if d.Type != "" {
		k, ok := namedKind(d.Type, everyKind)
		if !ok {
			c.fault(at, "%q is not a primitive type, such as Edm.String", d.Type)
		}
		p.Kind = k
	}
	if p.Kind == DateTimeOffset {
		p.Precision = TimePrecision
	}
	c.facets(at, p, d)
	c.allowed(p, d)
	c.annotations(at, d.Annotations, "creatable", "updatable", "label")
	return p
}

// facets takes what a definition says about the values of a property.
func (c *compiler) facets(at place, p *Property, d *catalog.PropertyDef) {
	if d.MaxLength != 0 {
		if p.Kind != String && p.Kind != Binary || d.MaxLength < 0 {
			c.fault(at, "max_length is for texts and bytes, and more than 0")
		}
		p.MaxLength = d.MaxLength
	}
	if d.Precision != 0 || d.Scale != 0 {
		p.Precision, p.Scale = d.Precision, d.Scale
		switch p.Kind {
		case Decimal:
			if d.Precision < 1 || d.Scale < 0 || d.Scale > d.Precision {
				c.fault(at, "precision is how many digits there are, at least 1, and scale how many of them follow the point")
			}
		case DateTimeOffset, Date, TimeOfDay, Duration:
			if d.Scale != 0 || d.Precision < 0 || d.Precision > 12 {
				c.fault(at, "precision of a time is 0 to 12 digits after the second, and it has no scale")
			}
		default:
			c.fault(at, "precision and scale are for decimals and times")
		}
	}
	if d.Nullable != nil {
		p.Nullable = *d.Nullable
	}
}

// allowed takes what a definition says about who may set a property that may be set.
func (c *compiler) allowed(p *Property, d *catalog.PropertyDef) {
	if d.Creatable != nil {
		p.Creatable = *d.Creatable
	}
	if d.Updatable != nil {
		p.Updatable = *d.Updatable
	}
}

// annotations checks names of sap: attributes; some follow from other keys of the definition.
func (c *compiler) annotations(at place, list map[string]string, derived ...string) {
	for _, name := range sortedKeys(list) {
		if !attribute.MatchString(name) {
			c.fault(at.at("annotations"), "%q is not the name of a sap: attribute, such as semantics", name)
		} else if slices.Contains(derived, name) {
			c.fault(at.at("annotations"), "%s follows from other keys and is not written here", name)
		}
	}
}

// set makes a set and its type.
func (c *compiler) set(at place, d *catalog.SetDef) {
	if !c.name(at, d.Name) {
		return
	}
	if c.svc.sets[d.Name] != nil {
		c.fault(at, "defined twice")
		return
	}
	s := &Set{Name: d.Name, Label: d.Label, MaxPage: d.MaxPage, Annotations: d.Annotations}
	c.svc.sets[d.Name] = s
	c.svc.Sets = append(c.svc.Sets, s)
	c.annotations(at, d.Annotations, "creatable", "updatable", "deletable", "label", "content-version", "maxpagesize")
	if d.MaxPage < 0 {
		c.fault(at, "max_page %d is less than 0", d.MaxPage)
	}
	s.Type = c.typeOf(at, d, s)
	c.allow(at, d, s)
	if s.Label == "" && s.Type.Table != nil {
		s.Label = s.Type.Table.Label
	}
	c.search(at, d, s)
}

func (c *compiler) allow(at place, d *catalog.SetDef, s *Set) {
	t := s.Type.Table
	switch {
	case d.Allow == nil && t == nil:
		s.Creatable = true
	case d.Allow == nil:
		s.Readable, s.Creatable, s.Updatable, s.Deletable = true, t.Writable(), t.Writable(), t.Writable()
	}
	for _, what := range d.Allow {
		switch what {
		case "read":
			s.Readable = true
		case "create":
			s.Creatable = true
		case "update":
			s.Updatable = true
		case "delete":
			s.Deletable = true
		default:
			c.fault(at, "allow: %q is not read, create, update or delete", what)
			continue
		}
		if t == nil && what != "create" {
			c.fault(at, "allow: a set without a table can only be created in")
		}
		if t != nil && what != "read" && !t.Writable() {
			c.fault(at, "allow: table %s cannot be written, so there is no %s", t.Name, what)
		}
	}
}

// typeOf makes the type of a set, or finds it if an earlier set has it.
func (c *compiler) typeOf(at place, d *catalog.SetDef, s *Set) *Type {
	name := d.Type
	if name == "" {
		name = strings.TrimSuffix(d.Name, "Set")
		if name == "" {
			name = d.Name
		}
	}
	if old := c.types[name]; old != nil && d.Type != "" {
		if len(d.Properties)+len(d.Key)+len(d.Navigation) > 0 || d.ETag != "" || old.tableName() != d.Table {
			c.fault(at, "type %s is that of set %s; only there it has a table, properties, key, navigation and etag", name, old.Set.Name)
		}
		return old
	}
	t := &Type{Name: name, Set: s, properties: map[string]*Property{}, navs: map[string]*Nav{}}
	if !c.taken(at, name) && c.name(at, name) {
		c.types[name] = t
	}
	c.svc.Types = append(c.svc.Types, t)
	if d.Table != "" {
		var err error
		if t.Table, err = c.snap.Table(d.Table); err != nil {
			c.fault(at, "table %s is not defined", d.Table)
			return t
		}
	}
	props := d.Properties
	if props == nil && t.Table != nil {
		props = c.every(t.Table)
	}
	for i := range props {
		pd := &props[i]
		at := at.at("properties", pd.Name)
		if t.properties[pd.Name] != nil {
			c.fault(at, "defined twice")
			continue
		}
		p := c.property(at, t, pd)
		p.Index = len(t.Properties)
		t.Properties = append(t.Properties, p)
		t.properties[p.Name] = p
	}
	c.key(at, d, t)
	c.etag(at, d, t)
	c.paths(at, t)
	return t
}

func (t *Type) tableName() string {
	if t.Table == nil {
		return ""
	}
	return t.Table.Name
}

// every is a property for each field of a table but passwords.
func (c *compiler) every(t *catalog.Table) []catalog.PropertyDef {
	var list []catalog.PropertyDef
	for _, f := range t.Fields {
		if f.Type != record.TypePassword {
			list = append(list, catalog.PropertyDef{Name: f.Name})
		}
	}
	return list
}

// property makes one property of an entity type.
func (c *compiler) property(at place, t *Type, d *catalog.PropertyDef) *Property {
	if x := c.complex[strings.TrimPrefix(d.Type, c.svc.Schema+".")]; x != nil {
		return c.complexProperty(at, t, d, x)
	}
	if len(d.Members) > 0 {
		c.fault(at, "members are for complex types, and %q is none of this service", d.Type)
	}
	if t.Table == nil {
		if d.Field != "" {
			c.fault(at, "a set without a table has no field %s", d.Field)
		}
		return c.bare(at, d)
	}
	p := &Property{Name: d.Name, Label: d.Label, Annotations: d.Annotations}
	c.name(at, d.Name)
	field := d.Field
	if field == "" {
		field = d.Name
	}
	c.over(at, p, t.Table, field, d.Type)
	c.facets(at, p, d)
	c.settable(at, p, d)
	c.annotations(at, d.Annotations, "creatable", "updatable", "label")
	return p
}

// over lets a property stand over a field, or a path to one, of a table: kind, facets and what may be set follow from it.
func (c *compiler) over(at place, p *Property, table *catalog.Table, path, typ string) {
	steps, err := c.snap.Resolve(table, path)
	if err != nil {
		msg := err.Error()
		if e := (*record.Error)(nil); errors.As(err, &e) {
			msg = e.Msg
		}
		c.fault(at, "%s", msg)
		return
	}
	f := steps[len(steps)-1].Field
	kinds := kindsOf(c.snap, f)
	if kinds == nil {
		c.fault(at, "%s.%s is a password, which no service exposes", table.Name, path)
		return
	}
	p.Path, p.Kind = path, kinds[0]
	if typ != "" {
		var ok bool
		if p.Kind, ok = namedKind(typ, kinds); !ok {
			names := make([]string, len(kinds))
			for i, k := range kinds {
				names[i] = k.Name()
			}
			c.fault(at, "type %q does not fit %s.%s, a %s: %s", typ, table.Name, path, f.Type, strings.Join(names, ", "))
		}
	}
	if p.Label == "" {
		p.Label = f.Label
	}
	switch p.Kind {
	case Binary:
		p.MaxLength = f.MaxLength
	case String:
		if p.MaxLength = f.MaxLength; f.Type == record.TypeReference {
			if ref, err := c.snap.Table(f.Reference); err == nil && ref.SingleKey() != nil {
				p.MaxLength = ref.SingleKey().MaxLength
			}
		}
	case Decimal:
		p.Precision, p.Scale = digitsOf(f.Native)
	case DateTimeOffset:
		p.Precision = TimePrecision
	}
	p.Nullable = true
	if len(steps) > 1 {
		return
	}
	p.Field = f
	p.Nullable = !f.Mandatory || len(f.Access.Read) > 0
	settable := table.Writable() && !f.ReadOnly && !f.Generated && (!f.Audit || f.Name == "sys_tags")
	p.Creatable = settable
	p.Updatable = settable && !slices.Contains(table.Key, f.Name)
	if f == table.SingleKey() && f.Audit {
		p.Creatable = table.Writable() // callers may bring a sys_id of their own
	}
}

// settable takes what a definition says about setting a property; it can forbid and not allow.
func (c *compiler) settable(at place, p *Property, d *catalog.PropertyDef) {
	if d.Creatable != nil && *d.Creatable && !p.Creatable || d.Updatable != nil && *d.Updatable && !p.Updatable {
		what := "read-only"
		switch {
		case p.Field == nil:
			what = "read through a reference or has no field"
		case p.Creatable:
			what = "part of the key"
		}
		c.fault(at, "it is %s, so it cannot be set", what)
	}
	c.allowed(p, d)
}

// complexProperty makes a property of a complex type, whose members stand over fields of their own.
func (c *compiler) complexProperty(at place, t *Type, d *catalog.PropertyDef, x *Complex) *Property {
	p := &Property{
		Name: d.Name, Kind: ComplexKind, Complex: x, Label: d.Label, Annotations: d.Annotations,
		Creatable: d.Creatable == nil || *d.Creatable, Updatable: d.Updatable == nil || *d.Updatable,
	}
	c.name(at, d.Name)
	if d.Field != "" || d.MaxLength != 0 || d.Precision != 0 || d.Scale != 0 {
		c.fault(at, "a property of a complex type has members, each with its own field")
	}
	p.Nullable = d.Nullable != nil && *d.Nullable
	c.annotations(at, d.Annotations, "creatable", "updatable", "label")
	for _, member := range x.Properties {
		part := *member
		part.Parent, part.Creatable, part.Updatable = p, p.Creatable && member.Creatable, p.Updatable && member.Updatable
		path, ok := d.Members[member.Name]
		switch {
		case t.Table == nil && ok:
			c.fault(at, "member %s: a set without a table has no field %s", member.Name, path)
		case t.Table != nil && !ok:
			c.fault(at, "member %s of %s has no field", member.Name, x.Name)
		case t.Table != nil:
			over := Property{}
			before := len(c.faults)
			c.over(at, &over, t.Table, path, member.Kind.Name())
			if len(c.faults) == before {
				part.Path, part.Field = over.Path, over.Field
				part.Creatable = part.Creatable && over.Creatable
				part.Updatable = part.Updatable && over.Updatable
			}
		}
		p.Parts = append(p.Parts, &part)
	}
	for _, name := range sortedKeys(d.Members) {
		if !slices.ContainsFunc(x.Properties, func(m *Property) bool { return m.Name == name }) {
			c.fault(at, "%s has no member %s", x.Name, name)
		}
	}
	return p
}

// key finds the properties of the key.
func (c *compiler) key(at place, d *catalog.SetDef, t *Type) {
	if t.Table == nil {
		for _, name := range d.Key {
			p := t.properties[name]
			if p == nil || p.Kind == ComplexKind {
				c.fault(at, "key: there is no property %s that has one value", name)
				continue
			}
			t.Key = append(t.Key, p)
		}
		if len(d.Key) == 0 {
			c.fault(at, "a set without a table names its key")
		}
	} else {
		if len(t.Table.Key) == 0 {
			c.fault(at, "table %s has no key", t.Table.Name)
		}
		for _, f := range t.Table.KeyFields() {
			i := slices.IndexFunc(t.Properties, func(p *Property) bool {
				return p.Field == f && (len(d.Key) == 0 || slices.Contains(d.Key, p.Name))
			})
			if i < 0 {
				c.fault(at, "key: no property of the key stands over %s.%s", t.Table.Name, f.Name)
				continue
			}
			t.Key = append(t.Key, t.Properties[i])
		}
		for _, name := range d.Key {
			if !slices.ContainsFunc(t.Key, func(p *Property) bool { return p.Name == name }) {
				c.fault(at, "key: %s is no property over a key field of table %s", name, t.Table.Name)
			}
		}
	}
	for _, p := range t.Key {
		p.IsKey, p.Nullable, p.Updatable = true, false, false
	}
}

// etag finds the property that holds the version.
func (c *compiler) etag(at place, d *catalog.SetDef, t *Type) {
	switch {
	case d.ETag == "none":
	case d.ETag == "":
		for _, p := range t.Properties {
			if p.Field != nil && p.Field.Audit && p.Field.Name == "sys_mod_count" {
				t.ETag = p
				break
			}
		}
	case t.Table == nil:
		c.fault(at, "etag: a set without a table has no versions")
	default:
		if p := t.properties[d.ETag]; p == nil || p.Path == "" {
			c.fault(at, "etag: there is no property %s over a field", d.ETag)
		} else {
			t.ETag = p
		}
	}
}

// paths checks the annotations that name another property of the type.
func (c *compiler) paths(at place, t *Type) {
	for _, p := range t.Properties {
		for _, name := range []string{"unit", "text"} {
			if to := p.Annotations[name]; to != "" && !strings.Contains(to, "/") && t.properties[to] == nil {
				c.fault(at.at("properties", p.Name), "%s: there is no property %s", name, to)
			}
		}
	}
}

// search finds the properties that a search looks into.
func (c *compiler) search(at place, d *catalog.SetDef, s *Set) {
	for _, name := range d.Search {
		p := s.Type.properties[name]
		if p == nil || p.Path == "" || p.Kind != String {
			c.fault(at, "search: there is no text property %s over a field", name)
			continue
		}
		s.Search = append(s.Search, p)
	}
	if d.Annotations["searchable"] != "true" || len(d.Search) > 0 {
		return
	}
	for _, p := range s.Type.Properties {
		f := p.Field
		if p.Kind == String && f != nil && f.Type == record.TypeString && len(f.Choices) == 0 && !f.Audit && len(f.Access.Read) == 0 {
			s.Search = append(s.Search, p)
		}
	}
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
