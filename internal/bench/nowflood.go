package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Nodes starts the servers that a flood is aimed at, fresh for each trial, so that no trial inherits another's queue or high water.
type Nodes interface {
	// Configure starts the nodes under a gate profile with settings on top (setting name → value) and returns their
	// base URLs when all of them answer. stop ends them; it is called once, also after ctx has ended.
	Configure(ctx context.Context, profile string, settings map[string]string) (targets []string, stop func(), err error)
}

// Settings that the article's remedies turn, by the names of weir's configuration.
const (
	SettingSessionWaiting = "gate.session.waiting"     // how many requests of one session may wait
	SettingAPIIntQueue    = "gate.pools.api_int.queue" // how many requests may wait for the pool of single REST calls
)

// Variant is one way to serve the page.
type Variant struct {
	Name string `json:"name"`
	// Profile and Settings configure the nodes; see [Nodes].
	Profile  string            `json:"profile"`
	Settings map[string]string `json:"settings,omitempty"`
	// Batch is how many calls the page sends in one request; 1 means singly.
	Batch int `json:"batch"`
}

// NowFlood is the article's customer: users open, within two seconds, a page that makes 20 calls at once. Each user is a
// session of its own and stays on one node. The load model is open: users arrive whatever the server does, and nobody tries again.
type NowFlood struct {
	// User and Password log every user in; the sessions differ by their cookies.
	User, Password string
	// Insecure accepts any TLS certificate.
	Insecure bool
	// Users open the page.
	//
	// Defaults to 60.
	Users int
	// Arrive is the time within which they do, uniformly spread.
	//
	// Defaults to 2 s.
	Arrive time.Duration
	// PerUserConnections bounds a user's connections to the node. The article's calls go out all at once; a browser over
	// HTTP/1.1 opens 6.
	//
	// Defaults to 20.
	PerUserConnections int
	// BatchOf is the batch size of the batched ways.
	//
	// Defaults to 5.
	BatchOf int
	// PageTimeout is how long a user waits for the page; calls unanswered by then have failed.
	//
	// Defaults to 5 minutes.
	PageTimeout time.Duration
	// SessionPath is asked once by each user before the flood, to get the session's cookies.
	//
	// Defaults to /api/now/table/sys_user?sysparm_limit=1&sysparm_fields=sys_id.
	SessionPath string
	// MaxUsers is the most users that the search for the breaking point tries.
	//
	// Defaults to 480.
	MaxUsers int
	// SearchTime bounds the search of each way; negative means no search.
	//
	// Defaults to 1 minute.
	SearchTime time.Duration
	// Variants are the ways to compare.
	//
	// Defaults to those of [NowFlood.Ways].
	Variants []Variant
}

// Names of the two ways that the verdict is about.
const (
	waySingly  = "servicenow, singly"
	wayBatches = "servicenow, in batches"
)

// Ways are the article's: its default configuration, the customer's two remedies, batches; then the same flood under auto.
func (o NowFlood) Ways() []Variant {
	of := o.withDefaults().BatchOf
	return []Variant{
		{Name: waySingly, Profile: "servicenow", Batch: 1},
		{
			Name: "remedy 1: 20 waiting per session", Profile: "servicenow", Batch: 1,
			Settings: map[string]string{SettingSessionWaiting: "20"},
		},
		{
			Name: "remedy 2: and a queue of 1,000", Profile: "servicenow", Batch: 1,
			Settings: map[string]string{SettingSessionWaiting: "20", SettingAPIIntQueue: "1000"},
		},
		{Name: wayBatches, Profile: "servicenow", Batch: of},
		{Name: "auto, singly", Profile: "auto", Batch: 1},
		{Name: "auto, in batches", Profile: "auto", Batch: of},
	}
}

// FloodCase is what one flood did.
type FloodCase struct {
	Variant
	Users int `json:"users"`
	// Requests were sent, carrying Calls calls to endpoints. Served, Rejected (429, 503), Wrong and Failed (no answer)
	// count calls; they sum up to Calls unless a batch answer holds more than was asked for, which is wrong too.
	Requests int `json:"requests"`
	Calls    int `json:"calls"`
	Served   int `json:"served"`
	Rejected int `json:"rejected"`
	Wrong    int `json:"wrong"`
	Failed   int `json:"failed"`
	// PagesWhole is how many users got all their calls answered rightly.
	PagesWhole int `json:"pages_whole"`
	// PageP50MS, PageP90MS and PageMaxMS are times from a user's arrival to the last answer, whole pages only.
	PageP50MS float64 `json:"page_p50_ms"`
	PageP90MS float64 `json:"page_p90_ms"`
	PageMaxMS float64 `json:"page_max_ms"`
	// QueueHigh is the most that ever waited in one node's pool; absent when the server does not say.
	QueueHigh map[string]int `json:"queue_high,omitempty"`
	// ResidentBytes is the most memory one node held during the flood; 0 when the server does not say.
	ResidentBytes int64 `json:"resident_bytes,omitempty"`
	// Break is where this way breaks; absent without a search.
	Break *Break `json:"break,omitempty"`
}

