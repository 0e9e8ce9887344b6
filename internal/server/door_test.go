package server

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/gate"
	"weir/internal/job"
	"weir/internal/record"
	"weir/internal/store/sqlite"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

// doorDialect wants all that a dialect may want of the door. X-Need of a call says what its Guard needs: "always" (default), "browser", "not".
type doorDialect struct{ fakeDialect }

var _ interface {
	dialect.Guarded
	dialect.Timed
	dialect.Namer
	dialect.Deferrer
} = doorDialect{}

func (doorDialect) Name() string { return "door" }

func (doorDialect) Guard(_ *catalog.Snapshot, c *dialect.Call) dialect.Guard {
	need := map[string]dialect.Need{"": dialect.NeedAlways, "browser": dialect.NeedBrowser, "not": dialect.NeedNot}[c.Header.Get("X-Need")]
	token := c.Header.Get("X-CSRF-Token")
	return dialect.Guard{Fetch: token == "Fetch", Token: token, Need: need, Age: time.Hour, Bearer: c.Header.Get("X-Bearer") != ""}
}

func (doorDialect) Grant(token string, a *wire.Answer) { a.Header.Set("X-CSRF-Token", token) }

func (doorDialect) Refuse(_ *dialect.Call, a *wire.Answer) {
	a.Status = 403
	a.Header.Set("X-CSRF-Token", "Required")
	a.Body = append(a.Body, "no token"...)
}

func (doorDialect) Timing(_ *dialect.Call, rec *telemetry.Recorder, a *wire.Answer) {
	if rec.Layer(telemetry.Hub) > 0 {
		a.Header.Set("X-Time", "known")
	}
}

func (doorDialect) ResourceOf(_ *catalog.Snapshot, path string) (string, bool) {
	name := "door/" + strings.TrimPrefix(path, "/d/")
	return name, !strings.Contains(path, "unknown")
}

func (doorDialect) Deferred(_ *catalog.Snapshot, c *dialect.Call) bool {
	return c.Header.Get("Prefer") == "respond-async"
}

func (doorDialect) MonitorOf(_ *dialect.Call, id string) string { return "/d/later/" + id }

func (doorDialect) Monitored(path string) string {
	id, _ := strings.CutPrefix(path, "/d/later/")
	if id == path {
		return ""
	}
	return id
}

func (doorDialect) Pending(c *dialect.Call, monitor string, _ time.Duration, a *wire.Answer) {
	a.Status = 202
	a.Header.Set("Location", c.Base+monitor)
}

func (doorDialect) Settled(_ *dialect.Call, done *wire.Answer, a *wire.Answer) {
	a.Header.Set("X-Status", http.StatusText(done.Status))
	a.Body = append(a.Body, done.Body...)
}

// door is a node with the dialect at /d/, and a client that keeps cookies.
func door(t *testing.T, exec *fakeExec, change func(*Config, *gate.Config, *auth.Config)) *node {
	t.Helper()
	n := newNode(t, exec, change)
	n.o.Mux.Handle("/d/", doorDialect{})
	return n
}

func cookies(r reply) string {
	var list []string
	for _, c := range (&http.Response{Header: r.header}).Cookies() {
		list = append(list, c.Name+"="+c.Value)
	}
	return strings.Join(list, "; ")
}

