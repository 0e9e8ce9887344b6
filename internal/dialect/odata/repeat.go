package odata

import (
	"net/http"
	"strings"
	"time"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// The headers of OASIS Repeatable Requests 1.0: what a client names by an id of its own takes effect once, however often it is sent.
const (
	repeatID     = "Repeatability-Request-ID"
	repeatClient = "Repeatability-Client-ID"
	repeatSent   = "Repeatability-First-Sent"
	repeatResult = "Repeatability-Result"
)

// maxRepeatID bounds the id of a repeatable request.
const maxRepeatID = 255

// repeatable makes a change repeatable whose call asks for it: its writes get the engine's token, so that a repeat is answered with what the
// first one did. The answer says accepted, or rejected where the token or its time is of no use.
func (q *request) repeatable(ex *dialect.Exchange) (*dialect.Exchange, error) {
	id := strings.TrimSpace(q.call.Header.Get(repeatID))
	if id == "" || q.method == "GET" {
		return ex, nil
	}
	if err := q.repeatFault(id); err != nil {
		return &dialect.Exchange{Reply: func(_ []record.Outcome, a *wire.Answer) {
			q.d.Fail(q.call, err, a)
			a.Status = http.StatusPreconditionFailed
			if err.Kind == record.Invalid {
				a.Status = http.StatusBadRequest
			}
			a.Header.Set(repeatResult, "rejected")
		}}, nil
	}
	// Ids are compared without regard to case (section 3.1).
	mark(ex, "repeat/"+strings.TrimSpace(q.call.Header.Get(repeatClient))+"/"+strings.ToLower(id))
	return ex, nil
}

// mark gives an exchange, and those that follow it, the token. Each has tokens of its own.
func mark(ex *dialect.Exchange, token string) {
	ex.Token = token
	reply, next := ex.Reply, ex.Next
	ex.Reply = func(out []record.Outcome, a *wire.Answer) {
		reply(out, a)
		result := "accepted"
		for i := range out {
			if e := out[i].Err; e != nil && e.Rule == record.RuleToken {
				result, a.Status = "rejected", http.StatusBadRequest
			}
		}
		a.Header.Set(repeatResult, result)
	}
	if next != nil {
		ex.Next = func(out []record.Outcome) (*dialect.Exchange, error) {
			n, err := next(out)
			if n != nil {
				mark(n, token+"+")
			}
			return n, err
		}
	}
}

// repeatFault is what is wrong with the headers of a repeatable request.
func (q *request) repeatFault(id string) *record.Error {
	if len(id) > maxRepeatID {
		return record.Errorf(record.Invalid, repeatID, "the id has %d characters, more than %d", len(id), maxRepeatID)
	}
	if client := q.call.Header.Get(repeatClient); len(client) > maxRepeatID {
		return record.Errorf(record.Invalid, repeatClient, "the id has %d characters, more than %d", len(client), maxRepeatID)
	}
	text := strings.TrimSpace(q.call.Header.Get(repeatSent))
	if text == "" {
		return record.Errorf(record.Invalid, repeatSent, "a repeatable request says when it was first sent")
	}
	sent, err := http.ParseTime(text)
	if err != nil {
		return record.Errorf(record.Invalid, repeatSent, "%.60q is not a time such as Sun, 06 Nov 1994 08:49:37 GMT", text)
	}
	if age := q.d.now().Sub(sent); age > q.d.opt.RepeatWindow || age < -q.d.opt.RepeatWindow {
		return record.Errorf(record.Precondition, repeatSent, "first sent at %s, which is not within %s of now; see odata.repeat_window", sent.Format(time.RFC3339), q.d.opt.RepeatWindow)
	}
	return nil
}
