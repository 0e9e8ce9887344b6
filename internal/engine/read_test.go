package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// watched is a store that counts reads and the most that ran at once.
type watched struct {
	store.Store
	reads   atomic.Int64
	running atomic.Int64
	most    atomic.Int64
	meet    *sync.WaitGroup // reads wait here for each other
}

func (w *watched) Query(ctx context.Context, q *store.Read) (*store.Result, error) {
	w.reads.Add(1)
	n := w.running.Add(1)
	defer w.running.Add(-1)
	for m := w.most.Load(); n > m && !w.most.CompareAndSwap(m, n); m = w.most.Load() {
	}
	if w.meet != nil {
		w.meet.Done()
		w.meet.Wait()
	}
	return w.Store.Query(ctx, q)
}

func TestRead_GetsOfOneTableAreOneStatementAndIdenticalListsRunOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		w := &watched{Store: s}
		b := newBench(t, w, engine.Options{})
		b.must(insert("dept", id(1), "name", "a"), insert("dept", id(2), "name", "b"))
		w.reads.Store(0)
		want(t, b.do(enginetest.Admin,
			get("dept", id(2), "name"), get("dept", id(1), "name"), get("dept", id(9), "name"), get("dept", id(2), "name"),
			list("dept", nil, "name"), list("dept", nil, "name"), list("dept", nil, "grp"),
		), "ok b", "ok a", "not found", "ok b", "ok a / b", "ok a / b", "ok - / -")
		if got := w.reads.Load(); got != 3 {
			t.Errorf("%d statements, not 3", got)
		}
	})
}

func TestRead_IdenticalListsHaveTheirOwnCursor(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		b.must(insert("dept", id(1), "name", "a"))
		out := b.must(list("dept", nil, "name"), list("dept", nil, "name"))
		for i, o := range out {
			if row, ok := o.Rows.Next(); !ok || row[0].S != "a" {
				t.Errorf("list %d has no row", i)
			}
		}
	})
}

func TestRead_RunBesideEachOtherAsFarAsTheUnitAllows(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		w := &watched{Store: s}
		b := newBench(t, w, engine.Options{})
		ops := []record.Op{list("dept", nil, "name"), list("ci", nil, "name"), list("task", nil, "title")}
		w.meet = &sync.WaitGroup{}
		w.meet.Add(3) // hangs unless all three are under way at once
		b.must(ops...)
		w.meet = nil
		w.most.Store(0)
		b.unit(record.Unit{Ops: ops, Parallel: 1})
		if got := w.most.Load(); got != 1 {
			t.Errorf("%d reads at once, not 1", got)
		}
	})
}

func TestRead_SeesTheWritesBeforeItAndNoneAfterIt(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(insert("dept", id(1), "name", "a"))
		want(t, b.do(enginetest.Admin, get("dept", id(1), "name"), update("dept", id(1), "name", "b"), get("dept", id(1), "name"), list("item", nil, "id"), del("dept", id(1)), get("dept", id(1), "name")),
			"ok a", "ok changed", "ok b", "invalid sys_id", "ok changed", "not found")
	})
}

func TestStream_ShowsNullWhereTheActorMayNotRead(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		b.must(insert("task", id(1), "title", "a", "owner", "beth", "hidden", "h"), insert("task", id(2), "title", "b"))
		stream := func(a record.Actor, op record.Op) record.Outcome {
			return b.x.Stream(t.Context(), b.snap, &record.Unit{Ops: []record.Op{op}, Actors: []record.Actor{a}})
		}
		o := stream(enginetest.Beth, list("task", nil, "hidden", "title", "pin"))
		if o.Err != nil || !o.Rows.Streaming() {
			t.Fatalf("outcome %+v", o)
		}
		row, ok := o.Rows.Next()
		if !ok || !row[0].IsNull() || row[1].S != "a" || !row[2].IsNull() {
			t.Errorf("row %v", row)
		}
		if _, more := o.Rows.Next(); more {
			t.Error("a record of somebody else is there")
		}
		if err := o.Rows.Close(); err != nil {
			t.Error(err)
		}
		if o := stream(enginetest.Beth, list("task", record.Compare(record.Eq, record.F("pin"), record.C(text("1"))), "title")); o.Err == nil || o.Err.Kind != record.Forbidden || o.Err.Field != "pin" {
			t.Errorf("a filter on a password: %+v", o)
		}
		if o := stream(enginetest.Beth, get("task", id(1), "title")); o.Err == nil || o.Err.Kind != record.Invalid {
			t.Errorf("a get streams: %+v", o)
		}
	})
}

func TestBounds_NameTheSettingToTurn(t *testing.T) {
	each(t, engine.Options{MaxOps: 3, MaxResult: 2000}, func(t *testing.T, b *bench) {
		b.must(insert("dept", id(1), "name", "a", "grp", strings.Repeat("x", 1500)))
		b.must(insert("dept", id(2), "name", "b", "grp", strings.Repeat("x", 1500)))
		out := b.do(enginetest.Admin, list("dept", nil, "grp"))
		if out[0].Err == nil || out[0].Err.Kind != record.TooLarge || !strings.Contains(out[0].Err.Msg, "engine.max_result") {
			t.Errorf("outcome %+v", out[0])
		}
		op := get("dept", id(1), "name")
		out = b.do(enginetest.Admin, op, op, op, op)
		for _, o := range out {
			if o.Err == nil || o.Err.Kind != record.TooLarge || !strings.Contains(o.Err.Msg, "engine.max_ops") || !o.Unserviced {
				t.Errorf("outcome %+v", o)
			}
		}
	})
}

// slow is a store whose reads take longer than the unit has time.
type slow struct{ store.Store }

