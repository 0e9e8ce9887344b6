package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// Describe asks the database what a statement takes and gives. Types of columns are those that the table declares; what is
// computed has none.
func (s *Store) Describe(ctx context.Context, sql string, _ []string) (*store.Described, error) {
	if err := store.CheckVerb(sql); err != nil {
		return nil, err
	}
	c, err := s.readers.get(ctx)
	if err != nil {
		return nil, err
	}
	defer s.readers.put(c)
	c.plain = true
	defer func() { c.plain = false }()
	st, tail, err := c.db.Prepare(sql)
	if err != nil {
		if fault := sqlError(sql, err); fault != nil {
			return nil, fault
		}
		return nil, c.translate(ctx, err, nil)
	}
	defer st.Close()
	if word, pos := store.FirstWord(strings.TrimLeft(tail, "; \t\r\n")); word != "" {
		return nil, &store.SQLError{Msg: "there is a second statement", Pos: len(sql) - len(strings.TrimLeft(tail, "; \t\r\n")) + pos}
	}
	d := &store.Described{}
	for range st.BindCount() {
		d.Params = append(d.Params, store.DescribedColumn{Type: store.Untyped})
	}
	for i := range st.ColumnCount() {
		col := store.DescribedColumn{
			Name: st.ColumnName(i), Type: store.Untyped, Native: st.ColumnDeclType(i),
			Table: st.ColumnTableName(i), Column: st.ColumnOriginName(i),
		}
		if t, ok := fieldType(&store.Column{Type: col.Native}); ok && col.Native != "" {
			col.Type = t
		}
		d.Columns = append(d.Columns, col)
	}
	return d, nil
}

// noLogin is the error of a call that wants a session of its own: a file has no users.
func noLogin(o *store.SQLOptions) error {
	if o.Login == nil {
		return nil
	}
	return record.Errorf(record.Unsupported, "", "SQLite has no users that could log in")
}

// timeout is how long a statement may run.
func (s *Store) timeout(o *store.SQLOptions) time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return s.opts.Statement
}

// Select runs a statement that reads and streams its rows: the connection is held until Close.
func (s *Store) Select(ctx context.Context, st *store.Statement, args []record.Value, o store.SQLOptions) (*record.Rows, error) {
	if err := store.CheckVerb(st.SQL); err != nil {
		return nil, rejected(err)
	}
	return s.selectPlain(ctx, st, args, o)
}

func (s *Store) selectPlain(ctx context.Context, st *store.Statement, args []record.Value, o store.SQLOptions) (*record.Rows, error) {
	if err := noLogin(&o); err != nil {
		return nil, err
	}
	c, err := s.readers.get(ctx)
	if err != nil {
		return nil, err
	}
	cur := &cursor{conn: c, pool: s.readers, ctx: ctx, rec: telemetry.From(ctx)}
	c.limit(ctx, s.timeout(&o))
	names, types, err := cur.openPlain(st, args)
	if err == nil && !cur.st.ReadOnly() {
		err = rejected(&store.SQLError{Msg: "it writes, where only reading is allowed", Pos: -1})
	}
	if err == nil {
		cur.ahead, cur.more = cur.fetch()
		err = cur.err
	}
	if err != nil {
		e := c.translatePlain(ctx, err, st.SQL)
		cur.Close()
		return nil, e
	}
	cur.peeked = true
	return record.StreamRows(names, types, cur), nil
}

// openPlain prepares and binds an operator's statement and returns the names and types of its columns.
func (c *cursor) openPlain(st *store.Statement, args []record.Value) ([]string, []record.Type, error) {
	begin := time.Now()
	c.conn.plain = true
	p, err := c.conn.prepare(st.SQL)
	if err != nil {
		return nil, nil, err
	}
	c.st = p
	if err := c.conn.bindPlain(p, st, args); err != nil {
		return nil, nil, err
	}
	n := p.ColumnCount()
	if p.names == nil {
		p.names = make([]string, n)
		for i := range p.names {
			p.names[i] = p.ColumnName(i)
		}
	}
	types := make([]record.Type, n)
	c.out = st.Out
	if len(st.Out) != n {
		c.out = make([]store.Output, n)
		for i := range c.out {
			c.out[i].Type = store.Untyped
		}
		copy(c.out, st.Out)
	}
	for i := range types {
		types[i] = c.out[i].Type
	}
	c.row = make([]record.Value, n)
	c.spent = time.Since(begin)
	return p.names, types, nil
}

