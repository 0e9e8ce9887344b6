package main

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// table is the part of a table file that the dictionary repeats.
type table struct {
	Name    string
	Label   string
	Extends string
	Display string
	Fields  []struct {
		Name      string
		Label     string
		Type      string
		MaxLength int    `yaml:"max_length"`
		ReadOnly  bool   `yaml:"read_only"`
		Unique    bool   `yaml:"unique"`
		Mandatory bool   `yaml:"mandatory"`
		Reference string `yaml:"reference"`
		Default   string `yaml:"default"`
		Compute   string `yaml:"compute"`
		Sequence  struct{ Prefix string }
		Choices   []struct{ Value, Label, Dependent string }
	}
}

// internalTypes gives the vendor's name for each of ours where it differs.
var internalTypes = map[string]string{"datetime": "glide_date_time", "date": "glide_date", "duration": "glide_duration", "list": "glide_list", "journal": "journal_input", "guid": "GUID"}

// describe makes sys_db_object, sys_dictionary and sys_choice from the table files, in the order of their names.
func describe(project fs.FS) ([]*sheet, error) {
	names, err := fs.Glob(project, "tables/*.yaml")
	if err != nil {
		return nil, err
	}
	objects := newSheet("sys_db_object", "name", "label", "super_class", "number_ref")
	dictionary := newSheet("sys_dictionary", "name", "element", "column_label", "internal_type", "reference", "max_length", "mandatory", "read_only", "choice", "default_value", "display", "unique")
	choices := newSheet("sys_choice", "name", "element", "value", "label", "language", "sequence", "dependent_value")
	for _, name := range names {
		text, err := fs.ReadFile(project, name)
		if err != nil {
			return nil, err
		}
		var t table
		if err := yaml.Unmarshal(text, &t); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		super, prefix := "", ""
		if t.Extends != "" {
			super = id("sys_db_object", t.Extends)
		}
		for _, f := range t.Fields {
			internal, length, choice, standard := f.Type, "", "0", f.Default
			if known := internalTypes[f.Type]; known != "" {
				internal = known
			}
			if f.MaxLength > 0 {
				length = strconv.Itoa(f.MaxLength)
			}
			if len(f.Choices) > 0 {
				choice = "1"
				if standard != "" {
					choice = "3"
				}
			}
			if expression, ok := strings.CutPrefix(standard, "="); ok {
				standard = "javascript:" + map[string]string{"now()": "gs.nowDateTime()", "user.sys_id": "gs.getUserID()"}[expression]
			}
			if f.Sequence.Prefix != "" {
				prefix = f.Sequence.Prefix
			}
			dictionary.add(id("sys_dictionary", t.Name+"."+f.Name), t.Name, f.Name, f.Label, internal, f.Reference, length, strconv.FormatBool(f.Mandatory), strconv.FormatBool(f.ReadOnly || f.Compute != ""), choice, standard,
				strconv.FormatBool(f.Name == t.Display), strconv.FormatBool(f.Unique))
			for i, c := range f.Choices {
				choices.add(id("sys_choice", strings.Join([]string{t.Name, f.Name, c.Value, c.Dependent}, "/")), t.Name, f.Name, c.Value, c.Label, "en", strconv.Itoa(i), c.Dependent)
			}
		}
		objects.add(id("sys_db_object", t.Name), t.Name, t.Label, super, prefix)
	}
	return []*sheet{objects, dictionary, choices}, nil
}
