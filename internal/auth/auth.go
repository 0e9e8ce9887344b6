package auth

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/sync/singleflight"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Data is what auth reads and writes: users through the project's snapshot, secrets, clients and grants through the system's.
type Data interface {
	Query(ctx context.Context, q *store.Read) (*store.Result, error)
	Begin(ctx context.Context) (store.Tx, error)
}

// Options are what auth works with.
type Options struct {
	// Data may be nil: then there are only the users of the settings, sessions end with the process, and there are no tokens.
	Data Data
	// Permit waits for leave to hash one password; nil is leave at once.
	Permit func(ctx context.Context, user string) (release func(), err error)
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Auth says who is calling. It is safe for concurrent use.
type Auth struct {
	cfg     Config
	options Options
	now     func() time.Time

	credentials *keyed // by a key of this process: what remembered credentials are found by
	dummyHash   string // checked for unknown users, so that they take as long as known ones
	signatures  atomic.Pointer[keyed]

	remembered *otter.Cache[credential, checked]
	checking   singleflight.Group
	users      *otter.Cache[string, *user]
	tokens     *otter.Cache[string, *grant] // by hash
	issued     *otter.Cache[string, *issued]
	byUser     *guesses
	byAddress  *guesses
}

// New returns an Auth with the given settings.
func New(cfg Config, o Options) (*Auth, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &Auth{cfg: cfg, options: o, now: o.Now}
	if a.now == nil {
		a.now = time.Now
	}
	processKey := make([]byte, 32)
	rand.Read(processKey)
	a.credentials = newKeyed(processKey)
	// A hash with our cost and an answer that no password has.
	a.dummyHash = hashPrefix + "v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	a.remembered = otter.Must(&otter.Options[credential, checked]{
		MaximumSize: cfg.RememberMax, ExpiryCalculator: otter.ExpiryWriting[credential, checked](max(cfg.Remember, time.Millisecond)),
	})
	a.users = otter.Must(&otter.Options[string, *user]{
		MaximumSize: 10_000, ExpiryCalculator: otter.ExpiryWriting[string, *user](max(cfg.Roles, time.Millisecond)),
	})
	a.tokens = otter.Must(&otter.Options[string, *grant]{
		MaximumSize: 10_000, ExpiryCalculator: otter.ExpiryWriting[string, *grant](max(cfg.Roles, time.Millisecond)),
	})
	a.issued = otter.Must(&otter.Options[string, *issued]{
		MaximumSize: 10_000, ExpiryCalculator: otter.ExpiryWriting[string, *issued](max(cfg.AccessToken, cfg.ClientToken)),
	})
	a.byUser, a.byAddress = newGuesses(cfg.GuessesPerUser), newGuesses(cfg.GuessesPerAddress)
	return a, nil
}

// Forget drops everything remembered: another node, or this one, changed users, credentials or definitions.
func (a *Auth) Forget() {
	a.remembered.InvalidateAll()
	a.users.InvalidateAll()
	a.tokens.InvalidateAll()
}

// Close ends the caches' upkeep; nothing may be asked afterwards.
func (a *Auth) Close() {
	a.remembered.StopAllGoroutines()
	a.users.StopAllGoroutines()
	a.tokens.StopAllGoroutines()
	a.issued.StopAllGoroutines()
	a.byUser.by.StopAllGoroutines()
	a.byAddress.by.StopAllGoroutines()
}

// Identity is who is calling, and what the answer should tell the client about it.
type Identity struct {
	Actor   record.Actor
	Method  string // "basic", "bearer", "cookie", "header", "database"; "" for nobody
	Session string // the id that the gate counts by; "" for nobody
	// Cookies open or renew the session.
	Cookies []*http.Cookie
	// UserToken, if not empty, is handed out: the session's proof against forged writes.
	UserToken string
}

// Guest is the identity of a caller who shows nothing.
func Guest() *Identity {
	return &Identity{Actor: record.Actor{Name: "guest"}}
}

// Shows reports whether the request shows any credential.
func Shows(r *http.Request) bool {
	if r.Header.Get("Authorization") != "" {
		return true
	}
	_, err := r.Cookie(sessionCookie)
	return err == nil
}

