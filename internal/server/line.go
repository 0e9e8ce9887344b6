package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/gate"
	"weir/internal/record"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

// Visit is one request from its arrival to the last byte of its answer.
type Visit struct {
	Recorder *telemetry.Recorder
	Number   uint64 // of the request on this node
	Method   string
	Path     string
	URL      string // path and query, redacted
	Dialect  string
	Batch    bool
	Identity *auth.Identity
	Status   int
	Pool     string
	Total    time.Duration
	Gzipped  bool // the request body was
	Items    []dialect.ItemRecord
	Err      *record.Error // what the whole request failed with, if it did

	// Name is what was called, as logs, metrics and limits name it: "now/v1/table", "odata/GWSAMPLE_BASIC/ProductSet".
	Name string
	// Later says that this is the execution of a call whose client did not wait for it.
	Later bool
	// In is the bytes of the request's body, Format the format of the answer: "json", "atom", "multipart".
	In     int
	Format string

	s        *Server
	w        http.ResponseWriter
	r        *http.Request
	control  *http.ResponseController
	d        dialect.Dialect
	call     dialect.Call
	hold     *gate.Hold
	slot     *gate.Slot
	inSlot   inSlot
	rate     *gate.Rate
	leave    func()
	batchAt  time.Duration // when the batch began, since the request did
	retry    time.Duration // for Retry-After
	sent     bool          // the answer's head is on its way
	broken   bool          // the client stopped reading
	pushed   time.Duration // spent on sending
	finished bool
	snap     *catalog.Snapshot
	exec     dialect.Executor
	known    bool          // there is what Name says
	token    string        // of a deferred call: its writes take effect once, however often it is executed
	wrote    int           // writes that succeeded
	unproven error         // a change by cookie without the proof that is known to auth
	entry    dialect.Entry // how the caller proves who it is
	login    *record.Login // of a database user: what is called runs in a session of its own
	grantAge time.Duration // a token is asked for, and how long it holds
	zip      *gzip.Writer  // of a streamed answer that is compressed
}

// Header is the request's headers; read only.
func (v *Visit) Header() http.Header { return v.r.Header }

// API is what was called without the version of its API: "now/table".
func (v *Visit) API() string {
	if _, ok := v.d.(dialect.Namer); ok && v.Name != "" {
		return clean(v.Name, 200)
	}
	api, _ := apiName(v.Path)
	return clean(api, 200)
}

// resource is Name, also of a request that did not get so far as to have one.
func (v *Visit) resource(n int) string {
	if v.Name != "" {
		return clean(v.Name, n)
	}
	_, name := apiName(v.Path)
	return clean(name, n)
}

// ServeHTTP takes one request down the line and up again.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.cors(w, r) || s.aside(w, r) {
		return
	}
	v := &Visit{
		Recorder: telemetry.New(), Number: s.serial.Add(1), Method: r.Method, Path: r.URL.Path, Identity: auth.Guest(),
		s: s, w: w, r: r, control: http.NewResponseController(w),
	}
	v.Recorder.ID = newTransactionID()
	v.leave = v.Recorder.Enter(telemetry.Hub)
	v.d = s.o.Mux.Find(v.Path)
	if v.d == nil {
		v.d = s.o.Fallback
	}
	v.Dialect = v.d.Name()
	s.metrics.running.Add(1)
	defer v.end()
	defer v.recover()
	v.run(telemetry.With(r.Context(), v.Recorder))
}

