package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/config"
	"weir/internal/store/storetest"
)

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// site is a node of a project of SQL endpoints on PostgreSQL.
type site struct {
	t   *testing.T
	at  string
	db  *pgx.Conn
	log *lockedBuffer
}

// newSite serves a project with the given endpoints, by file name, or answers nil without PostgreSQL.
func newSite(t *testing.T, endpoints map[string]string, flags ...config.Setting) *site {
	t.Helper()
	return newSiteOf(t, false, endpoints, flags...)
}

// newSiteOf is newSite, with hub by a hub before a backend.
func newSiteOf(t *testing.T, hub bool, endpoints map[string]string, flags ...config.Setting) *site {
	t.Helper()
	dsn := storetest.Postgres(t)
	if dsn == "" {
		return nil
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("tables/emp.yaml", "name: emp\naudit: false\nkey: [id]\nfields:\n  - {name: id, type: integer}\n  - {name: name, type: string}\n")
	write("data/emp.csv", "id,name\n1,Ann\n2,Bob\n3,Cid\n")
	for name, text := range endpoints {
		write("endpoints/hr/"+name+".sql", text)
	}
	yaml := `
auth:
  users:
    - {name: clerk, password: plum, roles: [clerk]}
    - {name: ann, password: pear}
    - {name: root, password: fig, roles: [admin]}
  clients:
    - {id: c1, secret: one, user: clerk}
  trusted: {header: X-Remote-User, from: [127.0.0.0/8]}
database: {logins: {trust: true}}
ords: {database_roles: [reader]}
`
	load := func(more ...config.Setting) *config.Effective {
		t.Helper()
		e, err := config.Load(config.Sources{File: []byte(yaml), FileName: "weir.yaml", Flags: append(append([]config.Setting{
			{Path: "database.url", Value: dsn}, {Path: "listen", Value: "127.0.0.1:0"}, {Path: "remote.key", Value: "a key for the tests of this machine"},
		}, flags...), more...)})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	s := &site{t: t, log: &lockedBuffer{}}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	serve := func(f func(context.Context) error) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			http.DefaultClient.CloseIdleConnections()
		})
	}
	var n *node
	var err error
	if hub {
		b, err := newBackend(t.Context(), load(config.Setting{Path: "remote.listen", Value: "127.0.0.1:0"}), os.DirFS(dir), log)
		if err != nil {
			t.Fatal(err)
		}
		serve(b.Serve)
		if n, err = newHub(t.Context(), load(config.Setting{Path: "remote.backends", Value: b.calls.Addr().String()}), log); err != nil {
			t.Fatal(err)
		}
	} else if n, err = newNode(t.Context(), load(), os.DirFS(dir), nil, log); err != nil {
		t.Fatal(err)
	}
	s.at = "http://" + n.Addrs[0].String()
	serve(n.Serve)
	if s.db, err = pgx.Connect(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.db.Close(context.Background()) })
	return s
}

type told struct {
	status int
	header http.Header
	body   string
}

// get calls; prove may be nil.
func (s *site) get(path string, prove func(*http.Request)) told {
	s.t.Helper()
	req, err := http.NewRequest("GET", s.at+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if prove != nil {
		prove(req)
	}
	return s.send(req)
}

func (s *site) send(req *http.Request) told {
	s.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return told{res.StatusCode, res.Header, string(text)}
}

func basicAs(user, password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(user, password) }
}

func headerWith(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// count is the result of a query of one number.
func (s *site) count(sql string, args ...any) (n int) {
	s.t.Helper()
	if err := s.db.QueryRow(s.t.Context(), sql, args...).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func (s *site) until(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("it did not come about that %s", what)
		}
	}
}

// metric is a figure at /metrics.
func (s *site) metric(name string) string {
	s.t.Helper()
	for _, line := range strings.Split(s.get("/metrics", nil).body, "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return value
		}
	}
	s.t.Fatalf("no metric %s", name)
	return ""
}

