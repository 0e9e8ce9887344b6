package gate

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
	"time"
)

// pool is a named semaphore with a bounded line before it. The door's lock guards it.
type pool struct {
	name    string
	epoch   time.Time
	slots   int
	queue   int
	wait    time.Duration
	closed  bool // no longer configured: serves its line, then goes
	inUse   int
	waiting int
	turns   list.List // of *line: sessions that wait for a slot, in the order of their turns

	maxInUse, maxWaiting      int
	admitted, served, left    uint64
	rejected                  map[string]uint64
	serviceTotal, waitTotal   time.Duration
	recentService, recentWait average
	started                   int64 // sum over held slots of the instant granted, in sinceEpoch units
}

// average is a moving mean over the last dozen or so values.
type average struct {
	mean  time.Duration
	begun bool
}

func (a *average) add(d time.Duration) {
	if !a.begun {
		a.mean, a.begun = d, true
		return
	}
	a.mean += (d - a.mean) / 8
}

// service is the recent service time. If the requests that run now have on average taken longer, it is that: then
// the pool has become slower (or has not yet served anybody), and the past is no honest guide.
func (p *pool) service(now time.Time) time.Duration {
	if p.inUse == 0 {
		return p.recentService.mean
	}
	age := p.sinceEpoch(now) - p.started/int64(p.inUse)
	return max(p.recentService.mean, time.Duration(age)*time.Microsecond)
}

// sinceEpoch is an instant as microseconds: a sum over thousands of slots would overflow in nanoseconds within weeks.
func (p *pool) sinceEpoch(t time.Time) int64 { return t.Sub(p.epoch).Microseconds() }

// Slot is a place in a pool, held until Release.
type Slot struct {
	door    *door
	pool    *pool
	session *session
	state   state

	arrived, granted       time.Time
	queueWait, sessionWait time.Duration

	// While waiting: closed when granted; where it stands; the session's blocked clock on arrival.
	ready         chan struct{}
	line          *line
	place         *list.Element
	blockedBefore time.Duration
}

type state uint8

const (
	waiting state = iota
	held
	gone
)

// Release gives the slot back to whoever is next. Only the first call counts, and a nil slot is no slot, so that a caller
// may both release early and defer.
func (s *Slot) Release() {
	if s != nil {
		s.door.release(s)
	}
}

// Pool returns the name of the slot's pool.
func (s *Slot) Pool() string { return s.pool.name }

// Waits returns how long the request waited for the pool (queue), and how long before that because its session ran
// its maximum already (session). Together they are the whole wait: time in which both held it up counts as session wait.
func (s *Slot) Waits() (queue, session time.Duration) { return s.queueWait, s.sessionWait }

// Stats are the gate's figures. Counters grow from the start of the process.
type Stats struct {
	Pools    []PoolStats // by name
	Permits  []PoolStats // by name
	Bytes    BudgetStats
	Rates    RateStats
	Sessions int    // sessions that run or wait
	NoPool   uint64 // requests rejected because their pool does not exist
	Draining bool
}

// PoolStats are the figures of one pool, or of one set of permits.
type PoolStats struct {
	Name       string
	Slots      int // as configured; InUse may exceed it for a while after a change
	InUse      int
	MaxInUse   int // most slots ever in use
	Queue      int // as configured
	Waiting    int
	MaxWaiting int // most requests that ever waited
	Closed     bool

	Admitted uint64
	Served   uint64            // released
	Left     uint64            // gone before they were admitted, because their context ended
	Rejected map[string]uint64 // by limit

	ServiceTotal time.Duration // of those served
	WaitTotal    time.Duration // of those admitted
	Service      time.Duration // moving average of the last ones
	Wait         time.Duration // likewise
}

func (p *pool) stats() PoolStats {
	return PoolStats{
		Name: p.name, Slots: p.slots, InUse: p.inUse, MaxInUse: p.maxInUse,
		Queue: p.queue, Waiting: p.waiting, MaxWaiting: p.maxWaiting, Closed: p.closed,
		Admitted: p.admitted, Served: p.served, Left: p.left, Rejected: maps.Clone(p.rejected),
		ServiceTotal: p.serviceTotal, WaitTotal: p.waitTotal, Service: p.recentService.mean, Wait: p.recentWait.mean,
	}
}

func (d *door) stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Stats{Sessions: len(d.sessions), NoPool: d.noPool, Draining: d.draining}
	for _, p := range d.pools {
		s.Pools = append(s.Pools, p.stats())
	}
	slices.SortFunc(s.Pools, func(a, b PoolStats) int { return cmp.Compare(a.Name, b.Name) })
	return s
}
