package now

import (
	"errors"
	"fmt"
	"time"

	"weir/internal/dialect"
)

// Options are the settings of the dialect. The zero value of a field means its default.
type Options struct {
	// InvalidQueryReturnsNoRows makes a query with an invalid condition match nothing. Without it the condition is dropped,
	// the rest applies and the header X-Weir-Ignored-Query names what was dropped. It is the vendor's property
	// glide.invalid_query.returns_no_rows.
	//
	// Defaults to false.
	InvalidQueryReturnsNoRows bool `yaml:"invalid_query_returns_no_rows"`

	// CaseSensitive makes =, !=, IN, LIKE, STARTSWITH and ENDSWITH on strings distinguish upper and lower case. Without it
	// =, != and IN on a string that an index begins with look for the value as given, in capitals and in small letters:
	// that is what an index can find.
	//
	// Defaults to false.
	CaseSensitive bool `yaml:"case_sensitive"`

	// DefaultLimit is how many records a list holds when sysparm_limit is not given.
	//
	// Defaults to 10000.
	DefaultLimit int64 `yaml:"default_limit"`

	// MaxLimit bounds sysparm_limit; a larger value is cut to it. 0 is no bound: a list streams, so it costs time but no
	// memory.
	//
	// Defaults to 0.
	MaxLimit int64 `yaml:"max_limit"`

	// MaxQuery is how many bytes the query string of one call may have, batch items included.
	//
	// Defaults to 262144.
	MaxQuery int `yaml:"max_query"`

	// MaxConditions is how many conditions and sort fields one encoded query may have.
	//
	// Defaults to 500.
	MaxConditions int `yaml:"max_conditions"`

	// MaxFields is how many fields sysparm_fields, or the aggregates of one call, may name.
	//
	// Defaults to 500.
	MaxFields int `yaml:"max_fields"`

	// MaxWalks is how many different references one call may walk through, display values included. Each is a join.
	//
	// Defaults to 50.
	MaxWalks int `yaml:"max_walks"`

	// Batch bounds the Batch API.
	Batch dialect.BatchConfig `yaml:"batch"`

	// Location is the time zone of display values, of values sent with sysparm_input_display_value and of the days in
	// gs.beginningOfToday() and its like.
	//
	// Defaults to UTC.
	Location *time.Location `yaml:"-"`

	// Clock is what the relative times of a query are counted from.
	//
	// Defaults to time.Now.
	Clock func() time.Time `yaml:"-"`
}

// Defaults fills what is not set.
func (o *Options) Defaults() {
	if o.DefaultLimit == 0 {
		o.DefaultLimit = 10000
	}
	if o.MaxQuery == 0 {
		o.MaxQuery = 256 << 10
	}
	if o.MaxConditions == 0 {
		o.MaxConditions = 500
	}
	if o.MaxFields == 0 {
		o.MaxFields = 500
	}
	if o.MaxWalks == 0 {
		o.MaxWalks = 50
	}
	o.Batch.Defaults()
	if o.Location == nil {
		o.Location = time.UTC
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
}

// Validate returns all faults of the settings, each with its name. Defaults must have been filled in.
func (o *Options) Validate() error {
	var faults []error
	atLeast := func(name string, n, least int64) {
		if n < least {
			faults = append(faults, fmt.Errorf("now.%s: %d is less than %d", name, n, least))
		}
	}
	atLeast("default_limit", o.DefaultLimit, 1)
	atLeast("max_limit", o.MaxLimit, 0)
	atLeast("max_query", int64(o.MaxQuery), 1)
	atLeast("max_conditions", int64(o.MaxConditions), 1)
	atLeast("max_fields", int64(o.MaxFields), 1)
	atLeast("max_walks", int64(o.MaxWalks), 1)
	// More than that no database joins in one statement: SQLite's bound is 64 tables.
	if most := 60; o.MaxWalks > most {
		faults = append(faults, fmt.Errorf("now.max_walks: %d is more than %d", o.MaxWalks, most))
	}
	faults = append(faults, o.Batch.Validate())
	return errors.Join(faults...)
}
