package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"

	"weir/internal/record"
)

var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,79}$`)

// Build compiles definitions into a snapshot. The error joins all faults, each with its table and field.
func Build(version uint64, defs Definitions) (*Snapshot, error) {
	b := &builder{
		defs: map[string]*TableDef{},
		snap: &Snapshot{
			Version: version, tables: map[string]*Table{}, endpoints: map[string]*Endpoint{},
			referrers: map[string][]Referrer{}, defs: defs,
		},
	}
	for i := range defs.Tables {
		d := &defs.Tables[i]
		if b.defs[d.Name] != nil {
			b.fault("table %s: defined twice", d.Name)
		}
		b.defs[d.Name] = d
		b.snap.names = append(b.snap.names, d.Name)
	}
	sort.Strings(b.snap.names)
	for _, name := range b.snap.names {
		b.table(name, nil)
	}
	b.links()
	b.endpoints(defs.Endpoints)
	b.services(defs.Services)
	if len(b.faults) > 0 {
		return nil, errors.Join(b.faults...)
	}
	return b.snap, nil
}

type builder struct {
	defs   map[string]*TableDef
	snap   *Snapshot
	faults []error
}

func (b *builder) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Errorf(format, args...))
}

// auditFields are added to every table with audit. Their columns carry the field names.
var auditFields = []FieldDef{
	{Name: "sys_id", Label: "Sys ID", Type: "guid", MaxLength: 32},
	{Name: "sys_created_on", Label: "Created", Type: "datetime"},
	{Name: "sys_created_by", Label: "Created by", Type: "string", MaxLength: 40},
	{Name: "sys_updated_on", Label: "Updated", Type: "datetime"},
	{Name: "sys_updated_by", Label: "Updated by", Type: "string", MaxLength: 40},
	{Name: "sys_mod_count", Label: "Updates", Type: "integer"},
	{Name: "sys_tags", Label: "Tags", Type: "string"},
}

// ClassField is the field of a hierarchy's records that holds the table they belong to.
const ClassField = "sys_class_name"

func (b *builder) table(name string, below []string) *Table {
	if t := b.snap.tables[name]; t != nil {
		return t
	}
	d := b.defs[name]
	if d == nil {
		return nil
	}
	if !namePattern.MatchString(name) {
		b.fault("table %q: a name is letters, digits and underscores, at most 80", name)
	}
	if slices.Contains(below, name) {
		b.fault("table %s: extends itself", name)
		return nil
	}
	t := &Table{
		Name: name, Label: d.Label, Extends: d.Extends, Root: name, Display: d.Display, External: d.External,
		ReadOnly: d.ReadOnly, Audit: d.Audit == nil && !d.External || d.Audit != nil && *d.Audit,
		Matrices: map[string][][]any{}, byName: map[string]*Field{},
	}
	if t.Label == "" {
		t.Label = strings.ReplaceAll(name, "_", " ")
	}
	t.Schema, t.Stored = splitStored(d.Stored, name)
	if isSystem(t.Schema, t.Stored) {
		b.fault("table %s: %s is a name of weir's own tables, which no project reaches", name, strings.TrimPrefix(t.Schema+"."+t.Stored, "."))
	}
	t.Key = d.Key

	if d.Extends != "" {
		parent := b.table(d.Extends, append(below, name))
		if parent == nil {
			b.fault("table %s: extends %s, which is not defined", name, d.Extends)
			return nil
		}
		b.inherit(t, parent, d)
	} else if t.Audit {
		for i := range auditFields {
			b.field(t, &auditFields[i])
			t.Fields[len(t.Fields)-1].Audit = true
		}
		if len(t.Key) == 0 {
			t.Key = []string{"sys_id"}
		}
		if b.hasChildren(name) {
			t.ClassField = ClassField
			b.field(t, &FieldDef{Name: ClassField, Label: "Class", Type: "string", MaxLength: 80})
			t.Fields[len(t.Fields)-1].Audit = true
		}
	} else if b.hasChildren(name) {
		b.fault("table %s: a table without audit fields cannot be extended", name)
	}
	for i := range d.Fields {
		b.field(t, &d.Fields[i])
	}
	t.Indexes = append(t.Indexes, d.Indexes...)
	t.Uniques = append(t.Uniques, d.Uniques...)
	for k, m := range d.Matrices {
		t.Matrices[k] = m
	}
	t.Rules = append(t.Rules, d.Rules...)
	b.access(t, d)
	b.finish(t)
	b.snap.tables[name] = t
	return t
}

func splitStored(stored, name string) (schema, table string) {
	if stored == "" {
		return "", name
	}
	// A schema whose name has a dot stands in double quotes.
	if rest, ok := strings.CutPrefix(stored, `"`); ok {
		if s, tab, ok := strings.Cut(rest, `".`); ok {
			return s, tab
		}
	}
	if s, tab, ok := strings.Cut(stored, "."); ok {
		return s, tab
	}
	return "", stored
}

