// Package ords is the front end for clients of Oracle REST Data Services: SQL endpoints, tables and views as collections of rows, and
// the catalogs that describe them (protocol notes, ords.md).
package ords

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// Prefix is where the dialect lives.
const Prefix = "/ords/"

// Dialect is the ORDS front end. Its settings change while it runs: a call takes them once, by options.
type Dialect struct {
	opt    atomic.Pointer[Options]
	tables tables
}

var _ dialect.Dialect = (*Dialect)(nil)

// Options are the settings of the dialect.
type Options struct {
	// PageSize is how many rows an answer holds when neither the caller nor the endpoint says; 0: all of them.
	//
	// Defaults to 25.
	PageSize int `yaml:"page_size"`
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
	if o.PageSize == 0 {
		o.PageSize = 25
	}
	if o.MaxRows == 0 {
		o.MaxRows = 10_000
	}
	if o.MaxQuery == 0 {
		o.MaxQuery = 64 << 10
	}
	if o.TraceHeader == "" {
		o.TraceHeader = "Request-Id"
	}
	if o.ErrorFormat == "" {
		o.ErrorFormat = ErrorAuto
	}
}

// New is a dialect with the given settings.
func New(opt Options) *Dialect {
	d := &Dialect{}
	d.Reconfigure(opt)
	return d
}

// Reconfigure puts other settings, which must be valid, in force for calls that begin now.
func (d *Dialect) Reconfigure(opt Options) {
	opt.Defaults()
	d.opt.Store(&opt)
}

// options are the settings in force.
func (d *Dialect) options() *Options { return d.opt.Load() }

// Name is "ords".
func (d *Dialect) Name() string { return "ords" }

// Decode reads a call of a SQL endpoint or of a table.
func (d *Dialect) Decode(snap *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	path := c.RawPath
	if path == "" {
		path = c.Path
	}
	alias, rest, _ := strings.Cut(strings.TrimPrefix(path, Prefix), "/")
	if ex, err := d.table(snap, c, alias, rest); ex != nil || err != nil {
		return ex, err
	}
	return nil, record.Errorf(record.NoPath, "", "The request could not be mapped to any database")
}

// Fail writes the problem document for err.
func (d *Dialect) Fail(c *dialect.Call, err error, a *wire.Answer) {
	e := record.AsError(err)
	a.Status = http.StatusBadRequest
	a.Body = append(a.Body, e.Error()...)
}

// Validate returns all faults of the settings, each with its name.
func (o *Options) Validate() error {
	var faults []error
	check := func(name string, n, least int) {
		if n < least {
			faults = append(faults, fmt.Errorf("ords.%s: %d is less than %d", name, n, least))
		}
	}
	check("page_size", o.PageSize, 0)
	check("max_rows", o.MaxRows, 1)
	check("max_query", o.MaxQuery, 1)
	if f := o.ErrorFormat; f != ErrorAuto && f != ErrorJSON && f != ErrorHTML {
		faults = append(faults, fmt.Errorf("ords.error_format: %q is not AUTO, JSON or HTML", f))
	}
	return errors.Join(faults...)
}
