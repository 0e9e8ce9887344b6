package dialect

import (
	"weir/internal/record"
	"weir/internal/wire"
)

// reply lets the exchange of item i write its answer.
func (r *run) reply(i int) {
	w, p := &r.work[i], &r.parts[i]
	p.Answer = r.arena.answer()
	w.exchange.Reply(w.out, &p.Answer)
	switch size := len(p.Body); {
	case size > r.limit:
		r.fail(i, record.Errorf(record.TooLarge, "", "the answer has %d bytes, more than %d; see %s.max_output", size, r.limit, r.name()))
		return
	case r.total+size > r.Config.MaxTotal && !(r.opt.Answered != nil && w.wrote()):
		r.fail(i, record.Errorf(record.TooLarge, "", "the answers of the batch have more than %d bytes; see %s.max_total", r.Config.MaxTotal, r.name()))
		return
	}
	r.answered(i)
}

// refuse answers item i with a fault that the join found itself.
func (r *run) refuse(i int, err error) {
	r.parts[i].Fault = record.AsError(err).Msg
	r.fail(i, err)
}

// fail answers item i with the error envelope of its dialect.
func (r *run) fail(i int, err error) {
	w, p := &r.work[i], &r.parts[i]
	d := w.dialect
	if d == nil {
		d = r.dialect
	}
	if w.call.Path == "" && r.opt.Decode != nil && r.address(&w.call, r.items[i].URL) != nil {
		w.call.Path, w.call.RawPath = r.outer.Path, r.outer.RawPath // it may say the version of the protocol
	}
	p.Answer = r.arena.answer()
	if r.Public != nil {
		err = r.Public(err)
	}
	d.Fail(&w.call, err, &p.Answer)
	r.answered(i)
}

func (r *run) answered(i int) {
	p := &r.parts[i]
	p.Body = r.arena.keep(p.Body)
	p.In, p.Bytes, p.Format = len(r.items[i].Body), len(p.Body), FormatOf(p.Header.Get("Content-Type"))
	p.ItemRecord.Status = p.Answer.Status
	p.failed = p.Answer.Status >= 400
	p.Header = append(p.Header, r.work[i].header...)
	r.total += len(p.Body)
	clear(r.work[i].out) // nobody needs the rows any more
	r.work[i] = work{}
	r.pass(i)
}

// unserviced leaves item i undone because of err, nil if its time was over.
func (r *run) unserviced(i int, err *record.Error) {
	p := &r.parts[i]
	p.Unserviced = true
	if r.opt.Answered != nil {
		if err == nil {
			err = record.Errorf(record.Timeout, "", "not begun within the %v allowed for a batch; see %s.time", r.Config.Time, r.name())
		}
		r.fail(i, err)
		return
	}
	r.work[i] = work{}
	r.pass(i)
}

// pass notes that item i is done with.
func (r *run) pass(i int) {
	if r.opt.Answered == nil && !r.opt.StopOnError {
		return
	}
	if r.done == nil {
		r.done = make([]bool, len(r.items))
	}
	r.done[i] = true
	r.held++
	r.advance()
}

// advance hands over the answers whose turn it is.
func (r *run) advance() {
	for r.next < len(r.done) && r.done[r.next] && !r.stopped && !r.paused {
		p := &r.parts[r.next]
		if r.opt.Answered != nil {
			r.opt.Answered(r.next, p)
			p.Body = nil
			r.arena.kept = r.arena.kept || p.Header != nil
		}
		r.next++
		r.held--
		g := r.items[r.next-1].Group
		last := r.next == len(r.items) || g == 0 || r.items[r.next].Group != g
		r.stopped = r.opt.StopOnError && last && p.failed
	}
	if r.held == 0 && r.opt.Answered != nil {
		r.arena.rewind()
	}
}

// arena holds the bodies and headers of many answers in few pieces.
type arena struct {
	piece  []byte
	fields []wire.HeaderField
	kept   bool // somebody keeps headers that lie in fields
}

// answer is an empty answer with room for what most have.
func (a *arena) answer() wire.Answer {
	const usual = 8
	n := len(a.fields)
	if cap(a.fields)-n < usual {
		a.fields, n = make([]wire.HeaderField, 0, 32*usual), 0
	}
	a.fields = a.fields[:n+usual]
	return wire.Answer{Header: a.fields[n : n : n+usual], Body: a.room()}
}

// room is an empty slice to append to.
func (a *arena) room() []byte {
	if cap(a.piece)-len(a.piece) < pieceSize/16 {
		a.piece = make([]byte, 0, pieceSize)
	}
	return a.piece[len(a.piece):]
}

// rewind makes the pieces at hand free again, when nobody needs any answer in them.
func (a *arena) rewind() {
	a.piece = a.piece[:0]
	if !a.kept {
		a.fields = a.fields[:0]
	}
}

// keep makes body permanent. One that has outgrown its room lives in memory of its own already.
func (a *arena) keep(body []byte) []byte {
	n := len(a.piece)
	if len(body) > 0 && len(body) <= cap(a.piece)-n && &body[0] == &a.piece[n : n+1][0] {
		a.piece = a.piece[:n+len(body)]
	}
	return body[:len(body):len(body)]
}
