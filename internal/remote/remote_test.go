package remote_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/remote"
	"weir/internal/remote/remotetest"
	"weir/internal/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an executor of functions.
type fake struct {
	execute func(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome
	stream  func(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome
}

func (f *fake) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	return f.execute(ctx, snap, u)
}

func (f *fake) Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	return f.stream(ctx, snap, u)
}

// done is an executor that says who it is in the result of each op.
func done(name string, count *atomic.Int64) *fake {
	return &fake{execute: func(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
		count.Add(1)
		out := make([]record.Outcome, len(u.Ops))
		for i := range out {
			out[i] = record.Outcome{Total: -1, Result: []byte(name)}
		}
		return out
	}}
}

func snapshot(t testing.TB, version uint64) *catalog.Snapshot {
	t.Helper()
	s, err := catalog.Build(version, catalog.Definitions{Tables: []catalog.TableDef{{Name: "item", Fields: []catalog.FieldDef{{Name: "name", Type: "string"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// machine is a backend that can die.
type machine struct {
	addr string
	t    testing.TB
	l    *listener
	stop context.CancelFunc
	done chan struct{}
	once sync.Once
}

// listener knows its connections.
type listener struct {
	net.Listener
	frozen sync.RWMutex
	mu     sync.Mutex
	conns  []net.Conn
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.conns = append(l.conns, c)
	l.mu.Unlock()
	return &conn{c, &l.frozen}, nil
}

// conn says and hears nothing while it is frozen.
type conn struct {
	net.Conn
	frozen *sync.RWMutex
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.frozen.RLock()
	defer c.frozen.RUnlock()
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	c.frozen.RLock()
	defer c.frozen.RUnlock()
	return c.Conn.Write(b)
}

// die closes everything at once, as a killed process does.
func (m *machine) die() {
	m.l.Close()
	m.l.mu.Lock()
	for _, c := range m.l.conns {
		c.(*net.TCPConn).SetLinger(0)
		c.Close()
	}
	m.l.mu.Unlock()
}

// end stops the backend as SIGTERM does.
func (m *machine) end() {
	m.once.Do(func() {
		m.stop()
		<-m.done
	})
}

func start(t testing.TB, at string, o remote.Options) *machine {
	t.Helper()
	if o.Config.Health == 0 {
		o.Config = remotetest.Config()
	}
	if o.Snapshot == nil {
		snap := snapshot(t, 1)
		o.Snapshot = func(context.Context) (*catalog.Snapshot, error) { return snap, nil }
	}
	o.Drain = 10 * time.Second
	s, err := remote.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &machine{addr: l.Addr().String(), t: t, l: &listener{Listener: l}, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(m.done)
		s.Serve(ctx, m.l) // that it was killed is no fault
	}()
	t.Cleanup(m.end)
	return m
}

// until waits for something that happens beside; a test that waits longer fails.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// hub is a client of machines that has heard of all of them.
func hub(t testing.TB, machines ...*machine) *remote.Client {
	t.Helper()
	var addrs []string
	for _, m := range machines {
		addrs = append(addrs, m.addr)
	}
	c := remotetest.Hub(t, remotetest.Config(), addrs...)
	until(t, "all backends to be up", func() bool { return c.Up() == len(machines) })
	return c
}

var (
	readOp   = record.Op{Verb: record.Get, Table: "item", Key: []record.Value{record.TextValue("k")}}
	writeOp  = record.Op{Verb: record.Insert, Table: "item"}
	tokenOp  = record.Op{Verb: record.Insert, Table: "item", Token: "t"}
	invokeOp = record.Op{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: "e"}}
	listOp   = record.Op{Verb: record.List, Table: "item", Query: &record.Query{Limit: -1}, Return: []string{"name"}}
)

func unitOf(ops ...record.Op) *record.Unit {
	return &record.Unit{Ops: ops, Actors: []record.Actor{{System: true}}}
}

func TestExecute_CarriesUnitsAndOutcomes(t *testing.T) {
	sent := unitOf(readOp, tokenOp)
	sent.Ordered, sent.Budget, sent.Parallel = true, time.Second, 3
	rows := record.NewRows([]string{"name"}, []record.Type{record.TypeString})
	rows.Append([]record.Value{record.TextValue("x")})
	var got *record.Unit
	m := start(t, "127.0.0.1:0", remote.Options{Exec: &fake{execute: func(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
		got = u
		return []record.Outcome{{Total: 7, Rows: rows}, {Total: -1, Err: record.Errorf(record.Conflict, "name", "is there")}}
	}}})
	c := hub(t, m)
	out := c.Execute(t.Context(), snapshot(t, 1), sent)
	sent.Version = 1
	if d := cmp.Diff(sent, got); d != "" {
		t.Errorf("the unit: %s", d)
	}
	if out[0].Total != 7 || out[0].Rows.At(0)[0].S != "x" || out[1].Err.Kind != record.Conflict || out[1].Err.Field != "name" || out[1].Unserviced {
		t.Errorf("%+v", out)
	}
}

func TestExecute_LayersAreThoseOfTheOtherMachine(t *testing.T) {
	m := start(t, "127.0.0.1:0", remote.Options{Exec: &fake{execute: func(ctx context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
		rec := telemetry.From(ctx)
		leave := rec.Enter(telemetry.App)
		for begin := time.Now(); time.Since(begin) < 5*time.Millisecond; {
		}
		leave()
		rec.Statement(4 * time.Millisecond)
		rec.Rows.Add(3)
		return []record.Outcome{{Total: -1}}
	}}})
	c := hub(t, m)
	rec := telemetry.New()
	leave := rec.Enter(telemetry.Hub)
	c.Execute(telemetry.With(t.Context(), rec), snapshot(t, 1), unitOf(readOp))
	leave()
	if rec.Layer(telemetry.App) < 5*time.Millisecond || rec.Layer(telemetry.BE) <= 0 || rec.Layer(telemetry.Wire) <= 0 {
		t.Errorf("app %s, be %s, wire %s", rec.Layer(telemetry.App), rec.Layer(telemetry.BE), rec.Layer(telemetry.Wire))
	}
	if rec.SQLCount.Load() != 1 || rec.SQL.Load() != int64(4*time.Millisecond) || rec.Rows.Load() != 3 {
		t.Errorf("%d statements of %d ns, %d rows", rec.SQLCount.Load(), rec.SQL.Load(), rec.Rows.Load())
	}
	sum := time.Duration(0)
	for _, l := range []telemetry.Layer{telemetry.Hub, telemetry.Queue, telemetry.Wire, telemetry.BE, telemetry.App} {
		sum += rec.Layer(l)
	}
	if sum > rec.Elapsed() {
		t.Errorf("the layers are %s together, and %s have passed", sum, rec.Elapsed())
	}
	// Nobody measures: nothing breaks.
	if out := c.Execute(telemetry.With(t.Context(), nil), snapshot(t, 1), unitOf(readOp)); out[0].Err != nil {
		t.Error(out[0].Err)
	}
}

func TestExecute_BugsOfTheBackendAreInternalAndNoDeath(t *testing.T) {
	panics := true
	m := start(t, "127.0.0.1:0", remote.Options{Exec: &fake{
		execute: func(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
			if panics {
				panic("a bug")
			}
			return nil // not the outcomes of the unit
		},
		stream: func(context.Context, *catalog.Snapshot, *record.Unit) record.Outcome { panic("a bug") },
	}})
	c := hub(t, m)
	for range 2 {
		for _, o := range append(c.Execute(t.Context(), snapshot(t, 1), unitOf(readOp, readOp)), c.Stream(t.Context(), snapshot(t, 1), unitOf(listOp))) {
			if o.Err == nil || o.Err.Kind != record.Internal || strings.Contains(o.Err.Msg, "bug") || o.Unserviced {
				t.Errorf("%+v", o)
			}
		}
		panics = false
	}
}

// What is lost with a backend is sent again only when nothing can happen twice by it.
func TestRetry_OnlyWhatIsSafe(t *testing.T) {
	for _, test := range []struct {
		name string
		ops  []record.Op
		safe bool
	}{
		{"Reads", []record.Op{readOp, listOp}, true},
		{"WritesWithTokens", []record.Op{tokenOp, readOp, tokenOp}, true},
		{"AWrite", []record.Op{writeOp}, false},
		{"AWriteAmongTokens", []record.Op{tokenOp, writeOp}, false},
		{"AScript", []record.Op{invokeOp}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			began := make(chan *machine, 2)
			var ran atomic.Int64
			var machines [2]*machine
			for i := range machines {
				machines[i] = start(t, "127.0.0.1:0", remote.Options{Exec: &fake{execute: func(ctx context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
					if ran.Add(1) == 1 {
						began <- machines[i]
						<-ctx.Done() // dies with its connection
					}
					return make([]record.Outcome, len(u.Ops))
				}}})
			}
			c := hub(t, machines[0], machines[1])
			go func() { (<-began).die() }()
			out := c.Execute(t.Context(), snapshot(t, 1), unitOf(test.ops...))
			if test.safe {
				if ran.Load() != 2 || out[0].Err != nil {
					t.Errorf("ran %d times: %v", ran.Load(), out[0].Err)
				}
				return
			}
			if ran.Load() != 1 {
				t.Errorf("ran %d times", ran.Load())
			}
			for _, o := range out {
				if o.Err == nil || o.Err.Kind != record.Unavailable || o.Unserviced {
					t.Errorf("%+v", o)
				}
			}
		})
	}
}

// A backend that cannot be reached has not begun anything: another one does it, writes too.
func TestRetry_WhatNeverLeftGoesElsewhere(t *testing.T) {
	var here, there atomic.Int64
	a := start(t, "127.0.0.1:0", remote.Options{Exec: done("a", &here)})
	b := start(t, "127.0.0.1:0", remote.Options{Exec: done("b", &there)})
	c := hub(t, a, b)
	a.die()
	for range 50 {
		out := c.Execute(t.Context(), snapshot(t, 1), unitOf(writeOp))
		if out[0].Err != nil && out[0].Err.Kind != record.Unavailable {
			t.Fatal(out[0].Err)
		}
		// One may have been on its way when the connection broke; it is told so, and nothing is done twice.
		if out[0].Err != nil && out[0].Unserviced {
			t.Fatalf("not begun, with a backend that is up: %v", out[0].Err)
		}
	}
	if there.Load() < 49 {
		t.Errorf("b did %d of 50", there.Load())
	}
	b.die()
	until(t, "the hub to notice", func() bool { return c.Up() == 0 })
	out := c.Execute(t.Context(), snapshot(t, 1), unitOf(writeOp))
	if out[0].Err == nil || out[0].Err.Kind != record.Unavailable || !out[0].Unserviced {
		t.Errorf("%+v", out[0])
	}
	if c.Ready(t.Context()) == nil {
		t.Error("ready without a backend")
	}
	// It comes back at the same address.
	again := start(t, b.addr, remote.Options{Exec: done("b", &there)})
	until(t, "the backend to be found again", func() bool { return c.Up() == 1 })
	if out := c.Execute(t.Context(), snapshot(t, 1), unitOf(writeOp)); out[0].Err != nil {
		t.Error(out[0].Err)
	}
	again.end()
}

// A backend whose machine hangs, with its connections standing, gets nothing more until it is heard again.
func TestHealth_ASilentBackendIsLeft(t *testing.T) {
	cfg := remotetest.Config()
	cfg.Health = 50 * time.Millisecond
	var here, there atomic.Int64
	a := start(t, "127.0.0.1:0", remote.Options{Config: cfg, Exec: done("a", &here)})
	b := start(t, "127.0.0.1:0", remote.Options{Config: cfg, Exec: done("b", &there)})
	c := remotetest.Hub(t, cfg, a.addr, b.addr)
	until(t, "all backends to be up", func() bool { return c.Up() == 2 })
	a.l.frozen.Lock()
	until(t, "the silence to be noticed", func() bool { return c.Up() < 2 })
	for range 20 {
		out := c.Execute(t.Context(), snapshot(t, 1), unitOf(writeOp))
		if out[0].Err != nil && !out[0].Unserviced || out[0].Err == nil && string(out[0].Result) != "b" {
			t.Errorf("%+v", out[0])
		}
	}
	a.l.frozen.Unlock()
	until(t, "the backend to be heard again", func() bool { return c.Up() == 2 })
	if here.Load() != 0 {
		t.Errorf("the silent one did %d", here.Load())
	}
}

func TestPick_TheFewestUnderWay(t *testing.T) {
	var mu sync.Mutex
	busy := map[string]int{}
	release := make(chan struct{})
	exec := func(name string) *fake {
		return &fake{execute: func(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
			mu.Lock()
			busy[name]++
			mu.Unlock()
			<-release
			return make([]record.Outcome, len(u.Ops))
		}}
	}
	c := hub(t, start(t, "127.0.0.1:0", remote.Options{Exec: exec("a")}), start(t, "127.0.0.1:0", remote.Options{Exec: exec("b")}),
		start(t, "127.0.0.1:0", remote.Options{Exec: exec("c")}))
	var calls sync.WaitGroup
	for i := range 12 {
		calls.Go(func() { c.Execute(t.Context(), snapshot(t, 1), unitOf(readOp)) })
		until(t, "the call to arrive", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return busy["a"]+busy["b"]+busy["c"] == i+1
		})
	}
	if busy["a"] != 4 || busy["b"] != 4 || busy["c"] != 4 {
		t.Errorf("%v", busy)
	}
	close(release)
	calls.Wait()
}

// A backend that stops finishes what it has, and gets nothing more.
func TestDrain_LosesNothing(t *testing.T) {
	var first, second atomic.Int64
	release := make(chan struct{})
	slow := &fake{execute: func(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
		first.Add(1)
		<-release
		return make([]record.Outcome, len(u.Ops))
	}}
	a := start(t, "127.0.0.1:0", remote.Options{Exec: slow})
	c := hub(t, a)
	var calls sync.WaitGroup
	for range 5 {
		calls.Go(func() {
			if out := c.Execute(t.Context(), snapshot(t, 1), unitOf(writeOp)); out[0].Err != nil {
				t.Error(out[0].Err)
			}
		})
	}
	until(t, "the calls to arrive", func() bool { return first.Load() == 5 })
	ended := make(chan struct{})
	go func() { a.end(); close(ended) }()
	until(t, "the hub to be told", func() bool { return c.Up() == 0 })
	if out := c.Execute(t.Context(), snapshot(t, 1), unitOf(writeOp)); out[0].Err == nil || !out[0].Unserviced {
		t.Errorf("%+v", out[0])
	}
	close(release)
	calls.Wait()
	<-ended
	if first.Load() != 5 || second.Load() != 0 {
		t.Errorf("%d calls", first.Load())
	}
}

func TestContext_DeadlinesAndCancellationReachTheBackend(t *testing.T) {
	began := make(chan time.Duration, 1)
	ended := make(chan error, 1)
	m := start(t, "127.0.0.1:0", remote.Options{Exec: &fake{execute: func(ctx context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
		left := time.Duration(-1)
		if at, ok := ctx.Deadline(); ok {
			left = time.Until(at)
		}
		began <- left
		<-ctx.Done()
		ended <- ctx.Err()
		return []record.Outcome{{Err: record.Errorf(record.Timeout, "", "no time is left"), Total: -1}} // may arrive in time
	}}})
	c := hub(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	out := c.Execute(ctx, snapshot(t, 1), unitOf(readOp))
	if out[0].Err == nil || out[0].Err.Kind != record.Canceled {
		t.Errorf("%+v", out[0])
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the backend: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	out = c.Execute(ctx, snapshot(t, 1), unitOf(readOp))
	if out[0].Err == nil || out[0].Err.Kind != record.Timeout {
		t.Errorf("%+v", out[0])
	}
	if left := <-began; left < 0 || left > 50*time.Millisecond {
		t.Errorf("the backend has %s", left)
	}
	<-ended
	if c.Up() != 1 {
		t.Error("a caller who goes away is no fault of the backend")
	}
}

// counted is rows without end, or as many as there are.
type counted struct {
	n, most int64
	made    *atomic.Int64
	closed  *atomic.Bool
	err     error
	row     [1]record.Value
}

func (s *counted) Next() ([]record.Value, bool) {
	if s.n == s.most {
		return nil, false
	}
	s.n++
	s.made.Store(s.n)
	s.row[0] = record.TextValue(strings.Repeat("x", 1000))
	return s.row[:], true
}
func (s *counted) Err() error   { return s.err }
func (s *counted) Close() error { s.closed.Store(true); return nil }

func lists(s *counted) *fake {
	return &fake{stream: func(context.Context, *catalog.Snapshot, *record.Unit) record.Outcome {
		return record.Outcome{Total: 42, Rows: record.StreamRows([]string{"name"}, []record.Type{record.TypeString}, s)}
	}}
}

func TestStream_RowsComeToTheirEnd(t *testing.T) {
	for _, n := range []int64{0, 1, 65, 5000} {
		for _, fault := range []error{nil, record.Errorf(record.Timeout, "", "too long")} {
			var made atomic.Int64
			var closed atomic.Bool
			m := start(t, "127.0.0.1:0", remote.Options{Exec: lists(&counted{most: n, made: &made, closed: &closed, err: fault})})
			c := hub(t, m)
			rec := telemetry.New()
			leave := rec.Enter(telemetry.Hub)
			out := c.Stream(telemetry.With(t.Context(), rec), snapshot(t, 1), unitOf(listOp))
			if out.Err != nil || out.Total != 42 || !out.Rows.Streaming() || out.Rows.Fields[0] != "name" {
				t.Fatalf("%+v", out)
			}
			got := int64(0)
			for row, ok := out.Rows.Next(); ok; row, ok = out.Rows.Next() {
				if len(row[0].S) != 1000 {
					t.Fatalf("row %d is %q", got, row[0].S)
				}
				got++
			}
			if got != n || record.AsError(out.Rows.Err()) == nil != (fault == nil) || fault != nil && record.KindOf(out.Rows.Err()) != record.Timeout {
				t.Errorf("%d of %d rows, then %v instead of %v", got, n, out.Rows.Err(), fault)
			}
			out.Rows.Close()
			leave()
			if !closed.Load() || rec.Layer(telemetry.BE) <= 0 {
				t.Errorf("closed %v, be %s", closed.Load(), rec.Layer(telemetry.BE))
			}
		}
	}
}

// A hub that reads slowly holds up the backend and not the memory of either.
func TestStream_NoFasterThanItIsRead(t *testing.T) {
	var made atomic.Int64
	var closed atomic.Bool
	m := start(t, "127.0.0.1:0", remote.Options{Exec: lists(&counted{most: -1, made: &made, closed: &closed})})
	c := hub(t, m)
	out := c.Stream(t.Context(), snapshot(t, 1), unitOf(listOp))
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	for range 100 {
		if _, ok := out.Rows.Next(); !ok {
			t.Fatal(out.Rows.Err())
		}
	}
	// The window is full when nothing is made any more.
	last, still := int64(-1), 0
	until(t, "the backend to wait", func() bool {
		if now := made.Load(); now != last {
			last, still = now, 0
		}
		still++
		return still > 50
	})
	if most := int64(4000); last > most {
		t.Errorf("%d rows of 1000 bytes were made for a hundred that were read; want at most %d", last, most)
	}
	out.Rows.Close()
	until(t, "the cursor to be closed", closed.Load)
}

func TestStream_ABackendThatDiesBreaksTheRows(t *testing.T) {
	var made atomic.Int64
	var closed atomic.Bool
	m := start(t, "127.0.0.1:0", remote.Options{Exec: lists(&counted{most: -1, made: &made, closed: &closed})})
	c := hub(t, m)
	out := c.Stream(t.Context(), snapshot(t, 1), unitOf(listOp))
	if out.Err != nil {
		t.Fatal(out.Err)
	}
	defer out.Rows.Close()
	n := 0
	for _, ok := out.Rows.Next(); ok; _, ok = out.Rows.Next() {
		if n++; n == 500 {
			m.die()
		}
	}
	if err := out.Rows.Err(); record.KindOf(err) != record.Unavailable {
		t.Errorf("after %d rows: %v", n, err)
	}
}

// A list that was lost before its first rows came is asked for again.
func TestStream_IsRepeatedBeforeItsFirstRows(t *testing.T) {
	var machines [2]*machine
	began := make(chan *machine, 2)
	var ran atomic.Int64
	for i := range machines {
		machines[i] = start(t, "127.0.0.1:0", remote.Options{Exec: &fake{stream: func(ctx context.Context, _ *catalog.Snapshot, u *record.Unit) record.Outcome {
			if ran.Add(1) == 1 {
				began <- machines[i]
				<-ctx.Done()
			}
			return record.Outcome{Total: -1, Rows: record.NewRows([]string{"name"}, []record.Type{record.TypeString})}
		}}})
	}
	c := hub(t, machines[0], machines[1])
	go func() { (<-began).die() }()
	out := c.Stream(t.Context(), snapshot(t, 1), unitOf(listOp))
	if out.Err != nil || ran.Load() != 2 {
		t.Fatalf("ran %d times: %v", ran.Load(), out.Err)
	}
	out.Rows.Close()
}

// versions is a backend's definitions, which others change.
type versions struct {
	t       testing.TB
	cat     *catalog.Catalog
	applied atomic.Uint64 // in the database
}

func newVersions(t testing.TB, v uint64) *versions {
	s := &versions{t: t, cat: catalog.New(snapshot(t, v))}
	s.applied.Store(v)
	return s
}

func (v *versions) options() remote.Options {
	return remote.Options{
		Snapshot: func(context.Context) (*catalog.Snapshot, error) { return v.cat.Snapshot(), nil }, Changed: v.cat.Changed,
		Refresh: func(context.Context) error {
			return v.cat.Update(func(was *catalog.Snapshot) (*catalog.Snapshot, error) {
				if was.Version == v.applied.Load() {
					return was, nil
				}
				return snapshot(v.t, v.applied.Load()), nil
			})
		},
		Exec: &fake{execute: func(_ context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
			return []record.Outcome{{Total: int64(snap.Version)}}
		}},
	}
}

func TestVersions_UnitsRunWithTheDefinitionsThatTheyWereDecodedWith(t *testing.T) {
	v := newVersions(t, 3)
	c := hub(t, start(t, "127.0.0.1:0", v.options()))
	three, err := c.Snapshot(t.Context())
	if err != nil || three.Version != 3 {
		t.Fatalf("%v %v", three, err)
	}
	with := func(snap *catalog.Snapshot) record.Outcome { return c.Execute(t.Context(), snap, unitOf(readOp))[0] }
	if out := with(three); out.Total != 3 {
		t.Errorf("%+v", out)
	}
	// The hub learns of new ones at once; what is under way keeps its own.
	v.applied.Store(4)
	v.cat.Swap(snapshot(t, 4))
	until(t, "the hub to take them up", func() bool { s, _ := c.Snapshot(t.Context()); return s.Version == 4 })
	if out := with(three); out.Err != nil || out.Total != 3 {
		t.Errorf("the hub is behind: %+v", out)
	}
	// A hub that another backend has told of newer ones.
	v.applied.Store(5)
	if out := with(snapshot(t, 5)); out.Err != nil || out.Total != 5 {
		t.Errorf("the hub is ahead: %+v", out)
	}
	if out := with(catalog.System()); out.Err != nil || out.Total != 0 {
		t.Errorf("weir's own tables: %+v", out)
	}
	// A version that nobody has any more: nothing is run, and the caller is told to decode again.
	until(t, "the hub to take them up", func() bool { s, _ := c.Snapshot(t.Context()); return s.Version == 5 })
	out := with(snapshot(t, 2))
	if !errors.Is(out.Err, dialect.ErrStale) || !out.Unserviced || out.Err.Kind != record.Unavailable {
		t.Errorf("%+v", out)
	}
	if out := c.Stream(t.Context(), snapshot(t, 2), unitOf(listOp)); !errors.Is(out.Err, dialect.ErrStale) {
		t.Errorf("%+v", out)
	}
	fresh, err := c.Fetch(t.Context())
	if err != nil || fresh.Version != 5 {
		t.Errorf("%v %v", fresh, err)
	}
}

// A hub goes by the newest definitions that one of its backends has, and back when all have older ones.
func TestVersions_TheNewestOfAllBackends(t *testing.T) {
	slow, fast := newVersions(t, 1), newVersions(t, 1)
	c := hub(t, start(t, "127.0.0.1:0", slow.options()), start(t, "127.0.0.1:0", fast.options()))
	is := func(v uint64) func() bool {
		return func() bool { s, _ := c.Snapshot(t.Context()); return s.Version == v }
	}
	fast.cat.Swap(snapshot(t, 2))
	until(t, "the newest", is(2))
	// The other one finds them in the database when it is asked for them.
	slow.applied.Store(2)
	snap, _ := c.Snapshot(t.Context())
	for range 4 {
		if out := c.Execute(t.Context(), snap, unitOf(readOp)); out[0].Err != nil || out[0].Total != 2 {
			t.Errorf("%+v", out[0])
		}
	}
	if !is(2)() {
		t.Error("it went back and forth")
	}
	slow.cat.Swap(snapshot(t, 1))
	fast.cat.Swap(snapshot(t, 1))
	until(t, "the database that was put back", is(1))
}

func TestStart_TellsAnotherVersionOfWeir(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	go s.Serve(l)
	defer s.Stop()
	c := remotetest.Config()
	c.Backends = []string{l.Addr().String()}
	client, err := remote.Dial(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "another version of weir") {
		t.Errorf("%v", err)
	}
}

func TestStart_WaitsForABackendThatComesLater(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	c := remotetest.Config()
	c.Backends = []string{at}
	client, err := remote.Dial(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Snapshot(t.Context()); record.KindOf(err) != record.Unavailable {
		t.Errorf("%v", err)
	}
	started := make(chan error, 1)
	go func() { started <- client.Start(t.Context()) }()
	var n atomic.Int64
	start(t, at, remote.Options{Exec: done("late", &n)})
	if err := <-started; err != nil {
		t.Error(err)
	}

	c.Wait = time.Millisecond
	c.Backends = []string{"127.0.0.1:1"}
	none, err := remote.Dial(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer none.Close()
	if err := none.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}

func TestMessage_TooLargeNamesItsSetting(t *testing.T) {
	cfg := remotetest.Config()
	cfg.Message = 1 << 20
	var n atomic.Int64
	m := start(t, "127.0.0.1:0", remote.Options{Config: cfg, Exec: done("a", &n)})
	c := remotetest.Hub(t, cfg, m.addr)
	big := writeOp
	big.Set = []record.Assign{{Field: "name", Value: record.TextValue(strings.Repeat("x", 2<<20))}}
	out := c.Execute(t.Context(), snapshot(t, 1), unitOf(big))
	if out[0].Err == nil || out[0].Err.Kind != record.TooLarge || !strings.Contains(out[0].Err.Msg, "remote.message") || n.Load() != 0 {
		t.Errorf("%+v, ran %d times", out[0], n.Load())
	}
	if out := c.Execute(t.Context(), snapshot(t, 1), unitOf(writeOp)); out[0].Err != nil {
		t.Error(out[0].Err)
	}
}
