package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"weir/internal/dialect"
)

// base is "scheme://host" as the client knows this server, for links in answers. What forwarding headers say counts when it comes from
// one of the addresses in the setting proxies.
func (s *Server) base(r *http.Request) string {
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if s.proxied(r) {
		if p := strings.ToLower(firstOf(r.Header.Get("X-Forwarded-Proto"))); p == "http" || p == "https" {
			scheme = p
		}
		if h := firstOf(r.Header.Get("X-Forwarded-Host")); plainHost(h) {
			host = h
		}
	}
	return scheme + "://" + host
}

// proxied reports whether the other end of the connection is a proxy that is believed.
func (s *Server) proxied(r *http.Request) bool {
	if len(s.proxies) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(s.proxies, func(n netip.Prefix) bool { return n.Contains(peer.Addr().Unmap()) })
}

// firstOf is the first of values with commas between: what the proxy nearest to the client said.
func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(first)
}

// plainHost reports whether a text is a host, perhaps with a port, and nothing that could be more.
func plainHost(h string) bool {
	return h != "" && len(h) <= 255 && !strings.ContainsFunc(h, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._:[]", c))
	})
}

// exposed are the headers that pages of other origins may read: those of the dialects that scripts look at.
const exposed = "X-CSRF-Token, sap-statistics, sap-perf-fesrec, sap-message, sap-metadata-last-modified, DataServiceVersion, OData-Version, OData-EntityId, " +
	"ETag, Location, Retry-After, AsyncResult, Preference-Applied, Repeatability-Result, Server-Timing, X-Transaction-ID, X-Total-Count, Link"

// cors lets pages of other origins call that may: of everything those in the setting cors.origins, of a path those that it names itself.
// It answers their browsers' questions before. answered says that the request was such a question.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	h := w.Header()
	switch {
	case slices.Contains(s.cfg.CORS.Origins, origin) || s.hosts(r, origin):
		h.Add("Vary", "Origin")
		h["Access-Control-Allow-Origin"] = []string{origin}
		h["Access-Control-Allow-Credentials"] = []string{"true"}
	case s.hosts(r, "*"): // not with what the browser knows of its user: that would be every page's
		h["Access-Control-Allow-Origin"] = []string{"*"}
	default:
		return false
	}
	if !preflight(r) {
		h["Access-Control-Expose-Headers"] = []string{exposed}
		return false
	}
	h["Access-Control-Allow-Methods"] = []string{"GET, HEAD, POST, PUT, PATCH, MERGE, DELETE, OPTIONS"}
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h["Access-Control-Allow-Headers"] = []string{asked}
	}
	h["Access-Control-Max-Age"] = []string{"600"}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// preflight reports whether a request is a browser's question before one.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// hosts reports whether what a request leads to names an origin as one of which pages may call it.
func (s *Server) hosts(r *http.Request, origin string) bool {
	d, ok := s.o.Mux.Find(r.URL.Path).(dialect.Hosted)
	if !ok {
		return false
	}
	snap, err := s.o.Snapshot(r.Context())
	if err != nil {
		return false // the request itself is answered with what is wrong
	}
	c := dialect.Call{Method: r.Method, Path: r.URL.Path, RawPath: r.URL.EscapedPath()}
	if preflight(r) {
		c.Method = r.Header.Get("Access-Control-Request-Method")
	}
	return slices.Contains(d.OriginsOf(snap, &c), origin)
}
