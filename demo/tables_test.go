package demo

import (
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
	"github.com/google/go-cmp/cmp"
)

func TestTables_NameOnlyWhatExists(t *testing.T) {
	p := read(t)
	types := strings.Fields("string integer decimal float boolean datetime date duration reference list journal password json guid")
	for _, tb := range p.tables {
		known := p.fields(tb.Name)
		mustField := func(what string, names ...string) {
			for _, f := range names {
				if _, ok := known[f]; !ok {
					t.Errorf("%s: %s names %q, which is no field", tb.file, what, f)
				}
			}
		}
		mustTable := func(what, name string) bool {
			if p.tables[name] == nil {
				t.Errorf("%s: %s names table %q, which does not exist", tb.file, what, name)
			}
			return p.tables[name] != nil
		}
		if tb.Label == "" {
			t.Errorf("%s has no label", tb.file)
		}
		if tb.Extends != "" && mustTable("extends", tb.Extends) && len(p.line(tb.Name)) > len(p.tables) {
			t.Fatalf("%s extends itself in a circle", tb.file)
		}
		if tb.Display != "" {
			mustField("display", tb.Display)
		}
		for _, list := range append(tb.Indexes, tb.Uniques...) {
			mustField("an index", list...)
		}
		for _, action := range []string{"read", "create", "update", "delete"} {
			if len(tb.Access[action]) == 0 {
				t.Errorf("%s does not say who may %s", tb.file, action)
			}
			for _, g := range tb.Access[action] {
				for _, role := range g.Roles {
					mustRole(t, p, tb.file, role)
				}
			}
		}
		if len(tb.Access) != 4 {
			t.Errorf("%s: access has other keys than read, create, update, delete", tb.file)
		}
		seen := make(map[string]bool)
		for _, f := range tb.Fields {
			if seen[f.Name] {
				t.Errorf("%s has field %s twice", tb.file, f.Name)
			}
			seen[f.Name] = true
			if f.Label == "" {
				t.Errorf("%s.%s has no label", tb.Name, f.Name)
			}
			if !slices.Contains(types, f.Type) {
				t.Errorf("%s.%s is of type %q", tb.Name, f.Name, f.Type)
			}
			if f.Type == "reference" || f.Reference != "" {
				mustTable(f.Name, f.Reference)
			}
			if !slices.Contains([]string{"", "none", "restrict", "cascade", "clear"}, f.OnDelete) {
				t.Errorf("%s.%s: on_delete %q", tb.Name, f.Name, f.OnDelete)
			}
			if f.DependsOn != "" {
				mustField(f.Name, f.DependsOn)
			}
			for _, roles := range f.Access {
				for _, role := range roles {
					mustRole(t, p, tb.file, role)
				}
			}
		}
		for _, r := range tb.Rules {
			mustField(r.Name, r.Require...)
			mustField(r.Name, keys(r.Set)...)
			if r.Field != "" {
				mustField(r.Name, r.Field)
			}
			if r.Transition != nil {
				mustField(r.Name, r.Transition.Field)
			}
			if l := r.Lookup; l != nil && mustTable(r.Name, l.Table) {
				mustField(r.Name, keys(l.Set)...)
				theirs := p.fields(l.Table)
				for _, f := range append(keys(l.Match), values(l.Set)...) {
					if _, ok := theirs[f]; !ok {
						t.Errorf("%s: rule %q: %s has no field %q", tb.file, r.Name, l.Table, f)
					}
				}
			}
			if c := r.Choose; c != nil && mustTable(r.Name, c.Table) {
				mustField(r.Name, keys(c.Set)...)
				theirs := p.fields(c.Table)
				for _, f := range append(append(keys(c.Match), values(c.Set)...), c.Order) {
					if _, ok := theirs[f]; !ok {
						t.Errorf("%s: rule %q: %s has no field %q", tb.file, r.Name, c.Table, f)
					}
				}
			}
			if d := r.Derive; d != nil && mustTable(r.Name, d.Table) {
				mustField(r.Name, values(d.Result)...)
				theirs := p.fields(d.Table)
				for _, f := range keys(d.Values) {
					if _, ok := theirs[f]; !ok {
						t.Errorf("%s: rule %q: %s has no field %q", tb.file, r.Name, d.Table, f)
					}
				}
				if d.Match != "" && d.Values[d.Match] == "" {
					t.Errorf("%s: rule %q matches by %s but gives it no value", tb.file, r.Name, d.Match)
				}
			}
		}
	}
}

