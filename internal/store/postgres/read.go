package postgres

import (
	"context"
	"time"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// Query runs a read on a connection of its own and streams its rows: the connection is held until Close.
func (s *Store) Query(ctx context.Context, q *store.Read) (*store.Result, error) {
	read, err := s.compile(q)
	if err != nil {
		return nil, err
	}
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	c, total, err := read.start(ctx, sessionOf(conn))
	if err != nil && broken(ctx, conn) {
		// It broke while it was idle, most likely, and a read does no harm when it is done twice.
		s.release(conn)
		if conn, err = s.acquire(ctx); err != nil {
			return nil, err
		}
		c, total, err = read.start(ctx, sessionOf(conn))
	}
	if err != nil {
		s.release(conn)
		return nil, translate(ctx, err, q.Table)
	}
	src := &stream{store: s, conn: conn, ctx: ctx, cursor: c}
	return &store.Result{Rows: record.StreamRows(read.fields, read.types, src), Total: total}, nil
}

// compiled is a read ready to run.
type compiled struct {
	steps  []step // the count of all records, if asked for, then the records
	fields []string
	types  []record.Type
}

func (s *Store) compile(q *store.Read) (*compiled, error) {
	main, count, args, countArgs, err := s.compiler.Read(q, nil, nil)
	if err != nil {
		return nil, err
	}
	r := &compiled{fields: store.Columns(q), types: make([]record.Type, len(main.Out))}
	for i := range main.Out {
		r.types[i] = main.Out[i].Type
	}
	if count != nil {
		r.steps = append(r.steps, step{st: count, args: countArgs})
	}
	r.steps = append(r.steps, step{st: main, args: args})
	return r, nil
}

// start runs the read and returns its cursor and the number of all records (-1 if not asked for).
func (r *compiled) start(ctx context.Context, s *session) (c *cursor, total int64, err error) {
	begin := time.Now()
	defer func() { telemetry.From(ctx).Statement(time.Since(begin)) }()
	if c, err = s.start(ctx, s.adopt(settings{}), r.steps...); err != nil {
		return nil, 0, err
	}
	if len(r.steps) == 1 {
		return c, -1, nil
	}
	if row, ok := c.next(); ok {
		total = row[0].N
	}
	if err := c.advance(); err != nil {
		c.close()
		return nil, 0, err
	}
	return c, total, nil
}

// stream feeds a streaming Rows and gives its connection back at the end.
type stream struct {
	store  *Store
	conn   lease
	ctx    context.Context // of the read, for the meaning of its errors
	cursor *cursor
	fault  func(error) *record.Error // nil: translate
	err    error
	done   bool
}

// Next is the next row.
func (s *stream) Next() ([]record.Value, bool) {
	if s.done {
		return nil, false
	}
	row, ok := s.cursor.next()
	if !ok {
		s.finish()
	}
	return row, ok
}

func (s *stream) finish() {
	s.done = true
	if err := s.cursor.close(); err != nil {
		if s.fault != nil {
			s.err = s.fault(err)
		} else {
			s.err = translate(s.ctx, err, nil)
		}
	}
	s.store.release(s.conn)
}

// Err is what ended the stream early.
func (s *stream) Err() error { return s.err }

// maxDrain is how many rows are read and thrown away to keep a connection whose reader stopped early; one with more to
// come is cheaper to open anew.
const maxDrain = 1000

// Close ends the stream.
func (s *stream) Close() error {
	if s.done {
		return nil
	}
	for range maxDrain {
		if !s.cursor.rr.NextRow() {
			s.finish()
			return nil
		}
	}
	s.done = true
	s.store.drop(s.conn)
	return nil
}
