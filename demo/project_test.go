package demo

import (
	"bytes"
	"encoding/csv"
	"io/fs"
	"path"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The table file, read strictly and independently of the server's own reader: what a person may rely on when copying the demo.
type (
	table struct {
		Name     string
		Label    string
		Extends  string
		Display  string
		Access   map[string][]grant
		Fields   []field
		Indexes  [][]string
		Uniques  [][]string
		Matrices map[string][][]int
		Rules    []rule

		file string
	}
	grant struct {
		Roles []string
		Where string
	}
	field struct {
		Name       string
		Label      string
		Type       string
		MaxLength  int    `yaml:"max_length"`
		ReadOnly   bool   `yaml:"read_only"`
		Unique     bool   `yaml:"unique"`
		Reference  string `yaml:"reference"`
		OnDelete   string `yaml:"on_delete"`
		ForeignKey bool   `yaml:"foreign_key"`
		DependsOn  string `yaml:"depends_on"`
		Default    *string
		Compute    string
		Sequence   *struct {
			Prefix string
			Digits int
			Start  int
		}
		Choices []choice
		Access  map[string][]string
	}
	choice struct{ Value, Label, Dependent string }
	rule   struct {
		Name       string
		On         []string
		When       string
		Require    []string
		Set        map[string]string
		Transition *struct {
			Field string
			From  map[string][]string
		}
		Check   string
		Message string
		Field   string
		Lookup  *struct {
			Table      string
			Match, Set map[string]string
			None, Many string
		}
		Choose *struct {
			Table      string
			Match, Set map[string]string
			Order      string
		}
		Derive *struct {
			Table  string
			Match  string
			Values map[string]string
			Result map[string]string
		}
	}
)

// audit names the fields that every table has without saying so.
var audit = []string{"sys_id", "sys_created_on", "sys_created_by", "sys_updated_on", "sys_updated_by", "sys_mod_count", "sys_tags"}

type project struct {
	tables map[string]*table
	data   map[string][]map[string]string // by table; each record by field
}

// read loads the whole demo; what cannot be read fails the test.
func read(t *testing.T) project {
	t.Helper()
	p := project{tables: make(map[string]*table), data: make(map[string][]map[string]string)}
	for name, text := range glob(t, "tables/*.yaml") {
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		var tb table
		if err := d.Decode(&tb); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tb.file = name
		if tb.Name+".yaml" != path.Base(name) {
			t.Errorf("%s defines table %q; a file is named for its table", name, tb.Name)
		}
		p.tables[tb.Name] = &tb
	}
	for name, text := range glob(t, "data/*.csv") {
		lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tb := strings.TrimSuffix(path.Base(name), ".csv")
		if p.tables[tb] == nil {
			t.Fatalf("%s: no table %s", name, tb)
		}
		known := p.fields(tb)
		for _, column := range lines[0] {
			if _, ok := known[column]; !ok {
				t.Errorf("%s: %s is no field of %s", name, column, tb)
			}
		}
		for _, line := range lines[1:] {
			record := make(map[string]string)
			for i, value := range line {
				record[lines[0][i]] = value
			}
			p.data[tb] = append(p.data[tb], record)
		}
	}
	return p
}

// glob returns the text of each file that fits the pattern, of which there must be some.
func glob(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(ITSM(), pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no file fits %s (%v)", pattern, err)
	}
	texts := make(map[string][]byte)
	for _, name := range names {
		text, err := fs.ReadFile(ITSM(), name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = text
	}
	return texts
}

// line returns the table and those it extends, itself first. It ends at a table that is missing, and at a circle.
func (p project) line(name string) []*table {
	var line []*table
	for tb := p.tables[name]; tb != nil && len(line) <= len(p.tables); tb = p.tables[tb.Extends] {
		line = append(line, tb)
	}
	return line
}

func (p project) root(name string) string {
	line := p.line(name)
	return line[len(line)-1].Name
}

// is reports whether a record of the table is also one of the other.
func (p project) is(name, other string) bool {
	for _, tb := range p.line(name) {
		if tb.Name == other {
			return true
		}
	}
	return false
}

// fields returns all fields of a table by name, inherited ones and those of the audit included; the nearest definition wins.
func (p project) fields(name string) map[string]field {
	all := make(map[string]field)
	for _, f := range audit {
		all[f] = field{Name: f, Type: "string"}
	}
	all["sys_class_name"] = field{Name: "sys_class_name", Type: "string"}
	for _, tb := range p.line(name) {
		for _, f := range tb.Fields {
			if _, ok := all[f.Name]; !ok {
				all[f.Name] = f
			}
		}
	}
	return all
}
