package config

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/settings.md anew")

const pageFile = "../../docs/settings.md"

// TestSettingsPage_IsCurrent compares docs/settings.md with the settings and their comments; -update writes it.
func TestSettingsPage_IsCurrent(t *testing.T) {
	p := &page{docs: map[string]map[string]string{}}
	p.WriteString(pageHead)
	root := reflect.TypeFor[Config]()
	for i := range root.NumField() {
		f := root.Field(i)
		name := yamlName(f)
		fmt.Fprintf(p, "\n## %s\n\n", name)
		if isLeaf(f.Type) {
			p.leaf(t, root, f, name)
			continue
		}
		fmt.Fprintf(p, "%s\n\n", p.doc(t, root, f.Name))
		p.inside(t, f.Type, name)
	}
	if *update {
		if err := os.WriteFile(pageFile, p.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	is, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(is, p.Bytes()) {
		t.Errorf("%s is not what the settings' comments say; `go test ./internal/config -update` writes it", pageFile)
	}
	// What the page is worth: each setting that a node has stands on it.
	e, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range e.Paths() {
		if strings.HasPrefix(path, "gate.pools.") {
			path = "gate.pools.NAME" + path[strings.LastIndexByte(path, '.'):]
		}
		if !bytes.Contains(is, []byte("**`"+path+"`**")) {
			t.Errorf("%s is not on the page", path)
		}
	}
}

const pageHead = `# Settings

Every setting has one name: ` + "`gate.session.waiting` in a project's `weir.yaml` (as nested keys), `WEIR_GATE_SESSION_WAITING` in the environment and\n`--set gate.session.waiting=20`" + ` on the command line, in rising precedence. An unknown name is an error with its line. ` + "`weir config`" + ` prints
those in force with where each came from. Durations are written 500ms, 30s, 5m or 24h. This page is made from the settings' comments in the source.

Settings of the gate change while a node runs, the others with a new start:

- ` + "`SIGHUP`" + ` reads all sources again and puts the gate's settings in force.
- ` + "`PATCH /weir/gate`" + ` by an administrator lays a JSON document over them, as a file would be, on this node and until its next start or SIGHUP:
  what it does not name stays, a list is replaced, null removes a pool. A fault is answered with all that is wrong, and nothing changes.
  ` + "`GET /weir/gate`" + ` shows pools, queues, running requests and the settings in force.

      curl -u admin:admin http://127.0.0.1:8080/weir/gate
      curl -u admin:admin -X PATCH -H 'Content-Type: application/merge-patch+json' \
        -d '{"pools":{"default":{"queue":500}},"session":{"waiting":40}}' http://127.0.0.1:8080/weir/gate
`

// page is the page under way, and the comments of the fields read so far, by package and then by type and field.
type page struct {
	bytes.Buffer
	docs map[string]map[string]string
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func isLeaf(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		return false
	case reflect.Map:
		return false
	case reflect.Slice:
		return t.Elem().Kind() != reflect.Struct
	}
	return true
}

// inside writes the settings of a struct, a map or a list of them.
func (p *page) inside(t *testing.T, typ reflect.Type, path string) {
	switch typ.Kind() {
	case reflect.Map:
		p.inside(t, typ.Elem(), path+".NAME")
		return
	case reflect.Slice:
		p.inside(t, typ.Elem(), path+"[]")
		return
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name := yamlName(f)
		switch {
		case strings.HasSuffix(f.Tag.Get("yaml"), ",inline"):
			p.inside(t, f.Type, path)
		case name == "" || name == "-":
		default:
			p.leaf(t, typ, f, join(path, name))
			if !isLeaf(f.Type) {
				p.inside(t, f.Type, join(path, name))
			}
		}
	}
}

// leaf writes one setting with its comment.
func (p *page) leaf(t *testing.T, of reflect.Type, f reflect.StructField, path string) {
	text := p.doc(t, of, f.Name)
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\n\n", "\n"), "\n", "\n  ")
	fmt.Fprintf(p, "- **`%s`** (%s): %s\n", path, kindOf(f.Type), text)
}

func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[Addresses]():
		return "list of texts"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return "list"
		}
		return "list of texts"
	case reflect.Map:
		return "by name"
	case reflect.Struct:
		return "group"
	}
	return "text"
}

// doc is the comment of a field, without the field's Go name at its beginning.
func (p *page) doc(t *testing.T, of reflect.Type, field string) string {
	t.Helper()
	docs := p.docs[of.PkgPath()]
	if docs == nil {
		docs = comments(t, strings.TrimPrefix(of.PkgPath(), "weir/"))
		p.docs[of.PkgPath()] = docs
	}
	text := docs[of.Name()+"."+field]
	if text == "" {
		t.Errorf("%s.%s.%s has no comment", of.PkgPath(), of.Name(), field)
		return ""
	}
	text = strings.TrimPrefix(text, field+" ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// comments reads the comments of all fields of all structs of a package.
func comments(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", folder, err)
	}
	docs := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			s, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range s.Fields.List {
				for _, id := range f.Names {
					docs[spec.Name.Name+"."+id.Name] = strings.TrimSpace(f.Doc.Text())
				}
			}
			return true
		})
	}
	return docs
}
