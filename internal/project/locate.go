package project

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/autorest"
	"weir/internal/catalog"
	"weir/internal/edm"
)

// The catalog, the rules and the services name the table, field, rule, endpoint or property that is at fault. Who mends it wants the file and the
// line, which only the folder knows.

var (
	faultOfEndpoint = regexp.MustCompile(`^endpoint (.+?): `)
	faultOfField    = regexp.MustCompile(`^(\w+)\.(\w+): |^table (\w+): (?:default|compute) of (\w+): `)
	faultOfTable    = regexp.MustCompile(`^table (\w+): `)
	faultOfService  = regexp.MustCompile(`^service (\w+): extends`)
)

// locate gives each of the joined faults of err that names its origin the file and line. A fault that is reported for a
// table and for those that inherit from it is listed for each.
func (p *Project) locate(err error) error {
	if p.folder == nil {
		return err
	}
	faults := flatten(err, nil)
	for i, fault := range faults {
		at := ""
		if f := (*edm.Fault)(nil); errors.As(fault, &f) {
			at = p.placeIn("services/"+f.Service+".yaml", f.Path...)
		} else if f := (*autorest.Fault)(nil); errors.As(fault, &f) {
			at = p.placeIn("services/"+f.Service+".yaml", f.Path...)
		} else {
			at = p.origin(fault.Error())
		}
		if at != "" {
			faults[i] = fmt.Errorf("%s: %w", at, fault)
		}
	}
	return errors.Join(faults...)
}

// flatten appends the faults that err joins, at any depth.
func flatten(err error, to []error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return append(to, err)
	}
	for _, e := range joined.Unwrap() {
		to = flatten(e, to)
	}
	return to
}

// origin is file:line of what a fault is about, "" if it does not say.
func (p *Project) origin(fault string) string {
	if m := faultOfEndpoint.FindStringSubmatch(fault); m != nil {
		at := ""
		for _, e := range p.Definitions.Endpoints {
			if e.Name == m[1] {
				at = e.File + ":1" // of several with one name, the last is at fault
			}
		}
		return at
	}
	if m := faultOfField.FindStringSubmatch(fault); m != nil {
		table, field := m[1]+m[3], m[2]+m[4]
		def := p.defining(table, func(d *catalog.TableDef) bool {
			for i := range d.Fields {
				if d.Fields[i].Name == field {
					return true
				}
			}
			return false
		})
		return p.place(def, "fields", field)
	}
	if m := faultOfService.FindStringSubmatch(fault); m != nil {
		return p.placeIn("services/"+m[1]+".yaml", "extends")
	}
	m := faultOfTable.FindStringSubmatch(fault)
	if m == nil {
		return ""
	}
	rest, ok := strings.CutPrefix(fault, m[0]+"rule ")
	if !ok {
		return p.place(m[1], "name")
	}
	name := ""
	def := p.defining(m[1], func(d *catalog.TableDef) bool {
		for i := range d.Rules {
			if n := d.Rules[i].Name; strings.HasPrefix(rest, n+":") && len(n) > len(name) {
				name = n // a rule's name may hold a colon itself: the longest that fits
			}
		}
		return name != ""
	})
	return p.place(def, "rules", name)
}

// defining is the table, or the one above it, that has what is sought; the table itself if none has.
func (p *Project) defining(table string, has func(*catalog.TableDef) bool) string {
	name := table
	for range p.Definitions.Tables { // at most so many parents, even if they go round
		parent := ""
		for i := range p.Definitions.Tables {
			if d := &p.Definitions.Tables[i]; d.Name == name {
				if has(d) {
					return name
				}
				parent = d.Extends
			}
		}
		name = parent
	}
	return table
}

// place is file:line within the file of a table, "" if there is none.
func (p *Project) place(table string, names ...string) string {
	return p.placeIn("tables/"+table+".yaml", names...)
}

func (p *Project) placeIn(file string, names ...string) string {
	text, err := fs.ReadFile(p.folder, file)
	if err != nil {
		return ""
	}
	return place(file, text, names...)
}

// place is file:line of what names lead to: keys of mappings, and in lists an entry, or its "name". What cannot be found
// has the line of the last name that can.
func place(file string, text []byte, names ...string) string {
	line := 1
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) == nil && len(doc.Content) > 0 {
		n := doc.Content[0]
		for _, name := range names {
			if n = below(n, name); n == nil {
				break
			}
			line = n.Line
		}
	}
	return fmt.Sprintf("%s:%d", file, line)
}

func below(n *yaml.Node, name string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		for _, entry := range n.Content {
			if entry.Kind == yaml.ScalarNode && entry.Value == name {
				return entry
			}
			if v := below(entry, "name"); v != nil && v.Value == name {
				return entry
			}
		}
	}
	return nil
}
