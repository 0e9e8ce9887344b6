package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/config"
	"weir/internal/dialect"
	"weir/internal/dialect/now"
	"weir/internal/dialect/odata"
	"weir/internal/engine"
	"weir/internal/gate"
	"weir/internal/job"
	"weir/internal/project"
	"weir/internal/record"
	"weir/internal/script"
	"weir/internal/server"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
)

// node is one server with everything it stands on.
type node struct {
	Addrs []net.Addr

	store   store.Store
	engine  *engine.Engine
	catalog *catalog.Catalog
	auth    *auth.Auth
	gate    *gate.Gate
	server  *server.Server
	tracer  *tracer // nil unless telemetry.otlp is set
	log     *slog.Logger

	base     gate.Config        // the gate's settings as they were read
	settings chan gate.Config   // new ones, while it serves
	changes  chan gateChange    // likewise, to those there are
	regated  func(*gate.Config) // called with the gate's settings when they came in force; nil for nobody
}

// openStore opens the database that the settings name.
func openStore(ctx context.Context, c *config.Config) (store.Store, error) {
	kind, at, err := c.Where()
	if err != nil {
		return nil, usageError{err}
	}
	if kind == "sqlite" {
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return nil, err
		}
		return opened(sqlite.Open(ctx, sqlite.Options{
			Path: at, Max: c.Database.Pool.Max, Wait: c.Database.Pool.Wait, Statement: c.Database.StatementTimeout,
		}))
	}
	return opened(postgres.Open(ctx, postgres.Options{
		URL: at, Max: c.Database.Pool.Max, Wait: c.Database.Pool.Wait,
		Statement: c.Database.StatementTimeout, Lock: c.Database.LockTimeout,
	}))
}

