package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"weir/internal/record"
	"weir/internal/telemetry"
)

// slowRows takes two milliseconds for each of its rows.
type slowRows struct{ left int }

func (s *slowRows) Next() ([]record.Value, bool) {
	if s.left == 0 {
		return nil, false
	}
	s.left--
	time.Sleep(2 * time.Millisecond)
	return []record.Value{record.IntValue(int64(s.left))}, true
}

func (s *slowRows) Err() error   { return nil }
func (s *slowRows) Close() error { return nil }

func TestStream_RowsAreTheDatabasesTimeAndWritingThemIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &unit{rec: telemetry.New()}
		leave := x.rec.Enter(telemetry.Hub)
		n := timedRows + 10*sample
		rows := x.stream(record.StreamRows([]string{"a"}, make([]record.Type, 1), &slowRows{left: n}), nil)
		for i := n; i > 0; i-- {
			row, ok := rows.Next()
			if !ok || row[0].N != int64(i-1) {
				t.Fatalf("row %d: %v %t", i, row, ok)
			}
			time.Sleep(time.Millisecond) // the answer is written
		}
		leave()
		app, hub := x.rec.Layer(telemetry.App), x.rec.Layer(telemetry.Hub)
		if want := time.Duration(n) * time.Millisecond; (hub-want).Abs() > want/10 || (app-2*want).Abs() > want/10 {
			t.Errorf("app %s, hub %s of %d rows", app, hub, n)
		}
		if got := app + hub; got != x.rec.Elapsed() {
			t.Errorf("%s booked of %s", got, x.rec.Elapsed())
		}
	})
}
