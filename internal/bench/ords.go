package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// OrdsLevers is the article's tuning of SQL endpoints: users who each make some requests, once with a lever one way and once the other
// way, all else equal. It needs the endpoints that [WriteLevers] writes, on a server of its own or on a target. Other ORDS servers are
// measured where they have handlers on the same paths; what a target lacks is left out, and the result says so.
type OrdsLevers struct {
	// Access says who calls, and which target is measured. Without a target each of Stores is.
	Access
	// Client and Secret are an OAuth client that acts for a user.
	Client, Secret string
	// Base is where the endpoints are below a target.
	//
	// Defaults to /ords/levers.
	Base string
	// Program is the server's own binary, Project the folder that it serves. It is started with the shipped defaults.
	Program, Project string
	// Stores are the databases to measure on, each empty.
	Stores []OrdsStore
	// Users call at once, each with a connection of its own, and make Requests requests each.
	//
	// Default to the article's 25 and 100.
	Users, Requests int
	// Rounds is how often each case is measured, after a warm-up; the cases of a lever take turns.
	//
	// Defaults to 3.
	Rounds int
	// Longest bounds one measurement: what is slow is not called to the end.
	//
	// Defaults to 10 s.
	Longest time.Duration
	// Only are the levers to pull, by the beginnings of their names. Empty: all.
	Only []string
}

// OrdsStore is a database to measure on.
type OrdsStore struct {
	BarStore
	// Login is a user of the database for endpoints that ask for one; nil leaves them out.
	Login *OrdsLogin
}

// OrdsLogin is a user of a database. Trusted means that the server asks for no password, which makes a login cheaper than it should be.
type OrdsLogin struct {
	User, Password string
	Trusted        bool
}

// LeverCase is one position of a lever: medians over the rounds.
type LeverCase struct {
	Lever     string  `json:"lever"`
	Name      string  `json:"name"`
	Store     string  `json:"store,omitempty"`
	PerSecond float64 `json:"per_second"`
	// Times is requests/s against the first case of the lever.
	Times  float64 `json:"times"`
	MeanMS float64 `json:"mean_ms"`
	P50MS  float64 `json:"p50_ms"`
	P95MS  float64 `json:"p95_ms"`
	// Requests were answered rightly in all rounds together, Errors were not.
	Requests int `json:"requests"`
	Errors   int `json:"errors"`
	// Statements that the database ran for one request and RoundTrips to it, as the server tells; -1 when it does not. Bytes is the size of
	// an answer.
	Statements float64 `json:"statements"`
	RoundTrips float64 `json:"round_trips"`
	Bytes      int64   `json:"bytes"`
	// Article is what the article and the posts that it names say of the same.
	Article string `json:"article,omitempty"`
}

// OrdsLeversResult is what the levers are worth.
type OrdsLeversResult struct {
	Users    int         `json:"users"`
	Each     int         `json:"requests_each"`
	Rounds   int         `json:"rounds"`
	Cases    []LeverCase `json:"cases"`
	Notes    []string    `json:"notes,omitempty"`
	OK       bool        `json:"ok"`
	Problems []string    `json:"problems,omitempty"`
}

// pulled is one position of a lever.
type pulled struct {
	name, path string
	as         string         // who calls: "" nobody, basic, bearer, database
	hashing    bool           // on the node that remembers no credential
	set        map[string]any // settings that are changed for it
	unchanged  bool           // asks with the tag that it has, and is answered 304
	article    string
}

// lever is something to tune. The first of its cases is what the others are compared with.
type lever struct {
	name  string
	cases []pulled
	// same are the cases, by their places, whose answers must hold the same values.
	same bool
}

const articleAuth = "about 3 × without database logins"

// levers are all of them.
func levers() []lever {
	tags := func(kind, article string) []pulled {
		return []pulled{
			{name: "NONE, 200", path: kind + "_none/"},
			{name: "HASH, 200", path: kind + "_hash/"},
			{name: "HASH, 304", path: kind + "_hash/", unchanged: true},
			{name: "QUERY, 200", path: kind + "_query/"},
			{name: "QUERY, 304", path: kind + "_query/", unchanged: true, article: article},
		}
	}
	const articleJSON = "227 ms on average, 100 requests/s"
	nested := func(suffix string) []pulled {
		return []pulled{
			{name: "row by row", path: "rows" + suffix + "/"},
			{name: "one statement", path: "cursor" + suffix + "/"},
			{name: "JSON by hand", path: "json" + suffix + "/", article: articleJSON},
		}
	}
	return []lever{
		{name: "auth", cases: []pulled{
			{name: "database login", path: "flat_database/", as: "database"},
			{name: "Basic, not remembered", path: "flat_login/", as: "basic", hashing: true},
			{name: "Basic, remembered", path: "flat_login/", as: "basic", article: articleAuth},
			{name: "bearer", path: "flat_login/", as: "bearer", article: articleAuth},
			{name: "none", path: "flat/", article: articleAuth},
		}},
		{name: "etag-cheap", cases: tags("cheap", "")},
		{name: "etag-heavy", cases: tags("heavy", "86 → 271 requests/s (QUERY, 1 s)")},
		{name: "metadata", cases: []pulled{
			{name: "cache off", path: "flat/", set: map[string]any{"cache.metadata": false}, article: "200 requests/s"},
			{name: "cache on", path: "flat/", article: "917 requests/s, 4.6 ×"},
		}},
		{name: "cursor", cases: nested(""), same: true},
		{name: "cursor-3", cases: []pulled{
			{name: "row by row", path: "rows3/"},
			{name: "one statement", path: "cursor3/"},
		}, same: true},
		{name: "cursor-large", cases: nested("_large"), same: true},
	}
}