func TestGuard_ChangesNeedTheTokenAndItsCookie(t *testing.T) {
	exec := &fakeExec{}
	executed := 0
	exec.work = func(context.Context, *record.Op) *record.Error { executed++; return nil }
	n := door(t, exec, nil)
	for _, method := range []string{"GET", "HEAD"} {
		if r := n.as(t, "eve", "apple", method, "/d/thing", ""); r.status != 200 || r.header.Get("X-CSRF-Token") != "" {
			t.Errorf("%s without Fetch: %d, token %q", method, r.status, r.header.Get("X-CSRF-Token"))
		}
	}
	fetched := n.as(t, "eve", "apple", "HEAD", "/d/thing", "", "X-CSRF-Token", "Fetch")
	token, cookie := fetched.header.Get("X-CSRF-Token"), cookies(fetched)
	if fetched.status != 200 || len(token) < 20 || !strings.Contains(cookie, "JSESSIONID=") {
		t.Fatalf("fetch: %d, token %q, cookies %q", fetched.status, token, cookie)
	}
	annCookie := cookies(n.as(t, "ann", "pear", "GET", "/d/thing", ""))
	if got := n.as(t, "eve", "apple", "GET", "/d/panic", "", "X-CSRF-Token", "Fetch"); got.status != 500 || got.header.Get("X-CSRF-Token") != "" {
		t.Errorf("a failed answer holds a token: %d %q", got.status, got.header.Get("X-CSRF-Token"))
	}
	executed = 0
	for _, c := range []struct {
		name, user, password, token, cookie string
		want                                int
	}{
		{"none", "eve", "apple", "", cookie, 403},
		{"Fetch is no token", "eve", "apple", "Fetch", cookie, 403},
		{"null", "eve", "apple", "null", cookie, 403},
		{"token without its cookie", "eve", "apple", token, "", 403},
		{"changed", "eve", "apple", token[:20] + flip(token[20:]), cookie, 403},
		{"changed end", "eve", "apple", token[:len(token)-1], cookie, 403},
		{"somebody else", "ann", "pear", token, annCookie, 403},
		{"right", "eve", "apple", token, cookie, 200},
		{"again", "eve", "apple", token, cookie, 200},
	} {
		before := executed
		r := n.as(t, c.user, c.password, "POST", "/d/thing", "x", "X-CSRF-Token", c.token, "Cookie", c.cookie)
		if r.status != c.want {
			t.Errorf("%s: %d %q", c.name, r.status, r.body)
		}
		if c.want == 403 && (r.header.Get("X-CSRF-Token") != "Required" || r.body != "no token" || executed != before) {
			t.Errorf("%s: token %q, body %q, executed %d", c.name, r.header.Get("X-CSRF-Token"), r.body, executed-before)
		}
	}
	// By cookie alone: the token is the proof.
	if r := n.do(t, n.request(t, "POST", "/d/thing", "x", "X-CSRF-Token", token, "Cookie", cookie)); r.status != 200 {
		t.Errorf("by cookie with the token: %d %q", r.status, r.body)
	}
	if r := n.do(t, n.request(t, "POST", "/d/thing", "x", "Cookie", cookie)); r.status != 403 || r.header.Get("X-CSRF-Token") != "Required" {
		t.Errorf("by cookie without: %d %q", r.status, r.body)
	}
	if r := n.do(t, n.request(t, "POST", "/d/thing", "x", "Cookie", cookie, "X-Need", "not")); r.status != 403 || r.header.Get("X-CSRF-Token") != "" {
		t.Errorf("by cookie, where the dialect needs no token: %d %q", r.status, r.body)
	}
}

// flip changes the first character of a token.
func flip(s string) string {
	if s[0] == 'A' {
		return "B" + s[1:]
	}
	return "A" + s[1:]
}

func TestGuard_NeedBrowserLetsProgramsPass(t *testing.T) {
	n := door(t, &fakeExec{}, nil)
	post := func(want int, headers ...string) {
		t.Helper()
		r := n.as(t, "eve", "apple", "POST", "/d/thing", "x", append(headers, "X-Need", "browser")...)
		if r.status != want {
			t.Errorf("%v: %d, want %d", headers, r.status, want)
		}
	}
	post(200)
	post(403, "Origin", n.url)
	post(403, "Sec-Fetch-Site", "same-origin")
	post(200, "X-Need", "not", "Accept", "*/*")
}

func TestDoor_DialectsTellTheTimeAndNamesGoToLogAndMetrics(t *testing.T) {
	n := door(t, &fakeExec{}, func(c *Config, g *gate.Config, _ *auth.Config) {
		c.Log.Requests = "all"
		g.Rates.Rules = []gate.RateRule{{ID: "few", Match: gate.Match{Path: "/door/few"}, PerHour: 1}}
	})
	if r := n.as(t, "eve", "apple", "GET", "/d/thing", ""); r.header.Get("X-Time") != "known" {
		t.Error("no timing")
	}
	if r := n.do(t, n.request(t, "GET", "/d/thing", "")); r.status != 401 || r.header.Get("X-Time") != "known" {
		t.Errorf("a failed answer: %d, timing %q", r.status, r.header.Get("X-Time"))
	}
	n.as(t, "eve", "apple", "GET", "/d/unknown", "")
	if r := n.as(t, "eve", "apple", "GET", "/d/few", ""); r.status != 200 {
		t.Error(r)
	}
	if r := n.as(t, "eve", "apple", "GET", "/d/few", ""); r.status != 429 || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, "Few API") {
		t.Errorf("over the limit of the resource: %+v", r)
	}
	n.stop()
	if log := n.log.String(); !strings.Contains(log, "api_name=door/thing") || !strings.Contains(log, "resource=door/thing") {
		t.Error(log)
	}
	metrics := &strings.Builder{}
	n.metrics.handler.ServeHTTP(recorderOf(metrics), mustRequest(t))
	if !strings.Contains(metrics.String(), `weir_resource_requests_total{resource="door/thing"} 2`) || strings.Contains(metrics.String(), "door/unknown") {
		t.Error(metrics.String())
	}
}

