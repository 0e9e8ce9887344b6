package sqlite

import (
	"context"
	"time"
)

// notices counts the calls of Notify, in the table of sequences.
const notices = "weir.notices"

// Notify tells all nodes, this one included, that definitions or credentials changed.
func (s *Store) Notify(ctx context.Context) error {
	_, err := s.Numbers(ctx, notices, 1, 1)
	return err
}

// Watch asks every Options.Poll whether Notify was called: one look-up by key, some ten microseconds. A file that cannot be
// read is asked again.
func (s *Store) Watch(ctx context.Context, changed func()) error {
	last, known := s.noticed(ctx)
	tick := time.NewTicker(s.opts.Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		n, ok := s.noticed(ctx)
		if ok && known && n != last {
			changed()
		}
		if ok {
			last, known = n, true
		}
	}
}

// noticed is the number of notices so far.
func (s *Store) noticed(ctx context.Context) (n int64, ok bool) {
	c, err := s.readers.get(ctx)
	if err != nil {
		return 0, false
	}
	defer s.readers.put(c)
	p, err := c.prepare(`SELECT next FROM weir_sequence WHERE name = '` + notices + `'`)
	if err != nil {
		return 0, false // before the first apply there is no such table
	}
	defer c.release(p)
	if p.Step() {
		n = p.ColumnInt64(0)
	}
	return n, p.Err() == nil
}
