package gate

import (
	"context"
	"sync"
	"testing"
)

// TestGate_RunHandsOverEverySlot floods a small pool while Run runs, and once more after it has ended.
func TestGate_RunHandsOverEverySlot(t *testing.T) {
	cfg := Auto(1, 0)
	cfg.Pools[DefaultPool] = PoolConfig{Slots: 2, Queue: 1000, Wait: cfg.Pools[DefaultPool].Wait}
	cfg.Session = SessionConfig{Running: 1}
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- g.Run(ctx) }()
	flood := func() {
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				session := string(rune('a' + i%3))
				for range 50 {
					s, err := g.Enter(t.Context(), DefaultPool, session)
					if err != nil {
						t.Error(err)
						return
					}
					s.Release()
				}
			})
		}
		callers.Wait()
	}
	flood()
	stop()
	flood() // some of it while Run ends
	if err := <-ran; err != nil {
		t.Error(err)
	}
	flood()
	if s := g.Stats().Pools[0]; s.InUse != 0 || s.Waiting != 0 || s.Served != 3*20*50 {
		t.Errorf("%+v", s)
	}
}
