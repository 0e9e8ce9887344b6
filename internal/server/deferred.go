package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/gate"
	"weir/internal/job"
	"weir/internal/record"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

// Jobs keeps calls that are answered later: a [job.Store], or something that passes them on to one.
type Jobs interface {
	Put(ctx context.Context, j *job.Job, limit int) error
	Claim(ctx context.Context, lease time.Duration) (*job.Job, error)
	Renew(ctx context.Context, j *job.Job, lease time.Duration) (canceled, lost bool, err error)
	Finish(ctx context.Context, j *job.Job, answer, result []byte) error
	Return(ctx context.Context, j *job.Job, pause time.Duration) error
	Drop(ctx context.Context, j *job.Job) error
	Find(ctx context.Context, id string) (*job.Job, error)
	Cancel(ctx context.Context, id string) (under bool, err error)
	Trim(ctx context.Context, before time.Time) (int, error)
}

// deferrals executes calls whose clients would rather ask for the answer later.
type deferrals struct {
	s    *Server
	wake chan struct{} // something was accepted here

	mu    sync.Mutex
	under map[string]context.CancelFunc // jobs that this node executes
}

// head of a deferred call, as it is stored. The credential is not: the user is asked for again when the call is executed.
type deferredHead struct {
	Method, Path, RawPath, RawQuery, Base string
	Header                                wire.Header
	Proto, Remote                         string
	Transaction                           string // id of the request that brought it; its execution goes by the same
	Proof                                 string // [auth.Identity]'s Method: how the user proved who it is
}

// settledHead is the head of an answer, as it is stored.
type settledHead struct {
	Status int
	Header wire.Header
}

// private are the headers that a stored call does without.
var private = []string{"Authorization", "Cookie", "X-CSRF-Token", "X-UserToken"}

// deferred takes what concerns deferred calls: a call whose client asks to be answered later, and the monitors. It reports whether
// that was so.
func (v *Visit) deferred(ctx context.Context, snap *catalog.Snapshot) bool {
	d, ok := v.d.(dialect.Deferrer)
	if !ok || v.s.deferrals == nil {
		return false
	}
	if id := d.Monitored(v.Path); id != "" {
		v.monitor(ctx, d, id)
		return true
	}
	if !d.Deferred(snap, &v.call) {
		return false
	}
	j := &job.Job{ID: job.NewID(), User: v.Identity.Actor.Name, Body: v.call.Body}
	head := deferredHead{
		Method: v.call.Method, Path: v.call.Path, RawPath: v.call.RawPath, RawQuery: v.call.RawQuery, Base: v.call.Base,
		Header: append(wire.Header(nil), v.call.Header...), Proto: v.r.Proto, Remote: v.r.RemoteAddr, Transaction: v.Recorder.ID,
		Proof: v.Identity.Method,
	}
	for _, name := range private {
		head.Header.Del(name)
	}
	err := error(nil)
	if j.Head, err = json.Marshal(head); err == nil {
		err = v.s.o.Jobs.Put(ctx, j, v.s.cfg.Async.Queue)
	}
	switch {
	case err != nil && record.KindOf(err) == record.Busy:
		return false // there is no room to defer it, so it is answered now
	case err != nil:
		v.fail(err)
		return true
	}
	select {
	case v.s.deferrals.wake <- struct{}{}:
	default:
	}
	v.answer(func(a *wire.Answer) { d.Pending(&v.call, d.MonitorOf(&v.call, j.ID), v.s.retryAfter(), a) })
	return true
}

// answer sends what write makes, when the slot is given back.
func (v *Visit) answer(write func(*wire.Answer)) {
	v.release()
	a := answer()
	defer release(a)
	write(a)
	v.send(a)
}

// retryAfter is when a client should ask a monitor again.
func (s *Server) retryAfter() time.Duration {
	return max(s.cfg.Async.Poll.Round(time.Second), time.Second)
}