// isSystem reports whether a stored table is one of weir's own, in either database: SQLite does not tell the cases apart.
func isSystem(schema, stored string) bool {
	switch strings.ToLower(schema) {
	case SystemSchema:
		return true
	case "", "main":
		return strings.HasPrefix(strings.ToLower(stored), SystemSchema+"_")
	}
	return false
}

func (b *builder) hasChildren(name string) bool {
	for _, d := range b.defs {
		if d.Extends == name {
			return true
		}
	}
	return false
}

func (b *builder) inherit(t, parent *Table, d *TableDef) {
	if !parent.Audit {
		b.fault("table %s: cannot extend %s, which has no audit fields", t.Name, parent.Name)
	}
	t.Root, t.Schema, t.Stored, t.Audit = parent.Root, parent.Schema, parent.Stored, parent.Audit
	t.ClassField, t.Key = parent.ClassField, parent.Key
	t.Parents = append([]string{parent.Name}, parent.Parents...)
	if t.Display == "" {
		t.Display = parent.Display
	}
	for _, f := range parent.Fields {
		c := *f
		t.Fields = append(t.Fields, &c)
		t.byName[c.Name] = &c
	}
	t.Indexes = slices.Clone(parent.Indexes)
	t.Uniques = slices.Clone(parent.Uniques)
	t.Rules = slices.Clone(parent.Rules)
	for k, m := range parent.Matrices {
		t.Matrices[k] = m
	}
	if d.Access.empty() {
		t.Access = parent.Access
	}
}

func (a *AccessDef) empty() bool {
	return a.Read == nil && a.Create == nil && a.Update == nil && a.Delete == nil
}

func (b *builder) access(t *Table, d *TableDef) {
	if !d.Access.empty() {
		t.Access = d.Access
	}
}

