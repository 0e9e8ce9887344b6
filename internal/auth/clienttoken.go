package auth

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"

	"weir/internal/catalog"
)

// clientTokenPath is where the path ends at which a client gets a token for itself: /ords/SCHEMA/oauth/token (protocol notes of the
// ords dialect, section 12).
const clientTokenPath = "/oauth/token"

// clientTokenAnswer is an answer of RFC 6749, section 5.1, as clients of the ords dialect know it.
type clientTokenAnswer struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int64  `json:"expires_in"`
}

// clientToken answers POST /ords/SCHEMA/oauth/token.
func (a *Auth) clientToken(ctx context.Context, snap *catalog.Snapshot, r *http.Request, body []byte) (*Answer, error) {
	says := func(fault *tokenError) (*Answer, error) {
		return &Answer{fault.status, struct {
			Error string `json:"error"`
		}{fault.code}}, nil
	}
	form, err := formOf(r, body)
	if err != nil {
		return says(errInvalidRequest)
	}
	if id, _, ok := r.BasicAuth(); ok && form.Has("client_id") && form.Get("client_id") != id {
		return says(errInvalidRequest) // two clients in one request
	}
	switch form.Get("grant_type") {
	case grantClient:
	case "":
		return says(errInvalidRequest)
	default:
		return says(errUnsupported)
	}
	t, fault, err := a.token(ctx, snap, r, form, a.cfg.ClientToken)
	switch {
	case err != nil:
		return nil, err
	case fault == errDenied: // the client has no user to act for, or that one may not call
		return says(errUnauthorizedClient)
	case fault != nil:
		return says(fault)
	}
	left := max(int64(t.expires.Sub(a.now()).Seconds()+0.5), 0)
	return &Answer{http.StatusOK, clientTokenAnswer{t.access, "bearer", left}}, nil
}

// formOf is the form that a request's body holds.
func formOf(r *http.Request, body []byte) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind != "application/x-www-form-urlencoded" {
		err = errors.New(kind + " is no form")
	}
	if err != nil {
		return nil, err
	}
	return url.ParseQuery(string(body))
}
