package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestLive_ChangesNameTheirSourceAndAreTakenBack(t *testing.T) {
	base := load(t, Sources{FileName: "weir.yaml", File: []byte("jdbc.MaxLimit: 10\nauth:\n  users: [{name: eve, password: apple}]\n")})
	row := func(e *Effective, name string) Row {
		t.Helper()
		rows, err := e.Rows()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Setting == name {
				return r
			}
		}
		t.Fatalf("no row of %s", name)
		return Row{}
	}
	if r := row(base, "database.pool.max"); r != (Row{"database.pool.max", 10, "weir.yaml:1 (jdbc.MaxLimit)", true, "jdbc.MaxLimit"}) {
		t.Errorf("%+v", r)
	}
	if r := row(base, "database.pool.wait"); r.Value != "5s" || r.Source != "default" || !r.Live {
		t.Errorf("%+v", r)
	}
	if r := row(base, "auth.users"); strings.Contains(fmt.Sprint(r.Value), "apple") || r.Live {
		t.Errorf("%+v", r)
	}
	next, names, err := base.Change(base, []byte(`{"jdbc.ConnectionWaitTimeout":3,"database":{"pool":{"max":50}},"cache.metadata.enabled":false,"ords":{"max_rows":7}}`), "by eve")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(names, " "); got != "cache.metadata database.pool.max database.pool.wait ords.max_rows" {
		t.Error(got)
	}
	if next.Database.Pool.Max != 50 || next.Database.Pool.Wait != 3*time.Second || next.Cache.Metadata || next.ORDS.MaxRows != 7 || base.Database.Pool.Max != 10 || base.ORDS.MaxRows != 10_000 {
		t.Errorf("%+v, base %+v", next.Database.Pool, base.Database.Pool)
	}
	if next.Origin("database.pool.max") != "by eve" || next.Origin("database.pool.wait") != "by eve (jdbc.ConnectionWaitTimeout)" || base.Origin("database.pool.max") == "by eve" {
		t.Error(next.origin, base.origin)
	}
	back, _, err := next.Change(base, []byte(`{"jdbc.MaxLimit":null,"database.pool.wait":null}`), "by eve")
	if err != nil || back.Database.Pool != base.Database.Pool || back.Origin("database.pool.max") != "weir.yaml:1 (jdbc.MaxLimit)" || back.Origin("database.pool.wait") != "default" {
		t.Errorf("%v %+v %v", err, back.Database.Pool, back.origin)
	}
}

func TestLive_FaultsAreAllToldAndNothingChanges(t *testing.T) {
	base := load(t, Sources{})
	f := func(patch string, want ...string) {
		t.Helper()
		_, _, err := base.Change(base, []byte(patch), "x")
		if err == nil {
			t.Errorf("%s is accepted", patch)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q lacks %q", patch, err, w)
			}
		}
	}
	f(`{"listen":"0.0.0.0:1","nosuch":1,"jdbc.InitialLimit":3}`, "listen: changes with a new start only", "nosuch: no such setting", "jdbc.InitialLimit is a setting of ORDS")
	f(`{"database.pool.max":"many"}`, "database.pool.max")
	f(`{"database.pool.max":-1}`, "must not be negative")
	f(`{"database.pool.max":[1]}`, "takes one value")
	f(`{"ords.error_format":"XML"}`, "ords.error_format")
	f(`[]`, "no JSON object")
	f(`{"cache.metadata":"perhaps"}`, "cache.metadata")
}
