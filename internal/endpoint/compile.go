package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// compiler is the work on one endpoint.
type compiler struct {
	ctx      context.Context
	st       store.Store
	postgres bool
	def      *catalog.EndpointDef
	fields   fields
	typing
	out      *catalog.SQLCompiled
	declared map[string]bool // columns of @column that were found
	faults   []error
	failed   error // the database does not answer
}

// Compile has the database describe the endpoint's statements and fills def.SQL.Compiled, which stays nil when the endpoint is for another
// database. The error joins all faults, each with
// file, line and column.
func Compile(ctx context.Context, st store.Store, snap *catalog.Snapshot, def *catalog.EndpointDef) error {
	c := &compiler{
		ctx: ctx, st: st, postgres: st.Name() == "postgres", def: def, fields: fieldsOf(snap),
		typing:   untold(),
		declared: map[string]bool{}, out: &catalog.SQLCompiled{Store: st.Name()},
	}
	d := def.SQL
	if d.Store != "" && d.Store != st.Name() {
		return nil
	}
	if s := c.source(d.Text, d.Line, true); s != nil {
		c.main(s)
	}
	if d.TagQuery != "" {
		if s := c.source(d.TagQuery, d.TagLine, false); s != nil {
			c.tag(s)
		}
	}
	c.unused()
	if c.failed != nil {
		return c.failed
	}
	if len(c.faults) > 0 {
		return errors.Join(c.faults...)
	}
	d.Compiled = c.out
	return nil
}

func (c *compiler) source(text string, line int, exact bool) *source {
	s, err := newSource(text, line, exact, c.postgres)
	if err != nil {
		c.fault(s, err.pos, "%s", err.msg)
		return nil
	}
	return s
}

// fault notes what is wrong at a byte of the source.
func (c *compiler) fault(s *source, at int, format string, args ...any) {
	at = min(max(at, 0), len(s.text))
	line := s.line + strings.Count(s.text[:at], "\n")
	where := fmt.Sprintf("%s:%d", c.def.File, line)
	if s.exact {
		where += ":" + strconv.Itoa(utf8.RuneCountInString(s.text[strings.LastIndexByte(s.text[:at], '\n')+1:at])+1)
	}
	err := fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...))
	if !slices.ContainsFunc(c.faults, func(e error) bool { return e.Error() == err.Error() }) {
		c.faults = append(c.faults, err)
	}
}

// main compiles the statements of the file.
func (c *compiler) main(s *source) {
	list := s.statements()
	if len(list) == 0 {
		c.fault(s, 0, "the file holds no SQL")
		return
	}
	if c.def.SQL.Source == catalog.SourceBlock {
		c.block(s, list)
		return
	}
	if len(list) > 1 {
		c.fault(s, s.code[list[1].lo].from, "%s is one SELECT; several statements are a block", c.def.SQL.Source)
		return
	}
	q := list[0]
	if !c.readsOnly(q) || !c.wellFormed(q) {
		return
	}
	compiled, ok := c.query(q, "")
	if ok {
		c.out.Statements = []catalog.SQLStatement{compiled}
		c.media(q, compiled.Columns)
	}
}

// tag compiles the tag query.
func (c *compiler) tag(s *source) {
	list := s.statements()
	if len(list) != 1 {
		c.fault(s, 0, "a tag query is one SELECT")
		return
	}
	q := list[0]
	if !c.readsOnly(q) || !c.wellFormed(q) {
		return
	}
	if len(q.cursors) > 0 {
		c.fault(s, s.code[q.cursors[0].from].from, "a tag query has no CURSOR")
		return
	}
	c.typing = untold()
	var w text
	d := c.describe(s, &w, func(w *text) { c.copyCode(w, s, q.lo, q.hi, nil) })
	if d == nil {
		return
	}
	compiled := c.compiled(q, &w, d)
	for i := range d.Columns {
		compiled.Columns = append(compiled.Columns, column(strconv.Itoa(i+1), &d.Columns[i]))
	}
	c.out.Tag = &compiled
}

func (c *compiler) wellFormed(q *statement) bool {
	for _, f := range q.faults {
		c.fault(q.src, f.pos, "%s", f.msg)
	}
	return len(q.faults) == 0
}

// readsOnly checks that a statement is a query that writes nothing. What functions do that it calls is theirs.
func (c *compiler) readsOnly(q *statement) bool {
	s := q.src
	if q.verb != "SELECT" && q.verb != "VALUES" {
		c.fault(s, s.code[q.lo].from, "this is no SELECT: what changes something is a block, with POST, PUT, PATCH or DELETE")
		return false
	}
	for i := q.lo; i < q.hi; i++ {
		if s.is(i, "INSERT", "UPDATE", "DELETE", "MERGE") && s.is(i-1, "(") {
			c.fault(s, s.code[i].from, "%s has no place in a query; what changes something is a block", strings.ToUpper(s.str(s.code[i])))
			return false
		}
		if s.is(i, "INTO") && s.depth(q.lo, i) == 0 {
			c.fault(s, s.code[i].from, "SELECT INTO has no place in a query")
			return false
		}
	}
	return true
}

// media checks the columns of a source of bytes.
func (c *compiler) media(q *statement, columns []catalog.SQLColumn) {
	if c.def.SQL.Source != catalog.SourceMedia {
		return
	}
	if len(columns) != 2 {
		c.fault(q.src, q.src.code[q.main].from, "resource/lob answers two columns, the content type and the bytes; these are %d", len(columns))
		return
	}
	if columns[1].Type == "" {
		columns[1].Type = record.TypeBytes.String()
	}
}

