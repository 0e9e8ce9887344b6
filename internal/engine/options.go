package engine

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Options are the engine's settings. The zero value is not ready: call Defaults.
type Options struct {
	// Parallel bounds the reads and invocations of one unit that are under way at once, unless the unit says otherwise.
	//
	// Defaults to 8.
	Parallel int `yaml:"parallel"`
	// MaxOps bounds the ops of one unit; a larger one is refused with TooLarge. One call may make several ops, a deep insert one for each
	// record, so it is more than a batch may hold items.
	//
	// Defaults to 100000.
	MaxOps int `yaml:"max_ops"`
	// MaxResult bounds the bytes that the results of one unit may hold in memory; a streamed list is not bounded.
	//
	// Defaults to 64 MiB.
	MaxResult int64 `yaml:"max_result"`
	// Coalesce lets single writes that arrive at the same time from different requests share a statement and a commit.
	//
	// Defaults to true.
	Coalesce *bool `yaml:"coalesce"`
	// CoalesceMax bounds the single writes that share one statement.
	//
	// Defaults to 256.
	CoalesceMax int `yaml:"coalesce_max"`
	// CoalesceFlights is how many shared statements of one kind may be under way at once. One writer at a time is all
	// that SQLite has.
	//
	// Defaults to 1 on SQLite and 3 elsewhere.
	CoalesceFlights int `yaml:"coalesce_flights"`
	// CoalesceWait bounds the time that a shared update or delete may take, locks of other writers included; after that
	// its writes run one by one, each with all the time its request has.
	//
	// Defaults to 500ms.
	CoalesceWait time.Duration `yaml:"coalesce_wait"`
	// Fuse joins the ops of a unit into sets, each one statement. Without it every op runs by itself, in the order given:
	// the results are the same, and the time says what fusion is worth.
	//
	// Defaults to true.
	Fuse *bool `yaml:"fuse"`
	// Splits is how often a failing run of atoms is halved to find the guilty ones; after that they run one by one.
	//
	// Defaults to 16.
	Splits int `yaml:"splits"`
	// Retries is how often the writes of a unit are tried again after a deadlock or a serialization failure.
	//
	// Defaults to 3.
	Retries int `yaml:"retries"`
	// StrictChoices refuses values that are not among the choices of their field.
	//
	// Defaults to false.
	StrictChoices bool `yaml:"strict_choices"`
	// TokenAge is how long idempotency tokens are kept.
	//
	// Defaults to 24h.
	TokenAge time.Duration `yaml:"token_age"`

	// Now is the clock.
	//
	// Defaults to time.Now.
	Now func() time.Time `yaml:"-"`
	// NewID draws the key of a new record, 32 lower-case hex digits.
	//
	// Defaults to the time in milliseconds, 6 bytes, and 10 random ones.
	NewID func() string `yaml:"-"`
	// Hash hashes the value of a password field. Without it writes to password fields are refused.
	Hash func(plain string) (string, error) `yaml:"-"`
	// Invoker runs scripted endpoints. Without it invocations are refused.
	Invoker Invoker `yaml:"-"`
	// SQL runs SQL endpoints. Without it their invocations are refused.
	SQL SQLRunner `yaml:"-"`
}

// Defaults fills what is not set.
func (o *Options) Defaults() {
	def(&o.Parallel, 8)
	def(&o.MaxOps, 100_000)
	def(&o.MaxResult, 64<<20)
	def(&o.CoalesceMax, 256)
	def(&o.CoalesceWait, 500*time.Millisecond)
	def(&o.Splits, 16)
	def(&o.Retries, 3)
	def(&o.TokenAge, 24*time.Hour)
	on := true
	if o.Coalesce == nil {
		o.Coalesce = &on
	}
	if o.Fuse == nil {
		o.Fuse = &on
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = newID
	}
}

func def[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Validate returns all faults of the settings, each with its path.
func (o *Options) Validate() error {
	var faults []error
	positive := func(name string, v int64) {
		if v < 1 {
			faults = append(faults, fmt.Errorf("engine.%s: %d is not positive", name, v))
		}
	}
	positive("parallel", int64(o.Parallel))
	positive("max_ops", int64(o.MaxOps))
	positive("max_result", o.MaxResult)
	positive("coalesce_max", int64(o.CoalesceMax))
	positive("coalesce_wait", int64(o.CoalesceWait))
	positive("splits", int64(o.Splits))
	positive("token_age", int64(o.TokenAge))
	if o.Retries < 0 {
		faults = append(faults, fmt.Errorf("engine.retries: %d is negative", o.Retries))
	}
	if o.CoalesceFlights < 0 {
		faults = append(faults, fmt.Errorf("engine.coalesce_flights: %d is negative", o.CoalesceFlights))
	}
	return errors.Join(faults...)
}

// newID begins with the time, so that new keys stand side by side at the end of their index: keys that are random from the
// first digit touch a page of it each, which is then written whole after a checkpoint.
func newID() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(time.Now().UnixMilli())<<16)
	rand.Read(b[6:]) // never fails
	var text [32]byte
	hex.Encode(text[:], b[:])
	return string(text[:])
}
