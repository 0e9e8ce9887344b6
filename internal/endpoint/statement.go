package endpoint

import (
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// textKey is a text that a runner keeps: of a statement of an endpoint (-1 is its tag query), wrapped as key says.
type textKey struct {
	endpoint string
	n        int
	wrap     string
}

// prepared is a statement as the store takes it. It is kept, so that connections know it again.
type prepared struct {
	of    *catalog.SQLStatement
	st    *store.Statement
	names []string // of the columns that are answered
	types []record.Type
}

// maxTexts bounds the texts kept. An endpoint has one for each shape of filter that its callers use; when there are more, someone
// makes them up, and all are dropped together.
const maxTexts = 5000

// statement is a compiled statement as the store takes it, w around it if that is not nil. A definition of another snapshot has its
// own, which replaces the one before.
func (r *Runner) statement(endpoint string, n int, of *catalog.SQLStatement, wrap string, w *wrapping) *prepared {
	key := textKey{endpoint, n, wrap}
	r.mu.RLock()
	p := r.texts[key]
	r.mu.RUnlock()
	if p != nil && p.of == of {
		return p
	}
	p = r.prepare(of, w)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.texts) >= maxTexts {
		clear(r.texts)
	}
	r.texts[key] = p
	return p
}

// nested is a compiled nested query as the store takes it.
func (r *Runner) nested(of *catalog.SQLStatement) *prepared {
	return r.statement(of.SQL, -2, of, "", nil) // its text is its name
}

func (r *Runner) prepare(of *catalog.SQLStatement, w *wrapping) *prepared {
	p := &prepared{of: of, st: &store.Statement{SQL: r.bounded(of.SQL)}}
	for _, t := range of.Takes {
		p.st.Params = append(p.st.Params, store.Param{Type: typeNamed(t.Type), Native: t.Native})
	}
	for i := range of.Columns {
		c := &of.Columns[i]
		p.st.Out = append(p.st.Out, store.Output{Type: typeNamed(c.Type), Native: c.Native})
		p.names = append(p.names, c.Name)
		p.types = append(p.types, typeNamed(c.Type))
	}
	if w != nil && !w.empty() {
		p.st.SQL = w.around(p.st.SQL)
		p.st.Params = append(p.st.Params, w.params...)
	}
	return p
}

// Bound changes how many rows a nested query answers at most.
func (r *Runner) Bound(rows int) {
	if r.maxRows.Swap(int64(rows)) != int64(rows) {
		r.mu.Lock()
		defer r.mu.Unlock()
		clear(r.texts) // the bound stands in them; a call that made one with the old bound meanwhile keeps it until the next change
	}
}

// bounded is a text with the bound on nested rows in its place.
func (r *Runner) bounded(sql string) string {
	return strings.ReplaceAll(sql, catalog.MaxRowsMark, strconv.FormatInt(r.maxRows.Load(), 10))
}

// typeNamed is a type by its name, Untyped for "".
func typeNamed(name string) record.Type {
	if t, ok := record.ParseType(name); ok {
		return t
	}
	return store.Untyped
}
