package engine

import (
	"time"

	"weir/internal/record"
	"weir/internal/telemetry"
)

// timed is a cursor whose time is booked as the database's, though rows are fetched while an answer is written.
type timed struct {
	record.Source
	rec   *telemetry.Recorder
	n     int
	spent time.Duration
	done  func(time.Duration) // told at the end how long the rows took; may be nil
}

// Rows are timed one by one up to timedRows, then every sampleth for all of them: two looks at the clock are a good part of the time
// that a row takes. The period is prime, so that it does not fall in step with a buffer that fills every so many rows.
const (
	timedRows = 32
	sample    = 17
)

// Next is the next row.
func (t *timed) Next() ([]record.Value, bool) {
	t.n++
	if t.n > timedRows && t.n%sample != 0 {
		return t.Source.Next()
	}
	begin := time.Now()
	row, ok := t.Source.Next()
	d := time.Since(begin)
	if t.n > timedRows {
		d *= sample
	}
	t.spent += d
	t.rec.Move(telemetry.App, d)
	return row, ok
}

// Close ends the cursor.
func (t *timed) Close() error {
	err := t.Source.Close()
	if t.done != nil {
		t.done(t.spent)
		t.done = nil
	}
	return err
}

// stream is rows read on demand, by the goroutine of the request alone.
func (x *unit) stream(rows *record.Rows, done func(time.Duration)) *record.Rows {
	if x.rec == nil || rows == nil || !rows.Streaming() {
		return rows
	}
	return record.StreamRows(rows.Fields, rows.Types, &timed{Source: rows, rec: x.rec, done: done})
}
