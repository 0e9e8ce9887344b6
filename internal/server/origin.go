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

// cors lets pages of the origins in the setting cors.origins call, and of those that what is called names itself; and it answers their
// browsers' questions before. answered says that the request was such a question.
func (s *Server) cors(w http.ResponseWriter, r *http.Request) (answered bool) {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	named := slices.Contains(s.cfg.CORS.Origins, origin)
	if !named {
		list := s.sharedWith(r)
		if named = slices.Contains(list, origin); !named && !slices.Contains(list, "*") {
			return false
		}
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h["Access-Control-Allow-Origin"] = []string{origin}
	if named { // who is only one of all does not get what the browser's user may see
		h["Access-Control-Allow-Credentials"] = []string{"true"}
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
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

// sharedWith are the origins that the definition of what is called names. A browser's question before is about the method that it names.
func (s *Server) sharedWith(r *http.Request) []string {
	d, ok := s.o.Mux.Find(r.URL.Path).(dialect.Shared)
	if !ok {
		return nil
	}
	snap, err := s.o.Snapshot(r.Context())
	if err != nil {
		return nil // the call itself will say so
	}
	method := r.Method
	if asked := r.Header.Get("Access-Control-Request-Method"); method == http.MethodOptions && asked != "" {
		method = asked
	}
	return d.OriginsOf(snap, &dialect.Call{Method: method, Path: r.URL.Path, RawPath: r.URL.EscapedPath()})
}