// monitor answers who asks what became of a deferred call. Those of others do not exist.
func (v *Visit) monitor(ctx context.Context, d dialect.Deferrer, id string) {
	j, err := v.s.o.Jobs.Find(ctx, id)
	switch {
	case err != nil:
		v.fail(err)
	case j == nil || j.User != v.Identity.Actor.Name:
		v.fail(record.Errorf(record.NotFound, "", "no deferred call %.80q; answers are kept for %s", id, v.s.cfg.Async.Keep))
	case v.Method == http.MethodDelete:
		under, err := v.s.o.Jobs.Cancel(ctx, id)
		if err != nil {
			v.fail(err)
			return
		}
		if !under {
			v.answer(func(a *wire.Answer) { a.Status = http.StatusNoContent })
			return
		}
		v.s.deferrals.stop(id)
		v.answer(func(a *wire.Answer) { d.Pending(&v.call, d.MonitorOf(&v.call, id), v.s.retryAfter(), a) })
	case v.Method != http.MethodGet && v.Method != http.MethodHead:
		v.fail(record.Errorf(record.NotAllowed, "", "a monitor takes GET and DELETE"))
	case j.State != job.Done:
		v.answer(func(a *wire.Answer) { d.Pending(&v.call, d.MonitorOf(&v.call, id), v.s.retryAfter(), a) })
	default:
		var head settledHead
		if err := json.Unmarshal(j.Answer, &head); err != nil {
			v.fail(fmt.Errorf("answer of deferred call %s: %w", id, err))
			return
		}
		v.answer(func(a *wire.Answer) {
			d.Settled(&v.call, &wire.Answer{Status: head.Status, Header: head.Header, Body: j.Result}, a)
		})
	}
}

// run takes jobs until ctx ends and returns when those under way are over; hard ends them.
func (q *deferrals) run(ctx, hard context.Context) {
	c := &q.s.cfg.Async
	var work sync.WaitGroup
	defer work.Wait()
	free := make(chan struct{}, c.Workers)
	poll := time.NewTicker(c.Poll)
	defer poll.Stop()
	trimmed := time.Time{}
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		j, err := q.s.o.Jobs.Claim(hard, c.Lease)
		if j != nil && err == nil {
			work.Go(func() {
				defer func() { <-free }()
				q.execute(hard, j)
			})
			continue
		}
		<-free
		if err != nil && ctx.Err() == nil {
			q.s.log.Warn("deferred calls cannot be taken up", "error", err.Error())
		}
		if time.Since(trimmed) > time.Minute {
			trimmed = time.Now()
			if _, err := q.s.o.Jobs.Trim(hard, trimmed.Add(-c.Keep)); err != nil && ctx.Err() == nil {
				q.s.log.Warn("old answers of deferred calls could not be removed", "error", err.Error())
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		case <-q.wake:
		}
	}
}

// stop ends a job that this node executes.
func (q *deferrals) stop(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel := q.under[id]; cancel != nil {
		cancel()
	}
}

// execute runs one job and stores its answer.
func (q *deferrals) execute(hard context.Context, j *job.Job) {
	ctx, cancel := context.WithCancel(hard)
	q.mu.Lock()
	q.under[j.ID] = cancel
	q.mu.Unlock()
	renewing := make(chan struct{})
	var lost, canceled bool
	go func() {
		defer close(renewing)
		lost, canceled = q.renew(ctx, j)
		cancel()
	}()
	v, head, body := q.visit(ctx, j)
	stopped := ctx.Err() != nil
	q.mu.Lock()
	delete(q.under, j.ID)
	q.mu.Unlock()
	cancel()
	<-renewing
	if lost {
		return // its answer is another node's matter
	}
	// Whoever waits for it should have it, even now that this node ends.
	last, done := context.WithTimeout(context.WithoutCancel(hard), q.s.cfg.Async.Lease)
	defer done()
	jobs := q.s.o.Jobs
	if stopped && !canceled {
		// Stopped here, and by whom: the row knows.
		var err error
		if canceled, lost, err = jobs.Renew(last, j, q.s.cfg.Async.Lease); err != nil || lost {
			return
		}
	}
	var err error
	switch {
	case canceled && v.wrote == 0 && j.Attempts == 1:
		err = jobs.Drop(last, j)
	case hard.Err() != nil && stopped && v.failed():
		err = jobs.Return(last, j, 0)
	case (head.Status == http.StatusServiceUnavailable || head.Status == http.StatusTooManyRequests) && j.Attempts < q.s.cfg.Async.Attempts && !canceled:
		err = jobs.Return(last, j, time.Duration(j.Attempts)*q.s.cfg.Async.Poll)
	default:
		var text []byte
		if text, err = json.Marshal(head); err == nil {
			err = jobs.Finish(last, j, text, body)
		}
	}
	if err != nil {
		q.s.log.Warn("the answer of a deferred call could not be stored; it will be executed again", "job", j.ID, "error", err.Error())
	}
}

