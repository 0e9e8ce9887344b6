package store

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Describe is the definitions of existing relations, in their order. typeOf finds the field type of a column; what it
// does not know becomes a read-only text. Names that are not letters, digits and underscores are replaced, and stored
// and column keep the real ones. What only the database knows (defaults, checks, triggers) is left to it.
func Describe(list []*Relation, typeOf func(*Column) (record.Type, bool)) []catalog.TableDef {
	list = slices.DeleteFunc(slices.Clone(list), func(r *Relation) bool { return len(r.Columns) == 0 }) // nothing to serve
	names := nameAll(list, func(r *Relation) string { return r.Name })
	byTable := map[[2]string]int{}
	for i, r := range list {
		byTable[[2]string{r.Schema, r.Name}] = i
	}
	no := false
	defs := make([]catalog.TableDef, len(list))
	for i, r := range list {
		d := &defs[i]
		*d = catalog.TableDef{Name: names[i], External: true, Audit: &no}
		if stored := storedName(r); stored != d.Name {
			d.Stored = stored
		}
		if d.Name != r.Name {
			d.Label = r.Name
		}
		d.ReadOnly = r.View || len(r.Key) == 0
		fields := nameAll(r.Columns, func(c Column) string { return c.Name })
		of := func(column string) string {
			return fields[slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == column })]
		}
		for _, k := range r.Key {
			d.Key = append(d.Key, of(k))
		}
		for j := range r.Columns {
			f := describeColumn(&r.Columns[j], fields[j], typeOf)
			if slices.Contains(r.Key, r.Columns[j].Name) && len(r.Key) == 1 {
				f.Mandatory = false // the key is asked for by the database, or numbered by it
			}
			for _, fk := range r.Foreign {
				at, ok := byTable[[2]string{fk.Schema, fk.Table}]
				if fk.Column == r.Columns[j].Name && ok && slices.Equal(list[at].Key, []string{fk.Key}) && !f.ReadOnly {
					f.Type, f.Reference, f.ForeignKey = record.TypeReference.String(), names[at], true
				}
			}
			d.Fields = append(d.Fields, f)
		}
		for _, x := range r.Uniques {
			columns := make([]string, len(x.Columns))
			for j := range columns {
				columns[j] = of(x.Columns[j])
			}
			d.Uniques = append(d.Uniques, columns)
		}
	}
	return defs
}

func describeColumn(c *Column, name string, typeOf func(*Column) (record.Type, bool)) catalog.FieldDef {
	t, known := typeOf(c)
	f := catalog.FieldDef{Name: name, Type: t.String(), Native: c.Type, MaxLength: c.Length, Generated: c.Generated, Identity: c.Identity}
	if name != c.Name {
		f.Column, f.Label = c.Name, c.Name
	}
	if f.ReadOnly = !known || c.Array; c.Array {
		f.Native = c.Base // of a domain too, so that it is seen to be an array
	}
	f.Mandatory = c.NotNull && !c.Default && !c.Generated && !c.Identity
	for _, label := range c.Enum {
		f.Choices = append(f.Choices, catalog.Choice{Value: label, Label: label})
	}
	return f
}

// storedName is how a definition names a stored table: a dot in a name is only told from the one after the schema when
// the schema is given too.
func storedName(r *Relation) string {
	if r.Schema == "" && strings.Contains(r.Name, ".") {
		return "." + r.Name
	}
	if r.Schema == "" {
		return r.Name
	}
	if strings.ContainsAny(r.Schema, `."`) {
		return `"` + r.Schema + `".` + r.Name
	}
	return r.Schema + "." + r.Name
}

var notName = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// nameAll gives each item a name of letters, digits and underscores that no other has, also without regard to case.
func nameAll[T any](list []T, of func(T) string) []string {
	names, taken := make([]string, len(list)), map[string]bool{}
	for i, item := range list {
		name := strings.Trim(notName.ReplaceAllString(of(item), "_"), "_")
		if name == "" || name[0] >= '0' && name[0] <= '9' {
			name = "t_" + name
		}
		if len(name) > 72 {
			name = name[:72]
		}
		unique := name
		for n := 2; taken[strings.ToLower(unique)]; n++ {
			unique = name + "_" + strconv.Itoa(n)
		}
		taken[strings.ToLower(unique)] = true
		names[i] = unique
	}
	return names
}
