package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"weir/internal/record"
	"weir/internal/store"
)

// session is what one connection remembers: its prepared statements and the memory for arguments and rows.
type session struct {
	pg    *pgconn.PgConn
	stmts map[string]*prepared
	named int
	enc   encoder
	row   []record.Value
}

// prepared is one statement on one connection.
type prepared struct {
	of      *store.Statement
	desc    *pgconn.StatementDescription
	columns []column
	formats []int16
}

// maxPrepared is how many statements a connection keeps prepared. As in the compiler, who needs more makes them up.
const maxPrepared = 500

const sessionKey = "weir"

// sessionOf is the session of a pooled connection.
func sessionOf(conn *pgxpool.Conn) *session {
	pg := conn.Conn().PgConn()
	if s, ok := pg.CustomData()[sessionKey].(*session); ok {
		return s
	}
	s := &session{pg: pg, stmts: map[string]*prepared{}}
	pg.CustomData()[sessionKey] = s
	return s
}

func (s *session) prepare(ctx context.Context, st *store.Statement) (*prepared, error) {
	p := s.stmts[st.SQL]
	if p == nil {
		s.named++
		desc, err := s.pg.Prepare(ctx, "w"+strconv.Itoa(s.named), st.SQL, nil)
		if err != nil {
			return nil, err
		}
		p = &prepared{desc: desc}
		s.stmts[st.SQL] = p
	}
	if p.of != st { // the same text may have been compiled for another snapshot, whose fields have other types
		p.columns, p.formats = columnsOf(p.desc.Fields, st)
		p.of = st
	}
	return p, nil
}

// step is one statement with its arguments. fields are the names of the columns of its rows, for errors.
type step struct {
	st     *store.Statement
	args   []store.Arg
	fields []string
}

// start sends commands without parameters and then one or two statements, in one round trip, and returns a cursor on the
// first statement's rows.
func (s *session) start(ctx context.Context, before []string, steps ...step) (*cursor, error) {
	var plans [2]*prepared
	if len(s.stmts)+len(steps) > maxPrepared { // before any of them is prepared, so that none goes with the rest
		if err := s.pg.Exec(ctx, "DEALLOCATE ALL").Close(); err != nil {
			return nil, s.fail(err)
		}
		clear(s.stmts)
	}
	for i := range steps {
		p, err := s.prepare(ctx, steps[i].st)
		if err != nil {
			return nil, s.fail(err)
		}
		plans[i] = p
	}
	if len(before) == 0 && len(steps) == 1 {
		if err := s.enc.encode(plans[0].desc.ParamOIDs, &steps[0]); err != nil {
			return nil, err
		}
		rr := s.pg.ExecStatement(ctx, plans[0].desc, s.enc.values, s.enc.formats, plans[0].formats)
		return &cursor{s: s, rr: rr, columns: plans[0].columns}, nil
	}
	var batch pgconn.Batch
	for _, sql := range before {
		batch.ExecParams(sql, nil, nil, nil, nil)
	}
	for i := range steps {
		if err := s.enc.encode(plans[i].desc.ParamOIDs, &steps[i]); err != nil {
			return nil, err
		}
		batch.ExecStatement(plans[i].desc, s.enc.values, s.enc.formats, plans[i].formats)
	}
	c := &cursor{s: s, multi: s.pg.ExecBatch(ctx, &batch), columns: plans[0].columns}
	if len(steps) == 2 {
		c.second = plans[1].columns
	}
	for range before {
		if !c.multi.NextResult() {
			return nil, s.fail(c.multi.Close())
		}
		if _, err := c.multi.ResultReader().Close(); err != nil {
			c.multi.Close()
			return nil, s.fail(err)
		}
	}
	if !c.multi.NextResult() {
		return nil, s.fail(c.multi.Close())
	}
	c.rr = c.multi.ResultReader()
	return c, nil
}

// fail passes err on. A plan that a schema change made stale is forgotten with all others.
func (s *session) fail(err error) error {
	var pg *pgconn.PgError
	if asPgError(err, &pg) && pg.Code == "0A000" && pg.Routine == "RevalidateCachedQuery" {
		s.pg.Close(context.Background())
	}
	return err
}

// cursor reads the rows of one statement, then those of the second if there is one.
type cursor struct {
	s       *session
	multi   *pgconn.MultiResultReader // nil: rr is alone
	rr      *pgconn.ResultReader
	columns []column
	second  []column
	err     error
}

// next is the next row, whose texts are valid until the following call.
func (c *cursor) next() ([]record.Value, bool) {
	if c.err != nil || !c.rr.NextRow() {
		return nil, false
	}
	values := c.rr.Values()
	row := c.s.row[:0]
	for i := range c.columns {
		v, err := c.columns[i].value(values[i])
		if err != nil {
			c.err = err
			return nil, false
		}
		row = append(row, v)
	}
	c.s.row = row
	return row, true
}

// advance goes on to the second statement.
func (c *cursor) advance() error {
	if c.err != nil {
		return c.err
	}
	if _, err := c.rr.Close(); err != nil {
		return c.s.fail(err)
	}
	if !c.multi.NextResult() {
		return c.s.fail(c.multi.Close())
	}
	c.rr, c.columns = c.multi.ResultReader(), c.second
	return nil
}

// close reads what is left and returns what went wrong, if anything.
func (c *cursor) close() error {
	_, err := c.rr.Close()
	if c.multi != nil {
		if e := c.multi.Close(); err == nil {
			err = e
		}
	}
	if c.err != nil && err == nil {
		err = c.err
	}
	return c.s.fail(err)
}
