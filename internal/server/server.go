package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/gate"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// Options are what the server works with.
type Options struct {
	Config Config
	Gate   *gate.Gate
	Auth   Authority
	// Logins are database users who call; nil lets none in.
	Logins *auth.Logins
	Exec   dialect.Executor
	Mux    *dialect.Mux
	// Fallback writes the errors of paths that no dialect owns.
	Fallback dialect.Dialect
	// Snapshot is the definitions that a request beginning now works with. It may read them (cache.metadata: off).
	Snapshot func(context.Context) (*catalog.Snapshot, error)
	// Jobs keeps calls that are answered later; nil answers all at once.
	Jobs Jobs
	// Ready reports whether the database answers; nil is yes.
	Ready func(context.Context) error
	// Pool is the figures of the database's connections; nil for none.
	Pool func() store.Stats
	// GateSettings shows and changes the gate's settings; empty for neither.
	GateSettings GateSettings
	// Settings shows and changes the others; empty for neither.
	Settings Settings
	// Plan has the database explain what a call of a SQL endpoint runs; nil for a node without a database.
	Plan func(ctx context.Context, snap *catalog.Snapshot, asked PlanAsked) (*store.Explained, error)
	// Counters are further figures by name, such as the engine's, read at every scrape; nil for none.
	Counters func() map[string]float64
	// Collectors are further metrics.
	Collectors []prometheus.Collector
	// Trace receives the record of each finished request, to make spans of; nil for none. It must not block.
	Trace func(*Visit)
	Log   *slog.Logger
}

// Authority says who is calling: an [auth.Auth], or something that asks one.
type Authority interface {
	// Identify says who sent the request; see [auth.Auth.Identify].
	Identify(ctx context.Context, snap *catalog.Snapshot, r *http.Request) (*auth.Identity, error)
	// Token and Revoked answer the endpoints that hand out tokens and take them back.
	Token(ctx context.Context, snap *catalog.Snapshot, r *http.Request, body []byte) (*auth.Answer, error)
	Revoked(ctx context.Context, snap *catalog.Snapshot, r *http.Request, body []byte) (*auth.Answer, error)
	// ChangeToken is a token with which the caller proves for age that its changes are no other site's doing, "" if there is none to be
	// had; ChangeTokenHolds checks one.
	ChangeToken(ctx context.Context, id *auth.Identity, age time.Duration) string
	ChangeTokenHolds(ctx context.Context, id *auth.Identity, token string) bool
	// Actor is a user as they stand now, for work that was accepted from them earlier.
	Actor(ctx context.Context, snap *catalog.Snapshot, name string) (record.Actor, error)
}

// Server is one node's door.
type Server struct {
	cfg      Config
	o        Options
	exec     dialect.Executor
	log      *slog.Logger
	tx       *txLog
	metrics  *metrics
	forgery  *http.CrossOriginProtection
	redact   redaction
	proxies  []netip.Prefix
	gateway  *auth.Gateway
	draining atomic.Bool
	serial   atomic.Uint64 // numbers the requests, as log lines do

	starved   starved
	deferrals *deferrals // nil: none
	slotted   slotted
	listeners []*listener
	conns     conns
	http      *http.Server
}

// New returns a server with the given options, or all faults of its settings.
func New(o Options) (*Server, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: o.Config, o: o, log: o.Log, forgery: http.NewCrossOriginProtection(), redact: newRedaction(o.Config.Log.Redact)}
	s.gateway = auth.NewGateway(s.cfg.Trusted)
	s.proxies, _ = auth.ParseNetworks(s.cfg.Proxies) // checked with the settings
	for _, origin := range s.cfg.CORS.Origins {
		if err := s.forgery.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("cors.origins: %w", err)
		}
	}
	s.exec = &careful{s}
	s.tx = newTxLog(o.Config.TxLog, o.Exec, o.Snapshot, o.Log)
	s.metrics = newMetrics(s)
	if o.Jobs != nil && s.cfg.Async.Workers > 0 {
		s.deferrals = &deferrals{s: s, wake: make(chan struct{}, 1), under: map[string]context.CancelFunc{}}
	}
	return s, nil
}

// Listen opens the listeners and returns their addresses; requests wait until Serve.
func (s *Server) Listen() ([]net.Addr, error) {
	tlsConfig, err := s.cfg.TLS.config(s.cfg.Listen)
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(tlsConfig != nil)
	s.http = &http.Server{
		Handler:           s,
		TLSConfig:         tlsConfig,
		Protocols:         protocols,
		ReadHeaderTimeout: s.cfg.Limits.HeaderTime,
		IdleTimeout:       s.cfg.Limits.IdleTime,
		MaxHeaderBytes:    s.cfg.Limits.HeaderBytes,
		ConnState:         s.conns.note,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // handshakes and hang-ups of strangers
	}
	var addrs []net.Addr
	for _, at := range s.cfg.Listen {
		l, err := net.Listen("tcp", at)
		if err != nil {
			for _, open := range s.listeners {
				open.Close()
			}
			return nil, fmt.Errorf("listen on %s: %w", at, err)
		}
		s.listeners = append(s.listeners, newListener(l.(*net.TCPListener), s.cfg.Limits.Connections))
		addrs = append(addrs, l.Addr())
	}
	return addrs, nil
}

