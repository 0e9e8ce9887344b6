package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/record"
)

func itsm() Definitions {
	return Definitions{
		Tables: []TableDef{
			{Name: "task", Fields: []FieldDef{
				{Name: "number", Type: "string", Unique: true},
				{Name: "short_description", Type: "string"},
				{Name: "parent", Type: "reference", Reference: "task"},
			}, Rules: []RuleDef{{Name: "r1"}}},
			{Name: "incident", Extends: "task", Fields: []FieldDef{
				{Name: "number", Type: "string", Sequence: &Sequence{Prefix: "INC", Digits: 7, Start: 10001}},
				{Name: "caller_id", Type: "reference", Reference: "sys_user"},
			}, Rules: []RuleDef{{Name: "r2"}}},
			{Name: "sys_user", Fields: []FieldDef{
				{Name: "name", Type: "string"},
				{Name: "manager", Type: "reference", Reference: "sys_user", OnDelete: "clear"},
			}},
		},
		Endpoints: []EndpointDef{
			{Name: "any", Path: "/api/x/{id}", Method: "GET"},
			{Name: "fixed", Path: "/api/x/fixed", Method: "GET"},
		},
	}
}

func mustBuild(t *testing.T, d Definitions) *Snapshot {
	t.Helper()
	s, err := Build(7, d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBuild_HierarchyIsOneStoredTable(t *testing.T) {
	s := mustBuild(t, itsm())
	task, _ := s.Table("task")
	inc, _ := s.Table("incident")
	if inc.Stored != "task" || inc.ClassField != ClassField || task.ClassField != ClassField {
		t.Fatalf("stored %q, class %q", inc.Stored, inc.ClassField)
	}
	if d := cmp.Diff([]string{"incident", "task"}, task.Classes); d != "" {
		t.Fatal(d)
	}
	if !inc.Is("task") || task.Is("incident") {
		t.Fatal("an incident is a task, a task no incident")
	}
	n := inc.Field("number")
	if n.Sequence == nil || !n.Unique || n.Owner != "task" || inc.Fields[n.Index] != n {
		t.Fatalf("number is not inherited with its own sequence: %+v", n)
	}
	if len(inc.Rules) != 2 || inc.Rules[0].Name != "r1" {
		t.Fatal("inherited rules come first")
	}
	if task.Field("number").Sequence != nil {
		t.Fatal("a child's sequence leaked into its parent")
	}
}

func TestBuild_ListsAllFaults(t *testing.T) {
	d := itsm()
	d.Tables = append(d.Tables,
		TableDef{Name: "bad name"}, TableDef{Name: "orphan", Extends: "gone"}, TableDef{Name: "task"},
		TableDef{Name: "x", Display: "no", Uniques: [][]string{{"nope"}}, Fields: []FieldDef{
			{Name: "a", Type: "text"},
			{Name: "b", Type: "reference"},
			{Name: "c", Type: "reference", Reference: "lost"},
			{Name: "d", Type: "integer", Default: "ten", OnDelete: "explode"},
			{Name: "d", Type: "integer"},
		}})
	_, err := Build(1, d)
	for _, want := range []string{
		`"bad name"`, "extends gone", "table task: defined twice", "display field no", "nope", `type "text"`, "x.b: a reference names its table",
		"refers to lost", "x.d: default", `"explode"`, "x.d: defined twice",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestBuild_ExtendsItself(t *testing.T) {
	_, err := Build(1, Definitions{Tables: []TableDef{{Name: "a", Extends: "b"}, {Name: "b", Extends: "a"}}})
	if err == nil || !strings.Contains(err.Error(), "extends itself") {
		t.Fatal(err)
	}
}

func TestResolve_WalksReferences(t *testing.T) {
	s := mustBuild(t, itsm())
	inc, _ := s.Table("incident")
	steps, err := s.Resolve(inc, "caller_id.manager.name")
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 3 || steps[2].Table.Name != "sys_user" || steps[2].Field.Name != "name" {
		t.Fatalf("%+v", steps)
	}
	for _, bad := range []string{"nope", "number.x", "caller_id.nope", "", ".", "caller_id.manager.manager.manager.manager.manager.manager.name"} {
		if _, err := s.Resolve(inc, bad); record.KindOf(err) != record.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestRoute_LiteralWinsOverParameter(t *testing.T) {
	s := mustBuild(t, itsm())
	e, _, err := s.Route("GET", "/api/x/fixed")
	if err != nil || e.Name != "fixed" {
		t.Fatalf("%v %v", e, err)
	}
	e, params, err := s.Route("HEAD", "/api/x/17")
	if err != nil || e.Name != "any" || params["id"] != "17" {
		t.Fatalf("%v %v %v", e, params, err)
	}
	if _, _, err := s.Route("POST", "/api/x/17"); record.KindOf(err) != record.NotAllowed {
		t.Fatal(err)
	}
	if _, _, err := s.Route("GET", "/api/y"); record.KindOf(err) != record.NoPath {
		t.Fatal(err)
	}
}

func TestRoute_WithoutVersionIsTheLatest(t *testing.T) {
	d := itsm()
	for _, path := range []string{"/api/acme/v1/orders/{id}", "/api/acme/v10/orders/{id}", "/api/acme/v2/orders/{id}", "/api/acme/v1/old"} {
		d.Endpoints = append(d.Endpoints, EndpointDef{Name: path, Method: "GET", Path: path, Script: "1"})
	}
	s := mustBuild(t, d)
	for path, want := range map[string]string{
		"/api/acme/orders/7":     "/api/acme/v10/orders/{id}",
		"/api/acme/v2/orders/7":  "/api/acme/v2/orders/{id}",
		"/api/acme/old":          "/api/acme/v1/old",
		"/api/acme/v1/orders/v2": "/api/acme/v1/orders/{id}",
	} {
		e, _, err := s.Route("GET", path)
		if err != nil || e.Name != want {
			t.Errorf("%s: %v %v, want %s", path, e, err, want)
		}
	}
	if _, params, err := s.Route("GET", "/api/acme/orders/7"); err != nil || params["id"] != "7" {
		t.Errorf("%v %v", params, err)
	}
	if _, _, err := s.Route("POST", "/api/acme/orders/7"); record.KindOf(err) != record.NotAllowed {
		t.Errorf("another method: %v", err)
	}
	if _, _, err := s.Route("GET", "/api/acme/v3/orders/7"); record.KindOf(err) != record.NoPath {
		t.Errorf("a version that is not there: %v", err)
	}
}

func TestReferrers_IncludeThoseOfParents(t *testing.T) {
	s := mustBuild(t, itsm())
	inc, _ := s.Table("incident")
	refs := s.Referrers(inc)
	if len(refs) != 1 || refs[0].Field.Name != "parent" || refs[0].Table.Name != "task" {
		t.Fatalf("%+v", refs)
	}
}

func TestSystem_HoldsNoAuditFields(t *testing.T) {
	table, err := System().Table("sequence")
	if err != nil {
		t.Fatal(err)
	}
	if !table.System || table.Schema != SystemSchema || len(table.Fields) != 2 {
		t.Fatalf("%+v", table)
	}
}

func TestBuild_RefusesWeirsOwnTables(t *testing.T) {
	f := func(name, stored string, refused bool) {
		t.Helper()
		_, err := Build(1, Definitions{Tables: []TableDef{
			{Name: name, Stored: stored, External: true, Key: []string{"name"}, Fields: []FieldDef{{Name: "name", Type: "string"}}},
		}})
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "weir's own tables") {
			t.Errorf("%s stored in %q: %v", name, stored, err)
		}
	}
	f("weir_secret", "", true)
	f("mine", "weir.secret", true)
	f("mine", `"weir".secret`, true)
	f("mine", "WEIR_Secret", true)
	f("mine", "main.weir_secret", true)
	f("mine", ".weir_secret", true)
	f("mine", "public.weir_secret", false) // another's table, in PostgreSQL
	f("weirdo", "", false)
}

func TestBuild_AServiceRedefinesAnother(t *testing.T) {
	d := itsm()
	d.Services = []ServiceDef{
		{Name: "C", Extends: "B", Label: "last"},
		{
			Name: "B", Extends: "A", Namespace: "n", Sets: []SetDef{{Name: "Two", Table: "incident"}, {Name: "Three"}},
			Functions: []FunctionDef{{Name: "F", Endpoint: "fixed"}},
		},
		{
			Name: "A", Label: "first", Roles: []string{"r"}, PageSize: 5, Complex: []ComplexDef{{Name: "X"}},
			Sets: []SetDef{{Name: "One"}, {Name: "Two", Table: "task"}}, Functions: []FunctionDef{{Name: "F", Endpoint: "any"}},
		},
	}
	want := []ServiceDef{
		d.Services[2],
		{
			Name: "B", Extends: "A", Namespace: "n", Label: "first", Roles: []string{"r"}, PageSize: 5, Complex: []ComplexDef{{Name: "X"}},
			Sets: []SetDef{{Name: "One"}, {Name: "Two", Table: "incident"}, {Name: "Three"}}, Functions: []FunctionDef{{Name: "F", Endpoint: "fixed"}},
		},
		{
			Name: "C", Extends: "B", Label: "last", Roles: []string{"r"}, PageSize: 5, Complex: []ComplexDef{{Name: "X"}},
			Sets: []SetDef{{Name: "One"}, {Name: "Two", Table: "incident"}, {Name: "Three"}}, Functions: []FunctionDef{{Name: "F", Endpoint: "fixed"}},
		},
	}
	if diff := cmp.Diff(want, mustBuild(t, d).Services()); diff != "" {
		t.Fatal(diff)
	}
	d.Services[2].Extends = "C"
	d.Services = append(d.Services, ServiceDef{Name: "D", Extends: "E"})
	_, err := Build(1, d)
	for _, want := range []string{"service A: extends itself", "service D: extends E, which is not defined"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
