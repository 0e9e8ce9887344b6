package server

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/gate"
	"weir/internal/record"
	"weir/internal/wire"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// fakeDialect decodes POST into an insert, GET /list into a list, /panic into a panic, GET elsewhere into a get.
type fakeDialect struct{}

func (fakeDialect) Name() string { return "fake" }

func (fakeDialect) OriginsOf(_ *catalog.Snapshot, c *dialect.Call) []string {
	switch {
	case c.Path == "/x/shared" && c.Method == "POST":
		return []string{"https://their.example.com"}
	case c.Path == "/x/any":
		return []string{"*"}
	}
	return nil
}

func (fakeDialect) Decode(_ *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	op := record.Op{Verb: record.Get, Table: c.Path}
	switch {
	case c.Path == "/x/open":
		op = record.Op{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: "open"}}
	case strings.HasSuffix(c.Path, "/panic"):
		panic("boom")
	case strings.HasSuffix(c.Path, "/list"):
		op = record.Op{Verb: record.List, Table: c.Path, Query: &record.Query{Limit: -1}}
	case strings.HasSuffix(c.Path, "/large"), strings.HasSuffix(c.Path, "/torn"):
		return &dialect.Exchange{Ops: []record.Op{op, op}, Reply: func(_ []record.Outcome, a *wire.Answer) {
			a.Status = 200
			for range largeLines {
				if a.Body = append(a.Body, "a line of many\n"...); a.Grown() != nil {
					return
				}
			}
			if strings.HasSuffix(c.Path, "/torn") {
				a.Err = errors.New("the rest cannot be said")
			}
		}}, nil
	case c.Method == "POST":
		op = record.Op{Verb: record.Insert, Table: c.Path}
	}
	return &dialect.Exchange{Ops: []record.Op{op}, Reply: func(out []record.Outcome, a *wire.Answer) {
		if out[0].Err != nil {
			fakeDialect{}.Fail(c, out[0].Err, a)
			return
		}
		a.Status = 200
		if out[0].Rows == nil {
			a.Body = fmt.Appendf(a.Body, "%s by %s, %d bytes", c.Method, c.Actor.Name, len(c.Body))
			return
		}
		for {
			row, ok := out[0].Rows.Next()
			if !ok {
				return
			}
			a.Body = append(append(a.Body, row[0].S...), '\n')
			if a.Grown() != nil {
				return
			}
		}
	}}, nil
}

// EntryOf lets everybody call public endpoints.
func (fakeDialect) EntryOf(snap *catalog.Snapshot, c *dialect.Call) dialect.Entry {
	e, _, err := snap.Route(c.Method, c.Path)
	return dialect.Entry{Public: err == nil && e.Public}
}

// largeLines is how many lines /large answers, more than sockets hold.
const largeLines = 2_000_000

func (fakeDialect) Fail(_ *dialect.Call, err error, a *wire.Answer) {
	e := record.AsError(err)
	a.Status = map[record.Kind]int{
		record.Busy: 429, record.RateLimited: 429, record.Unauthenticated: 401, record.Forbidden: 403, record.Invalid: 400,
		record.TooLarge: 413, record.NotAllowed: 405, record.Timeout: 503, record.Unsupported: 415, record.NoPath: 404, record.Unavailable: 503,
	}[e.Kind]
	if a.Status == 0 {
		a.Status = 500
	}
	a.Body = append(a.Body[:0], e.Msg...)
}

func (fakeDialect) IsBatch(_, path string) bool { return path == "/x/batch" }

func (fakeDialect) Batch(ctx context.Context, b *dialect.BatchRun, c *dialect.Call, a *wire.Answer) []dialect.ItemRecord {
	u := &record.Unit{Ops: []record.Op{{Verb: record.Get, Table: "/x/a"}, {Verb: record.Get, Table: "/x/b"}}, Actors: []record.Actor{c.Actor}}
	out := b.Exec.Execute(ctx, b.Snapshot, u)
	a.Body = fmt.Appendf(a.Body, "%d items", len(out))
	for _, op := range u.Ops {
		if b.Admit == nil {
			break
		}
		h, err := b.Admit(&dialect.Call{Method: "GET", Path: op.Table})
		if h == nil && err == nil {
			continue
		}
		a.Body = fmt.Appendf(a.Body, "; %s %q %v", op.Table, h, err)
	}
	return []dialect.ItemRecord{
		{ID: "1", Method: "GET", URL: "/x/a?token=abc", Status: 200, Time: time.Millisecond},
		{ID: "2\n", Method: "GET", URL: "/x/b", Status: 200, Start: time.Millisecond, Time: 40 * time.Millisecond, SQLCount: 3},
	}
}

// fakeExec answers every op after work, or when the context ends.
type fakeExec struct {
	work     func(ctx context.Context, op *record.Op) *record.Error
	rows     func() *record.Rows
	mu       sync.Mutex
	inserted []record.Op // rows of the transaction log
}

func (f *fakeExec) Execute(ctx context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
	out := make([]record.Outcome, len(u.Ops))
	for i := range u.Ops {
		if u.Actors[0].System {
			out[i].Load = &record.Loaded{}
			f.mu.Lock()
			f.inserted = append(f.inserted, loaded(&u.Ops[i])...)
			f.mu.Unlock()
			continue
		}
		if f.work != nil {
			out[i].Err = f.work(ctx, &u.Ops[i])
		}
	}
	return out
}

// loaded are the records of a load as inserts of what is not empty.
func loaded(op *record.Op) (list []record.Op) {
	for cells := op.Load.Cells; len(cells) > 0; cells = cells[len(op.Load.Fields):] {
		one := record.Op{Verb: record.Insert, Table: op.Table}
		for i, name := range op.Load.Fields {
			if !cells[i].Empty() {
				one.Set = append(one.Set, record.Assign{Field: name, Value: cells[i]})
			}
		}
		list = append(list, one)
	}
	return list
}