// WholePercent is the share of pages that were whole.
func (c FloodCase) WholePercent() float64 { return 100 * float64(c.PagesWhole) / float64(c.Users) }

// Break tells with how many users a way still holds (all pages whole) and with how many it breaks.
type Break struct {
	// Holds is the most users tried with all pages whole; 0 when even one user's page broke.
	Holds int `json:"holds"`
	// Breaks is the fewest users tried with a page not whole; 0 when none broke.
	Breaks int `json:"breaks"`
	// Trials is how many floods the search made.
	Trials int `json:"trials"`
	// Limit says what ended the search before the two met: "time" or "users"; empty when they met within 5 %.
	Limit string `json:"limit,omitempty"`
}

// NowFloodResult is what the experiment found.
type NowFloodResult struct {
	Users              int         `json:"users"`
	ArriveSeconds      float64     `json:"arrive_seconds"`
	PerUserConnections int         `json:"per_user_connections"`
	Cases              []FloodCase `json:"cases"`
	// Verdict is one sentence for people.
	Verdict string `json:"verdict"`
	// OK is true when no answer was wrong or missing and, with 60 users within 2 s, single calls left fewer than 10 % of the pages
	// whole while batches of 5 made all of them whole. Problems say why not.
	OK       bool     `json:"ok"`
	Problems []string `json:"problems,omitempty"`
}

func (o NowFlood) withDefaults() NowFlood {
	setInt := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	setTime := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	setInt(&o.Users, 60)
	setInt(&o.PerUserConnections, endpoints)
	setInt(&o.BatchOf, 5)
	setInt(&o.MaxUsers, 480)
	setTime(&o.Arrive, 2*time.Second)
	setTime(&o.PageTimeout, 5*time.Minute)
	setTime(&o.SearchTime, time.Minute)
	if o.SessionPath == "" {
		o.SessionPath = "/api/now/table/sys_user?sysparm_limit=1&sysparm_fields=sys_id"
	}
	return o
}

func (o NowFlood) validate() error {
	switch {
	case o.Users < 1:
		return fmt.Errorf("users: %d, must be 1 or more", o.Users)
	case o.PerUserConnections < 1:
		return fmt.Errorf("connections per user: %d, must be 1 or more", o.PerUserConnections)
	case o.BatchOf < 2 || o.BatchOf > endpoints:
		return fmt.Errorf("batch size %d: must be from 2 to %d", o.BatchOf, endpoints)
	case o.Arrive < 0 || o.PageTimeout < 0:
		return errors.New("arrival time and page timeout must not be negative")
	case !strings.HasPrefix(o.SessionPath, "/"):
		return fmt.Errorf("session path %q must begin with /", o.SessionPath)
	}
	for _, v := range o.Variants {
		if v.Batch < 1 || v.Batch > endpoints {
			return fmt.Errorf("variant %q: batch size %d must be from 1 to %d", v.Name, v.Batch, endpoints)
		}
	}
	return nil
}

// Run floods the nodes in each way, then looks for the number of users at which it breaks. An error means that a
// way could not be tried: nodes that do not start, sessions that do not open, ctx ended.
func (o NowFlood) Run(ctx context.Context, nodes Nodes, progress io.Writer) (*NowFloodResult, error) {
	if len(o.Variants) == 0 {
		o.Variants = o.Ways()
	}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	r := &NowFloodResult{Users: o.Users, ArriveSeconds: o.Arrive.Seconds(), PerUserConnections: o.PerUserConnections}
	var why samples
	for _, v := range o.Variants {
		c, err := o.trial(ctx, nodes, v, o.Users, false, progress, &why)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		if n := c.Wrong + c.Failed; n > 0 {
			r.Problems = append(r.Problems, fmt.Sprintf("%s: %d calls answered wrongly, %d not answered", v.Name, c.Wrong, c.Failed))
		}
		if o.SearchTime > 0 {
			if c.Break, err = o.search(ctx, nodes, c, progress); err != nil {
				return nil, fmt.Errorf("%s: %w", v.Name, err)
			}
		}
		r.Cases = append(r.Cases, c)
	}
	o.judge(r)
	r.OK = len(r.Problems) == 0
	if !r.OK {
		r.Problems = append(r.Problems, why.list()...)
	}
	return r, nil
}

