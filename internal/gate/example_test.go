package gate_test

import (
	"context"
	"errors"
	"fmt"

	"weir/internal/gate"
)

// A request finds its pool, enters, works and leaves. The one too many learns at once what stopped it.
func Example() {
	cfg := gate.ServiceNow()
	cfg.Pools[gate.APIPool] = gate.PoolConfig{Slots: 1, Queue: 0, Wait: 1}
	g, err := gate.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	pool := g.Route(gate.RequestInfo{Path: "/api/now/table/incident", Method: "GET", Dialect: "now"})
	slot, err := g.Enter(context.Background(), pool, "session 1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer slot.Release()
	queue, session := slot.Waits()
	fmt.Printf("Server-Timing: sem_wait;dur=%d, sesh_wait;dur=%d\n", queue.Milliseconds(), session.Milliseconds())

	_, err = g.Enter(context.Background(), pool, "session 2")
	var rejected *gate.RejectedError
	if errors.As(err, &rejected) {
		fmt.Printf("429, Retry-After: %.0f\n%s\n", rejected.RetryAfter.Seconds(), rejected)
	}
	// Output:
	// Server-Timing: sem_wait;dur=0, sesh_wait;dur=0
	// 429, Retry-After: 1
	// pool "api_int": 1 slots busy, 0 of 0 waiting; see gate.pools.api_int.queue
}
