package gate

import (
	"fmt"
	"math"
	"time"
)

// The limits at which a request is rejected.
const (
	LimitPoolQueue    = "pool queue"    // the pool's queue is full
	LimitSessionQueue = "session queue" // the session waits with as many requests as it may
	LimitWait         = "wait limit"    // it waited as long as it may
	LimitPoolClosed   = "pool closed"   // no such pool, or none any more
	LimitDraining     = "draining"      // the node is about to stop
)

// RejectedError says that a request was not admitted: which limit forbade it, its figures, and when to come back. Its text
// is safe to send: it names no session.
type RejectedError struct {
	Pool    string
	Session string // may be a secret: for the log at most
	Limit   string // one of the constants Limit…

	// The pool's figures; for the limit "session queue" those of the session, over all pools.
	Running, Slots, Waiting, Queue int

	Waited     time.Duration // for the wait limit
	RetryAfter time.Duration // whole seconds, estimated from the recent service time; zero if coming back does not help
	Setting    string        // the setting to turn, if there is one
}

func (e *RejectedError) Error() string {
	switch e.Limit {
	case LimitPoolQueue:
		return fmt.Sprintf("pool %q: %d slots busy, %d of %d waiting; see %s", e.Pool, e.Running, e.Waiting, e.Queue, e.Setting)
	case LimitSessionQueue:
		return fmt.Sprintf("pool %q: this session has %d running, %d of %d waiting; see %s", e.Pool, e.Running, e.Waiting, e.Queue, e.Setting)
	case LimitWait:
		return fmt.Sprintf("pool %q: no slot within %s, %d of %d slots busy, %d of %d waiting; see %s",
			e.Pool, e.Waited.Round(time.Millisecond), e.Running, e.Slots, e.Waiting, e.Queue, e.Setting)
	case LimitPoolClosed:
		return fmt.Sprintf("pool %q: closed; see %s", e.Pool, e.Setting)
	default:
		return fmt.Sprintf("pool %q: %s, %d running and %d waiting finish first", e.Pool, e.Limit, e.Running, e.Waiting)
	}
}

// reject counts and describes a rejection.
func (d *door) reject(p *pool, s *session, limit string, now time.Time) *RejectedError {
	p.rejected[limit]++
	e := &RejectedError{
		Pool: p.name, Session: s.name, Limit: limit,
		Running: p.inUse, Slots: p.slots, Waiting: p.waiting, Queue: p.queue,
	}
	// How many services one after another until all those who wait now run.
	rounds := float64(p.waiting) / float64(p.slots)
	switch limit {
	case LimitPoolQueue:
		e.Setting = d.setting + p.name + ".queue"
	case LimitWait:
		e.Setting = d.setting + p.name + ".wait"
	case LimitSessionQueue:
		e.Setting = "gate.session.waiting"
		e.Running, e.Slots, e.Waiting, e.Queue = s.running, d.limits.Running, s.waiting, d.limits.Waiting
		// The session's own line moves by its limit, or by its turns if the pool is the narrower one.
		rounds = float64(s.waiting) * float64(max(1, p.turns.Len())) / float64(p.slots)
		if d.limits.Running > 0 {
			rounds = max(rounds, float64(s.waiting)/float64(d.limits.Running))
		}
	case LimitDraining:
		rounds = float64(p.waiting+p.inUse) / float64(p.slots)
	case LimitPoolClosed:
		e.Setting = d.setting + p.name
		return e
	}
	e.RetryAfter = wholeSeconds(time.Duration(math.Ceil(rounds)) * p.service(now))
	return e
}

// wholeSeconds rounds up, to at least one: what a Retry-After header can say.
func wholeSeconds(d time.Duration) time.Duration {
	return max(1, (d+time.Second-1)/time.Second) * time.Second
}