func (o OrdsLevers) withDefaults() OrdsLevers {
	setInt := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	setInt(&o.Users, 25)
	setInt(&o.Requests, 100)
	setInt(&o.Rounds, 3)
	if o.Longest == 0 {
		o.Longest = 10 * time.Second
	}
	if o.Base == "" {
		o.Base = "/ords/" + LeverSchema
	}
	o.Base = "/" + strings.Trim(o.Base, "/")
	return o
}

func (o OrdsLevers) validate() error {
	switch {
	case o.Users < 1:
		return fmt.Errorf("users: %d, must be 1 or more", o.Users)
	case o.Requests < 1:
		return fmt.Errorf("requests: %d, must be 1 or more", o.Requests)
	case o.Rounds < 1:
		return fmt.Errorf("rounds: %d, must be 1 or more", o.Rounds)
	case o.Longest < 0:
		return errors.New("the longest time of a measurement must not be negative")
	case len(o.Targets) > 1:
		return errors.New("one target is measured, not several")
	case len(o.Targets) == 0 && len(o.Stores) == 0:
		return errors.New("no store to measure on")
	}
	known := levers()
	for _, name := range o.Only {
		if !slices.ContainsFunc(known, func(l lever) bool { return strings.HasPrefix(l.name, name) }) {
			return fmt.Errorf("no lever's name begins with %q", name)
		}
	}
	return nil
}

func (o OrdsLevers) wants(name string) bool {
	return len(o.Only) == 0 || slices.ContainsFunc(o.Only, func(s string) bool { return strings.HasPrefix(name, s) })
}

// Run pulls the levers and writes a line of progress for each case. An error means that nothing could be measured.
func (o OrdsLevers) Run(ctx context.Context, progress io.Writer) (*OrdsLeversResult, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	r := &OrdsLeversResult{Users: o.Users, Each: o.Requests, Rounds: o.Rounds}
	if len(o.Targets) > 0 {
		if err := o.pull(ctx, r, ordsServer{access: o.Access}, progress); err != nil {
			return nil, err
		}
	}
	for _, s := range o.Stores {
		if err := o.onStore(ctx, r, s, progress); err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if len(r.Cases) == 0 {
		r.Problems = append(r.Problems, "nothing was measured")
	}
	r.OK = len(r.Problems) == 0
	return r, nil
}

// onStore starts a node with the shipped settings, and one that remembers no credential, on an empty database.
func (o OrdsLevers) onStore(ctx context.Context, r *OrdsLeversResult, s OrdsStore, progress io.Writer) error {
	var more []string
	if s.Login != nil && s.Login.Trusted {
		more = append(more, "--set", "database.logins.trust=true")
		r.Notes = append(r.Notes, s.Name+": the server asks users for no password, so a database login costs less here than it does elsewhere")
	}
	shipped, err := startOrds(ctx, o.Program, o.Project, s.URL, more...)
	if err != nil {
		return err
	}
	defer shipped.stop()
	server := ordsServer{store: s, access: o.at(shipped.url)}
	if o.wants("auth") {
		// Guesses are bounded, and each check of a credential that is not remembered counts as one.
		hashing, err := startOrds(ctx, o.Program, o.Project, s.URL,
			"--set", "auth.remember=0s", "--set", "auth.guesses_per_user=100000000", "--set", "auth.guesses_per_address=100000000")
		if err != nil {
			return err
		}
		defer hashing.stop()
		server.hashing = hashing.url
	}
	return o.pull(ctx, r, server, progress)
}

func (o OrdsLevers) at(url string) Access {
	a := o.Access
	a.Targets = []string{url}
	return a
}

// startOrds starts a node on a project and a database.
func startOrds(ctx context.Context, program, project, db string, more ...string) (*process, error) {
	return startProcess(ctx, program, append([]string{"serve", project, "--listen", "127.0.0.1:0", "--db", db, "--set", "log.level=warn"}, more...)...)
}

// pull measures all levers on one server.
func (o OrdsLevers) pull(ctx context.Context, r *OrdsLeversResult, s ordsServer, progress io.Writer) error {
	var err error
	if s.client, err = newOrdsClient(s.access); err != nil {
		return err
	}
	defer s.client.close()
	for _, l := range levers() {
		if !o.wants(l.name) {
			continue
		}
		var ready []*leverRun
		for _, c := range l.cases {
			run, why, err := o.prepare(ctx, &s, c)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", l.name, c.name, err)
			}
			if why != "" {
				r.Notes = append(r.Notes, strings.TrimSpace(fmt.Sprintf("%s %s, %s: left out, %s", s.store.Name, l.name, c.name, why)))
				continue
			}
			ready = append(ready, run)
		}
		if l.same {
			if why := differ(ready); why != "" {
				r.Problems = append(r.Problems, fmt.Sprintf("%s %s: %s", s.store.Name, l.name, why))
			}
		}
		if err := o.measure(ctx, &s, ready); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		o.report(r, s.store.Name, l.name, ready, progress)
	}
	return nil
}

