package odata

import (
	"strings"
	"sync"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// Dialect is the OData front end.
type Dialect struct {
	opt    Options
	model  models
	shapes shapes
	now    func() time.Time
}

var _ dialect.Dialect = (*Dialect)(nil)

// New is a dialect with the given settings.
func New(opt Options) *Dialect {
	opt.Defaults()
	d := &Dialect{opt: opt, now: time.Now}
	if opt.Now != nil {
		d.now = opt.Now
	}
	return d
}

// Prefixes are where the dialect lives.
var Prefixes = []string{"/sap/opu/odata/", "/sap/opu/odata4/", "/odata/"}

// Name is "odata".
func (d *Dialect) Name() string { return "odata" }

// version is the version of the protocol that a call speaks; its path says it.
type version uint8

const (
	v2 version = 2
	v4 version = 4
)

// request is one call being decoded: what everything below Decode works with.
type request struct {
	d      *Dialect
	snap   *catalog.Snapshot
	call   *dialect.Call
	ver    version
	svc    *edm.Service
	root   string // path of the service root without the slash at its end, as the caller spelled it
	rest   string // what follows it, percent-encoded, without the slash at its beginning
	method string // what the call means, overrides applied; HEAD is GET
	format format // of the answer
	query  params // plain name=value pairs, decoded
	target *target

	absolute string // see address
	sent     bool   // part of the answer is on its way: status and headers are fixed

	// refs finds what an earlier call of the same changeset or group, or of the same batch, made: $1. Nil outside batches.
	refs func(id string) (reference, bool)
	// first is how many ops the calls before this one of the same changeset have, group the group of all their writes: the ops of a
	// changeset stand together. Alone they are 0, and a call that needs a group uses 1. Refs and conditions on own ops count from first; what
	// Reply and Next get are the outcomes of own ops alone, and the ops of a Next count from 0 again.
	first, group int
	// made is the entity that the call creates or changes, known after decode: what $id of this call means to later ones. Its set is nil
	// if there is none.
	made reference
}

// reference is an entity that another call of the batch addresses as $id. Its key may hold Refs.
type reference struct {
	set *edm.Set
	key []record.Value // in the order of the type's key
	// known are the values of key as far as the client gave them, null where the server does: what a body says of a parent that is a Ref
	// is compared with them. Nil: key holds no Refs.
	known []record.Value
}

// Decode reads a call. A batch is no exchange: it goes to Batch.
func (d *Dialect) Decode(snap *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	if ex, err := d.fetching(snap, c); ex != nil || err != nil {
		return ex, err
	}
	q, err := d.begin(snap, c)
	if err != nil {
		return nil, err
	}
	return q.decode()
}

// begin finds version, service and format of a call.
func (d *Dialect) begin(snap *catalog.Snapshot, c *dialect.Call) (*request, error) {
	q := &request{d: d, snap: snap, call: c, method: methodOf(c)}
	if err := q.locate(); err != nil {
		return nil, err
	}
	return q, q.readQuery()
}

// readQuery reads the query string and finds the format.
func (q *request) readQuery() (err error) {
	if n := len(q.call.RawQuery); n > q.d.opt.MaxQuery {
		return record.Errorf(record.TooLarge, "", "the query has %d bytes, more than %d; see odata.max_query", n, q.d.opt.MaxQuery)
	}
	if q.query, err = parseParams(q.call.RawQuery); err != nil {
		return err
	}
	if err := q.checkVersion(); err != nil {
		return err
	}
	q.format, err = q.negotiate()
	return err
}

// checkVersion refuses calls of V2 whose DataServiceVersion is beyond 3.0 or no version: "2.0", "1.0;NetFx" (protocol notes, section 1). 3.0 is
// what clients of a later V2 say, and what they mean by it here is 2.0.
func (q *request) checkVersion() error {
	const name = "DataServiceVersion"
	given := q.call.Header.Get(name)
	if q.ver != v2 || given == "" || given == "2.0" {
		return nil
	}
	number, _, _ := strings.Cut(given, ";")
	switch strings.TrimSpace(number) {
	case "", "1.0", "2.0", "3.0":
		return nil
	}
	return record.Errorf(record.Invalid, "", "%s %.40q is not supported; 1.0, 2.0 and 3.0 are", name, given)
}

// decode makes the exchange of a call whose service is known.
func (q *request) decode() (*dialect.Exchange, error) {
	t, err := q.parsePath()
	if err != nil {
		return nil, err
	}
	q.target = t
	if t.kind == batchTarget {
		return nil, notAllowed(q.method, "$batch", "POST")
	}
	switch q.method {
	case "GET":
		switch t.kind {
		case serviceTarget:
			return q.serviceDocument()
		case metadataTarget:
			return q.metadata()
		}
		return q.read(t)
	case "POST", "PUT", "PATCH", "MERGE", "DELETE":
		ex, err := q.write(t)
		if err != nil {
			return nil, err
		}
		return q.repeatable(ex)
	}
	return nil, record.Errorf(record.NotAllowed, "", "the method %.20s does not exist here", q.method)
}

// methodOf is the method that a call means. X-HTTP-Method replaces POST, and only POST, so that a harmless method can never be
// turned into a write on the way. HEAD is a GET whose body the server leaves out.
func methodOf(c *dialect.Call) string {
	switch c.Method {
	case "HEAD":
		return "GET"
	case "POST":
		for _, name := range []string{"X-HTTP-Method", "X-HTTP-Method-Override"} {
			if m := strings.TrimSpace(c.Header.Get(name)); m != "" {
				return strings.ToUpper(m)
			}
		}
	}
	return strings.ToUpper(c.Method)
}

// models are the services of one snapshot, each compiled when it is first asked for.
type models struct {
	mu   sync.Mutex
	snap *catalog.Snapshot
	by   map[string]*edm.Service
	docs map[string]*documents
	errs map[string]error
}

// service finds a service by name. The error is a NoPath.
func (m *models) service(snap *catalog.Snapshot, name string) (*edm.Service, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snap != snap {
		m.snap, m.by, m.docs, m.errs = snap, make(map[string]*edm.Service), make(map[string]*documents), make(map[string]error)
	}
	if s := m.by[name]; s != nil {
		return s, nil
	}
	if err := m.errs[name]; err != nil {
		return nil, err
	}
	list := snap.Services()
	for i := range list {
		if list[i].Name != name || list[i].Protocol != "" && list[i].Protocol != "odata" {
			continue
		}
		s, err := edm.Compile(snap, &list[i])
		if err != nil {
			m.errs[name] = err // apply has checked it, so this is a bug of ours
			return nil, err
		}
		m.by[name] = s
		return s, nil
	}
	return nil, record.Errorf(record.NoPath, "", "No service found for namespace and name %.80q", name)
}

// locate splits the path into service root and rest and finds the service.
func (q *request) locate() error {
	path := q.call.RawPath
	if path == "" {
		path = q.call.Path
	}
	r, ok := rootOf(path)
	if !ok {
		return noPath(path)
	}
	q.ver, q.root, q.rest = r.ver, path[:r.end], strings.TrimPrefix(path[r.end:], "/")
	var err error
	if q.svc, err = q.d.model.service(q.snap, r.service); err != nil {
		return err
	}
	for _, role := range q.svc.Def.Roles {
		if q.call.Actor.Has(role) {
			return nil
		}
	}
	if len(q.svc.Def.Roles) > 0 {
		return record.Errorf(record.Forbidden, "", "No authorization to access service %s", q.svc.Name)
	}
	return nil
}

// noPath is the error of a segment that names nothing.
func noPath(segment string) error {
	return record.Errorf(record.NoPath, "", "Resource not found for segment '%.120s'", segment)
}

// Fail writes the error envelope of the version that the path names.
func (d *Dialect) Fail(c *dialect.Call, err error, a *wire.Answer) { d.fail(c, err, a) }