func (s slow) Query(ctx context.Context, q *store.Read) (*store.Result, error) {
	for began := time.Now(); time.Since(began) < 20*time.Millisecond; runtime.Gosched() {
	}
	return s.Store.Query(ctx, q)
}

func TestBudget_WhatHasNotBegunIsUnserviced(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, slow{s}, engine.Options{})
		out := b.unit(record.Unit{Parallel: 1, Budget: 10 * time.Millisecond, Ops: []record.Op{
			list("dept", nil, "name"), list("ci", nil, "name"), insert("dept", id(1), "name", "a"),
		}})
		want(t, out, "ok", "timeout unserviced", "timeout unserviced")
		want(t, b.must(list("dept", nil, "name")), "ok")
	})
}

// script is an invoker that runs units of its own, as scripts do.
type script struct {
	x    engine.Executor
	meet *sync.WaitGroup
}

func (s *script) Invoke(ctx context.Context, snap *catalog.Snapshot, actor *record.Actor, call *record.Invocation) ([]byte, *record.Error) {
	if call.Endpoint == "bad" {
		return nil, record.Errorf(record.Rejected, "", "no")
	}
	if call.Endpoint == "meet" {
		s.meet.Done()
		s.meet.Wait()
	}
	op := list("dept", nil, "name")
	op.Query.Sort[0].Path = "name"
	if len(call.Args) > 0 {
		op = insert("dept", "", "name", string(call.Args))
	}
	out := s.x.Execute(ctx, snap, &record.Unit{Ops: []record.Op{op}, Actors: []record.Actor{*actor}})
	if out[0].Err != nil {
		return nil, out[0].Err
	}
	return []byte(show(out[0])), nil
}

func TestInvoke_SeesWhatIsCommittedBeforeIt(t *testing.T) {
	call := func(name, args string) record.Op {
		return record.Op{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: name, Args: []byte(args)}}
	}
	s := &script{meet: &sync.WaitGroup{}}
	each(t, engine.Options{Invoker: s}, func(t *testing.T, b *bench) {
		s.x = b.x
		results := func(out []record.Outcome) string {
			var l []string
			for _, o := range out {
				l = append(l, show(o)+" "+string(o.Result))
			}
			return strings.Join(l, "\n")
		}
		ordered := func(stop bool, ops ...record.Op) string {
			return results(b.unit(record.Unit{Ordered: true, StopOnError: stop, Ops: ops}))
		}
		got := ordered(false, insert("dept", id(1), "name", "a"), call("list", ""), call("make", "b"), get("dept", id(1), "name"), call("list", ""))
		if want := "ok inserted \nok ok a\nok ok inserted\nok a \nok ok a / b"; got != want {
			t.Errorf("ordered:\n%s\nwant:\n%s", got, want)
		}
		if got, want := ordered(true, call("bad", ""), insert("dept", id(3), "name", "c")), "rejected \ndependency 0 unserviced "; got != want {
			t.Errorf("stopping:\n%s", got)
		}
		s.meet.Add(3)
		want(t, b.unit(record.Unit{Ops: []record.Op{call("meet", ""), call("meet", ""), call("meet", ""), insert("dept", id(4), "name", "d")}}), "ok", "ok", "ok", "ok inserted")
		after := call("list", "")
		after.If = []record.Condition{{Op: 0}}
		got = results(b.unit(record.Unit{Ops: []record.Op{insert("dept", id(5), "name", "e"), after}}))
		if !strings.Contains(strings.Split(got, "\n")[1], "e") {
			t.Errorf("an invocation that depends on a write:\n%s", got)
		}
	})
}

func TestRef_ReachesKeysValuesAndQueries(t *testing.T) {
	each(t, engine.Options{}, func(t *testing.T, b *bench) {
		where := record.Compare(record.Eq, record.F("dept"), record.C(record.RefTo(0, "sys_id")))
		byRef := record.Op{Verb: record.Update, Table: "dept", Key: []record.Value{record.RefTo(0, "")}, Set: set("grp", "g")}
		want(t, b.do(enginetest.Admin,
			insert("dept", "", "name", "d"), insert("task", id(1), "title", "x", "dept", record.RefTo(0, "sys_id"), "owner", record.RefTo(0, "name")),
			list("task", where, "title", "owner"), byRef, get("task", id(1), "dept.grp"),
			insert("task", id(2), "title", record.RefTo(6, "x")), insert("task", id(3), "title", "y", "prio", record.RefTo(0, "name")),
			insert("task", id(4), "title", "y", "owner", record.RefTo(6, "title")),
		), "ok inserted", "ok inserted", "ok x d", "ok changed", "ok g", "invalid", "invalid prio", "dependency 6")
	})
}

func TestStat_FusedOpsShareTheirStatement(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		b := newBench(t, s, engine.Options{})
		rec := telemetry.New()
		ops := make([]record.Op, 10)
		for i := range ops {
			ops[i] = insert("dept", "", "name", fmt.Sprint(i))
		}
		out := b.x.Execute(telemetry.With(t.Context(), rec), b.snap, &record.Unit{Ops: ops, Actors: []record.Actor{enginetest.Admin}})
		for i, o := range out {
			if o.Stat.SetOps != 10 || o.Stat.SQLCount != 1 || o.Stat.SQL <= 0 || o.Stat.End < o.Stat.Start || o.Stat.Rows != 1 {
				t.Errorf("op %d: %+v", i, o.Stat)
			}
		}
		if rec.Layer(telemetry.App) <= 0 || rec.Layer(telemetry.BE) <= 0 || rec.SQLCount.Load() == 0 {
			t.Errorf("recorder: app %s, be %s, %d statements", rec.Layer(telemetry.App), rec.Layer(telemetry.BE), rec.SQLCount.Load())
		}
	})
}