// Identify says who sent the request. The error is an Unauthenticated when nobody did or the credential is wrong, a
// RateLimited when guesses came too fast, a Forbidden when a cookie's write lacks its proof, or what the database said.
func (a *Auth) Identify(ctx context.Context, snap *catalog.Snapshot, r *http.Request) (*Identity, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return a.bySession(ctx, snap, r)
	}
	scheme, rest, _ := strings.Cut(header, " ")
	switch {
	case strings.EqualFold(scheme, "Basic"):
		return a.byBasic(ctx, snap, r)
	case strings.EqualFold(scheme, "Bearer"):
		return a.byBearer(ctx, snap, r, strings.TrimSpace(rest))
	}
	return nil, unauthenticated("Authorization: Basic and Bearer are understood")
}

func (a *Auth) byBasic(ctx context.Context, snap *catalog.Snapshot, r *http.Request) (*Identity, error) {
	name, password, ok := r.BasicAuth()
	if !ok {
		return nil, unauthenticated("the Basic credential cannot be read")
	}
	u, err := a.login(ctx, snap, r, name, password)
	if err != nil {
		return nil, err
	}
	id := &Identity{Actor: u.actor, Method: "basic"}
	if s := a.session(ctx, r); s != nil && s.user == u.name && s.version == u.version {
		id.Session = s.id
		if a.stale(s) {
			id.Cookies = a.cookies(ctx, r, u, s.id)
		}
		return id, nil
	}
	id.Session = newSessionID()
	id.Cookies = a.cookies(ctx, r, u, id.Session)
	return id, nil
}

// login checks a name and a password that came with r.
func (a *Auth) login(ctx context.Context, snap *catalog.Snapshot, r *http.Request, name, password string) (*user, error) {
	if len(name) > 255 || strings.ContainsRune(name, 0) || strings.ContainsRune(password, 0) {
		return nil, unauthenticated("wrong user or password")
	}
	if isDemo(name, password) && !Local(r) {
		return nil, unauthenticated("a demo login works from this machine only: loopback address, loopback Host, no forwarding headers")
	}
	u, err := a.user(ctx, snap, name)
	if err != nil {
		return nil, err
	}
	stored, version := a.dummyHash, int64(0)
	if u != nil && u.hash != "" {
		stored, version = u.hash, u.version
	}
	ok, err := a.check(ctx, "user", name, password, address(r), stored, version)
	switch {
	case err != nil:
		return nil, err
	case !ok || u == nil || !u.active:
		return nil, unauthenticated("wrong user or password")
	}
	return u, nil
}

// isDemo reports whether a credential is one that everybody knows: the demo's users have their name as password.
func isDemo(name, password string) bool { return name == password }

// DemoLogin finds a login that everybody knows and that works: the demo's admin, or whoever stands in the settings with their
// name as password. It is "" if there is none.
func (a *Auth) DemoLogin(ctx context.Context, snap *catalog.Snapshot) (string, error) {
	for _, u := range a.cfg.Users {
		if isDemo(u.Name, u.Password.Reveal()) {
			return "user " + u.Name + " of auth.users", nil
		}
	}
	for _, c := range a.cfg.Clients {
		if isDemo(c.ID, c.Secret.Reveal()) {
			return "client " + c.ID + " of auth.clients", nil
		}
	}
	u, err := a.user(ctx, snap, "admin")
	if err != nil || u == nil || !u.active || u.hash == "" || !matches(u.hash, "admin") {
		return "", err
	}
	return "user admin", nil
}

// forwarding headers tell of a proxy: then the peer's address says nothing about the caller.
var forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"}

// Local reports whether a request comes from this machine as far as can be told: loopback peer, loopback Host, no sign of a proxy.
// The Host matters because a web page elsewhere may lead a browser here under a name of its own.
func Local(r *http.Request) bool {
	for _, h := range forwarding {
		if r.Header.Get(h) != "" {
			return false
		}
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && LoopbackHost(r.Host)
}

// LoopbackHost reports whether host, with or without a port, names this machine and nothing else.
func LoopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func address(r *http.Request) string {
	if h, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return h
	}
	return r.RemoteAddr
}
