package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// slots bound how many connections are in use. They are given in the order that they were asked for, and their number may
// change meanwhile: a pool of pgx cannot, so it stands behind them with a bound that it never meets.
type slots struct {
	// full is the error of one who waited in vain.
	full func(store.Stats, time.Duration) *record.Error

	mu       sync.Mutex
	limit    int
	patience time.Duration
	used     int
	line     []chan struct{} // a closed channel: the slot is yours
	borrowed int64
	timeouts int64
	waited   time.Duration
}

// take waits for a slot.
func (s *slots) take(ctx context.Context) error {
	s.mu.Lock()
	if s.used < s.limit && len(s.line) == 0 {
		s.used++
		s.borrowed++
		s.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	s.line = append(s.line, mine)
	patience := s.patience
	s.mu.Unlock()

	began := time.Now()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err *record.Error
	select {
	case <-mine:
	case <-ctx.Done():
		err = ended(ctx, ctx.Err())
	case <-timer.C:
		err = s.full(s.stats(), patience)
	}
	d := time.Since(began)
	telemetry.From(ctx).Borrowed(d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited += d
	if err == nil {
		return nil
	}
	if i := slices.Index(s.line, mine); i >= 0 {
		s.line = slices.Delete(s.line, i, i+1)
	} else { // it came in the same moment: the next has it
		s.pass()
	}
	if err.Kind == record.Unavailable {
		s.timeouts++
	}
	return err
}

// give gives a slot back.
func (s *slots) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass()
}

// pass frees a slot for the next in line.
func (s *slots) pass() {
	s.used--
	s.serve()
}

func (s *slots) serve() {
	for s.used < s.limit && len(s.line) > 0 {
		close(s.line[0])
		s.line = s.line[1:]
		s.used++
		s.borrowed++
	}
}

// resize changes the number of slots and the patience of those who wait; 0 leaves either. Slots in use stay so.
func (s *slots) resize(limit int, patience time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit > 0 {
		s.limit = limit
	}
	if patience > 0 {
		s.patience = patience
	}
	s.serve()
}

// stats are the figures that the slots know; how many connections are idle they do not.
func (s *slots) stats() store.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.Stats{
		Max: s.limit, InUse: s.used, Waiting: len(s.line), Borrowed: s.borrowed, Timeouts: s.timeouts, WaitTime: s.waited,
	}
}
