package gate

import "context"

// Permits bound one kind of work inside admitted requests: a pool without routes and without session limits, whose waiters take
// turns by session like those at the door.
//
// Permits are taken in the order slot, script, connection and never backwards; whoever holds a permit takes no second one of
// the same kind. So a holder never waits for another holder of what it has, and nothing can deadlock.
type Permits struct {
	name string
	door door
}

func newPermits(name string, c PoolConfig) *Permits {
	p := &Permits{name: name}
	p.door.init("gate.permits.", Pools{name: c}, SessionConfig{})
	return p
}

func (p *Permits) reconfigure(c PoolConfig) { p.door.reconfigure(Pools{p.name: c}, SessionConfig{}) }

// Acquire waits for a permit and returns it; the caller releases it. Errors are those of [Gate.Enter].
func (p *Permits) Acquire(ctx context.Context, session string) (*Slot, error) {
	return p.door.enter(ctx, p.name, session)
}

// Stats returns the figures of the permits.
func (p *Permits) Stats() PoolStats { return p.door.stats().Pools[0] }
