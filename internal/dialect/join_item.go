package dialect

import (
	"net/url"
	"strings"

	"weir/internal/record"
	"weir/internal/wire"
)

// addressed is a URL that an item may have and what it means: many items of a batch have the same.
type addressed struct {
	url, path, rawPath, rawQuery string
	dialect                      Dialect
}

// ready reports whether item i can be decoded now; if not, it is answered or left unserviced.
func (r *run) ready(i int) bool {
	it := &r.items[i]
	r.work[i].call = r.call(i)
	switch {
	case it.Skip || r.late():
		r.unserviced(i, nil)
		return false
	case it.Err != nil:
		r.refuse(i, it.Err)
		return false
	}
	if r.parents != nil && len(r.parents[i]) > 0 && r.opt.Decode == nil {
		for _, p := range r.parents[i] {
			if r.parts[p].Unserviced {
				r.unserviced(i, nil)
				return false
			}
			if r.parts[p].failed {
				r.refuse(i, record.Errorf(record.Dependency, r.items[p].ID, "not run, since item %.80q, which it depends on, failed", r.items[p].ID))
				return false
			}
		}
		if err := r.substitute(i); err != nil {
			r.refuse(i, err)
			return false
		}
	}
	return true
}

// call is what decoders see of item i, its address aside.
func (r *run) call(i int) Call {
	it := &r.items[i]
	return Call{Method: it.Method, Base: r.outer.Base, Actor: r.outer.Actor, Item: true, Body: it.Body, Header: r.headers(it.Header), ContentID: it.ID, ID: r.outer.ID}
}

// decode makes an exchange of item i, which has before ops of its group before it; if that fails the item is answered.
func (r *run) decode(i, before int) bool {
	w := &r.work[i]
	if l := &r.last; l.dialect != nil && l.url == r.items[i].URL {
		w.call.Path, w.call.RawPath, w.call.RawQuery, w.dialect = l.path, l.rawPath, l.rawQuery, l.dialect
	} else {
		if err := r.address(&w.call, r.items[i].URL); err != nil {
			r.refuse(i, err)
			return false
		}
		w.dialect = r.Mux.Find(w.call.Path)
		if w.dialect == nil {
			w.dialect = r.dialect
			r.fail(i, record.Errorf(record.NoPath, "", "Requested URI does not represent any resource"))
			return false
		}
		if b, ok := w.dialect.(Batcher); ok && b.IsBatch("POST", w.call.Path) || sealedPath(w.call.Path) {
			r.refuse(i, record.Errorf(record.Invalid, "", "%.200s cannot be part of a batch", w.call.Path))
			return false
		}
		*l = addressed{r.items[i].URL, w.call.Path, w.call.RawPath, w.call.RawQuery, w.dialect}
	}
	if r.Admit != nil {
		var err error
		if w.header, err = r.Admit(&w.call); err != nil {
			r.fail(i, err)
			return false
		}
	}
	var err error
	if r.opt.Decode != nil {
		w.exchange, err = r.opt.Decode(i, w.dialect, &w.call, before, r.parts)
	}
	if err == nil && w.exchange == nil {
		w.exchange, err = w.dialect.Decode(r.Snapshot, &w.call)
		w.own = true
	}
	if err != nil {
		r.fail(i, err)
		return false
	}
	return true
}

// address fills path and query of c from the URL of an item.
func (r *run) address(c *Call, s string) error {
	if scheme, rest, ok := strings.Cut(s, "://"); ok && (strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https")) {
		end := strings.IndexAny(rest, "/?#")
		if end < 0 {
			end = len(rest)
		}
		_, own, _ := strings.Cut(r.outer.Base, "://")
		if !strings.EqualFold(rest[:end], own) {
			return record.Errorf(record.Invalid, "", "an item addresses this host alone, not %.80q", rest[:end])
		}
		s = rest[end:]
	}
	if r.opt.Decode == nil {
		s, _, _ = strings.Cut(s, "#")
	}
	path, query, _ := strings.Cut(s, "?")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	c.RawPath = path
	if strings.IndexByte(path, '%') >= 0 {
		plain, err := url.PathUnescape(path)
		if err != nil {
			return record.Errorf(record.Invalid, "", "the path %.80q has a bad escape", path)
		}
		path = plain
	}
	c.Path, c.RawQuery = path, query
	return nil
}

// sealedHeader reports whether name carries identity, forwarding or framing, which no setting lets an item choose.
func sealedHeader(name string) bool {
	switch name = strings.ToLower(name); name {
	case "authorization", "cookie", "host", "forwarded", "via", "origin", "referer", "connection", "content-length", "content-encoding",
		"transfer-encoding", "x-usertoken", "x-sn-apikey", "x-mfa_token", "x-real-ip":
		return true
	}
	return strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "proxy-") || strings.HasPrefix(name, "sec-") ||
		strings.Contains(name, "impersonate")
}

// headers is what decoders may see of the headers of an item; the list is changed in place.
func (r *run) headers(list wire.Header) wire.Header {
	kept := list[:0]
	for _, f := range list {
		if OpenHeader(f.Name) || len(r.Config.Headers) > 0 && listed(r.Config.Headers, f.Name) && !sealedHeader(f.Name) {
			kept = append(kept, f)
		}
	}
	return kept
}

// OpenHeader reports whether decoders see the header of an item.
func OpenHeader(name string) bool {
	return len(name) < len(openBySize) && listed(openBySize[len(name)], name)
}

func listed(names []string, name string) bool {
	for _, n := range names {
		if len(n) == len(name) && strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// sealedPath reports whether path belongs to login, tokens or the operator, which no item may reach.
func sealedPath(path string) bool {
	path = strings.ToLower(path)
	for _, p := range []string{"/oauth_token.do", "/oauth_revoke_token.do", "/weir", "/login", "/logout", "/api/jwt/", "/admin", "/plan", "/metrics", "/console", "/debug", "/healthz", "/readyz"} {
		if path == strings.TrimSuffix(p, "/") || strings.HasPrefix(path, p) && (strings.HasSuffix(p, "/") || path[len(p)] == '/') {
			return true
		}
	}
	return false
}