// judge writes the verdict. The article's claim is held against the result only at the size for which it is made.
func (o NowFlood) judge(r *NowFloodResult) {
	var singly, batches *FloodCase
	for i := range r.Cases {
		switch r.Cases[i].Name {
		case waySingly:
			singly = &r.Cases[i]
		case wayBatches:
			batches = &r.Cases[i]
		}
	}
	if singly == nil || batches == nil {
		r.Verdict = "no verdict: it needs the ways \"" + waySingly + "\" and \"" + wayBatches + "\""
		return
	}
	r.Verdict = fmt.Sprintf("%d users within %v under the article's configuration: singly %.1f %% of the pages are whole, in batches of %d %.1f %%",
		o.Users, o.Arrive, singly.WholePercent(), batches.Batch, batches.WholePercent())
	if o.Users != 60 || o.Arrive != 2*time.Second || o.BatchOf != 5 || o.PerUserConnections != endpoints {
		return
	}
	if singly.WholePercent() >= 10 {
		r.Problems = append(r.Problems, fmt.Sprintf("singly %.1f %% of the pages are whole, expected fewer than 10 %%", singly.WholePercent()))
	}
	if batches.PagesWhole < batches.Users {
		r.Problems = append(r.Problems, fmt.Sprintf("in batches of 5 only %d of %d pages are whole, expected all", batches.PagesWhole, batches.Users))
	}
	if len(r.Problems) == 0 {
		r.Verdict += ", as the article tells"
	}
}

// search doubles the users until a page breaks, then halves the gap, starting from what the case has shown.
func (o NowFlood) search(ctx context.Context, nodes Nodes, c FloodCase, progress io.Writer) (*Break, error) {
	limited, cancel := context.WithTimeout(ctx, o.SearchTime)
	defer cancel()
	b := &Break{}
	if c.PagesWhole == c.Users {
		b.Holds = c.Users
	} else {
		b.Breaks = c.Users
	}
	for {
		var users int
		switch {
		case b.Breaks == 0 && b.Holds >= o.MaxUsers:
			b.Limit = "users"
			return b, nil
		case b.Breaks == 0:
			users = min(2*b.Holds, o.MaxUsers)
		case b.Breaks-b.Holds <= max(1, b.Holds/20):
			return b, nil
		default:
			users = (b.Holds + b.Breaks) / 2
		}
		t, err := o.trial(limited, nodes, c.Variant, users, true, progress, &samples{})
		if ctx.Err() == nil && limited.Err() != nil {
			b.Limit = "time" // what the trial has shown when time ran out is no result
			return b, nil
		}
		if err != nil {
			return nil, err
		}
		b.Trials++
		if t.PagesWhole == users {
			b.Holds = users
		} else {
			b.Breaks = users
		}
	}
}

// trial starts fresh nodes and floods them. With untilBroken it ends at the first page that cannot become whole, which is all that the search asks.
func (o NowFlood) trial(ctx context.Context, nodes Nodes, v Variant, users int, untilBroken bool, progress io.Writer, why *samples) (FloodCase, error) {
	c := FloodCase{Variant: v, Users: users}
	targets, stop, err := nodes.Configure(ctx, v.Profile, v.Settings)
	if err != nil {
		return c, fmt.Errorf("start the nodes: %w", err)
	}
	defer stop()
	access := Access{Targets: targets, User: o.User, Password: o.Password, Insecure: o.Insecure}
	urls, err := access.targets()
	if err != nil {
		return c, err
	}
	visitors := make([]*client, users)
	for i := range visitors {
		visitors[i] = newClient(access, urls[i%len(urls)], o.PerUserConnections, true, true)
		defer visitors[i].close()
	}
	if err := o.openSessions(ctx, visitors); err != nil {
		return c, err
	}

	watch, stopWatch := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for watch.Err() == nil {
			c.watch(watch, access)
			pause(watch, 500*time.Millisecond)
		}
	}()
	err = o.flood(ctx, visitors, &c, untilBroken, progress, why)
	stopWatch()
	<-watched
	c.watch(ctx, access)
	return c, err
}

