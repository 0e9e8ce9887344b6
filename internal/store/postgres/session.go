package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

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

	now     settings // what the session was told last
	certain bool     // and it is so: no transaction was undone since
}

// settings are what statements want of a session beyond how it was opened. The zero value is a session as it was opened.
type settings struct {
	role    string        // the role that they run as; "": the login
	timeout time.Duration // of each statement; 0: Options.Statement
	name    string        // of the request, for the database's log
}

// adopt returns the commands that give the session its settings: none when it has them already. They travel with the
// statement, and whoever sees them committed says so by settle. What is undone meanwhile leaves it uncertain, and then all
// of them are sent again.
func (s *session) adopt(want settings) []string {
	if s.certain && s.now == want {
		return nil
	}
	var list []string
	if !s.certain || s.now.role != want.role {
		list = append(list, setRole(want.role))
	}
	if !s.certain || s.now.timeout != want.timeout {
		if want.timeout > 0 {
			list = append(list, "SET statement_timeout = "+millis(want.timeout))
		} else {
			list = append(list, "RESET statement_timeout")
		}
	}
	if !s.certain || s.now.name != want.name {
		if want.name != "" {
			list = append(list, "SET application_name = "+quoteText("weir "+want.name))
		} else {
			list = append(list, "RESET application_name")
		}
	}
	s.now, s.certain = want, false
	return list
}

// settle says that everything sent so far is committed.
func (s *session) settle() { s.certain = true }

// prepared is one statement on one connection.
type prepared struct {
	of      *store.Statement
	desc    *pgconn.StatementDescription
	columns []column
	formats []int16
	names   []string      // of the columns
	types   []record.Type // of the columns
}

// maxPrepared is how many statements a connection keeps prepared. As in the compiler, who needs more makes them up.
const maxPrepared = 500

const sessionKey = "weir"

// sessionOf is the session of a connection.
func sessionOf(l lease) *session {
	pg := l.conn.PgConn()
	if s, ok := pg.CustomData()[sessionKey].(*session); ok {
		return s
	}
	s := &session{pg: pg, stmts: map[string]*prepared{}, certain: true}
	pg.CustomData()[sessionKey] = s
	return s
}

// prepared reports whether all of them are prepared.
func (s *session) prepared(steps []step) bool {
	for i := range steps {
		if s.stmts[steps[i].st.SQL] == nil {
			return false
		}
	}
	return true
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
		p.of, p.types = st, nil
		p.columns, p.formats = columnsOf(p.desc.Fields, st)
	}
	return p, nil
}

// step is one statement with its arguments. fields are the names of the columns of its rows, for errors. A plain one is the
// operator's own: its arguments are values, of any form.
type step struct {
	st     *store.Statement
	args   []store.Arg
	fields []string
	plain  bool
	values []record.Value
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
	if len(before) > 0 && !s.prepared(steps) && (!s.certain || steps[0].plain) {
		// What a statement may name is looked up when it is prepared, so that the session must be in order by then. And what
		// the server refuses to prepare fails a transaction, which must have begun, and be marked, before.
		if err := s.pg.Exec(ctx, strings.Join(before, "; ")).Close(); err != nil {
			return nil, s.fail(err)
		}
		before = nil
		if s.pg.TxStatus() == 'I' {
			s.settle()
		}
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
		return &cursor{s: s, rr: rr, plan: plans[0], columns: plans[0].columns, plain: steps[0].plain}, nil
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
	c := &cursor{s: s, multi: s.pg.ExecBatch(ctx, &batch), plan: plans[0], columns: plans[0].columns, plain: steps[0].plain}
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
	plan    *prepared
	columns []column
	second  []column
	plain   bool // a value that is not of its column's type is read as its text
	tag     pgconn.CommandTag
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
		if err != nil && c.plain {
			v, err = record.TextValue(string(values[i])), nil
		}
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
	tag, err := c.rr.Close()
	if c.multi != nil {
		if e := c.multi.Close(); err == nil {
			err = e
		}
	}
	c.tag = tag
	if err == nil && !c.s.certain && c.s.pg.TxStatus() == 'I' {
		c.s.settle()
	}
	if c.err != nil && err == nil {
		err = c.err
	}
	return c.s.fail(err)
}
