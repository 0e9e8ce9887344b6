package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/config"
	"weir/internal/dialect"
	"weir/internal/dialect/now"
	"weir/internal/dialect/odata"
	"weir/internal/dialect/ords"
	"weir/internal/gate"
	"weir/internal/remote"
	"weir/internal/server"
	"weir/internal/store"
)

// node is one server: the door, with the protocols behind it, on a core of its own or on backends.
type node struct {
	Addrs []net.Addr

	below  below
	gate   *gate.Gate
	server *server.Server
	levers *levers
	logins *auth.Logins
	tracer *tracer // nil unless telemetry.otlp is set
	log    *slog.Logger

	base     gate.Config        // the gate's settings as they were read
	settings chan gate.Config   // new ones, while it serves
	changes  chan gateChange    // likewise, to those there are
	regated  func(*gate.Config) // called with the gate's settings when they came in force; nil for nobody
}

// below is what a node stands on.
type below struct {
	exec dialect.Executor
	auth interface {
		server.Authority
		DemoLogin(context.Context, *catalog.Snapshot) (string, error)
	}
	jobs       server.Jobs
	snapshot   func(context.Context) (*catalog.Snapshot, error)
	ready      func(context.Context) error
	pool       func() store.Stats
	counters   func() map[string]float64
	plan       func(context.Context, *catalog.Snapshot, server.PlanAsked) (*store.Explained, error) // nil: there is no database
	collectors []prometheus.Collector
	run        func(context.Context) // until the context ends; nil: nothing runs beside
	close      func() error
}

// newNode opens the database, applies the project or describes the schema that is exposed instead, and opens the listeners; Serve answers.
func newNode(ctx context.Context, e *config.Effective, folder fs.FS, x *exposure, log *slog.Logger) (*node, error) {
	c := &e.Config
	g, err := gate.New(c.Gate)
	if err != nil {
		return nil, usageError{err}
	}
	k, err := newCore(ctx, c, folder, x, g, log)
	if err != nil {
		return nil, err
	}
	l := newLevers(e)
	l.pull(k.adjust)
	return newFront(ctx, l, g, below{
		exec: k.engine, auth: k.auth, jobs: k.jobs, snapshot: k.defs.snapshot, ready: k.ready, pool: k.store.Stats, counters: k.counters,
		plan: k.plan, run: k.run, close: k.close,
	}, log)
}

// newHub connects to the backends and opens the listeners; Serve answers.
func newHub(ctx context.Context, e *config.Effective, log *slog.Logger) (*node, error) {
	c := &e.Config
	g, err := gate.New(c.Gate)
	if err != nil {
		return nil, usageError{err}
	}
	backends, err := remote.Dial(c.Remote, log)
	if err != nil {
		return nil, usageError{err}
	}
	if err := backends.Start(ctx); err != nil {
		return nil, errors.Join(err, backends.Close())
	}
	defs := &definitions{kept: backends.Snapshot, load: backends.Fetch, log: log, began: time.Now()}
	l := newLevers(e, "database.", "cache.timeout", "telemetry.slow_statement")
	l.pull(func(c *config.Config) { defs.set(c.Cache.Metadata, c.Cache.Timeout) })
	return newFront(ctx, l, g, below{
		exec: backends, auth: backends, jobs: backends.Jobs(), snapshot: defs.snapshot, counters: defs.counters, ready: backends.Ready,
		collectors: []prometheus.Collector{backends}, close: backends.Close,
	}, log)
}

// newFront opens the listeners of a node, which owns from then on what it stands on.
func newFront(ctx context.Context, l *levers, g *gate.Gate, b below, log *slog.Logger) (n *node, err error) {
	c := &l.base.Config
	n = &node{below: b, gate: g, levers: l, logins: auth.NewLogins(c.Auth, c.ORDS.DatabaseRoles), log: log, base: c.Gate, settings: make(chan gate.Config), changes: make(chan gateChange)}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if err = n.demoLoginStaysHome(ctx, c); err != nil {
		return n, err
	}
	front, services := now.New(c.Now), odata.New(c.OData)
	mux := &dialect.Mux{}
	mux.Handle("/api/", front)
	for _, prefix := range odata.Prefixes {
		mux.Handle(prefix, services)
	}
	sql := ords.New(c.ORDS)
	l.pull(func(c *config.Config) { sql.Reconfigure(c.ORDS) })
	mux.Handle(ords.Prefix, sql)
	var traced func(*server.Visit)
	if c.Telemetry.OTLP != "" {
		if n.tracer, err = newTracer(ctx, c.Telemetry, c.Name); err != nil {
			return n, usageError{err}
		}
		traced = n.tracer.visit
	}
	n.server, err = server.New(server.Options{
		Config: c.Server(), Gate: g, Auth: b.auth, Logins: n.logins, Exec: b.exec, Mux: mux, Fallback: front, Snapshot: b.snapshot, Jobs: b.jobs,
		Ready: b.ready, Pool: b.pool, Plan: b.plan, Counters: b.counters, Collectors: b.collectors, Trace: traced, Log: log,
		GateSettings: server.GateSettings{
			JSON:   func() ([]byte, error) { return config.GateJSON(g.Config()) },
			Change: n.change,
		},
		Settings: server.Settings{List: l.list, Change: l.change},
	})
	if err != nil {
		return n, usageError{err}
	}
	n.Addrs, err = n.server.Listen()
	return n, err
}

// demoLoginStaysHome refuses to listen beyond this machine while the login that everybody knows still works.
func (n *node) demoLoginStaysHome(ctx context.Context, c *config.Config) error {
	for _, at := range c.Listen {
		if auth.LoopbackHost(at) {
			continue
		}
		snap, err := n.below.snapshot(ctx)
		if err != nil {
			return err
		}
		known, err := n.below.auth.DemoLogin(ctx, snap)
		if err != nil {
			return err
		}
		if known != "" {
			return usageError{fmt.Errorf("listen %s: %s still has the demo's password, which everybody knows; change it first, "+
				"a user's by serving on 127.0.0.1 and PATCHing user_password in sys_user", at, known)}
		}
	}
	return nil
}

// Serve answers requests until ctx ends, finishes those it has accepted, and closes everything.
func (n *node) Serve(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	if n.below.run != nil {
		work.Go(func() { n.below.run(background) })
	}
	work.Go(func() {
		if err := n.gate.Run(background); err != nil {
			n.log.Warn("a session that floods may slow others down", "error", err.Error())
		}
	})
	work.Go(func() { giveBackMemory(background, n.served) })
	work.Go(func() { n.followGate(background, n.base) })
	err := n.server.Serve(ctx)
	stop()
	work.Wait()
	return errors.Join(err, n.close())
}

// served is how many requests have had a slot, and how many have one now.
func (n *node) served() (done, busy int64) {
	for _, p := range n.gate.Stats().Pools {
		done += int64(p.Served)
		busy += int64(p.InUse)
	}
	return done, busy
}

// giveBackMemory returns what work has used to the system when there was none for two seconds. By itself Go collects an idle
// process every two minutes: one password check alone leaves 19 MiB behind.
func giveBackMemory(ctx context.Context, work func() (done, busy int64)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before int64
	for quiet := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		done, busy := work()
		if done != before || busy > 0 {
			before, quiet = done, 0
			continue
		}
		if quiet++; quiet == 2 {
			debug.FreeOSMemory()
		}
	}
}

func (n *node) close() error {
	n.logins.Close()
	var err error
	if n.tracer != nil {
		err = n.tracer.close()
	}
	return errors.Join(err, n.below.close())
}
