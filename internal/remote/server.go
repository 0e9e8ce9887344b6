package remote

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/job"
	"weir/internal/project"
	"weir/internal/record"
	"weir/internal/telemetry"
)

// Authority says who is calling: an [auth.Auth].
type Authority interface {
	Identify(ctx context.Context, snap *catalog.Snapshot, r *http.Request) (*auth.Identity, error)
	Token(ctx context.Context, snap *catalog.Snapshot, r *http.Request, body []byte) (*auth.Answer, error)
	Revoked(ctx context.Context, snap *catalog.Snapshot, r *http.Request, body []byte) (*auth.Answer, error)
	ChangeToken(ctx context.Context, id *auth.Identity, age time.Duration) string
	ChangeTokenHolds(ctx context.Context, id *auth.Identity, token string) bool
	Actor(ctx context.Context, snap *catalog.Snapshot, name string) (record.Actor, error)
	DemoLogin(ctx context.Context, snap *catalog.Snapshot) (string, error)
}

// Options are what a [Server] works with.
type Options struct {
	Config Config
	Exec   dialect.Executor
	Auth   Authority
	// Jobs keeps calls that are answered later; nil for none.
	Jobs *job.Store
	// Snapshot is the definitions in force. It may read them (cache.metadata: off).
	Snapshot func(context.Context) (*catalog.Snapshot, error)
	// Changed is closed when other definitions come in force; nil is never.
	Changed func() <-chan struct{}
	// Refresh looks whether there are newer definitions than those in force and takes them up; nil for those that never change.
	Refresh func(context.Context) error
	// Ready reports whether the database answers; nil is yes.
	Ready func(context.Context) error
	// Drain is how long accepted calls may take to finish when the server stops.
	Drain time.Duration
	Log   *slog.Logger
}

// Server runs what hubs send. It is safe for concurrent use.
type Server struct {
	o      Options
	key    string
	grpc   *grpc.Server
	health *health.Server

	calls, running atomic.Int64
	watchers       sync.WaitGroup

	last    atomic.Pointer[catalog.Snapshot]
	mu      sync.Mutex
	kept    []*catalog.Snapshot // the last ones, the newest at the end
	state   event
	changed chan struct{} // closed when the state changes
}

// keptSnapshots is how many versions of the definitions are kept for units that were decoded with them.
const keptSnapshots = 4

// window is how much of a stream may be under way to an end that does not read it.
const window = 1 << 20

// New returns a server with the given options, or all that is wrong with its settings.
func New(o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	key, encrypt, err := o.Config.backend()
	if err != nil {
		return nil, err
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(o.Config.Message), grpc.MaxSendMsgSize(o.Config.Message),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(8 * window),
		grpc.ReadBufferSize(64 << 10), grpc.WriteBufferSize(64 << 10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	}
	if encrypt != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(encrypt)))
	}
	s := &Server{o: o, key: key, grpc: grpc.NewServer(options...), health: health.NewServer(), changed: make(chan struct{})}
	s.state.Every = o.Config.Health
	s.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	s.grpc.RegisterService(description, s)
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	return s, nil
}

// description is the service: what hubs may ask for.
var description = &grpc.ServiceDesc{
	ServiceName: service,
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		unary("Execute", telemetry.BE, (*Server).execute),
		unary("Definitions", telemetry.Hub, (*Server).definitions),
		unary("Ready", telemetry.Hub, (*Server).ready),
		unary("Identify", telemetry.Hub, (*Server).identify),
		unary("Token", telemetry.Hub, (*Server).token),
		unary("Revoked", telemetry.Hub, (*Server).revoked),
		unary("ChangeToken", telemetry.Hub, (*Server).changeToken),
		unary("ChangeTokenHolds", telemetry.Hub, (*Server).changeTokenHolds),
		unary("Actor", telemetry.Hub, (*Server).actor),
		unary("DemoLogin", telemetry.Hub, (*Server).demoLogin),
		unary("JobPut", telemetry.Hub, jobPut),
		unary("JobClaim", telemetry.Hub, jobClaim),
		unary("JobRenew", telemetry.Hub, jobRenew),
		unary("JobFinish", telemetry.Hub, jobFinish),
		unary("JobReturn", telemetry.Hub, jobReturn),
		unary("JobDrop", telemetry.Hub, jobDrop),
		unary("JobFind", telemetry.Hub, jobFind),
		unary("JobCancel", telemetry.Hub, jobCancel),
		unary("JobTrim", telemetry.Hub, jobTrim),
	},
	Streams: []grpc.StreamDesc{
		{StreamName: "Stream", ServerStreams: true, Handler: func(s any, to grpc.ServerStream) error { return s.(*Server).stream(to) }},
		{StreamName: "Watch", ServerStreams: true, Handler: func(s any, to grpc.ServerStream) error { return s.(*Server).watch(to) }},
	},
}

