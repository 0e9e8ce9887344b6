package edm_test

import (
	"testing"

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
