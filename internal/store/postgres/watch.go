package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is where nodes tell each other that definitions or credentials changed.
const channel = "weir"

// Notify tells all nodes, this one included.
func (s *Store) Notify(ctx context.Context) error {
	return s.with(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_notify($1, '')", channel)
		return err
	})
}

// The pause after a lost connection grows from minPause to maxPause.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// Watch calls changed when any node notified, on a connection of its own that it opens again when it is lost; since a
// notice may have been missed meanwhile, it then calls changed too. It returns nil when ctx ends.
func (s *Store) Watch(ctx context.Context, changed func()) error {
	pause := minPause
	for again := false; ; again = true {
		heard, _ := s.listen(ctx, changed, again)
		if ctx.Err() != nil {
			return nil
		}
		if heard {
			pause = minPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		pause = min(2*pause, maxPause)
	}
}

// listen waits for notices on one connection until it is lost. heard says that it was connected.
func (s *Store) listen(ctx context.Context, changed func(), again bool) (heard bool, err error) {
	c, err := pgx.ParseConfig(s.opts.URL)
	if err != nil {
		return false, err
	}
	s.session(c, nil)
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return false, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return false, err
	}
	if again {
		changed()
	}
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return true, err
		}
		changed()
	}
}
