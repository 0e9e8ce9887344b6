package odata

import (
	"errors"
	"fmt"
)

// Options are the settings of the dialect.
type Options struct {
	// MaxQuery is how many bytes a query string may have.
	//
	// Defaults to 64 KiB.
	MaxQuery int `yaml:"max_query"`
	// PageSize is how many entities one answer holds before it names the address of the rest; 0: all of them.
	//
	// Defaults to 0.
	PageSize int `yaml:"page_size"`
	// MaxDepth bounds nesting: of expands and of deep inserts.
	//
	// Defaults to 20.
	MaxDepth int `yaml:"max_depth"`
	// MaxFilterDepth bounds nesting of parentheses, calls and conditions over navigation in filters.
	//
	// Defaults to 100.
	MaxFilterDepth int `yaml:"max_filter_depth"`
	// MaxTerms is how many comparisons, calls and arithmetic operators a query may have. Comparisons of one property with many values,
	// joined by or, count as one.
	//
	// Defaults to 1000.
	MaxTerms int `yaml:"max_terms"`
	// MaxExpand is how many navigation properties a query may expand, on all levels together.
	//
	// Defaults to 100.
	MaxExpand int `yaml:"max_expand"`
}

// Defaults fills what is zero with its default.
func (o *Options) Defaults() {
	if o.MaxQuery == 0 {
		o.MaxQuery = 64 << 10
	}
	if o.MaxDepth == 0 {
		o.MaxDepth = 20
	}
	if o.MaxFilterDepth == 0 {
		o.MaxFilterDepth = 100
	}
	if o.MaxTerms == 0 {
		o.MaxTerms = 1000
	}
	if o.MaxExpand == 0 {
		o.MaxExpand = 100
	}
}

// Validate returns all faults of the settings, each with its name.
func (o *Options) Validate() error {
	var faults []error
	check := func(name string, n, least int) {
		if n < least {
			faults = append(faults, fmt.Errorf("odata.%s: %d is less than %d", name, n, least))
		}
	}
	check("max_query", o.MaxQuery, 1)
	check("page_size", o.PageSize, 0)
	check("max_depth", o.MaxDepth, 1)
	check("max_filter_depth", o.MaxFilterDepth, 1)
	check("max_terms", o.MaxTerms, 1)
	check("max_expand", o.MaxExpand, 1)
	return errors.Join(faults...)
}
