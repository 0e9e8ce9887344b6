package now

import (
	"strings"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
)

// Prefix is where the dialect lives.
const Prefix = "/api/now"

// Dialect is the Now REST front end.
type Dialect struct {
	opt         Options
	projections projections
}

var _ dialect.Entrance = (*Dialect)(nil)

// New is a dialect with the given settings.
func New(opt Options) *Dialect {
	opt.Defaults()
	return &Dialect{opt: opt}
}

// Name is "now".
func (d *Dialect) Name() string { return "now" }

// EntryOf lets everybody call public scripted endpoints.
func (d *Dialect) EntryOf(snap *catalog.Snapshot, c *dialect.Call) dialect.Entry {
	if own(c.Path) {
		return dialect.Entry{}
	}
	e, _, lost := snap.Route(c.Method, c.Path)
	return dialect.Entry{Public: lost == nil && e.Public}
}

// own reports whether a path is one of the Table, Aggregate, Import Set or Batch API, which most are.
func own(path string) bool {
	rest, ok := strings.CutPrefix(path, Prefix+"/")
	api, rest, _ := strings.Cut(rest, "/")
	if isVersion(api) {
		api, _, _ = strings.Cut(rest, "/")
	}
	return ok && (api == "table" || api == "stats" || api == "import" || api == "batch")
}

// Decode reads a call of the Table, Aggregate or Import Set API, or of a scripted endpoint. A path that means nothing is a
// NoPath. A batch is no exchange: it goes to Batch.
func (d *Dialect) Decode(snap *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	at, _ := parsePath(c.Path)
	switch at.api {
	case "table":
		return d.decodeTable(snap, c, at)
	case "stats":
		return d.decodeStats(snap, c, at)
	case "import":
		return d.decodeImport(snap, c, at)
	}
	return d.decodeScripted(snap, c)
}

// address is what a path names: /api/now[/v<digits>]/<api>[/<rest>…].
type address struct {
	version string // "v1", "v2" and so on; "" when the path has none
	api     string
	rest    []string
}

// parsePath reads a decoded path. One slash at the end is allowed.
func parsePath(path string) (address, bool) {
	var at address
	tail, ok := strings.CutPrefix(path, Prefix+"/")
	if !ok {
		return at, false
	}
	segments := strings.Split(strings.TrimSuffix(tail, "/"), "/")
	if isVersion(segments[0]) {
		at.version, segments = segments[0], segments[1:]
	}
	if len(segments) == 0 {
		return at, false
	}
	for _, s := range segments {
		if s == "" {
			return at, false
		}
	}
	at.api, at.rest = segments[0], segments[1:]
	return at, true
}

// isVersion reports whether s is v1, v2 …: instances differ in what they accept, we take any number.
func isVersion(s string) bool {
	if len(s) < 2 || len(s) > 6 || s[0] != 'v' {
		return false
	}
	for _, c := range s[1:] {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// root is the path that links begin with: the version asked for is kept, and none is added when none was.
func (at *address) root() string {
	if at.version == "" {
		return Prefix
	}
	return Prefix + "/" + at.version
}

// methodOf is the method that a call means: X-HTTP-Method-Override replaces POST, and only POST, so that a harmless method
// can never be turned into a write on the way.
func methodOf(c *dialect.Call) string {
	if c.Method == "POST" {
		if m := strings.TrimSpace(c.Header.Get("X-HTTP-Method-Override")); m != "" {
			return strings.ToUpper(m)
		}
	}
	return c.Method
}

// request is what every API needs to know about a call.
type request struct {
	d      *Dialect
	snap   *catalog.Snapshot
	call   *dialect.Call
	at     address
	method string
	params params
	format format
	table  *catalog.Table
}

// begin reads what all APIs share: path, table, parameters and the format of the answer.
func (d *Dialect) begin(snap *catalog.Snapshot, c *dialect.Call, at address) (*request, error) {
	q := &request{d: d, snap: snap, call: c, at: at, method: methodOf(c)}
	if len(at.rest) == 0 {
		return nil, noPath()
	}
	var err error
	if q.table, err = snap.Table(at.rest[0]); err != nil {
		return nil, err
	}
	if len(c.RawQuery) > d.opt.MaxQuery {
		return nil, record.Errorf(record.TooLarge, "", "the query string has %d bytes, %d are allowed; see now.max_query", len(c.RawQuery), d.opt.MaxQuery)
	}
	q.params = parseParams(c.RawQuery)
	if q.format, err = negotiate(c.Header.Get("Accept")); err != nil {
		return nil, err
	}
	if q.params.truth("sysparm_query_no_domain") && !c.Actor.Has("query_no_domain_table_api") {
		return nil, record.Errorf(record.Forbidden, "sysparm_query_no_domain", "needs the role admin or query_no_domain_table_api")
	}
	return q, nil
}

// base is what links to records begin with.
func (q *request) base() string { return q.call.Base + q.at.root() }

// exchange is an exchange of ops by the caller.
func (q *request) exchange(ops ...record.Op) *dialect.Exchange { return &dialect.Exchange{Ops: ops} }

func noPath() error {
	return record.Errorf(record.NoPath, "", "Requested URI does not represent any resource")
}

func notAllowed() error { return record.Errorf(record.NotAllowed, "", "Method not supported") }

// parseKey reads the key of a record in an address: the text of its key field. A key of several fields, which only tables
// that weir did not create have, is written with commas between (ours). Text that cannot be a key names no record.
func parseKey(t *catalog.Table, text string) ([]record.Value, error) {
	fields := t.KeyFields()
	parts := []string{text}
	if len(fields) > 1 {
		parts = strings.Split(text, ",")
	}
	if len(parts) != len(fields) {
		return nil, noRecord()
	}
	key := make([]record.Value, len(fields))
	for i, f := range fields {
		v, err := record.Parse(f.Type, spellID(f.Type, parts[i]))
		if err != nil || v.IsNull() {
			return nil, noRecord()
		}
		key[i] = v
	}
	return key, nil
}

// keyText is the key as it stands in an address.
func keyText(key []record.Value) string {
	if len(key) == 1 {
		return key[0].Text()
	}
	var b []byte
	for i, v := range key {
		if i > 0 {
			b = append(b, ',')
		}
		b = v.AppendText(b)
	}
	return string(b)
}

func noRecord() error {
	return record.Errorf(record.NotFound, "", "Record doesn't exist or ACL restricts the record retrieval")
}