func (f *fakeExec) Stream(context.Context, *catalog.Snapshot, *record.Unit) record.Outcome {
	return record.Outcome{Rows: f.rows()}
}

func (f *fakeExec) logged() []record.Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]record.Op(nil), f.inserted...)
}

// node is a server on a real socket.
type node struct {
	*Server
	url, addr string
	gate      *gate.Gate
	log       *syncBuffer
	stop      func() error // drains it
	patches   []string     // changes of the gate's settings
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func testSnapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	text := func(n string) catalog.FieldDef { return catalog.FieldDef{Name: n, Type: "string"} }
	num := func(n string) catalog.FieldDef { return catalog.FieldDef{Name: n, Type: "decimal"} }
	snap, err := catalog.Build(1, catalog.Definitions{
		Tables: []catalog.TableDef{{Name: "syslog_transaction", Fields: []catalog.FieldDef{
			text("parent"), text("item_id"), text("url"), text("type"), num("response_time"), {Name: "sql_count", Type: "integer"},
		}}},
		Endpoints: []catalog.EndpointDef{{Name: "open", Path: "/x/open", Method: "GET", Public: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// newNode starts a server with users eve (admin) and ann; change may adapt settings.
func newNode(t testing.TB, exec *fakeExec, change func(*Config, *gate.Config, *auth.Config)) *node {
	t.Helper()
	return newNodeWith(t, exec, nil, change)
}

// newNodeWith is newNode with further options.
func newNodeWith(t testing.TB, exec *fakeExec, further func(*Options), change func(*Config, *gate.Config, *auth.Config)) *node {
	t.Helper()
	cfg, gcfg, acfg := Defaults(), gate.Auto(2, 0), auth.Defaults()
	cfg.Listen = []string{"127.0.0.1:0"}
	acfg.Users = []auth.StaticUser{
		{Name: "eve", Password: "apple", Roles: []string{"admin"}}, {Name: "ann", Password: "pear"}, {Name: "demo", Password: "demo"},
	}
	if change != nil {
		change(&cfg, &gcfg, &acfg)
	}
	g, err := gate.New(gcfg)
	if err != nil {
		t.Fatal(err)
	}
	a, err := auth.New(acfg, auth.Options{})
	if err != nil {
		t.Fatal(err)
	}
	snap := testSnapshot(t)
	mux := &dialect.Mux{}
	mux.Handle("/x/", fakeDialect{})
	n := &node{gate: g, log: &syncBuffer{}}
	o := Options{
		Config: cfg, Gate: g, Auth: a, Exec: exec, Mux: mux, Fallback: fakeDialect{},
		Snapshot: func(context.Context) (*catalog.Snapshot, error) { return snap, nil },
		Log:      slog.New(slog.NewTextHandler(n.log, nil)),
		GateSettings: GateSettings{
			JSON: func() ([]byte, error) { return []byte(`{"a":1}`), nil },
			Change: func(_ context.Context, patch []byte) error {
				n.patches = append(n.patches, string(patch))
				return nil
			},
		},
	}
	if further != nil {
		further(&o)
	}
	n.Server, err = New(o)
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	n.addr = addrs[0].String()
	n.url = "http://" + n.addr
	if cfg.TLS.Self {
		n.url = "https://" + n.addr
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Serve(ctx) }()
	var once sync.Once
	n.stop = func() (err error) {
		once.Do(func() {
			cancel()
			err = <-done
			a.Close()
			http.DefaultClient.CloseIdleConnections()
		})
		return err
	}
	t.Cleanup(func() {
		if err := n.stop(); err != nil {
			t.Error(err)
		}
	})
	return n
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (n *node) do(t *testing.T, req *http.Request) reply {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(b)}
}

func (n *node) request(t *testing.T, method, path, body string, headers ...string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(method, n.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return req
}

func (n *node) as(t *testing.T, user, password, method, path, body string, headers ...string) reply {
	t.Helper()
	req := n.request(t, method, path, body, headers...)
	req.SetBasicAuth(user, password)
	return n.do(t, req)
}

func TestServer_AnswersWithTheHeadersOfTheWire(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	r := n.as(t, "eve", "apple", "POST", "/x/thing?a=1", "hello", TimingHeader, "1")
	if r.status != 200 || r.body != "POST by eve, 5 bytes" {
		t.Fatalf("%d %q", r.status, r.body)
	}
	if id := r.header.Get("X-Transaction-Id"); len(id) != 12 {
		t.Errorf("X-Transaction-ID %q", id)
	}
	for name, want := range map[string]string{
		"X-Is-Logged-In": "true", "X-Content-Type-Options": "nosniff", "Pragma": "no-store,no-cache", "Content-Length": "20",
	} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	timing := r.header.Get("Server-Timing")
	for _, part := range []string{
		"sem_wait;dur=0", "sesh_wait;dur=0", "hub;dur=", "queue;dur=", "be;dur=", "app;dur=", "sql;dur=0;desc=", "total;dur=",
		"route;dur=", "auth;dur=", "metadata;dur=", "borrow;dur=", "encode;dur=", "hash;dur=", `db;desc="0 round trips"`,
	} {
		if !strings.Contains(timing, part) {
			t.Errorf("Server-Timing %q lacks %s", timing, part)
		}
	}
	if plain := n.as(t, "eve", "apple", "GET", "/x/thing", "").header.Get("Server-Timing"); plain != "sem_wait;dur=0, sesh_wait;dur=0" {
		t.Errorf("Server-Timing unasked: %q", plain)
	}
	if r := n.as(t, "eve", "apple", "HEAD", "/x/thing", ""); r.status != 200 || r.body != "" || r.header.Get("Content-Length") == "" {
		t.Errorf("HEAD: %+v", r)
	}
	if r := n.as(t, "eve", "apple", "GET", "/elsewhere", ""); r.status != 404 {
		t.Errorf("an unknown path: %d", r.status)
	}
}

func TestServer_WrongCredentialsAre401AndPublicEndpointsNeedNone(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	for name, r := range map[string]reply{
		"none":     n.do(t, n.request(t, "GET", "/x/thing", "")),
		"password": n.as(t, "eve", "pear", "GET", "/x/thing", ""),
		"user":     n.as(t, "bob", "pear", "GET", "/x/thing", ""),
		"public":   n.as(t, "eve", "pear", "GET", "/x/open", ""),
		"scheme":   n.do(t, n.request(t, "GET", "/x/thing", "", "Authorization", "Digest x")),
		"broken":   n.do(t, n.request(t, "GET", "/x/thing", "", "Authorization", "Basic !!")),
	} {
		if r.status != 401 || r.header.Get("WWW-Authenticate") != `BASIC realm="Service-now"` || r.header.Get("X-Is-Logged-In") != "false" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := n.do(t, n.request(t, "GET", "/x/open", "")); r.status != 200 || r.body != "GET by guest, 0 bytes" {
		t.Errorf("public: %+v", r)
	}
}

func TestServer_DemoLoginWorksOnThisMachineOnly(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	if r := n.as(t, "demo", "demo", "GET", "/x/thing", ""); r.status != 200 {
		t.Errorf("loopback: %d", r.status)
	}
	if r := n.as(t, "demo", "demo", "GET", "/x/thing", "", "X-Forwarded-For", "10.0.0.1"); r.status != 401 {
		t.Errorf("forwarded: %d", r.status)
	}
	req := n.request(t, "GET", "/x/thing", "")
	req.SetBasicAuth("demo", "demo")
	req.Host = "rebound.example:80"
	if r := n.do(t, req); r.status != 401 {
		t.Errorf("another Host: %d", r.status)
	}
	req = n.request(t, "GET", "/x/thing", "")
	req.SetBasicAuth("eve", "apple")
	req.Host = "weir.example"
	if r := n.do(t, req); r.status != 200 {
		t.Errorf("a real login under another Host: %d", r.status)
	}
}

func TestServer_CookiesKeepASessionAndWritesNeedAProof(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	first := n.as(t, "ann", "pear", "GET", "/x/thing", "")
	var cookies []string
	for _, c := range first.header.Values("Set-Cookie") {
		pair, _, _ := strings.Cut(c, ";")
		cookies = append(cookies, pair)
	}
	all := strings.Join(cookies, "; ")
	for _, name := range []string{"JSESSIONID=", "glide_user_route=glide.", "glide_session_store="} {
		if !strings.Contains(all, name) {
			t.Errorf("no cookie %s in %s", name, all)
		}
	}
	get := n.do(t, n.request(t, "GET", "/x/thing", "", "Cookie", all))
	if get.status != 200 || get.body != "GET by ann, 0 bytes" || len(get.header.Values("Set-Cookie")) != 0 {
		t.Fatalf("by cookie: %+v", get)
	}
	token := get.header.Get("X-UserToken-Response")
	if token == "" {
		t.Fatal("no token is handed out")
	}
	status := func(want int, headers ...string) {
		t.Helper()
		if r := n.do(t, n.request(t, "POST", "/x/thing", "", append(headers, "Cookie", all)...)); r.status != want {
			t.Errorf("%v: %d, want %d", headers, r.status, want)
		}
	}
	status(403)
	status(403, "X-UserToken", "0123")
	status(200, "X-UserToken", token)
	status(200, "Sec-Fetch-Site", "same-origin")
	status(200, "Origin", n.url)
	status(403, "Sec-Fetch-Site", "cross-site", "X-UserToken", token)
	status(403, "Origin", "https://evil.example", "X-UserToken", token)
	forged := strings.Replace(all, "JSESSIONID=", "JSESSIONID=x", 1)
	if r := n.do(t, n.request(t, "GET", "/x/thing", "", "Cookie", forged)); r.status != 401 {
		t.Errorf("a forged cookie: %d", r.status)
	}
	// A browser that kept a Basic login sends it along with a page of another site, too.
	if r := n.as(t, "ann", "pear", "POST", "/x/thing", "", "Origin", "https://evil.example"); r.status != 403 {
		t.Errorf("cross origin with Basic: %d", r.status)
	}
}

func TestServer_GuessesAreLimitedBeforeHashing(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(_ *Config, _ *gate.Config, a *auth.Config) { a.GuessesPerUser = 3 })
	if r := n.as(t, "ann", "pear", "GET", "/x/thing", ""); r.status != 200 {
		t.Fatal(r.status)
	}
	var got []int
	for i := range 6 {
		got = append(got, n.as(t, "ann", fmt.Sprint("guess", i), "GET", "/x/thing", "").status)
	}
	if fmt.Sprint(got) != "[401 401 429 429 429 429]" {
		t.Errorf("%v", got)
	}
	if r := n.as(t, "ann", "pear", "GET", "/x/thing", ""); r.status != 200 {
		t.Errorf("who is signed in suffers from guesses of others: %d", r.status)
	}
	if r := n.as(t, "eve", "apple", "GET", "/x/thing", ""); r.status != 200 {
		t.Errorf("another user: %d", r.status)
	}
}

func TestServer_PanicIsAnInternalErrorWithTheIdOfItsLogLine(t *testing.T) {
	n := newNode(t, &fakeExec{work: func(context.Context, *record.Op) *record.Error {
		return record.AsError(errors.New("secret cause"))
	}}, nil)
	for _, path := range []string{"/x/panic", "/x/thing"} {
		r := n.as(t, "eve", "apple", "GET", path, "")
		id := r.header.Get("X-Transaction-Id")
		if r.status != 500 || !strings.Contains(r.body, id) || strings.Contains(r.body, "secret") || strings.Contains(r.body, "boom") {
			t.Errorf("%s: %d %q", path, r.status, r.body)
		}
		if strings.Count(n.log.String(), "txid="+id) != 1 {
			t.Errorf("%s: the log has not exactly one line with %s:\n%s", path, id, n.log.String())
		}
	}
	if log := n.log.String(); !strings.Contains(log, "boom") || !strings.Contains(log, "secret cause") {
		t.Errorf("causes are not in the log: %s", log)
	}
	if s := n.gate.Stats().Pools[0]; s.InUse != 0 {
		t.Errorf("%d slots are still held", s.InUse)
	}
}

func TestServer_GzipBombIsStoppedAtTheBound(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.Limits.Body = 1 << 20 })
	zip := func(size int) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(bytes.Repeat([]byte("a"), size))
		z.Close()
		return b.String()
	}
	if r := n.as(t, "eve", "apple", "POST", "/x/thing", zip(1<<20), "Content-Encoding", "gzip"); r.status != 200 || r.body != "POST by eve, 1048576 bytes" {
		t.Errorf("at the bound: %d %s", r.status, r.body)
	}
	if r := n.as(t, "eve", "apple", "POST", "/x/thing", zip(32<<20), "Content-Encoding", "gzip"); r.status != 413 || !strings.Contains(r.body, "limits.body") {
		t.Errorf("a bomb: %d %s", r.status, r.body)
	}
	if r := n.as(t, "eve", "apple", "POST", "/x/thing", "not gzip", "Content-Encoding", "gzip"); r.status != 400 {
		t.Errorf("no gzip: %d %s", r.status, r.body)
	}
	if r := n.as(t, "eve", "apple", "POST", "/x/thing", "x", "Content-Encoding", "br"); r.status != 415 {
		t.Errorf("brotli: %d %s", r.status, r.body)
	}
	if used := n.gate.Stats().Bytes.Used; used != 0 {
		t.Errorf("%d bytes are still held", used)
	}
}

// raw opens a connection and sends a request's head.
func (n *node) raw(t *testing.T, head string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", n.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	// eve:apple
	fmt.Fprintf(c, "%s\r\nHost: %s\r\nAuthorization: Basic ZXZlOmFwcGxl\r\n", head, n.addr)
	return c
}

func TestServer_BodyThatNeverEndsIsCutOff(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.Limits.BodyTime = 200 * time.Millisecond })
	c := n.raw(t, "POST /x/thing HTTP/1.1")
	fmt.Fprintf(c, "Content-Length: 1000\r\n\r\nabc")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != 503 || !strings.Contains(string(b), "limits.body_time") || !res.Close {
		t.Errorf("%d %s, close %v", res.StatusCode, b, res.Close)
	}
	if s := n.gate.Stats().Pools[0]; s.Admitted != 0 {
		t.Error("it took a slot while the body was awaited")
	}
}

// until waits for a condition that another goroutine brings about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come about", what)
		}
	}
}