func mustRole(t *testing.T, p project, where, role string) {
	t.Helper()
	if !slices.ContainsFunc(p.data["sys_user_role"], func(r map[string]string) bool { return r["name"] == role }) {
		t.Errorf("%s: no role %q", where, role)
	}
}

func keys(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

func values(m map[string]string) (list []string) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// The classes of a hierarchy are stored in one table, so that a name means one column.
func TestTables_FieldsOfOneNameInAHierarchyAreOfOneKind(t *testing.T) {
	p := read(t)
	type kind struct {
		Type, Reference string
		MaxLength       int
		Unique          bool
	}
	first := make(map[string]kind)
	where := make(map[string]string)
	for _, name := range sorted(p.tables) {
		for _, f := range p.tables[name].Fields {
			column, k := p.root(name)+"."+f.Name, kind{f.Type, f.Reference, f.MaxLength, f.Unique}
			if _, ok := first[column]; !ok {
				first[column], where[column] = k, name
				continue
			}
			if diff := cmp.Diff(first[column], k); diff != "" {
				t.Errorf("%s differs between %s (-) and %s (+):\n%s", f.Name, where[column], name, diff)
			}
		}
	}
}

func TestTables_ChoicesAreDistinctAndHoldTheDefault(t *testing.T) {
	p := read(t)
	for _, tb := range p.tables {
		known := p.fields(tb.Name)
		for _, f := range tb.Fields {
			if len(f.Choices) == 0 {
				continue
			}
			seen := make(map[choice]bool)
			for _, c := range f.Choices {
				if c.Label == "" {
					t.Errorf("%s.%s: choice %s has no label", tb.Name, f.Name, c.Value)
				}
				key := choice{Value: c.Value, Dependent: c.Dependent}
				if seen[key] {
					t.Errorf("%s.%s has choice %v twice", tb.Name, f.Name, key)
				}
				seen[key] = true
				if (c.Dependent != "") != (f.DependsOn != "") {
					t.Errorf("%s.%s: choice %v: depends_on and dependent go together", tb.Name, f.Name, key)
				}
				if c.Dependent != "" && !offers(known[f.DependsOn], c.Dependent) {
					t.Errorf("%s.%s: %s has no choice %q", tb.Name, f.Name, f.DependsOn, c.Dependent)
				}
			}
			if f.Default != nil && !offers(f, *f.Default) {
				t.Errorf("%s.%s: the default %q is no choice", tb.Name, f.Name, *f.Default)
			}
		}
		for _, r := range tb.Rules {
			if r.Transition == nil {
				continue
			}
			states := known[r.Transition.Field]
			for from, to := range r.Transition.From {
				for _, s := range append(to, from) {
					if !offers(states, s) {
						t.Errorf("%s: rule %q: %s has no choice %s", tb.file, r.Name, states.Name, s)
					}
				}
			}
			if len(r.Transition.From) != len(states.Choices) {
				t.Errorf("%s: rule %q leaves states out", tb.file, r.Name)
			}
		}
	}
}

func offers(f field, value string) bool {
	return slices.ContainsFunc(f.Choices, func(c choice) bool { return c.Value == value })
}

func TestTables_ExpressionsAreWellFormedAndKnowTheirNames(t *testing.T) {
	p := read(t)
	count := 0
	for _, tb := range p.tables {
		check := func(where, expression string) {
			if expression == "" {
				return
			}
			count++
			tree, err := parser.Parse(expression)
			if err != nil {
				t.Errorf("%s: %s: %v", tb.file, where, err)
				return
			}
			ast.Walk(&tree.Node, &names{t: t, p: p, tb: tb, where: where, fields: p.fields(tb.Name)})
		}
		for action, grants := range tb.Access {
			for _, g := range grants {
				check("access "+action, g.Where)
			}
		}
		for _, f := range tb.Fields {
			check(f.Name, f.Compute)
			if f.Default != nil && strings.HasPrefix(*f.Default, "=") {
				check(f.Name, (*f.Default)[1:])
			}
		}
		for _, r := range tb.Rules {
			check(r.Name, r.When)
			check(r.Name, r.Check)
			for _, e := range values(r.Set) {
				check(r.Name, e)
			}
			if r.Lookup != nil {
				for _, e := range values(r.Lookup.Match) {
					check(r.Name, e)
				}
			}
			if r.Choose != nil {
				for _, e := range values(r.Choose.Match) {
					check(r.Name, e)
				}
			}
			if r.Derive != nil {
				for _, e := range values(r.Derive.Values) {
					check(r.Name, e)
				}
			}
		}
	}
	if count < 50 {
		t.Fatalf("looked at %d expressions only", count)
	}
}

// names checks that an expression speaks of fields, the user, the record before, and the functions that rules have.
type names struct {
	t      *testing.T
	p      project
	tb     *table
	where  string
	fields map[string]field
}

func (n *names) Visit(node *ast.Node) {
	field := func(name string) {
		if _, ok := n.fields[name]; !ok {
			n.t.Errorf("%s: %s: %q is no field", n.tb.file, n.where, name)
		}
	}
	switch e := (*node).(type) {
	case *ast.IdentifierNode:
		if !slices.Contains([]string{"user", "previous", "now", "changed", "lookup"}, e.Value) {
			field(e.Value)
		}
	case *ast.MemberNode:
		owner, _ := e.Node.(*ast.IdentifierNode)
		property, _ := e.Property.(*ast.StringNode)
		switch {
		case owner == nil || property == nil:
			n.t.Errorf("%s: %s: members of user and previous only", n.tb.file, n.where)
		case owner.Value == "previous":
			field(property.Value)
		case owner.Value == "user":
			if !slices.Contains([]string{"sys_id", "name", "roles"}, property.Value) {
				n.t.Errorf("%s: %s: user has no %s", n.tb.file, n.where, property.Value)
			}
		default:
			n.t.Errorf("%s: %s: %s has no members", n.tb.file, n.where, owner.Value)
		}
	case *ast.CallNode:
		callee, _ := e.Callee.(*ast.IdentifierNode)
		if callee == nil {
			n.t.Errorf("%s: %s: a call of something without a name", n.tb.file, n.where)
			return
		}
		switch first, _ := firstString(e.Arguments); callee.Value {
		case "now":
		case "changed":
			field(first)
		case "lookup":
			if n.tb.Matrices[first] == nil {
				n.t.Errorf("%s: %s: no matrix %q", n.tb.file, n.where, first)
			}
		default:
			n.t.Errorf("%s: %s: no function %s", n.tb.file, n.where, callee.Value)
		}
	}
}

func firstString(arguments []ast.Node) (string, bool) {
	if len(arguments) == 0 {
		return "", false
	}
	s, ok := arguments[0].(*ast.StringNode)
	if !ok {
		return "", false
	}
	return s.Value, true
}

func TestEndpoints_SleepAndAnswerTheirName(t *testing.T) {
	files := glob(t, "endpoints/snc/*.js")
	if len(files) != 20 {
		t.Fatalf("%d endpoints, want 20", len(files))
	}
	paths := make(map[string]bool)
	for file, text := range files {
		annotations := make(map[string]string)
		for line := range strings.Lines(string(text)) {
			note, ok := strings.CutPrefix(line, "// @")
			if !ok {
				break
			}
			key, value, _ := strings.Cut(strings.TrimSpace(note), " ")
			annotations[key] = value
		}
		name := annotations["name"]
		want := map[string]string{"path": "/api/snc/" + strings.ToLower(strings.ReplaceAll(name, " ", "_")), "method": "GET", "name": name}
		if diff := cmp.Diff(want, annotations); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", file, diff)
		}
		paths[annotations["path"]] = true

		vm := goja.New()
		var slept int64
		var body any
		for global, methods := range map[string]map[string]any{
			"gs":       {"sleep": func(ms int64) { slept += ms }},
			"request":  {},
			"response": {"setBody": func(v any) { body = v }},
		} {
			if err := vm.Set(global, methods); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := vm.RunScript(file, string(text)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if diff := cmp.Diff(any(map[string]any{"response": name}), body); diff != "" || slept != 250 {
			t.Errorf("%s slept %d ms and answered (-want +got):\n%s", file, slept, diff)
		}
	}
	if len(paths) != 20 {
		t.Errorf("%d distinct paths, want 20", len(paths))
	}
}
