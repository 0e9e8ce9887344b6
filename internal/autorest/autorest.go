// Package autorest resolves services of the protocol ords: tables, views and routines under the aliases by which clients of ORDS know
// them (protocol notes, ords.md, section 8). It knows no wire format; apply checks definitions by it, and the dialect works with
// what it makes of them.
package autorest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Protocol is what services of this kind name.
const Protocol = "ords"

// Schema is the objects of one service: what stands below /ords/ALIAS/.
type Schema struct {
	Def     *catalog.ServiceDef
	Alias   string
	Objects []*Object // by alias

	by map[string]*Object
}

// Object finds an object by its alias, nil if there is none.
func (s *Schema) Object(alias string) *Object { return s.by[alias] }

// Object is a table or a view, or with Routine a function or procedure.
type Object struct {
	Alias   string
	Label   string
	Table   *catalog.Table // nil for a routine
	Columns []*Column      // in the order of answers
	Key     []*Column      // as the table's key; none: its rows have no address
	Version []*Column      // columns whose values are the version of a row; none: it is made from all values
	Routine *catalog.FunctionDef

	Create, Update, Delete bool // reading is always allowed

	byName map[string]*Column
	paths  []string
}

// Column finds a column by the name of its member, nil if there is none.
func (o *Object) Column(name string) *Column { return o.byName[name] }

// Paths are the fields of the columns, in their order. The list must not be changed.
func (o *Object) Paths() []string { return o.paths }

// Column is one column of an object.
type Column struct {
	Name  string // of the member
	Index int    // in Object.Columns
	Field *catalog.Field
	Type  record.Type // of its values for clients: that of the field, or of the key that it refers to
}

// Fault is one mistake of a definition.
type Fault struct {
	Service string
	Path    []string // where it stands in the definition: sets, emp, properties, sal
	Msg     string
}

// Error names the service and the set, and says what is wrong with it.
func (f *Fault) Error() string {
	s := "service " + f.Service
	for i := 0; i+1 < len(f.Path); i += 2 {
		s += ": " + words[f.Path[i]] + " " + f.Path[i+1]
	}
	if len(f.Path)%2 == 1 {
		s += ": " + f.Path[len(f.Path)-1]
	}
	return s + ": " + f.Msg
}

var words = map[string]string{"sets": "set", "properties": "property", "functions": "function", "expose": "table"}

// alias is a segment of a path that needs no escapes and is none of the reserved ones.
var alias = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// reserved are segments that stand for something else below a schema (protocol notes, section 1).
var reserved = []string{"metadata-catalog", "open-api-catalog", "oauth", "_"}

// Reserved reports whether an alias stands for something else below a schema.
func Reserved(alias string) bool { return slices.Contains(reserved, alias) }

// Compile resolves a definition against the tables of snap. The error joins all faults, each a [*Fault].
func Compile(snap *catalog.Snapshot, def *catalog.ServiceDef) (*Schema, error) {
	c := &compiler{snap: snap, s: &Schema{Def: def, Alias: def.Name, by: map[string]*Object{}}}
	c.head()
	for i := range def.Sets {
		c.set([]string{"sets", def.Sets[i].Name}, &def.Sets[i])
	}
	for _, name := range def.Expose {
		if !slices.ContainsFunc(def.Sets, func(s catalog.SetDef) bool { return s.Table == name && s.Name == strings.ToLower(name) }) {
			c.set([]string{"expose", name}, &catalog.SetDef{Name: strings.ToLower(name), Table: name})
		}
	}
	for i := range def.Functions {
		c.routine(&def.Functions[i])
	}
	slices.SortFunc(c.s.Objects, func(a, b *Object) int { return strings.Compare(a.Alias, b.Alias) })
	return c.s, errors.Join(c.faults...)
}

type compiler struct {
	snap   *catalog.Snapshot
	s      *Schema
	faults []error
}

func (c *compiler) fault(at []string, format string, args ...any) {
	c.faults = append(c.faults, &Fault{c.s.Def.Name, at, fmt.Sprintf(format, args...)})
}

func (c *compiler) head() {
	d := c.s.Def
	if !alias.MatchString(d.Name) {
		c.fault([]string{"name"}, "an alias is letters, digits and _.- and has at most 128 of them")
	}
	unused := func(key string, given bool) {
		if given {
			c.fault([]string{key}, "services of protocol ords have no such thing")
		}
	}
	unused("namespace", d.Namespace != "")
	unused("schema", d.Schema != "")
	unused("csrf", d.CSRF != nil)
	unused("complex", len(d.Complex) > 0)
	unused("associations", len(d.Associations) > 0)
	if d.PageSize < 0 {
		c.fault([]string{"page_size"}, "%d is less than 0", d.PageSize)
	}
	if len(d.Sets)+len(d.Expose)+len(d.Functions) == 0 {
		c.fault([]string{"name"}, "it has no sets and no functions, and exposes no tables")
	}
}

// add takes up an object under its alias.
func (c *compiler) add(at []string, o *Object) {
	switch {
	case !alias.MatchString(o.Alias):
		c.fault(at, "an alias is letters, digits and _.- and has at most 128 of them")
	case Reserved(o.Alias):
		c.fault(at, "%s has a meaning of its own below a schema; give the table another alias", o.Alias)
	case c.s.by[o.Alias] != nil:
		c.fault(at, "there is another one with this alias")
	default:
		c.s.by[o.Alias] = o
		c.s.Objects = append(c.s.Objects, o)
	}
}

