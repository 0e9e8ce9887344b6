package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"weir/demo"
	"weir/internal/config"
	"weir/internal/gate"
	"weir/internal/server"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weir": main})
}

func TestCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata", RequireExplicitExec: true})
}

// TestServe_FromTheFirstStartToTheDrain runs the binary as a newcomer does: start, look, write, stop, start again.
func TestServe_FromTheFirstStartToTheDrain(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "weir")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start := func() (url string, stop func() string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data"))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		cmd.Stderr = &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			t.Fatalf("it said nothing: %s", log.String())
		}
		first := lines.Text()
		url = first[strings.Index(first, "http"):]
		var rest strings.Builder
		done := make(chan struct{})
		go func() {
			defer close(done)
			for lines.Scan() {
				rest.WriteString(lines.Text() + "\n")
			}
		}()
		return url, func() string {
			t.Helper()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			<-done
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, log.String())
			}
			cancel()
			return rest.String()
		}
	}
	call := func(method, url, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("admin", "admin")
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}

	url, stop := start()
	status, body := call("POST", url+"/api/now/table/incident?sysparm_fields=priority", `{"short_description":"disk full","urgency":"1","impact":"1"}`)
	if status != 201 || body != `{"result":{"priority":"1"}}` {
		t.Errorf("%d %s", status, body)
	}
	said := stop()
	if strings.Count(said, "curl ") != 3 || !strings.Contains(said, "admin / admin") {
		t.Errorf("the greeting:\n%s", said)
	}

	url, stop = start()
	status, body = call("GET", url+"/api/now/stats/incident?sysparm_count=true&sysparm_query=short_description%3Ddisk%20full", "")
	if status != 200 || !strings.Contains(body, `"count":"1"`) {
		t.Errorf("after a restart: %d %s", status, body)
	}
	// The log of the first run was written to its end before the process ended.
	status, body = call("GET", url+"/api/now/table/syslog_transaction?sysparm_fields=method,http_status&sysparm_query=url="+
		"/api/now/table/incident?sysparm_fields=priority", "")
	if status != 200 || body != `{"result":[{"method":"POST","http_status":"201"}]}` {
		t.Errorf("the transaction log: %d %s", status, body)
	}
	stop()
}

func TestOwnNodes_ShareOneDatabaseAndTakeSettings(t *testing.T) {
	targets, stop, err := ownNodes{count: 2, log: io.Discard}.Configure(t.Context(), "servicenow", map[string]string{"gate.session.waiting": "20"})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	get := func(target, path string) string {
		t.Helper()
		req, err := http.NewRequest("GET", target+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("admin", "admin")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %d %s %v", path, res.StatusCode, b, err)
		}
		return string(b)
	}
	const path = "/api/now/table/incident?sysparm_limit=3&sysparm_fields=sys_id&sysparm_query=ORDERBYsys_id"
	if a, b := get(targets[0], path), get(targets[1], path); a != b {
		t.Errorf("the nodes differ: %s, %s", a, b)
	}
	if m := get(targets[1], "/metrics"); !strings.Contains(m, fmt.Sprintf("weir_gate_slots{pool=%q} 4\n", "api_int")) {
		t.Error("the profile is not in force")
	}
}