func TestServer_ClientThatHangsUpFreesItsSlot(t *testing.T) {
	gone := make(chan error, 1)
	n := newNode(t, &fakeExec{work: func(ctx context.Context, op *record.Op) *record.Error {
		<-ctx.Done()
		gone <- ctx.Err()
		return record.Errorf(record.Canceled, "", "gone")
	}}, nil)
	c := n.raw(t, "GET /x/slow HTTP/1.1")
	fmt.Fprint(c, "\r\n")
	slots := func() int { return n.gate.Stats().Pools[0].InUse }
	until(t, "the slot", func() bool { return slots() == 1 })
	c.Close()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	until(t, "the slot's release", func() bool { return slots() == 0 })
}

func TestServer_SlowReaderHoldsNoSlotAndIsGivenUp(t *testing.T) {
	const lines = 2_000_000
	rows := func() *record.Rows {
		return record.StreamRows([]string{"a"}, []record.Type{record.TypeString}, &counter{n: lines})
	}
	n := newNode(t, &fakeExec{rows: rows}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.Limits.WriteTime = 300 * time.Millisecond })
	r := n.as(t, "eve", "apple", "GET", "/x/list", "")
	if r.status != 200 || strings.Count(r.body, "\n") != lines {
		t.Fatalf("%d, %d lines", r.status, strings.Count(r.body, "\n"))
	}
	c := n.raw(t, "GET /x/list HTTP/1.1")
	fmt.Fprint(c, "\r\n")
	slots := func() int { return n.gate.Stats().Pools[0].InUse }
	until(t, "the slot", func() bool { return slots() == 1 })
	until(t, "the slot's release", func() bool { return slots() == 0 })
	rest, _ := io.ReadAll(c)
	if bytes.HasSuffix(rest, []byte("0\r\n\r\n")) {
		t.Error("a cut answer ends like a whole one")
	}
}

