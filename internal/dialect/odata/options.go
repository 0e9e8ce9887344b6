package odata

import (
	"errors"
	"fmt"
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
	// MaxDepth bounds nesting: of filters, of expands and of deep inserts.
	//
	// Defaults to 20.
	MaxDepth int `yaml:"max_depth"`
}

// Defaults fills what is zero with its default.
func (o *Options) Defaults() {
	o.DoorOptions.defaults()
	if o.MaxQuery == 0 {
		o.MaxQuery = 64 << 10
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = 20
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
	check("max_depth", o.MaxDepth, 1)
	return errors.Join(faults...)
}
