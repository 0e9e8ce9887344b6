package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"weir/internal/catalog"
	"weir/internal/project"
	"weir/internal/record"
)

// Client sends a hub's units and questions to its backends. It is safe for concurrent use.
type Client struct {
	cfg      Config
	log      *slog.Logger
	backends []*backend
	turn     atomic.Uint64 // where the next choice among equals begins
	wire     *prometheus.HistogramVec

	catalog *catalog.Catalog
	fetched chan struct{} // closed when there are definitions
	once    sync.Once     // closes it
	news    chan struct{} // told when a backend answered or failed

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// backend is one backend as a hub sees it.
type backend struct {
	addr string
	conn *grpc.ClientConn
	wire prometheus.Observer

	outstanding           atomic.Int64
	calls, lost, repeated atomic.Int64

	mu    sync.Mutex
	state state
}

// state is what is known of a backend.
type state struct {
	up bool
	event
	why error // when it is not up
}

func (b *backend) now() state {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

// Dial returns a client of the backends that the settings name, or all that is wrong with the settings. It connects when it starts.
func Dial(cfg Config, log *slog.Logger) (*Client, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(cfg.Backends) == 0 {
		return nil, errors.New("remote.backends: a hub needs at least one backend")
	}
	key, err := cfg.key()
	if err != nil {
		return nil, err
	}
	encrypt, err := cfg.client()
	if err != nil {
		return nil, err
	}
	if err := cfg.proven(key, encrypt != nil, encrypt != nil && len(encrypt.Certificates) > 0, cfg.Backends...); err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(codec{}), grpc.MaxCallRecvMsgSize(cfg.Message), grpc.MaxCallSendMsgSize(cfg.Message)),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(8 * window),
		grpc.WithReadBufferSize(64 << 10), grpc.WithWriteBufferSize(64 << 10),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstPause, Multiplier: 2, Jitter: 0.2, MaxDelay: lastPause},
			MinConnectTimeout: 3 * time.Second,
		}),
		// What may be sent again is decided here, by what it does.
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithStatsHandler(watchSending{}), grpc.WithUserAgent("weir"),
	}
	if encrypt != nil {
		options = append(options, grpc.WithTransportCredentials(credentials.NewTLS(encrypt)))
	} else {
		options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	}
	if key != "" {
		options = append(options, grpc.WithPerRPCCredentials(showKey{map[string]string{keyHeader: bearer + key}}))
	}
	c := &Client{
		cfg: cfg, log: log, catalog: catalog.New(nil), fetched: make(chan struct{}), news: make(chan struct{}, 1),
		wire: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "weir_backend_wire_seconds", Help: "Time of calls beyond what the backend worked on them, by backend.",
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160,
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
		}, []string{"backend"}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for _, at := range cfg.Backends {
		conn, err := grpc.NewClient("passthrough:///"+at, options...)
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("remote.backends: %s: %w", at, err)
		}
		c.backends = append(c.backends, &backend{addr: at, conn: conn, wire: c.wire.WithLabelValues(at), state: state{why: errors.New("not tried yet")}})
	}
	return c, nil
}

// showKey shows the shared key with every call.
type showKey struct{ header map[string]string }

// GetRequestMetadata is the header with the key.
func (k showKey) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return k.header, nil
}

// RequireTransportSecurity is false: the settings say where a key may go without.
func (showKey) RequireTransportSecurity() bool { return false }

// Close ends all connections. Nothing may be asked afterwards.
func (c *Client) Close() error {
	c.cancel()
	c.work.Wait()
	var err error
	for _, b := range c.backends {
		err = errors.Join(err, b.conn.Close())
	}
	return err
}

// Start connects to the backends, and returns when one of them has answered with its definitions. The error says why none did
// within remote.wait, or at once if all refuse this hub.
func (c *Client) Start(ctx context.Context) error {
	for _, b := range c.backends {
		c.work.Go(func() { c.follow(b) })
	}
	limit := time.NewTimer(c.cfg.Wait)
	defer limit.Stop()
	for {
		select {
		case <-c.fetched:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			return fmt.Errorf("no backend answered within remote.wait (%s):\n%w", c.cfg.Wait, c.reasons())
		case <-c.news:
			if c.refused() {
				return c.reasons()
			}
		}
	}
}

