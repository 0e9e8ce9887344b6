package catalog

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"weir/internal/record"
)

// Snapshot is one consistent state of all definitions. It never changes.
type Snapshot struct {
	Version   uint64
	Applied   time.Time // when this version was applied; zero if that is not known
	tables    map[string]*Table
	names     []string
	endpoints map[string]*Endpoint
	routes    []*Endpoint
	sql       []*Endpoint
	versioned []versioned
	services  []ServiceDef
	referrers map[string][]Referrer
	defs      Definitions
}

// Referrer is a field that refers to a table.
type Referrer struct {
	Table *Table
	Field *Field
}

// Table finds a table by name. The error is a NoTable.
func (s *Snapshot) Table(name string) (*Table, error) {
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, record.Errorf(record.NoTable, name, "Invalid table %.80s", name)
}

// Tables are the names of all tables, sorted.
func (s *Snapshot) Tables() []string { return s.names }

// Services are the definitions of all services, sorted by name. What they mean is up to the package of their protocol.
func (s *Snapshot) Services() []ServiceDef { return s.services }

// Definitions are what the snapshot was built from. They must not be changed.
func (s *Snapshot) Definitions() Definitions { return s.defs }

// Endpoints are all scripted endpoints, more specific paths first.
func (s *Snapshot) Endpoints() []*Endpoint { return s.routes }

// SQLEndpoints are all SQL endpoints, sorted by name. How requests find them is up to the package of their protocol.
func (s *Snapshot) SQLEndpoints() []*Endpoint { return s.sql }

// Endpoint finds a scripted or a SQL endpoint by name, nil if there is none.
func (s *Snapshot) Endpoint(name string) *Endpoint { return s.endpoints[name] }

// Referrers are the reference fields that point at records of table t or of a table it inherits from, each listed for the
// table that defines it.
func (s *Snapshot) Referrers(t *Table) []Referrer {
	list := s.referrers[t.Name]
	for _, p := range t.Parents {
		list = append(slices.Clip(list), s.referrers[p]...)
	}
	return list
}

// Route finds the endpoint for a method and path with the values of its path parameters. A path without a version,
// /api/<namespace>/<api>…, is that of the latest version if no endpoint has it as it stands. When the path exists but not
// for the method, the error is a NotAllowed; when nothing does, a NoPath.
func (s *Snapshot) Route(method, path string) (*Endpoint, map[string]string, error) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	known := false
	for _, e := range s.routes {
		params, ok := match(e.Segments, segments)
		if !ok {
			continue
		}
		known = true
		if e.serves(method) {
			return e, params, nil
		}
	}
	var latest versioned
	var values map[string]string
	if !known {
		for _, v := range s.versioned {
			params, ok := match(v.segments, segments)
			known = known || ok
			if ok && v.endpoint.serves(method) && v.version > latest.version {
				latest, values = v, params
			}
		}
	}
	if latest.endpoint != nil {
		return latest.endpoint, values, nil
	}
	if known {
		return nil, nil, record.Errorf(record.NotAllowed, "", "Method not supported")
	}
	return nil, nil, record.Errorf(record.NoPath, "", "Requested URI does not represent any resource")
}

// serves reports whether the endpoint answers calls of a method.
func (e *Endpoint) serves(method string) bool {
	return e.Method == method || method == "HEAD" && e.Method == "GET"
}

// versioned is an endpoint with a path /api/<namespace>/v<n>/….
type versioned struct {
	endpoint *Endpoint
	version  int      // n, from 1
	segments []string // of the path without the version
}

// withVersion reads the version in the path of an endpoint, false if there is none.
func withVersion(e *Endpoint) (versioned, bool) {
	const at = 2
	if len(e.Segments) <= at+1 || e.Segments[0] != "api" {
		return versioned{}, false
	}
	digits, ok := strings.CutPrefix(e.Segments[at], "v")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 {
		return versioned{}, false
	}
	return versioned{e, n, slices.Delete(slices.Clone(e.Segments), at, at+1)}, true
}

// match gives the values of the path parameters if segments is a path of the pattern.
func match(pattern, segments []string) (map[string]string, bool) {
	if len(segments) != len(pattern) {
		return nil, false
	}
	var params map[string]string
	for i, want := range pattern {
		if strings.HasPrefix(want, "{") {
			if params == nil {
				params = map[string]string{}
			}
			params[want[1:len(want)-1]] = segments[i]
		} else if want != segments[i] {
			return nil, false
		}
	}
	return params, true
}

// Step is one field on a dot-walked path, in the table that it was found in.
type Step struct {
	Table *Table
	Field *Field
}

// MaxWalk is how many references a path may walk through.
const MaxWalk = 5

// Resolve finds the fields of a path of table t: all but the last are references. A child's field may be named on a
// parent table only if the parent has it. The error is Invalid and names the path.
func (s *Snapshot) Resolve(t *Table, path string) ([]Step, error) {
	if f := t.byName[path]; f != nil {
		return []Step{{t, f}}, nil
	}
	var steps []Step
	for rest, more := path, true; more; {
		var name string
		name, rest, more = strings.Cut(rest, ".")
		f := t.byName[name]
		if f == nil {
			return nil, record.Errorf(record.Invalid, path, "table %s has no field %.80s", t.Name, name)
		}
		steps = append(steps, Step{t, f})
		if more {
			next := s.tables[f.Reference]
			if f.Type != record.TypeReference || next == nil || len(steps) > MaxWalk {
				return nil, record.Errorf(record.Invalid, path, "cannot walk through %s.%.80s", t.Name, name)
			}
			t = next
		}
	}
	return steps, nil
}

// Catalog is the current snapshot. It is safe for concurrent use.
type Catalog struct {
	current  atomic.Pointer[Snapshot]
	updating sync.Mutex // one Update at a time
	mu       sync.Mutex
	changed  chan struct{}
}

// New is a catalog that holds s.
func New(s *Snapshot) *Catalog {
	c := &Catalog{changed: make(chan struct{})}
	c.current.Store(s)
	return c
}

// Snapshot is the current snapshot.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Swap makes s current.
func (c *Catalog) Swap(s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.Store(s)
	close(c.changed)
	c.changed = make(chan struct{})
}

// Update makes current what f finds, given the current snapshot, which f may return to leave it. Updates run one after another, so that
// none puts something older in the place of what another one found.
func (c *Catalog) Update(f func(*Snapshot) (*Snapshot, error)) error {
	c.updating.Lock()
	defer c.updating.Unlock()
	was := c.Snapshot()
	s, err := f(was)
	if err == nil && s != was {
		c.Swap(s)
	}
	return err
}

// Changed is closed when another snapshot becomes current.
func (c *Catalog) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}
