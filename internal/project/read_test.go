package project

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/record"
)

func TestRead_NamesFileAndLineOfEveryFault(t *testing.T) {
	f := func(files map[string]string, want ...string) {
		t.Helper()
		folder := fstest.MapFS{}
		for name, text := range files {
			folder[name] = file(text)
		}
		p, err := Read(folder)
		if err == nil {
			_, err = p.Build(1)
		}
		if err == nil {
			t.Errorf("no fault, want %q", want)
			return
		}
		if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
			t.Error(diff)
		}
	}
	f(map[string]string{"tables/a.yaml": "name: a\nfields:\n  - {name: x, type: string, colour: red}\n"}, `tables/a.yaml:3: unknown key "colour"`)
	f(map[string]string{"tables/a.yaml": "name: a\nlabl: A\nfields: []\nread_only: perhaps\n"},
		`tables/a.yaml:2: unknown key "labl"`, "tables/a.yaml:4: cannot unmarshal !!str `perhaps` into bool")
	f(map[string]string{"tables/a.yaml": "name: a\nname: b\n"}, `tables/a.yaml:2: mapping key "name" already defined at line 1`)
	f(map[string]string{"tables/a.yaml": "name: a\nfields: [\n"}, `tables/a.yaml:2: did not find expected node content`)
	f(map[string]string{"tables/a.yaml": ""}, `tables/a.yaml:1: the file is empty`)
	f(map[string]string{"tables/a.yaml": "label: A\nname: b\n"}, `tables/a.yaml:2: name is "b", but the file is named for table "a"`)
	f(map[string]string{"tables/a.yaml": "name: a\nfields: []\n---\nname: b\n"}, `tables/a.yaml: a table file holds one document`)
	f(map[string]string{"tables/a.yaml": "name: a\nfields:\n  - {name: x, type: string, default: [1]}\n"}, `tables/a.yaml:3: default of x is not one value`)
	f(map[string]string{"tables/a.yml": "name: a\n", "data/a.txt": "", "endpoints/x/a.ts": ""},
		"tables/a.yml: files in tables end in .yaml", "endpoints/x/a.ts: files in endpoints end in .js or .sql", "data/a.txt: files in data end in .csv")
	f(map[string]string{"tables/more/a.yaml": "name: a\n"}, "tables/more: tables holds no folders")
	f(map[string]string{"weir.yaml": "a: [\n"}, "weir.yaml:1: did not find expected node content")

	// What only shows when tables meet has its line too.
	f(map[string]string{
		"tables/a.yaml": "name: a\nfields:\n  - {name: x, type: string}\n  - {name: y, type: sting}\n",
		"tables/b.yaml": "# b\nname: b\nextends: c\n",
	},
		`tables/a.yaml:4: a.y: type "sting" is not one of string, integer, decimal, float, boolean, datetime, date, duration, reference, list, journal, password, json, guid, bytes`,
		"tables/b.yaml:2: table b: extends c, which is not defined")

	// So has what a service says about tables that are no such.
	item := "name: item\nfields:\n  - {name: code, type: string}\n  - {name: pin, type: password}\n"
	f(map[string]string{"services/S.yaml": "name: S\nexpose: [item]\nsetts: []\n", "tables/item.yaml": item}, `services/S.yaml:3: unknown key "setts"`)
	f(map[string]string{"services/S.yaml": "name: T\n"}, `services/S.yaml:1: name is "T", but the file is named for service "S"`)
	f(map[string]string{"services/S.yaml": "name: S\nsets:\n  - {name: A, table: item}\n---\n"}, `services/S.yaml: a service file holds one document`)
	f(map[string]string{"services/S.yaml": "name: S\nextends: T\n"}, `services/S.yaml:2: service S: extends T, which is not defined`)
	f(map[string]string{"services/S.yml": "name: S\n"}, `services/S.yml: files in services end in .yaml`)
	f(map[string]string{"services/S.yaml": `name: S
expose:
  - item
  - itm
sets:
  - name: ItemSet
    table: item
    properties:
      - {name: sys_id}
      - {name: Code, field: cod}
      - {name: Pin, field: pin}
    navigation:
      - {name: Others, target: OtherSet}
functions:
  - {name: F, returns: Edm.String, endpoint: nowhere}
`, "tables/item.yaml": item},
		`services/S.yaml:4: service S: table itm: not defined`,
		`services/S.yaml:10: service S: set ItemSet: property Code: table item has no field cod`,
		`services/S.yaml:11: service S: set ItemSet: property Pin: item.pin is a password, which no service exposes`,
		`services/S.yaml:13: service S: set ItemSet: navigation Others: there is no set OtherSet`,
		`services/S.yaml:15: service S: function F: endpoint: there is no scripted endpoint "nowhere"`)

	f(map[string]string{"endpoints/a.js": "// @path /x\n\n// @rolls itil\nlet a\n// @oops\n"},
		"endpoints/a.js:3: unknown annotation @rolls; there are @path, @method, @name, @roles and @public")
	f(map[string]string{"endpoints/a.js": "// says something\nlet a"}, "endpoints/a.js:1: the comment at the top needs an @path")
	f(map[string]string{"endpoints/a.js": "// @path x\n// @method FETCH\n// @public yes\n// @name\n// @path /y\n"},
		`endpoints/a.js:1: @path "x" is not a path that begins with /`,
		`endpoints/a.js:2: @method "FETCH" is not one of GET, POST, PUT, PATCH, DELETE`,
		"endpoints/a.js:3: @public takes no value", "endpoints/a.js:4: @name needs a value", "endpoints/a.js:5: @path is given twice")
	f(map[string]string{"endpoints/a.js": "// @path /x\n// @roles a\n// @public\n"}, "endpoints/a.js:1: an endpoint is @public or has @roles, not both")
	f(map[string]string{"endpoints/a.js": "// @path /x/{a\n"}, `endpoints/a.js:1: endpoint a: path "/x/{a": bad segment "{a"`)
	f(map[string]string{"endpoints/a.js": "// @path /x\n", "endpoints/b.js": "// @path /y\n// @name a\n"}, "endpoints/b.js:1: endpoint a: defined twice")
	f(map[string]string{"endpoints/a.js": "// @path /x/{id}\n", "endpoints/b.js": "// @path /x/{key}\n"}, "endpoints/b.js:1: GET /x/{key} is the path of endpoints/a.js already")
}