// reasons is why each backend is not up.
func (c *Client) reasons() error {
	var all []error
	for _, b := range c.backends {
		if s := b.now(); !s.up {
			all = append(all, fmt.Errorf("backend %s: %w", b.addr, s.why))
		}
	}
	return errors.Join(all...)
}

// errRefused is the cause of what waiting does not mend.
var errRefused = errors.New("refused")

func (c *Client) refused() bool {
	for _, b := range c.backends {
		if s := b.now(); s.up || !errors.Is(s.why, errRefused) {
			return false
		}
	}
	return true
}

// Snapshot is the definitions in force.
func (c *Client) Snapshot(context.Context) (*catalog.Snapshot, error) {
	if s := c.catalog.Snapshot(); s != nil {
		return s, nil
	}
	return nil, noBackend()
}

// Fetch asks a backend for the definitions in force, for hubs that keep none (cache.metadata: off).
func (c *Client) Fetch(ctx context.Context) (*catalog.Snapshot, error) {
	packed, fail := call[struct{}, []byte](ctx, c, "Definitions", &struct{}{}, true)
	if fail != nil {
		return nil, fail.err
	}
	return project.Unpack(packed)
}

// noBackend is the error of what was not begun.
func noBackend() *record.Error {
	return record.Errorf(record.Unavailable, "", "no backend answers; nothing was done")
}

// Up is how many backends may get calls now.
func (c *Client) Up() int {
	n := 0
	for _, b := range c.backends {
		if s := b.now(); s.up && !s.Draining {
			n++
		}
	}
	return n
}

// Ready reports whether a backend is there whose database answers now.
func (c *Client) Ready(ctx context.Context) error {
	var all []error
	for _, b := range c.backends {
		s := b.now()
		if !s.up || s.Draining {
			continue
		}
		var says answer[bool]
		err := b.conn.Invoke(ctx, "/"+service+"/Ready", &plain[struct{}]{}, &says)
		switch {
		case err != nil:
			err = reason(err)
		case says.err != nil:
			err = says.err
		default:
			return nil
		}
		all = append(all, fmt.Errorf("backend %s: %w", b.addr, err))
	}
	return errors.Join(append(all, c.reasons(), errors.New("no backend is ready"))...)
}

// pick chooses the backend with the least outstanding calls among those that may get one, nil if there is none. Backends whose database does
// not answer come last: they say so better than we could.
func (c *Client) pick(tried []*backend) *backend {
	var best *backend
	var least int64
	n := len(c.backends)
	first := int(c.turn.Add(1) % uint64(n))
next:
	for i := range n {
		b := c.backends[(first+i)%n]
		s := b.now()
		if !s.up || s.Draining {
			continue
		}
		for _, t := range tried {
			if t == b {
				continue next
			}
		}
		load := b.outstanding.Load()
		if !s.Ready {
			load += 1 << 32
		}
		if best == nil || load < least {
			best, least = b, load
		}
	}
	return best
}

// How long a hub pauses before it tries to reach a backend again.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// follow keeps the state of a backend until the client is closed.
func (c *Client) follow(b *backend) {
	pause := firstPause
	for {
		heard, err := c.watch(b)
		if c.ctx.Err() != nil {
			return
		}
		if heard {
			pause = firstPause
		}
		c.down(b, err)
		t := time.NewTimer(pause)
		select {
		case <-c.ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
		pause = min(2*pause, lastPause)
	}
}

var watching = &grpc.StreamDesc{StreamName: "Watch", ServerStreams: true}

// errSilent says that a backend has not been heard of for too long.
var errSilent = errors.New("nothing was heard of it")

// watch reads what a backend tells of itself until that ends. heard says that it told something.
func (c *Client) watch(b *backend) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	// What may be silent is this process, when it gets no processor: then what was said meanwhile is heard before the second look.
	looked := make(chan struct{}, 1)
	var silence *time.Timer
	silence = time.AfterFunc(time.Hour, func() {
		select {
		case looked <- struct{}{}:
			silence.Reset(c.cfg.Health)
		default:
			cancel(errSilent)
		}
	})
	silence.Reset(max(3*c.cfg.Health, lastPause))
	defer silence.Stop()
	stream, err := b.conn.NewStream(ctx, watching, "/"+service+"/Watch")
	if err == nil {
		err = stream.SendMsg(&plain[struct{}]{})
	}
	if err == nil {
		err = stream.CloseSend()
	}
	for err == nil {
		var e plain[event]
		if err = stream.RecvMsg(&e); err != nil {
			break
		}
		select {
		case <-looked:
		default:
		}
		silence.Reset(3 * max(e.v.Every, c.cfg.Health))
		heard = true
		c.up(b, e.v)
	}
	if context.Cause(ctx) == errSilent {
		err = errSilent
	}
	return heard, reason(err)
}

