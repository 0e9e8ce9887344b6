package ords

import (
	"errors"
	"fmt"
)

// Options are the settings of the dialect.
type Options struct {
	// PageSize is how many rows an answer holds when neither the caller nor the endpoint says; 0: all of them, up to ords.max_rows.
	//
	// Defaults to 25.
	PageSize *int `yaml:"page_size"`
	// MaxRows is how many rows an answer holds at most, whatever the caller asks for (misc.pagination.maxRows).
	//
	// Defaults to 10,000.
	MaxRows int `yaml:"max_rows"`
	// MaxQuery is how many bytes a query string may have.
	//
	// Defaults to 64 KiB.
	MaxQuery int `yaml:"max_query"`
	// DatabaseRoles are the roles of everybody who calls an endpoint with a login of the database's own (@auth database).
	//
	// Defaults to none.
	DatabaseRoles []string `yaml:"database_roles"`
	// TraceHeader is the request header with the id that the caller has given its request; the answer repeats it
	// (request.traceHeaderName).
	//
	// Defaults to Request-Id.
	TraceHeader string `yaml:"trace_header"`
	// ErrorFormat is the format of errors: JSON, HTML, or AUTO, by what the caller accepts (error.responseFormat).
	//
	// Defaults to AUTO.
	ErrorFormat string `yaml:"error_format"`
	// Status57x answers 571 when the database cannot be reached and 574 when it refuses weir's login, as ORDS does since 24.2; false: 503 for
	// both, which every client and proxy knows.
	//
	// Defaults to true.
	Status57x *bool `yaml:"status57x"`
	// MaxConditions is how many conditions and sort keys a filter object (q) may have.
	//
	// Defaults to 200.
	MaxConditions int `yaml:"max_conditions"`
	// MaxForwards is how often blocks that forward to each other (:forward_location) may do so for one request.
	//
	// Defaults to 5.
	MaxForwards int `yaml:"max_forwards"`
	// CSVGuard puts an apostrophe before texts of CSV answers that a spreadsheet would take for formulas: those that begin with =, +, -,
	// @, a tab or a carriage return. Programs that read the CSV see it too.
	//
	// Defaults to false.
	CSVGuard bool `yaml:"csv_guard"`
	// Load are the settings of batch loads.
	Load LoadOptions `yaml:"load"`
	// Debug adds to an error what the database said and the SQL (debug.printDebugToScreen). Not for strangers.
	//
	// Defaults to false.
	Debug bool `yaml:"debug"`
}

// The formats of errors.
const (
	ErrorAuto = "AUTO"
	ErrorJSON = "JSON"
	ErrorHTML = "HTML"
)

// Defaults fills what is zero with its default.
func (o *Options) Defaults() {
	if o.PageSize == nil {
		size := 25
		o.PageSize = &size
	}
	if o.MaxRows == 0 {
		o.MaxRows = 10_000
	}
	if o.MaxQuery == 0 {
		o.MaxQuery = 64 << 10
	}
	if o.MaxConditions == 0 {
		o.MaxConditions = 200
	}
	if o.MaxForwards == 0 {
		o.MaxForwards = 5
	}
	o.Load.defaults()
	if o.TraceHeader == "" {
		o.TraceHeader = "Request-Id"
	}
	if o.ErrorFormat == "" {
		o.ErrorFormat = ErrorAuto
	}
}

// status57x reports whether faults of the database have statuses of their own.
func (o *Options) status57x() bool { return o.Status57x == nil || *o.Status57x }

// Validate returns all faults of the settings, each with its name.
func (o *Options) Validate() error {
	var faults []error
	check := func(name string, n, least int) {
		if n < least {
			faults = append(faults, fmt.Errorf("ords.%s: %d is less than %d", name, n, least))
		}
	}
	if o.PageSize != nil {
		check("page_size", *o.PageSize, 0)
	}
	check("max_rows", o.MaxRows, 1)
	check("max_query", o.MaxQuery, 1)
	check("max_conditions", o.MaxConditions, 1)
	check("max_forwards", o.MaxForwards, 1)
	check("load.rows", o.Load.Rows, 1)
	check("load.bytes", o.Load.Bytes, 1)
	check("load.line", o.Load.Line, 1)
	check("load.listed", o.Load.Listed, 1)
	if f := o.ErrorFormat; f != ErrorAuto && f != ErrorJSON && f != ErrorHTML {
		faults = append(faults, fmt.Errorf("ords.error_format: %q is not AUTO, JSON or HTML", f))
	}
	return errors.Join(faults...)
}
