package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// The cookies of a session, by the names that clients of the now dialect know. JSESSIONID carries the signed session; the others
// are for clients and load balancers that look at them.
const (
	sessionCookie = "JSESSIONID"
	storeCookie   = "glide_session_store"
	routeCookie   = "glide_user_route"
)

// session is what a cookie says.
type session struct {
	id, user string
	version  int64 // of the user's password when the session began
	expires  time.Time
}

func newSessionID() string {
	var b [16]byte
	rand.Read(b[:])
	return strings.ToUpper(hex.EncodeToString(b[:]))
}

// bySession identifies a caller by cookie. A write needs a proof that no other site made the browser send it.
func (a *Auth) bySession(ctx context.Context, snap *catalog.Snapshot, r *http.Request) (*Identity, error) {
	s := a.session(ctx, r)
	if s == nil {
		return nil, unauthenticated("Required to provide Auth information")
	}
	u, err := a.user(ctx, snap, s.user)
	if err != nil {
		return nil, err
	}
	if u == nil || !u.active || u.version != s.version {
		return nil, unauthenticated("the session has ended")
	}
	id := &Identity{Actor: u.actor, Method: "cookie", Session: s.id}
	token := a.userToken(ctx, s.id)
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-UserToken")), []byte(token)) != 1 {
		id.UserToken = token
		if !safe(r.Method) && !sameOrigin(r) {
			return id, record.Errorf(record.Forbidden, "X-UserToken",
				"a write by cookie needs the header X-UserToken with the value of X-UserToken-Response, or Authorization")
		}
	}
	if a.stale(s) {
		id.Cookies = a.cookies(ctx, r, u, s.id)
	}
	return id, nil
}

func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// sameOrigin reports whether the browser itself says that the page that sent the request is ours.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host != "" && strings.EqualFold(origin.Host, r.Host)
}

// session reads the request's session cookie, nil if there is none that holds.
func (a *Auth) session(ctx context.Context, r *http.Request) *session {
	c, err := r.Cookie(sessionCookie)
	if err != nil || len(c.Value) > 2048 {
		return nil
	}
	body, mac, ok := strings.Cut(c.Value, ".")
	if !ok {
		return nil
	}
	sum, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || !hmac.Equal(sum, a.sign(ctx, "session", body)) {
		return nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil
	}
	parts := strings.SplitN(string(plain), "\n", 4)
	if len(parts) != 4 {
		return nil
	}
	version, err1 := strconv.ParseInt(parts[1], 10, 64)
	unix, err2 := strconv.ParseInt(parts[2], 10, 64)
	if err1 != nil || err2 != nil || a.now().Unix() >= unix {
		return nil
	}
	return &session{id: parts[0], version: version, expires: time.Unix(unix, 0), user: parts[3]}
}

// stale reports whether a session's cookie should be renewed: half its time is over.
func (a *Auth) stale(s *session) bool { return s.expires.Sub(a.now()) < a.cfg.Session/2 }

// cookies open or renew a session.
func (a *Auth) cookies(ctx context.Context, r *http.Request, u *user, id string) []*http.Cookie {
	body := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s\n%d\n%d\n%s", id, u.version, a.now().Add(a.cfg.Session).Unix(), u.name))
	sum := a.sign(ctx, "session", body)
	if sum == nil {
		return nil
	}
	secure := r.TLS != nil
	return []*http.Cookie{
		{Name: sessionCookie, Value: body + "." + base64.RawURLEncoding.EncodeToString(sum), Path: "/", HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode},
		{Name: routeCookie, Value: "glide." + strings.ToLower(id), Path: "/", MaxAge: 1<<31 - 1, HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode},
		{Name: storeCookie, Value: id, Path: "/", MaxAge: 300, HttpOnly: true, Secure: secure, SameSite: http.SameSiteLaxMode},
	}
}

// userToken is the proof that a session's page shows with its writes.
func (a *Auth) userToken(ctx context.Context, id string) string {
	return hex.EncodeToString(a.sign(ctx, "token", id))
}

// sign is the keyed hash of a text with a purpose; nil if the key cannot be read.
func (a *Auth) sign(ctx context.Context, purpose, text string) []byte {
	signature, err := a.signature(ctx)
	if err != nil {
		return nil
	}
	var room [256]byte
	sum := signature.sum(append(append(append(room[:0], purpose...), 0), text...))
	return sum[:]
}

const (
	keyOwner = "session"
	keyName  = "cookie"
)

// signature is keyed by the secret that all nodes sign with. The first one that asks makes it; whoever loses that race reads
// the winner's.
func (a *Auth) signature(ctx context.Context) (*keyed, error) {
	if k := a.signatures.Load(); k != nil {
		return k, nil
	}
	fresh := rand.Text() + rand.Text()
	if a.options.Data != nil {
		ctx := context.WithoutCancel(ctx)
		stored, _, err := a.secret(ctx, keyOwner, keyName)
		if err != nil {
			return nil, err
		}
		if stored == "" {
			if err := a.insert(ctx, "secret", []string{"owner", "key", "hash", "version", "changed"}, []record.Value{
				record.TextValue(keyOwner), record.TextValue(keyName), record.TextValue(fresh), record.IntValue(1), record.TimeValue(a.now()),
			}); err != nil && record.KindOf(err) != record.Conflict {
				return nil, err
			}
			if stored, _, err = a.secret(ctx, keyOwner, keyName); err != nil {
				return nil, err
			}
		}
		fresh = stored
	}
	k := newKeyed([]byte(fresh))
	if !a.signatures.CompareAndSwap(nil, k) {
		return a.signatures.Load(), nil
	}
	return k, nil
}

// insert writes one row of a system table and commits it.
func (a *Auth) insert(ctx context.Context, table string, fields []string, rows ...[]record.Value) error {
	t, err := catalog.System().Table(table)
	if err != nil {
		return err
	}
	tx, err := a.options.Data.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	w, err := tx.Insert(ctx, &store.InsertSet{Table: t, Fields: fields, Rows: rows})
	if err != nil {
		return err
	}
	for _, e := range w.Errs {
		if e != nil {
			return e
		}
	}
	return tx.Commit(ctx)
}