// What is read in several rounds is sent in pieces too, and a slow reader of it is given up.
func TestServer_LargeAnswersAreSentInPieces(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.Limits.WriteTime = 300 * time.Millisecond })
	r := n.as(t, "eve", "apple", "GET", "/x/large", "")
	if r.status != 200 || strings.Count(r.body, "\n") != largeLines {
		t.Fatalf("%d, %d lines", r.status, strings.Count(r.body, "\n"))
	}
	c := n.raw(t, "GET /x/large HTTP/1.1")
	fmt.Fprint(c, "\r\n")
	slots := func() int { return n.gate.Stats().Pools[0].InUse }
	until(t, "the slot", func() bool { return slots() == 1 })
	until(t, "the slot's release", func() bool { return slots() == 0 })
	rest, _ := io.ReadAll(c)
	if bytes.HasSuffix(rest, []byte("0\r\n\r\n")) {
		t.Error("a cut answer ends like a whole one")
	}
}

// A dialect that finds, when part of an answer is out, that it cannot be completed says so; nobody may take the part for all.
func TestServer_AnswerThatCannotBeCompletedBreaksTheConnection(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	req := n.request(t, "GET", "/x/torn", "")
	req.SetBasicAuth("eve", "apple")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("half an answer was taken for whole")
	}
	if r := n.as(t, "eve", "apple", "GET", "/x/large", ""); r.status != 200 {
		t.Errorf("the next answer: %d", r.status)
	}
}

