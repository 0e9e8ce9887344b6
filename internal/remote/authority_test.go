package remote_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/remote"
)

// lockedWriter is written to by both ends.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// told is an authority that remembers what it was asked, and answers what it is told to.
type told struct {
	request *http.Request
	body    []byte
	id      *auth.Identity
	err     error
	answer  *auth.Answer
	age     time.Duration
	token   string
	name    string
	version uint64
}

func (a *told) Identify(_ context.Context, snap *catalog.Snapshot, r *http.Request) (*auth.Identity, error) {
	a.request, a.version = r, snap.Version
	return a.id, a.err
}

func (a *told) Token(_ context.Context, _ *catalog.Snapshot, r *http.Request, body []byte) (*auth.Answer, error) {
	a.request, a.body = r, body
	return a.answer, a.err
}

func (a *told) Revoked(_ context.Context, _ *catalog.Snapshot, r *http.Request, body []byte) (*auth.Answer, error) {
	a.request, a.body = r, body
	return a.answer, a.err
}

func (a *told) ChangeToken(_ context.Context, id *auth.Identity, age time.Duration) string {
	a.id, a.age = id, age
	return "fresh"
}

func (a *told) ChangeTokenHolds(_ context.Context, id *auth.Identity, token string) bool {
	a.id, a.token = id, token
	return token == "good"
}

func (a *told) Actor(_ context.Context, _ *catalog.Snapshot, name string) (record.Actor, error) {
	a.name = name
	return record.Actor{Name: name, Roles: []string{"r"}}, a.err
}

func (a *told) DemoLogin(context.Context, *catalog.Snapshot) (string, error) {
	return "user admin", a.err
}

func full() *auth.Identity {
	return &auth.Identity{
		Actor: record.Actor{Key: "k", Name: "beth", Roles: []string{"itil", "ess"}}, Method: "basic", Session: "S1", UserToken: "U1",
		Cookies: []*http.Cookie{
			{Name: "JSESSIONID", Value: "a.b-_", Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode},
			{Name: "glide_user_route", Value: "glide.x", Path: "/", MaxAge: 1<<31 - 1},
		},
	}
}

// Whoever gives an identity another field must let it cross the line, too.
func TestAuthority_IdentitiesAreWhole(t *testing.T) {
	v := reflect.ValueOf(*full())
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the identity of these tests has no %s", v.Type().Field(i).Name)
		}
	}
}

func TestAuthority_TheBackendSeesTheRequest(t *testing.T) {
	a := &told{id: full()}
	c := hub(t, start(t, "127.0.0.1:0", remote.Options{Auth: a}))
	r := httptest.NewRequest("POST", "https://weir.test/api/now/table/x%2Fy?a=b&c=%26", nil)
	r.RemoteAddr, r.TLS = "10.1.2.3:4567", &tls.ConnectionState{}
	r.Header.Set("Authorization", "Basic abc")
	r.Header.Add("Cookie", "JSESSIONID=q")
	r.Header.Add("X-Forwarded-For", "1.2.3.4")
	r.Header.Add("X-Forwarded-For", "5.6.7.8")
	id, err := c.Identify(t.Context(), nil, r)
	if err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(x, y *http.Cookie) bool { return x.String() == y.String() })
	if d := cmp.Diff(full(), id, same); d != "" {
		t.Error(d)
	}
	got := a.request
	if got.Method != "POST" || got.Host != "weir.test" || got.RemoteAddr != "10.1.2.3:4567" || got.TLS == nil || got.URL.RequestURI() != "/api/now/table/x%2Fy?a=b&c=%26" {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff(r.Header, got.Header); d != "" {
		t.Error(d)
	}
	if a.version != 1 {
		t.Errorf("by the definitions of version %d", a.version)
	}

	// An error, with an identity and without.
	a.err = record.Errorf(record.Forbidden, "X-UserToken", "needs it")
	id, err = c.Identify(t.Context(), nil, r)
	if e := record.AsError(err); id == nil || id.UserToken != "U1" || e.Kind != record.Forbidden || e.Field != "X-UserToken" || e.Msg != "needs it" {
		t.Errorf("%+v %v", id, err)
	}
	a.id, a.err = nil, record.Errorf(record.RateLimited, "", "too fast")
	if id, err = c.Identify(t.Context(), nil, r); id != nil || record.KindOf(err) != record.RateLimited {
		t.Errorf("%+v %v", id, err)
	}
}

func TestAuthority_TokensAndUsers(t *testing.T) {
	a := &told{answer: &auth.Answer{Status: 400, Body: struct {
		A string `json:"a"`
		B int    `json:"b"`
	}{"<x>", 7}}}
	c := hub(t, start(t, "127.0.0.1:0", remote.Options{Auth: a}))
	r := httptest.NewRequest("POST", "/oauth_token.do?token=t", strings.NewReader(""))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, f := range []func(context.Context, *catalog.Snapshot, *http.Request, []byte) (*auth.Answer, error){c.Token, c.Revoked} {
		got, err := f(t.Context(), nil, r, []byte("x=y"))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(a.answer.Body)
		body, _ := json.Marshal(got.Body)
		if got.Status != 400 || !bytes.Equal(body, want) || string(a.body) != "x=y" || a.request.URL.Query().Get("token") != "t" {
			t.Errorf("%d %s, body %q", got.Status, body, a.body)
		}
	}
	a.answer = &auth.Answer{Status: 200}
	if got, err := c.Revoked(t.Context(), nil, r, nil); err != nil || got.Status != 200 || got.Body != nil {
		t.Errorf("%+v %v", got, err)
	}
	if got := c.ChangeToken(t.Context(), full(), time.Minute); got != "fresh" || a.age != time.Minute || a.id.Session != "S1" || a.id.Actor.Name != "beth" {
		t.Errorf("%q %s %+v", got, a.age, a.id)
	}
	if !c.ChangeTokenHolds(t.Context(), full(), "good") || c.ChangeTokenHolds(t.Context(), full(), "bad") || a.token != "bad" {
		t.Errorf("%q", a.token)
	}
	if got, err := c.Actor(t.Context(), nil, "beth"); err != nil || got.Name != "beth" || len(got.Roles) != 1 {
		t.Errorf("%+v %v", got, err)
	}
	if got, err := c.DemoLogin(t.Context(), nil); err != nil || got != "user admin" {
		t.Errorf("%q %v", got, err)
	}
	a.err = record.Errorf(record.Unauthenticated, "", "no longer active")
	if _, err := c.Actor(t.Context(), nil, "beth"); record.KindOf(err) != record.Unauthenticated {
		t.Error(err)
	}
	if _, err := c.Token(t.Context(), nil, r, nil); record.KindOf(err) != record.Unauthenticated {
		t.Error(err)
	}
}
