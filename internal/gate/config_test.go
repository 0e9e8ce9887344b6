package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

func TestConfig_ProfilesAreValid(t *testing.T) {
	for _, c := range []Config{ServiceNow(), Auto(0, 0), Auto(1, 1), Auto(64, 500)} {
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestConfig_AutoLeavesRoomBesideAFloodingSession(t *testing.T) {
	c := Auto(2, 20)
	p := c.Pools[DefaultPool]
	if c.Session.Running <= 0 || c.Session.Running >= p.Slots || c.Session.Waiting <= 0 || c.Session.Waiting >= p.Queue {
		t.Errorf("session %+v can fill pool %+v alone", c.Session, p)
	}
}

func TestConfig_ValidateReturnsAllFaultsWithPaths(t *testing.T) {
	c := ServiceNow()
	delete(c.Pools, DefaultPool)
	c.Pools["bad"] = PoolConfig{Slots: 0, Queue: -1}
	c.Session.Running = -1
	c.Routes = []Route{{Match: Match{Path: "api"}, Pool: "nowhere"}}
	c.Permits.Hashing.Slots = 0
	c.Bytes.Limit = 0
	c.Rates = RatesConfig{Rules: []RateRule{
		{ID: "a", PerHour: 1},
		{ID: "a", PerHour: 0, User: "u", Role: "r"},
		{PerHour: 1},
	}}
	want := []string{
		`gate.pools.bad.slots: must be at least 1, not 0`,
		`gate.pools.bad.queue: must be at least 0, not -1`,
		`gate.pools.bad.wait: must be longer than zero, not 0s`,
		`gate.pools.default: missing; what no route sends elsewhere goes there`,
		`gate.session.running: must be at least 0, not -1`,
		`gate.routes[0].path: must begin with a slash: "api"`,
		`gate.routes[0].pool: no pool "nowhere" in gate.pools`,
		`gate.permits.hashing.slots: must be at least 1, not 0`,
		`gate.bytes.limit: must be at least 1, not 0`,
		`gate.rates.tracked: must be at least 1, not 0`,
		`gate.rates.rules[1].id: "a" is taken by an earlier rule`,
		`gate.rates.rules[1].per_hour: must be at least 1, not 0`,
		`gate.rates.rules[1]: has both a user and a role; a rule concerns one of them, or everybody`,
		`gate.rates.rules[2].id: missing`,
	}
	_, err := New(c)
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	g := newGate(t, ServiceNow())
	if g.Reconfigure(c) == nil || g.Config().Session.Running != 1 {
		t.Error("a faulty configuration was put in force")
	}
}

func decode(c *Config, text string) error {
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	return d.Decode(c)
}

func TestConfig_FileChangesSingleFieldsOfTheProfile(t *testing.T) {
	c := ServiceNow()
	if err := decode(&c, `
pools:
  api_int: {queue: 1000}
  jobs: null
  reports: {slots: 2, wait: 1m}
session: {waiting: 20}
routes:
- {batch: true, pool: api_int}
`); err != nil {
		t.Fatal(err)
	}
	want := ServiceNow()
	want.Pools = Pools{
		DefaultPool: want.Pools[DefaultPool],
		APIPool:     {Slots: 4, Queue: 1000, Wait: 5 * time.Minute},
		"reports":   {Slots: 2, Queue: 150, Wait: time.Minute},
	}
	want.Session.Waiting = 20
	want.Routes = []Route{{Match: Match{Batch: true}, Pool: APIPool}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConfig_FileWithAnUnknownKeyIsRefusedWithItsLine(t *testing.T) {
	c := ServiceNow()
	err := decode(&c, "pools:\n  api_int:\n    que: 1000\n")
	if err == nil || !strings.Contains(err.Error(), "line 3: field que not found") {
		t.Errorf("got %v", err)
	}
}

func TestGate_RoutesByPathMethodDialectAndBatch(t *testing.T) {
	c := ServiceNow()
	c.Pools["reports"] = PoolConfig{Slots: 1, Wait: time.Second}
	c.Routes = append([]Route{
		{Match: Match{Path: "/api/snc/report/", Method: "get", Dialect: "now"}, Pool: "reports"},
	}, c.Routes...)
	g := newGate(t, c)
	f := func(r RequestInfo, want string) {
		t.Helper()
		if got := g.Route(r); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
	f(RequestInfo{Path: "/api/now/table/incident", Method: "GET", Dialect: "now"}, APIPool)
	f(RequestInfo{Path: "/api/now/v1/batch", Method: "POST", Dialect: "now", Batch: true}, DefaultPool)
	f(RequestInfo{Path: "/odata/v4/$batch", Method: "POST", Dialect: "odata", Batch: true}, DefaultPool)
	f(RequestInfo{Path: "/console/pools", Method: "GET"}, DefaultPool)
	f(RequestInfo{Path: "/consoles", Method: "GET"}, APIPool)
	f(RequestInfo{Path: "/api/snc/report", Method: "GET", Dialect: "now"}, "reports")
	f(RequestInfo{Path: "/api/snc/report/1", Method: "GET", Dialect: "now"}, "reports")
	f(RequestInfo{Path: "/api/snc/report/1", Method: "POST", Dialect: "now"}, APIPool)
	f(RequestInfo{Path: "/api/snc/reporting", Method: "GET", Dialect: "now"}, APIPool)

	c.Routes = []Route{{Match: Match{Batch: true}, Pool: APIPool}} // as the article says support may do
	if err := g.Reconfigure(c); err != nil {
		t.Fatal(err)
	}
	f(RequestInfo{Path: "/api/now/v1/batch", Method: "POST", Dialect: "now", Batch: true}, APIPool)
	c.Routes[0].Pool = "changed behind its back"
	f(RequestInfo{Path: "/api/now/v1/batch", Method: "POST", Dialect: "now", Batch: true}, APIPool)
}
