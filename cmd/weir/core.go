package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/config"
	"weir/internal/dialect/now"
	"weir/internal/endpoint"
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

// core is what stands below the protocols: the database with the engine on it, the definitions and the users. A server has one of its
// own; a hub asks those of its backends.
type core struct {
	store   store.Store
	engine  *engine.Engine
	catalog *catalog.Catalog
	auth    *auth.Auth
	jobs    *job.Store
	log     *slog.Logger
	sql     *endpoint.Runner
	defs    *definitions
	fixed   bool // a schema is exposed: the definitions are those that the process began with
	most    int  // connections, when the settings leave it to the database's kind
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
	least := c.Database.Pool.Min
	if least == 0 {
		least = -1
	}
	return opened(postgres.Open(ctx, postgres.Options{
		URL: at, Max: c.Database.Pool.Max, Wait: c.Database.Pool.Wait, Min: least, Idle: c.Database.Pool.Idle, Age: c.Database.Pool.Age,
		Statement: c.Database.StatementTimeout, Lock: c.Database.LockTimeout,
		Logins: c.Database.Logins.Max, TrustLogins: c.Database.Logins.Trust, RequestIDs: c.Database.RequestIDs,
	}))
}

// opened is the store, or nothing: a pointer to no store would be a store that is not nil.
func opened[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newCore opens the database and applies the project, or describes the schema that is exposed instead. Scripts and password checks take
// permits of the gate.
func newCore(ctx context.Context, c *config.Config, folder fs.FS, x *exposure, g *gate.Gate, log *slog.Logger) (k *core, err error) {
	k = &core{log: log, fixed: x.on()}
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	if k.store, err = openStore(ctx, c); err != nil {
		return k, err
	}
	k.most = k.store.Stats().Max
	k.store = auth.Announce(k.store, c.Auth.Tables, func(err error) {
		if k.auth != nil {
			k.auth.Forget()
		}
		if err == nil {
			return
		}
		log.Error("other nodes were not told of changed users; they learn it when auth.remember has passed", "error", err.Error())
	})
	options := c.Engine
	options.Hash = auth.Hash
	scripts := script.New(script.Options{Config: c.Script, ParseQuery: now.New(c.Now).ParseQuery, Log: log, Permit: permit(g.Scripts)})
	options.Invoker = scripts
	k.sql = endpoint.NewWith(k.store, endpoint.Options{MaxRows: c.ORDS.MaxRows, Slow: k.slow})
	options.SQL = k.sql
	if k.engine, err = engine.New(k.store, options); err != nil {
		return k, usageError{err}
	}
	scripts.SetData(k.engine)
	snap, err := k.define(ctx, folder, x)
	if err != nil {
		return k, err
	}
	k.catalog, k.jobs = catalog.New(snap), job.New(k.store)
	k.defs = &definitions{
		kept: func(context.Context) (*catalog.Snapshot, error) { return k.catalog.Snapshot(), nil },
		load: project.Uncached(k.store), check: k.refresh, log: log, began: time.Now(),
	}
	if k.fixed {
		k.defs.load, k.defs.check = k.defs.kept, func(context.Context) error { return nil }
	}
	if k.auth, err = auth.New(c.Auth, auth.Options{Data: k.store, Permit: permit(g.Hashing)}); err != nil {
		return k, usageError{err}
	}
	return k, nil
}

// define applies the project, or describes the schema that is exposed.
func (k *core) define(ctx context.Context, folder fs.FS, x *exposure) (*catalog.Snapshot, error) {
	if x.on() {
		return x.snapshot(ctx, k.store, k.log)
	}
	report, err := apply(ctx, k.store, folder, false, nil)
	if err != nil {
		return nil, err
	}
	if report.Changed || len(report.Loaded) > 0 {
		records := 0
		for _, l := range report.Loaded {
			records += l.Rows
		}
		k.log.Info("project applied", "version", report.Snapshot.Version, "schema_changes", len(report.Schema), "records_loaded", records)
		debug.FreeOSMemory() // loading data takes many times what serving does
	}
	return report.Snapshot, nil
}

// permit waits for one of the permits.
func permit(p *gate.Permits) func(ctx context.Context, user string) (func(), error) {
	return func(ctx context.Context, user string) (func(), error) {
		slot, err := p.Acquire(ctx, user)
		if err != nil {
			return nil, record.Errorf(record.Busy, "", "%v", err)
		}
		return slot.Release, nil
	}
}

// adjust puts those settings in force that change while the node runs.
func (k *core) adjust(c *config.Config) {
	k.defs.set(c.Cache.Metadata, c.Cache.Timeout)
	k.sql.SlowAfter(c.Telemetry.SlowStatement)
	k.sql.Bound(c.ORDS.MaxRows)
	k.store.Resize(cmp.Or(c.Database.Pool.Max, k.most), c.Database.Pool.Wait)
}

// counters are the figures of the engine and of the definitions.
func (k *core) counters() map[string]float64 {
	all := k.engine.Counters()
	maps.Copy(all, k.defs.counters())
	sql := k.sql.Stats()
	for name, n := range map[string]int64{
		"weir_endpoint_calls_total": sql.Calls, "weir_endpoint_queries_total": sql.Queries, "weir_endpoint_blocks_total": sql.Blocks,
		"weir_endpoint_tag_queries_total": sql.Tags, "weir_endpoint_unchanged_total": sql.Unchanged, "weir_endpoint_nested_total": sql.Nested,
		"weir_endpoint_slow_total": sql.Slow,
	} {
		all[name] = float64(n)
	}
	return all
}

// slow writes a call to the log that took long. The text is that of the file, so it holds no values.
func (k *core) slow(s endpoint.Slow) {
	attrs := []any{"txid", s.ID, "endpoint", s.Endpoint, "file", s.File, "took", s.Took, "sql", s.SQL}
	if s.Plan != "" {
		attrs = append(attrs, "plan", s.Plan)
	} else {
		attrs = append(attrs, "no_plan", s.NoPlan)
	}
	k.log.Warn("slow statement", attrs...)
}

// plan has the database explain an endpoint.
func (k *core) plan(ctx context.Context, snap *catalog.Snapshot, asked server.PlanAsked) (*store.Explained, error) {
	return k.sql.Explain(ctx, snap, endpoint.Plan{
		Endpoint: asked.Endpoint, Binds: asked.Binds, Tag: asked.Tag, Analyze: asked.Analyze, Offset: asked.Offset, Limit: asked.Limit,
	})
}

// refresh takes up definitions that were applied a moment ago.
func (k *core) refresh(ctx context.Context) error {
	return project.Refresh(ctx, k.store, k.catalog, k.log)
}

// ready asks the database for one record of weir's own.
func (k *core) ready(ctx context.Context) error {
	sys := catalog.System()
	t, err := sys.Table("project")
	if err != nil {
		return err
	}
	res, err := k.store.Query(ctx, &store.Read{Snapshot: sys, Table: t, Fields: []string{"version"}, Query: &record.Query{Limit: 1}})
	if err != nil {
		return err
	}
	defer res.Close()
	return res.Materialise(1 << 10)
}

// run does what a node does by itself until ctx ends: it follows what other nodes change, and removes what is old.
func (k *core) run(ctx context.Context) {
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		if err := k.store.Watch(ctx, k.auth.Forget); err != nil && ctx.Err() == nil {
			k.log.Error("changes made by other nodes are not seen any more", "error", err.Error())
		}
	})
	if k.fixed {
		k.trimTokens(ctx)
		return
	}
	work.Go(func() {
		if err := project.Follow(ctx, k.store, k.catalog, k.log); err != nil {
			k.log.Error("new definitions are not taken up any more", "error", err.Error())
		}
	})
	k.trimTokens(ctx)
}

// trimTokens removes expired tokens now and then.
func (k *core) trimTokens(ctx context.Context) {
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for {
			gone, err := k.auth.Trim(ctx)
			if err != nil && ctx.Err() == nil {
				k.log.Warn("expired tokens could not be removed", "error", err.Error())
			}
			if err != nil || gone == 0 {
				break
			}
		}
	}
}

func (k *core) close() error {
	if k.auth != nil {
		k.auth.Close()
	}
	var err error
	if k.engine != nil {
		err = k.engine.Close()
	}
	if k.store != nil {
		err = errors.Join(err, k.store.Close())
	}
	return err
}
