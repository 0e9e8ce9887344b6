package project_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/demo"
	"weir/internal/catalog"
	"weir/internal/engine/enginetest"
	"weir/internal/project"
)

func TestPack_SnapshotsComeBackAsTheyWere(t *testing.T) {
	p, err := project.Read(demo.Project())
	if err != nil {
		t.Fatal(err)
	}
	demoSnap, err := p.Build(7)
	if err != nil {
		t.Fatal(err)
	}
	for name, snap := range map[string]*catalog.Snapshot{"demo": demoSnap, "engine": enginetest.Snapshot()} {
		packed, err := project.Pack(snap)
		if err != nil {
			t.Fatal(err)
		}
		got, err := project.Unpack(packed)
		if err != nil {
			t.Fatal(err)
		}
		if got.Version != snap.Version {
			t.Errorf("%s: version %d, want %d", name, got.Version, snap.Version)
		}
		if d := cmp.Diff(snap.Tables(), got.Tables()); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		// What was built a second time from what was packed packs the same.
		again, err := project.Pack(got)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(packed), string(again)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		t.Logf("%s: %d bytes", name, len(packed))
	}
	if _, err := project.Unpack([]byte(`{"version":1,"rows":[["table","x","{"]]}`)); err == nil {
		t.Error("a broken definition was taken")
	}
}