func mustRequest(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequest("GET", "/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type textRecorder struct {
	io.Writer
	header http.Header
}

func recorderOf(w io.Writer) textRecorder  { return textRecorder{w, http.Header{}} }
func (r textRecorder) Header() http.Header { return r.header }
func (r textRecorder) WriteHeader(int)     {}

func TestServer_CompressesLargeAnswersForThoseWhoAsk(t *testing.T) {
	exec := &fakeExec{}
	const lines = 40_000
	exec.rows = func() *record.Rows {
		rows := record.NewRows([]string{"a"}, []record.Type{record.TypeString})
		for range lines {
			rows.Append([]record.Value{record.TextValue("a line that says the same as the others")})
		}
		return rows
	}
	n := newNode(t, exec, func(c *Config, _ *gate.Config, _ *auth.Config) { c.Compress.Least = 100 })
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	ask := func(path, encoding string) (*http.Response, []byte) {
		t.Helper()
		req := n.request(t, "GET", path, "", "Accept-Encoding", encoding)
		req.SetBasicAuth("eve", "apple")
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, b
	}
	for _, c := range []struct {
		path, encoding string
		zipped         bool
	}{
		{"/x/list", "gzip, deflate, br", true},
		{"/x/list", "identity", false},
		{"/x/list", "gzip;q=0", false},
		{"/x/list", "br, gzip;q=0.5", true},
		{"/x/small", "gzip", false},
		{"/x/" + strings.Repeat("p", 200), "gzip", false},
	} {
		res, b := ask(c.path, c.encoding)
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != c.zipped {
			t.Errorf("%s with %q: Content-Encoding %q", c.path, c.encoding, res.Header.Get("Content-Encoding"))
			continue
		}
		if c.path != "/x/list" {
			continue
		}
		if c.zipped {
			if len(b) > 100_000 || res.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%d bytes, Vary %q", len(b), res.Header.Get("Vary"))
			}
			z, err := gzip.NewReader(strings.NewReader(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			if b, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Count(string(b), "\n") != lines {
			t.Errorf("%d lines", strings.Count(string(b), "\n"))
		}
	}
}

func TestServer_LinksFollowTrustedProxiesOnly(t *testing.T) {
	f := func(want string, proxies []string, headers ...string) {
		t.Helper()
		s := &Server{}
		var err error
		if s.proxies, err = auth.ParseNetworks(proxies); err != nil {
			t.Fatal(err)
		}
		r := mustRequest(t)
		r.Host, r.RemoteAddr = "inside:8080", "10.1.2.3:4567"
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		if got := s.base(r); got != want {
			t.Errorf("%v %v: %s, want %s", proxies, headers, got, want)
		}
	}
	f("http://inside:8080", nil, "X-Forwarded-Proto", "https", "X-Forwarded-Host", "api.example.com")
	f("http://inside:8080", []string{"10.2.0.0/16"}, "X-Forwarded-Proto", "https", "X-Forwarded-Host", "api.example.com")
	f("https://api.example.com", []string{"10.2.0.0/16", "10.1.2.3"}, "X-Forwarded-Proto", "https", "X-Forwarded-Host", "api.example.com, other")
	f("https://inside:8080", []string{"10.0.0.0/8"}, "X-Forwarded-Proto", "HTTPS", "X-Forwarded-Host", "evil/<script>")
	f("http://inside:8080", []string{"10.0.0.0/8"}, "X-Forwarded-Proto", "gopher")
	if _, err := auth.ParseNetworks([]string{"not an address"}); err == nil {
		t.Error("accepted")
	}
}

func TestCORS_ListedOriginsMayCallAndReadHeaders(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.CORS.Origins = []string{"https://ui.example.com"} })
	preflight := n.do(t, n.request(t, "OPTIONS", "/x/thing", "", "Origin", "https://ui.example.com",
		"Access-Control-Request-Method", "PATCH", "Access-Control-Request-Headers", "x-csrf-token,content-type"))
	if preflight.status != 204 || preflight.header.Get("Access-Control-Allow-Origin") != "https://ui.example.com" ||
		!strings.Contains(preflight.header.Get("Access-Control-Allow-Methods"), "PATCH") || preflight.header.Get("Access-Control-Allow-Headers") != "x-csrf-token,content-type" {
		t.Errorf("preflight: %+v", preflight)
	}
	r := n.as(t, "eve", "apple", "POST", "/x/thing", "x", "Origin", "https://ui.example.com", "Sec-Fetch-Site", "cross-site")
	if r.status != 200 || !strings.Contains(r.header.Get("Access-Control-Expose-Headers"), "sap-statistics") {
		t.Errorf("call: %+v", r)
	}
	if r := n.as(t, "eve", "apple", "POST", "/x/thing", "x", "Origin", "https://evil.example.com", "Sec-Fetch-Site", "cross-site"); r.status != 403 || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another origin: %+v", r)
	}
}

