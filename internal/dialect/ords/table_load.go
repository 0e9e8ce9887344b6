package ords

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// Batch load: rows of a CSV body are inserted in groups, each with one commit (protocol notes, section 10). The body is read while it is
// worked on: one group is in the database while the next one is read.

// loadSegment is where rows are loaded: POST /ords/SCHEMA/ALIAS/batchload.
const loadSegment = "batchload"

var _ dialect.Loader = (*Dialect)(nil)

// LoadOptions are the settings of batch loads.
type LoadOptions struct {
	// Rows is how many rows make a group, which is one commit, when the caller does not say (batchRows). ORDS' own number is
	// 50, which costs a commit for each.
	//
	// Defaults to 1,000.
	Rows int `yaml:"rows"`
	// Bytes is how many bytes of text a group may have: it ends before the number of rows is reached when that would be passed.
	//
	// Defaults to 4 MiB.
	Bytes int `yaml:"bytes"`
	// Line is how many bytes a row may have; a caller may ask for less (lineMax).
	//
	// Defaults to 1 MiB.
	Line int `yaml:"line"`
	// Listed is how many wrong rows an answer lists; all are counted.
	//
	// Defaults to 1,000.
	Listed int `yaml:"listed"`
}

func (o *LoadOptions) defaults() {
	for _, d := range []struct {
		at *int
		n  int
	}{{&o.Rows, 1000}, {&o.Bytes, 4 << 20}, {&o.Line, 1 << 20}, {&o.Listed, 1000}} {
		if *d.at == 0 {
			*d.at = d.n
		}
	}
}

// Loads reports whether a call is a batch load.
func (d *Dialect) Loads(snap *catalog.Snapshot, c *dialect.Call) (memory int64, ok bool) {
	if c.Method != "POST" || !strings.HasSuffix(strings.TrimSuffix(c.Path, "/"), "/"+loadSegment) {
		return 0, false
	}
	at, ok := addressOf(c)
	if !ok || len(at.segments) != 2 || at.segments[1] != loadSegment {
		return 0, false
	}
	s := d.modelOf(snap).schemas[at.schema]
	if s == nil || s.tables.Schema == nil || s.tables.shapes[at.segments[0]] == nil {
		return 0, false
	}
	if h, _, _ := s.route(c.Method, &at); h != nil { // an endpoint goes first
		return 0, false
	}
	o := d.options()
	// Three groups are at hand, each with its text and the values that were made of it.
	return int64(o.Load.Bytes)*6 + int64(o.Load.Line), true
}

// Load runs a batch load.
func (d *Dialect) Load(ctx context.Context, run *dialect.LoadRun, c *dialect.Call, body io.ReadCloser, a *wire.Answer) {
	q := &request{d: d, opt: d.options(), snap: run.Snapshot, call: c, method: methodOf(c)}
	q.id = q.opt.idOf(c)
	l, err := q.loader(run, body)
	if err == nil {
		err = l.head()
	}
	if err == nil && l.truncate {
		err = l.empty(ctx)
	}
	if err != nil {
		q.fail(a, run.Public(err))
		return
	}
	if l.run(ctx); l.fatal != nil && l.processed == 0 {
		q.fail(a, run.Public(l.fatal))
		return
	}
	l.answer(a)
}

// loader is a batch load under way.
type loader struct {
	*tableCall
	*loadOptions
	exec    *dialect.LoadRun
	body    io.ReadCloser
	csv     *csvReader
	columns []loadColumn
	fields  []string

	processed int64 // rows
	wrong     int64
	committed int64 // the last row of the last group of which something was committed
	listed    int64
	report    []byte
	fatal     error // what ended the load early
	tooMany   bool  // wrong rows
}

func (q *request) loader(run *dialect.LoadRun, body io.ReadCloser) (*loader, error) {
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
	if err := q.mayCall(); err != nil {
		return nil, err
	}
	t := &tableCall{q, q.schema.tables.shapes[q.at.segments[0]]}
	if !t.Create {
		return nil, notAllowed([]string{})
	}
	o, err := t.loadOptions()
	if err != nil {
		return nil, err
	}
	if o.truncate && !t.Delete {
		return nil, record.Errorf(record.Forbidden, "truncate", "rows of %s cannot be deleted here", t.Alias)
	}
	return &loader{tableCall: t, loadOptions: o, exec: run, body: body, csv: newCSVReader(body, o.csvFormat)}, nil
}

