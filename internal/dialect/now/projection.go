package now

import (
	"strings"
	"sync"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/wire"
)

// projection says which fields an answer shows and how. It is made once for (table, fields, modes) and shared by all
// requests that ask alike, so that writing a row is a loop over columns whose keys are quoted already.
type projection struct {
	columns []column
	paths   []string // what the op must return: values first come, display values as dot-walks
	snap    *catalog.Snapshot
	shown   shown
	noLinks bool
	walks   walks

	journals []string          // own journal fields whose entries are to be shown
	history  map[string]string // of the one record being written: their entries
}

// column is one field of an answer.
type column struct {
	path     string
	json     string // `"caller_id":`
	open     string // `<caller_id>`
	close    string
	kind     columnKind
	field    *catalog.Field
	value    int            // index of the value in a row, -1 if it is not read
	display  int            // index of the display value of a reference, -1 if it is not read
	named    *catalog.Field // display field of the table referred to
	linkPath string         // "/table/sys_user/"
}

// columnKind is how values of a column are shown.
type columnKind uint8

const (
	plain     columnKind = iota
	choice               // has labels
	reference            // has a link
	journal              // "" but for its display value
	password             // "" or stars
	class                // names a table, whose label is its display value
)

// projectionKey is what a projection depends on besides the snapshot.
type projectionKey struct {
	table   string
	fields  string
	shown   shown
	noLinks bool
}

// projections caches projections of the current snapshot. It is bounded in number and in the size of a key, since callers
// choose the fields.
type projections struct {
	mu   sync.RWMutex
	snap *catalog.Snapshot
	m    map[projectionKey]*projection
}

const (
	maxProjections   = 1000
	maxProjectionKey = 2000
)

func (c *projections) get(snap *catalog.Snapshot, k projectionKey) *projection {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.snap != snap {
		return nil
	}
	return c.m[k]
}

func (c *projections) put(snap *catalog.Snapshot, k projectionKey, p *projection) {
	if len(k.fields) > maxProjectionKey {
		return
	}
	k.fields = strings.Clone(k.fields) // it is a piece of a request's URL
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snap != snap || len(c.m) >= maxProjections {
		c.snap, c.m = snap, make(map[projectionKey]*projection)
	}
	c.m[k] = p
}

// projection is what the call's sysparm_fields, sysparm_display_value and sysparm_exclude_reference_link ask for.
// sysparm_view is accepted and shows all fields, as there are no views.
func (q *request) projection() (*projection, error) {
	k := projectionKey{
		table: q.table.Name, fields: q.params.get("sysparm_fields"), shown: q.params.shown(),
		noLinks: q.params.truth("sysparm_exclude_reference_link"),
	}
	cache := &q.d.projections
	if p := cache.get(q.snap, k); p != nil {
		return p, nil
	}
	p := &projection{snap: q.snap, shown: k.shown, noLinks: k.noLinks, walks: walks{max: q.d.opt.MaxWalks}}
	b := projectionBuilder{p: p, table: q.table}
	if names := splitList(k.fields); names != nil {
		if len(names) > q.d.opt.MaxFields {
			return nil, record.Errorf(record.TooLarge, "sysparm_fields", "%d fields, %d are allowed; see now.max_fields", len(names), q.d.opt.MaxFields)
		}
		seen := make(map[string]bool, len(names))
		for _, name := range names {
			steps, err := q.snap.Resolve(q.table, name)
			if err != nil || seen[name] {
				continue // unknown names are ignored
			}
			seen[name] = true
			b.add(strings.Clone(name), steps)
		}
	} else {
		for _, f := range q.table.Fields {
			b.add(f.Name, []catalog.Step{{Table: q.table, Field: f}})
		}
	}
	if err := b.p.walks.check("sysparm_fields"); err != nil {
		return nil, err
	}
	if len(p.paths) == 0 && len(q.table.Key) > 0 {
		p.paths = append(p.paths, q.table.Key[0]) // a row must be seen to be counted
	}
	cache.put(q.snap, k, p)
	return p, nil
}

type projectionBuilder struct {
	p     *projection
	table *catalog.Table
}

// add appends the column of a path.
func (b *projectionBuilder) add(path string, steps []catalog.Step) {
	last := steps[len(steps)-1]
	c := column{
		path: path, field: last.Field, kind: kindOf(last), value: -1, display: -1,
		json: string(append(wire.AppendQuote(nil, path), ':')), open: "<" + path + ">", close: "</" + path + ">",
	}
	b.p.walks.add(path)
	switch c.kind {
	case password:
	case journal:
		if b.p.shown != showValue {
			c.value = b.read(path)
			if len(steps) == 1 {
				b.p.journals = append(b.p.journals, path)
			}
		}
	case reference:
		c.value = b.read(path)
		c.linkPath = "/table/" + last.Field.Reference + "/"
		if b.p.shown != showValue {
			if shown, f := shownPath(b.p.snap, b.table, path, last.Field); f != nil {
				c.named, c.display = f, b.read(shown)
				b.p.walks.add(shown)
			}
		}
	default:
		c.value = b.read(path)
	}
	b.p.columns = append(b.p.columns, c)
}

// shownPath is the path of what is shown of the record that path, a reference of table t, points at: its display field,
// and if that is a reference again, what is shown of that. The field is nil if a path cannot walk so far.
func shownPath(snap *catalog.Snapshot, t *catalog.Table, path string, f *catalog.Field) (string, *catalog.Field) {
	for f.Type == record.TypeReference {
		other, err := snap.Table(f.Reference)
		if err != nil || other.Field(other.Display) == nil {
			return "", nil
		}
		f = other.Field(other.Display)
		path += "." + f.Name
		if _, err := snap.Resolve(t, path); err != nil {
			return "", nil
		}
	}
	return path, f
}

// read is the index of a path among those that the op returns.
func (b *projectionBuilder) read(path string) int {
	for i, p := range b.p.paths {
		if p == path {
			return i
		}
	}
	b.p.paths = append(b.p.paths, path)
	return len(b.p.paths) - 1
}

func kindOf(s catalog.Step) columnKind {
	switch {
	case s.Field.Type == record.TypeJournal:
		return journal
	case s.Field.Type == record.TypePassword:
		return password
	case s.Field.Type == record.TypeReference && s.Field.Reference != "":
		return reference
	case s.Field.Name == s.Table.ClassField:
		return class
	case len(s.Field.Choices) > 0:
		return choice
	}
	return plain
}

// walks counts the different references that paths walk through; each becomes a join.
type walks struct {
	max  int
	seen map[string]struct{}
}

// add counts the references of a path.
func (w *walks) add(path string) {
	for i := range len(path) {
		if path[i] == '.' {
			if w.seen == nil {
				w.seen = make(map[string]struct{})
			}
			w.seen[path[:i]] = struct{}{}
		}
	}
}

// join adds the references of another part of the same statement.
func (w *walks) join(other walks) {
	if w.seen == nil && len(other.seen) > 0 {
		w.seen = make(map[string]struct{}, len(other.seen))
	}
	for path := range other.seen {
		w.seen[path] = struct{}{}
	}
}

func (w *walks) check(param string) error {
	if len(w.seen) > w.max {
		return record.Errorf(record.TooLarge, param, "walks through %d references, %d are allowed; see now.max_walks", len(w.seen), w.max)
	}
	return nil
}