func TestCORS_WhatIsCalledNamesOrigins(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	ask := func(path, method string) *reply {
		r := n.do(t, n.request(t, "OPTIONS", path, "", "Origin", "https://their.example.com", "Access-Control-Request-Method", method))
		return &r
	}
	if r := ask("/x/shared", "POST"); r.status != 204 || r.header.Get("Access-Control-Allow-Origin") != "https://their.example.com" || r.header.Get("Access-Control-Allow-Credentials") != "true" {
		t.Errorf("%+v", r)
	}
	if r := ask("/x/any", "GET"); r.status != 204 || r.header.Get("Access-Control-Allow-Origin") != "https://their.example.com" || r.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%+v", r)
	}
	for _, r := range []*reply{ask("/x/shared", "PUT"), ask("/x/thing", "GET")} {
		if r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%+v", r)
		}
	}
	f := func(path string, status int) {
		t.Helper()
		r := n.as(t, "eve", "apple", "POST", path, "x", "Origin", "https://their.example.com", "Sec-Fetch-Site", "cross-site")
		if r.status != status {
			t.Errorf("%s: %+v", path, r)
		}
	}
	f("/x/shared", 200)
	f("/x/any", 403)
	f("/x/thing", 403)
}

// jobs is a store of jobs in a database of its own, shared by nodes.
func jobs(t *testing.T) *sqlite.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "jobs.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	plan, err := db.Schema().Plan(t.Context(), catalog.System())
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Schema().Apply(t.Context(), plan.Additive); err != nil {
		t.Fatal(err)
	}
	return db
}

// deferring is a door that defers.
func deferring(t *testing.T, exec *fakeExec, db *sqlite.Store, change func(*Config, *gate.Config, *auth.Config)) *node {
	t.Helper()
	return doorWith(t, exec, func(o *Options) { o.Jobs = job.New(db) }, func(c *Config, g *gate.Config, a *auth.Config) {
		c.Async.Poll, c.Async.Lease = 5*time.Millisecond, 200*time.Millisecond
		if change != nil {
			change(c, g, a)
		}
	})
}

func doorWith(t *testing.T, exec *fakeExec, options func(*Options), change func(*Config, *gate.Config, *auth.Config)) *node {
	t.Helper()
	n := newNodeWith(t, exec, options, change)
	n.o.Mux.Handle("/d/", doorDialect{})
	return n
}

func (n *node) later(t *testing.T, method, path, body string) (monitor string) {
	t.Helper()
	r := n.as(t, "eve", "apple", method, path, body, "Prefer", "respond-async", "X-Need", "browser")
	at, ok := strings.CutPrefix(r.header.Get("Location"), n.url)
	if r.status != 202 || !ok {
		t.Fatalf("deferred: %+v\n%s", r, n.log)
	}
	return at
}

