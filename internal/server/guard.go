package server

import (
	"context"
	"net/http"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// unprovenYet keeps for the guard what identify found: a change by cookie alone, without the proof that the now dialect knows.
// The dialect may know another.
func (v *Visit) unprovenYet(err error) bool {
	if _, ok := v.d.(dialect.Guarded); !ok || v.Identity.Method != "cookie" || record.KindOf(err) != record.Forbidden {
		return false
	}
	v.unproven = err
	return true
}

// guard lets the call pass if it owes no token or shows a valid one; else it is answered. It stands before the body is read.
func (v *Visit) guard(ctx context.Context, snap *catalog.Snapshot) (passed bool) {
	d, ok := v.d.(dialect.Guarded)
	if !ok {
		return true
	}
	g := d.Guard(snap, &v.call)
	switch v.Method {
	case http.MethodGet, http.MethodHead:
		if g.Fetch {
			v.grantAge = g.Age
		}
		return true
	case http.MethodOptions:
		return true
	}
	owes := g.Need == dialect.NeedAlways || g.Need == dialect.NeedBrowser && v.byBrowser()
	if v.Identity.Method == "bearer" && !g.Bearer {
		owes = false
	}
	if v.unproven != nil {
		if g.Need == dialect.NeedNot {
			v.fail(v.unproven)
			return false
		}
		owes = true
	}
	if !owes || v.s.o.Auth.ChangeTokenHolds(ctx, v.Identity, g.Token) {
		return true
	}
	v.Err = record.Errorf(record.Forbidden, "", "no valid token against forged changes")
	a := answer()
	defer release(a)
	d.Refuse(&v.call, a)
	v.send(a)
	return false
}

// byBrowser reports whether a browser may have sent the request by itself. Programs that send their credential and none of a browser's
// marks do what their users want.
func (v *Visit) byBrowser() bool {
	return v.Identity.Method == "cookie" || v.r.Header.Get("Origin") != "" || v.r.Header.Get("Sec-Fetch-Site") != ""
}

// grant adds a fresh token to a successful answer that asked for one. A failed answer never holds one (protocol notes of the odata
// dialect, section 1).
func (v *Visit) grant(a *wire.Answer) {
	if v.grantAge <= 0 || a.Status >= 400 {
		return
	}
	if token := v.s.o.Auth.ChangeToken(v.r.Context(), v.Identity, v.grantAge); token != "" {
		v.d.(dialect.Guarded).Grant(token, a)
	}
}
