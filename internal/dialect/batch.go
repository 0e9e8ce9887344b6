package dialect

import (
	"context"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/wire"
)

// Batcher is a [Dialect] whose protocol has batches: one call that carries many. The server asks IsBatch before admission, so that
// routes may treat batches apart, and calls Batch inside the slot instead of Decode.
type Batcher interface {
	Dialect
	// IsBatch reports, from method and path alone, whether the call is a batch.
	IsBatch(method, path string) bool
	// Batch runs all items of the call and writes the whole answer, faults of the call included. The records are in the
	// order of the items and feed the transaction log.
	Batch(ctx context.Context, b *BatchRun, c *Call, a *wire.Answer) []ItemRecord
}

// BatchRun is what a batch works with. It belongs to one request.
type BatchRun struct {
	Snapshot *catalog.Snapshot
	Exec     Executor
	Mux      *Mux // finds the dialect of each item
	// Serial asks to run the items one after another in the order given (gate.serial_batch).
	Serial bool
	// Admit, if not nil, is asked before each item is decoded, by the item's call: headers for its answer, or the error that
	// it is answered with instead of being run, such as an hourly limit's.
	Admit func(c *Call) (wire.Header, error)
	// Public makes of an error what a client may see: an Internal is logged once, and its text names the log line. What comes
	// from Exec has been through it.
	Public func(error) error
}

// ItemRecord is what became of one item of a batch, and where its time went.
type ItemRecord struct {
	ID, Method, URL string
	Status          int
	Start, Time     time.Duration // since the batch began; how long
	SQL             time.Duration
	SQLCount        int
	SetOps          int   // how many ops the largest set had that the item was part of
	Sets            []int // the numbers of the sets that the item was part of; see [telemetry.Recorder.Sets]
	Rows            int
	In, Bytes       int    // of the bodies of request and answer
	Format          string // of the answer: json, atom, xml, text
	Unserviced      bool
}

// Rode notes that the item was part of set n of the request.
func (r *ItemRecord) Rode(n int) {
	if n > 0 && !slices.Contains(r.Sets, n) {
		r.Sets = append(r.Sets, n)
	}
}