// openSessions lets each visitor make one GET, few at a time so that no queue fills before the flood. A server that
// sets no cookie would count all visitors as whatever it takes them for, so that is an error.
func (o NowFlood) openSessions(ctx context.Context, visitors []*client) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, v := range visitors {
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			status, body, err := v.send(ctx, http.MethodGet, o.SessionPath, nil)
			if err != nil {
				return fmt.Errorf("user %d opens a session: %w", i+1, err)
			}
			if status != http.StatusOK {
				return fmt.Errorf("user %d opens a session with %s: status %d: %s", i+1, o.SessionPath, status, excerpt(body))
			}
			if len(v.http.Jar.Cookies(v.base)) == 0 {
				return fmt.Errorf("user %d got no session cookie from %s: users cannot be told apart", i+1, o.SessionPath)
			}
			return nil
		})
	}
	return g.Wait()
}

// page is the calls of one page, cut into requests.
func page(batch int) [][]int {
	var requests [][]int
	for n := 1; n <= endpoints; n += batch {
		var ns []int
		for k := n; k < n+batch && k <= endpoints; k++ {
			ns = append(ns, k)
		}
		requests = append(requests, ns)
	}
	return requests
}

// flood lets the visitors arrive and open their pages, and counts.
func (o NowFlood) flood(ctx context.Context, visitors []*client, c *FloodCase, untilBroken bool, progress io.Writer, why *samples) error {
	parent := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex // guards c and times below
		times    = newTimes()
		answered atomic.Int64
		requests = page(c.Batch)
		random   = rand.New(rand.NewPCG(1, uint64(len(visitors)))) // the same arrivals in each run
		begin    = time.Now()
	)
	c.Calls, c.Requests = len(visitors)*endpoints, len(visitors)*len(requests)
	for _, v := range visitors {
		after := time.Duration(random.Float64() * float64(o.Arrive))
		wg.Go(func() {
			pause(ctx, time.Until(begin.Add(after)))
			arrived := time.Now()
			ctx, giveUp := context.WithTimeout(ctx, o.PageTimeout)
			defer giveUp()
			answers := make([]answer, len(requests))
			var calls sync.WaitGroup
			for i, ns := range requests {
				calls.Go(func() {
					answers[i] = v.call(ctx, ns, c.Batch > 1)
					answered.Add(int64(len(ns)))
					if untilBroken && !answers[i].right() {
						cancel()
					}
				})
			}
			calls.Wait()
			took := time.Since(arrived)

			mu.Lock()
			defer mu.Unlock()
			whole := true
			for _, a := range answers {
				c.Served += a.n[served]
				c.Rejected += a.n[rejected]
				c.Wrong += a.n[wrong]
				c.Failed += a.n[failed]
				whole = whole && a.right()
				if a.n[wrong]+a.n[failed] > 0 {
					why.keep(a.why)
				}
			}
			if whole {
				c.PagesWhole++
				record(times, took)
			}
		})
	}
	ticking, stopTicking := context.WithCancel(ctx)
	stopped := everySecond(ticking, func() {
		fmt.Fprintf(progress, "%-34s %4d users  %3.0f s  %6d of %d calls answered\n",
			c.Name, c.Users, time.Since(begin).Seconds(), answered.Load(), c.Calls)
	})
	wg.Wait()
	stopTicking()
	<-stopped
	c.PageP50MS, c.PageP90MS, c.PageMaxMS = percentileMS(times, 50), percentileMS(times, 90), float64(times.Max())/1000
	return parent.Err()
}

// watch reads the nodes' gauges into the case's high waters. A server without them leaves the case as it is.
func (c *FloodCase) watch(ctx context.Context, a Access) {
	urls, err := a.targets()
	if err != nil {
		return
	}
	const high = `weir_gate_waiting_high{pool="`
	for _, u := range urls {
		n := newClient(a, u, 1, false, false)
		for name, v := range n.gauges(ctx) {
			if name == "process_resident_memory_bytes" {
				c.ResidentBytes = max(c.ResidentBytes, int64(v))
			}
			if rest, ok := strings.CutPrefix(name, high); ok {
				pool, _, _ := strings.Cut(rest, `"`)
				if c.QueueHigh == nil {
					c.QueueHigh = make(map[string]int)
				}
				c.QueueHigh[pool] = max(c.QueueHigh[pool], int(v))
			}
		}
	}
}