func (c *compiler) set(at []string, d *catalog.SetDef) {
	unused := func(key string, given bool) {
		if given {
			c.fault(append(at[:2:2], key), "sets of protocol ords have no such thing")
		}
	}
	unused("type", d.Type != "")
	unused("key", len(d.Key) > 0)
	unused("navigation", len(d.Navigation) > 0)
	unused("search", len(d.Search) > 0)
	unused("annotations", len(d.Annotations) > 0)
	name := d.Table
	if name == "" {
		name = d.Name
	}
	t, err := c.snap.Table(name)
	if err != nil || t.System {
		c.fault(at, "there is no table %s", name)
		return
	}
	o := &Object{Alias: d.Name, Label: d.Label, Table: t, byName: map[string]*Column{}}
	if o.Label == "" {
		o.Label = t.Label
	}
	c.columns(at, o, d)
	for _, f := range t.KeyFields() {
		if col := o.of(f); col != nil {
			o.Key = append(o.Key, col)
		}
	}
	if len(o.Key) < len(t.Key) {
		o.Key = nil // rows that cannot be addressed can be read all the same
	}
	c.allow(at, o, d)
	c.version(at, o, d)
	c.add(at, o)
}

// columns are one for each field but passwords, or those that the definition lists.
func (c *compiler) columns(at []string, o *Object, d *catalog.SetDef) {
	add := func(name string, f *catalog.Field) bool {
		if o.byName[name] != nil {
			return false
		}
		col := &Column{name, len(o.Columns), f, c.typeOf(f, catalog.MaxWalk)}
		o.byName[name], o.Columns, o.paths = col, append(o.Columns, col), append(o.paths, f.Name)
		return true
	}
	if len(d.Properties) == 0 {
		for _, f := range o.Table.Fields {
			// Two columns that differ in case only: the second one keeps its own spelling.
			if f.Type != record.TypePassword && f.Type != record.TypeJournal && !add(memberName(f.Name), f) {
				add(f.Name, f)
			}
		}
	}
	for i := range d.Properties {
		p := &d.Properties[i]
		here := append(at[:2:2], "properties", p.Name)
		name := p.Field
		if name == "" {
			name = p.Name
		}
		f := o.Table.Field(name)
		switch {
		case f == nil:
			c.fault(here, "table %s has no field %s", o.Table.Name, name)
		case f.Type == record.TypePassword || f.Type == record.TypeJournal:
			c.fault(here, "%s is a %s, which no row holds", name, f.Type)
		case p.Type != "" || len(p.Members) > 0 || len(p.Annotations) > 0 || p.Creatable != nil || p.Updatable != nil:
			c.fault(here, "properties of protocol ords have a name and a field, no more")
		case p.Name == "" || p.Name == "links":
			c.fault(here, "a column has a name, which is not links")
		case !add(p.Name, f):
			c.fault(here, "there is another one with this name")
		}
	}
}

// typeOf is the type of a field's values for clients. A reference is what the key of the other table is: a number if that is one.
func (c *compiler) typeOf(f *catalog.Field, depth int) record.Type {
	if f.Type != record.TypeReference || depth == 0 {
		return f.Type
	}
	other, err := c.snap.Table(f.Reference)
	if err != nil || other.SingleKey() == nil {
		return f.Type
	}
	return c.typeOf(other.SingleKey(), depth-1)
}

// memberName is what a field is called in JSON: in lower case (protocol notes, section 5). The links of a row keep their name.
func memberName(field string) string {
	name := strings.ToLower(field)
	if name == "links" {
		return "links_"
	}
	return name
}

// of is the column over a field, nil if there is none.
func (o *Object) of(f *catalog.Field) *Column {
	for _, col := range o.Columns {
		if col.Field == f {
			return col
		}
	}
	return nil
}

// allow says what clients may do: what the table allows, or the part of it that the definition lists.
func (c *compiler) allow(at []string, o *Object, d *catalog.SetDef) {
	writable := o.Table.Writable() && len(o.Key) > 0
	o.Create, o.Update, o.Delete = writable, writable, writable
	if d.Allow == nil {
		return
	}
	o.Create, o.Update, o.Delete = false, false, false
	for _, what := range d.Allow {
		switch what {
		case "read":
			continue
		case "create":
			o.Create = true
		case "update":
			o.Update = true
		case "delete":
			o.Delete = true
		default:
			c.fault(append(at[:2:2], "allow"), "%q is not read, create, update or delete", what)
			continue
		}
		if !writable {
			c.fault(append(at[:2:2], "allow"), "%s: table %s is read-only, or its rows have no key here", what, o.Table.Name)
		}
	}
}

// version finds what changes whenever a row does: the field that the definition names, else the audit fields.
func (c *compiler) version(at []string, o *Object, d *catalog.SetDef) {
	names := []string{"sys_mod_count", "sys_updated_on"}
	switch d.ETag {
	case "none":
		return
	case "":
		if !o.Table.Audit {
			return
		}
	default:
		col := o.byName[d.ETag]
		if col == nil {
			c.fault(append(at[:2:2], "etag"), "there is no column %s", d.ETag)
			return
		}
		o.Version = []*Column{col}
		return
	}
	for _, name := range names {
		if col := o.of(o.Table.Field(name)); col != nil {
			o.Version = append(o.Version, col)
		}
	}
	if len(o.Version) < len(names) {
		o.Version = nil
	}
}

func (c *compiler) routine(d *catalog.FunctionDef) {
	at := []string{"functions", d.Name}
	if d.Endpoint != "" || d.Returns != "" || d.Set != "" || d.ActionFor != "" || d.Method != "" || len(d.Parameters) > 0 {
		c.fault(at, "functions of protocol ords have a name and a routine; the database says the rest")
	}
	c.add(at, &Object{Alias: d.Name, Label: d.Label, Routine: d})
}
