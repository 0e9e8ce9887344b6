// Package telemetry accounts for time: one [Recorder] for each request, marked where a layer is crossed.
//
// A nil *Recorder is a no-op, so code below never asks whether it is being measured. A Recorder is used by one request
// but by several goroutines at once: counters are atomic; Enter and its end belong to one goroutine.
package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Layer is where time goes.
type Layer uint8

// The layers: the protocol work, the gate, the planning and rules, the database and scripts, the network between hub and backend.
const (
	Hub   Layer = iota // authentication, decode, encode
	Queue              // the gate
	BE                 // plan, access, rules
	App                // SQL, scripts
	Wire               // between hub and backend: what a remote call took beyond the time that the backend accounts for
	numLayers
)

var layerNames = [numLayers]string{"hub", "queue", "be", "app", "wire"}

// String is the layer's name as answers and metrics show it.
func (l Layer) String() string { return layerNames[l] }

// Recorder is where the time of one request went. Times are nanoseconds.
type Recorder struct {
	ID    string // names the request in the answer and the log
	Begin time.Time

	self  [numLayers]atomic.Int64
	stack []frame // of the request's own goroutine

	SQL         atomic.Int64 // time in the database, all statements; parallel ones add up
	SQLCount    atomic.Int64
	Access      atomic.Int64 // access rules
	Rules       atomic.Int64 // time in rules
	RuleCount   atomic.Int64
	SemWait     atomic.Int64 // waited for a slot of the pool
	SessionWait atomic.Int64 // waited for the own session
	Borrow      atomic.Int64 // waited for a connection
	Trips       atomic.Int64 // round trips to the database
	Login       atomic.Int64 // opened a session of the caller's own in the database

	// What the door measures, each within a layer.
	Metadata atomic.Int64 // got the definitions
	Auth     atomic.Int64 // found out who is calling
	Route    atomic.Int64 // decoded
	Encode   atomic.Int64 // wrote the answer, without waiting for rows and for the client
	Hash     atomic.Int64 // made the answer's entity tag

	Rows  atomic.Int64
	Bytes atomic.Int64 // of the answer's body

	setsMu sync.Mutex
	sets   []Set
	first  [1]Set // room for sets: most requests have one
}

// Set is one set of operations: what the engine executed as one statement.
type Set struct {
	Verb, Table string // "insert", "product"; of an invocation the endpoint's name
	Ops         int
	Rows        int           // read or written
	Start, Time time.Duration // since the request began; how long
}

// AddSets notes sets that were executed and returns the number of the first; those of a request count from 1, in the order
// in which they are noted. It may be called from any goroutine.
func (r *Recorder) AddSets(list ...Set) int {
	if r == nil {
		return 1
	}
	r.setsMu.Lock()
	defer r.setsMu.Unlock()
	if r.sets == nil {
		r.sets = r.first[:0]
	}
	r.sets = append(r.sets, list...)
	return len(r.sets) - len(list) + 1
}

// Sets are the sets of the request so far: number 1 is the first. They must not be changed.
func (r *Recorder) Sets() []Set {
	if r == nil {
		return nil
	}
	r.setsMu.Lock()
	defer r.setsMu.Unlock()
	return r.sets[:len(r.sets):len(r.sets)]
}

type frame struct {
	layer Layer
	since time.Time
}

// New is a recorder that starts now.
func New() *Recorder { return &Recorder{Begin: time.Now()} }

// Enter marks the crossing into layer l and returns the function that marks the way back. Time is exclusive: while an
// inner layer runs the outer one stands still. Calls nest and belong to the request's goroutine.
func (r *Recorder) Enter(l Layer) func() {
	if r == nil {
		return func() {}
	}
	now := time.Now()
	if n := len(r.stack); n > 0 {
		r.self[r.stack[n-1].layer].Add(int64(now.Sub(r.stack[n-1].since)))
	}
	r.stack = append(r.stack, frame{l, now})
	return r.leave
}