// query compiles a SELECT with its nested ones. path is where its rows are in the answer, with a point behind it.
func (c *compiler) query(q *statement, path string) (catalog.SQLStatement, bool) {
	if c.def.SQL.Nested == "rows" && len(q.cursors) > 0 {
		return c.byRows(q)
	}
	swaps := map[int]swap{}
	for _, cur := range q.cursors {
		if !c.inOne(cur, nil, path, swaps) {
			return catalog.SQLStatement{}, false
		}
	}
	var w text
	d := c.describe(q.src, &w, func(w *text) { c.copyCode(w, q.src, q.lo, q.hi, swaps) })
	if d == nil {
		return catalog.SQLStatement{}, false
	}
	columns, ok := c.columns(q, d, path)
	if !ok {
		return catalog.SQLStatement{}, false
	}
	arrays := c.arrays(columns)
	if arrays != "" {
		if d = c.describe(q.src, &w, func(w *text) {
			at := q.src.code[q.main].from
			w.add(at, arrays)
			c.copyCode(w, q.src, q.lo, q.hi, swaps)
			w.add(at, "\n) AS w_")
		}); d == nil {
			return catalog.SQLStatement{}, false
		}
	}
	out := c.compiled(q, &w, d)
	out.Bounded = out.Bounded && arrays == ""
	for i := range columns {
		out.Columns = append(out.Columns, columns[i].SQLColumn)
	}
	return out, true
}

// arrays is the beginning of a SELECT around a query whose columns are arrays of PostgreSQL, which it makes JSON; "" if none is.
func (c *compiler) arrays(columns []queryColumn) string {
	if !c.postgres || !slices.ContainsFunc(columns, func(col queryColumn) bool { return strings.HasSuffix(col.Native, "[]") }) {
		return ""
	}
	list := make([]string, len(columns))
	for i := range columns {
		list[i] = "w_." + store.Quote(columns[i].db)
		if col := &columns[i]; strings.HasSuffix(col.Native, "[]") {
			list[i] = "to_json(" + list[i] + ") AS " + store.Quote(col.db)
			col.JSON, col.Type, col.Native = true, record.TypeJSON.String(), "json"
		}
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM (\n"
}

// compiled is what a text and its description say of a statement; its columns are missing.
func (c *compiler) compiled(q *statement, w *text, d *store.Described) catalog.SQLStatement {
	s := q.src
	out := catalog.SQLStatement{
		SQL: string(w.sql), Params: w.params, Line: s.line + strings.Count(s.text[:s.code[q.lo].from], "\n"), Reads: len(d.Columns) > 0,
		Bounded: q.bounded || s.is(q.lo, "("),
	}
	inferred := c.infer(q)
	for i, b := range w.params {
		t := catalog.SQLType{Type: c.out.Binds[b].Type}
		if found, ok := inferred[b]; ok {
			t.Type = found.String()
			if bound := &c.out.Binds[b]; bound.Type == "" {
				bound.Type = t.Type
			}
		}
		if i < len(d.Params) && d.Params[i].Type != store.Untyped {
			t = catalog.SQLType{Type: d.Params[i].Type.String(), Native: d.Params[i].Native}
			if bound := &c.out.Binds[b]; bound.Type == "" {
				bound.Type, bound.Native = t.Type, t.Native
			}
		}
		out.Takes = append(out.Takes, t)
	}
	return out
}

// bind is the index of the bind with a name, which it becomes when it is new.
func (c *compiler) bind(name string) int {
	for i := range c.out.Binds {
		if c.out.Binds[i].Name == name {
			return i
		}
	}
	b := catalog.SQLBind{Name: name}
	if t, ok := implicit[name]; ok {
		b.Type = t.String()
		b.Out = name == bindStatus || name == bindForward
	}
	for _, p := range c.def.SQL.Params {
		if p.Bind == name {
			b.Out = b.Out || p.Access != "IN"
			if t, ok := paramTypes[p.Type]; ok {
				b.Type = t.String()
			}
		}
	}
	c.out.Binds = append(c.out.Binds, b)
	return len(c.out.Binds) - 1
}

var paramTypes = map[string]record.Type{
	"STRING": record.TypeString, "INT": record.TypeInteger, "LONG": record.TypeInteger, "DOUBLE": record.TypeFloat,
	"BOOLEAN": record.TypeBoolean, "TIMESTAMP": record.TypeDateTime,
}

// unused finds declarations that nothing in the SQL has.
func (c *compiler) unused() {
	if len(c.faults) > 0 || c.failed != nil {
		return
	}
	for _, p := range c.def.SQL.Params {
		if !slices.ContainsFunc(c.out.Binds, func(b catalog.SQLBind) bool { return b.Name == p.Bind }) {
			c.faults = append(c.faults, fmt.Errorf("%s:1: @param %s: the SQL has no :%s", c.def.File, p.Name, p.Bind))
		}
	}
	for _, col := range c.def.SQL.Columns {
		if !c.declared[col.Name] {
			c.faults = append(c.faults, fmt.Errorf("%s:1: @column %s: the query has no such column", c.def.File, col.Name))
		}
	}
	for _, b := range c.out.Binds {
		if slices.Contains(Reserved, b.Name) {
			c.faults = append(c.faults, fmt.Errorf("%s:%d: :%s is reserved (%s) and cannot be a bind", c.def.File, c.def.SQL.Line, b.Name, strings.Join(Reserved, ", ")))
		}
	}
}
