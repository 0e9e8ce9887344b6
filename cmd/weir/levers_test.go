package main

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"weir/demo"
	"weir/internal/config"
)

// served is the base URL of a node that serves a project, with its settings.
func served(t *testing.T, project fs.FS, flags ...config.Setting) string {
	t.Helper()
	file, err := fs.ReadFile(project, "weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e, err := config.Load(config.Sources{File: file, FileName: "weir.yaml", Flags: append([]config.Setting{
		{Path: "data", Value: t.TempDir(), From: "--data"}, {Path: "listen", Value: "127.0.0.1:0", From: "--listen"},
	}, flags...)})
	if err != nil {
		t.Fatal(err)
	}
	n, err := newNode(t.Context(), e, project, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return "http://" + n.Addrs[0].String()
}

// pulled is a node of the demo that serves, as a function that calls it as somebody.
func pulled(t *testing.T, flags ...config.Setting) func(user, method, path, body string) (int, string) {
	t.Helper()
	base := served(t, demo.Project(), flags...)
	return func(user, method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth(user, user)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
}

func TestLevers_SettingsChangeWhileTheNodeRuns(t *testing.T) {
	call := pulled(t, config.Setting{Path: "jdbc.MaxLimit", Value: "3", From: "--set"})
	row := func(body, name string) config.Row {
		t.Helper()
		var page struct{ Settings []config.Row }
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		for _, r := range page.Settings {
			if r.Setting == name {
				return r
			}
		}
		t.Fatalf("no %s in %d settings", name, len(page.Settings))
		return config.Row{}
	}
	metric := func(name string) string {
		t.Helper()
		_, text := call("admin", "GET", "/metrics", "")
		for _, line := range strings.Split(text, "\n") {
			if value, ok := strings.CutPrefix(line, name+" "); ok {
				return value
			}
		}
		t.Fatalf("no metric %s", name)
		return ""
	}
	status, body := call("admin", "GET", "/weir/settings", "")
	if r := row(body, "database.pool.max"); status != 200 || r.Value != float64(3) || r.Source != "--set (jdbc.MaxLimit)" || !r.Live {
		t.Errorf("%d %+v", status, r)
	}
	if got := metric("weir_store_connections_max"); got != "4" {
		t.Errorf("%s connections, beside one that writes", got)
	}
	status, body = call("admin", "PATCH", "/weir/settings", `{"jdbc.MaxLimit":7,"cache":{"metadata":false}}`)
	if r := row(body, "database.pool.max"); status != 200 || r.Value != float64(7) || !strings.HasPrefix(r.Source, "changed by admin at ") {
		t.Errorf("%d %+v", status, r)
	}
	before := metric("weir_metadata_loads_total")
	if status, body := call("admin", "GET", "/api/now/table/incident?sysparm_limit=1", ""); status != 200 {
		t.Errorf("without a cache: %d %s", status, body)
	}
	if after := metric("weir_metadata_loads_total"); after == before {
		t.Errorf("definitions were loaded %s times before and after a request", after)
	}
	call("admin", "PATCH", "/weir/settings", `{"cache.metadata.enabled":true,"cache.metadata.timeout":"1ns"}`)
	loads, checks := metric("weir_metadata_loads_total"), metric("weir_metadata_checks_total")
	call("admin", "GET", "/api/now/table/incident?sysparm_limit=1", "")
	if metric("weir_metadata_loads_total") != loads || metric("weir_metadata_checks_total") == checks {
		t.Error("old definitions in memory are not looked at again, or not taken from memory")
	}
	for _, f := range []struct {
		user, method, body string
		status             int
		want               string
	}{
		{"beth.anglin", "GET", "", 403, ""},
		{"beth.anglin", "PATCH", `{"jdbc.MaxLimit":1}`, 403, ""},
		{"nobody", "GET", "", 401, ""},
		{"admin", "PATCH", `{"listen":"0.0.0.0:80"}`, 400, "changes with a new start only"},
		{"admin", "PATCH", `{"jdbc.InitialLimit":1}`, 400, "not used here"},
		{"admin", "PATCH", `{"jdbc.MaxLimit":`, 400, "not JSON"},
		{"admin", "DELETE", "", 405, "Method not supported"},
	} {
		if status, body := call(f.user, f.method, "/weir/settings", f.body); status != f.status || !strings.Contains(body, f.want) {
			t.Errorf("%s %s %s: %d %s, want %d %s", f.user, f.method, f.body, status, body, f.status, f.want)
		}
	}
	if _, body := call("admin", "PATCH", "/weir/settings", `{"database.pool.max":null}`); row(body, "database.pool.max").Value != float64(3) {
		t.Errorf("taken back: %+v", row(body, "database.pool.max"))
	}
}