// head reads the first line: the names of columns, in any case.
func (l *loader) head() error {
	fields, _, err := l.csv.next()
	switch {
	case err == io.EOF:
		return record.Errorf(record.Invalid, "", "the body is empty; its first line names the columns")
	case err != nil:
		return l.readFault(err)
	}
	seen := map[string]bool{}
	for i, f := range fields {
		text := f.text
		if i == 0 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		name := strings.TrimSpace(string(text))
		if i == 0 && l.left != 0 && len(name) > 1 && name[0] == l.left && name[len(name)-1] == l.right {
			name = name[1 : len(name)-1] // it stood behind a byte order mark
		}
		col := l.Column(name)
		if col == nil {
			col = l.Column(strings.ToLower(name))
		}
		if col == nil {
			return record.Errorf(record.Invalid, "", "line 1: %s has no column %.80q", l.Alias, name)
		}
		if seen[col.Name] {
			return record.Errorf(record.Invalid, "", "line 1: column %s is named twice", col.Name)
		}
		seen[col.Name] = true
		l.columns, l.fields = append(l.columns, l.column(col)), append(l.fields, col.Field.Name)
	}
	return nil
}

// readFault is an error of reading the body, for the caller.
func (l *loader) readFault(err error) error {
	if errors.Is(err, errRowTooLong) {
		return record.Errorf(record.TooLarge, "", "row %d has more than %d bytes; see lineMax, lineEnd and ords.load.line", l.processed+1, l.most)
	}
	return err
}

// group is rows that are committed together.
type group struct {
	first int64 // number of its first row, from 1
	rows  int
	cells []record.Value
	at    []int    // of the rows that became values: which of the group it is
	texts [][]byte // of all rows
	wrong []record.RowError
	err   error // what ended reading after these rows
}

// run reads the body and loads its groups.
func (l *loader) run(ctx context.Context) {
	groups, stop, done := make(chan *group), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer close(groups)
		for first := int64(1); ; {
			g := l.read(first)
			first += int64(g.rows)
			select {
			case groups <- g:
			case <-stop:
				return
			}
			if g.err != nil {
				return
			}
		}
	}()
	ended := false
	for g := range groups {
		ended = g.err != nil
		if !l.load(ctx, g) {
			break
		}
	}
	close(stop)
	if !ended {
		l.body.Close() // it may wait for a client who has not sent all
	}
	<-done
}

// read reads a group.
func (l *loader) read(first int64) *group {
	g := &group{first: first}
	width := len(l.columns)
	l.csv.reset(min(l.opt.Load.Bytes, 64*l.batch+1024))
	size := 0
	for g.rows < l.batch && size < l.opt.Load.Bytes {
		fields, text, err := l.csv.next()
		if err != nil {
			g.err = err
			return g
		}
		size += len(text)
		i := g.rows
		g.rows++
		g.texts = append(g.texts, text)
		if len(fields) != width {
			g.wrong = append(g.wrong, record.RowError{Row: i, Err: record.Errorf(record.Invalid, "", "the row has %d fields, not %d", len(fields), width)})
			continue
		}
		at := len(g.cells)
		for j := range fields {
			f := &fields[j]
			// The text lies in the group's own arena, which nobody changes any more.
			v, ok := l.columns[j].value(unsafe.String(unsafe.SliceData(f.text), len(f.text)), f.enclosed)
			if !ok {
				g.wrong = append(g.wrong, record.RowError{Row: i, Err: record.Errorf(record.Invalid, l.fields[j], "%.60q is not a valid %s", f.text, l.columns[j].Field.Type)})
				g.cells = g.cells[:at]
				break
			}
			g.cells = append(g.cells, v)
		}
		if len(g.cells) > at {
			g.at = append(g.at, i)
		}
	}
	return g
}

// load writes a group, and reports whether the load goes on.
func (l *loader) load(ctx context.Context, g *group) bool {
	if len(g.at) > 0 {
		out := l.exec.Exec.Execute(ctx, l.snap, &record.Unit{
			Version: l.snap.Version, Actors: []record.Actor{l.call.Actor},
			Ops: []record.Op{{Verb: record.Load, Table: l.Table.Name, Load: &record.Loading{Fields: l.fields, Cells: g.cells}}},
		})
		if err := out[0].Err; err != nil {
			l.fatal = err
			return false
		}
		if out[0].Load.Rows > 0 {
			l.committed = g.first + int64(g.at[len(g.at)-1])
		}
		for _, e := range out[0].Load.Errs {
			e.Row = g.at[e.Row]
			g.wrong = append(g.wrong, e)
		}
	}
	l.processed += int64(g.rows)
	l.wrong += int64(len(g.wrong))
	l.list(g)
	switch {
	case l.wrong > l.errors:
		l.tooMany = true
		return false
	case g.err == io.EOF:
		return false
	case g.err != nil:
		l.fatal = l.readFault(g.err)
		return false
	}
	return true
}

