package config

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const pageFile = "../../docs/settings.md"

// TestSettingsPage_IsCurrent compares docs/settings.md with the settings and their comments; -update writes it.
func TestSettingsPage_IsCurrent(t *testing.T) {
	p := &page{}
	p.WriteString(strings.Replace(pageHead, "LIVE", "`"+strings.Join(live, "`, `")+"`", 1))
	root := reflect.TypeFor[Config]()
	for i := range root.NumField() {
		f := root.Field(i)
		name := yamlName(f)
		fmt.Fprintf(p, "\n## %s\n\n", name)
		if isLeaf(f.Type) {
			p.leaf(t, root, f, name)
			continue
		}
		fmt.Fprintf(p, "%s\n\n", doc(t, root, name))
		p.inside(t, f.Type, name)
	}
	p.ordsNames()
	current(t, pageFile, p.Bytes())
	// What the page is worth: each setting that a node has stands on it.
	e, err := Load(Sources{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range e.Paths() {
		if strings.HasPrefix(path, "gate.pools.") {
			path = "gate.pools.NAME" + path[strings.LastIndexByte(path, '.'):]
		}
		if !bytes.Contains(p.Bytes(), []byte("**`"+path+"`**")) {
			t.Errorf("%s is not on the page", path)
		}
	}
}

const pageHead = `# Settings

Every setting has one name: ` + "`gate.session.waiting` in a project's `weir.yaml` (as nested keys), `WEIR_GATE_SESSION_WAITING` in the environment and\n`--set gate.session.waiting=20`" + ` on the command line, in rising precedence. An unknown name is an error with its line. ` + "`weir config`" + ` prints
those in force with where each came from. Durations are written 500ms, 30s, 5m or 24h. This page is made from the settings' comments in the source.

Settings of the gate and some others change while a node runs, the rest with a new start:

- ` + "`SIGHUP`" + ` reads all sources again and puts the gate's and those others in force.
- ` + "`GET /weir/settings`" + ` shows administrators every setting with its value and its source; those that are "live" change by ` + "`PATCH /weir/settings`" + `, on
  this node and until its next start or SIGHUP: by our names, nested or whole, or by those that ORDS has. null takes one back to what was read.
  They are LIVE.

      curl -u admin:admin -X PATCH -H 'Content-Type: application/merge-patch+json' \
        -d '{"jdbc.MaxLimit":50,"cache":{"metadata":false}}' http://127.0.0.1:8080/weir/settings
- ` + "`PATCH /weir/gate`" + ` by an administrator lays a JSON document over them, as a file would be, on this node and until its next start or SIGHUP:
  what it does not name stays, a list is replaced, null removes a pool. A fault is answered with all that is wrong, and nothing changes.
  ` + "`GET /weir/gate`" + ` shows pools, queues, running requests and the settings in force.

      curl -u admin:admin http://127.0.0.1:8080/weir/gate
      curl -u admin:admin -X PATCH -H 'Content-Type: application/merge-patch+json' \
        -d '{"pools":{"default":{"queue":500}},"session":{"waiting":40}}' http://127.0.0.1:8080/weir/gate
`

// ordsNames lists the settings of ORDS.
func (p *page) ordsNames() {
	p.WriteString("\n## Names that ORDS has\n\nThese settings of ORDS may stand in weir.yaml (`jdbc.MaxLimit: 50`, or `jdbc:` with `MaxLimit: 50` below it), in the environment\n" +
		"(`WEIR_JDBC_MAXLIMIT`) and after `--set`. Set twice, by both names in one file, is an error.\n\n| ORDS | here | |\n| --- | --- | --- |\n")
	for _, a := range aliases {
		fmt.Fprintf(p, "| `%s` | `%s` | %s |\n", a.ords, a.ours, a.note)
	}
	p.WriteString("\nThese are not used here, and whoever sets one is told so:\n\n| ORDS | instead |\n| --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		fmt.Fprintf(p, "| `%s` | %s |\n", name, unused[name])
	}
}

// page is the page under way.
type page struct{ bytes.Buffer }

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
	fmt.Fprintf(p, "- **`%s`** (%s): %s\n", path, kindOf(f.Type), doc(t, of, yamlName(f)))
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

// doc is what the source says of a field, without the field's name at its beginning.
func doc(t *testing.T, of reflect.Type, name string) string {
	t.Helper()
	text := strings.TrimPrefix(descriptions[of.String()+"."+name], name+" ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "is "), "are ")
	if text == "" {
		t.Errorf("%s.%s is not described", of, name)
		return ""
	}
	text = strings.Replace(text, " Defaults to ", "\n  Defaults to ", 1)
	return strings.ToUpper(text[:1]) + text[1:]
}
