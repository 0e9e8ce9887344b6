package record

import (
	"errors"
	"fmt"
)

// Kind is what went wrong, in terms that every dialect can map to its own status and envelope. The set is closed: each
// dialect has one table over all kinds, tested for completeness.
type Kind uint8

// The kinds.
const (
	Internal        Kind = iota // a bug of ours; the client gets an id, the log the cause
	Invalid                     // a value, parameter or body that cannot be read or breaks a rule of its field
	Unauthenticated             // nobody, or a wrong credential
	Forbidden                   // known, but not allowed to do this
	NotFound                    // no such record, or none that the caller may see
	NoTable                     // no such table
	NoPath                      // the address means nothing
	NotAllowed                  // the method does not exist here
	Conflict                    // a unique value exists already
	Restricted                  // other records refer to this one, or it refers to one that is not there
	Rejected                    // a rule of the table refused the write; Rule names it
	Precondition                // the version or condition asked for does not hold
	Dependency                  // not run, since the op or item it depends on failed; Field names that one
	TooLarge                    // a bound on size was passed; the message names the setting
	Unsupported                 // a body format that cannot be read
	NotAcceptable               // an answer format that cannot be written
	RateLimited                 // too many requests in this hour
	Busy                        // a queue is full; try again later
	Unavailable                 // the database or a pool does not answer in time
	Timeout                     // the time allowed for the work is over
	Canceled                    // the caller went away
	NumKinds
)

var kindNames = [NumKinds]string{
	"internal", "invalid", "unauthenticated", "forbidden", "not found", "no table", "no path", "not allowed", "conflict",
	"restricted", "rejected", "precondition", "dependency", "too large", "unsupported", "not acceptable", "rate limited",
	"busy", "unavailable", "timeout", "canceled",
}

// String is the kind in words.
func (k Kind) String() string {
	if k < NumKinds {
		return kindNames[k]
	}
	return "unknown"
}

// Error is what a caller may learn. Msg is safe to send; Err is for the log only.
type Error struct {
	Kind  Kind
	Field string // the field, parameter or item at fault, or ""
	Rule  string // for Rejected, the rule's name; or a Rule constant
	Msg   string
	Err   error
}

// Error is the public text, then the private cause.
func (e *Error) Error() string {
	s := e.Msg
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap is the private cause.
func (e *Error) Unwrap() error { return e.Err }

// RuleToken is the Rule of a Conflict that says that an idempotency token was used for another request.
const RuleToken = "token"

// By is e with a rule.
func (e *Error) By(rule string) *Error {
	c := *e
	c.Rule = rule
	return &c
}

// The Rules of an Unavailable that say what is to be done about it.
const (
	RuleDown  = "down"  // the database cannot be reached, or takes no logins now
	RuleLogin = "login" // the database refuses weir's own login
	RulePool  = "pool"  // no connection to the database came free in time; the text has the pool's figures
)

// Errorf makes an error of kind k about field ("" for none) with a public text.
func Errorf(k Kind, field, format string, args ...any) *Error {
	return &Error{Kind: k, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// Because is e with its private cause.
func (e *Error) Because(err error) *Error {
	c := *e
	c.Err = err
	return &c
}

// At is e about field, if it names none yet.
func (e *Error) At(field string) *Error {
	if e.Field != "" {
		return e
	}
	c := *e
	c.Field = field
	return &c
}

// AsError finds the domain error in err; an error that is none becomes an Internal with err as cause. It is nil for nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Kind: Internal, Msg: "internal error", Err: err}
}

// KindOf is the kind of AsError(err).
func KindOf(err error) Kind { return AsError(err).Kind }
