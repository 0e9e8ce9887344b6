package gate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// The pools that the profiles make.
const (
	DefaultPool = "default" // where a request goes that no route sends elsewhere; every configuration has it
	APIPool     = "api_int" // single integration calls in the servicenow profile
	JobsPool    = "jobs"    // durable jobs
)

// Config is every setting of the gate. Start from [Auto] or [ServiceNow]; the zero value is not valid.
type Config struct {
	// Pools are the pools by name. A configuration file changes single fields of the profile's pools, adds
	// pools, and removes one by setting it to null.
	//
	// Defaults to the pools of the profile.
	Pools Pools `yaml:"pools"`

	// Session limits what one session may do over all pools together.
	//
	// Defaults to the limits of the profile.
	Session SessionConfig `yaml:"session"`

	// Routes send requests to pools; the first that matches wins, and what none matches goes to the pool "default".
	//
	// Defaults to the routes of the profile.
	Routes []Route `yaml:"routes"`

	// SerialBatch makes the items of a batch run one after another, as the platform does that the servicenow profile imitates.
	//
	// Defaults to false; true in the servicenow profile.
	SerialBatch bool `yaml:"serial_batch"`

	// Permits bound work inside admitted requests.
	Permits PermitsConfig `yaml:"permits"`

	// Bytes bounds the memory held for all clients together.
	Bytes BudgetConfig `yaml:"bytes"`

	// Rates are limits per user and clock hour.
	Rates RatesConfig `yaml:"rates"`
}

// PoolConfig is the size of one pool, or of one set of permits.
type PoolConfig struct {
	// Slots is how many requests run at once. At least 1.
	//
	// Defaults to 16.
	Slots int `yaml:"slots"`

	// Queue is how many requests may wait for a slot. A full queue answers at once; 0 means that nobody waits.
	//
	// Defaults to 150.
	Queue int `yaml:"queue"`

	// Wait is how long a request may wait for its slot. A change concerns requests that arrive after it.
	//
	// Defaults to 30s.
	Wait time.Duration `yaml:"wait"`
}

// Pools are pool settings by pool name.
type Pools map[string]PoolConfig

