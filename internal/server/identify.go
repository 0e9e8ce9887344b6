package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// identify finds out who is calling, in a way that what is called takes. Nobody may call public endpoints only.
func (v *Visit) identify(ctx context.Context, snap *catalog.Snapshot) error {
	word, err := v.s.gateway.Take(v.r) // first, so that nobody else sees its headers
	// What carries neither Origin nor Sec-Fetch-Site is no browser and passes.
	if err := v.s.forgery.Check(v.r); err != nil && !slices.Contains(v.s.sharedWith(v.r), v.r.Header.Get("Origin")) {
		return record.Errorf(record.Forbidden, "", "a page of another site may not do this").Because(err)
	}
	v.describe() // without the gateway's headers
	if d, ok := v.d.(dialect.Entrance); ok {
		v.entry = d.EntryOf(snap, &v.call)
	}
	if !v.entry.Takes(dialect.ByGateway) {
		word, err = nil, nil
	}
	if err != nil {
		return err
	}
	if v.entry.Public && word == nil && !auth.Shows(v.r) {
		return nil
	}
	id, err := v.prove(ctx, snap, word)
	if id != nil {
		v.Identity = id
	}
	if err == nil || v.unprovenYet(err) {
		return nil
	}
	if v.entry.Public && word == nil && v.r.Header.Get("Authorization") == "" && record.KindOf(err) == record.Unauthenticated {
		return nil // a session that has ended is as good as none
	}
	return err
}

// prove finds out who is calling by what the request shows. A gateway's word goes first: what else stands there may be meant for it.
func (v *Visit) prove(ctx context.Context, snap *catalog.Snapshot, word *auth.Word) (*auth.Identity, error) {
	if word != nil {
		return word.Identity(ctx, snap, v.s.o.Auth)
	}
	scheme, _, _ := strings.Cut(v.r.Header.Get("Authorization"), " ")
	way := dialect.ByBasic // a cookie's session was opened so
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		way = dialect.ByBearer
	case strings.EqualFold(scheme, "Basic") && v.entry.Takes(dialect.ByDatabase):
		if v.s.o.Logins == nil {
			return nil, record.Errorf(record.Unauthenticated, "", "this node takes no database logins")
		}
		id, login, err := v.s.o.Logins.Caller(v.r)
		if err != nil && record.KindOf(err) == record.RateLimited {
			v.retry = time.Minute
		}
		v.login = login
		return id, err
	}
	if !v.entry.Takes(way) {
		return nil, notTaken(v.entry)
	}
	return v.s.o.Auth.Identify(ctx, snap, v.r)
}

// notTaken is the error of a caller who has not proved in a way that is taken who it is.
func notTaken(e dialect.Entry) error {
	var ways []string
	for _, w := range []struct {
		way  dialect.Way
		name string
	}{
		{dialect.ByBearer, "a bearer token"},
		{dialect.ByBasic, "Basic"},
		{dialect.ByDatabase, "Basic with a database user"},
		{dialect.ByGateway, "the gateway in front"},
	} {
		if e.Takes(w.way) {
			ways = append(ways, w.name)
		}
	}
	return record.Errorf(record.Unauthenticated, "", "taken here: %s", strings.Join(ways, ", "))
}

// wayOf is the way in which a caller has proved who it is, 0 for nobody.
func wayOf(id *auth.Identity) dialect.Way {
	switch id.Method {
	case "basic", "cookie":
		return dialect.ByBasic
	case "bearer":
		return dialect.ByBearer
	case "header":
		return dialect.ByGateway
	case "database":
		return dialect.ByDatabase
	}
	return 0
}

// enters reports, by an error, whether the caller of a batch may enter where one of its items leads.
func (v *Visit) enters(snap *catalog.Snapshot, d dialect.Dialect, c *dialect.Call) error {
	door, ok := d.(dialect.Entrance)
	if !ok {
		return nil
	}
	e := door.EntryOf(snap, c)
	if w := wayOf(v.Identity); e.Public || w != 0 && e.Takes(w) {
		return nil
	}
	return notTaken(e)
}

// permit is the door's second look, at what a call turned out to be: nobody calls anything but public endpoints, endpoints are called by
// those who have proved in a way that they take who they are, and a database user calls SQL endpoints alone, in a session of that user.
// The first look goes by the head of the call, and an endpoint may have forwarded to another one since.
func (v *Visit) permit(snap *catalog.Snapshot, ex *dialect.Exchange) error {
	way := wayOf(v.Identity)
	for i := range ex.Ops {
		op := &ex.Ops[i]
		var e dialect.Entry
		sql := false
		if op.Verb == record.Invoke && op.Invoke != nil {
			if known := snap.Endpoint(op.Invoke.Endpoint); known != nil {
				e.Public = known.Public
				if known.SQL != nil {
					e.Ways = dialect.WaysOf(known.SQL.Auth)
				}
			}
			sql = op.Invoke.SQL != nil
		}
		if !e.Public && !v.Later && (way == 0 || !e.Takes(way)) { // who is answered later was let in when the call was accepted
			return notTaken(e)
		}
		if v.login == nil {
			continue
		}
		if !sql {
			return record.Errorf(record.Unauthenticated, "", "a database user may call SQL endpoints only")
		}
		op.Invoke.SQL.Login = v.login
	}
	return nil
}

// judge counts a login that the database has refused.
func (v *Visit) judge(out []record.Outcome) {
	if v.login == nil {
		return
	}
	for i := range out {
		if out[i].Err != nil && out[i].Err.Kind == record.Unauthenticated {
			v.s.o.Logins.Failed(v.r, v.login)
			return
		}
	}
}

// challenge says in an answer 401 how a caller may prove who it is.
func (v *Visit) challenge(a *wire.Answer) {
	if a.Status != http.StatusUnauthorized || len(v.entry.Challenges) == 0 {
		return
	}
	a.Header.Del("WWW-Authenticate")
	for _, c := range v.entry.Challenges {
		a.Header.Add("WWW-Authenticate", c)
	}
}
