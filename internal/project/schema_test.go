package project

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"weir/demo"
)

var rewrite = flag.Bool("update", false, "write docs/schema anew")

const schemaFolder = "../../docs/schema"

func TestSchemas_AreThoseInDocs(t *testing.T) {
	for name, text := range Schemas() {
		path := filepath.Join(schemaFolder, name+".json")
		if *rewrite {
			if err := os.MkdirAll(schemaFolder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(have)); diff != "" {
			t.Errorf("%s is not what the definitions say (go test ./internal/project -update writes it): %s", path, diff)
		}
	}
}

func TestSchemas_DescribeEveryKeyAndNoOther(t *testing.T) {
	used := map[string]bool{}
	visit := func(owner string, n *node) {
		for key := range n.Properties {
			used[owner+"."+key] = true
			if descriptions[owner+"."+key] == "" {
				t.Errorf("%s.%s has no description", owner, key)
			}
		}
	}
	for name, owner := range map[string]string{"table": "TableDef", "service": "ServiceDef"} {
		root := parseSchema(t, name)
		visit(owner, root)
		for owner, n := range root.Defs {
			visit(owner, n)
		}
	}
	for name := range descriptions {
		if !used[name] {
			t.Errorf("%s is described and does not exist", name)
		}
	}
	for name := range enums {
		if !used[name] {
			t.Errorf("%s has values and does not exist", name)
		}
	}
}

func TestSchemas_FitTheDemoAndRefuseStrangers(t *testing.T) {
	root := parseSchema(t, "table")
	files, err := fs.Glob(demo.Project(), "tables/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files (%v)", len(files), err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(demo.Project(), file)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range validate(t, root, text) {
			t.Errorf("%s: %s", file, fault)
		}
	}
	f := func(text, want string) {
		t.Helper()
		if faults := validate(t, root, []byte(text)); !slices.Contains(faults, want) {
			t.Errorf("%s: got %q, want %q", text, faults, want)
		}
	}
	f("{name: a, fields: [{name: x, type: string, colour: red}]}", ".fields[].colour: unknown")
	f("{name: a, fields: [{name: x, type: sting}]}", `.fields[].type: "sting" is not allowed`)
	f("{name: a, fields: [{type: string}]}", ".fields[].name: missing")
	f("{name: a, read_only: perhaps}", ".read_only: a string")
	f("{name: a, rules: [{name: r, on: [read]}]}", `.rules[].on[]: "read" is not allowed`)
}

func TestSchemas_ServicesRefuseStrangers(t *testing.T) {
	root := parseSchema(t, "service")
	f := func(text string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, validate(t, root, []byte(text))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	f("{name: a, expose: [b], sets: [{name: BSet, table: b, allow: [read], annotations: {pageable: false}, navigation: [{name: n, target: CSet, on: {x: y}}]}]}")
	f("{name: a, sets: [{table: b}]}", ".sets[].name: missing")
	f("{name: a, sets: [{name: b, allow: [write]}]}", `.sets[].allow[]: "write" is not allowed`)
	f("{name: a, functions: [{name: f, methd: POST, endpoint: e}]}", ".functions[].methd: unknown")
	f("{name: a, protocol: soap}", `.protocol: "soap" is not allowed`)
}

func parseSchema(t *testing.T, name string) *node {
	t.Helper()
	var root node
	dec := json.NewDecoder(bytes.NewReader(Schemas()[name]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&root); err != nil {
		t.Fatal(err)
	}
	return &root
}

// validate lists how a document departs from a schema.
func validate(t *testing.T, root *node, text []byte) (faults []string) {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	var check func(n *node, v any, at string)
	check = func(n *node, v any, at string) {
		fault := func(format string, args ...any) { faults = append(faults, at+fmt.Sprintf(format, args...)) }
		if n.Ref != "" {
			n = root.Defs[strings.TrimPrefix(n.Ref, "#/$defs/")]
		}
		kind := "null"
		switch v.(type) {
		case map[string]any, map[any]any:
			kind = "object"
		case []any:
			kind = "array"
		case string:
			kind = "string"
		case bool:
			kind = "boolean"
		case int:
			kind = "integer"
		case float64:
			kind = "number"
		}
		allowed := fmt.Sprint(n.Type)
		if !strings.Contains(allowed, kind) && (kind != "integer" || !strings.Contains(allowed, "number")) {
			fault(": a %s", kind)
			return
		}
		if len(n.Enum) > 0 && !slices.Contains(n.Enum, fmt.Sprint(v)) {
			fault(": %q is not allowed", v)
		}
		switch v := v.(type) {
		case map[any]any: // a mapping with keys that are no text
			text := map[string]any{}
			for key, value := range v {
				text[fmt.Sprint(key)] = value
			}
			check(n, text, at)
		case map[string]any:
			for _, key := range n.Required {
				if _, ok := v[key]; !ok {
					faults = append(faults, at+"."+key+": missing")
				}
			}
			for key, value := range v {
				if p := n.Properties[key]; p != nil {
					check(p, value, at+"."+key)
				} else if n.Additional == false {
					faults = append(faults, at+"."+key+": unknown")
				} else {
					text, _ := json.Marshal(n.Additional)
					var each node
					if err := json.Unmarshal(text, &each); err != nil {
						t.Fatal(err)
					}
					check(&each, value, at+"."+key)
				}
			}
		case []any:
			for _, value := range v {
				check(n.Items, value, at+"[]")
			}
		}
	}
	check(root, doc, "")
	return faults
}
