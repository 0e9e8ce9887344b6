package sqlite

import (
	"context"
	"time"

	"weir/internal/record"
	"weir/internal/telemetry"
)

// draw takes numbers in one statement, which is a transaction of its own.
const draw = `INSERT INTO weir_sequence (name, next) VALUES (?1, ?2 + ?3)
	ON CONFLICT (name) DO UPDATE SET next = next + ?3 RETURNING next - ?3`

// Numbers draws n consecutive numbers of a sequence and returns the first. It needs the write connection: who holds a
// transaction must have drawn before.
//
// The commit need not reach the disk before the record that bears the number: the log is written in order, so the record's
// commit carries it along.
func (s *Store) Numbers(ctx context.Context, sequence string, start int64, n int) (first int64, err error) {
	if n < 1 {
		return 0, record.Errorf(record.Internal, "", "%d numbers of a sequence are asked for", n)
	}
	err = s.writing(ctx, func(c *conn) error {
		began := time.Now()
		defer func() { telemetry.From(ctx).Statement(time.Since(began)) }()
		p, err := c.prepare(draw)
		if err != nil {
			return err
		}
		defer c.release(p)
		if err := c.db.Exec("PRAGMA " + relaxed); err != nil {
			return err
		}
		defer func() {
			c.unlimit()
			if e := c.db.Exec("PRAGMA " + durable); e != nil {
				c.broken = true // it must not serve commits that are promised to be durable
			}
		}()
		for i, v := range []record.Value{record.TextValue(sequence), record.IntValue(start), record.IntValue(int64(n))} {
			if err := c.bind(p, i+1, record.TypeString, v); err != nil {
				return err
			}
		}
		if !p.Step() {
			return p.Err()
		}
		first = p.ColumnInt64(0)
		p.Step() // to its end, which commits
		return p.Err()
	})
	return first, err
}
