package remote

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/record"
)

// A hub's side of who is calling: it asks a backend each time, so what one of them revokes holds at once.

type tokenEndpoint = func(context.Context, *catalog.Snapshot, *http.Request, []byte) (*auth.Answer, error)

// Identify says who sent the request; see [auth.Auth.Identify].
func (c *Client) Identify(ctx context.Context, _ *catalog.Snapshot, r *http.Request) (*auth.Identity, error) {
	q := requestOf(r)
	says, fail := call[request, identified](ctx, c, "Identify", &q, true)
	if fail != nil {
		return nil, fail.err
	}
	id, err := says.Identity.auth()
	if err == nil && says.Err != nil {
		err = says.Err
	}
	return id, err
}

// Token answers the endpoint that hands out tokens; see [auth.Auth.Token].
func (c *Client) Token(ctx context.Context, _ *catalog.Snapshot, r *http.Request, body []byte) (*auth.Answer, error) {
	return c.form(ctx, "Token", r, body, false)
}

// Revoked answers the endpoint that takes tokens back; see [auth.Auth.Revoked].
func (c *Client) Revoked(ctx context.Context, _ *catalog.Snapshot, r *http.Request, body []byte) (*auth.Answer, error) {
	return c.form(ctx, "Revoked", r, body, true)
}

func (c *Client) form(ctx context.Context, method string, r *http.Request, body []byte, repeatable bool) (*auth.Answer, error) {
	says, fail := call[form, formAnswer](ctx, c, method, &form{requestOf(r), body}, repeatable)
	if fail != nil {
		return nil, fail.err
	}
	out := &auth.Answer{Status: says.Status}
	if says.Body != nil {
		out.Body = json.RawMessage(says.Body)
	}
	return out, nil
}

// ChangeToken is a token against forged changes; see [auth.Auth.ChangeToken]. It is "" if no backend can be asked.
func (c *Client) ChangeToken(ctx context.Context, id *auth.Identity, age time.Duration) string {
	token, fail := call[tokenWish, string](ctx, c, "ChangeToken", &tokenWish{*identityOf(id), age}, true)
	if fail != nil {
		return ""
	}
	return token
}

// ChangeTokenHolds reports whether a token against forged changes holds. What cannot be asked does not.
func (c *Client) ChangeTokenHolds(ctx context.Context, id *auth.Identity, token string) bool {
	holds, fail := call[tokenProof, bool](ctx, c, "ChangeTokenHolds", &tokenProof{*identityOf(id), token}, true)
	return fail == nil && holds
}

// Actor is a user as they stand now; see [auth.Auth.Actor].
func (c *Client) Actor(ctx context.Context, _ *catalog.Snapshot, name string) (record.Actor, error) {
	a, fail := call[string, record.Actor](ctx, c, "Actor", &name, true)
	if fail != nil {
		return record.Actor{}, fail.err
	}
	return a, nil
}

// DemoLogin finds a login that everybody knows; see [auth.Auth.DemoLogin].
func (c *Client) DemoLogin(ctx context.Context, _ *catalog.Snapshot) (string, error) {
	known, fail := call[struct{}, string](ctx, c, "DemoLogin", &struct{}{}, true)
	if fail != nil {
		return "", fail.err
	}
	return known, nil
}