// unary is a method that answers once. Its error is the caller's to see; its work is booked to a layer.
func unary[In, Out any](name string, layer telemetry.Layer, do func(*Server, context.Context, *In) (Out, error)) grpc.MethodDesc {
	handle := func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (reply any, err error) {
		s := srv.(*Server)
		if err := s.admit(ctx); err != nil {
			return nil, err
		}
		rec := telemetry.New()
		leave := rec.Enter(layer)
		s.calls.Add(1)
		s.running.Add(1)
		defer s.running.Add(-1)
		out := &answer[Out]{measure: func() figures { leave(); return figuresOf(rec) }}
		var in plain[In]
		if err := decode(&in); err != nil {
			return nil, err
		}
		defer func() {
			if p := recover(); p != nil {
				out.err = panicked(p)
				reply, err = out, nil
			}
		}()
		out.v, err = do(s, telemetry.With(ctx, rec), &in.v)
		if _, ok := status.FromError(err); ok && err != nil {
			return nil, err
		}
		out.err = record.AsError(err)
		return out, nil
	}
	return grpc.MethodDesc{MethodName: name, Handler: handle}
}

// panicked is the error for a bug of ours.
func panicked(p any) *record.Error {
	return &record.Error{Kind: record.Internal, Msg: "internal error", Err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
}

// admit checks that the caller knows the key. Certificates were checked when the connection was made.
func (s *Server) admit(ctx context.Context) error {
	if s.key == "" {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	for _, shown := range md[keyHeader] {
		if same(shown, bearer+s.key) {
			return nil
		}
	}
	return status.Error(codes.Unauthenticated, "the key is not the one of this backend")
}

// How a hub shows the key.
const (
	keyHeader = "authorization"
	bearer    = "Bearer "
)

// stale says that a backend does not have, and cannot get, the definitions that a unit was decoded with. Nothing was run.
var stale = status.Error(codes.FailedPrecondition, "other definitions are in force")

// at is the snapshot of a version: the one in force, one of those before it, or a newer one that was applied just now.
func (s *Server) at(ctx context.Context, version uint64) (*catalog.Snapshot, error) {
	snap, err := s.current(ctx)
	if err != nil || snap.Version == version {
		return snap, err
	}
	if version == 0 {
		return catalog.System(), nil // weir's own tables
	}
	if version > snap.Version && s.o.Refresh != nil {
		if err := s.o.Refresh(ctx); err != nil {
			return nil, err
		}
		if _, err = s.current(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kept {
		if k.Version == version {
			return k, nil
		}
	}
	return nil, stale
}

// current is the snapshot in force, which is kept.
func (s *Server) current(ctx context.Context) (*catalog.Snapshot, error) {
	snap, err := s.o.Snapshot(ctx)
	if err != nil || s.last.Load() == snap {
		return snap, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = slices.DeleteFunc(s.kept, func(k *catalog.Snapshot) bool { return k.Version == snap.Version })
	s.kept = append(s.kept, snap)
	if n := len(s.kept) - keptSnapshots; n > 0 {
		s.kept = slices.Delete(s.kept, 0, n)
	}
	s.last.Store(snap)
	return snap, nil
}

func (s *Server) execute(ctx context.Context, u *record.Unit) ([]record.Outcome, error) {
	snap, err := s.at(ctx, u.Version)
	if err != nil {
		return nil, err
	}
	return s.o.Exec.Execute(ctx, snap, u), nil
}

// frameSize is how many bytes of rows are sent together.
const frameSize = 64 << 10

// stream sends the rows of a list as they come: no faster than the hub takes them.
func (s *Server) stream(to grpc.ServerStream) (err error) {
	ctx := to.Context()
	if err := s.admit(ctx); err != nil {
		return err
	}
	rec := telemetry.New()
	leave := rec.Enter(telemetry.BE)
	s.calls.Add(1)
	s.running.Add(1)
	defer s.running.Add(-1)
	var in plain[record.Unit]
	if err := to.RecvMsg(&in); err != nil {
		return err
	}
	f := &frame{measure: func() figures { leave(); return figuresOf(rec) }}
	begun := false // the head is out
	end := func(err *record.Error) error {
		if f.head == nil && !begun {
			f.head = &streamHead{Outcome: record.Outcome{Err: err, Total: -1}}
		}
		f.tail = &streamTail{Err: err}
		return to.SendMsg(f)
	}
	defer func() {
		if p := recover(); p != nil {
			err = end(panicked(p))
		}
	}()
	snap, err := s.at(ctx, in.v.Version)
	if err == stale {
		return err
	}
	if err != nil {
		f.head = &streamHead{Outcome: record.Outcome{Err: record.AsError(err), Unserviced: true, Total: -1}}
		return end(nil)
	}
	out := s.o.Exec.Stream(telemetry.With(ctx, rec), snap, &in.v)
	rows := out.Rows
	out.Rows = nil
	f.head = &streamHead{Outcome: out}
	if rows == nil {
		return end(nil)
	}
	defer rows.Close()
	f.head.Rows, f.head.Fields, f.head.Types = true, rows.Fields, rows.Types
	f.rows = make([]byte, 0, 4<<10)
	for row, ok := rows.Next(); ok; row, ok = rows.Next() {
		f.rows = record.AppendRow(f.rows, row)
		if len(f.rows) < frameSize {
			continue
		}
		waiting := rec.Enter(telemetry.Wire) // for the hub
		err := to.SendMsg(f)
		waiting()
		if err != nil {
			return err
		}
		begun, f.head, f.rows = true, nil, f.rows[:0]
	}
	return end(record.AsError(rows.Err()))
}

// watch tells a hub how this backend is, until either of them goes.
func (s *Server) watch(to grpc.ServerStream) error {
	if err := s.admit(to.Context()); err != nil {
		return err
	}
	var in plain[struct{}]
	if err := to.RecvMsg(&in); err != nil {
		return err
	}
	s.watchers.Add(1)
	defer s.watchers.Done()
	tick := time.NewTicker(s.o.Config.Health)
	defer tick.Stop()
	for {
		s.mu.Lock()
		now, changed := s.state, s.changed
		s.mu.Unlock()
		if err := to.SendMsg(&plain[event]{now}); err != nil || now.Draining {
			return err
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-to.Context().Done():
			return nil
		}
	}
}

// change changes the state and tells the hubs.
func (s *Server) change(f func(*event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.state
	if f(&s.state); s.state == was {
		return
	}
	close(s.changed)
	s.changed = make(chan struct{})
	serving := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if s.state.Ready && !s.state.Draining {
		serving = grpc_health_v1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", serving)
}

// look finds out how this backend is.
func (s *Server) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	snap, err := s.current(ctx)
	if err == nil && s.o.Ready != nil {
		err = s.o.Ready(ctx)
	}
	s.change(func(e *event) {
		if e.Ready != (err == nil) && err != nil && ctx.Err() != context.Canceled {
			s.o.Log.Warn("not ready", "error", err.Error())
		}
		e.Ready = err == nil
		if snap != nil {
			e.Version = snap.Version
		}
	})
}

// ready asks the database now.
func (s *Server) ready(ctx context.Context, _ *struct{}) (bool, error) {
	if s.o.Ready == nil {
		return true, nil
	}
	err := s.o.Ready(ctx)
	return err == nil, err
}

// Ready reports whether the database answered when it was asked last, and the server is not about to stop.
func (s *Server) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Ready && !s.state.Draining
}

// Calls are how many calls were taken, and how many are under way.
func (s *Server) Calls() (taken, running int64) { return s.calls.Load(), s.running.Load() }

// Serve takes calls on l until ctx ends. Then it tells its hubs, finishes what it has accepted within Options.Drain, and returns.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	s.look(background)
	work.Go(func() { s.lookAround(background) })
	failed := make(chan error, 1)
	work.Go(func() { failed <- s.grpc.Serve(l) })
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.change(func(e *event) { e.Draining = true })
	// Hubs that have heard it send nothing more, so nothing is refused when the listener closes.
	told := make(chan struct{})
	go func() { s.watchers.Wait(); close(told) }()
	limit := time.NewTimer(s.o.Drain)
	defer limit.Stop()
	select {
	case <-told:
	case <-time.After(time.Second):
	}
	done := make(chan struct{})
	go func() { s.grpc.GracefulStop(); close(done) }()
	select {
	case <-done:
	case <-limit.C:
		err = errors.Join(err, fmt.Errorf("%d calls were still running after limits.drain (%s)", s.running.Load(), s.o.Drain))
		s.grpc.Stop()
		<-done
	}
	stop()
	work.Wait()
	return err
}

func (s *Server) lookAround(ctx context.Context) {
	tick := time.NewTicker(s.o.Config.Health)
	defer tick.Stop()
	for {
		var changed <-chan struct{}
		if s.o.Changed != nil {
			changed = s.o.Changed()
		}
		s.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-changed:
		}
	}
}

// definitions are those in force, packed.
func (s *Server) definitions(ctx context.Context, _ *struct{}) ([]byte, error) {
	snap, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	return project.Pack(snap)
}
