// Package dialect is what all protocol front ends share: the [Call] they decode, the [Exchange] they make of it, and the
// join that makes one unit of all the items of a batch.
//
// A dialect does not do anything: it decodes a call into ops and a function that turns their outcomes into an answer. A
// batch decodes its items with the very same decoders.
package dialect

import (
	"context"
	"errors"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/wire"
)

// ErrBody marks errors in a body as such, one that is no text of its format or cannot be unpacked, as opposed to values in
// it that do not fit. It is the cause of a [record.Error].
var ErrBody = errors.New("body cannot be read")

// ErrStale is the cause of an Unavailable that an [Executor] answers a whole unit with: other definitions than those that it was
// decoded with are in force where it was to run. Nothing of it was run; decoded again, with the snapshot in force by then, it may be.
var ErrStale = errors.New("other definitions are in force")

// Call is one request as a dialect sees it: alone on its connection, or one part of a batch.
type Call struct {
	Method   string
	Path     string // decoded, without query
	RawPath  string // as it was sent, percent-encoded; for dialects whose paths hold quoted keys
	RawQuery string
	Header   wire.Header
	Body     []byte // uncompressed
	Base     string // "https://host" for links in answers
	Actor    record.Actor
	Item     bool // one part of a batch
	// ContentID is what a batch calls this part of it, "" for nothing. An error may name it, so that clients know whose it is.
	ContentID string
	// ID is that of the transaction that the call runs in, for error envelopes and the log; "" if unknown.
	ID string
}

// Exchange is one decoded call: its ops, and the function that turns their outcomes into the answer.
type Exchange struct {
	// Ops run for the caller, or as weir itself where Op.Actor is AsWeir. Group and op indexes count from 0 within the
	// exchange; the join shifts them.
	Ops     []record.Op
	Ordered bool
	Token   string // idempotency key of the caller for all writes of the exchange, "" for none
	// Reply writes the answer. out[i] is what became of Ops[i]. It must be able to run after any outcomes, failed ones
	// included. It is called once.
	Reply func(out []record.Outcome, a *wire.Answer)
	// Next, if not nil, is asked before Reply: a further exchange whose answer depends on the outcomes, or nil. It is for
	// what cannot be said as ops at once; its Reply then answers the call.
	Next func(out []record.Outcome) (*Exchange, error)
}

// Dialect is one protocol front end.
type Dialect interface {
	// Name is "now", "odata", "ords" or "arsys".
	Name() string
	// Decode reads a call. An error is answered by Fail.
	Decode(snap *catalog.Snapshot, c *Call) (*Exchange, error)
	// Fail writes the dialect's error envelope for err in the format that the call accepts.
	Fail(c *Call, err error, a *wire.Answer)
}

// Executor runs units: the engine, or one behind a network.
type Executor interface {
	// Execute runs the unit and returns one outcome for each op. Faults of the whole unit are in every outcome.
	Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome
	// Stream runs a unit of one list, whose outcome holds a streaming Rows that the caller closes.
	Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome
}

// Mux finds the dialect of a path.
type Mux struct{ routes []route }

type route struct {
	prefix string
	d      Dialect
}

// Handle gives all paths that begin with prefix to d; the longest prefix wins.
func (m *Mux) Handle(prefix string, d Dialect) { m.routes = append(m.routes, route{prefix, d}) }

// Find is the dialect of path, nil if there is none.
func (m *Mux) Find(path string) Dialect {
	var best route
	for _, r := range m.routes {
		if strings.HasPrefix(path, r.prefix) && len(r.prefix) > len(best.prefix) {
			best = r
		}
	}
	return best.d
}
