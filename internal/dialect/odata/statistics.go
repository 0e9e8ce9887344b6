package odata

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/internal/dialect"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

var _ dialect.Timed = (*Dialect)(nil)

// Timing writes the headers of protocol notes, section 6: sap-perf-fesrec, the time so far in microseconds, on every answer, and
// sap-statistics on successful ones that were asked for it.
func (d *Dialect) Timing(c *dialect.Call, rec *telemetry.Recorder, a *wire.Answer) {
	var room [512]byte
	a.Header.Set("sap-perf-fesrec", string(append(strconv.AppendInt(room[:0], rec.Elapsed().Microseconds(), 10), ".000000"...)))
	if a.Status < http.StatusBadRequest && asksStatistics(c) {
		a.Header.Set("sap-statistics", string(appendStatistics(room[:0], sharesOf(rec))))
	}
}

// asksStatistics reports whether a call asks for the statistics: by a parameter of the URL, else by a header.
func asksStatistics(c *dialect.Call) bool {
	const name = "sap-statistics"
	for part := range strings.SplitSeq(c.RawQuery, "&") {
		if key, value, _ := strings.Cut(part, "="); key == name {
			return strings.EqualFold(value, "true")
		}
	}
	return strings.EqualFold(strings.TrimSpace(c.Header.Get(name)), "true")
}

// shares are where the time of a request went.
type shares struct {
	hub, queue, wire, be, app, sql time.Duration
	statements                     int64
}

func sharesOf(rec *telemetry.Recorder) shares {
	return shares{
		hub: rec.Layer(telemetry.Hub), queue: rec.Layer(telemetry.Queue), wire: rec.Layer(telemetry.Wire), be: rec.Layer(telemetry.BE), app: rec.Layer(telemetry.App),
		sql: time.Duration(rec.SQL.Load()), statements: rec.SQLCount.Load(),
	}
}

// appendStatistics writes the layers. The keys up to gwnongw are those of SAP Gateway, whole milliseconds, with
//
//	gwtotal = gwhub + gwrfcoh + gwbe + gwapp + gwnongw, total = gwtotal, app = gwapp + gwnongw, fw = total - app
//
// exactly. gwhub holds the wait at the gate. What follows is ours: the same in microseconds, since small requests round to 0, and in them
// the wait and the time in the database.
func appendStatistics(b []byte, s shares) []byte {
	layers := [...]time.Duration{s.hub + s.queue, s.wire, s.be, s.app, 0}
	total, ms := milliseconds(layers)
	app := ms[3] + ms[4]
	put := func(name string, n int64) {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(append(b, name...), '=')
		b = strconv.AppendInt(b, n, 10)
	}
	put("total", total)
	put("fw", total-app)
	put("app", app)
	put("gwtotal", total)
	names := [len(layers)]string{"gwhub", "gwrfcoh", "gwbe", "gwapp", "gwnongw"}
	for i, name := range names {
		put(name, ms[i])
	}
	sum := int64(0)
	for _, d := range layers {
		sum += d.Microseconds()
	}
	put("gwtotal_us", sum)
	for i, name := range names {
		put(name+"_us", layers[i].Microseconds())
	}
	put("queue_us", s.queue.Microseconds())
	put("sql_us", s.sql.Microseconds())
	put("sql_count", s.statements)
	return b
}

// milliseconds rounds durations so that they add up to their rounded sum: those that lose most by cutting are rounded up.
func milliseconds(list [5]time.Duration) (total int64, ms [5]int64) {
	var sum time.Duration
	var rest [5]time.Duration
	for i, d := range list {
		sum += d
		ms[i] = d.Milliseconds()
		rest[i] = d - time.Duration(ms[i])*time.Millisecond
	}
	total = (sum + time.Millisecond/2).Milliseconds()
	left := total
	for _, n := range ms {
		left -= n
	}
	for ; left > 0; left-- {
		most := 0
		for i, r := range rest {
			if r > rest[most] {
				most = i
			}
		}
		ms[most]++
		rest[most] = -1
	}
	return total, ms
}