// up notes what a backend told.
func (c *Client) up(b *backend, e event) {
	b.mu.Lock()
	was := b.state
	b.state = state{up: true, event: e}
	b.mu.Unlock()
	switch {
	case e.Draining && !was.Draining:
		c.log.Info("backend is about to stop", "backend", b.addr)
	case !was.up:
		c.log.Info("backend is up", "backend", b.addr, "ready", e.Ready)
	case was.Ready != e.Ready:
		c.log.Warn("backend's database", "backend", b.addr, "answers", e.Ready)
	}
	c.tell()
	if c.behind(e.Version) {
		c.work.Go(func() {
			if err := c.refresh(c.ctx, b); err != nil && c.ctx.Err() == nil {
				c.log.Error("definitions cannot be read; the last ones stay", "backend", b.addr, "error", err.Error())
			}
		})
	}
}

// down notes that a backend cannot be used, and why.
func (c *Client) down(b *backend, why error) {
	b.mu.Lock()
	was := b.state
	b.state = state{why: why}
	b.mu.Unlock()
	if was.up && !was.Draining || was.why != nil && was.why.Error() != why.Error() {
		c.log.Warn("backend is down", "backend", b.addr, "error", why.Error())
	}
	c.tell()
}

func (c *Client) tell() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// behind reports whether this hub should have other definitions, when a backend has those of a version: newer ones than its own, or
// older ones if no backend has newer (the database is another one).
func (c *Client) behind(version uint64) bool {
	mine := c.catalog.Snapshot()
	if mine == nil || version > mine.Version {
		return true
	}
	if version == mine.Version {
		return false
	}
	for _, b := range c.backends {
		if s := b.now(); s.up && s.Version >= mine.Version {
			return false
		}
	}
	return true
}

// refresh takes up the definitions that b has, unless somebody has done so meanwhile.
func (c *Client) refresh(ctx context.Context, b *backend) error {
	err := c.catalog.Update(func(was *catalog.Snapshot) (*catalog.Snapshot, error) {
		if !c.behind(b.now().Version) {
			return was, nil
		}
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		var packed answer[[]byte]
		if err := b.conn.Invoke(ctx, "/"+service+"/Definitions", &plain[struct{}]{}, &packed); err != nil {
			return nil, reason(err)
		}
		if packed.err != nil {
			return nil, packed.err
		}
		snap, err := project.Unpack(packed.v)
		if err == nil {
			c.log.Info("definitions", "version", snap.Version, "backend", b.addr)
		}
		return snap, err
	})
	if err == nil {
		c.once.Do(func() { close(c.fetched) })
	}
	return err
}

// reason is an error of the line in words of our own, where it has some.
func reason(err error) error {
	switch s, _ := statusOf(err); s.Code() {
	case codes.OK:
		return err
	case codes.Unauthenticated:
		return fmt.Errorf("it does not know this hub's key (remote.key): %w", errRefused)
	case codes.Unimplemented:
		return fmt.Errorf("it runs another version of weir: %w", errRefused)
	default:
		if isTLS(s.Message()) {
			return fmt.Errorf("certificates (remote.tls): %s: %w", s.Message(), errRefused)
		}
		return errors.New(s.Message())
	}
}
