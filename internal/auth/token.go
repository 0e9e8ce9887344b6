package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"time"

	"github.com/maypok86/otter/v2"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Kinds of grants.
const (
	kindAccess  = "access"
	kindRefresh = "refresh"
)

// grant is a row of the system table grant: an opaque token, known by its hash only.
type grant struct {
	hash, kind, client, user string
	expires                  time.Time
}

// issued is a token handed out by this node. Asking again within its life returns it again; it is kept here because the
// database holds only its hash.
type issued struct {
	access, refresh string
	expires         time.Time
}

func newToken() string {
	var b [48]byte
	rand.Read(b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// tokenHash is what a token is stored by. Tokens are long and random, so a fast hash keeps them.
func tokenHash(token string) string {
	d := sha256.Sum256([]byte(token))
	return hex.EncodeToString(d[:])
}

func (a *Auth) byBearer(ctx context.Context, snap *catalog.Snapshot, r *http.Request, token string) (*Identity, error) {
	g, err := a.grant(ctx, token, kindAccess)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, unauthenticated("the access token is unknown or has expired")
	}
	u, err := a.user(ctx, snap, g.user)
	if err != nil {
		return nil, err
	}
	if u == nil || !u.active {
		return nil, unauthenticated("the access token's user is no longer active")
	}
	id := &Identity{Actor: u.actor, Method: "bearer", Session: newSessionID()}
	if s := a.session(ctx, r); s != nil && s.user == u.name {
		id.Session = s.id
	}
	return id, nil
}

// grant finds a token that still holds, nil if there is none.
func (a *Auth) grant(ctx context.Context, token, kind string) (*grant, error) {
	if token == "" || len(token) > 512 || a.options.Data == nil {
		return nil, nil
	}
	g, err := a.tokens.Get(context.WithoutCancel(ctx), tokenHash(token), otter.LoaderFunc[string, *grant](a.loadGrant))
	if err != nil || g == nil || g.kind != kind || !a.now().Before(g.expires) {
		return nil, err
	}
	return g, nil
}

func (a *Auth) loadGrant(ctx context.Context, hash string) (*grant, error) {
	rows, err := a.system(ctx, "grant", []string{"kind", "client", "user", "expires"},
		record.Compare(record.Eq, record.F("hash"), record.C(record.TextValue(hash))))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	r := rows[0]
	return &grant{hash: hash, kind: r[0].Text(), client: r[1].Text(), user: r[2].Text(), expires: r[3].Time()}, nil
}

var grantFields = []string{"hash", "kind", "client", "user", "pair", "expires"}

// issue makes and stores an access token that holds for life, with a refresh token if asked for.
func (a *Auth) issue(ctx context.Context, client, user string, withRefresh bool, life time.Duration) (*issued, error) {
	now := a.now()
	t := &issued{access: newToken(), expires: now.Add(life)}
	text := record.TextValue
	row := func(token, kind, pair string, expires time.Time) []record.Value {
		return []record.Value{text(tokenHash(token)), text(kind), text(client), text(user), text(pair), record.TimeValue(expires)}
	}
	pair := ""
	rows := [][]record.Value{}
	if withRefresh {
		t.refresh = newToken()
		pair = tokenHash(t.refresh)
		rows = append(rows, row(t.refresh, kindRefresh, "", now.Add(a.cfg.RefreshToken)))
	}
	rows = append(rows, row(t.access, kindAccess, pair, t.expires))
	if err := a.insert(ctx, "grant", grantFields, rows...); err != nil {
		return nil, err
	}
	// The negative answers that somebody's guess may have left behind.
	a.tokens.Invalidate(tokenHash(t.access))
	return t, nil
}

// Revoked answers /oauth_revoke_token.do?token=…: the token, access or refresh, is marked as expired, and with a refresh token the access
// tokens that came with it. Whoever has the token may do so, without a login, as on the platform; what the answer does not tell is
// whether there was such a token (RFC 7009, section 2.2). The token stands in the query or in a form.
func (a *Auth) Revoked(ctx context.Context, _ *catalog.Snapshot, r *http.Request, body []byte) (*Answer, error) {
	token := r.URL.Query().Get("token")
	if token == "" {
		form, _ := url.ParseQuery(string(body)) // what cannot be read holds no token
		token = form.Get("token")
	}
	if token == "" {
		return (&tokenError{http.StatusBadRequest, "invalid_request", "the parameter token is missing"}).answer(), nil
	}
	if a.options.Data == nil || len(token) > 512 {
		return &Answer{Status: http.StatusOK}, nil
	}
	if err := a.revoke(ctx, tokenHash(token)); err != nil {
		return nil, err
	}
	return &Answer{Status: http.StatusOK}, nil
}

func (a *Auth) revoke(ctx context.Context, hash string) error {
	t, err := catalog.System().Table("grant")
	if err != nil {
		return err
	}
	find := func(field string) ([][]record.Value, error) {
		return a.system(ctx, "grant", []string{"hash", "kind", "expires"}, record.Compare(record.Eq, record.F(field), record.C(record.TextValue(hash))))
	}
	rows, err := find("hash")
	if err != nil || len(rows) == 0 {
		return err
	}
	if rows[0][1].Text() == kindRefresh {
		paired, err := find("pair")
		if err != nil {
			return err
		}
		rows = append(rows, paired...)
	}
	set := &store.UpdateSet{Table: t, Fields: []string{"expires"}}
	now := a.now()
	for _, r := range rows {
		if now.Before(r[2].Time()) {
			set.Keys = append(set.Keys, r[:1:1])
			set.Rows = append(set.Rows, []record.Value{record.TimeValue(now)})
		}
	}
	if len(set.Keys) == 0 {
		return nil
	}
	tx, err := a.options.Data.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Update(ctx, set); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	for _, key := range set.Keys {
		a.tokens.Invalidate(key[0].Text())
	}
	return nil
}

// Trim removes expired tokens, at most a thousand at a time, and returns how many went.
func (a *Auth) Trim(ctx context.Context) (int, error) {
	if a.options.Data == nil {
		return 0, nil
	}
	sys := catalog.System()
	t, err := sys.Table("grant")
	if err != nil {
		return 0, err
	}
	res, err := a.options.Data.Query(ctx, &store.Read{Snapshot: sys, Table: t, Fields: []string{"hash"}, Query: &record.Query{
		Where: record.Compare(record.Lt, record.F("expires"), record.C(record.TimeValue(a.now()))), Limit: 1000,
	}})
	if err != nil {
		return 0, err
	}
	err = res.Materialise(0)
	if err != nil || res.Len() == 0 {
		return 0, err
	}
	var keys [][]record.Value
	for i := range res.Len() {
		keys = append(keys, res.At(i))
	}
	tx, err := a.options.Data.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if _, err := tx.Delete(ctx, &store.DeleteSet{Table: t, Keys: keys}); err != nil {
		return 0, err
	}
	return len(keys), tx.Commit(ctx)
}