// opened is the store, or nothing: a pointer to no store would be a store that is not nil.
func opened[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newNode opens the database, applies the project and opens the listeners; Serve answers.
func newNode(ctx context.Context, c *config.Config, folder fs.FS, log *slog.Logger) (n *node, err error) {
	n = &node{log: log, base: c.Gate, settings: make(chan gate.Config), changes: make(chan gateChange)}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if n.store, err = openStore(ctx, c); err != nil {
		return n, err
	}
	n.store = auth.Announce(n.store, c.Auth.Tables, func(err error) {
		if n.auth != nil {
			n.auth.Forget()
		}
		if err == nil {
			return
		}
		log.Error("other nodes were not told of changed users; they learn it when auth.remember has passed", "error", err.Error())
	})
	options := c.Engine
	options.Hash = auth.Hash
	front, services := now.New(c.Now), odata.New(c.OData)
	scripts := script.New(script.Options{
		Config: c.Script, ParseQuery: front.ParseQuery, Log: log,
		Permit: func(ctx context.Context, user string) (func(), error) {
			slot, err := n.gate.Scripts.Acquire(ctx, user)
			if err != nil {
				return nil, record.Errorf(record.Busy, "", "%v", err)
			}
			return slot.Release, nil
		},
	})
	options.Invoker = scripts
	if n.engine, err = engine.New(n.store, options); err != nil {
		return n, usageError{err}
	}
	scripts.SetData(n.engine)
	report, err := apply(ctx, n.store, folder, false, nil)
	if err != nil {
		return n, err
	}
	if report.Changed || len(report.Loaded) > 0 {
		records := 0
		for _, l := range report.Loaded {
			records += l.Rows
		}
		log.Info("project applied", "version", report.Snapshot.Version, "schema_changes", len(report.Schema), "records_loaded", records)
		debug.FreeOSMemory() // loading data takes many times what serving does
	}
	snap := report.Snapshot
	n.catalog = catalog.New(snap)
	if n.gate, err = gate.New(c.Gate); err != nil {
		return n, usageError{err}
	}
	n.auth, err = auth.New(c.Auth, auth.Options{
		Data: n.store,
		Permit: func(ctx context.Context, user string) (func(), error) {
			slot, err := n.gate.Hashing.Acquire(ctx, user)
			if err != nil {
				return nil, record.Errorf(record.Busy, "", "%v", err)
			}
			return slot.Release, nil
		},
	})
	if err != nil {
		return n, usageError{err}
	}
	if err = n.demoLoginStaysHome(ctx, c, snap); err != nil {
		return n, err
	}
	snapshot := func(context.Context) (*catalog.Snapshot, error) { return n.catalog.Snapshot(), nil }
	if !c.Cache.Metadata {
		snapshot = project.Uncached(n.store)
	}
	mux := &dialect.Mux{}
	mux.Handle("/api/", front)
	for _, prefix := range odata.Prefixes {
		mux.Handle(prefix, services)
	}
	var traced func(*server.Visit)
	if c.Telemetry.OTLP != "" {
		if n.tracer, err = newTracer(ctx, c.Telemetry, c.Name); err != nil {
			return n, usageError{err}
		}
		traced = n.tracer.visit
	}
	n.server, err = server.New(server.Options{
		Config: c.Server(), Gate: n.gate, Auth: n.auth, Exec: n.engine, Mux: mux, Fallback: front,
		Snapshot: snapshot, Jobs: job.New(n.store), Ready: n.ready, Pool: n.store.Stats, Counters: n.engine.Counters, Trace: traced, Log: log,
		GateSettings: server.GateSettings{
			JSON:   func() ([]byte, error) { return config.GateJSON(n.gate.Config()) },
			Change: n.change,
		},
	})
	if err != nil {
		return n, usageError{err}
	}
	n.Addrs, err = n.server.Listen()
	return n, err
}

// demoLoginStaysHome refuses to listen beyond this machine while the login that everybody knows still works.
func (n *node) demoLoginStaysHome(ctx context.Context, c *config.Config, snap *catalog.Snapshot) error {
	for _, at := range c.Listen {
		if auth.LoopbackHost(at) {
			continue
		}
		known, err := n.auth.DemoLogin(ctx, snap)
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

// ready asks the database for one record of weir's own.
func (n *node) ready(ctx context.Context) error {
	sys := catalog.System()
	t, err := sys.Table("project")
	if err != nil {
		return err
	}
	res, err := n.store.Query(ctx, &store.Read{Snapshot: sys, Table: t, Fields: []string{"version"}, Query: &record.Query{Limit: 1}})
	if err != nil {
		return err
	}
	defer res.Close()
	return res.Materialise(1 << 10)
}

// Serve answers requests until ctx ends, finishes those it has accepted, and closes everything.
func (n *node) Serve(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() {
		if err := n.store.Watch(background, n.auth.Forget); err != nil && background.Err() == nil {
			n.log.Error("changes made by other nodes are not seen any more", "error", err.Error())
		}
	})
	work.Go(func() {
		if err := project.Follow(background, n.store, n.catalog, n.log); err != nil {
			n.log.Error("new definitions are not taken up any more", "error", err.Error())
		}
	})
	work.Go(func() {
		if err := n.gate.Run(background); err != nil {
			n.log.Warn("a session that floods may slow others down", "error", err.Error())
		}
	})
	work.Go(func() { n.trimTokens(background) })
	work.Go(func() { n.giveBackMemory(background) })
	work.Go(func() { n.followGate(background, n.base) })
	err := n.server.Serve(ctx)
	stop()
	work.Wait()
	return errors.Join(err, n.close())
}

// giveBackMemory returns what requests have used to the system when none has come for two seconds. By itself Go collects an idle
// process every two minutes: one password check alone leaves 19 MiB behind.
func (n *node) giveBackMemory(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before uint64
	for quiet := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var served, busy uint64
		for _, p := range n.gate.Stats().Pools {
			served += p.Served
			busy += uint64(p.InUse)
		}
		if served != before || busy > 0 {
			before, quiet = served, 0
			continue
		}
		if quiet++; quiet == 2 {
			debug.FreeOSMemory()
		}
	}
}

// trimTokens removes expired tokens now and then.
func (n *node) trimTokens(ctx context.Context) {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for {
			gone, err := n.auth.Trim(ctx)
			if err != nil && ctx.Err() == nil {
				n.log.Warn("expired tokens could not be removed", "error", err.Error())
			}
			if err != nil || gone == 0 {
				break
			}
		}
	}
}

func (n *node) close() error {
	if n.auth != nil {
		n.auth.Close()
	}
	var err error
	if n.tracer != nil {
		err = n.tracer.close()
	}
	if n.engine != nil {
		err = errors.Join(err, n.engine.Close())
	}
	if n.store != nil {
		err = errors.Join(err, n.store.Close())
	}
	return err
}
