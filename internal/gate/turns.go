package gate

import (
	"container/list"
	"slices"
	"time"
)

// session is what one session does at the door, over all pools.
type session struct {
	name    string
	running int
	waiting int
	lines   []*line // where it waits; one line for each pool, none empty

	// Time in which the session's own limit kept its requests from running: blocked up to blockedSince, which is zero
	// while the session may run. A waiter's session wait is what this clock gained while it waited.
	blocked      time.Duration
	blockedSince time.Time
}

// line is the requests of one session that wait in one pool, in order of arrival.
type line struct {
	session *session
	pool    *pool
	slots   list.List     // of *Slot
	turn    *list.Element // its place among the pool's turns; nil while parked: the session runs its maximum
}

func (d *door) full(s *session) bool {
	return s.name != "" && d.limits.Running > 0 && s.running >= d.limits.Running
}

// mark starts or stops the session's blocked clock.
func (s *session) mark(full bool, now time.Time) {
	switch {
	case full && s.blockedSince.IsZero():
		s.blockedSince = now
	case !full:
		s.blocked = s.blockedFor(now)
		s.blockedSince = time.Time{}
	}
}

func (s *session) blockedFor(now time.Time) time.Duration {
	if s.blockedSince.IsZero() {
		return s.blocked
	}
	return s.blocked + now.Sub(s.blockedSince)
}

func (s *session) line(p *pool) *line {
	for _, l := range s.lines {
		if l.pool == p {
			return l
		}
	}
	l := &line{session: s, pool: p}
	s.lines = append(s.lines, l)
	return l
}

// enqueue puts a request at the end of its session's line, and the line among the turns if the session may run.
func (d *door) enqueue(s *Slot) {
	p := s.pool
	l := s.session.line(p)
	s.place, s.line = l.slots.PushBack(s), l
	s.session.waiting++
	p.waiting++
	p.maxWaiting = max(p.maxWaiting, p.waiting)
	if l.turn == nil && !d.full(s.session) {
		l.turn = p.turns.PushBack(l)
	}
}

// dequeue takes a request out of its line, wherever it stands.
func (d *door) dequeue(s *Slot) {
	l := s.line
	l.slots.Remove(s.place)
	s.session.waiting--
	s.pool.waiting--
	if l.slots.Len() > 0 {
		return
	}
	if l.turn != nil {
		s.pool.turns.Remove(l.turn)
		l.turn = nil
	}
	s.session.lines = slices.DeleteFunc(s.session.lines, func(o *line) bool { return o == l })
}

// dispatch gives free slots to waiters: the session whose turn it is, its oldest request, and then that session goes to the back.
func (d *door) dispatch(p *pool, now time.Time) {
	for p.inUse < p.slots && p.turns.Len() > 0 {
		l := p.turns.Remove(p.turns.Front()).(*line)
		l.turn = nil
		if d.full(l.session) {
			continue // it fills its limit in another pool; unpark brings the line back
		}
		s := l.slots.Front().Value.(*Slot)
		d.dequeue(s)
		d.grant(s, now)
		if l.slots.Len() > 0 && !d.full(l.session) {
			l.turn = p.turns.PushBack(l)
		}
	}
}

// unpark gives the lines of a session that may run again their turns, the pool with the oldest request first.
func (d *door) unpark(s *session, now time.Time) {
	full := d.full(s)
	s.mark(full, now)
	if full || len(s.lines) == 0 {
		return
	}
	lines := slices.Clone(s.lines) // dispatch shortens the original
	slices.SortStableFunc(lines, func(a, b *line) int { return a.oldest().Compare(b.oldest()) })
	for _, l := range lines {
		if l.turn == nil {
			l.turn = l.pool.turns.PushBack(l)
		}
	}
	for _, l := range lines {
		d.dispatch(l.pool, now)
	}
}

func (l *line) oldest() time.Time { return l.slots.Front().Value.(*Slot).arrived }