func TestServer_StreamThatFailsBreaksTheConnection(t *testing.T) {
	n := newNode(t, &fakeExec{rows: func() *record.Rows {
		return record.StreamRows([]string{"a"}, []record.Type{record.TypeString}, &counter{n: 100_000, err: errors.New("disk")})
	}}, nil)
	req := n.request(t, "GET", "/x/list", "")
	req.SetBasicAuth("eve", "apple")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("half an answer was taken for whole")
	}
	few := newNode(t, &fakeExec{rows: func() *record.Rows {
		return record.StreamRows([]string{"a"}, []record.Type{record.TypeString}, &counter{n: 3, err: errors.New("disk")})
	}}, nil)
	if r := few.as(t, "eve", "apple", "GET", "/x/list", ""); r.status != 500 {
		t.Errorf("an error before the first byte: %d", r.status)
	}
}

// counter is a source of n rows, and then an error.
type counter struct {
	n   int
	row [1]record.Value
	err error
}

func (c *counter) Next() ([]record.Value, bool) {
	if c.n == 0 {
		return nil, false
	}
	c.n--
	c.row[0] = record.TextValue("0123456789")
	return c.row[:], true
}
func (c *counter) Err() error   { return c.err }
func (c *counter) Close() error { return nil }

func TestServer_FloodOfConnectionsGets429AndNothingElse(t *testing.T) {
	n := newNode(t, &fakeExec{work: func(ctx context.Context, _ *record.Op) *record.Error {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
		return nil
	}}, func(_ *Config, g *gate.Config, _ *auth.Config) {
		*g = gate.ServiceNow()
		g.Session = gate.SessionConfig{}
	})
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: time.Minute}
	var served, rejected, other atomic.Int64
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			req := n.request(t, "GET", "/x/thing", "")
			req.SetBasicAuth("eve", "apple")
			res, err := client.Do(req)
			if err != nil {
				other.Add(1)
				t.Error(err)
				return
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			switch {
			case res.StatusCode == 200:
				served.Add(1)
			case res.StatusCode == 429 && res.Header.Get("Retry-After") != "" && strings.Contains(string(body), `pool "api_int"`) && strings.Contains(string(body), "gate.pools.api_int.queue"):
				rejected.Add(1)
			default:
				other.Add(1)
				t.Errorf("%d %s", res.StatusCode, body)
			}
		})
	}
	wg.Wait()
	t.Logf("served %d, rejected %d", served.Load(), rejected.Load())
	if served.Load() < 54 || rejected.Load() == 0 || other.Load() != 0 {
		t.Errorf("served %d, rejected %d, other %d", served.Load(), rejected.Load(), other.Load())
	}
	if s := n.gate.Stats().Pools; s[0].InUse+s[1].InUse != 0 {
		t.Error("slots are still held")
	}
}

func TestServer_DrainUnderLoadLosesNothing(t *testing.T) {
	exec := &fakeExec{work: func(ctx context.Context, _ *record.Op) *record.Error {
		select {
		case <-time.After(5 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return record.Errorf(record.Canceled, "", "cut off")
		}
	}}
	n := newNode(t, exec, nil)
	var accepted, answered atomic.Int64
	begun := make(chan struct{})
	var once sync.Once
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for {
				req := n.request(t, "POST", "/x/thing", "abc")
				req.SetBasicAuth("eve", "apple")
				res, err := client.Do(req)
				if err != nil {
					// What the kernel refused was never accepted. An EOF would be a request taken and dropped.
					refused := []error{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE}
					if !slices.ContainsFunc(refused, func(e error) bool { return errors.Is(err, e) }) {
						t.Errorf("a request under way was lost: %v", err)
					}
					return
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != 200 || err != nil || string(body) != "POST by eve, 3 bytes" {
					t.Errorf("%d %q %v", res.StatusCode, body, err)
				}
				if answered.Add(1) > 100 {
					once.Do(func() { close(begun) })
				}
			}
		})
	}
	<-begun
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	accepted.Store(int64(n.serial.Load()))
	if accepted.Load() != answered.Load() {
		t.Errorf("%d requests accepted, %d answered", accepted.Load(), answered.Load())
	}
	if rows := len(exec.logged()); rows != int(accepted.Load()) {
		t.Errorf("%d requests, %d rows in the transaction log", accepted.Load(), rows)
	}
}