func (b *builder) field(t *Table, d *FieldDef) {
	f := &Field{
		Name: d.Name, Label: d.Label, Column: d.Column, Native: d.Native, MaxLength: d.MaxLength, Mandatory: d.Mandatory,
		ReadOnly: d.ReadOnly || d.Compute != "" || d.Generated, Generated: d.Generated, Identity: d.Identity,
		Unique: d.Unique, Reference: d.Reference, ForeignKey: d.ForeignKey, DependsOn: d.DependsOn, Choices: d.Choices,
		Compute: d.Compute, Access: d.Access, Owner: t.Name,
	}
	at := t.Name + "." + d.Name
	if !namePattern.MatchString(d.Name) {
		b.fault("%s: a name is letters, digits and underscores, at most 80", at)
	}
	var ok bool
	if f.Type, ok = record.ParseType(d.Type); !ok {
		b.fault("%s: type %q is not one of string, integer, decimal, float, boolean, datetime, date, duration, reference, list, journal, password, json, guid, bytes", at, d.Type)
	}
	if f.Column == "" {
		f.Column = f.Name
	}
	if f.Label == "" {
		f.Label = strings.ReplaceAll(f.Name, "_", " ")
	}
	switch d.OnDelete {
	case "", "none":
	case "restrict":
		f.OnDelete = OnDeleteRestrict
	case "cascade":
		f.OnDelete = OnDeleteCascade
	case "clear":
		f.OnDelete = OnDeleteClear
	default:
		b.fault("%s: on_delete %q is not none, restrict, cascade or clear", at, d.OnDelete)
	}
	if f.Type == record.TypeReference && d.Reference == "" {
		b.fault("%s: a reference names its table", at)
	}
	f.Default = b.defaultOf(at, f.Type, d.Default)
	if d.Sequence != nil {
		seq := *d.Sequence
		if seq.Name == "" {
			seq.Name = at
		}
		seq.Start = max(seq.Start, 1)
		f.Sequence = &seq
	}
	if old := t.byName[f.Name]; old != nil {
		// A child may give an inherited field its own label, choices, default, sequence, rules and access, not its own type.
		if old.Owner == t.Name {
			b.fault("%s: defined twice", at)
		}
		if old.Type != f.Type || old.Column != f.Column {
			b.fault("%s: inherited from %s as %s in column %s; a child cannot change that", at, old.Owner, old.Type, old.Column)
		}
		f.Index, f.Owner, f.Audit = old.Index, old.Owner, old.Audit
		if f.Sequence == nil {
			f.Sequence = old.Sequence
		}
		if len(f.Choices) == 0 {
			f.Choices = old.Choices
		}
		if f.Default == "" {
			f.Default = old.Default
		}
		f.Unique = f.Unique || old.Unique
		t.Fields[f.Index] = f
	} else {
		f.Index = len(t.Fields)
		t.Fields = append(t.Fields, f)
	}
	t.byName[f.Name] = f
}

func (b *builder) defaultOf(at string, typ record.Type, v any) string {
	if v == nil {
		return ""
	}
	s := fmt.Sprint(v)
	if strings.HasPrefix(s, "=") {
		return s
	}
	val, err := record.Parse(typ, s)
	if err != nil {
		b.fault("%s: default: %v", at, err)
	}
	return val.Text()
}

func (b *builder) finish(t *Table) {
	for _, k := range t.Key {
		f := t.byName[k]
		if f == nil {
			b.fault("table %s: key field %s does not exist", t.Name, k)
			continue
		}
		t.keys = append(t.keys, f)
	}
	for _, f := range t.Fields {
		if f.Unique && !slices.ContainsFunc(t.Uniques, func(u []string) bool { return len(u) == 1 && u[0] == f.Name }) {
			t.Uniques = append(t.Uniques, []string{f.Name})
		}
	}
	for _, list := range [][][]string{t.Uniques, t.Indexes} {
		for _, fields := range list {
			for _, name := range fields {
				if t.byName[name] == nil {
					b.fault("table %s: index or unique names %s, which does not exist", t.Name, name)
				}
			}
		}
	}
	if t.Display == "" {
		for _, name := range []string{"name", "number"} {
			if t.byName[name] != nil {
				t.Display = name
				break
			}
		}
		if t.Display == "" && len(t.Key) > 0 {
			t.Display = t.Key[0]
		}
	} else if t.byName[t.Display] == nil {
		b.fault("table %s: display field %s does not exist", t.Name, t.Display)
	}
}

// links fills what needs all tables: classes of a hierarchy, referring fields, and the check that references lead somewhere.
func (b *builder) links() {
	for _, name := range b.snap.names {
		t := b.snap.tables[name]
		if t == nil {
			continue
		}
		for _, other := range append([]string{name}, t.Parents...) {
			p := b.snap.tables[other]
			p.Classes = append(p.Classes, name)
		}
		for _, f := range t.Fields {
			if f.Reference == "" {
				continue
			}
			ref := b.snap.tables[f.Reference]
			if ref == nil {
				b.fault("%s.%s: refers to %s, which is not defined", t.Name, f.Name, f.Reference)
			} else if f.Type == record.TypeReference && len(ref.Key) != 1 {
				b.fault("%s.%s: refers to %s, whose key is not one field", t.Name, f.Name, f.Reference)
			}
			if f.Owner == t.Name && f.Type == record.TypeReference {
				b.snap.referrers[f.Reference] = append(b.snap.referrers[f.Reference], Referrer{t, f})
			}
		}
	}
}

