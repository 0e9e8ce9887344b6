package gate

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// door lets requests in and out: pools that sessions share. One lock guards all of it, because a session's limits span
// its pools; it is held for some hundred nanoseconds and never while anybody waits.
//
// Its law: whenever the lock is free, a pool with a free slot has no waiter whose session may run. Whatever changes a slot,
// a session or a limit therefore ends in dispatch, and a newcomer that finds a free slot overtakes nobody.
type door struct {
	mu       sync.Mutex
	setting  string // path before the pools' names, such as "gate.pools."
	epoch    time.Time
	pools    map[string]*pool
	sessions map[string]*session // those that run or wait, so the map is bounded by slots and queues
	limits   SessionConfig
	busy     int // requests that run or wait
	noPool   uint64
	draining bool
	idle     chan struct{} // closed when a draining door has become quiet

	bell  *os.File // rings for run that slots were granted; nil while it does not run
	woken []*Slot  // granted, not told yet
}

func (d *door) init(setting string, pools Pools, limits SessionConfig) {
	d.setting = setting
	d.epoch = time.Now()
	d.pools = map[string]*pool{}
	d.sessions = map[string]*session{}
	d.idle = make(chan struct{})
	d.reconfigure(pools, limits)
}

func (d *door) reconfigure(pools Pools, limits SessionConfig) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	d.limits = limits
	for name, c := range pools {
		p := d.pools[name]
		if p == nil {
			p = &pool{name: name, epoch: d.epoch, rejected: map[string]uint64{}}
			d.pools[name] = p
		}
		p.slots, p.queue, p.wait, p.closed = c.Slots, c.Queue, c.Wait, false
	}
	for name, p := range d.pools {
		if _, kept := pools[name]; !kept {
			p.closed = true
			d.reap(p)
		}
	}
	for _, s := range d.sessions {
		d.unpark(s, now)
	}
	for _, p := range d.pools {
		d.dispatch(p, now)
	}
}

func (d *door) enter(ctx context.Context, poolName, sessionName string) (*Slot, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("enter pool %q: %w", poolName, context.Cause(ctx))
	}
	s, wait, err := d.arrive(poolName, sessionName)
	if err != nil {
		return nil, err
	}
	if s.ready == nil {
		return s, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.ready:
		return s, nil
	case <-timer.C:
		return d.expire(s)
	case <-ctx.Done():
		d.leave(s)
		return nil, fmt.Errorf("wait in pool %q: %w", poolName, context.Cause(ctx))
	}
}

// arrive admits a request, puts it in line (then the slot has a ready channel), or rejects it.
func (d *door) arrive(poolName, sessionName string) (*Slot, time.Duration, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	p := d.pools[poolName]
	if p == nil {
		d.noPool++
		return nil, 0, &RejectedError{Pool: poolName, Session: sessionName, Limit: LimitPoolClosed, Setting: d.setting + poolName}
	}
	s := d.sessions[sessionName]
	if s == nil {
		s = &session{name: sessionName}
	}
	if p.closed {
		return nil, 0, d.reject(p, s, LimitPoolClosed, now)
	}
	if d.draining {
		return nil, 0, d.reject(p, s, LimitDraining, now)
	}
	free := p.inUse < p.slots && !d.full(s)
	switch {
	case free:
	case s.name != "" && d.limits.Waiting > 0 && s.waiting >= d.limits.Waiting:
		return nil, 0, d.reject(p, s, LimitSessionQueue, now)
	case p.waiting >= p.queue:
		return nil, 0, d.reject(p, s, LimitPoolQueue, now)
	}
	d.sessions[sessionName] = s
	d.busy++
	slot := &Slot{door: d, pool: p, session: s, arrived: now}
	if free {
		d.grant(slot, now)
		return slot, 0, nil
	}
	slot.ready = make(chan struct{})
	slot.blockedBefore = s.blockedFor(now)
	d.enqueue(slot)
	return slot, p.wait, nil
}

func (d *door) grant(s *Slot, now time.Time) {
	p, sess := s.pool, s.session
	s.state = held
	s.granted = now
	total := now.Sub(s.arrived)
	if s.ready != nil {
		s.sessionWait = sess.blockedFor(now) - s.blockedBefore
		s.queueWait = total - s.sessionWait
		d.wake(s)
	}
	p.inUse++
	p.maxInUse = max(p.maxInUse, p.inUse)
	p.started += p.sinceEpoch(now)
	p.waitTotal += total
	p.recentWait.add(total)
	p.admitted++
	sess.running++
	sess.mark(d.full(sess), now)
}

func (d *door) release(s *Slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.state != held {
		return
	}
	now := time.Now()
	service := now.Sub(s.granted)
	s.pool.served++
	s.pool.serviceTotal += service
	s.pool.recentService.add(service)
	d.free(s, now)
}

// free takes back a slot that is held and gives it to whoever is next.
func (d *door) free(s *Slot, now time.Time) {
	p := s.pool
	s.state = gone
	p.inUse--
	p.started -= p.sinceEpoch(s.granted)
	s.session.running--
	d.unpark(s.session, now)
	d.dispatch(p, now)
	d.depart(s)
}

// leave takes a request away whose caller no longer wants it, even if it was granted its slot a moment ago.
func (d *door) leave(s *Slot) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.pool.left++
	if s.state == held {
		d.free(s, time.Now())
		return
	}
	d.dequeue(s)
	d.depart(s)
}

// expire ends a wait at its limit. A slot granted in the same moment is kept.
func (d *door) expire(s *Slot) (*Slot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.state == held {
		return s, nil
	}
	now := time.Now()
	d.dequeue(s)
	err := d.reject(s.pool, s.session, LimitWait, now)
	err.Waited = now.Sub(s.arrived)
	d.depart(s)
	return nil, err
}

// depart forgets what nobody needs any more after a request has gone.
func (d *door) depart(s *Slot) {
	s.state = gone
	if s.session.running == 0 && s.session.waiting == 0 {
		delete(d.sessions, s.session.name)
	}
	d.reap(s.pool)
	d.busy--
	d.checkIdle()
}

func (d *door) reap(p *pool) {
	if p.closed && p.inUse == 0 && p.waiting == 0 {
		delete(d.pools, p.name)
	}
}

func (d *door) checkIdle() {
	if !d.draining || d.busy > 0 {
		return
	}
	select {
	case <-d.idle:
	default:
		close(d.idle)
	}
}

func (d *door) drain(ctx context.Context) error {
	d.mu.Lock()
	d.draining = true
	d.checkIdle()
	d.mu.Unlock()
	select {
	case <-d.idle:
		return nil
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy == 0 {
		return nil
	}
	return fmt.Errorf("drain the gate: %d requests have not finished: %w", d.busy, context.Cause(ctx))
}
