package remote

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/telemetry"
)

// failure is a call without an answer. begun says that a backend may have worked on it.
type failure struct {
	err   *record.Error
	begun bool
}

// attempt is one try of a call at one backend.
type attempt struct{ sent atomic.Bool }

type attemptKey struct{}

// watchSending notes when a call leaves this process: until then nothing can have come of it.
type watchSending struct{}

// TagRPC does nothing: the attempt is in the context already.
func (watchSending) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC notes it. A call that a backend has not looked at, since it was about to stop, begins again.
func (watchSending) HandleRPC(ctx context.Context, s stats.RPCStats) {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	if a == nil {
		return
	}
	switch s.(type) {
	case *stats.Begin:
		a.sent.Store(false)
	case *stats.OutHeader:
		a.sent.Store(true)
	}
}

// TagConn does nothing.
func (watchSending) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (watchSending) HandleConn(context.Context, stats.ConnStats) {}

// statusOf is the status of an error of the line; io.EOF, the end of a stream that should have gone on, is one too.
func statusOf(err error) (*status.Status, bool) {
	if errors.Is(err, io.EOF) {
		return status.New(codes.Unavailable, "it closed the connection"), true
	}
	return status.FromError(err)
}

// isTLS reports whether a text of the line tells of certificates.
func isTLS(text string) bool {
	return strings.Contains(text, "tls: ") || strings.Contains(text, "x509: ") || strings.Contains(text, "authentication handshake failed")
}

// fate is what becomes of a call whose attempt failed.
type fate uint8

// The fates.
const (
	elsewhere fate = iota // nothing has happened: another backend may do it
	unknown               // it may have been done
	final                 // there is no use in asking others
)

// judge says what an error of an attempt means.
func (c *Client) judge(ctx context.Context, b *backend, a *attempt, err error) (fate, *record.Error) {
	s, _ := statusOf(err)
	switch s.Code() {
	case codes.FailedPrecondition:
		return elsewhere, record.Errorf(record.Unavailable, "", "definitions were changed in this moment; try again").Because(dialect.ErrStale)
	case codes.ResourceExhausted: // by our own bound, before it was sent or after it was done
		return final, record.Errorf(record.TooLarge, "", "a message between hub and backend is larger than remote.message (%d bytes)", c.cfg.Message).Because(err)
	case codes.Unauthenticated, codes.Unimplemented:
		c.down(b, reason(err))
		return elsewhere, noBackend().Because(err)
	case codes.Canceled, codes.DeadlineExceeded:
		if ctx.Err() == context.Canceled {
			return final, record.Errorf(record.Canceled, "", "the caller went away").Because(err)
		}
		if _, ok := ctx.Deadline(); ok { // the backend's clock may be ahead of ours
			return final, record.Errorf(record.Timeout, "", "the time allowed for the request is over").Because(err)
		}
	case codes.Unavailable:
		c.down(b, reason(err))
	}
	if !a.sent.Load() {
		return elsewhere, noBackend().Because(err)
	}
	b.lost.Add(1)
	return unknown, record.Errorf(record.Unavailable, "", "the backend was lost while it worked on this; what was to be changed may be stored or not").Because(err)
}

// try runs f at one backend after another, until it succeeds or must not be tried again. repeatable says that nothing can happen
// twice by it.
func (c *Client) try(ctx context.Context, repeatable bool, f func(context.Context, *backend) error) *failure {
	var room [4]*backend
	tried := room[:0]
	var lost *record.Error
	none := noBackend()
	for repeats := 0; ; {
		b := c.pick(tried)
		switch {
		case b == nil && lost != nil:
			return &failure{lost, true}
		case b == nil:
			return &failure{none, false}
		}
		a := &attempt{}
		b.calls.Add(1)
		err := f(context.WithValue(ctx, attemptKey{}, a), b)
		if err == nil {
			return nil
		}
		tried = append(tried, b)
		switch fate, e := c.judge(ctx, b, a, err); {
		case fate == final:
			return &failure{e, a.sent.Load()}
		case fate == elsewhere:
			if !errors.Is(none, dialect.ErrStale) {
				none = e
			}
		case !repeatable || repeats == c.cfg.Retries:
			return &failure{e, true}
		default:
			lost = e
			repeats++
			b.repeated.Add(1)
		}
	}
}

// call asks a method. The recorder of ctx has its figures.
func call[In, Out any](ctx context.Context, c *Client, method string, in *In, repeatable bool) (Out, *failure) {
	rec := telemetry.From(ctx)
	leave := rec.Enter(telemetry.Wire)
	var out answer[Out]
	fail := c.try(ctx, repeatable, func(ctx context.Context, b *backend) error {
		begin := time.Now()
		b.outstanding.Add(1)
		defer b.outstanding.Add(-1)
		out = answer[Out]{}
		err := b.conn.Invoke(ctx, "/"+service+"/"+method, &plain[In]{*in}, &out)
		if err == nil {
			f := &out.figures
			b.wire.Observe(max(time.Since(begin)-f.Hub-f.BE-f.App, 0).Seconds())
		}
		return err
	})
	leave()
	if fail == nil && out.err != nil {
		fail = &failure{out.err, out.err.Kind == record.Internal} // else the backend says why it did not begin
	}
	out.figures.book(rec)
	return out.v, fail
}

// repeatable reports whether nothing can happen twice when a unit is run again: it only reads, or what it writes is known by tokens. What a
// script does is not known.
func repeatable(u *record.Unit) bool {
	for i := range u.Ops {
		op := &u.Ops[i]
		if op.Verb == record.Invoke || op.Verb.Writes() && op.Token == "" {
			return false
		}
	}
	return true
}

// Execute runs the unit at a backend and returns one outcome for each op. Faults of the whole unit are in every outcome.
func (c *Client) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	out, fail := call[record.Unit, []record.Outcome](ctx, c, "Execute", with(snap, u), repeatable(u))
	if fail == nil && len(out) != len(u.Ops) {
		fail = &failure{&record.Error{Kind: record.Internal, Msg: "internal error", Err: errors.New("remote: the outcomes are not those of the unit")}, true}
	}
	if fail == nil {
		return out
	}
	c.freshen(ctx, fail.err)
	out = make([]record.Outcome, len(u.Ops))
	for i := range out {
		out[i] = record.Outcome{Err: fail.err, Unserviced: !fail.begun, Total: -1}
	}
	return out
}

// with is u by the version of its snapshot.
func with(snap *catalog.Snapshot, u *record.Unit) *record.Unit {
	sent := *u
	sent.Version = snap.Version
	return &sent
}

// freshen takes up the definitions in force, if it was for want of them that a call failed.
func (c *Client) freshen(ctx context.Context, err *record.Error) {
	if !errors.Is(err, dialect.ErrStale) {
		return
	}
	for _, b := range c.backends {
		if s := b.now(); s.up {
			_ = c.refresh(ctx, b) // the next heartbeat tries again
		}
	}
}