func TestRead_EndpointAnnotations(t *testing.T) {
	folder := fstest.MapFS{
		"endpoints/x/a.js":      file("// Reads an order.\n//\n//@path   /api/x/{id}\n// @method patch\n// @name An order\n// @roles a, b\nf()\n"),
		"endpoints/b.js":        file("\n// @path /api/b\n// @public\nf()\n"),
		"endpoints/README.md":   file("notes"),
		"endpoints/.git/ignore": file("notes"),
	}
	p := mustRead(t, folder)
	want := []catalog.EndpointDef{
		{Name: "b", Path: "/api/b", Method: "GET", Public: true, File: "endpoints/b.js"},
		{Name: "An order", Path: "/api/x/{id}", Method: "PATCH", Roles: []string{"a", "b"}, File: "endpoints/x/a.js"},
	}
	for i := range want {
		want[i].Script = string(folder[want[i].File].Data)
	}
	if diff := cmp.Diff(want, p.Definitions.Endpoints); diff != "" {
		t.Error(diff)
	}
}

func TestRead_ValuesSurviveTheDatabase(t *testing.T) {
	p := mustRead(t, fstest.MapFS{"tables/a.yaml": file(`name: a
fields:
  - {name: whole, type: float, default: 3.0}
  - {name: half, type: float, default: 0.5}
  - {name: big, type: integer, default: 9007199254740993}
  - {name: huge, type: decimal, default: 18446744073709551615}
  - {name: day, type: date, default: 2026-01-31}
  - {name: time, type: datetime, default: 2026-01-31 10:20:30}
  - {name: yes, type: boolean, default: true}
  - {name: text, type: string, default: "1"}
matrices: {m: [[1, a, 2.0, null, 0.25, true]]}
`)})
	before, err := p.Build(1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := encode(p.Definitions)
	if err != nil {
		t.Fatal(err)
	}
	var defs catalog.Definitions
	for _, r := range s.rows {
		if err := decode(&defs, r[0], r[1], r[2]); err != nil {
			t.Fatal(err)
		}
	}
	after, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := diffSnapshots(before, after); diff != "" {
		t.Error(diff)
	}
	table, _ := after.Table("a")
	f := func(field, want string) {
		t.Helper()
		if got := table.Field(field).Default; got != want {
			t.Errorf("default of %s: %q, want %q", field, got, want)
		}
	}
	f("whole", "3")
	f("half", "0.5")
	f("big", "9007199254740993")
	f("huge", "18446744073709551615")
	f("day", "2026-01-31")
	f("time", "2026-01-31 10:20:30")
	f("yes", "true")
	if err := decode(&defs, "spell", "x", "{}"); err == nil {
		t.Error("a kind of a newer weir was read")
	}
	if record.TypeString.String() != "string" {
		t.Error("types have other names")
	}
}