func (b *builder) endpoints(defs []EndpointDef) {
	for _, d := range defs {
		e := &Endpoint{EndpointDef: d, Segments: strings.Split(strings.Trim(d.Path, "/"), "/")}
		if e.Method == "" {
			e.Method = "GET"
		}
		if b.snap.endpoints[d.Name] != nil {
			b.fault("endpoint %s: defined twice", d.Name)
		}
		b.snap.endpoints[d.Name] = e
		if d.SQL != nil {
			b.snap.sql = append(b.snap.sql, e)
			continue
		}
		for _, s := range e.Segments {
			if strings.HasPrefix(s, "{") != strings.HasSuffix(s, "}") || s == "" {
				b.fault("endpoint %s: path %q: bad segment %q", d.Name, d.Path, s)
			}
		}
		b.snap.routes = append(b.snap.routes, e)
	}
	// Literal segments win over parameters, position by position.
	slices.SortStableFunc(b.snap.routes, func(x, y *Endpoint) int { return strings.Compare(sortKey(x), sortKey(y)) })
	for _, e := range b.snap.routes {
		if v, ok := withVersion(e); ok {
			b.snap.versioned = append(b.snap.versioned, v)
		}
	}
}

func sortKey(e *Endpoint) string {
	var s strings.Builder
	for _, seg := range e.Segments {
		if strings.HasPrefix(seg, "{") {
			s.WriteString("1/")
		} else {
			s.WriteString("0/")
		}
	}
	return s.String()
}

// services resolves which service redefines which.
func (b *builder) services(defs []ServiceDef) {
	byName := make(map[string]*ServiceDef, len(defs))
	for i := range defs {
		byName[defs[i].Name] = &defs[i]
	}
	var whole func(d *ServiceDef, below []string) ServiceDef
	whole = func(d *ServiceDef, below []string) ServiceDef {
		base := byName[d.Extends]
		switch {
		case d.Extends == "":
			return *d
		case base == nil:
			b.fault("service %s: extends %s, which is not defined", d.Name, d.Extends)
			return *d
		case slices.Contains(below, d.Name):
			b.fault("service %s: extends itself", d.Name)
			return *d
		}
		return d.over(whole(base, append(below, d.Name)))
	}
	for i := range defs {
		b.snap.services = append(b.snap.services, whole(&defs[i], nil))
	}
	slices.SortFunc(b.snap.services, func(x, y ServiceDef) int { return strings.Compare(x.Name, y.Name) })
}

// over is what d makes of the service that it redefines: what stands in d wins.
func (d *ServiceDef) over(base ServiceDef) ServiceDef {
	s := *d
	if s.Protocol == "" {
		s.Protocol = base.Protocol
	}
	if s.Label == "" {
		s.Label = base.Label
	}
	if s.Roles == nil {
		s.Roles = base.Roles
	}
	if s.CSRF == nil {
		s.CSRF = base.CSRF
	}
	if s.PageSize == 0 {
		s.PageSize = base.PageSize
	}
	s.Expose = replaced(base.Expose, d.Expose, func(name *string) string { return *name })
	s.Complex = replaced(base.Complex, d.Complex, func(x *ComplexDef) string { return x.Name })
	s.Sets = replaced(base.Sets, d.Sets, func(x *SetDef) string { return x.Name })
	s.Associations = replaced(base.Associations, d.Associations, func(x *AssociationDef) string { return x.Name })
	s.Functions = replaced(base.Functions, d.Functions, func(x *FunctionDef) string { return x.Name })
	return s
}

// replaced is base with the entries of list in the places of those with the same name, the others at its end.
func replaced[T any](base, list []T, name func(*T) string) []T {
	out := slices.Clone(base)
	for i := range list {
		if at := slices.IndexFunc(out, func(o T) bool { return name(&o) == name(&list[i]) }); at >= 0 {
			out[at] = list[i]
		} else {
			out = append(out, list[i])
		}
	}
	return out
}
