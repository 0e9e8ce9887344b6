package demo

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestMerged_IsAFileSystem(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	m := merged{
		fstest.MapFS{"weir.yaml": file("first"), "tables/a.yaml": file("a")},
		fstest.MapFS{"weir.yaml": file("second"), "tables/b.yaml": file("b"), "services/s.yaml": file("s")},
	}
	if err := fstest.TestFS(m, "weir.yaml", "tables/a.yaml", "tables/b.yaml", "services/s.yaml"); err != nil {
		t.Fatal(err)
	}
	if text, err := fs.ReadFile(m, "weir.yaml"); err != nil || string(text) != "first" {
		t.Errorf("weir.yaml is %q (%v), want that of the first part", text, err)
	}
}

func TestProject_IsAFileSystem(t *testing.T) {
	if err := fstest.TestFS(Project(), "weir.yaml", "tables/incident.yaml", "tables/product.yaml", "data/incident.csv", "data/product.csv"); err != nil {
		t.Fatal(err)
	}
}
