package demo

import (
	"bytes"
	"encoding/csv"
	"io/fs"
	"path"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"weir/internal/catalog"
)

// project is the demo as a server would see it.
type project struct {
	tables map[string]*catalog.Table
	defs   map[string]catalog.TableDef
	data   map[string][]map[string]string // by table; each record by field
	snap   *catalog.Snapshot
}

// read loads the whole demo strictly; what cannot be read fails the test.
func read(t *testing.T) project {
	t.Helper()
	p := project{tables: make(map[string]*catalog.Table), defs: make(map[string]catalog.TableDef), data: make(map[string][]map[string]string)}
	var all catalog.Definitions
	for name, text := range glob(t, "tables/*.yaml") {
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		var def catalog.TableDef
		if err := d.Decode(&def); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if def.Name+".yaml" != path.Base(name) {
			t.Errorf("%s defines table %q; a file is named for its table", name, def.Name)
		}
		p.defs[def.Name] = def
		all.Tables = append(all.Tables, def)
	}
	var err error
	if p.snap, err = catalog.Build(1, all); err != nil {
		t.Fatal(err)
	}
	for name := range p.defs {
		if p.tables[name], err = p.snap.Table(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range glob(t, "data/*.csv") {
		lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		table := strings.TrimSuffix(path.Base(name), ".csv")
		if p.tables[table] == nil {
			t.Fatalf("%s: no table %s", name, table)
		}
		for _, column := range lines[0] {
			if p.tables[table].Field(column) == nil {
				t.Errorf("%s: %s is no field of %s", name, column, table)
			}
		}
		for _, line := range lines[1:] {
			record := make(map[string]string)
			for i, value := range line {
				record[lines[0][i]] = value
			}
			p.data[table] = append(p.data[table], record)
		}
	}
	return p
}

// glob returns the text of each file that fits the pattern, of which there must be some.
func glob(t *testing.T, pattern string) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(Project(), pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no file fits %s (%v)", pattern, err)
	}
	texts := make(map[string][]byte)
	for _, name := range names {
		text, err := fs.ReadFile(Project(), name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = text
	}
	return texts
}

// own returns the fields that the file of the table defines, inherited ones that it changes included.
func (p project) own(table string) []catalog.FieldDef { return p.defs[table].Fields }
