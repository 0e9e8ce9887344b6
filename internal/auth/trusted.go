package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Trusted is a gateway in front that says in a header who is calling. Its word counts when the connection comes from it; from anyone
// else the headers are ignored, and nobody behind the door sees them.
type Trusted struct {
	// Header is the request header with the login name, such as X-Remote-User. The gateway must remove it from what its own clients send.
	//
	// Defaults to "": nobody is believed.
	Header string `yaml:"header"`

	// Roles is a header with the caller's roles, commas between. Where it is sent it takes the place of the user's own roles.
	//
	// Defaults to "": the roles are the user's own.
	Roles string `yaml:"roles"`

	// From are the addresses and networks (10.0.0.0/8) of gateways that are believed.
	//
	// Defaults to none.
	From []string `yaml:"from"`

	// Certs are the names, common or DNS, in certificates of gateways that are believed; tls.client_ca vouches for them. With From
	// both must hold.
	//
	// Defaults to none.
	Certs []string `yaml:"certs"`
}

func (t *Trusted) validate() error {
	var faults []error
	if _, err := ParseNetworks(t.From); err != nil {
		faults = append(faults, fmt.Errorf("auth.trusted.from: %w", err))
	}
	if t.Header != "" && len(t.From) == 0 && len(t.Certs) == 0 {
		faults = append(faults, errors.New("auth.trusted: a header needs from or certs, else anybody could send it"))
	}
	if t.Header == "" && (t.Roles != "" || len(t.From) > 0 || len(t.Certs) > 0) {
		faults = append(faults, errors.New("auth.trusted.header: is missing"))
	}
	for _, h := range []string{t.Header, t.Roles} {
		name := http.CanonicalHeaderKey(h)
		if strings.ContainsFunc(h, func(c rune) bool { return !tokenChar(c) }) || slices.Contains(takenHeaders, name) {
			faults = append(faults, fmt.Errorf("auth.trusted: %q cannot be the header that says who is calling", h))
		}
	}
	return errors.Join(faults...)
}

// takenHeaders mean something else already.
var takenHeaders = []string{"Authorization", "Cookie", "Host", "Connection", "Content-Length", "Content-Type", "Transfer-Encoding", "Origin"}

func tokenChar(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// Gateway is a door's side of [Trusted]: it sees the connection, which a backend behind a hub does not.
type Gateway struct {
	cfg  Trusted
	from []netip.Prefix
}

// NewGateway is a gateway with checked settings.
func NewGateway(cfg Trusted) *Gateway {
	from, _ := ParseNetworks(cfg.From) // checked with the settings
	return &Gateway{cfg, from}
}

// Word is what a trusted gateway says of a request.
type Word struct {
	User  string
	Roles []string // nil: the user's own
}

// Take removes the gateway's headers from a request and returns what they say, nil if it does not come from a trusted gateway or says
// nothing. What cannot be one gateway's word is an Unauthenticated.
func (g *Gateway) Take(r *http.Request) (*Word, error) {
	if g.cfg.Header == "" {
		return nil, nil
	}
	users := r.Header.Values(g.cfg.Header)
	r.Header.Del(g.cfg.Header)
	var roles []string
	if g.cfg.Roles != "" {
		roles = r.Header.Values(g.cfg.Roles)
		r.Header.Del(g.cfg.Roles)
	}
	if !g.trusts(r) || len(users) == 0 {
		return nil, nil
	}
	if len(users) > 1 || len(roles) > 1 { // one of them may be the gateway's client's
		return nil, unauthenticated("the gateway's header stands there more than once")
	}
	w := &Word{User: strings.TrimSpace(users[0])}
	if w.User == "" { // the gateway's way to say nobody
		return nil, nil
	}
	if len(w.User) > 255 {
		return nil, unauthenticated("the gateway's header is no login name")
	}
	if len(roles) == 1 {
		w.Roles = []string{}
		for _, name := range strings.Split(roles[0], ",") {
			if name = strings.TrimSpace(name); name != "" {
				w.Roles = append(w.Roles, name)
			}
		}
	}
	return w, nil
}

// trusts reports whether the other end of the connection is a gateway that is believed.
func (g *Gateway) trusts(r *http.Request) bool {
	if len(g.from) > 0 {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil || !slices.ContainsFunc(g.from, func(n netip.Prefix) bool { return n.Contains(peer.Addr().Unmap()) }) {
			return false
		}
	}
	if len(g.cfg.Certs) == 0 {
		return len(g.from) > 0
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return false
	}
	leaf := r.TLS.VerifiedChains[0][0]
	return slices.ContainsFunc(g.cfg.Certs, func(name string) bool {
		return leaf.Subject.CommonName == name || slices.Contains(leaf.DNSNames, name)
	})
}

// Identity is the caller that the word is about, who must be a user that may call.
func (w *Word) Identity(ctx context.Context, snap *catalog.Snapshot, users interface {
	Actor(ctx context.Context, snap *catalog.Snapshot, name string) (record.Actor, error)
},
) (*Identity, error) {
	actor, err := users.Actor(ctx, snap, w.User)
	if err != nil {
		return nil, err
	}
	if w.Roles != nil {
		actor.Roles = w.Roles
	}
	return &Identity{Actor: actor, Method: methodHeader, Session: newSessionID()}, nil
}

// methodHeader is the Method of callers that a gateway vouches for.
const methodHeader = "header"

// ParseNetworks reads addresses and networks: 10.0.0.1, 10.0.0.0/8, ::1.
func ParseNetworks(list []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range list {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			continue
		}
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, err
		}
		all = append(all, n.Masked())
	}
	return all, nil
}