// TestEntrance_SQLEndpointsAndWhoReachesThem is who may reach which endpoint, with everything real: the file's annotations, the dialect, the
// runner and the database's own users.
func TestEntrance_SQLEndpointsAndWhoReachesThem(t *testing.T) {
	t.Run("node", func(t *testing.T) { whoReachesWhat(t, false) })
	t.Run("hub", func(t *testing.T) { whoReachesWhat(t, true) })
}

func whoReachesWhat(t *testing.T, hub bool) {
	const sql = "SELECT current_user::text AS me, :current_user AS caller"
	s := newSiteOf(t, hub, map[string]string{
		"open":   "-- @method GET open/\n-- @public\n" + sql,
		"any":    "-- @method GET any/\n" + sql,
		"clerks": "-- @method GET clerks/\n-- @roles clerk\n" + sql,
		"tokens": "-- @method GET tokens/\n-- @auth oauth\n" + sql,
		"mine":   "-- @method GET mine/\n-- @auth database\n" + sql,
		"reader": "-- @method GET reader/\n-- @auth database, oauth\n-- @roles reader\n" + sql,
		"edge":   "-- @method GET edge/\n-- @auth header\n" + sql,
	})
	if s == nil {
		return
	}
	user := "weir_" + fmt.Sprint(time.Now().UnixNano())
	if _, err := s.db.Exec(t.Context(), "CREATE ROLE "+user+" LOGIN PASSWORD 'tiger'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.db.Exec(context.Background(), "DROP ROLE "+user) })

	req, _ := http.NewRequest("POST", s.at+"/ords/hr/oauth/token", strings.NewReader("grant_type=client_credentials"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("c1", "one")
	var token struct {
		Access string `json:"access_token"`
	}
	if r := s.send(req); r.status != 200 || json.Unmarshal([]byte(r.body), &token) != nil || token.Access == "" {
		t.Fatalf("token: %d %s", r.status, r.body)
	}
	paths := []string{"open", "any", "clerks", "tokens", "mine", "reader", "edge"}
	for _, c := range []struct {
		name   string
		prove  func(*http.Request)
		caller string
		want   []int
	}{
		{"nobody", nil, "", []int{200, 401, 401, 401, 401, 401, 401}},
		{"wrong password", basicAs("clerk", "x"), "", []int{401, 401, 401, 401, 401, 401, 401}},
		{"with the role", basicAs("clerk", "plum"), "clerk", []int{200, 200, 200, 401, 401, 401, 401}},
		{"without", basicAs("ann", "pear"), "ann", []int{200, 200, 403, 401, 401, 401, 401}},
		{"administrator", basicAs("root", "fig"), "root", []int{200, 200, 200, 401, 401, 401, 401}},
		{"token", headerWith("Authorization", "Bearer "+token.Access), "clerk", []int{200, 200, 200, 200, 401, 403, 401}},
		{"wrong token", headerWith("Authorization", "Bearer x"), "", []int{401, 401, 401, 401, 401, 401, 401}},
		{"database user", basicAs(user, "tiger"), user, []int{401, 401, 401, 401, 200, 200, 401}},
		{"unknown database user", basicAs("weir_nobody", "x"), "", []int{401, 401, 401, 401, 401, 401, 401}},
		{"gateway", headerWith("X-Remote-User", "clerk"), "clerk", []int{200, 200, 200, 401, 401, 401, 200}},
		{"gateway, unknown user", headerWith("X-Remote-User", "bob"), "", []int{401, 401, 401, 401, 401, 401, 401}},
	} {
		for i, path := range paths {
			r := s.get("/ords/hr/"+path+"/", c.prove)
			if r.status != c.want[i] {
				t.Errorf("%s at %s: %d %s, want %d", c.name, path, r.status, r.body, c.want[i])
			}
			if r.status == 200 {
				caller := `"caller":"` + c.caller + `"`
				if c.caller == "" {
					caller = `"caller":null`
				}
				if !strings.Contains(r.body, caller) || strings.Contains(r.body, `"me":"`+user) != (c.caller == user) {
					t.Errorf("%s at %s: %s", c.name, path, r.body)
				}
			}
			if r.status >= 400 && (r.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(r.body, `"type":"tag:oracle.com,2020:error/`)) {
				t.Errorf("%s at %s: %s %s", c.name, path, r.header.Get("Content-Type"), r.body)
			}
			if r.status == 401 {
				bearer := strings.Contains(strings.Join(r.header.Values("WWW-Authenticate"), ","), `Bearer realm="ords"`)
				if takes := path != "mine" && path != "edge"; bearer != takes {
					t.Errorf("%s at %s: %q", c.name, path, r.header.Values("WWW-Authenticate"))
				}
			}
		}
	}
	if strings.Contains(s.log.String(), "tiger") {
		t.Error("the log has a password")
	}
	if n := s.count("SELECT count(*) FROM pg_stat_activity WHERE usename = $1", user); n != 0 {
		t.Errorf("%d sessions of the database user are still there", n)
	}
}

var timing = regexp.MustCompile(`([a-z_]+);(?:dur=([0-9.]+))?`)

// stages are the entries of Server-Timing.
func (r *told) stages() map[string]string {
	all := map[string]string{}
	for _, m := range timing.FindAllStringSubmatch(r.header.Get("Server-Timing"), -1) {
		all[m[1]] = m[2]
	}
	return all
}

func TestLevers_ServerTimingTellsStagesAndRoundTrips(t *testing.T) {
	s := newSite(t, map[string]string{
		"emps": "-- @method GET emps/\nSELECT id, name FROM emp ORDER BY id",
		"many": "-- @method GET many/\n-- @page 0\nSELECT n FROM generate_series(1, 2000) n",
		"wait": "-- @method GET wait/\nSELECT pg_sleep(0.05)::text AS x",
		"add":  "-- @method POST emps/\nUPDATE emp SET name = name WHERE id = 1;\nUPDATE emp SET name = name WHERE id = 2",
	}, config.Setting{Path: "telemetry.timing", Value: "true"})
	if s == nil {
		return
	}
	s.get("/ords/hr/emps/", basicAs("ann", "pear")) // warm
	r := s.get("/ords/hr/emps/", basicAs("ann", "pear"))
	if r.status != 200 || !strings.Contains(r.header.Get("Server-Timing"), `db;desc="1 round trips"`) || !strings.Contains(r.header.Get("Server-Timing"), `desc="1 statements"`) {
		t.Errorf("%d %s", r.status, r.header.Get("Server-Timing"))
	}
	for _, name := range []string{"route", "auth", "metadata", "borrow", "sql", "encode", "hash", "total"} {
		if _, ok := r.stages()[name]; !ok {
			t.Errorf("%s lacks %s", r.header.Get("Server-Timing"), name)
		}
	}
	// An answer long enough for a clock that counts in microseconds.
	r = s.get("/ords/hr/many/", basicAs("ann", "pear"))
	if long := r.stages(); long["hash"] == "0" || long["encode"] == "0" {
		t.Errorf("a long answer's stages: %v", long)
	}
	// Without definitions in memory: two statements more at most.
	req, _ := http.NewRequest("PATCH", s.at+"/weir/settings", strings.NewReader(`{"cache.metadata.enabled":false}`))
	req.SetBasicAuth("root", "fig")
	req.Header.Set("Content-Type", "application/json")
	if r := s.send(req); r.status != 200 {
		t.Fatalf("%+v", r)
	}
	r = s.get("/ords/hr/emps/", basicAs("ann", "pear"))
	if got := r.header.Get("Server-Timing"); !strings.Contains(got, `desc="2 statements"`) && !strings.Contains(got, `desc="3 statements"`) {
		t.Errorf("without definitions in memory: %s", got)
	}
}

func TestLevers_PoolThatIsTooSmallSaysSoAndGrowsWhileItRuns(t *testing.T) {
	s := newSite(t, map[string]string{"wait": "-- @method GET wait/\nSELECT pg_sleep(0.4)::text AS x"},
		config.Setting{Path: "jdbc.MaxLimit", Value: "2"}, config.Setting{Path: "database.pool.wait", Value: "100ms"})
	if s == nil {
		return
	}
	flood := func() (ok, starved int) {
		t.Helper()
		var mu sync.Mutex
		var work sync.WaitGroup
		for range 8 {
			work.Go(func() {
				r := s.get("/ords/hr/wait/", basicAs("ann", "pear"))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case r.status == 200:
					ok++
				case r.status == 503 && strings.Contains(r.body, "2 of 2 in use") && r.header.Get("Retry-After") != "":
					starved++
				default:
					t.Errorf("%d %s", r.status, r.body)
				}
			})
		}
		work.Wait()
		return ok, starved
	}
	s.get("/ords/hr/wait/", basicAs("ann", "pear"))
	ok, starved := flood()
	if ok < 2 || starved < 4 || ok+starved != 8 {
		t.Errorf("%d served, %d told that the pool is exhausted", ok, starved)
	}
	if got := s.metric("weir_pool_exhausted_total"); got != fmt.Sprint(starved) {
		t.Errorf("the metrics count %s, not %d", got, starved)
	}
	if got := s.metric("weir_store_borrow_timeouts_total"); got == "0" {
		t.Error("the pool counts no timeouts")
	}
	if log := s.log.String(); !strings.Contains(log, `msg="no database connection"`) || !strings.Contains(log, "2 of 2 in use") {
		t.Errorf("the log does not tell: %s", log)
	}
	req, _ := http.NewRequest("PATCH", s.at+"/weir/settings", strings.NewReader(`{"jdbc.MaxLimit":10,"jdbc.ConnectionWaitTimeout":3}`))
	req.SetBasicAuth("root", "fig")
	req.Header.Set("Content-Type", "application/json")
	if r := s.send(req); r.status != 200 {
		t.Fatalf("%+v", r)
	}
	if ok, starved := flood(); ok != 8 {
		t.Errorf("with 10 connections: %d served, %d not", ok, starved)
	}
	if s.metric("weir_store_connections_in_use") != "0" {
		t.Error("connections were not given back")
	}
}

func TestLevers_StatementsEndWithTheirTimeOrTheirClient(t *testing.T) {
	s := newSite(t, map[string]string{
		"bound": "-- @method GET bound/\n-- @timeout 200ms\nSELECT pg_sleep(30)::text AS bound_by_time",
		"left":  "-- @method GET left/\nSELECT pg_sleep(30)::text AS left_alone",
		"emps":  "-- @method GET emps/\nSELECT id FROM emp",
	})
	if s == nil {
		return
	}
	const running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(30)%' AND state = 'active' AND pid <> pg_backend_pid()"
	began := time.Now()
	if r := s.get("/ords/hr/bound/", basicAs("ann", "pear")); r.status < 500 || time.Since(began) > 5*time.Second {
		t.Errorf("a statement that takes too long: %d %s after %s", r.status, r.body, time.Since(began))
	}
	if n := s.count(running); n != 0 {
		t.Errorf("%d statements still run", n)
	}
	ctx, leave := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", s.at+"/ords/hr/left/", nil)
	req.SetBasicAuth("ann", "pear")
	gone := make(chan error)
	go func() {
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			res.Body.Close()
		}
		gone <- err
	}()
	s.until("the statement runs", func() bool { return s.count(running) == 1 })
	leave()
	<-gone
	s.until("the database has stopped it", func() bool { return s.count(running) == 0 })
	if r := s.get("/ords/hr/emps/", basicAs("ann", "pear")); r.status != 200 {
		t.Errorf("afterwards: %d %s", r.status, r.body)
	}
}

func TestLevers_SessionsThatTheDatabaseEndsUnderLoadHarmNobodyForLong(t *testing.T) {
	s := newSite(t, map[string]string{"emps": "-- @method GET emps/\nSELECT id, name FROM emp ORDER BY id"})
	if s == nil {
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 6 {
		work.Go(func() {
			for ctx.Err() == nil {
				r := s.get("/ords/hr/emps/", basicAs("ann", "pear"))
				mu.Lock()
				statuses[r.status]++
				mu.Unlock()
				if r.status != 200 && r.status != 503 && r.status != 571 {
					t.Errorf("%d %s", r.status, r.body)
				}
			}
		})
	}
	for range 5 {
		time.Sleep(100 * time.Millisecond)
		s.count("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	}
	time.Sleep(100 * time.Millisecond)
	stop()
	work.Wait()
	for range 10 {
		if r := s.get("/ords/hr/emps/", basicAs("ann", "pear")); r.status != 200 {
			t.Errorf("afterwards: %d %s", r.status, r.body)
		}
	}
	if statuses[200] < 50 {
		t.Errorf("%v", statuses)
	}
}

func TestPlan_AdministratorsSeeItAsTextAndJSON(t *testing.T) {
	s := newSite(t, map[string]string{
		"emp": "-- @method GET emp/:id\n-- @param id INT\nSELECT id, name FROM emp WHERE id = :id",
		"add": "-- @method POST emps/\nUPDATE emp SET name = name",
	})
	if s == nil {
		return
	}
	root := basicAs("root", "fig")
	r := s.get("/weir/endpoints", root)
	if r.status != 200 || !strings.Contains(r.body, `"plan":"/weir/endpoints/hr/emp/plan"`) || !strings.Contains(r.body, `"binds":["id"]`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.get("/weir/endpoints/hr/emp/plan?id=1&analyze=1", root); r.status != 200 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/plain") || !strings.Contains(r.body, "Execution Time") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.get("/weir/endpoints/hr/emp/plan?bind.id=1&format=json", root); r.status != 200 || !strings.Contains(r.body, `"endpoint":"hr/emp"`) || !strings.Contains(r.body, `"Node Type"`) {
		t.Errorf("%d %s", r.status, r.body)
	}
	for _, f := range []struct {
		path   string
		prove  func(*http.Request)
		status int
		want   string
	}{
		{"/weir/endpoints", basicAs("clerk", "plum"), 403, ""},
		{"/weir/endpoints/hr/emp/plan?id=1", basicAs("clerk", "plum"), 403, ""},
		{"/weir/endpoints/hr/emp/plan?id=1", nil, 401, ""},
		{"/weir/endpoints/hr/emp/plan?nosuch=1", root, 400, "no such bind"},
		{"/weir/endpoints/hr/emp/plan?id=x", root, 400, ""},
		{"/weir/endpoints/hr/emp/plan?id=1&analyze=perhaps", root, 400, "neither 1 nor 0"},
		{"/weir/endpoints/hr/add/plan", root, 405, ""},
		{"/weir/endpoints/hr/nosuch/plan", root, 404, ""},
	} {
		if r := s.get(f.path, f.prove); r.status != f.status || !strings.Contains(r.body, f.want) {
			t.Errorf("%s: %d %s, want %d %s", f.path, r.status, r.body, f.status, f.want)
		}
	}
}

func TestSlow_StatementsAreInTheLogWithTheirPlan(t *testing.T) {
	s := newSite(t, map[string]string{"wait": "-- @method GET wait/\nSELECT pg_sleep(0.06)::text AS x, :who AS who"}, config.Setting{Path: "telemetry.slow_statement", Value: "50ms"})
	if s == nil {
		return
	}
	for range 2 {
		if r := s.get("/ords/hr/wait/?who=hushhush", basicAs("ann", "pear")); r.status != 200 {
			t.Fatalf("%+v", r)
		}
	}
	log := s.log.String()
	if n := strings.Count(log, `msg="slow statement"`); n != 2 || strings.Count(log, "plan=") != 2 || strings.Count(log, " no_plan=") != 1 ||
		!strings.Contains(log, "endpoint=hr/wait") || !strings.Contains(log, "pg_sleep(0.06)") {
		t.Errorf("%d lines: %s", n, log)
	}
	if strings.Contains(log, "hushhush") {
		t.Errorf("a value is in the log: %s", log)
	}
}

func TestLevers_AHubKnowsWhatIsItsBackends(t *testing.T) {
	s := newSiteOf(t, true, map[string]string{"emps": "-- @method GET emps/\nSELECT id, name FROM emp ORDER BY id"}, config.Setting{Path: "telemetry.timing", Value: "true"})
	if s == nil {
		return
	}
	root := basicAs("root", "fig")
	s.get("/ords/hr/emps/", root)
	if r := s.get("/ords/hr/emps/", root); r.status != 200 || !strings.Contains(r.header.Get("Server-Timing"), `db;desc="1 round trips"`) {
		t.Errorf("%d %s %s", r.status, r.header.Get("Server-Timing"), r.body)
	}
	patch := func(body string) told {
		req, _ := http.NewRequest("PATCH", s.at+"/weir/settings", strings.NewReader(body))
		req.SetBasicAuth("root", "fig")
		req.Header.Set("Content-Type", "application/json")
		return s.send(req)
	}
	if r := patch(`{"jdbc.MaxLimit":50}`); r.status != 400 || !strings.Contains(r.body, "backends") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := patch(`{"ords.max_rows":2,"cache.metadata":false}`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := s.get("/ords/hr/emps/", root); r.status != 200 || strings.Contains(r.body, "Cid") {
		t.Errorf("with two rows at most: %d %s", r.status, r.body)
	}
	if r := s.get("/weir/endpoints/hr/emps/plan", root); r.status != 404 {
		t.Errorf("a plan from a hub: %d %s", r.status, r.body)
	}
}

func TestOrigins_PagesOfOtherSitesCallWhatNamesThem(t *testing.T) {
	s := newSite(t, map[string]string{
		"open": "-- @method GET open/\n-- @public\n-- @origins https://app.example.com\nSELECT id FROM emp",
		"add":  "-- @method POST open/\n-- @origins https://app.example.com\nUPDATE emp SET name = name",
		"all":  "-- @method GET all/\n-- @public\n-- @origins *\nSELECT id FROM emp",
		"own":  "-- @method GET own/\n-- @public\nSELECT id FROM emp",
	})
	if s == nil {
		return
	}
	f := func(method, path, origin string, status int, allowed bool, headers ...string) {
		t.Helper()
		req, _ := http.NewRequest(method, s.at+path, nil)
		req.Header.Set("Origin", origin)
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		if method == "POST" {
			req.SetBasicAuth("ann", "pear")
		}
		r := s.send(req)
		if path == "/ords/hr/all/" {
			if r.header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s: all pages may use what the browser knows of its user", path)
			}
		}
		if got := r.header.Get("Access-Control-Allow-Origin"); r.status != status || (got == origin) != allowed || !allowed && got != "" {
			t.Errorf("%s %s from %s: %d %q %s", method, path, origin, r.status, got, r.body)
		}
	}
	const app, other = "https://app.example.com", "https://other.example.com"
	f("GET", "/ords/hr/open/", app, 200, true)
	f("GET", "/ords/hr/open/", other, 200, false) // a browser keeps the answer from the page
	f("GET", "/ords/hr/own/", app, 200, false)
	f("GET", "/ords/hr/all/", other, 200, true)
	f("POST", "/ords/hr/open/", app, 200, true)
	f("POST", "/ords/hr/open/", other, 403, false)
	f("OPTIONS", "/ords/hr/open/", app, 204, true, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
}