// UnmarshalYAML lays a file's pools over those already there, field by field. (A YAML map would replace whole entries, and
// turning one pool's queue would silently reset its slots.) It is the decoder's older hook, which needs no import and stays strict.
func (p *Pools) UnmarshalYAML(decode func(any) error) error {
	var file map[string]*struct {
		Slots *int           `yaml:"slots"`
		Queue *int           `yaml:"queue"`
		Wait  *time.Duration `yaml:"wait"`
	}
	if err := decode(&file); err != nil {
		return err
	}
	pools := maps.Clone(*p)
	if pools == nil {
		pools = Pools{}
	}
	for name, in := range file {
		if in == nil {
			delete(pools, name)
			continue
		}
		c, known := pools[name]
		if !known {
			c = PoolConfig{Slots: 16, Queue: 150, Wait: 30 * time.Second}
		}
		set(&c.Slots, in.Slots)
		set(&c.Queue, in.Queue)
		set(&c.Wait, in.Wait)
		pools[name] = c
	}
	*p = pools
	return nil
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// SessionConfig limits one session over all pools. Work without a session (its name is empty) has no such limits.
type SessionConfig struct {
	// Running is how many requests of a session hold a slot at once; more of them wait. 0 means no limit but the pools'.
	//
	// Defaults to 4 for each processor, but at least 8; 1 in the servicenow profile.
	Running int `yaml:"running"`

	// Waiting is how many requests of a session wait at once; the next is rejected at once. 0 means no limit but the queues',
	// and lets one session fill a queue alone.
	//
	// Defaults to a quarter of the default pool's queue; 10 in the servicenow profile.
	Waiting int `yaml:"waiting"`
}

// RequestInfo is what the gate knows of a request.
type RequestInfo struct {
	Path     string // URL path, such as /api/now/table/incident
	Resource string // what the path addresses, where several paths lead there: /odata/GWSAMPLE_BASIC/ProductSet; or empty
	Method   string // request method, after any override
	Dialect  string // now, odata, ords, arsys, or empty
	Batch    bool   // a batch in any dialect
}

// Match says which requests a rule concerns. Fields left empty match everything.
type Match struct {
	// Path is a prefix of whole segments: /api/now matches /api/now and /api/now/table, not /api/nowhere. What OData calls address is
	// also known as /odata/SERVICE/SET, however their paths begin.
	//
	// Defaults to every path.
	Path string `yaml:"path"`

	// Method is the request method, in either case.
	//
	// Defaults to every method.
	Method string `yaml:"method"`

	// Dialect is the protocol front end: now, odata, ords or arsys.
	//
	// Defaults to every dialect.
	Dialect string `yaml:"dialect"`

	// Batch restricts the rule to batch requests.
	//
	// Defaults to false: batches and single requests.
	Batch bool `yaml:"batch"`
}

func (m Match) matches(r RequestInfo) bool {
	if m.Batch && !r.Batch || m.Dialect != "" && m.Dialect != r.Dialect {
		return false
	}
	if m.Method != "" && !strings.EqualFold(m.Method, r.Method) {
		return false
	}
	return m.Path == "" || below(r.Path, m.Path) || r.Resource != "" && below(r.Resource, m.Path)
}

// below reports whether a path has the prefix, in whole segments.
func below(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(prefix, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// Route sends the requests that it matches to a pool.
type Route struct {
	Match `yaml:",inline"`

	// Pool is the name of a pool in gate.pools. Required.
	Pool string `yaml:"pool"`
}

// PermitsConfig sizes the inner permits.
type PermitsConfig struct {
	// Scripts bounds scripts that run at once, over all requests and batch items.
	//
	// Defaults to 64 slots for each CPU and at least 256, a queue of 10000 and a wait of 30s.
	Scripts PoolConfig `yaml:"scripts"`

	// Hashing bounds password checks, each of which takes a core and tens of megabytes for a while.
	//
	// Defaults to one slot for each CPU, a queue of 100 and a wait of 5s.
	Hashing PoolConfig `yaml:"hashing"`
}

// BudgetConfig is the byte budget.
type BudgetConfig struct {
	// Limit is how many bytes may be held for clients at once: bodies read or waiting, results and answers not yet sent.
	//
	// Defaults to 268435456 (256 MiB).
	Limit int64 `yaml:"limit"`

	// Queue is how many requests may wait for bytes. A full queue answers at once.
	//
	// Defaults to 1000.
	Queue int `yaml:"queue"`

	// Wait is how long a request may wait for bytes.
	//
	// Defaults to 10s.
	Wait time.Duration `yaml:"wait"`
}

// RatesConfig holds the rate limits.
type RatesConfig struct {
	// Rules are the limits per user and hour; see [RateRule].
	//
	// Defaults to none.
	Rules []RateRule `yaml:"rules"`

	// Items counts the items of a batch too, each against the rule for its own path; the batch itself is counted once against the
	// rule for the batch. An item over its limit is answered 429 within the batch.
	//
	// Defaults to true.
	Items bool `yaml:"items"`

	// Tracked is how many pairs of rule and user are counted within an hour. Requests of further pairs pass uncounted, and
	// the statistics say how many did.
	//
	// Defaults to 100000.
	Tracked int `yaml:"tracked"`
}

// RateRule limits the requests that a user makes in one clock hour. With User it concerns that user, with Role each user who
// has the role, with neither every user; each user has a count of their own.
type RateRule struct {
	// ID names the rule in answers and statistics. Required and unique.
	ID string `yaml:"id"`

	Match `yaml:",inline"`

	// User is the user that the rule concerns.
	//
	// Defaults to none.
	User string `yaml:"user"`

	// Role is the role whose holders the rule concerns.
	//
	// Defaults to none.
	Role string `yaml:"role"`

	// PerHour is how many requests one user may make in a clock hour. At least 1.
	PerHour int `yaml:"per_hour"`
}

// Auto is the profile sized to the machine and to the database's connections, of which either may be 0 for unknown. Slots
// count requests, not connections: there are many more of them, so that single writes can meet in one commit.
func Auto(cpus, dbConns int) Config {
	cpus = max(cpus, 1)
	slots := max(128, 64*cpus, 4*dbConns)
	queue := 8 * slots
	c := base(cpus)
	c.Pools = Pools{
		DefaultPool: {Slots: slots, Queue: queue, Wait: 30 * time.Second},
		JobsPool:    {Slots: max(2, dbConns/2), Queue: 1000, Wait: 5 * time.Minute},
	}
	// What one session runs at once keeps the processors busy and no more: all that stands before a newcomer is the work of those
	// who have a slot already.
	c.Session = SessionConfig{Running: max(8, 4*cpus), Waiting: queue / 4}
	return c
}

// ServiceNow is the profile with the shape of one ServiceNow node: API_INT with 4 slots and 50 queued, Default with 16 and
// 150, one running and ten waiting per session, batches on Default and one item after another (protocol notes, section 11.4).
func ServiceNow() Config {
	c := base(4)
	c.Pools = Pools{
		DefaultPool: {Slots: 16, Queue: 150, Wait: 5 * time.Minute},
		APIPool:     {Slots: 4, Queue: 50, Wait: 5 * time.Minute},
		JobsPool:    {Slots: 8, Queue: 1000, Wait: 5 * time.Minute},
	}
	c.Session = SessionConfig{Running: 1, Waiting: 10}
	c.Routes = []Route{
		{Match: Match{Batch: true}, Pool: DefaultPool},
		{Match: Match{Path: "/console"}, Pool: DefaultPool},
		{Pool: APIPool},
	}
	c.SerialBatch = true
	return c
}

func base(cpus int) Config {
	return Config{
		Permits: PermitsConfig{
			Scripts: PoolConfig{Slots: max(256, 64*cpus), Queue: 10_000, Wait: 30 * time.Second},
			Hashing: PoolConfig{Slots: cpus, Queue: 100, Wait: 5 * time.Second},
		},
		Bytes: BudgetConfig{Limit: 256 << 20, Queue: 1000, Wait: 10 * time.Second},
		Rates: RatesConfig{Items: true, Tracked: 100_000},
	}
}

// Validate returns all faults of c, joined, each with the path of its setting.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	atLeast := func(path string, v, least int64) {
		if v < least {
			fault("%s: must be at least %d, not %d", path, least, v)
		}
	}
	positive := func(path string, d time.Duration) {
		if d <= 0 {
			fault("%s: must be longer than zero, not %s", path, d)
		}
	}
	pool := func(path string, p PoolConfig) {
		atLeast(path+".slots", int64(p.Slots), 1)
		atLeast(path+".queue", int64(p.Queue), 0)
		positive(path+".wait", p.Wait)
	}
	matches := func(path string, m Match) {
		if m.Path != "" && m.Path[0] != '/' {
			fault("%s.path: must begin with a slash: %q", path, m.Path)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(c.Pools)) {
		if name == "" {
			fault("gate.pools: a pool needs a name")
		}
		pool("gate.pools."+name, c.Pools[name])
	}
	if _, ok := c.Pools[DefaultPool]; !ok {
		fault("gate.pools.%s: missing; what no route sends elsewhere goes there", DefaultPool)
	}
	atLeast("gate.session.running", int64(c.Session.Running), 0)
	atLeast("gate.session.waiting", int64(c.Session.Waiting), 0)
	for i, r := range c.Routes {
		path := fmt.Sprintf("gate.routes[%d]", i)
		matches(path, r.Match)
		if _, ok := c.Pools[r.Pool]; !ok {
			fault("%s.pool: no pool %q in gate.pools", path, r.Pool)
		}
	}
	pool("gate.permits.scripts", c.Permits.Scripts)
	pool("gate.permits.hashing", c.Permits.Hashing)
	atLeast("gate.bytes.limit", c.Bytes.Limit, 1)
	atLeast("gate.bytes.queue", int64(c.Bytes.Queue), 0)
	positive("gate.bytes.wait", c.Bytes.Wait)
	atLeast("gate.rates.tracked", int64(c.Rates.Tracked), 1)
	seen := map[string]bool{}
	for i, r := range c.Rates.Rules {
		path := fmt.Sprintf("gate.rates.rules[%d]", i)
		matches(path, r.Match)
		switch {
		case r.ID == "":
			fault("%s.id: missing", path)
		case seen[r.ID]:
			fault("%s.id: %q is taken by an earlier rule", path, r.ID)
		}
		seen[r.ID] = true
		atLeast(path+".per_hour", int64(r.PerHour), 1)
		if r.User != "" && r.Role != "" {
			fault("%s: has both a user and a role; a rule concerns one of them, or everybody", path)
		}
	}
	return errors.Join(faults...)
}

// clone copies what c shares with its maker, so that nobody changes the gate's settings behind its back.
func (c Config) clone() *Config {
	c.Pools = maps.Clone(c.Pools)
	c.Routes = slices.Clone(c.Routes)
	c.Rates.Rules = slices.Clone(c.Rates.Rules)
	return &c
}