// bindPlain binds the arguments of an operator's statement: in the form of the parameter's type where that is known, else as
// they come.
func (c *conn) bindPlain(p *prepared, st *store.Statement, args []record.Value) error {
	if n := p.BindCount(); n != len(args) {
		return record.Errorf(record.Internal, "", "%d values for a statement of %d parameters", len(args), n)
	}
	for i, v := range args {
		t := store.Untyped
		if i < len(st.Params) {
			t = st.Params[i].Type
		}
		var err error
		if t != store.Untyped {
			v, err = store.Fit(t, v)
		} else if v.Form == record.Text {
			_, err = store.Fit(record.TypeString, v)
		}
		if err != nil {
			return record.AsError(err).At(fmt.Sprintf("$%d", i+1))
		}
		if err := c.bind(p, i+1, t, v); err != nil {
			return err
		}
	}
	return nil
}

// BeginPlain is Begin for statements that Tx.Run runs.
func (s *Store) BeginPlain(ctx context.Context, o store.SQLOptions) (store.Tx, error) {
	if err := noLogin(&o); err != nil {
		return nil, err
	}
	t, err := s.Begin(ctx)
	if err != nil {
		return nil, err
	}
	t.(*tx).opts = o
	return t, nil
}

// Run runs a statement of the operator's own.
func (t *tx) Run(ctx context.Context, st *store.Statement, args []record.Value) (*record.Rows, int64, error) {
	if err := store.CheckVerb(st.SQL); err != nil {
		return nil, 0, rejected(err)
	}
	if t.done {
		return nil, 0, errOver
	}
	c := t.conn
	c.limit(ctx, t.store.timeout(&t.opts))
	cur := &cursor{conn: c, ctx: ctx, rec: telemetry.From(ctx)}
	defer cur.Close()
	names, types, err := cur.openPlain(st, args)
	if err != nil {
		return nil, 0, c.translatePlain(ctx, err, st.SQL)
	}
	rows := record.NewRows(names, types)
	left := t.opts.Memory
	for row, ok := cur.fetch(); ok; row, ok = cur.fetch() {
		rows.Append(row)
		if left -= store.RowSize(row); left < 0 && t.opts.Memory > 0 {
			return nil, 0, store.TooMany(t.opts.Memory)
		}
	}
	if cur.err != nil {
		return nil, 0, c.translatePlain(ctx, cur.err, st.SQL)
	}
	var affected int64
	if !cur.st.ReadOnly() {
		affected = c.db.Changes()
	}
	if len(names) == 0 {
		return nil, affected, nil
	}
	return rows, affected, nil
}

// Resize changes how many connections may read at once and how long work waits for one; 0 leaves it.
func (s *Store) Resize(limit int, wait time.Duration) {
	if s.readers != s.writer {
		s.readers.resize(limit, wait)
	}
	s.writer.resize(0, wait) // it stays the only one
}

// authorize decides what a statement may touch while it is prepared, or prepared again because the schema changed. Ours may
// do everything; the operator's read and write rows of tables that are not weir's own.
func (c *conn) authorize(action sqlite3.AuthorizerActionCode, third, _, _, _ string) sqlite3.AuthorizerReturnCode {
	if !c.plain {
		return sqlite3.AUTH_OK
	}
	switch action {
	case sqlite3.AUTH_SELECT, sqlite3.AUTH_RECURSIVE:
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_FUNCTION: // load_extension is not part of this build
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_READ, sqlite3.AUTH_INSERT, sqlite3.AUTH_UPDATE, sqlite3.AUTH_DELETE:
		// A pragma that is read as a table is asked about once more when it runs.
		if own(third) || strings.HasPrefix(strings.ToLower(third), "pragma_") {
			return sqlite3.AUTH_DENY
		}
		return sqlite3.AUTH_OK
	case sqlite3.AUTH_PRAGMA: // full-text indexes ask for it themselves
		if third == "data_version" {
			return sqlite3.AUTH_OK
		}
	}
	return sqlite3.AUTH_DENY
}

// own reports whether a table is one of weir's own.
func own(table string) bool {
	return len(table) > len(catalog.SystemSchema) && strings.EqualFold(table[:len(catalog.SystemSchema)+1], catalog.SystemSchema+"_")
}
