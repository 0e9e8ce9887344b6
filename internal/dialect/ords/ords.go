// Package ords is the front end for clients of Oracle REST Data Services: SQL endpoints, tables and views as collections of rows, and
// the catalogs that describe them (protocol notes, ords.md).
package ords

import (
	"slices"
	"strings"
	"sync/atomic"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
)

// Prefix is where the dialect lives.
const Prefix = "/ords/"

// Dialect is the ORDS front end. Its settings change while it runs: a call takes them once, by options.
type Dialect struct {
	opt   atomic.Pointer[Options]
	model atomic.Pointer[model]
}

var (
	_ dialect.Dialect = (*Dialect)(nil)
	_ dialect.Namer   = (*Dialect)(nil)
	_ dialect.Traced  = (*Dialect)(nil)
)

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

// request is one call being decoded: what everything below Decode works with.
type request struct {
	d      *Dialect
	opt    *Options
	snap   *catalog.Snapshot
	call   *dialect.Call
	schema *schema
	at     address
	method string // HEAD is GET
	query  params
	id     string // of the request, for answers and the database's log

	// Of what a block forwards to: what the block has said already, which the answer keeps.
	status   int
	headers  []headerField
	forwards int
	from     *handler // the block
}

// Decode reads a call: what is reserved in a schema first, then SQL endpoints, then tables and views.
func (d *Dialect) Decode(snap *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	q := &request{d: d, opt: d.options(), snap: snap, call: c, method: methodOf(c)}
	q.id = q.opt.idOf(c)
	return q.decode()
}

func (q *request) decode() (*dialect.Exchange, error) {
	if err := q.locate(); err != nil {
		return nil, err
	}
	if n := len(q.call.RawQuery); n > q.opt.MaxQuery {
		return nil, record.Errorf(record.TooLarge, "", "the query string has %d bytes, %d are allowed; see ords.max_query", n, q.opt.MaxQuery)
	}
	var err error
	if q.query, err = parseParams(q.call.RawQuery); err != nil {
		return nil, err
	}
	h, values, missed := q.schema.route(q.method, &q.at)
	if err := q.entered(h); err != nil {
		return nil, err
	}
	if x, err := q.decodeReserved(); x != nil || err != nil {
		return x, err
	}
	if h != nil {
		return q.decodeHandler(h, values, missed.slash)
	}
	if len(missed.allow) == 0 {
		if x, err := q.decodeTable(); x != nil || err != nil {
			return x, err
		}
		return nil, notFound()
	}
	if q.method == "OPTIONS" {
		return q.options(missed.allow), nil
	}
	return nil, notAllowed(missed.allow)
}

// entered is the error of a caller whom a block forwards to what the door has not opened: the caller may have chosen where to.
func (q *request) entered(h *handler) error {
	if q.from == nil || h != nil && h.def.Public {
		return nil
	}
	if isGuest(&q.call.Actor) || h != nil && len(h.def.SQL.Auth) > 0 && !slices.Equal(h.def.SQL.Auth, q.from.def.SQL.Auth) {
		return record.Errorf(record.Unauthenticated, "", "the block forwards to what takes other callers")
	}
	return nil
}

// locate finds the schema of a call's path.
func (q *request) locate() error {
	at, ok := addressOf(q.call)
	if !ok {
		return unmapped()
	}
	q.at = at
	if q.schema = q.d.modelOf(q.snap).schemas[at.schema]; q.schema == nil {
		return unmapped()
	}
	return nil
}

// unmapped is the error of a path that leads to no schema (protocol notes, section 11).
func unmapped() error {
	return record.Errorf(record.NoPath, "", "The request could not be mapped to any database. Check the request URL is correct, "+
		"and that URL to database mappings have been correctly configured")
}

// notFound is the error of a path of a schema that leads nowhere, or to a row that is not there.
func notFound() error { return record.Errorf(record.NotFound, "", "Not Found") }

// notAllowed is the error of a method that a path does not have; allow are those that it has.
func notAllowed(allow []string) error {
	if slices.Contains(allow, "GET") && !slices.Contains(allow, "HEAD") {
		allow = append(allow, "HEAD")
	}
	return record.Errorf(record.NotAllowed, strings.Join(allow, ", "), "The method is not allowed for this resource")
}

// methodOf is what a call wants; HEAD wants what GET does, without its body.
func methodOf(c *dialect.Call) string {
	if c.Method == "HEAD" {
		return "GET"
	}
	return c.Method
}

// ResourceOf names what a path addresses: "ords/hr/departments/:id", by the pattern and not the values in it.
func (d *Dialect) ResourceOf(snap *catalog.Snapshot, path string) (name string, known bool) {
	at, ok := addressOf(&dialect.Call{Path: path})
	if !ok {
		return "", false
	}
	s := d.modelOf(snap).schemas[at.schema]
	if s == nil {
		return "", false
	}
	if name := s.resource(&at); name != "" {
		return "ords/" + s.alias + "/" + name, true
	}
	return s.nameTable(&at)
}