// recover is the one place where a panic ends: it becomes an internal error.
func (v *Visit) recover() {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	err := v.s.public(v.Recorder, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	v.release()
	if v.sent {
		v.Err = err
		panic(http.ErrAbortHandler) // half an answer is out: the connection breaks, so that nobody takes it for whole
	}
	v.fail(err)
}

// end accounts for the request, whatever became of it.
func (v *Visit) end() {
	v.release()
	v.hold.Release()
	if !v.finished {
		v.finished = true
		v.leave()
		v.Total = v.Recorder.Elapsed()
		v.s.metrics.running.Add(-1)
		v.s.metrics.observe(v)
		v.s.tx.add(v)
		v.logEnd()
		if v.s.o.Trace != nil {
			v.s.o.Trace(v)
		}
	}
}

func (v *Visit) run(ctx context.Context) {
	s := v.s
	v.URL = s.redact.url(v.r.URL)
	at := v.Recorder.Elapsed()
	snap, err := s.o.Snapshot(ctx)
	at = lap(&v.Recorder.Metadata, v.Recorder, at)
	if err == nil {
		v.snap = snap
		v.Name, v.known = nameOf(snap, v.d, v.Path)
		at = lap(&v.Recorder.Route, v.Recorder, at)
		err = v.identify(ctx, snap)
		lap(&v.Recorder.Auth, v.Recorder, at)
	}
	v.logStart() // as guest, if it is nobody
	if err != nil {
		v.fail(err)
		return
	}
	v.call.Actor = v.Identity.Actor
	if s.o.Mux.Find(v.Path) == nil {
		v.fail(record.Errorf(record.NoPath, "", "Requested URI does not represent any resource"))
		return
	}
	if !v.guard(ctx, snap) {
		return
	}
	info := infoOf(v.d, v.Name, v.Method, v.Path)
	info.Batch = v.Batch
	if err := v.allowed(info); err != nil {
		v.fail(err)
		return
	}
	if v.loads(ctx, snap, info) {
		return
	}
	if v.call.Body, err = v.body(ctx); err != nil {
		v.fail(err)
		return
	}
	v.In = len(v.call.Body)
	if err := v.enter(ctx, info); err != nil {
		v.fail(err)
		return
	}
	if v.deferred(ctx, snap) {
		return
	}
	a := answer()
	defer release(a)
	if err := v.compute(ctx, snap, a); err != nil {
		v.fail(err)
		return
	}
	if v.sent {
		v.rest(a)
		return
	}
	// The work is done: others may have the slot while this client reads.
	v.release()
	v.send(a)
}

// decoded makes the answer of a call that has its slot, decoded with a snapshot.
func (v *Visit) decoded(ctx context.Context, snap *catalog.Snapshot, a *wire.Answer) error {
	if !v.Batch {
		return v.single(ctx, snap, a)
	}
	v.batchAt = v.Recorder.Elapsed()
	v.Items = v.d.(dialect.Batcher).Batch(ctx, &dialect.BatchRun{
		Snapshot: snap, Exec: v.exec, Mux: v.s.o.Mux, Serial: v.s.o.Gate.Config().SerialBatch,
		Public: func(err error) error { return v.s.public(v.Recorder, err) }, Admit: v.admit(snap),
	}, &v.call, a)
	for i := range v.Items {
		if it := &v.Items[i]; it.Status < 400 && it.Method != http.MethodGet && !it.Unserviced {
			v.wrote++
		}
	}
	return nil
}

// nameOf is what logs, metrics and limits call what a path addresses.
func nameOf(snap *catalog.Snapshot, d dialect.Dialect, path string) (name string, known bool) {
	if n, ok := d.(dialect.Namer); ok {
		if name, known = n.ResourceOf(snap, path); name != "" {
			return name, known
		}
	}
	_, name = apiName(path)
	return name, false
}

// infoOf is what the gate knows of a request for what is called name.
func infoOf(d dialect.Dialect, name, method, path string) gate.RequestInfo {
	info := gate.RequestInfo{Path: unversioned(path), Method: method}
	if d == nil {
		return info
	}
	info.Dialect = d.Name()
	if _, ok := d.(dialect.Namer); ok {
		info.Resource = "/" + name
	}
	return info
}

// describe makes the call that the dialect decodes; its body comes later.
func (v *Visit) describe() {
	v.call = dialect.Call{
		Method: v.Method, Path: v.Path, RawPath: v.r.URL.EscapedPath(), RawQuery: v.r.URL.RawQuery, Base: v.s.base(v.r), Actor: v.Identity.Actor,
		Header: make(wire.Header, 0, len(v.r.Header)), ID: v.Recorder.ID,
	}
	for name, values := range v.r.Header {
		for _, value := range values {
			v.call.Header = append(v.call.Header, wire.HeaderField{Name: name, Value: value})
		}
	}
	if b, ok := v.d.(dialect.Batcher); ok {
		v.Batch = b.IsBatch(v.Method, v.Path)
	}
}

// allowed counts the request against the hourly limits.
func (v *Visit) allowed(info gate.RequestInfo) error {
	rate, ok := v.s.o.Gate.Rates.Take(info, v.Identity.Actor.Name, v.Identity.Actor.Roles)
	if !ok {
		return nil
	}
	v.rate = &rate
	if rate.Exceeded {
		v.retry = rate.RetryAfter
		return exceeded(&rate, v.Name)
	}
	return nil
}

// admit lets the items of a batch pass if the caller has proved who it is in a way that they take, and counts them against the hourly
// limits, each for its own path (gate.rates.items).
func (v *Visit) admit(snap *catalog.Snapshot) func(c *dialect.Call) (wire.Header, error) {
	rates := &v.s.o.Gate.Config().Rates
	counts := rates.Items && len(rates.Rules) > 0
	return func(c *dialect.Call) (wire.Header, error) {
		d := v.s.o.Mux.Find(c.Path)
		if d != v.d { // what has batches takes their callers everywhere
			if err := v.enters(snap, d, c); err != nil {
				return nil, err
			}
		}
		if !counts {
			return nil, nil
		}
		name, _ := nameOf(snap, d, c.Path)
		rate, ok := v.s.o.Gate.Rates.Take(infoOf(d, name, c.Method, c.Path), v.Identity.Actor.Name, v.Identity.Actor.Roles)
		if !ok {
			return nil, nil
		}
		h := rateHeader(&rate)
		if rate.Exceeded {
			h.Set("Retry-After", strconv.Itoa(int(rate.RetryAfter.Seconds())))
			return h, exceeded(&rate, name)
		}
		return h, nil
	}
}

func exceeded(r *gate.Rate, resource string) error {
	return record.Errorf(record.RateLimited, "", "Rate limit of %d requests per hour for %s API exceeded", r.Limit, title(resource))
}

// rateHeader is what an answer tells of the limit that applied to its request (protocol notes, section 11.3).
func rateHeader(r *gate.Rate) wire.Header {
	return wire.Header{
		{Name: "X-RateLimit-Limit", Value: strconv.Itoa(r.Limit)},
		{Name: "X-RateLimit-Reset", Value: strconv.FormatInt(r.Reset, 10)},
		{Name: "X-RateLimit-Rule", Value: r.RuleID},
	}
}

// enter waits for the slot.
func (v *Visit) enter(ctx context.Context, info gate.RequestInfo) error {
	v.Pool = v.s.o.Gate.Route(info)
	session := v.Identity.Session
	if session == "" {
		session = v.Recorder.ID // strangers do not share one
	}
	return v.wait(ctx, session)
}

// wait waits for a slot of the request's pool.
func (v *Visit) wait(ctx context.Context, session string) error {
	leave := v.Recorder.Enter(telemetry.Queue)
	defer leave()
	slot, err := v.s.o.Gate.Enter(ctx, v.Pool, session)
	if err != nil {
		return v.refused(err)
	}
	v.admitted(slot)
	forPool, forSession := slot.Waits()
	v.Recorder.SemWait.Store(int64(forPool))
	v.Recorder.SessionWait.Store(int64(forSession))
	return nil
}

// refused is an error of the gate in the words that every dialect maps.
func (v *Visit) refused(err error) error {
	var rejected *gate.RejectedError
	var budget *gate.BudgetError
	switch {
	case errors.As(err, &rejected):
		v.retry = max(rejected.RetryAfter, time.Second)
		kind := record.Busy
		if rejected.Limit == gate.LimitDraining {
			kind = record.Unavailable
		}
		return record.Errorf(kind, "", "%s", rejected.Error())
	case errors.As(err, &budget):
		if budget.TooLarge() {
			return record.Errorf(record.TooLarge, "", "%s", budget.Error())
		}
		v.retry = time.Second
		return record.Errorf(record.Busy, "", "%s", budget.Error())
	case errors.Is(err, context.Canceled):
		return record.Errorf(record.Canceled, "", "the client went away").Because(err)
	case errors.Is(err, context.DeadlineExceeded):
		return record.Errorf(record.Timeout, "", "no slot in time").Because(err)
	}
	return err
}

// single runs one call: decode, execute, reply.
func (v *Visit) single(ctx context.Context, snap *catalog.Snapshot, a *wire.Answer) error {
	at := v.Recorder.Elapsed()
	ex, err := v.d.Decode(snap, &v.call)
	lap(&v.Recorder.Route, v.Recorder, at)
	if err != nil {
		return err
	}
	for round := 0; ; round++ {
		if err := v.permit(snap, ex); err != nil {
			return err
		}
		if v.token != "" && ex.Token == "" {
			ex.Token = v.token + "#" + strconv.Itoa(round)
		}
		u := dialect.UnitOf(snap, &v.call, ex)
		if ex.Next == nil && v.streams(u) {
			return v.stream(ctx, snap, ex, u, a)
		}
		out := v.exec.Execute(ctx, snap, u)
		for i := range out {
			if u.Ops[i].Verb.Writes() && out[i].Err == nil {
				v.wrote++
			}
		}
		if ex.Next != nil {
			next, err := ex.Next(out)
			if err != nil {
				return err
			}
			if next != nil {
				ex = next
				continue
			}
		}
		if v.w != nil && (v.call.Method == http.MethodGet || v.call.Method == http.MethodHead) {
			a.Flush = v.flush // what is read in several rounds may be large as well
		}
		v.reply(ex, out, a)
		a.Flush = nil
		v.note(out)
		v.whole(a)
		return nil
	}
}

// streams reports whether the answer of a unit may go out while its rows still come: it is one read alone.
func (v *Visit) streams(u *record.Unit) bool {
	if v.w == nil || len(u.Ops) != 1 {
		return false
	}
	op := &u.Ops[0]
	reads := v.call.Method == http.MethodGet || v.call.Method == http.MethodHead
	return op.Verb == record.List || reads && op.Verb == record.Invoke && op.Invoke.SQL != nil
}

// stream runs a unit of one read. What fits into the buffer is answered like everything else; more goes out while rows still come.
func (v *Visit) stream(ctx context.Context, snap *catalog.Snapshot, ex *dialect.Exchange, u *record.Unit, a *wire.Answer) error {
	at, sql, before := v.Recorder.Elapsed(), v.Recorder.SQL.Load(), v.Recorder.Rows.Load()
	out := []record.Outcome{v.exec.Stream(ctx, snap, u)}
	rows := out[0].Rows
	if rows != nil {
		defer rows.Close()
	}
	a.Flush = v.flush
	v.reply(ex, out, a)
	a.Flush = nil
	if rows != nil {
		rows.Close() // so that the database's time is known
	}
	v.note(out)
	name := u.Ops[0].Table
	if call := u.Ops[0].Invoke; call != nil {
		name = call.Endpoint
	}
	v.Recorder.AddSets(telemetry.Set{
		Verb: u.Ops[0].Verb.String(), Table: name, Ops: 1, Rows: int(v.Recorder.Rows.Load() - before), Start: at, Time: time.Duration(v.Recorder.SQL.Load() - sql),
	})
	if rows != nil && rows.Err() != nil {
		if !v.sent {
			return rows.Err()
		}
		v.cut(rows.Err())
	}
	v.whole(a)
	return nil
}

// whole makes sure that an answer of which part is out is no part of one.
func (v *Visit) whole(a *wire.Answer) {
	if a.Err != nil && v.sent && !v.broken {
		v.cut(a.Err)
	}
}

// cut ends an answer that cannot be completed. Part of it is out already, so the only honest end is none: the connection breaks in the
// middle of the answer.
func (v *Visit) cut(err error) {
	v.Err = v.s.public(v.Recorder, err)
	v.release()
	panic(http.ErrAbortHandler)
}

// reply writes the answer. What it takes is encoding, but for rows that are waited for, and for what the client takes meanwhile.
func (v *Visit) reply(ex *dialect.Exchange, out []record.Outcome, a *wire.Answer) {
	r := v.Recorder
	at, app, pushed := r.Elapsed(), r.Layer(telemetry.App), v.pushed
	ex.Reply(out, a)
	spent := r.Elapsed() - at - (r.Layer(telemetry.App) - app) - (v.pushed - pushed) - a.Hashed
	r.Encode.Add(int64(max(spent, 0)))
	r.Hash.Add(int64(a.Hashed))
}

// lap books the time since at and returns the time now.
func lap(to *atomic.Int64, r *telemetry.Recorder, at time.Duration) time.Duration {
	now := r.Elapsed()
	to.Add(int64(now - at))
	return now
}

// note keeps what the log wants to know of the outcomes.
func (v *Visit) note(out []record.Outcome) {
	v.judge(out)
	for i := range out {
		if r := out[i].Rows; r != nil {
			v.Recorder.Rows.Add(int64(max(r.Len(), r.Taken()))) // those of a cursor are gone when they are taken
		}
		if v.Err == nil && out[i].Err != nil {
			v.Err = out[i].Err
		}
	}
}

// fail answers with the dialect's envelope.
func (v *Visit) fail(err error) {
	e := v.s.public(v.Recorder, err)
	v.Err = e
	v.release()
	if v.sent {
		panic(http.ErrAbortHandler)
	}
	if e.Kind == record.Canceled && v.r.Context().Err() != nil {
		v.Status = statusGone // nobody reads an answer
		return
	}
	if v.call.Method == "" {
		v.describe()
	}
	a := answer()
	defer release(a)
	v.d.Fail(&v.call, e, a)
	if e.Kind == record.Unauthenticated && !a.Header.Has("WWW-Authenticate") {
		a.Header.Add("WWW-Authenticate", `BASIC realm="Service-now"`)
	}
	if v.retry > 0 {
		a.Header.Set("Retry-After", strconv.Itoa(int(v.retry.Seconds())))
	}
	v.send(a)
}

// statusGone is what logs and metrics say of a request whose client went away; it is never sent.
const statusGone = 499

var buffers = sync.Pool{New: func() any { return &wire.Answer{Body: make([]byte, 0, 8<<10)} }}

// answer is an empty answer with a buffer that was used before.
func answer() *wire.Answer {
	a := buffers.Get().(*wire.Answer)
	a.Status, a.Header, a.Body, a.Flush, a.Hashed, a.Err = http.StatusOK, a.Header[:0], a.Body[:0], nil, 0, nil
	return a
}

// release gives an answer back. Big buffers are left to the collector: one large answer must not hold its memory for ever.
func release(a *wire.Answer) {
	if cap(a.Body) <= 256<<10 {
		buffers.Put(a)
	}
}

// apiName is a path as the log names it: the API ("now/batch") and the resource ("now/v1/batch").
func apiName(path string) (api, resource string) {
	rest, ok := strings.CutPrefix(path, "/api/")
	if !ok {
		rest = strings.TrimPrefix(path, "/")
	}
	parts := strings.SplitN(rest, "/", 4)
	if len(parts) >= 3 && isVersion(parts[1]) {
		return parts[0] + "/" + parts[2], parts[0] + "/" + parts[1] + "/" + parts[2]
	}
	if len(parts) >= 2 {
		return parts[0] + "/" + parts[1], parts[0] + "/" + parts[1]
	}
	return rest, rest
}

// unversioned is a path without the version of its API, so that routes and limits are written once: /api/now/v2/table is
// /api/now/table.
func unversioned(path string) string {
	rest, ok := strings.CutPrefix(path, "/api/")
	if !ok {
		return path
	}
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) < 3 || !isVersion(parts[1]) {
		return path
	}
	return "/api/" + parts[0] + "/" + parts[2]
}

func isVersion(s string) bool {
	if len(s) < 2 || s[0] != 'v' {
		return false
	}
	_, err := strconv.Atoi(s[1:])
	return err == nil
}

// title is the last part of a resource with a capital: "Table" of "now/table".
func title(resource string) string {
	name := resource[strings.LastIndexByte(resource, '/')+1:]
	if name == "" {
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}
