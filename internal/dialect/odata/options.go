package odata

import (
	"errors"
	"fmt"
	"time"
)

// Options are the settings of the dialect.
type Options struct {
	DoorOptions `yaml:",inline"`

	// MaxQuery is how many bytes a query string may have.
	//
	// Defaults to 64 KiB.
	MaxQuery int `yaml:"max_query"`
	// PageSize is how many entities one answer holds before it names the address of the rest; 0: all of them.
	//
	// Defaults to 0.
	PageSize int `yaml:"page_size"`
	// MaxEntities is how many entities an answer with $expand may hold, each counted as often as it is written: entities that refer to
	// each other can be expanded to any number.
	//
	// Defaults to 1,000,000.
	MaxEntities int `yaml:"max_entities"`
	// MaxDepth bounds nesting: of expands and of deep inserts.
	//
	// Defaults to 20.
	MaxDepth int `yaml:"max_depth"`
	// MaxFilterDepth bounds nesting of parentheses, calls and conditions over navigation in filters.
	//
	// Defaults to 100.
	MaxFilterDepth int `yaml:"max_filter_depth"`
	// MaxTerms is how many comparisons, calls and arithmetic operators a query may have. Comparisons of one property with many values,
	// joined by or, count as one; a condition over a collection counts as ten.
	//
	// Defaults to 1000.
	MaxTerms int `yaml:"max_terms"`
	// MaxExpand is how many navigation properties a query may expand, on all levels together.
	//
	// Defaults to 100.
	MaxExpand int `yaml:"max_expand"`
	// Batch bounds $batch.
	Batch BatchOptions `yaml:"batch"`
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time `yaml:"-"`
}

// BatchOptions bound what a $batch may ask for. One that passes a bound of its size is refused as a whole, before anything is executed.
type BatchOptions struct {
	// MaxParts is how many operations a batch may hold, those of changesets included.
	//
	// Defaults to 10,000.
	MaxParts int `yaml:"max_parts"`
	// MaxBody is how many bytes the body of a batch may have; limits.body bounds it as well.
	//
	// Defaults to 64 MiB.
	MaxBody int `yaml:"max_body"`
	// MaxHeader is how many bytes the request line and headers of one part may have.
	//
	// Defaults to 128 KiB.
	MaxHeader int `yaml:"max_header"`
	// MaxAnswer is how many bytes all answers of a batch may have together; reads whose answers come beyond it are answered with an error.
	//
	// Defaults to 256 MiB.
	MaxAnswer int `yaml:"max_answer"`
	// Time is how long a batch may run. What has not begun by then is answered with an error.
	//
	// Defaults to 2m.
	Time time.Duration `yaml:"time"`
	// Parallel bounds the reads of a batch that are under way at once; gate.serial_batch makes it 1.
	//
	// Defaults to 64.
	Parallel int `yaml:"parallel"`

	// Boundary draws what separates the parts of an answer; it must not occur in any body.
	//
	// Defaults to 128 random bits.
	Boundary func() string `yaml:"-"`
}

// Defaults fills what is zero with its default.
func (o *Options) Defaults() {
	o.DoorOptions.defaults()
	def(&o.MaxQuery, 64<<10)
	def(&o.MaxEntities, 1_000_000)
	def(&o.MaxDepth, 20)
	def(&o.MaxFilterDepth, 100)
	def(&o.MaxTerms, 1000)
	def(&o.MaxExpand, 100)
	o.Batch.defaults()
}

func (o *BatchOptions) defaults() {
	def(&o.MaxParts, 10_000)
	def(&o.MaxBody, 64<<20)
	def(&o.MaxHeader, 128<<10)
	def(&o.MaxAnswer, 256<<20)
	def(&o.Time, 2*time.Minute)
	def(&o.Parallel, 64)
	if o.Boundary == nil {
		o.Boundary = randomBoundary
	}
}

func def[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// Validate returns all faults of the settings, each with its name.
func (o *Options) Validate() error {
	faults := []error{o.DoorOptions.validate()}
	check := func(name string, n, least int) {
		if n < least {
			faults = append(faults, fmt.Errorf("odata.%s: %d is less than %d", name, n, least))
		}
	}
	check("max_query", o.MaxQuery, 1)
	check("page_size", o.PageSize, 0)
	check("max_entities", o.MaxEntities, 1)
	check("max_depth", o.MaxDepth, 1)
	check("max_filter_depth", o.MaxFilterDepth, 1)
	check("max_terms", o.MaxTerms, 1)
	check("max_expand", o.MaxExpand, 1)
	check("batch.max_parts", o.Batch.MaxParts, 1)
	check("batch.max_body", o.Batch.MaxBody, 1)
	check("batch.max_header", o.Batch.MaxHeader, 256)
	check("batch.max_answer", o.Batch.MaxAnswer, 1)
	check("batch.parallel", o.Batch.Parallel, 1)
	if o.Batch.Time < time.Millisecond {
		faults = append(faults, fmt.Errorf("odata.batch.time: %v is less than 1ms", o.Batch.Time))
	}
	return errors.Join(faults...)
}