// TestServe_SettingsAndRateLimitsChangeWhileItRuns drives one node by the table of rate limits, by new settings and by traces.
func TestServe_SettingsAndRateLimitsChangeWhileItRuns(t *testing.T) {
	spans := make(chan string, 100)
	collector := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		spans <- r.URL.Path + " " + string(b)
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go collector.Serve(l)
	defer collector.Close()

	e, err := config.Load(config.Sources{Flags: []config.Setting{
		{Path: "data", Value: t.TempDir()}, {Path: "listen", Value: "127.0.0.1:0"}, {Path: "telemetry.otlp", Value: "http://" + l.Addr().String()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	n, err := newNode(t.Context(), e, demo.Project(), nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- n.Serve(ctx) }()
	call := func(method, path, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+n.Addrs[0].String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("admin", "admin")
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	rule := `{"name":"few","api":"Table API","method":"GET","scope":"user","user":"6816f79cc0a8016401c5a33be04be441","limit_per_hour":"1"}`
	if res := call("POST", "/api/now/table/sys_rate_limit_rules", rule); res.StatusCode != 201 {
		t.Fatalf("the rule: %d", res.StatusCode)
	}
	settings := e.Gate
	settings.Pools = maps.Clone(settings.Pools)
	settings.Pools["default"] = gate.PoolConfig{Slots: 7, Queue: 70, Wait: time.Second}
	n.settings <- settings
	n.settings <- settings // it is taken when the first one is in force
	if got := n.gate.Stats().Pools[0].Slots; got != 7 {
		t.Errorf("%d slots after the change", got)
	}
	if res := call("PATCH", server.GatePath, `{"pools":{"default":{"slots":9},"more":{"queue":3}},"session":{"running":2}}`); res.StatusCode != 200 {
		t.Fatalf("a change over HTTP: %d", res.StatusCode)
	}
	if c := n.gate.Config(); c.Pools["default"] != (gate.PoolConfig{Slots: 9, Queue: 70, Wait: time.Second}) || c.Pools["more"].Queue != 3 || c.Session.Running != 2 || len(c.Rates.Rules) != 1 {
		t.Errorf("after the change: %+v", c)
	}
	for _, bad := range []string{`{"pools":{"default":null}}`, `{"pools":{"default":{"slots":0}}}`, `{"slots":3}`, `[]`, `{"session":{"running":"x"}}`} {
		if res := call("PATCH", server.GatePath, bad); res.StatusCode != 400 || n.gate.Config().Pools["default"].Slots != 9 {
			t.Errorf("%s: %d", bad, res.StatusCode)
		}
	}
	if res := call("PATCH", server.GatePath, `{"pools":{"more":null}}`); res.StatusCode != 200 || n.gate.Config().Pools["more"].Slots != 0 {
		t.Errorf("a pool removed: %d %+v", res.StatusCode, n.gate.Config().Pools)
	}
	last := call("GET", "/api/now/v2/table/incident?sysparm_limit=1", "")
	if last.StatusCode != 200 || last.Header.Get("X-RateLimit-Limit") != "1" {
		t.Errorf("the first call: %d %v", last.StatusCode, last.Header)
	}
	if last = call("GET", "/api/now/table/incident?sysparm_limit=1", ""); last.StatusCode != 429 || last.Header.Get("Retry-After") == "" {
		t.Errorf("the second call: %d %v", last.StatusCode, last.Header)
	}
	if last = call("GET", "/api/now/stats/incident?sysparm_count=true", ""); last.StatusCode != 200 {
		t.Errorf("another API: %d", last.StatusCode)
	}
	res, err := http.Get("http://" + n.Addrs[0].String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || !strings.Contains(string(metrics), "\nweir_engine_set_ops_total ") || strings.Contains(string(metrics), "\nweir_engine_sets_total 0\n") {
		t.Errorf("the metrics do not tell of the engine: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := <-spans; !strings.HasPrefix(s, "/v1/traces ") || !strings.Contains(s, "GET now/table") || !strings.Contains(s, "weir.queue_ms") {
		t.Errorf("the spans: %q", s)
	}
}

func TestRatePath_TakesTitlesNamesAndPaths(t *testing.T) {
	f := func(api, resource, want string) {
		t.Helper()
		if got := ratePath(api, resource); got != want {
			t.Errorf("%q %q: %q, want %q", api, resource, got, want)
		}
	}
	f("", "", "")
	f("Table API", "", "/api/now/table")
	f("now/table", "", "/api/now/table")
	f("Import Set API", "", "/api/now/import")
	f("Table API", "/api/now/table/incident", "/api/now/table/incident")
	f("/api/snc", "", "/api/snc")
}
