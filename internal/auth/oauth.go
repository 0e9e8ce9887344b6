package auth

import (
	"context"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
)

// The grant types that the token endpoint serves.
const (
	grantPassword = "password"
	grantClient   = "client_credentials"
	grantRefresh  = "refresh_token"
)

// client is an OAuth client.
type client struct {
	id, hash string
	version  int64
	user     string
	grants   []string
}

func (c *client) may(grant string) bool {
	return len(c.grants) == 0 || slices.Contains(c.grants, grant)
}

// tokenError is an answer of RFC 6749, section 5.2, in the shape that clients of the now dialect know.
type tokenError struct {
	status            int
	code, description string
}

var (
	errInvalidClient      = &tokenError{http.StatusUnauthorized, "invalid_client", "access_denied"}
	errDenied             = &tokenError{http.StatusUnauthorized, "server_error", "access_denied"}
	errInvalidGrant       = &tokenError{http.StatusUnauthorized, "invalid_grant", "the token is unknown, has expired or is another client's"}
	errInvalidRequest     = &tokenError{http.StatusBadRequest, "invalid_request", "the form cannot be read"}
	errUnauthorizedClient = &tokenError{http.StatusBadRequest, "unauthorized_client", "the client has no user to act for"}
	errUnsupported        = &tokenError{http.StatusBadRequest, "unsupported_grant_type", "password, client_credentials and refresh_token are served"}
)

// Answer is what the token endpoint says, in JSON.
type Answer struct {
	Status int
	Body   any
}

func (e *tokenError) answer() *Answer {
	return &Answer{e.status, struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{e.code, e.description}}
}

// tokenAnswer is an answer of RFC 6749, section 5.1, with its fields in the platform's order.
type tokenAnswer struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token,omitempty"`
	Scope   string `json:"scope"`
	Type    string `json:"token_type"`
	Expires int64  `json:"expires_in"`
}

// Token answers POST /oauth_token.do and /ords/SCHEMA/oauth/token: the request with its body, which is a form. An error is what the
// database or a limit said; whatever is the caller's fault stands in the answer.
func (a *Auth) Token(ctx context.Context, snap *catalog.Snapshot, r *http.Request, body []byte) (*Answer, error) {
	if strings.HasSuffix(r.URL.Path, clientTokenPath) {
		return a.clientToken(ctx, snap, r, body)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return (&tokenError{http.StatusBadRequest, "invalid_request", "the body must be application/x-www-form-urlencoded"}).answer(), nil
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return (&tokenError{http.StatusBadRequest, "invalid_request", "the form cannot be read"}).answer(), nil
	}
	t, fault, err := a.token(ctx, snap, r, form, a.cfg.AccessToken)
	switch {
	case err != nil:
		return nil, err
	case fault != nil:
		return fault.answer(), nil
	}
	left := max(int64(t.expires.Sub(a.now()).Seconds()), 0)
	return &Answer{http.StatusOK, tokenAnswer{t.access, t.refresh, "useraccount", "Bearer", left}}, nil
}

// token is the token that a form asks for; it holds for life.
func (a *Auth) token(ctx context.Context, snap *catalog.Snapshot, r *http.Request, form url.Values, life time.Duration) (*issued, *tokenError, error) {
	if a.options.Data == nil {
		return nil, nil, record.Errorf(record.Unavailable, "", "tokens need a database")
	}
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if user, pass, ok := r.BasicAuth(); ok && id == "" {
		id, secret = user, pass
	}
	if isDemo(id, secret) && !Local(r) {
		return nil, errInvalidClient, nil
	}
	c, err := a.client(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	stored, version := a.dummyHash, int64(0)
	if c != nil {
		stored, version = c.hash, c.version
	}
	ok, err := a.check(ctx, "client", id, secret, address(r), stored, version)
	if err != nil {
		return nil, nil, err
	}
	if !ok || c == nil {
		return nil, errInvalidClient, nil
	}
	kind := form.Get("grant_type")
	switch kind {
	case grantPassword, grantClient, grantRefresh:
		if !c.may(kind) {
			return nil, &tokenError{http.StatusBadRequest, "unauthorized_client", "this client may not use the grant type " + kind}, nil
		}
	default:
		return nil, errUnsupported, nil
	}
	switch kind {
	case grantPassword:
		u, err := a.login(ctx, snap, r, form.Get("username"), form.Get("password"))
		if err != nil && record.KindOf(err) == record.Unauthenticated {
			return nil, errDenied, nil
		} else if err != nil {
			return nil, nil, err
		}
		t, err := a.again(ctx, c.id, u.name, true, life)
		return t, nil, err
	case grantClient:
		u, err := a.user(ctx, snap, c.user)
		if err != nil {
			return nil, nil, err
		}
		if c.user == "" || u == nil || !u.active {
			return nil, errDenied, nil
		}
		t, err := a.again(ctx, c.id, u.name, false, life)
		return t, nil, err
	default:
		refresh := form.Get("refresh_token")
		g, err := a.grant(ctx, refresh, kindRefresh)
		if err != nil {
			return nil, nil, err
		}
		if g == nil || g.client != c.id {
			return nil, errInvalidGrant, nil
		}
		if u, err := a.user(ctx, snap, g.user); err != nil {
			return nil, nil, err
		} else if u == nil || !u.active {
			return nil, errInvalidGrant, nil
		}
		t, err := a.issue(ctx, c.id, g.user, false, life)
		if err == nil {
			t.refresh = refresh // the same one stays valid until its own end
		}
		return t, nil, err
	}
}

// again returns the token that this client got for this user before, while it lasts, else a new one: the platform does so.
func (a *Auth) again(ctx context.Context, client, user string, withRefresh bool, life time.Duration) (*issued, error) {
	key := client + "\x00" + user + "\x00" + strconv.FormatBool(withRefresh) + life.String()
	if t, ok := a.issued.GetIfPresent(key); ok && a.now().Before(t.expires) {
		if g, err := a.grant(ctx, t.access, kindAccess); err != nil {
			return nil, err
		} else if g != nil { // not revoked meanwhile
			return t, nil
		}
	}
	t, err := a.issue(ctx, client, user, withRefresh, life)
	if err == nil {
		a.issued.Set(key, t)
	}
	return t, err
}

// client finds an OAuth client by id, nil if there is none: those of the settings first, then the system table.
func (a *Auth) client(ctx context.Context, id string) (*client, error) {
	if id == "" || len(id) > 255 {
		return nil, nil
	}
	for _, s := range a.cfg.Clients {
		if s.ID == id {
			return &client{id: id, hash: s.Secret.Reveal(), user: s.User, grants: s.Grants}, nil
		}
	}
	rows, err := a.system(ctx, "client", []string{"user", "grants"},
		record.Compare(record.Eq, record.F("id"), record.C(record.TextValue(id))))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	c := &client{id: id, user: rows[0][0].Text()}
	if g := rows[0][1].Text(); g != "" {
		c.grants = strings.Split(g, ",")
	}
	if c.hash, c.version, err = a.secret(ctx, "client", id); err != nil {
		return nil, err
	}
	return c, nil
}
