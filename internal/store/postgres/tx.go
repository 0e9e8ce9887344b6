package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// tx is a write transaction. Commands that only mark it wait in pending for the next statement and travel with it.
type tx struct {
	store   *Store
	conn    lease
	session *session
	want    settings
	memory  int64 // that the rows of one Run may take; 0: no bound
	pending []string
	begun   bool // BEGIN was sent
	done    bool
}

// All marks have one name: the server knows which is the last.
const (
	begin    = "BEGIN"
	mark     = "SAVEPOINT w"
	rollback = "ROLLBACK TO SAVEPOINT w"
	forget   = "RELEASE SAVEPOINT w"
)

// Begin takes a connection for a write transaction. Nothing is sent before its first statement.
func (s *Store) Begin(ctx context.Context) (store.Tx, error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &tx{store: s, conn: conn, session: sessionOf(conn), pending: []string{begin}}, nil
}

// start runs a statement after what is pending. Its cursor must be closed before the next.
func (t *tx) start(ctx context.Context, steps ...step) (*cursor, error) {
	if t.done {
		return nil, record.Errorf(record.Internal, "", "the transaction is over")
	}
	before := t.before()
	if t.session.pg.TxStatus() == 'E' && len(before) > 0 {
		// Preparing is refused until the failed part is undone.
		if err := t.session.pg.Exec(ctx, strings.Join(before, "; ")).Close(); err != nil {
			return nil, err
		}
		before = nil
	}
	c, err := t.session.start(ctx, before, steps...)
	if err != nil && !t.begun && t.conn.pooled != nil && broken(ctx, t.conn) {
		// It broke while it was idle, most likely. Nothing was committed, so the transaction begins anew.
		t.store.release(t.conn)
		conn, again := t.store.acquire(ctx)
		if again != nil {
			t.done = true
			return nil, again
		}
		t.conn, t.session = conn, sessionOf(conn)
		c, err = t.session.start(ctx, t.before(), steps...)
	}
	if err != nil && t.begun == (t.session.pg.TxStatus() != 'I') {
		if _, bad := err.(*record.Error); bad || !t.begun {
			return nil, err // nothing was sent
		}
	}
	t.pending, t.begun = t.pending[:0], true
	return c, err
}

// before is what travels ahead of the next statement. The session's settings come after BEGIN, so that they hold if and only
// if the transaction is committed.
func (t *tx) before() []string {
	if t.begun {
		return t.pending
	}
	set := t.session.adopt(t.want)
	if len(set) == 0 {
		return t.pending
	}
	return slices.Concat(t.pending[:1], set, t.pending[1:])
}

// run is start, with the statement's time counted, f called for each row, and the error translated.
func (t *tx) run(ctx context.Context, table *catalog.Table, s step, f func(row []record.Value) error) error {
	began := time.Now()
	c, err := t.start(ctx, s)
	if err == nil {
		for row, ok := c.next(); ok && err == nil; row, ok = c.next() {
			err = f(row)
		}
		if e := c.close(); err == nil {
			err = e
		}
	}
	telemetry.From(ctx).Statement(time.Since(began))
	if err != nil {
		return translate(ctx, err, table)
	}
	return nil
}

// Query reads within the transaction. The rows are held in memory, so that the connection is free for what follows.
func (t *tx) Query(ctx context.Context, q *store.Read) (*store.Result, error) {
	read, err := t.store.compile(q)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	defer func() { telemetry.From(ctx).Statement(time.Since(began)) }()
	c, err := t.start(ctx, read.steps...)
	if err != nil {
		return nil, translate(ctx, err, q.Table)
	}
	total := int64(-1)
	if len(read.steps) == 2 {
		if row, ok := c.next(); ok {
			total = row[0].N
		}
		if err := c.advance(); err != nil {
			c.close()
			return nil, translate(ctx, err, q.Table)
		}
	}
	rows := record.NewRows(read.fields, read.types)
	for row, ok := c.next(); ok; row, ok = c.next() {
		rows.Append(row)
	}
	if err := c.close(); err != nil {
		return nil, translate(ctx, err, q.Table)
	}
	return &store.Result{Rows: rows, Total: total}, nil
}

// Mark sets the point that Back returns to.
func (t *tx) Mark(context.Context) error {
	t.pending = append(t.pending, mark)
	return nil
}

// Back undoes everything since the last Mark and keeps that mark.
func (t *tx) Back(context.Context) error {
	if n := len(t.pending); n > 0 && (t.pending[n-1] == mark || t.pending[n-1] == rollback) {
		return nil // nothing was done since
	}
	t.pending = append(t.pending, rollback)
	return nil
}

// Drop forgets the last Mark and keeps what was done since.
func (t *tx) Drop(context.Context) error {
	if n := len(t.pending); n > 0 && t.pending[n-1] == mark {
		t.pending = t.pending[:n-1]
		return nil
	}
	t.pending = append(t.pending, forget)
	return nil
}

// commitLimit is how long a COMMIT may take when statements have no limit.
const commitLimit = 30 * time.Second

// Commit makes the transaction's work durable. Once it is sent it is not canceled with ctx. When the connection is lost
// meanwhile, the error is Unavailable and says that the outcome is unknown.
func (t *tx) Commit(ctx context.Context) error {
	if t.done {
		return record.Errorf(record.Internal, "", "the transaction is over")
	}
	if !t.begun {
		t.end()
		return nil
	}
	defer t.Rollback()
	if ctx.Err() != nil {
		return ended(ctx, ctx.Err())
	}
	limit := t.store.opts.Statement
	if limit <= 0 {
		limit = commitLimit
	}
	// From here on the work may be done, so the caller must learn whether it is.
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	began := time.Now()
	results, err := t.session.pg.Exec(wait, strings.Join(append(t.pending, "COMMIT"), "; ")).ReadAll()
	telemetry.From(ctx).Statement(time.Since(began))
	var pg *pgconn.PgError
	switch {
	case err != nil && asPgError(err, &pg) && !strings.HasPrefix(pg.Code, "57P") && !strings.HasPrefix(pg.Code, "08"):
		return translate(wait, err, nil)
	case err != nil:
		return record.Errorf(record.Unavailable, "",
			"the connection to the database was lost during COMMIT: whether the change was written is unknown").Because(err)
	case results[len(results)-1].CommandTag.String() != "COMMIT":
		return record.Errorf(record.Internal, "", "nothing was written: the transaction had failed before its COMMIT")
	}
	t.session.settle()
	t.end()
	return nil
}

// Rollback ends the transaction; after Commit it does nothing.
func (t *tx) Rollback() {
	if t.done {
		return
	}
	if pg := t.session.pg; !pg.IsClosed() && !pg.IsBusy() && pg.TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = pg.Exec(ctx, "ROLLBACK").Close() // the pool drops a connection that is still in a transaction
	}
	t.end()
}

func (t *tx) end() {
	t.done = true
	t.store.release(t.conn)
}