func TestServer_ReadyUntilItDrains(t *testing.T) {
	release := make(chan struct{})
	n := newNode(t, &fakeExec{work: func(context.Context, *record.Op) *record.Error { <-release; return nil }}, nil)
	for _, path := range []string{"/healthz", "/readyz"} {
		if r := n.do(t, n.request(t, "GET", path, "")); r.status != 200 || r.body != "ok\n" {
			t.Errorf("%s: %+v", path, r)
		}
	}
	// A probe that is connected before the drain still gets its answer.
	probe := n.raw(t, "GET /x/slow HTTP/1.1")
	fmt.Fprint(probe, "\r\n")
	until(t, "the slot", func() bool { return n.gate.Stats().Pools[0].InUse == 1 })
	stopped := make(chan error)
	go func() { stopped <- n.stop() }()
	until(t, "draining", n.Draining)
	w := &recorder{header: http.Header{}}
	n.ready(w, n.request(t, "GET", "/readyz", ""))
	if w.status != 503 || w.body.String() != "draining\n" {
		t.Errorf("draining: %d %q", w.status, w.body.String())
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if res, err := http.ReadResponse(bufio.NewReader(probe), nil); err != nil || res.StatusCode != 200 {
		t.Errorf("the request under way: %v %v", res, err)
	}
}

type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func TestServer_RateLimitNamesRuleLimitAndReset(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(_ *Config, g *gate.Config, _ *auth.Config) {
		g.Rates.Rules = []gate.RateRule{{ID: "r1", Match: gate.Match{Path: "/x/table"}, User: "ann", PerHour: 2}}
	})
	var last reply
	for range 3 {
		last = n.as(t, "ann", "pear", "GET", "/x/table/incident", "")
	}
	if last.status != 429 || last.body != "Rate limit of 2 requests per hour for Table API exceeded" || last.header.Get("Retry-After") == "" {
		t.Errorf("%+v", last)
	}
	for name, want := range map[string]string{"X-Ratelimit-Limit": "2", "X-Ratelimit-Rule": "r1"} {
		if got := last.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if r := n.as(t, "eve", "apple", "GET", "/x/table/incident", ""); r.status != 200 || r.header.Get("X-Ratelimit-Limit") != "" {
		t.Errorf("no rule: %+v", r)
	}
}

func TestServer_BatchCountsOnceAndItsItemsEachForTheirOwnRule(t *testing.T) {
	f := func(items bool, want ...string) {
		t.Helper()
		n := newNode(t, &fakeExec{}, func(_ *Config, g *gate.Config, _ *auth.Config) {
			g.Rates.Items = items
			g.Rates.Rules = []gate.RateRule{{ID: "a", Match: gate.Match{Path: "/x/a"}, PerHour: 1}, {ID: "batch", Match: gate.Match{Batch: true}, PerHour: 2}}
		})
		for i, w := range want {
			r := n.as(t, "ann", "pear", "POST", "/x/batch", "{}")
			if !strings.HasPrefix(r.body, w) || r.header.Get("X-Ratelimit-Rule") != "batch" {
				t.Errorf("items %t, batch %d: %d %s, want %s", items, i, r.status, r.body, w)
			}
		}
	}
	f(false, "2 items", "2 items", "Rate limit of 2 requests per hour for Batch API exceeded")
	reset := (time.Now().Unix()/3600 + 1) * 3600
	head := fmt.Sprintf(`2 items; /x/a [{"X-RateLimit-Limit" "1"} {"X-RateLimit-Reset" "%d"} {"X-RateLimit-Rule" "a"}`, reset)
	f(true, head+`] <nil>`, head+` {"Retry-After"`, "Rate limit of 2")
}

func TestServer_TransactionLogHasBatchItemsAsChildren(t *testing.T) {
	exec := &fakeExec{}
	n := newNode(t, exec, func(c *Config, _ *gate.Config, _ *auth.Config) { c.Log.Requests = "all" })
	r := n.as(t, "eve", "apple", "POST", "/x/batch?password=hush&q=1", "{}")
	if r.body != "2 items" {
		t.Fatalf("%+v", r)
	}
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	values := func(op record.Op) map[string]string {
		m := map[string]string{}
		for _, a := range op.Set {
			m[a.Field] = a.Value.Text()
		}
		return m
	}
	rows := exec.logged()
	if len(rows) != 3 {
		t.Fatalf("%d rows", len(rows))
	}
	batch, first, second := values(rows[0]), values(rows[1]), values(rows[2])
	if batch["type"] != "batch_rest" || batch["url"] != "/x/batch?password=***&q=1" || batch["sys_created_by"] != "eve" || batch["parent"] != "" {
		t.Errorf("batch: %v", batch)
	}
	if first["parent"] != batch["sys_id"] || first["url"] != "/x/a?token=***" || first["item_id"] != "1" {
		t.Errorf("first item: %v", first)
	}
	if second["item_id"] != "2\uFFFD" || second["response_time"] != "40" || second["sql_count"] != "3" {
		t.Errorf("second item: %v", second)
	}
	log := n.log.String()
	for _, want := range []string{`*** Start"`, `*** End"`, `type=batch_rest`, `api_name=x/batch`, `*** End batch item`, `response_status=200`, `user=eve`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, "hush") || strings.Contains(log, "abc") {
		t.Errorf("the log tells a secret: %s", log)
	}
}

func TestLog_RequestsAndItemsHaveALineAtStartAndEndInOrderOfTime(t *testing.T) {
	f := func(change func(*Log), want ...string) {
		t.Helper()
		n := newNode(t, &fakeExec{}, func(c *Config, _ *gate.Config, _ *auth.Config) { change(&c.Log) })
		n.as(t, "eve", "apple", "POST", "/x/batch", "{}")
		if err := n.stop(); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(n.log.String()) {
			_, msg, _ := strings.Cut(line, `msg="`)
			msg, rest, _ := strings.Cut(msg, `"`)
			_, id, _ := strings.Cut(rest, " id=")
			id, _, _ = strings.Cut(id, " ")
			got = append(got, strings.TrimSpace(msg+" "+strings.Trim(id, `"`)))
			if strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\n\r\x1b") {
				t.Errorf("a control character in %q", line)
			}
			if msg == "*** End" && !strings.Contains(rest, "excessive=true") {
				t.Errorf("not excessive: %s", line)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	// Item 1 takes 1 ms from the start, item 2 the 40 ms after it.
	items := []string{"*** Start batch item 1", "*** End batch item 1", "*** Start batch item 2\uFFFD", "*** End batch item 2\uFFFD"}
	f(func(l *Log) { l.Requests, l.Slow = "all", time.Nanosecond }, slices.Concat([]string{"*** Start"}, items, []string{"*** End"})...)
	f(func(l *Log) { l.Requests, l.Slow = "slow", time.Nanosecond }, append(items[:4:4], "*** End")...)
	f(func(l *Log) { l.Requests, l.Slow = "slow", time.Hour })
	f(func(l *Log) { l.Requests, l.Slow = "none", time.Nanosecond })
}

func TestTxLog_FullQueueLosesRowsAndCountsThem(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(c *Config, _ *gate.Config, _ *auth.Config) {
		c.TxLog.Queue, c.TxLog.Flush = 1, time.Hour
	})
	for range 3 {
		n.as(t, "eve", "apple", "GET", "/x/thing", "")
	}
	until(t, "the loss", func() bool { return n.tx.lost.Load() == 2 })
	if m := n.do(t, n.request(t, "GET", "/metrics", "")); !strings.Contains(m.body, "weir_transactions_lost_total 2") {
		t.Error("/metrics does not tell")
	}
}

func TestServer_MetricsTellOfRequestsGateAndLayers(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	n.as(t, "eve", "apple", "GET", "/x/thing", "")
	n.as(t, "eve", "wrong", "GET", "/x/thing", "")
	until(t, "both", func() bool { return n.metrics.running.Load() == 0 })
	m := n.do(t, n.request(t, "GET", "/metrics", "")).body
	for _, want := range []string{
		`weir_requests_total{class="2xx",dialect="fake"} 1`, `weir_requests_total{class="4xx",dialect="fake"} 1`,
		`weir_gate_slots{pool="default"} 128`, `weir_gate_waiting_high{pool="default"} 0`, `weir_gate_served_total{pool="default"} 1`,
		`weir_gate_rejected_total{limit="pool queue",pool="default"} 0`, `weir_layer_seconds_total{dialect="fake",layer="hub"}`,
		`weir_request_seconds_count{dialect="fake"} 2`, `process_resident_memory_bytes`,
	} {
		if !strings.Contains(m, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestServer_SelfSignedTLSServesHTTPSAndHSTS(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.TLS.Self = true })
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	req := n.request(t, "GET", "/x/thing", "")
	req.SetBasicAuth("eve", "apple")
	res, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.ProtoMajor != 2 || res.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%d HTTP/%d %v", res.StatusCode, res.ProtoMajor, res.Header)
	}
	for _, c := range res.Cookies() {
		if !c.Secure {
			t.Errorf("cookie %s is not Secure", c.Name)
		}
	}
}

func TestServer_TokenEndpointRefusesJSON(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	r := n.do(t, n.request(t, "POST", TokenPath, `{"grant_type":"password"}`, "Content-Type", "application/json"))
	var body struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal([]byte(r.body), &body); err != nil || r.status != 400 || body.Error != "invalid_request" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestServer_WhatFailsBeforeAnybodyIsKnownHasAnEnvelope(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if r := n.do(t, n.request(t, "GET", TokenPath, "", form...)); r.status != 405 || r.body == "" {
		t.Errorf("GET on the token endpoint: %+v", r)
	}
	if r := n.do(t, n.request(t, "POST", TokenPath, strings.Repeat("x", maxForm+1), form...)); r.status != 413 {
		t.Errorf("a large form: %+v", r)
	}
	n.o.Snapshot = func(context.Context) (*catalog.Snapshot, error) {
		return nil, record.Errorf(record.Unavailable, "", "the database is down")
	}
	if r := n.as(t, "eve", "apple", "GET", "/x/thing", ""); r.status != 503 || r.header.Get("X-Is-Logged-In") != "false" {
		t.Errorf("no definitions: %+v", r)
	}
}

func TestServer_BodyOfUnknownLengthIsBoundedToo(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.Limits.Body = 1 << 20 })
	for size, want := range map[int]int{0: 200, 5: 200, 1 << 20: 200, 1<<20 + 1: 413} {
		req := n.request(t, "POST", "/x/thing", "")
		req.Body, req.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("a", size))), -1
		req.SetBasicAuth("eve", "apple")
		r := n.do(t, req)
		if r.status != want || want == 200 && r.body != fmt.Sprintf("POST by eve, %d bytes", size) {
			t.Errorf("%d bytes: %d %s", size, r.status, r.body)
		}
	}
	until(t, "the bytes' release", func() bool { return n.gate.Stats().Bytes.Used == 0 })
}

