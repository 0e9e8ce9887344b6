package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/gate"
	"weir/internal/record"
	"weir/internal/store/sqlite"
	"weir/internal/wire"
)

// entrance is a dialect with paths /e/WAYS/ROLE: ways with + between, "public" or "any"; ROLE "-" is none. Its endpoints are SQL ones.
type entrance struct{ fakeDialect }

var _ dialect.Issuer = entrance{}

func (entrance) IsToken(path string) bool { return path == "/e/oauth/token" }

func (entrance) EntryOf(_ *catalog.Snapshot, c *dialect.Call) dialect.Entry {
	parts := strings.Split(c.Path, "/")
	e := dialect.Entry{Challenges: []string{`Bearer realm="e"`, `Basic realm="e"`}}
	switch parts[2] {
	case "public":
		e.Public = true
	case "any":
	default:
		e.Ways = dialect.WaysOf(strings.Split(parts[2], "+"))
	}
	return e
}

func (entrance) Decode(_ *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	op := record.Op{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: c.Path, SQL: &record.SQLCall{}}}
	if strings.HasSuffix(c.Path, "table") {
		op = record.Op{Verb: record.Get, Table: "t"}
	}
	_, to, forwards := strings.Cut(c.RawQuery, "to=")
	next := func([]record.Outcome) (*dialect.Exchange, error) {
		if !forwards {
			return nil, nil
		}
		forwards = false
		other := *c
		other.Path, other.RawQuery = to, ""
		return entrance{}.Decode(nil, &other)
	}
	return &dialect.Exchange{Ops: []record.Op{op}, Next: next, Reply: func(out []record.Outcome, a *wire.Answer) {
		if out[0].Err != nil {
			fakeDialect{}.Fail(c, out[0].Err, a)
			return
		}
		a.Status = 200
		a.Body = fmt.Appendf(a.Body, "%s %v", c.Actor.Name, c.Actor.Roles)
	}}, nil
}

// sqlRunner does what the runner of SQL endpoints does of roles and logins.
type sqlRunner struct {
	fakeExec
	logins []record.Login
}

func (r *sqlRunner) run(u *record.Unit) record.Outcome {
	op := &u.Ops[0]
	if op.Verb != record.Invoke {
		return record.Outcome{}
	}
	parts := strings.Split(op.Invoke.Endpoint, "/")
	actor := &u.Actors[op.Actor]
	if l := op.Invoke.SQL.Login; l != nil {
		r.logins = append(r.logins, *l)
		if *l != (record.Login{User: "scott", Password: "tiger"}) {
			return record.Outcome{Err: record.Errorf(record.Unauthenticated, "", "wrong user or password")}
		}
	}
	if parts[3] != "-" && !actor.Has(parts[3]) {
		return record.Outcome{Err: record.Errorf(record.Forbidden, "", "not allowed")}
	}
	return record.Outcome{}
}

func (r *sqlRunner) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	if u.Actors[0].System {
		return r.fakeExec.Execute(ctx, snap, u)
	}
	return []record.Outcome{r.run(u)}
}

func (r *sqlRunner) Stream(_ context.Context, _ *catalog.Snapshot, u *record.Unit) record.Outcome {
	return r.run(u)
}

// allWays are the ways in paths.
var allWays = []string{"public", "any", "basic", "oauth", "header", "database", "basic+oauth", "oauth+database", "basic+header"}

