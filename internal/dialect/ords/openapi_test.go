package ords_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/internal/dialect/dialecttest"
)

var inPath = regexp.MustCompile(`\{([^}]*)\}`)

// The document of demo/hr is one of OpenAPI 3.1 as far as its structure goes: every operation has an id of its own and responses,
// parameters in paths are those that are declared, and references lead somewhere.
func TestOpenAPI_IsWellFormed(t *testing.T) {
	onHR(t, func(t *testing.T, newServer func(*testing.T) dialecttest.Server) {
		s := newServer(t)
		a := do(t, s, "GET", "/ords/hr/open-api-catalog/", "")
		if a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		var doc map[string]any
		if err := json.Unmarshal(a.Body, &doc); err != nil {
			t.Fatal(err)
		}
		if doc["openapi"] != "3.1.0" {
			t.Errorf("openapi is %v", doc["openapi"])
		}
		info := doc["info"].(map[string]any)
		if info["title"] == "" || info["version"] == "" {
			t.Errorf("info is %v", info)
		}
		checkRefs(t, doc, doc)
		ids := map[string]string{}
		paths := doc["paths"].(map[string]any)
		if len(paths) == 0 {
			t.Fatal("no paths")
		}
		for path, item := range paths {
			if !strings.HasPrefix(path, "/") {
				t.Errorf("path %s", path)
			}
			for method, v := range item.(map[string]any) {
				op := v.(map[string]any)
				if !slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
					t.Errorf("%s: method %s", path, method)
				}
				id, _ := op["operationId"].(string)
				if id == "" || ids[id] != "" {
					t.Errorf("%s %s: operationId %q is also that of %s", method, path, id, ids[id])
				}
				ids[id] = method + " " + path
				if len(op["responses"].(map[string]any)) < 2 {
					t.Errorf("%s %s: responses %v", method, path, op["responses"])
				}
				checkParameters(t, method+" "+path, op)
			}
		}
		// What describes an endpoint is found where its answers say.
		var page struct {
			Links []struct{ Rel, Href string }
		}
		if err := json.Unmarshal(do(t, s, "GET", "/ords/hr/people/", "").Body, &page); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, l := range page.Links {
			if l.Rel == "describedby" {
				found = true
				if b := do(t, s, "GET", strings.TrimPrefix(l.Href, "https://h"), ""); b.Status != 200 || !strings.Contains(string(b.Body), `"members":[{`) {
					t.Errorf("%s: %d %s", l.Href, b.Status, b.Body)
				}
			}
		}
		if !found {
			t.Errorf("no describedby among %v", page.Links)
		}
	})
}

func checkParameters(t *testing.T, where string, op map[string]any) {
	t.Helper()
	want := []string{}
	for _, m := range inPath.FindAllStringSubmatch(where, -1) {
		want = append(want, m[1])
	}
	var got []string
	seen := map[string]bool{}
	list, _ := op["parameters"].([]any)
	for _, v := range list {
		p := v.(map[string]any)
		name, in := p["name"].(string), p["in"].(string)
		if seen[in+name] {
			t.Errorf("%s: parameter %s twice", where, name)
		}
		seen[in+name] = true
		if p["schema"] == nil {
			t.Errorf("%s: parameter %s has no schema", where, name)
		}
		if in == "path" {
			got = append(got, name)
			if p["required"] != true {
				t.Errorf("%s: parameter %s is not required", where, name)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("%s: path parameters %v are declared", where, got)
	}
}

func checkRefs(t *testing.T, doc map[string]any, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			checkRefs(t, doc, e)
		}
	case map[string]any:
		if to, ok := v["$ref"].(string); ok {
			at := any(doc)
			for _, part := range strings.Split(strings.TrimPrefix(to, "#/"), "/") {
				m, _ := at.(map[string]any)
				at = m[part]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", to)
			}
		}
		for _, e := range v {
			checkRefs(t, doc, e)
		}
	}
}
