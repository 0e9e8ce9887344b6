package demo

import (
	"slices"
	"strings"
	"testing"

	"github.com/dop251/goja"
	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/rule"
)

func TestTables_RulesAndConditionsCompile(t *testing.T) {
	p := read(t)
	rules, conditions := 0, 0
	for name, table := range p.tables {
		if _, err := rule.Compile(p.snap, table); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rules += len(table.Rules)
		for _, grants := range [][]catalog.GrantDef{table.Access.Read, table.Access.Create, table.Access.Update, table.Access.Delete} {
			for _, g := range grants {
				if g.Where == "" {
					continue
				}
				conditions++
				if _, err := rule.Condition(p.snap, table, g.Where, &record.Actor{}); err != nil {
					t.Errorf("%s: %s: %v", name, g.Where, err)
				}
			}
		}
	}
	if rules < 20 || conditions < 3 {
		t.Fatalf("saw %d rules and %d conditions only", rules, conditions)
	}
}

func TestTables_NameRolesThatExist(t *testing.T) {
	p := read(t)
	var roles []string
	for _, r := range p.data["sys_user_role"] {
		roles = append(roles, r["name"])
	}
	check := func(where string, names []string) {
		for _, name := range names {
			if !slices.Contains(roles, name) {
				t.Errorf("%s: no role %q", where, name)
			}
		}
	}
	for name, def := range p.defs {
		for _, grants := range [][]catalog.GrantDef{def.Access.Read, def.Access.Create, def.Access.Update, def.Access.Delete} {
			for _, g := range grants {
				check(name, g.Roles)
			}
		}
		for _, f := range def.Fields {
			check(name+"."+f.Name, f.Access.Read)
			check(name+"."+f.Name, f.Access.Write)
		}
	}
}

func TestTables_SayWhoMayChangeThem(t *testing.T) {
	for name, def := range read(t).defs {
		if def.Access.Create == nil || def.Access.Update == nil || def.Access.Delete == nil {
			t.Errorf("%s does not say who may create, update and delete", name)
		}
	}
}

func TestTables_HaveLabels(t *testing.T) {
	for name, def := range read(t).defs {
		if def.Label == "" {
			t.Errorf("%s has no label", name)
		}
		for _, f := range def.Fields {
			if f.Label == "" {
				t.Errorf("%s.%s has no label", name, f.Name)
			}
		}
	}
}

// The classes of a hierarchy are stored in one table, so that a name means one column.
func TestTables_FieldsOfOneNameInAHierarchyAreOfOneKind(t *testing.T) {
	p := read(t)
	type kind struct {
		Type, Reference, OnDelete string
		MaxLength                 int
		Unique                    bool
	}
	first := make(map[string]kind)
	where := make(map[string]string)
	for _, name := range sorted(p.defs) {
		for _, f := range p.own(name) {
			column, k := p.tables[name].Root+"."+f.Name, kind{f.Type, f.Reference, f.OnDelete, f.MaxLength, f.Unique}
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
	for name, table := range p.tables {
		for _, f := range table.Fields {
			if len(f.Choices) == 0 {
				continue
			}
			seen := make(map[catalog.Choice]bool)
			for _, c := range f.Choices {
				if c.Label == "" {
					t.Errorf("%s.%s: choice %s has no label", name, f.Name, c.Value)
				}
				key := catalog.Choice{Value: c.Value, Dependent: c.Dependent}
				if seen[key] {
					t.Errorf("%s.%s has choice %v twice", name, f.Name, key)
				}
				seen[key] = true
				switch narrowing := table.Field(f.DependsOn); {
				case (c.Dependent != "") != (narrowing != nil):
					t.Errorf("%s.%s: choice %v: depends_on and dependent go together", name, f.Name, key)
				case narrowing != nil && narrowing.ChoiceLabel(c.Dependent) == "":
					t.Errorf("%s.%s: %s has no choice %q", name, f.Name, f.DependsOn, c.Dependent)
				}
			}
			if f.Default != "" && f.ChoiceLabel(f.Default) == "" {
				t.Errorf("%s.%s: the default %q is no choice", name, f.Name, f.Default)
			}
		}
		for _, r := range table.Rules {
			if r.Transition == nil {
				continue
			}
			states := table.Field(r.Transition.Field)
			for from, to := range r.Transition.From {
				for _, s := range append(to, from) {
					if states.ChoiceLabel(s) == "" {
						t.Errorf("%s: rule %q: %s has no choice %s", name, r.Name, states.Name, s)
					}
				}
			}
			if len(r.Transition.From) != len(states.Choices) {
				t.Errorf("%s: rule %q leaves states out", name, r.Name)
			}
		}
	}
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
