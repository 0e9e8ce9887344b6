package telemetry

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRecorder_LayersExcludeEachOtherAndSumUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		leave := r.Enter(Hub)
		time.Sleep(2 * time.Millisecond)
		back := r.Enter(Wire)
		time.Sleep(10 * time.Millisecond)
		back()
		time.Sleep(time.Millisecond)
		leave()
		r.Rebook(Wire, BE, 3*time.Millisecond)
		r.Rebook(Wire, App, 4*time.Millisecond)
		r.Rebook(Wire, Hub, -time.Hour) // a clock that went back
		want := [numLayers]time.Duration{Hub: 3 * time.Millisecond, Wire: 3 * time.Millisecond, BE: 3 * time.Millisecond, App: 4 * time.Millisecond}
		sum := time.Duration(0)
		for l := range numLayers {
			if got := r.Layer(l); got != want[l] {
				t.Errorf("%s: %s, want %s", l, got, want[l])
			}
			sum += r.Layer(l)
		}
		if sum != r.Elapsed() {
			t.Errorf("the layers are %s together, and %s have passed", sum, r.Elapsed())
		}
		r.Rebook(Wire, BE, time.Hour)
		if r.Layer(Wire) != 0 || r.Layer(BE) != 6*time.Millisecond {
			t.Errorf("more was moved than there was: rfc %s, be %s", r.Layer(Wire), r.Layer(BE))
		}
	})
}

func TestRecorder_NilIsANoOp(t *testing.T) {
	var r *Recorder
	r.Enter(BE)()
	r.Move(App, 1)
	r.Rebook(Wire, App, 1)
	r.Statement(1)
	if r.Layer(BE) != 0 || r.Elapsed() != 0 {
		t.Error("nothing has a time")
	}
}

func TestAside_CountsForTheRequestAndCrossesLayersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New()
		leave := r.Enter(App)
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				ctx, add := Aside(With(t.Context(), r))
				defer add()
				defer From(ctx).Enter(BE)()
				time.Sleep(time.Millisecond)
				From(ctx).Statement(time.Microsecond)
				From(ctx).AddSets(Set{Verb: "list"})
			})
		}
		wait.Wait()
		leave()
		if r.Layer(App) != time.Millisecond || r.Layer(BE) != 0 {
			t.Errorf("app %s, be %s: the request waited 1ms in app", r.Layer(App), r.Layer(BE))
		}
		if r.SQLCount.Load() != 3 || r.SQL.Load() != 3000 || len(r.Sets()) != 3 {
			t.Errorf("%d statements in %d ns, %d sets, want 3 in 3000 and 3", r.SQLCount.Load(), r.SQL.Load(), len(r.Sets()))
		}
		if _, add := Aside(t.Context()); add == nil {
			t.Error("nothing to add is no function")
		}
	})
}
