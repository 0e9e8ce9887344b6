package auth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a database with users, on which several nodes may stand.
type site struct {
	snap *catalog.Snapshot
	db   *sqlite.Store
}

func newSite(t *testing.T) *site {
	t.Helper()
	text := func(n string) catalog.FieldDef { return catalog.FieldDef{Name: n, Type: "string"} }
	ref := func(n, to string) catalog.FieldDef {
		return catalog.FieldDef{Name: n, Type: "reference", Reference: to}
	}
	snap, err := catalog.Build(1, catalog.Definitions{Tables: []catalog.TableDef{
		{Name: "sys_user", Fields: []catalog.FieldDef{text("user_name"), {Name: "active", Type: "boolean"}, {Name: "locked_out", Type: "boolean"}, {Name: "user_password", Type: "password"}}},
		{Name: "sys_user_role", Fields: []catalog.FieldDef{text("name")}},
		{Name: "sys_user_group", Fields: []catalog.FieldDef{text("name")}},
		{Name: "sys_user_has_role", Fields: []catalog.FieldDef{ref("user", "sys_user"), ref("role", "sys_user_role"), text("state")}},
		{Name: "sys_user_grmember", Fields: []catalog.FieldDef{ref("user", "sys_user"), ref("group", "sys_user_group")}},
		{Name: "sys_group_has_role", Fields: []catalog.FieldDef{ref("group", "sys_user_group"), ref("role", "sys_user_role")}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "auth.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	plan, err := db.Schema().Plan(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Schema().Apply(t.Context(), plan.Additive); err != nil {
		t.Fatal(err)
	}
	s := &site{snap: snap, db: db}
	s.insert(t, "sys_user_role", "sys_id name", "r1 admin", "r2 itil", "r3 ess", "r4 old")
	s.insert(t, "sys_user_group", "sys_id name", "g1 desk")
	s.insert(t, "sys_user", "sys_id user_name active locked_out", "u1 eve true false", "u2 ann true false", "u3 gone false false", "u4 shut true true")
	s.insert(t, "sys_user_has_role", "sys_id user role state", "h1 u1 r1 active", "h2 u2 r3 active", "h3 u2 r4 inactive")
	s.insert(t, "sys_user_grmember", "sys_id user group", "m1 u2 g1")
	s.insert(t, "sys_group_has_role", "sys_id group role", "x1 g1 r2")
	for user, password := range map[string]string{"u1": "apple", "u2": "pear", "u3": "plum", "u4": "fig"} {
		s.password(t, user, password, 1)
	}
	return s
}

// insert writes rows of words.
func (s *site) insert(t *testing.T, table, fields string, rows ...string) {
	t.Helper()
	tab, err := s.snap.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	set := &store.InsertSet{Table: tab, Fields: strings.Fields(fields)}
	for _, row := range rows {
		var values []record.Value
		for i, word := range strings.Fields(row) {
			v, err := record.Parse(tab.Field(set.Fields[i]).Type, word)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, v)
		}
		set.Rows = append(set.Rows, values)
	}
	s.write(t, func(tx store.Tx) error { _, err := tx.Insert(t.Context(), set); return err })
}

func (s *site) write(t *testing.T, f func(store.Tx) error) {
	t.Helper()
	tx, err := s.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := f(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// password gives a user a password, as a write of the password field does.
func (s *site) password(t *testing.T, user, password string, version int64) {
	t.Helper()
	hash, err := Hash(password)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := catalog.System().Table("secret")
	if err != nil {
		t.Fatal(err)
	}
	text := record.TextValue
	key := []record.Value{text("sys_user.user_password"), text(user)}
	s.write(t, func(tx store.Tx) error {
		if _, err := tx.Delete(t.Context(), &store.DeleteSet{Table: tab, Keys: [][]record.Value{key}}); err != nil {
			return err
		}
		_, err := tx.Insert(t.Context(), &store.InsertSet{
			Table: tab, Fields: []string{"owner", "key", "hash", "version"},
			Rows: [][]record.Value{{key[0], key[1], text(hash), record.IntValue(version)}},
		})
		return err
	})
}

// clock is a time that tests move.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(c.at.Load(), 0) }

type nodeAuth struct {
	*Auth
	site   *site
	clock  *clock
	hashed atomic.Int64 // permits taken
}

func (s *site) node(t *testing.T, change func(*Config)) *nodeAuth {
	t.Helper()
	n := &nodeAuth{site: s, clock: &clock{}}
	n.clock.at.Store(1_800_000_000)
	cfg := Defaults()
	cfg.Clients = []StaticClient{{ID: "app", Secret: "s3cret", User: "ann"}, {ID: "narrow", Secret: "s3cret", Grants: []string{"password"}}}
	if change != nil {
		change(&cfg)
	}
	var err error
	n.Auth, err = New(cfg, Options{Data: s.db, Now: n.clock.now, Permit: func(context.Context, string) (func(), error) {
		n.hashed.Add(1)
		return func() {}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

func request(headers ...string) *http.Request {
	r := httptest.NewRequest("GET", "http://127.0.0.1/api/now/table/incident", nil)
	r.RemoteAddr = "127.0.0.1:5555"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func basic(user, password string) *http.Request {
	r := request()
	r.SetBasicAuth(user, password)
	return r
}

func (n *nodeAuth) kind(t *testing.T, r *http.Request) record.Kind {
	t.Helper()
	_, err := n.Identify(t.Context(), n.site.snap, r)
	if err == nil {
		return record.NumKinds
	}
	return record.KindOf(err)
}

const signedIn = record.NumKinds

func TestIdentify_UsersComeWithRolesOfTheirOwnAndOfTheirGroups(t *testing.T) {
	n := newSite(t).node(t, nil)
	id, err := n.Identify(t.Context(), n.site.snap, basic("ann", "pear"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record.Actor{Key: "u2", Name: "ann", Roles: []string{"ess", "itil"}}, id.Actor); diff != "" {
		t.Error(diff)
	}
	for name, r := range map[string]*http.Request{
		"wrong password": basic("ann", "apple"), "unknown": basic("bob", "pear"), "inactive": basic("gone", "plum"),
		"locked": basic("shut", "fig"), "empty": basic("ann", ""), "nul": basic("ann\x00", "pear"), "nobody": request(),
		"long": basic("ann", strings.Repeat("x", 2000)),
	} {
		if got := n.kind(t, r); got != record.Unauthenticated {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestIdentify_VerifiedCredentialIsHashedOnceAndAgainAfterAChange(t *testing.T) {
	s := newSite(t)
	n := s.node(t, nil)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got := n.kind(t, basic("ann", "pear")); got != signedIn {
				t.Error(got)
			}
		})
	}
	wg.Wait()
	if got := n.hashed.Load(); got != 1 {
		t.Errorf("50 calls of one credential were hashed %d times", got)
	}
	s.password(t, "u2", "grape", 2)
	n.Forget() // what Watch brings about on every node
	if got := n.kind(t, basic("ann", "pear")); got != record.Unauthenticated {
		t.Errorf("the old password: %v", got)
	}
	if got := n.kind(t, basic("ann", "grape")); got != signedIn {
		t.Errorf("the new password: %v", got)
	}
}

func TestSession_HoldsOnEveryNodeUntilItEndsOrThePasswordChanges(t *testing.T) {
	s := newSite(t)
	one, two := s.node(t, nil), s.node(t, nil)
	id, err := one.Identify(t.Context(), s.snap, basic("ann", "pear"))
	if err != nil || len(id.Cookies) != 3 {
		t.Fatalf("%+v %v", id, err)
	}
	visit := func() *http.Request {
		r := request()
		for _, c := range id.Cookies {
			r.AddCookie(c)
		}
		return r
	}
	other, err := two.Identify(t.Context(), s.snap, visit())
	if err != nil || other.Session != id.Session || other.Actor.Name != "ann" || other.Method != "cookie" {
		t.Fatalf("on the other node: %+v %v", other, err)
	}
	two.clock.at.Add(int64(20 * time.Minute / time.Second))
	renewed, err := two.Identify(t.Context(), s.snap, visit())
	if err != nil || len(renewed.Cookies) != 3 || renewed.Session != id.Session {
		t.Fatalf("after more than half its time: %+v %v", renewed, err)
	}
	two.clock.at.Add(int64(20 * time.Minute / time.Second))
	if got := two.kind(t, visit()); got != record.Unauthenticated {
		t.Errorf("after its end: %v", got)
	}
	s.password(t, "u2", "grape", 2)
	one.Forget()
	if got := one.kind(t, visit()); got != record.Unauthenticated {
		t.Errorf("after a change of password: %v", got)
	}
}

func (n *nodeAuth) ask(t *testing.T, form string) (int, map[string]any) {
	t.Helper()
	r := request("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
	a, err := n.Token(t.Context(), n.site.snap, r, []byte(form))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		t.Fatal(err)
	}
	return a.Status, body
}

func TestToken_GrantsAndTheirErrors(t *testing.T) {
	n := newSite(t).node(t, nil)
	const app = "client_id=app&client_secret=s3cret&grant_type="
	status, first := n.ask(t, app+"password&username=ann&password=pear")
	if status != 200 || first["token_type"] != "Bearer" || first["scope"] != "useraccount" || first["expires_in"] != 1800.0 {
		t.Fatalf("%d %v", status, first)
	}
	access, refresh := first["access_token"].(string), first["refresh_token"].(string)
	id, err := n.Identify(t.Context(), n.site.snap, request("Authorization", "Bearer "+access))
	if err != nil || id.Actor.Name != "ann" || len(id.Cookies) != 0 {
		t.Fatalf("bearer: %+v %v", id, err)
	}
	n.clock.at.Add(60)
	if _, again := n.ask(t, app+"password&username=ann&password=pear"); again["access_token"] != access || again["expires_in"] != 1740.0 {
		t.Errorf("asking again: %v", again)
	}
	if got := n.kind(t, request("Authorization", "Bearer "+refresh)); got != record.Unauthenticated {
		t.Errorf("a refresh token as access token: %v", got)
	}
	n.clock.at.Add(1800)
	if got := n.kind(t, request("Authorization", "Bearer "+access)); got != record.Unauthenticated {
		t.Errorf("an old token: %v", got)
	}
	status, second := n.ask(t, app+"refresh_token&refresh_token="+refresh)
	if status != 200 || second["access_token"] == access || second["refresh_token"] != refresh {
		t.Fatalf("refresh: %d %v", status, second)
	}
	if got := n.kind(t, request("Authorization", "Bearer "+second["access_token"].(string))); got != signedIn {
		t.Errorf("the new token: %v", got)
	}
	status, machine := n.ask(t, app+"client_credentials")
	if status != 200 || machine["refresh_token"] != nil {
		t.Errorf("client credentials: %d %v", status, machine)
	}
	f := func(form string, status int, code string) {
		t.Helper()
		got, body := n.ask(t, form)
		if got != status || body["error"] != code || body["error_description"] == "" {
			t.Errorf("%s: %d %v, want %d %s", form, got, body, status, code)
		}
	}
	f(app+"password&username=ann&password=wrong", 401, "server_error")
	f(app+"password&username=gone&password=plum", 401, "server_error")
	f("client_id=app&client_secret=no&grant_type=password", 401, "invalid_client")
	f("client_id=nope&client_secret=s3cret&grant_type=password", 401, "invalid_client")
	f("grant_type=password", 401, "invalid_client")
	f(app+"refresh_token&refresh_token="+access, 401, "invalid_grant")
	f("client_id=narrow&client_secret=s3cret&grant_type=refresh_token&refresh_token="+refresh, 400, "unauthorized_client")
	f(app+"implicit", 400, "unsupported_grant_type")
	f(app+"%zz", 400, "invalid_request")
}

func TestDemoLogin_IsFoundAndServesThisMachineOnly(t *testing.T) {
	s := newSite(t)
	f := func(want string, change func(*Config)) *nodeAuth {
		t.Helper()
		n := s.node(t, change)
		if got, err := n.DemoLogin(t.Context(), s.snap); got != want || err != nil {
			t.Errorf("%q %v, want %q", got, err, want)
		}
		return n
	}
	f("", nil)
	f("user bob of auth.users", func(c *Config) { c.Users = []StaticUser{{Name: "bob", Password: "bob"}} })
	n := f("client demo of auth.clients", func(c *Config) { c.Clients = []StaticClient{{ID: "demo", Secret: "demo", User: "eve"}} })
	const form = "client_id=demo&client_secret=demo&grant_type=client_credentials"
	if status, body := n.ask(t, form); status != 200 {
		t.Errorf("from this machine: %d %v", status, body)
	}
	r := request("Content-Type", "application/x-www-form-urlencoded", "Via", "1.1 proxy")
	if a, err := n.Token(t.Context(), s.snap, r, []byte(form)); err != nil || a.Status != 401 {
		t.Errorf("through a proxy: %+v %v", a, err)
	}
	s.insert(t, "sys_user", "sys_id user_name active locked_out", "u9 admin true false")
	s.password(t, "u9", "admin", 1)
	f("user admin", nil)
	s.password(t, "u9", "other", 2)
	f("", nil)
}

func TestToken_RevokedOnesHoldNoMoreAndAreNotHandedOutAgain(t *testing.T) {
	s := newSite(t)
	n, other := s.node(t, nil), s.node(t, nil)
	const app = "client_id=app&client_secret=s3cret&grant_type="
	const login = app + "password&username=ann&password=pear"
	revoke := func(query, form string, want int) {
		t.Helper()
		r := request("Content-Type", "application/x-www-form-urlencoded")
		r.URL.RawQuery = query
		if a, err := n.Revoked(t.Context(), s.snap, r, []byte(form)); err != nil || a.Status != want {
			t.Errorf("revoke %s %s: %+v %v", query, form, a, err)
		}
		other.Forget() // what the announcement does
	}
	bearer := func(token any, want record.Kind) {
		t.Helper()
		for i, at := range []*nodeAuth{n, other} {
			if got := at.kind(t, request("Authorization", "Bearer "+token.(string))); got != want {
				t.Errorf("node %d: %v, not %v", i, got, want)
			}
		}
	}
	_, first := n.ask(t, login)
	_, machine := n.ask(t, app+"client_credentials")
	bearer(first["access_token"], signedIn)
	revoke("token="+first["access_token"].(string), "", 200)
	bearer(first["access_token"], record.Unauthenticated)
	bearer(machine["access_token"], signedIn)
	_, second := n.ask(t, login)
	bearer(second["access_token"], signedIn)
	revoke("", "client_id=app&token="+second["refresh_token"].(string), 200) // and what came with it
	bearer(second["access_token"], record.Unauthenticated)
	if status, _ := n.ask(t, app+"refresh_token&refresh_token="+second["refresh_token"].(string)); status != 401 {
		t.Errorf("a revoked refresh token: %d", status)
	}
	bearer(machine["access_token"], signedIn)
	revoke("token=nobody's", "", 200) // and nobody learns whether there was one
	revoke("token="+strings.Repeat("x", 600), "", 200)
	revoke("", "%zz", 400)
	revoke("", "", 400)
}

func TestToken_ClientsOfTheSystemTable(t *testing.T) {
	s := newSite(t)
	hash, err := Hash("hush")
	if err != nil {
		t.Fatal(err)
	}
	text := record.TextValue
	for table, row := range map[string][2][]string{
		"client": {{"id", "user", "grants"}, {"tool", "eve", "client_credentials"}},
		"secret": {{"owner", "key", "hash"}, {"client", "tool", hash}},
	} {
		tab, err := catalog.System().Table(table)
		if err != nil {
			t.Fatal(err)
		}
		var values []record.Value
		for _, v := range row[1] {
			values = append(values, text(v))
		}
		s.write(t, func(tx store.Tx) error {
			_, err := tx.Insert(t.Context(), &store.InsertSet{Table: tab, Fields: row[0], Rows: [][]record.Value{values}})
			return err
		})
	}
	n := s.node(t, nil)
	form := url.Values{"client_id": {"tool"}, "client_secret": {"hush"}, "grant_type": {"client_credentials"}}
	status, body := n.ask(t, form.Encode())
	if status != 200 {
		t.Fatalf("%d %v", status, body)
	}
	id, err := n.Identify(t.Context(), s.snap, request("Authorization", "Bearer "+body["access_token"].(string)))
	if err != nil || !id.Actor.Admin() {
		t.Errorf("%+v %v", id, err)
	}
}

func TestTrim_RemovesExpiredTokensOnly(t *testing.T) {
	n := newSite(t).node(t, nil)
	n.ask(t, "client_id=app&client_secret=s3cret&grant_type=password&username=ann&password=pear")
	if gone, err := n.Trim(t.Context()); gone != 0 || err != nil {
		t.Errorf("%d %v", gone, err)
	}
	n.clock.at.Add(3600)
	if gone, err := n.Trim(t.Context()); gone != 1 || err != nil {
		t.Errorf("%d %v: the access token has expired, the refresh token has not", gone, err)
	}
}

func TestVerify_StrangeHashesAreNobodys(t *testing.T) {
	good, err := Hash("apple")
	if err != nil {
		t.Fatal(err)
	}
	if !Verify(good, "apple") || Verify(good, "pear") {
		t.Error("a good hash is not judged rightly")
	}
	for _, hash := range []string{
		"", "apple", "$argon2id$", strings.Replace(good, "v=19", "v=18", 1), strings.Replace(good, "m=19456", "m=99999999", 1),
		strings.Replace(good, "t=2", "t=0", 1), strings.Replace(good, "p=1", "p=0", 1), good[:len(good)-30], good + "$x",
	} {
		if Verify(hash, "apple") {
			t.Errorf("%q was taken", hash)
		}
	}
}

func TestSecret_IsNeverPrinted(t *testing.T) {
	s := Secret("hush")
	text, err := json.Marshal(struct{ S Secret }{s})
	if err != nil || strings.Contains(string(text)+s.String()+s.GoString(), "hush") {
		t.Errorf("%s %v", text, err)
	}
}

func TestLoopbackHost_NamesThisMachineOnly(t *testing.T) {
	f := func(host string, want bool) {
		t.Helper()
		if got := LoopbackHost(host); got != want {
			t.Errorf("%s: %v", host, got)
		}
	}
	for _, h := range []string{"127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:80", "[::1]:80", "::1", "127.9.9.9"} {
		f(h, true)
	}
	for _, h := range []string{"", ":8080", "0.0.0.0:80", "10.0.0.1", "localhost.example", "127.0.0.1.example", "[::]:80"} {
		f(h, false)
	}
}
