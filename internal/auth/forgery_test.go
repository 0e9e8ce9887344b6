package auth

import (
	"testing"
	"time"

	"weir/internal/record"
)

func TestChangeToken_HoldsForItsSessionOnEveryNodeUntilItsEnd(t *testing.T) {
	s := newSite(t)
	clock := &clock{}
	clock.at.Store(time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC).Unix())
	node := func() *Auth {
		a, err := New(Defaults(), Options{Data: s.db, Now: clock.now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		return a
	}
	one, two := node(), node()
	ctx := t.Context()
	caller := func(name, session, method string) *Identity {
		return &Identity{Actor: record.Actor{Name: name}, Session: session, Method: method}
	}
	eve := caller("eve", "S1", "basic")
	token := one.ChangeToken(ctx, eve, time.Minute)
	f := func(name string, id *Identity, token string, want bool) {
		t.Helper()
		if got := two.ChangeTokenHolds(ctx, id, token); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	f("on another node", eve, token, true)
	f("by cookie", caller("eve", "S1", "cookie"), token, true)
	f("another session", caller("eve", "S2", "basic"), token, false)
	f("another user", caller("ann", "S1", "basic"), token, false)
	f("nothing", eve, "", false)
	f("fetch", eve, "Fetch", false)
	f("cut", eve, token[:len(token)-1], false)
	f("not base64", eve, token[:len(token)-1]+"!", false)
	bearer := one.ChangeToken(ctx, caller("eve", "S3", "bearer"), time.Minute)
	f("a bearer's sessions are new each time", caller("eve", "S4", "bearer"), bearer, true)
	f("a bearer's token is no cookie's", eve, bearer, false)
	clock.at.Add(59)
	f("just before its end", eve, token, true)
	clock.at.Add(2)
	f("after its end", eve, token, false)
}

func TestActor_IsTheUserAsTheyStandNow(t *testing.T) {
	s := newSite(t)
	a, err := New(Defaults(), Options{Data: s.db})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	eve, err := a.Actor(t.Context(), s.snap, "eve")
	if err != nil || eve.Key != "u1" || !eve.Has("admin") {
		t.Errorf("%+v %v", eve, err)
	}
	for _, name := range []string{"gone", "shut", "nobody"} {
		if _, err := a.Actor(t.Context(), s.snap, name); record.KindOf(err) != record.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
	}
}
