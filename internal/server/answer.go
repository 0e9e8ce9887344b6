package server

import (
	"bytes"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"weir/internal/dialect"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

// TimingHeader asks for all of Server-Timing: layers, SQL time and count.
const TimingHeader = "X-Weir-Timing"

// The values of headers that never change. Nobody appends to them: each has no room for a second value.
var (
	nosniff   = []string{"nosniff"}
	loggedIn  = []string{"true"}
	loggedOut = []string{"false"}
	noCache   = []string{"no-cache,no-store,must-revalidate,max-age=-1"}
	noStore   = []string{"no-store,no-cache"}
	expired   = []string{"0"}
)

// head sets the answer's headers. Names that clients compare with care are set as they are spelled.
func (v *Visit) head(a *wire.Answer) {
	v.grant(a)
	v.challenge(a)
	if d, ok := v.d.(dialect.Timed); ok {
		v.mark()
		d.Timing(&v.call, v.Recorder, a)
	}
	if (a.Status == http.StatusServiceUnavailable || a.Status == http.StatusTooManyRequests) && !a.Header.Has("Retry-After") {
		a.Header.Set("Retry-After", "1") // nothing says when; clients that wait at all wait so
	}
	v.Format = dialect.FormatOf(a.Header.Get("Content-Type"))
	h := v.w.Header()
	h["X-Content-Type-Options"] = nosniff
	h["X-Transaction-ID"] = []string{v.Recorder.ID}
	h["X-Is-Logged-In"] = loggedOut
	if v.Identity != nil && v.Identity.Method != "" {
		h["X-Is-Logged-In"] = loggedIn
	}
	h["Cache-Control"], h["Pragma"], h["Expires"] = noCache, noStore, expired
	if v.r.TLS != nil {
		h["Strict-Transport-Security"] = []string{"max-age=63072000"}
	}
	if v.rate != nil {
		for _, f := range rateHeader(v.rate) {
			h[f.Name] = []string{f.Value}
		}
	}
	if v.Identity != nil {
		for _, c := range v.Identity.Cookies {
			h.Add("Set-Cookie", c.String())
		}
		if v.Identity.UserToken != "" {
			h["X-UserToken-Response"] = []string{v.Identity.UserToken}
		}
	}
	seen := ""
	for _, f := range a.Header {
		name := f.Name // as the dialect spells it: DataServiceVersion
		switch canonical := http.CanonicalHeaderKey(name); canonical {
		case "Content-Type", "Content-Encoding", "Date", "Content-Length", "Connection":
			name = canonical // net/http looks for these
		}
		switch {
		case name == "Content-Length", name == "Connection":
		case name == seen: // a second value
			h[name] = append(h[name], f.Value)
		default:
			h[name] = []string{f.Value}
		}
		seen = name
	}
	h["Server-Timing"] = []string{v.timing()}
	v.Status = a.Status
}

// timing is Server-Timing: the two waits that clients of the now dialect know, and the layers when asked for.
func (v *Visit) timing() string {
	r := v.Recorder
	b := make([]byte, 0, 320)
	dur := func(name string, ns int64) {
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(b, name...)
		b = append(b, ";dur="...)
		b = appendMillis(b, time.Duration(ns))
	}
	dur("sem_wait", r.SemWait.Load())
	dur("sesh_wait", r.SessionWait.Load())
	if v.s.cfg.Telemetry.Timing || v.r.Header.Get(TimingHeader) != "" {
		v.mark()
		for _, l := range []telemetry.Layer{telemetry.Hub, telemetry.Queue, telemetry.BE, telemetry.App} {
			dur(l.String(), int64(r.Layer(l)))
		}
		if r.Layer(telemetry.Wire) > 0 {
			dur(telemetry.Wire.String(), int64(r.Layer(telemetry.Wire)))
		}
		dur("sql", r.SQL.Load())
		b = append(b, `;desc="`...)
		b = strconv.AppendInt(b, r.SQLCount.Load(), 10)
		b = append(b, ` statements"`...)
		// Stage by stage, as the tuning of ORDS goes (protocol notes of the ords dialect, section 15); they lie within the layers. A
		// database login is how such a caller proves who it is.
		dur("route", r.Route.Load())
		dur("auth", r.Auth.Load()+r.Login.Load())
		dur("metadata", r.Metadata.Load())
		dur("borrow", r.Borrow.Load())
		dur("encode", r.Encode.Load())
		dur("hash", r.Hash.Load())
		b = append(b, `, db;desc="`...)
		b = strconv.AppendInt(b, r.Trips.Load(), 10)
		b = append(b, ` round trips"`...)
		dur("total", int64(r.Elapsed()))
	}
	return string(b)
}

// mark books the time so far, so that the running layer is not behind.
func (v *Visit) mark() {
	if v.leave != nil {
		v.leave()
		v.leave = v.Recorder.Enter(telemetry.Hub)
	}
}

// appendMillis writes a duration in milliseconds with at most three decimals.
func appendMillis(b []byte, d time.Duration) []byte {
	us := d.Microseconds()
	if us < 0 {
		b, us = append(b, '-'), -us
	}
	b = strconv.AppendInt(b, us/1000, 10)
	if us %= 1000; us == 0 {
		return b
	}
	b = append(b, '.', byte('0'+us/100), byte('0'+us/10%10), byte('0'+us%10))
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	return b
}

// send writes a whole answer.
func (v *Visit) send(a *wire.Answer) {
	if v.sent {
		return
	}
	v.head(a)
	v.sent = true
	v.Recorder.Bytes.Add(int64(len(a.Body)))
	h := v.w.Header()
	body := a.Body
	if v.zips(a) {
		room := answer()
		defer release(room)
		to := bytes.NewBuffer(room.Body)
		z := v.deflater(to)
		z.Write(body) // memory does not fail
		z.Close()
		v.giveBack(z)
		room.Body = to.Bytes()
		body = room.Body
	}
	if a.Status != http.StatusNoContent && a.Status != http.StatusNotModified {
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
	}
	v.count(a)
	v.w.WriteHeader(a.Status)
	v.push(body)
}

// largeBody is the size from which a body's memory is worth a collection of its own, some milliseconds.
const largeBody = 16 << 20

// count makes the answer what is held for the client, in place of the request's body, which nobody needs any more. It is never refused
// for its size: what was asked for is done, and those who come now wait for it to go.
func (v *Visit) count(a *wire.Answer) {
	large := cap(v.call.Body) >= largeBody
	v.call.Body = nil
	if large {
		runtime.GC() // the budget is lent to the next body when this one's memory is free, not when it is garbage
	}
	switch n := int64(cap(a.Body)); {
	case v.hold != nil:
		v.hold.Resize(n)
	case n > firstRead:
		v.hold = v.s.o.Gate.Bytes.Take(n)
	}
}

// flush is [wire.Answer.Flush] of a streamed answer.
func (v *Visit) flush(a *wire.Answer) error {
	if !v.sent {
		v.head(a)
		v.sent = true
		if v.zips(a) {
			v.zip = v.deflater(pusher{v})
		}
		v.w.WriteHeader(a.Status)
	}
	err := v.piece(a.Body)
	a.Body = a.Body[:0]
	return err
}

// rest sends what a streamed answer still holds.
func (v *Visit) rest(a *wire.Answer) {
	if v.piece(a.Body) == nil && v.zip != nil {
		v.zip.Close()
		v.giveBack(v.zip)
	}
}

// piece sends a piece of a streamed answer.
func (v *Visit) piece(b []byte) error {
	v.Recorder.Bytes.Add(int64(len(b)))
	if v.zip == nil {
		return v.push(b)
	}
	if _, err := v.zip.Write(b); err != nil {
		return err
	}
	return v.zip.Flush()
}

// pusher writes under the deadline that moves.
type pusher struct{ v *Visit }

// Write is [Visit.push].
func (p pusher) Write(b []byte) (int, error) {
	if err := p.v.push(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// push writes bytes under a deadline that moves with them: a slow reader may take as long as it likes, if it takes something.
func (v *Visit) push(b []byte) error {
	if v.Method == http.MethodHead {
		return nil
	}
	began := time.Now()
	defer func() { v.pushed += time.Since(began) }()
	for len(b) > 0 {
		n := min(len(b), wire.FlushAt)
		v.control.SetWriteDeadline(time.Now().Add(v.s.cfg.Limits.WriteTime))
		if _, err := v.w.Write(b[:n]); err != nil {
			v.broken = true
			return err
		}
		b = b[n:]
	}
	return nil
}
