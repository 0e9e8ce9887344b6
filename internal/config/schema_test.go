package config

import (
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("update", false, "write descriptions.json and docs/schema/weir.json anew")

// TestSchema_SaysWhatTheSourceSays keeps the descriptions that editors show equal to the comments of the fields.
func TestSchema_SaysWhatTheSourceSays(t *testing.T) {
	want := map[string]string{}
	describe(t, reflect.TypeFor[Config](), want)
	for key, text := range want {
		if text == "" {
			t.Errorf("%s has no comment", key)
		}
	}
	text, err := json.MarshalIndent(want, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	current(t, "descriptions.json", append(text, '\n'))
	if *rewrite {
		descriptions = want
	}
	current(t, "../../docs/schema/weir.json", Schema())
}

func current(t *testing.T, path string, want []byte) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(have)); d != "" {
		t.Errorf("%s is not what the source says (go test ./internal/config -update writes it): %s", path, d)
	}
}

// describe collects the comments of the settings below a type.
func describe(t *testing.T, typ reflect.Type, to map[string]string) {
	t.Helper()
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || !strings.HasPrefix(typ.PkgPath(), "weir/") {
		return
	}
	comments := comments(t, typ)
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "-" || name == "" && options == "" {
			continue
		}
		if name != "" {
			text := comments[f.Name]
			if rest, ok := strings.CutPrefix(text, f.Name+" "); ok {
				text = name + " " + rest
			}
			to[typ.String()+"."+name] = text
		}
		describe(t, f.Type, to)
	}
}

// comments are those of a struct's fields, each in one line.
func comments(t *testing.T, typ reflect.Type) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", strings.TrimPrefix(typ.PkgPath(), "weir/"), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != typ.Name() {
				return true
			}
			if fields, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range fields.Fields.List {
					for _, id := range f.Names {
						text := f.Doc.Text() + f.Comment.Text()
						found[id.Name] = strings.Join(strings.Fields(text), " ")
					}
				}
			}
			return false
		})
	}
	return found
}

func TestSchema_HoldsEverySetting(t *testing.T) {
	var root struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	e := load(t, Sources{})
	for _, path := range e.Paths() {
		at := root.Properties
		parts := strings.Split(path, ".")
		for i, name := range parts {
			text, ok := at[name]
			if !ok {
				t.Errorf("%s is not in the schema", path)
				break
			}
			var below struct {
				Properties map[string]json.RawMessage
				Additional any `json:"additionalProperties"`
			}
			if err := json.Unmarshal(text, &below); err != nil {
				t.Fatal(err)
			}
			if at = below.Properties; at == nil && i < len(parts)-1 {
				if _, free := below.Additional.(map[string]any); !free {
					t.Errorf("%s: %s has nothing below it", path, name)
				}
				break
			}
		}
	}
}