// renew keeps the lease until ctx ends, the job is lost or its user has asked to stop it.
func (q *deferrals) renew(ctx context.Context, j *job.Job) (lost, canceled bool) {
	tick := time.NewTicker(max(q.s.cfg.Async.Lease/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, false
		case <-tick.C:
		}
		canceled, lost, err := q.s.o.Jobs.Renew(ctx, j, q.s.cfg.Async.Lease)
		if lost || canceled {
			return lost, canceled
		}
		if err != nil && ctx.Err() == nil {
			q.s.log.Warn("the lease of a deferred call could not be renewed", "job", j.ID, "error", err.Error())
		}
	}
}

// visit takes a job down the line, from the gate on, and returns the answer.
func (q *deferrals) visit(ctx context.Context, j *job.Job) (v *Visit, head settledHead, body []byte) {
	s := q.s
	var call deferredHead
	err := json.Unmarshal(j.Head, &call)
	v = &Visit{
		Recorder: telemetry.New(), Number: s.serial.Add(1), Method: call.Method, Path: call.Path, In: len(j.Body), Later: true,
		Identity: &auth.Identity{Actor: record.Actor{Name: j.User}}, s: s, d: s.o.Mux.Find(call.Path), token: "deferred/" + j.ID,
	}
	if v.d == nil {
		v.d = s.o.Fallback
	}
	v.Recorder.ID, v.Identity.Method = call.Transaction, call.Proof
	v.Dialect = v.d.Name()
	u := &url.URL{Path: call.Path, RawPath: call.RawPath, RawQuery: call.RawQuery}
	v.URL = s.redact.url(u)
	v.r = (&http.Request{Method: call.Method, URL: u, Proto: call.Proto, RemoteAddr: call.Remote, Header: http.Header{}}).WithContext(ctx)
	for _, f := range call.Header {
		v.r.Header.Add(f.Name, f.Value)
	}
	v.call = dialect.Call{
		Method: call.Method, Path: call.Path, RawPath: call.RawPath, RawQuery: call.RawQuery, Base: call.Base, Header: call.Header, Body: j.Body,
	}
	if !v.call.Header.Has("Idempotency-Key") {
		v.call.Header.Set("Idempotency-Key", v.token) // what batches make the tokens of their items of
	}
	if b, ok := v.d.(dialect.Batcher); ok {
		v.Batch = b.IsBatch(v.Method, v.Path)
	}
	v.leave = v.Recorder.Enter(telemetry.Hub)
	s.metrics.running.Add(1)
	a := answer()
	defer release(a)
	defer v.end()
	if err == nil {
		err = v.later(telemetry.With(ctx, v.Recorder), j, a)
	}
	if err != nil {
		v.Err = s.public(v.Recorder, err)
		a.Header, a.Body = a.Header[:0], a.Body[:0]
		v.d.Fail(&v.call, v.Err, a)
	}
	v.Status = a.Status
	v.Format = dialect.FormatOf(a.Header.Get("Content-Type"))
	v.Recorder.Bytes.Store(int64(len(a.Body)))
	return v, settledHead{a.Status, append(wire.Header(nil), a.Header...)}, append([]byte(nil), a.Body...)
}

// later makes the answer of a deferred call, in a slot of the pool for such work.
func (v *Visit) later(ctx context.Context, j *job.Job, a *wire.Answer) (err error) {
	defer func() {
		v.release()
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	s := v.s
	switch {
	case j.Attempts > s.cfg.Async.Attempts:
		return record.Errorf(record.Unavailable, "", "given up after %d attempts; see async.attempts", j.Attempts-1)
	case j.Canceled:
		return record.Errorf(record.Canceled, "", "stopped as asked for, after its node had failed; what it had done by then stays")
	}
	snap, err := s.o.Snapshot(ctx)
	if err != nil {
		return err
	}
	v.snap = snap
	v.Name, v.known = nameOf(snap, v.d, v.Path)
	if v.Identity.Actor, err = s.o.Auth.Actor(ctx, snap, j.User); err != nil {
		return err
	}
	v.call.Actor = v.Identity.Actor
	if v.hold, err = s.o.Gate.Bytes.Reserve(ctx, int64(len(j.Body))); err != nil {
		return v.refused(err)
	}
	v.Pool = gate.JobsPool
	if _, ok := s.o.Gate.Config().Pools[v.Pool]; !ok {
		v.Pool = gate.DefaultPool
	}
	if err := v.wait(ctx, "deferred/"+j.User); err != nil {
		return err
	}
	return v.compute(ctx, snap, a)
}

// failed reports whether nothing of a call succeeded, as far as its answers tell.
func (v *Visit) failed() bool { return v.wrote == 0 && (v.Err != nil || v.Status >= 400) }