// settled asks a monitor until the answer is there.
func (n *node) settled(t *testing.T, monitor string) reply {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		r := n.as(t, "eve", "apple", "GET", monitor, "")
		if r.status != 202 || time.Now().After(deadline) {
			return r
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func TestDeferred_AnswersAtTheMonitorOfTheOwner(t *testing.T) {
	exec := &fakeExec{}
	release := make(chan struct{})
	var mu sync.Mutex
	var tokens []string
	exec.work = func(_ context.Context, op *record.Op) *record.Error {
		mu.Lock()
		tokens = append(tokens, op.Token)
		mu.Unlock()
		<-release
		return nil
	}
	n := deferring(t, exec, jobs(t), nil)
	monitor := n.later(t, "POST", "/d/thing", "hello")
	if r := n.as(t, "eve", "apple", "GET", monitor, ""); r.status != 202 || r.header.Get("Location") != n.url+monitor {
		t.Errorf("under way: %+v", r)
	}
	if r := n.as(t, "ann", "pear", "GET", monitor, ""); r.status == 200 || r.status == 202 {
		t.Errorf("somebody else's: %+v", r)
	}
	close(release)
	if r := n.settled(t, monitor); r.status != 200 || r.header.Get("X-Status") != "OK" || r.body != "POST by eve, 5 bytes" {
		t.Errorf("done: %+v", r)
	}
	if r := n.as(t, "ann", "pear", "DELETE", monitor, "", "X-Need", "browser"); r.status == 204 {
		t.Error("somebody else deleted it")
	}
	if r := n.as(t, "eve", "apple", "DELETE", monitor, "", "X-Need", "browser"); r.status != 204 {
		t.Errorf("forget it: %+v", r)
	}
	if r := n.as(t, "eve", "apple", "GET", monitor, ""); r.status == 200 || r.status == 202 {
		t.Errorf("forgotten: %+v", r)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(tokens) != 1 || !strings.HasPrefix(tokens[0], "deferred/") {
		t.Errorf("tokens %q", tokens)
	}
}

func TestDeferred_CancelStopsWhatIsUnderWayAndLeavesNothing(t *testing.T) {
	exec := &fakeExec{}
	begun := make(chan struct{}, 1)
	exec.work = func(ctx context.Context, _ *record.Op) *record.Error {
		begun <- struct{}{}
		<-ctx.Done()
		return record.Errorf(record.Canceled, "", "stopped")
	}
	n := deferring(t, exec, jobs(t), nil)
	monitor := n.later(t, "POST", "/d/thing", "hello")
	<-begun
	if r := n.as(t, "eve", "apple", "DELETE", monitor, "", "X-Need", "browser"); r.status != 202 {
		t.Errorf("cancel: %+v", r)
	}
	if r := n.settled(t, monitor); r.status == 200 {
		t.Errorf("canceled: %+v", r)
	}
}

func TestDeferred_AnotherNodeTakesOverWhenOneFallsSilent(t *testing.T) {
	db := jobs(t)
	silent := &fakeExec{}
	begun := make(chan struct{}, 1)
	silent.work = func(ctx context.Context, _ *record.Op) *record.Error {
		begun <- struct{}{}
		<-ctx.Done()
		return record.Errorf(record.Canceled, "", "stopped")
	}
	first := deferring(t, silent, db, nil)
	monitor := first.later(t, "POST", "/d/thing", "hello")
	<-begun
	// The first node stops in an orderly way: it gives the call back. (A kill is a test of the whole binary.)
	var stopping sync.WaitGroup
	stopping.Go(func() { first.stop() })
	second := deferring(t, &fakeExec{}, db, nil)
	if r := second.settled(t, monitor); r.status != 200 || r.body != "POST by eve, 5 bytes" {
		t.Errorf("done by the other: %+v", r)
	}
	stopping.Wait()
}

func TestDeferred_NoRoomMeansAnsweredAtOnce(t *testing.T) {
	exec := &fakeExec{}
	hold := make(chan struct{})
	exec.work = func(_ context.Context, op *record.Op) *record.Error {
		if op.Table == "/d/slow" {
			<-hold
		}
		return nil
	}
	n := deferring(t, exec, jobs(t), func(c *Config, _ *gate.Config, _ *auth.Config) { c.Async.Queue, c.Async.Workers = 1, 1 })
	monitor := n.later(t, "POST", "/d/slow", "")
	if r := n.as(t, "eve", "apple", "POST", "/d/thing", "", "Prefer", "respond-async", "X-Need", "browser"); r.status != 200 {
		t.Errorf("no room: %+v", r)
	}
	close(hold)
	if r := n.settled(t, monitor); r.status != 200 {
		t.Errorf("%+v", r)
	}
}
