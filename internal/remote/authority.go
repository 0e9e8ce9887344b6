package remote

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/url"

	"weir/internal/auth"
	"weir/internal/record"
)

// A backend's side of who is calling: it knows the users, and gets to see the heads of requests.

// requestOf is the head of r. All of its fields go along: which of them matter is the authority's to know.
func requestOf(r *http.Request) request {
	q := request{Method: r.Method, Host: r.Host, URL: r.URL.RequestURI(), Peer: r.RemoteAddr, TLS: r.TLS != nil, Header: make([]string, 0, 2*len(r.Header))}
	for name, values := range r.Header {
		for _, v := range values {
			q.Header = append(q.Header, name, v)
		}
	}
	return q
}

// http is the request that q is the head of.
func (q *request) http() (*http.Request, error) {
	u, err := url.ParseRequestURI(q.URL)
	if err != nil {
		return nil, record.Errorf(record.Invalid, "", "the address of the request cannot be read")
	}
	r := &http.Request{
		Method: q.Method, URL: u, Host: q.Host, RemoteAddr: q.Peer, Header: make(http.Header, len(q.Header)/2),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
	for i := 0; i+1 < len(q.Header); i += 2 {
		r.Header[q.Header[i]] = append(r.Header[q.Header[i]], q.Header[i+1])
	}
	if q.TLS {
		r.TLS = &tls.ConnectionState{}
	}
	return r, nil
}

// auth is the identity that w was made of.
func (w *identity) auth() (*auth.Identity, error) {
	if w == nil {
		return nil, nil
	}
	id := &auth.Identity{Actor: w.Actor, Method: w.Method, Session: w.Session, UserToken: w.UserToken}
	for _, line := range w.Cookies {
		c, err := http.ParseSetCookie(line)
		if err != nil {
			return nil, err
		}
		id.Cookies = append(id.Cookies, c)
	}
	return id, nil
}

func (s *Server) identify(ctx context.Context, q *request) (identified, error) {
	r, err := q.http()
	if err != nil {
		return identified{}, err
	}
	snap, err := s.current(ctx)
	if err != nil {
		return identified{}, err
	}
	id, err := s.o.Auth.Identify(ctx, snap, r.WithContext(ctx))
	return identified{identityOf(id), record.AsError(err)}, nil
}

func (s *Server) token(ctx context.Context, f *form) (formAnswer, error) {
	return s.form(ctx, f, s.o.Auth.Token)
}

func (s *Server) revoked(ctx context.Context, f *form) (formAnswer, error) {
	return s.form(ctx, f, s.o.Auth.Revoked)
}

func (s *Server) form(ctx context.Context, f *form, do tokenEndpoint) (formAnswer, error) {
	r, err := f.Request.http()
	if err != nil {
		return formAnswer{}, err
	}
	snap, err := s.current(ctx)
	if err != nil {
		return formAnswer{}, err
	}
	says, err := do(ctx, snap, r.WithContext(ctx), f.Body)
	if err != nil {
		return formAnswer{}, err
	}
	out := formAnswer{Status: says.Status}
	if says.Body != nil {
		out.Body, err = json.Marshal(says.Body)
	}
	return out, err
}

func (s *Server) changeToken(ctx context.Context, w *tokenWish) (string, error) {
	id, err := w.Identity.auth()
	if err != nil {
		return "", err
	}
	return s.o.Auth.ChangeToken(ctx, id, w.Age), nil
}

func (s *Server) changeTokenHolds(ctx context.Context, p *tokenProof) (bool, error) {
	id, err := p.Identity.auth()
	if err != nil {
		return false, err
	}
	return s.o.Auth.ChangeTokenHolds(ctx, id, p.Token), nil
}

func (s *Server) actor(ctx context.Context, name *string) (record.Actor, error) {
	snap, err := s.current(ctx)
	if err != nil {
		return record.Actor{}, err
	}
	return s.o.Auth.Actor(ctx, snap, *name)
}

func (s *Server) demoLogin(ctx context.Context, _ *struct{}) (string, error) {
	snap, err := s.current(ctx)
	if err != nil {
		return "", err
	}
	return s.o.Auth.DemoLogin(ctx, snap)
}