// newEntrance is a node with users clerk (who has that role) and ann, a client of each, database users with the role reader, and a gateway at from.
func newEntrance(t *testing.T, from string, change func(*Config, *auth.Config)) (*node, *sqlRunner) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "auth.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	acfg := auth.Defaults()
	acfg.Users = []auth.StaticUser{{Name: "clerk", Password: "plum", Roles: []string{"clerk"}}, {Name: "ann", Password: "pear"}}
	acfg.Clients = []auth.StaticClient{{ID: "c1", Secret: "one", User: "clerk"}, {ID: "c2", Secret: "two", User: "ann"}, {ID: "c3", Secret: "three"}}
	acfg.Trusted = auth.Trusted{Header: "X-Remote-User", Roles: "X-Remote-Roles", From: []string{from}}
	cfg := Defaults()
	if change != nil {
		change(&cfg, &acfg)
	}
	a, err := auth.New(acfg, auth.Options{Data: db})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	logins := auth.NewLogins(acfg, []string{"reader"})
	t.Cleanup(logins.Close)
	var defs catalog.Definitions
	for _, ways := range allWays {
		for _, role := range []string{"-", "clerk"} {
			e := catalog.EndpointDef{Name: "/e/" + ways + "/" + role, Path: "/e/" + ways + "/" + role, Public: ways == "public", SQL: &catalog.SQLDef{}}
			if ways != "any" && ways != "public" {
				e.SQL.Auth = strings.Split(ways, "+")
			}
			defs.Endpoints = append(defs.Endpoints, e)
		}
	}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	runner := &sqlRunner{}
	n := newNodeWith(t, &runner.fakeExec, func(o *Options) {
		o.Auth, o.Exec, o.Logins = a, runner, logins
		o.Config.Trusted, o.Config.TLS = acfg.Trusted, cfg.TLS
		o.Snapshot = func(context.Context) (*catalog.Snapshot, error) { return snap, nil }
		o.Mux.Handle("/e/", entrance{})
	}, func(c *Config, _ *gate.Config, _ *auth.Config) { c.TLS, c.Log.Requests = cfg.TLS, "all" })
	return n, runner
}

// token gets a client's token.
func (n *node) token(t *testing.T, client, secret string) string {
	t.Helper()
	r := n.as(t, client, secret, "POST", "/e/oauth/token", "grant_type=client_credentials", "Content-Type", "application/x-www-form-urlencoded")
	_, rest, _ := strings.Cut(r.body, `{"access_token":"`)
	token, rest, _ := strings.Cut(rest, `"`)
	if r.status != 200 || rest != `,"token_type":"bearer","expires_in":3600}` {
		t.Fatalf("token of %s: %d %s", client, r.status, r.body)
	}
	return token
}

// TestEntrance_WhoMayReachWhat is the table of all combinations: how an endpoint takes its callers, with and without a role, and who calls.
func TestEntrance_WhoMayReachWhat(t *testing.T) {
	near, _ := newEntrance(t, "127.0.0.0/8", nil)
	far, _ := newEntrance(t, "10.0.0.0/8", nil)
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Add(pairs[i], pairs[i+1])
			}
		}
	}
	callers := []struct {
		name   string
		way    dialect.Way // in which it proves who it is, 0: not at all
		shows  bool        // something that is wrong where it is looked at
		n      *node
		prove  func(*http.Request)
		answer string // of who is let in
		clerk  bool
	}{
		{"nobody", 0, false, near, func(*http.Request) {}, "guest []", false},
		{"wrong password", 0, true, near, basic("clerk", "pear"), "", false},
		{"unknown user", 0, true, near, basic("bob", "pear"), "", false},
		{"wrong token", 0, true, near, header("Authorization", "Bearer x"), "", false},
		{"user with role", dialect.ByBasic, true, near, basic("clerk", "plum"), "clerk [clerk]", true},
		{"user without role", dialect.ByBasic, true, near, basic("ann", "pear"), "ann []", false},
		{"token with role", dialect.ByBearer, true, near, header("Authorization", "Bearer "+near.token(t, "c1", "one")), "clerk [clerk]", true},
		{"token without role", dialect.ByBearer, true, near, header("Authorization", "Bearer "+near.token(t, "c2", "two")), "ann []", false},
		{"database user", dialect.ByDatabase, true, near, basic("scott", "tiger"), "scott [reader]", false},
		{"gateway", dialect.ByGateway, true, near, header("X-Remote-User", "clerk"), "clerk [clerk]", true},
		{"gateway that gives roles", dialect.ByGateway, true, near, header("X-Remote-User", "ann", "X-Remote-Roles", "x, clerk"), "ann [x clerk]", true},
		{"gateway that takes roles", dialect.ByGateway, true, near, header("X-Remote-User", "clerk", "X-Remote-Roles", ""), "clerk []", false},
		{"gateway, unknown user", 0, true, near, header("X-Remote-User", "bob"), "", false},
		{"gateway, two users", 0, true, near, header("X-Remote-User", "clerk", "X-Remote-User", "ann"), "", false},
		{"gateway that says nobody", 0, false, near, header("X-Remote-User", ""), "guest []", false},
		{"header from elsewhere", 0, false, far, header("X-Remote-User", "clerk", "X-Remote-Roles", "admin"), "guest []", false},
	}
	for _, c := range callers {
		for _, role := range []string{"-", "clerk"} {
			for _, ways := range allWays {
				var e dialect.Entry
				if ways != "any" && ways != "public" {
					e.Ways = dialect.WaysOf(strings.Split(ways, "+"))
				}
				want := 401
				switch {
				case c.way != 0 && e.Takes(c.way):
					want = 200
				case ways == "public" && !c.shows:
					want = 200
				}
				if want == 200 && role == "clerk" && !c.clerk {
					want = 403
				}
				req := c.n.request(t, "GET", "/e/"+ways+"/"+role, "")
				c.prove(req)
				r := c.n.do(t, req)
				if r.status != want || want == 200 && r.body != c.answer {
					t.Errorf("%s at %s with role %s: %d %s, want %d %s", c.name, ways, role, r.status, r.body, want, c.answer)
				}
				if challenges := r.header.Values("WWW-Authenticate"); want == 401 && !slices.Equal(challenges, []string{`Bearer realm="e"`, `Basic realm="e"`}) {
					t.Errorf("%s at %s: %q", c.name, ways, challenges)
				}
			}
		}
	}
}