// Serve answers requests until ctx ends. Then it stops accepting, finishes what it has accepted within limits.drain, writes the
// transaction log to its end and returns.
func (s *Server) Serve(ctx context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	logging, endLog := context.WithCancel(context.WithoutCancel(ctx))
	deferring, leaveDeferred := context.WithCancel(ctx)
	var work, jobs sync.WaitGroup
	work.Go(func() { s.tx.run(logging) })
	if s.deferrals != nil {
		jobs.Go(func() { s.deferrals.run(deferring, background) })
	}
	failed := make(chan error, len(s.listeners))
	for _, l := range s.listeners {
		work.Go(func() {
			err := error(nil)
			if s.http.TLSConfig != nil {
				err = s.http.ServeTLS(l, "", "")
			} else {
				err = s.http.Serve(l)
			}
			if !s.Draining() {
				failed <- err
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.draining.Store(true)
	leaveDeferred()
	last, cancel := context.WithTimeout(logging, s.cfg.Limits.Drain)
	defer cancel()
	// http.Server's Shutdown drops requests whose head it reads after it was called. So the listeners close first, and it
	// is called when every connection that was accepted has had its answer.
	s.http.SetKeepAlivesEnabled(false)
	for _, l := range s.listeners {
		l.drain()
	}
	s.conns.quiet(last)
	if e := s.http.Shutdown(last); e != nil {
		s.http.Close()
		err = errors.Join(err, fmt.Errorf("requests were still running after limits.drain (%s): %w", s.cfg.Limits.Drain, e))
	}
	// Deferred calls have had as long as the requests took. What is not done goes to another node, or waits for this one's return.
	stop()
	jobs.Wait()
	if e := s.o.Gate.Drain(last); e != nil {
		err = errors.Join(err, e)
	}
	endLog() // it writes what it has first
	work.Wait()
	return err
}

// Draining reports whether the server has begun to stop.
func (s *Server) Draining() bool { return s.draining.Load() }

func newTransactionID() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// careful is the executor with the eyes of the door: internal errors are logged once, with the request's id, and clients learn
// the id only. It serves single calls and batches alike, and keeps which statements their operations shared.
type careful struct{ s *Server }

func (c *careful) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	rec := telemetry.From(ctx)
	at := rec.Elapsed()
	out := c.s.o.Exec.Execute(ctx, snap, u)
	noteSets(rec, at, u.Ops, out)
	for i := range out {
		c.look(ctx, &out[i])
	}
	return out
}

func (c *careful) Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	out := c.s.o.Exec.Stream(ctx, snap, u)
	c.look(ctx, &out)
	return out
}

func (c *careful) look(ctx context.Context, out *record.Outcome) {
	if out.Err != nil && out.Err.Kind == record.Unavailable && out.Err.Rule == record.RulePool {
		c.s.exhausted(telemetry.From(ctx), out.Err)
	}
	if out.Err != nil && out.Err.Kind == record.Internal {
		out.Err = c.s.public(telemetry.From(ctx), out.Err)
	}
}

// exhausted writes to the log that no connection to the database came free, with the pool's figures: at most once a second, with how
// many others had none meanwhile.
func (s *Server) exhausted(rec *telemetry.Recorder, e *record.Error) {
	s.metrics.poolExhausted.Inc()
	s.starved.more.Add(1)
	now, last := time.Now().Unix(), s.starved.at.Load()
	if now == last || !s.starved.at.CompareAndSwap(last, now) {
		return
	}
	id := ""
	if rec != nil {
		id = rec.ID
	}
	s.log.Warn("no database connection", "txid", id, "error", e.Msg, "operations", s.starved.more.Swap(0))
}

// starved are the operations that got no connection.
type starved struct {
	at   atomic.Int64 // the second in which the log last said so
	more atomic.Int64 // since then
}

// public makes of an error what a client may see. An Internal is logged, with the id that the client is told.
func (s *Server) public(rec *telemetry.Recorder, err error) *record.Error {
	e := record.AsError(err)
	if e.Kind != record.Internal || e.Rule == loggedAlready {
		return e
	}
	id := ""
	if rec != nil {
		id = rec.ID
	}
	s.log.Error("internal error", "txid", id, "error", e.Error())
	s.metrics.internal.Inc()
	return &record.Error{Kind: record.Internal, Rule: loggedAlready, Msg: "internal error; the log of the server tells more under txid=" + id}
}

// loggedAlready marks an Internal whose cause is in the log.
const loggedAlready = "logged"
