package edm_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/demo"
	"weir/internal/catalog"
	"weir/internal/edm"
	"weir/internal/project"
)

func TestCompile_ExposesTheDemo(t *testing.T) {
	p, err := project.Read(demo.Project())
	if err != nil {
		t.Fatal(err)
	}
	snap, err := p.Build(1)
	if err != nil {
		t.Fatal(err)
	}
	svc, err := edm.Compile(snap, &catalog.ServiceDef{Name: "itsm", Expose: snap.Tables()})
	if err != nil {
		t.Fatal(err)
	}
	incident := svc.Set("incident").Type
	if incident.ETag == nil || incident.ETag.Name != "sys_mod_count" {
		t.Errorf("ETag %v", incident.ETag)
	}
	n := incident.Nav("to_caller_id")
	if n == nil || n.Many || n.Target != svc.Set("sys_user") || n.Partner != svc.Set("sys_user").Type.Nav("incident_by_caller_id") || n.Partner == nil {
		t.Fatalf("to_caller_id: %+v", n)
	}
	if svc.Set("sys_user").Type.Property("user_password") != nil {
		t.Error("a password is exposed")
	}
	names := map[string]bool{}
	for _, a := range svc.Assocs {
		if names[a.Name] || names[a.SetName] || len(a.SetName) > 40 {
			t.Errorf("association %s, set %s", a.Name, a.SetName)
		}
		names[a.Name], names[a.SetName] = true, true
	}
	for _, typ := range svc.Types {
		for _, n := range typ.Navs {
			from, to := n.Assoc.From.Set, n.Assoc.To.Set
			if n.Back {
				from, to = to, from
			}
			if from.Type != typ || to != n.Target {
				t.Errorf("%s.%s: association %s leads elsewhere", typ.Name, n.Name, n.Assoc.Name)
			}
		}
	}
}

func TestCompile_PropertiesFollowFromFields(t *testing.T) {
	snap := build(t, shopTables)
	svc, err := compile(t, snap, "{name: S, sets: [{name: PartnerSet, table: partner}, {name: ItemSet, table: item}, {name: LogSet, table: log, type: Log}, {name: OldLogSet, type: Log, table: log}]}")
	if err != nil {
		t.Fatal(err)
	}
	f := func(set, name, want string) {
		t.Helper()
		p := svc.Set(set).Type.Property(name)
		if p == nil {
			t.Errorf("%s has no %s", set, name)
			return
		}
		got := p.Kind.Name() + "=" + p.Kind.NameV2()
		for _, flag := range []struct {
			is   bool
			name string
		}{{p.IsKey, "key"}, {p.Nullable, "nullable"}, {p.Creatable, "creatable"}, {p.Updatable, "updatable"}} {
			if flag.is {
				got += " " + flag.name
			}
		}
		if got != want {
			t.Errorf("%s.%s: %s, want %s", set, name, got, want)
		}
	}
	f("PartnerSet", "id", "Edm.String=Edm.String key creatable")
	f("PartnerSet", "number", "Edm.Int64=Edm.Int64 nullable creatable updatable")
	f("ItemSet", "pos", "Edm.Int64=Edm.Int64 key creatable")
	f("ItemSet", "made", "Edm.DateTimeOffset=Edm.DateTime nullable")
	f("ItemSet", "kind", "Edm.String=Edm.String nullable creatable updatable") // some may not read it
	f("ItemSet", "price", "Edm.Decimal=Edm.Decimal nullable creatable updatable")
	f("LogSet", "id", "Edm.Int64=Edm.Int64 key")
	if svc.Set("PartnerSet").Type.Property("pin") != nil {
		t.Error("a password is exposed")
	}
	if s := svc.Set("LogSet"); !s.Readable || s.Creatable || s.Updatable || s.Deletable {
		t.Errorf("a read-only table: %+v", s)
	}
	if svc.Set("OldLogSet").Type != svc.Set("LogSet").Type || svc.Set("LogSet").Type.Set != svc.Set("LogSet") || len(svc.Types) != 3 {
		t.Error("a type of two sets is not shared")
	}
	for _, typ := range svc.Types {
		for i, p := range typ.Properties {
			if p.Index != i || typ.Property(p.Name) != p {
				t.Errorf("%s.%s has index %d", typ.Name, p.Name, p.Index)
			}
		}
	}
}

func TestCompile_FindsTheWayBackOnlyIfThereIsOne(t *testing.T) {
	snap := build(t, `
tables:
  - {name: a, audit: false, key: [id], fields: [{name: id, type: string}, {name: name, type: string}]}
  - {name: b, audit: false, key: [id], fields: [{name: id, type: string}, {name: x, type: reference, reference: a}, {name: y, type: reference, reference: a}]}
`)
	svc, err := compile(t, snap, `
name: S
sets:
  - name: ASet
    table: a
    navigation:
      - {name: Xs, target: BSet, many: true, on: {id: x}}
      - {name: Ys, target: BSet, many: true, on: {id: y}}
      - {name: MoreYs, target: BSet, many: true, on: {id: y}}
  - name: BSet
    table: b
    navigation:
      - {name: X, target: ASet, on: {x: id}}
      - {name: Y, target: ASet, on: {y: id}}
`)
	if err != nil {
		t.Fatal(err)
	}
	a, b := svc.Set("ASet").Type, svc.Set("BSet").Type
	if a.Nav("Xs").Partner != b.Nav("X") || b.Nav("X").Partner != a.Nav("Xs") || a.Nav("Xs").Assoc != b.Nav("X").Assoc {
		t.Error("X and Xs are not partners")
	}
	if a.Nav("Ys").Partner != nil || a.Nav("MoreYs").Partner != nil || b.Nav("Y").Partner != nil {
		t.Error("Y has a partner, and two could be it")
	}
	var names []string
	for _, a := range svc.Assocs {
		names = append(names, a.Name)
	}
	if diff := cmp.Diff([]string{"Assoc_A_B", "Assoc_A_B_2", "Assoc_A_B_3", "Assoc_A_B_4"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestCompile_NamesOfAssociationSetsAreCutAndStayApart(t *testing.T) {
	snap := build(t, `
tables:
  - {name: a_table_with_quite_a_long_name, audit: false, key: [id], fields: [{name: id, type: string}, {name: first, type: reference, reference: a_table_with_quite_a_long_name}, {name: second, type: reference, reference: a_table_with_quite_a_long_name}]}
`)
	svc, err := compile(t, snap, "{name: S, expose: [a_table_with_quite_a_long_name]}")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range svc.Assocs {
		names = append(names, a.SetName)
	}
	if diff := cmp.Diff([]string{"Assoc_a_table_with_quite_a_long_name_a_t", "Assoc_a_table_with_quite_a_long_name_a_2"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestCompile_ExposesTablesWithLongNames(t *testing.T) {
	long := strings.Repeat("a", 76)
	snap := build(t, `
tables:
  - {name: `+long+`, audit: false, key: [id], fields: [{name: id, type: string}, {name: `+long+`_x, type: reference, reference: `+long+`}, {name: `+long+`_y, type: reference, reference: `+long+`}]}
`)
	svc, err := compile(t, snap, "{name: S, expose: ["+long+"]}")
	if err != nil {
		t.Fatal(err)
	}
	typ := svc.Types[0]
	back := typ.Nav("to_" + long + "_y").Partner
	if len(typ.Navs) != 4 || back == nil || !back.Many || len(back.Name) != 128 || back.Partner != typ.Nav("to_"+long+"_y") {
		t.Errorf("%d navigation properties, back %+v", len(typ.Navs), back)
	}
}
