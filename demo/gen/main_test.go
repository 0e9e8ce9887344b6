package main

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/demo"
)

func TestData_IsWhatTheGeneratorWrites(t *testing.T) {
	made, err := generate(demo.Project())
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[string][]byte)
	for name, text := range made {
		_, file, _ := strings.Cut(name, "/")
		if want[file] != nil {
			t.Errorf("%s is in two parts", file)
		}
		want[file] = text
	}
	committed, err := fs.Glob(demo.Project(), "data/*")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), committed); diff != "" {
		t.Fatalf("files made (-) and committed (+); run go run ./demo/gen, and delete what it no longer makes:\n%s", diff)
	}
	for name, text := range want {
		got, err := fs.ReadFile(demo.Project(), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(got)); diff != "" {
			t.Errorf("%s is not what go run ./demo/gen makes (-made +committed):\n%.2000s", name, diff)
		}
	}
}

func TestSay_ChoosesOneOfEachList(t *testing.T) {
	d := newDice("test")
	seen := make(map[string]bool)
	for range 100 {
		seen[say(d, "{a|b} and {c}")] = true
	}
	if diff := cmp.Diff(map[string]bool{"a and c": true, "b and c": true}, seen); diff != "" {
		t.Fatal(diff)
	}
}