func (r *Recorder) leave() {
	now := time.Now()
	n := len(r.stack) - 1
	r.self[r.stack[n].layer].Add(int64(now.Sub(r.stack[n].since)))
	r.stack = r.stack[:n]
	if n > 0 {
		r.stack[n-1].since = now
	}
}

// Move books d of the time that the running layer has had so far to layer l instead: for work that is done bit by bit inside
// another layer, where entering and leaving each time would cost more than the work. It belongs to the request's goroutine.
func (r *Recorder) Move(l Layer, d time.Duration) {
	if r == nil || len(r.stack) == 0 {
		return
	}
	top := &r.stack[len(r.stack)-1]
	d = max(min(d, time.Since(top.since)), 0)
	top.since = top.since.Add(d)
	r.self[l].Add(int64(d))
}

// Rebook moves d of the time booked to one layer to another, at most what there is: for time that another machine has measured
// within a call to it. It belongs to the request's goroutine.
func (r *Recorder) Rebook(from, to Layer, d time.Duration) {
	if r == nil {
		return
	}
	n := max(min(int64(d), r.self[from].Load()), 0)
	r.self[from].Add(-n)
	r.self[to].Add(n)
}

// Layer is the time spent in l so far, what runs now not included.
func (r *Recorder) Layer(l Layer) time.Duration {
	if r == nil {
		return 0
	}
	return time.Duration(r.self[l].Load())
}

// Statement counts one database statement that took d. It may be called from any goroutine.
func (r *Recorder) Statement(d time.Duration) {
	if r == nil {
		return
	}
	r.SQL.Add(int64(d))
	r.SQLCount.Add(1)
}

// Borrowed counts a wait of d for a connection.
func (r *Recorder) Borrowed(d time.Duration) {
	if r != nil {
		r.Borrow.Add(int64(d))
	}
}

// Tripped counts n round trips to the database.
func (r *Recorder) Tripped(n int64) {
	if r != nil {
		r.Trips.Add(n)
	}
}

// LoggedIn counts d spent on opening a session in the database for the caller.
func (r *Recorder) LoggedIn(d time.Duration) {
	if r != nil {
		r.Login.Add(int64(d))
	}
}

// Waited is the time waited for connections so far.
func (r *Recorder) Waited() time.Duration {
	if r == nil {
		return 0
	}
	return time.Duration(r.Borrow.Load())
}

// Elapsed is the time since the request began.
func (r *Recorder) Elapsed() time.Duration {
	if r == nil {
		return 0
	}
	return time.Since(r.Begin)
}

// Aside is ctx with a recorder of its own, for work that runs beside other work of the same request and crosses layers itself,
// as a script does. When the work is done, add books its counts and its sets to the request; where the work's time goes is up to
// whoever waits for it. Without a recorder it is ctx.
func Aside(ctx context.Context) (_ context.Context, add func()) {
	r := From(ctx)
	if r == nil {
		return ctx, func() {}
	}
	a := &Recorder{ID: r.ID, Begin: r.Begin}
	return With(ctx, a), func() {
		for _, n := range []struct{ to, from *atomic.Int64 }{
			{&r.SQL, &a.SQL},
			{&r.SQLCount, &a.SQLCount},
			{&r.Access, &a.Access},
			{&r.Rules, &a.Rules},
			{&r.RuleCount, &a.RuleCount},
			{&r.SemWait, &a.SemWait},
			{&r.SessionWait, &a.SessionWait},
			{&r.Borrow, &a.Borrow},
			{&r.Trips, &a.Trips},
			{&r.Login, &a.Login},
			{&r.Rows, &a.Rows},
		} {
			n.to.Add(n.from.Load())
		}
		r.AddSets(a.Sets()...)
	}
}

type ctxKey struct{}

// With is ctx carrying r.
func With(ctx context.Context, r *Recorder) context.Context {
	return context.WithValue(ctx, ctxKey{}, r)
}

// From is the recorder that ctx carries, nil if none.
func From(ctx context.Context) *Recorder {
	r, _ := ctx.Value(ctxKey{}).(*Recorder)
	return r
}
