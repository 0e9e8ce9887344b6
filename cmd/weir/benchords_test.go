package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"weir/demo"
	"weir/internal/bench"
)

func TestBenchOrds_LeversArePulledOnATarget(t *testing.T) {
	project := t.TempDir()
	if err := os.CopyFS(project, demo.Project()); err != nil {
		t.Fatal(err)
	}
	if err := bench.WriteLevers(project, 30, 90); err != nil {
		t.Fatal(err)
	}
	url := served(t, os.DirFS(project))
	r, err := bench.OrdsLevers{
		Access: bench.Access{Targets: []string{url}, User: "admin", Password: "admin"}, Client: "demo", Secret: "demo", Users: 3, Requests: 4, Rounds: 1,
	}.Run(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK {
		t.Errorf("problems: %s", strings.Join(r.Problems, "\n"))
	}
	if len(r.Notes) != 2 || !strings.Contains(r.Notes[0], "users of the database") || !strings.Contains(r.Notes[1], "auth.remember") {
		t.Errorf("left out: %q", r.Notes)
	}
	statements := make(map[string]float64)
	for _, c := range r.Cases {
		statements[c.Lever+", "+c.Name] = c.Statements
		if c.Requests != 12 {
			t.Errorf("%s, %s: %d requests, want 12", c.Lever, c.Name, c.Requests)
		}
	}
	for name, want := range map[string]float64{
		"auth, none": 1, "auth, bearer": 1, "etag-heavy, HASH, 304": 1, "etag-heavy, QUERY, 200": 2, "etag-heavy, QUERY, 304": 1,
		"metadata, cache off": 3, "metadata, cache on": 1,
		"cursor, row by row": 28, "cursor, one statement": 1, "cursor, JSON by hand": 1, "cursor-3, row by row": 82, "cursor-large, one statement": 1,
	} {
		if got, ok := statements[name]; !ok || got != want {
			t.Errorf("%s: %v statements (measured: %t), want %v", name, got, ok, want)
		}
	}
}