func TestEntrance_DatabaseLoginsAreCountedWhenWrongAndNeverKept(t *testing.T) {
	n, runner := newEntrance(t, "10.0.0.0/8", func(_ *Config, a *auth.Config) { a.GuessesPerUser = 3 })
	get := func(user, password, path string) reply { return n.as(t, user, password, "GET", path, "") }
	for range 10 { // right ones do not count
		if r := get("scott", "tiger", "/e/database/-"); r.status != 200 {
			t.Fatalf("%+v", r)
		}
	}
	for range 3 {
		if r := get("scott", "Tr0ub4dor&3", "/e/database/-"); r.status != 401 {
			t.Fatalf("%+v", r)
		}
	}
	before := len(runner.logins)
	for _, password := range []string{"Tr0ub4dor&3", "tiger"} {
		if r := get("scott", password, "/e/database/-"); r.status != 429 || r.header.Get("Retry-After") != "60" {
			t.Errorf("after too many guesses: %+v", r)
		}
	}
	if len(runner.logins) != before {
		t.Error("a guess too many reached the database")
	}
	if r := get("adams", "wood", "/e/database/table"); r.status != 401 || len(runner.logins) != before {
		t.Errorf("a database user reads a table as weir: %+v", r)
	}
	if err := n.stop(); err != nil {
		t.Fatal(err)
	}
	everything := n.log.String()
	for _, op := range runner.inserted {
		everything += fmt.Sprintf("%+v", op)
	}
	if !strings.Contains(everything, "scott") {
		t.Error("the log does not say who called")
	}
	for _, secret := range []string{"tiger", "Tr0ub4dor", "wood", "c2NvdHQ6"} {
		if strings.Contains(everything, secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
	if said := fmt.Sprintf("%v %+v %#v", runner.logins[0], &runner.logins[0], runner.logins); strings.Contains(said, "tiger") {
		t.Errorf("a login prints its password: %s", said)
	}
}

func TestEntrance_TokenEndpointSpeaksRFC6749(t *testing.T) {
	n, _ := newEntrance(t, "10.0.0.0/8", nil)
	const form = "application/x-www-form-urlencoded"
	f := func(user, secret, body, kind string, status int, want string) {
		t.Helper()
		req := n.request(t, "POST", "/e/oauth/token", body, "Content-Type", kind)
		if user != "" {
			req.SetBasicAuth(user, secret)
		}
		r := n.do(t, req)
		if r.status != status || r.body != want {
			t.Errorf("%s %q: %d %s, want %d %s", user, body, r.status, r.body, status, want)
		}
		if challenged := r.header.Get("WWW-Authenticate") != ""; challenged != (status == 401 && user != "") {
			t.Errorf("%s %q: WWW-Authenticate %q", user, body, r.header.Get("WWW-Authenticate"))
		}
	}
	const invalid = `{"error":"invalid_client"}`
	f("c1", "wrong", "grant_type=client_credentials", form, 401, invalid)
	f("nobody", "one", "grant_type=client_credentials", form, 401, invalid)
	f("", "", "grant_type=client_credentials&client_id=c1&client_secret=wrong", form, 401, invalid)
	f("", "", "grant_type=client_credentials", form, 401, invalid)
	f("c1", "one", "", form, 400, `{"error":"invalid_request"}`)
	f("c1", "one", "grant_type=client_credentials&client_id=c2", form, 400, `{"error":"invalid_request"}`)
	f("c1", "one", `{"grant_type":"client_credentials"}`, "application/json", 400, `{"error":"invalid_request"}`)
	f("c1", "one", "grant_type=password&username=ann&password=pear", form, 400, `{"error":"unsupported_grant_type"}`)
	f("c3", "three", "grant_type=client_credentials", form, 400, `{"error":"unauthorized_client"}`)
	if r := n.as(t, "c1", "one", "GET", "/e/oauth/token", ""); r.status != 405 {
		t.Errorf("GET: %+v", r)
	}
	if r := n.as(t, "c1", "one", "POST", "/e/oauth/token", strings.Repeat("x", maxForm+1), "Content-Type", form); r.status != 413 {
		t.Errorf("a large form: %d %s", r.status, r.body)
	}
	if a, b := n.token(t, "c1", "one"), n.token(t, "c1", "one"); a != b {
		t.Error("a client that asks again gets another token")
	}
}

// TestEntrance_GatewayByCertificate has a gateway that is believed for its certificate.
func TestEntrance_GatewayByCertificate(t *testing.T) {
	ca, caKey := certificate(t, "ca", nil, nil)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	other, otherKey := certificate(t, "other", nil, nil)
	n, _ := newEntrance(t, "127.0.0.0/8", func(c *Config, a *auth.Config) {
		c.TLS = TLS{Self: true, ClientCA: file}
		a.Trusted.Certs = []string{"edge"}
	})
	f := func(name string, by *x509.Certificate, key *ecdsa.PrivateKey, want int) {
		t.Helper()
		client := &tls.Config{InsecureSkipVerify: true}
		if name != "" {
			cert, own := certificate(t, name, by, key)
			client.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: own}}
		}
		transport := &http.Transport{TLSClientConfig: client}
		defer transport.CloseIdleConnections()
		res, err := transport.RoundTrip(n.request(t, "GET", "/e/any/clerk", "", "X-Remote-User", "clerk"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", name, res.StatusCode, want)
		}
	}
	f("edge", ca, caKey, 200)
	f("someone", ca, caKey, 401)
	f("", nil, nil, 401)
	f("edge", other, otherKey, 401) // of another authority
}

func certificate(t *testing.T, name string, by *x509.Certificate, byKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: by == nil,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if by == nil {
		by, byKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, byKey)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c, key
}

// TestEntrance_TheSecondLookIsAtWhatTheCallTurnedOutToBe has a dialect whose heads say less than its calls do, and endpoints that forward.
func TestEntrance_TheSecondLookIsAtWhatTheCallTurnedOutToBe(t *testing.T) {
	n, runner := newEntrance(t, "10.0.0.0/8", nil)
	f := func(path, user, password string, want int) {
		t.Helper()
		req := n.request(t, "GET", path, "")
		if user != "" {
			req.SetBasicAuth(user, password)
		}
		if r := n.do(t, req); r.status != want {
			t.Errorf("%s as %q: %d %s, want %d", path, user, r.status, r.body, want)
		}
	}
	f("/e/public/-?to=/e/any/-", "", "", 401)
	f("/e/public/-?to=/e/public/clerk", "", "", 403) // it is asked what else it asks for
	f("/e/public/-?to=table", "", "", 401)
	f("/e/any/-?to=/e/oauth/-", "ann", "pear", 401)
	f("/e/any/-?to=/e/database/-", "ann", "pear", 401)
	f("/e/any/-?to=/e/basic/-", "ann", "pear", 200)
	before := len(runner.logins)
	f("/e/database/-?to=/e/oauth+database/-", "scott", "tiger", 200)
	if len(runner.logins) != before+2 {
		t.Errorf("%d logins for an endpoint that forwards", len(runner.logins)-before)
	}
	f("/e/database/-?to=table", "scott", "tiger", 401)
}