// list adds the wrong rows of a group to the report.
func (l *loader) list(g *group) {
	mark := "#ERROR "
	if l.sql {
		mark = "--ERROR "
	}
	slices.SortFunc(g.wrong, func(a, b record.RowError) int { return a.Row - b.Row })
	for _, e := range g.wrong {
		if l.listed++; l.listed > int64(l.opt.Load.Listed) {
			continue
		}
		n := g.first + int64(e.Row)
		l.report = fmt.Appendf(l.report, "%sInsert failed for row %d\n%s--> ", mark, n, mark)
		if e.Err.Field != "" {
			l.report = fmt.Appendf(l.report, "column %s: ", l.columnName(e.Err.Field))
		}
		l.report = append(l.report, oneLine(e.Err.Msg)...)
		l.report = fmt.Appendf(l.report, "\n%sRow %d data follows:\n", mark, n)
		if l.sql {
			l.report = l.appendInsert(l.report, g.texts[e.Row])
		} else {
			l.report = append(l.report, g.texts[e.Row]...)
		}
		l.report = append(l.report, '\n')
	}
}

func (l *loader) columnName(field string) string {
	for i := range l.columns {
		if l.fields[i] == field {
			return l.columns[i].Name
		}
	}
	return field
}

func oneLine(s string) string {
	return strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ").Replace(s)
}

// appendInsert appends a row of the file as a statement.
func (l *loader) appendInsert(dst, text []byte) []byte {
	r := &csvReader{csvFormat: l.csvFormat}
	dst = append(append(append(dst, "INSERT INTO "...), l.Alias...), " ("...)
	for i := range l.columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, l.columns[i].Name...)
	}
	dst = append(dst, ") VALUES ("...)
	for i, f := range r.split(text) {
		if i > 0 {
			dst = append(dst, ',')
		}
		if len(f.text) == 0 && !f.enclosed {
			dst = append(dst, "NULL"...)
			continue
		}
		dst = append(dst, '\'')
		dst = append(dst, bytes.ReplaceAll(f.text, []byte("'"), []byte("''"))...)
		dst = append(dst, '\'')
	}
	return append(dst, ");"...)
}

// answer writes what became of the load: the wrong rows, the numbers, and a line that says how it went (protocol notes, section 10).
func (l *loader) answer(a *wire.Answer) {
	mark := "#INFO "
	if l.sql {
		mark = "--INFO "
	}
	b := append(a.Body, l.report...)
	if more := l.listed - int64(l.opt.Load.Listed); more > 0 {
		b = fmt.Appendf(b, "%s%d more rows in error are not listed; see ords.load.listed\n", mark, more)
	}
	b = fmt.Appendf(b, "%sNumber of rows processed: %d\n%sNumber of rows in error: %d\n", mark, l.processed, mark, l.wrong)
	if l.committed > 0 {
		b = fmt.Appendf(b, "%sLast row processed in final committed batch: %d\n", mark, l.committed)
	} else {
		b = fmt.Appendf(b, "%sNo rows committed\n", mark)
	}
	a.Status = 200
	last := "SUCCESS: Processed without errors"
	switch {
	case l.fatal != nil:
		e := record.AsError(l.exec.Public(l.fatal))
		p := l.opt.problemOf(e)
		a.Status = p.status
		last = "ERROR: Load terminated: " + oneLine(p.message)
	case l.tooMany:
		last = "ERROR: Load terminated: more than " + strconv.FormatInt(l.errors, 10) + " rows in error"
	case l.wrong > 0:
		last = "WARNING: Processed with errors"
	}
	if l.sql {
		last = "--" + last
	}
	b = append(append(b, last...), '\n')
	charset := "utf-8"
	if l.latin1 {
		charset, b = "iso-8859-1", latin1(b)
	}
	a.Body = b
	a.Header.Add("Content-Type", "text/plain; charset="+charset)
	l.opt.trace(a, l.id)
}

// latin1 is text in ISO 8859-1; what it does not have is a question mark.
func latin1(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		if r > 0xff {
			r = '?'
		}
		out = append(out, byte(r))
	}
	return out
}

// empty deletes all rows that the caller may delete, in groups. It is a delete and no TRUNCATE in either case: what the table does by
// itself when rows go is done.
func (l *loader) empty(ctx context.Context) error {
	for {
		out := l.exec.Exec.Execute(ctx, l.snap, &record.Unit{
			Version: l.snap.Version, Actors: []record.Actor{l.call.Actor},
			Ops: []record.Op{{Verb: record.List, Table: l.Table.Name, Return: l.Table.Key, Query: &record.Query{Limit: emptyRows}}},
		})
		if out[0].Err != nil {
			return out[0].Err
		}
		rows := out[0].Rows
		n := rows.Len()
		if n == 0 {
			return nil
		}
		u := &record.Unit{Version: l.snap.Version, Actors: []record.Actor{l.call.Actor}, Ops: make([]record.Op, n)}
		for i := range u.Ops {
			u.Ops[i] = record.Op{Verb: record.Delete, Table: l.Table.Name, Key: rows.At(i), Group: 1}
		}
		for _, o := range l.exec.Exec.Execute(ctx, l.snap, u) {
			if o.Err != nil && o.Err.Kind != record.Dependency {
				return o.Err
			}
		}
	}
}

const emptyRows = 10_000
