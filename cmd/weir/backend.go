package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"weir/internal/config"
	"weir/internal/gate"
	"weir/internal/remote"
	"weir/internal/server"
)

type backendCommand struct {
	place  `embed:""`
	Listen string `help:"Address to take calls of hubs on (127.0.0.1:8090)." placeholder:"ADDR" group:"Settings"`
	Status string `help:"Address to answer /healthz, /readyz and /metrics on over plain HTTP (nowhere)." placeholder:"ADDR" group:"Settings"`
}

// Help is the command's longer help.
func (backendCommand) Help() string {
	return `A backend has the database, the definitions and the users of a project, and runs what hubs (weir hub) send it: it applies the project as weir serve does, and speaks no protocol of clients. Several backends share one PostgreSQL; with SQLite there is one.

Hubs must prove who they are: by a certificate of remote.tls.ca (mutual TLS), or by remote.key, which without TLS is taken on this machine's loopback only. On SIGTERM it tells its hubs, and finishes what it has begun.

Examples:
  WEIR_REMOTE_KEY=… weir backend ./project
  weir backend ./project --db postgres://weir@db/weir --listen 0.0.0.0:8090 \
    --set remote.tls.cert=db1.pem --set remote.tls.key=db1.key --set remote.tls.ca=ca.pem --set remote.peers=hub1,hub2`
}

// Run takes calls until the context ends.
func (c *backendCommand) Run(ctx context.Context, s streams) error {
	e, err := c.load(flag("remote.listen", c.Listen, "--listen"), flag("remote.status", c.Status, "--status"))
	if err != nil {
		return err
	}
	tuneCollector(e.Limits.Memory, e.Gate.Bytes.Limit)
	folder, _ := c.folder()
	b, err := newBackend(ctx, e, folder, newLog(s.err, e.Log))
	if err != nil {
		return err
	}
	if at := e.Telemetry.Pprof; at != "" {
		stop, err := serveProfiles(at)
		if err != nil {
			return errors.Join(err, b.close())
		}
		defer stop()
	}
	fmt.Fprintf(s.out, "weir backend of %s takes calls at %s\n", named(&e.Config), b.calls.Addr())
	if b.status != nil {
		fmt.Fprintf(s.out, "its state is told at http://%s\n", b.status.Addr())
	}
	return b.Serve(ctx)
}

// backend is a core that hubs reach.
type backend struct {
	core    *core
	server  *remote.Server
	calls   net.Listener
	status  net.Listener // nil: none
	metrics bool
}

// newBackend opens the database, applies the project and opens the listeners; Serve takes calls.
func newBackend(ctx context.Context, e *config.Effective, folder fs.FS, log *slog.Logger) (b *backend, err error) {
	c := &e.Config
	if err := c.Remote.CheckBackend(); err != nil {
		return nil, usageError{err}
	}
	g, err := gate.New(c.Gate) // of which a backend has the permits only: hubs admit
	if err != nil {
		return nil, usageError{err}
	}
	b = &backend{metrics: c.Telemetry.Metrics}
	if b.core, err = newCore(ctx, c, folder, nil, g, log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	k := b.core
	newLevers(e).pull(k.adjust)
	b.server, err = remote.New(remote.Options{
		Config: c.Remote, Exec: k.engine, Auth: k.auth, Jobs: k.jobs, Snapshot: k.defs.snapshot, Changed: k.catalog.Changed, Refresh: k.refresh,
		Ready: k.ready, Drain: c.Limits.Drain, Log: log,
	})
	if err != nil {
		return nil, usageError{err}
	}
	if b.calls, err = net.Listen("tcp", c.Remote.Listen); err != nil {
		return nil, fmt.Errorf("remote.listen: %w", err)
	}
	if c.Remote.Status != "" {
		if b.status, err = net.Listen("tcp", c.Remote.Status); err != nil {
			return nil, fmt.Errorf("remote.status: %w", err)
		}
	}
	return b, nil
}

// Serve takes calls until ctx ends, finishes those it has accepted, and closes everything.
func (b *backend) Serve(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { b.core.run(background) })
	work.Go(func() { giveBackMemory(background, b.server.Calls) })
	if b.status != nil {
		tells := &http.Server{Handler: b.tells(), ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second}
		work.Go(func() { tells.Serve(b.status) }) // ends with Close
		defer tells.Close()
	}
	err := b.server.Serve(ctx, b.calls)
	stop()
	if b.status != nil {
		b.status.Close()
	}
	work.Wait()
	return errors.Join(err, b.core.close())
}

// tells answers how the backend is.
func (b *backend) tells() http.Handler {
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, status int, text string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		fmt.Fprintln(w, text)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if b.server.Ready() {
			say(w, http.StatusOK, "ok")
			return
		}
		say(w, http.StatusServiceUnavailable, "draining, or the database does not answer")
	})
	if b.metrics {
		registry := prometheus.NewRegistry()
		registry.MustRegister(b.server, server.StoreFigures(b.core.store.Stats, b.core.counters),
			collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	}
	return mux
}

func (b *backend) close() error {
	for _, l := range []net.Listener{b.calls, b.status} {
		if l != nil {
			l.Close()
		}
	}
	return b.core.close()
}
