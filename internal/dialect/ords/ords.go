// Package ords is the front end for clients of Oracle REST Data Services: SQL endpoints, tables and views as collections of rows, and
// the catalogs that describe them (protocol notes, ords.md).
package ords

import (
	"errors"
	"fmt"
	"net/http"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// Prefix is where the dialect lives.
const Prefix = "/ords/"

// Dialect is the ORDS front end.
type Dialect struct{ opt Options }

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
}

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
}

// New is a dialect with the given settings.
func New(opt Options) *Dialect {
	opt.Defaults()
	return &Dialect{opt: opt}
}

// Name is "ords".
func (d *Dialect) Name() string { return "ords" }

// Decode reads a call of a SQL endpoint or of a table.
func (d *Dialect) Decode(snap *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	return nil, record.Errorf(record.NoPath, "", "The request could not be mapped to any database")
}

// Fail writes the problem document for err.
func (d *Dialect) Fail(c *dialect.Call, err error, a *wire.Answer) {
	a.Status = http.StatusNotFound
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
	return errors.Join(faults...)
}