func TestServer_WaitingBodiesStayWithinTheByteBudget(t *testing.T) {
	const size = 1 << 20
	release := make(chan struct{})
	n := newNode(t, &fakeExec{work: func(context.Context, *record.Op) *record.Error { <-release; return nil }}, func(_ *Config, g *gate.Config, _ *auth.Config) {
		g.Bytes.Limit = 4 * size
	})
	var wg sync.WaitGroup
	var served atomic.Int64
	for range 12 {
		wg.Go(func() {
			if r := n.as(t, "eve", "apple", "POST", "/x/thing", strings.Repeat("a", size)); r.status == 200 {
				served.Add(1)
			}
		})
	}
	until(t, "a full budget", func() bool { return n.gate.Stats().Bytes.Waiting == 8 })
	if used := n.gate.Stats().Bytes.Used; used > 4*size {
		t.Errorf("%d bytes are held", used)
	}
	close(release)
	wg.Wait()
	if s := n.gate.Stats().Bytes; served.Load() != 12 || s.MaxUsed > 4*size {
		t.Errorf("%d served, at most %d bytes held", served.Load(), s.MaxUsed)
	}
}

// slowly sends its parts one by one, each when it is asked for.
type slowly struct{ next chan string }

func (s slowly) Read(b []byte) (int, error) {
	part, ok := <-s.next
	if !ok {
		return 0, io.EOF
	}
	return copy(b, part), nil
}

func TestServer_BodyOfUnknownLengthCountsWhatItTakes(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(_ *Config, g *gate.Config, _ *auth.Config) { g.Bytes.Limit = 1 << 20 })
	held := func() int64 { return n.gate.Stats().Bytes.Used }
	body := slowly{make(chan string)}
	done := make(chan reply)
	go func() {
		req := n.request(t, "POST", "/x/thing", "")
		req.Body, req.ContentLength = io.NopCloser(body), -1
		req.SetBasicAuth("eve", "apple")
		done <- n.do(t, req)
	}()
	const size = int64(len(page{}))
	body.next <- "a"
	until(t, "the first buffer", func() bool { return held() == firstRead })
	for range 5 {
		body.next <- strings.Repeat("a", 16<<10)
	}
	until(t, "two pages", func() bool { return held() == firstRead+2*size })
	close(body.next)
	if r := <-done; r.body != "POST by eve, 81921 bytes" {
		t.Errorf("%+v", r)
	}
	until(t, "the end", func() bool { return held() == 0 })
	// What is read into pages is joined, so a body has twice its size for a moment: what can never have it is told so.
	req := n.request(t, "POST", "/x/thing", "")
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("a", 600<<10))), -1
	req.SetBasicAuth("eve", "apple")
	if r := n.do(t, req); r.status != 413 || !strings.Contains(r.body, "gate.bytes.limit") {
		t.Errorf("%+v", r)
	}
	if s := n.gate.Stats().Bytes; s.MaxUsed > 1<<20 {
		t.Errorf("%d bytes were held", s.MaxUsed)
	}
}

