package gate

import (
	"context"
	"sync"
	"sync/atomic"
)

// Gate is the admission of one node.
type Gate struct {
	Scripts *Permits     // running scripts
	Hashing *Permits     // password checks
	Bytes   *Budget      // memory held for clients
	Rates   *RateLimiter // requests per user and hour

	door     door
	cfg      atomic.Pointer[Config]
	changing sync.Mutex // one Reconfigure at a time
}

// New returns a gate with the given settings, or all their faults.
func New(cfg Config) (*Gate, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	g := &Gate{
		Scripts: newPermits("scripts", cfg.Permits.Scripts),
		Hashing: newPermits("hashing", cfg.Permits.Hashing),
		Bytes:   newBudget(cfg.Bytes),
		Rates:   newRateLimiter(cfg.Rates),
	}
	g.door.init("gate.pools.", cfg.Pools, cfg.Session)
	g.cfg.Store(cfg.clone())
	return g, nil
}

// Config returns the settings in force. They are shared: read them only.
func (g *Gate) Config() *Config { return g.cfg.Load() }

// Reconfigure puts new settings in force, or returns all their faults and changes nothing.
//
// Nobody who was admitted or waits loses by it. A pool that shrinks lets its surplus run to the end and its line be served;
// a pool that is gone takes in nobody new, serves those who wait, and then vanishes; one that grows lets
// waiters in at once. Wait limits concern those who arrive from now on.
func (g *Gate) Reconfigure(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	g.changing.Lock()
	defer g.changing.Unlock()
	g.door.reconfigure(cfg.Pools, cfg.Session)
	g.Scripts.reconfigure(cfg.Permits.Scripts)
	g.Hashing.reconfigure(cfg.Permits.Hashing)
	g.Bytes.reconfigure(cfg.Bytes)
	g.Rates.reconfigure(cfg.Rates)
	g.cfg.Store(cfg.clone())
	return nil
}

// Route returns the name of the pool that a request goes to.
func (g *Gate) Route(r RequestInfo) string {
	for _, route := range g.cfg.Load().Routes {
		if route.matches(r) {
			return route.Pool
		}
	}
	return DefaultPool
}

// Enter waits for a slot of the pool on behalf of a session and returns it; the caller releases it. An empty session is work
// without one (a job): it has no session limits, and takes turns as one more session.
//
// The error is a [*RejectedError] if a limit forbids to run or to wait, or wraps the cause of ctx if ctx ended first.
func (g *Gate) Enter(ctx context.Context, pool, session string) (*Slot, error) {
	return g.door.enter(ctx, pool, session)
}

// Run hands granted slots to those who wait for them until ctx ends; without it they are handed over at once. Of two requests
// that are equally near, one that waited here and one that has just come in, it lets neither overtake the other for
// long: see [door.wake].
func (g *Gate) Run(ctx context.Context) error { return g.door.run(ctx) }

// Drain turns new requests away (limit "draining") and returns when all those that run or wait have finished, or with an error
// that counts them when ctx ends first. The gate stays closed. A server that must not refuse what it has accepted
// lets its listeners go quiet first.
func (g *Gate) Drain(ctx context.Context) error { return g.door.drain(ctx) }

// Stats returns the figures of all pools, permits, the budget and the rate limits, each consistent in itself.
func (g *Gate) Stats() Stats {
	s := g.door.stats()
	s.Permits = []PoolStats{g.Hashing.Stats(), g.Scripts.Stats()}
	s.Bytes = g.Bytes.Stats()
	s.Rates = g.Rates.Stats()
	return s
}