// measure lets the cases take turns; the first round warms up and is not counted.
func (o OrdsLevers) measure(ctx context.Context, s *ordsServer, ready []*leverRun) error {
	for round := range o.Rounds + 1 {
		for i := range ready {
			run := ready[(i+round)%len(ready)] // nobody is always the first
			load, err := o.once(ctx, s, run, round == 0)
			if err != nil {
				return fmt.Errorf("%s: %w", run.name, err)
			}
			if round > 0 {
				run.loads = append(run.loads, load)
			}
		}
	}
	return nil
}

// once measures a case once, under its settings.
func (o OrdsLevers) once(ctx context.Context, s *ordsServer, run *leverRun, warm bool) (load LoadResult, err error) {
	if len(run.set) > 0 {
		if err := s.client.change(ctx, run.set); err != nil {
			return load, err
		}
		defer func() { // also after the end of ctx: a target keeps no setting of ours
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer cancel()
			back := make(map[string]any, len(run.set))
			for name := range run.set {
				back[name] = nil
			}
			err = errors.Join(err, s.client.change(ctx, back))
		}()
	}
	options := LoadOptions{
		Access:      Access{Targets: []string{run.target}, Insecure: o.Insecure},
		Request:     Request{Method: http.MethodGet, Path: run.path, Header: run.header, Want: run.want},
		Connections: o.Users, Each: o.Requests, Duration: o.Longest,
	}
	load, err = Load(ctx, options)
	if err != nil || !warm {
		return load, err
	}
	run.statements, run.trips, err = s.client.work(ctx, run)
	return load, err
}

// report adds the medians of a lever's cases.
func (o OrdsLevers) report(r *OrdsLeversResult, store, name string, ready []*leverRun, progress io.Writer) {
	var first float64
	for i, run := range ready {
		of := func(f func(LoadResult) float64) float64 {
			var v []float64
			for _, l := range run.loads {
				v = append(v, f(l))
			}
			return median(v)
		}
		c := LeverCase{
			Lever: name, Name: run.name, Store: store, Article: run.article, Statements: run.statements, RoundTrips: run.trips, Bytes: run.bytes,
			PerSecond: of(func(l LoadResult) float64 { return l.PerSecond }), MeanMS: of(func(l LoadResult) float64 { return l.MeanMS }),
			P50MS: of(func(l LoadResult) float64 { return l.P50MS }), P95MS: of(func(l LoadResult) float64 { return l.P95MS }),
		}
		for _, l := range run.loads {
			c.Requests += l.Requests
			c.Errors += l.Errors()
			if l.Errors() > 0 {
				r.Problems = append(r.Problems, fmt.Sprintf("%s %s, %s: %d errors: %s", store, name, run.name, l.Errors(), strings.Join(l.Why, "; ")))
			}
			if got, want := l.Bytes, int64(l.Requests)*run.bytes; got != want {
				r.Problems = append(r.Problems, fmt.Sprintf("%s %s, %s: answers have %d bytes, want %d", store, name, run.name, got, want))
			}
		}
		if i == 0 {
			first = c.PerSecond
		}
		c.Times = ratio(c.PerSecond, first)
		r.Cases = append(r.Cases, c)
		fmt.Fprintf(progress, "%-9s %-13s %-22s %9.0f requests/s  %8.2f ms\n", store, name, run.name, c.PerSecond, c.MeanMS)
	}
}
