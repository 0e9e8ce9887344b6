package dialect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir/internal/catalog"
	"weir/internal/wire"
)

// Batcher is a dialect that has a batch protocol: one call that holds many. Whoever serves a call asks Batches first; a
// batch goes to Batch, everything else to Decode.
type Batcher interface {
	Dialect
	// Batches reports whether the call's path is that of a batch, whatever its method and body.
	Batches(c *Call) bool
	// Batch reads the batch, executes its items and writes the whole answer. The records say what became of each item, for
	// the transaction log and the log; they stand in the order of the request. An error means that nothing was executed and
	// nothing was written: it is answered by Fail.
	Batch(ctx context.Context, snap *catalog.Snapshot, c *Call, x Executor, a *wire.Answer) ([]ItemRecord, error)
}

// ItemRecord is what became of one item of a batch.
type ItemRecord struct {
	ID         string
	Method     string
	URL        string
	Status     int
	Unserviced bool          // not begun: nothing happened, safe to send again
	Bytes      int           // of the item's answer
	Start, End time.Duration // since the batch began; both 0 if nothing of it ran
	SQL        time.Duration // a share of the time of statements that served several items
	SQLCount   int
	SetOps     int // how many ops shared the largest set that the item was part of
	Rows       int
}

// Item is one call inside a batch, not yet decoded.
type Item struct {
	ID     string
	Method string
	URL    string // relative, or absolute on the batch's own host
	Header wire.Header
	Body   []byte
	// Depends are the ids of items whose answers this one needs. Only an item that has some may use their answers in its
	// body; see [Join.Run].
	Depends []string
	// Err is a fault found while the envelope was read: the item is answered with it and not executed.
	Err error
	// Skip leaves the item unserviced, since a bound was passed before it.
	Skip bool
}

// Part is the answer of one item.
type Part struct {
	wire.Answer
	ItemRecord
	// Fault is the text of what kept the item from being decoded, "" if it was decoded.
	Fault string

	done   bool
	failed bool
}

// BatchConfig bounds what a batch may ask for.
type BatchConfig struct {
	// MaxItems is how many items one batch may hold; a larger one is refused as a whole.
	//
	// Defaults to 20,000.
	MaxItems int `yaml:"max_items"`
	// MaxInput is how many bytes the decoded body of one item may have; the items after one that is larger stay unserviced.
	//
	// Defaults to 5 MiB, at most 10 MiB.
	MaxInput int `yaml:"max_input"`
	// MaxOutput is how many bytes the answer of one item may have; a larger one is replaced by an error.
	//
	// Defaults to 10 MiB.
	MaxOutput int `yaml:"max_output"`
	// MaxTotal is how many bytes all answers of a batch may have together; answers beyond it are replaced by errors.
	//
	// Defaults to 64 MiB.
	MaxTotal int `yaml:"max_total"`
	// MaxChain is how many items may depend on each other in a row: each link is one more round to the engine.
	//
	// Defaults to 20.
	MaxChain int `yaml:"max_chain"`
	// Time is how long a batch may run. What has not begun by then stays unserviced.
	//
	// Defaults to 30s.
	Time time.Duration `yaml:"time"`
	// Serial runs the items one after another, as the imitated system does; the profile servicenow sets it.
	//
	// Defaults to false.
	Serial bool `yaml:"serial"`
	// Headers are names of item headers that scripted endpoints may see beside those that every dialect needs.
	//
	// Defaults to none.
	Headers []string `yaml:"headers"`
}

// Defaults fills what is zero with its default.
func (c *BatchConfig) Defaults() {
	set := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	set(&c.MaxItems, 20_000)
	set(&c.MaxInput, 5<<20)
	set(&c.MaxOutput, 10<<20)
	set(&c.MaxTotal, 64<<20)
	set(&c.MaxChain, 20)
	if c.Time == 0 {
		c.Time = 30 * time.Second
	}
}

// Validate returns all faults of the settings, each with its name.
func (c *BatchConfig) Validate() error {
	var faults []error
	check := func(name string, n, most int) {
		if n < 1 || most > 0 && n > most {
			faults = append(faults, fmt.Errorf("batch.%s: %d is out of range", name, n))
		}
	}
	check("max_items", c.MaxItems, 0)
	check("max_input", c.MaxInput, 10<<20)
	check("max_output", c.MaxOutput, 0)
	check("max_total", c.MaxTotal, 0)
	check("max_chain", c.MaxChain, 1000)
	if c.Time < time.Millisecond {
		faults = append(faults, fmt.Errorf("batch.time: %v is less than 1ms", c.Time))
	}
	for _, name := range c.Headers {
		if sealedHeader(name) {
			faults = append(faults, fmt.Errorf("batch.headers: %s comes from the outer request alone", name))
		}
	}
	return errors.Join(faults...)
}
