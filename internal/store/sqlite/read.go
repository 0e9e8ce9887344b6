package sqlite

import (
	"context"
	"time"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// maxPage is up to which Limit a read that counts is held in memory, so that a page which is not full needs no count.
const maxPage = 1000

// Query runs a read on a connection of its own and streams its rows: the connection is held until Close.
func (s *Store) Query(ctx context.Context, q *store.Read) (*store.Result, error) {
	r, err := s.compile(q)
	if err != nil {
		return nil, err
	}
	c, err := s.readers.get(ctx)
	if err != nil {
		return nil, err
	}
	return r.run(ctx, c, s.readers, s.opts.Statement)
}

// reading is a compiled read with its arguments.
type reading struct {
	q           *store.Read
	main, count *store.Statement
	args, tally []store.Arg
}

func (s *Store) compile(q *store.Read) (r reading, err error) {
	r.q = q
	var room [8]store.Arg
	r.main, r.count, r.args, r.tally, err = s.compiler.Read(q, room[:0], nil)
	return r, err
}

// run starts the read. With a pool the connection goes back there at the end of the rows; without one they are read into
// memory at once, since the connection is a transaction's.
func (r *reading) run(ctx context.Context, c *conn, back *pool, timeout time.Duration) (*store.Result, error) {
	cur := &cursor{conn: c, pool: back, ctx: ctx, table: r.q, rec: telemetry.From(ctx), out: r.main.Out}
	c.limit(ctx, timeout)
	res, err := r.start(cur)
	if err != nil {
		e := c.translate(ctx, err, r.q.Table)
		cur.Close()
		return nil, e
	}
	return res, nil
}

func (r *reading) start(cur *cursor) (*store.Result, error) {
	fields := store.Columns(r.q)
	types := make([]record.Type, len(r.main.Out))
	for i := range types {
		types[i] = r.main.Out[i].Type
	}
	types = types[:len(fields)]
	cur.out = cur.out[:len(fields)]
	res := &store.Result{Total: -1}
	page := r.q.Query != nil && r.q.Query.Limit >= 0 && r.q.Query.Limit <= maxPage
	if r.count != nil && !page {
		// The count's statement stays open until the rows have begun, so that both see the same state of the database.
		total, st, err := cur.total(r)
		if err != nil {
			return nil, err
		}
		defer cur.conn.release(st)
		res.Total = total
	}
	if err := cur.open(r); err != nil {
		return nil, err
	}
	if cur.pool != nil && (r.count == nil || !page) {
		// The first row is fetched now: what is wrong with the statement is the read's error, not the stream's.
		cur.ahead, cur.more = cur.fetch()
		if cur.err != nil {
			return nil, cur.err
		}
		cur.peeked = true
		res.Rows = record.StreamRows(fields, types, cur)
		return res, nil
	}
	rows := record.NewRows(fields, types)
	n, limit := int64(0), int64(-1)
	if r.q.Query != nil {
		limit = r.q.Query.Limit
	}
	for limit < 0 || n < limit {
		row, ok := cur.fetch()
		if !ok {
			break
		}
		rows.Append(row)
		n++
	}
	if cur.err != nil {
		return nil, cur.err
	}
	if r.count != nil && page {
		if offset := r.q.Query.Offset; n < limit && (n > 0 || offset <= 0) && r.q.Query.Each == nil {
			res.Total = max(offset, 0) + n
		} else {
			// The page's statement is still open: the count sees the same state.
			total, st, err := cur.total(r)
			if err != nil {
				return nil, err
			}
			cur.conn.release(st)
			res.Total = total
		}
	}
	res.Rows = rows
	return res, cur.Close()
}

// cursor feeds a streaming Rows.
type cursor struct {
	conn   *conn
	pool   *pool
	ctx    context.Context
	rec    *telemetry.Recorder
	table  *store.Read // nil: an operator's statement
	st     *prepared
	out    []store.Output
	row    []record.Value
	ahead  []record.Value
	more   bool
	peeked bool
	n      int
	spent  time.Duration
	err    error
	closed bool
}

// open prepares and binds the read.
func (c *cursor) open(r *reading) (err error) {
	begin := time.Now()
	if c.st, err = c.conn.prepare(r.main.SQL); err != nil {
		return err
	}
	if err := c.conn.bindArgs(c.st, r.main, r.args); err != nil {
		return err
	}
	c.row = make([]record.Value, len(c.out))
	c.spent = time.Since(begin)
	return nil
}

// total runs the count. The statement is left open at its row, and is the caller's to release.
func (c *cursor) total(r *reading) (int64, *prepared, error) {
	begin := time.Now()
	st, err := c.conn.prepare(r.count.SQL)
	if err != nil {
		return 0, nil, err
	}
	if err = c.conn.bindArgs(st, r.count, r.tally); err == nil {
		if st.Step() {
			n := st.ColumnInt64(0)
			c.rec.Statement(time.Since(begin))
			return n, st, nil
		}
		err = st.Err()
	}
	c.conn.release(st)
	return 0, nil, err
}

// Rows are timed one by one up to timedRows, then every sampleth for all of them: two looks at the clock are a fifth of
// the time that a row takes.
const (
	timedRows = 32
	sample    = 16
)

// fetch moves to the next row.
func (c *cursor) fetch() ([]record.Value, bool) {
	c.n++
	timed := c.n <= timedRows || c.n%sample == 0
	var begin time.Time
	if timed {
		begin = time.Now()
		c.conn.until.at = begin.Add(c.conn.until.timeout)
	}
	ok := c.st.Step()
	if ok {
		for i := range c.out {
			c.row[i] = column(c.st, i, c.out[i].Type)
		}
	}
	if timed {
		d := time.Since(begin)
		if c.n > timedRows {
			d *= sample
		}
		c.spent += d
	}
	if !ok {
		c.err = c.st.Err()
		return nil, false
	}
	return c.row, true
}

// Next is the next row, valid until the following call.
func (c *cursor) Next() ([]record.Value, bool) {
	if c.closed {
		return nil, false
	}
	if c.peeked {
		c.peeked = false
		if c.more {
			return c.ahead, true
		}
	} else if row, ok := c.fetch(); ok {
		return row, true
	}
	if c.err != nil {
		if c.table == nil {
			c.err = c.conn.translatePlain(c.ctx, c.err, c.st.SQL())
		} else {
			c.err = c.conn.translate(c.ctx, c.err, c.table.Table)
		}
	}
	// The end is known: the connection serves the next one, whether or not Close comes soon.
	c.Close()
	return nil, false
}

// Err is what ended the rows early.
func (c *cursor) Err() error { return c.err }

// Close ends the read and gives its connection back.
func (c *cursor) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	if c.st != nil {
		c.conn.release(c.st)
		c.rec.Statement(c.spent)
	}
	c.conn.plain = false
	if c.pool != nil {
		c.conn.unlimit()
		c.pool.put(c.conn)
	}
	return nil
}