func TestServer_AnswersCountAgainstTheByteBudget(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	a := &wire.Answer{Body: make([]byte, 0, 1<<20)}
	v := &Visit{s: n.Server}
	v.count(a)
	if used := n.gate.Stats().Bytes.Used; used != 1<<20 {
		t.Errorf("an answer without a body before it: %d", used)
	}
	v.hold.Release()
	v.hold = n.gate.Bytes.Take(5 << 20)
	v.count(a)
	if used := n.gate.Stats().Bytes.Used; used != 1<<20 {
		t.Errorf("an answer in place of a body: %d", used)
	}
	v.hold.Release()
}

func TestServer_RevokedTokensAreGoneByGetAndPostAndNotInTheLog(t *testing.T) {
	n := newNode(t, &fakeExec{}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.Log.Requests = "all" })
	if r := n.do(t, n.request(t, "GET", RevokePath+"?token=hush", "")); r.status != 200 || r.body != "" {
		t.Errorf("GET: %+v", r)
	}
	if r := n.do(t, n.request(t, "POST", RevokePath, "token=hush", "Content-Type", "application/x-www-form-urlencoded")); r.status != 200 {
		t.Errorf("POST: %+v", r)
	}
	if r := n.do(t, n.request(t, "DELETE", RevokePath+"?token=hush", "")); r.status != 405 {
		t.Errorf("DELETE: %+v", r)
	}
	if r := n.do(t, n.request(t, "GET", RevokePath, "")); r.status != 400 || !strings.Contains(r.body, "invalid_request") {
		t.Errorf("no token: %+v", r)
	}
	if strings.Contains(n.log.String(), "hush") {
		t.Error("the log tells the token")
	}
}

func TestGatePage_ListsPoolsWithTheRequestsInTheirSlots(t *testing.T) {
	release := make(chan struct{})
	n := newNode(t, &fakeExec{work: func(context.Context, *record.Op) *record.Error { <-release; return nil }}, func(_ *Config, g *gate.Config, _ *auth.Config) {
		g.Pools["default"] = gate.PoolConfig{Slots: 2, Queue: 5, Wait: time.Minute}
		g.Session = gate.SessionConfig{}
	})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { n.as(t, "ann", "pear", "GET", "/x/thing?token=hush&q=1", "") })
	}
	until(t, "two in their slots and one waiting", func() bool { p := n.gate.Stats().Pools[0]; return p.InUse == 2 && p.Waiting == 1 })
	r := n.as(t, "eve", "apple", "GET", GatePath, "") // no slot is free, and it answers
	var page gatePage
	if err := json.Unmarshal([]byte(r.body), &page); err != nil || r.status != 200 {
		t.Fatalf("%d %s: %v", r.status, r.body, err)
	}
	if p := page.Pools[0]; p.Name != "default" || p.Slots != 2 || p.InUse != 2 || p.MaxInUse != 2 || p.Queue != 5 || p.Waiting != 1 || p.MaxWaiting != 1 {
		t.Errorf("%+v", p)
	}
	list := page.Pools[0].Requests
	if len(list) != 2 {
		t.Fatalf("%d requests run: %s", len(list), r.body)
	}
	for _, q := range list {
		if q.Session == "" || len(q.Transaction) != 12 || q.Number == 0 || q.User != "ann" || q.Method != "GET" || q.URL != "/x/thing?token=***&q=1" || q.Age <= 0 {
			t.Errorf("%+v", q)
		}
	}
	if list[0].Age < list[1].Age || string(page.Settings) != `{"a":1}` {
		t.Errorf("not the oldest first, or other settings: %s", r.body)
	}
	close(release)
	wg.Wait()
	r = n.as(t, "eve", "apple", "GET", GatePath, "")
	page = gatePage{}
	if err := json.Unmarshal([]byte(r.body), &page); err != nil || len(page.Pools[0].Requests) != 0 || page.Pools[0].Served != 3 {
		t.Errorf("afterwards: %s", r.body)
	}
}

func TestGatePage_IsForAdministratorsAndChangesNeedAProof(t *testing.T) {
	n := newNode(t, &fakeExec{}, nil)
	const patch = `{"session":{"running":3}}`
	f := func(want int, user, password, method, body string, headers ...string) {
		t.Helper()
		req := n.request(t, method, GatePath, body, headers...)
		if user != "" {
			req.SetBasicAuth(user, password)
		}
		if r := n.do(t, req); r.status != want {
			t.Errorf("%s %s by %q %v: %d %s, want %d", method, GatePath, user, headers, r.status, r.body, want)
		}
	}
	merge := []string{"Content-Type", "application/merge-patch+json"}
	f(401, "", "", "GET", "")
	f(401, "", "", "PATCH", patch, merge...)
	f(403, "ann", "pear", "GET", "")
	f(403, "ann", "pear", "PATCH", patch, merge...)
	f(405, "eve", "apple", "DELETE", "")
	f(415, "eve", "apple", "PATCH", patch, "Content-Type", "text/plain")
	f(403, "eve", "apple", "PATCH", patch, append(merge, "Sec-Fetch-Site", "cross-site")...)
	f(400, "eve", "apple", "PATCH", "session: {running: 3}", merge...)
	f(413, "eve", "apple", "PATCH", strings.Repeat(" ", maxForm+1), merge...)
	if len(n.patches) != 0 {
		t.Errorf("changed by %q", n.patches)
	}
	f(200, "eve", "apple", "PATCH", patch, merge...)
	if !slices.Equal(n.patches, []string{patch}) {
		t.Errorf("changed by %q", n.patches)
	}
	if log := n.log.String(); !strings.Contains(log, "the gate's settings were changed") || !strings.Contains(log, "user=eve") {
		t.Errorf("the log does not tell: %s", log)
	}
}
