package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// conn is one connection with its prepared statements. It belongs to whoever took it from its pool.
type conn struct {
	db      *sqlite3.Conn
	stmts   map[text]*prepared
	used    int64 // counts uses, to find the statement unused for longest
	until   deadline
	scratch []byte
	broken  bool
	plain   bool // what is prepared now is the operator's: authorize looks at it
}

// text is the text of a statement. The operator's are kept apart from ours, even where they read alike: what ours may do was
// not asked.
type text struct {
	sql   string
	plain bool
}

// prepared is one prepared statement of a connection.
type prepared struct {
	*sqlite3.Stmt
	text  text
	names []string // of the columns of an operator's statement
	used  int64
	busy  bool // a cursor is reading it
}

// maxPrepared bounds the statements kept prepared; each takes a few KiB.
const maxPrepared = 200

// The pragmas of a commit that reaches the disk before it returns, and of one that need not.
const (
	durable = "synchronous = FULL"
	relaxed = "synchronous = NORMAL"
)

func openConn(o *Options, readOnly bool) (*conn, error) {
	db, err := sqlite3.OpenFlags(o.Path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, stmts: map[text]*prepared{}}
	c.until.Context = context.Background()
	if err := c.setUp(o, readOnly); err != nil {
		db.Close()
		return nil, err
	}
	return c, nil
}

// maxExprDepth bounds the depth of an expression. SQLite's own default of 1,000 is more than the stack of this build takes: nested
// calls overflow it from 200 on, without notice, and the connection is lost.
const maxExprDepth = 200

func (c *conn) setUp(o *Options, readOnly bool) error {
	if err := c.db.BusyTimeout(o.Wait); err != nil {
		return err
	}
	if err := register(c.db); err != nil {
		return err
	}
	if err := c.db.SetAuthorizer(c.authorize); err != nil {
		return err
	}
	c.db.Limit(sqlite3.LIMIT_EXPR_DEPTH, maxExprDepth)
	pragmas := []string{fmt.Sprintf("cache_size = -%d", o.Cache), "foreign_keys = ON", durable}
	switch {
	case readOnly && vfs.SupportsSharedMemory:
		pragmas = append(pragmas, "query_only = ON")
	case !vfs.SupportsSharedMemory:
		pragmas = append(pragmas, "locking_mode = EXCLUSIVE", "journal_mode = WAL")
	default:
		pragmas = append(pragmas, "journal_mode = WAL", "journal_size_limit = 67108864")
	}
	for _, p := range pragmas {
		if err := c.db.Exec("PRAGMA " + p); err != nil {
			return fmt.Errorf("PRAGMA %s: %w", p, err)
		}
	}
	return nil
}

func (c *conn) close() error {
	c.forget()
	return c.db.Close()
}

// forget finalizes the prepared statements that nobody is reading.
func (c *conn) forget() {
	for sql, p := range c.stmts {
		if !p.busy {
			p.Close()
			delete(c.stmts, sql)
		}
	}
}

// prepare finds or prepares a statement. It is the caller's until release.
func (c *conn) prepare(sql string) (*prepared, error) {
	c.used++
	key := text{sql, c.plain}
	p := c.stmts[key]
	if p != nil && !p.busy {
		p.used, p.busy = c.used, true
		return p, nil
	}
	stmt, _, err := c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, sql)
	}
	fresh := &prepared{Stmt: stmt, text: key, used: c.used, busy: true}
	if p != nil {
		return fresh, nil // a second cursor over the same text: not kept
	}
	if len(c.stmts) >= maxPrepared {
		c.evict()
	}
	c.stmts[key] = fresh
	return fresh, nil
}

// evict finalizes the statement unused for longest.
func (c *conn) evict() {
	var oldest *prepared
	for _, p := range c.stmts {
		if !p.busy && (oldest == nil || p.used < oldest.used) {
			oldest = p
		}
	}
	if oldest != nil {
		oldest.Close()
		delete(c.stmts, oldest.text)
	}
}

// release gives a statement back. The error is the statement's own, which its user has seen already.
func (c *conn) release(p *prepared) {
	p.busy = false
	if c.stmts[p.text] != p {
		p.Close()
		return
	}
	p.Reset()
}

// exec runs a statement that takes nothing and returns nothing.
func (c *conn) exec(sql string) error {
	p, err := c.prepare(sql)
	if err != nil {
		return err
	}
	defer c.release(p)
	return p.Exec()
}

// deadline is a context that also ends when a statement has run for too long. SQLite asks it every thousand steps of its
// machine and at every row, so that no timer need be armed for each statement.
type deadline struct {
	context.Context
	at      time.Time
	timeout time.Duration
	passed  bool
}

// Err is the context's error, or DeadlineExceeded when the statement ran for too long.
func (d *deadline) Err() error {
	if err := d.Context.Err(); err != nil {
		return err
	}
	if d.passed {
		return context.DeadlineExceeded
	}
	if d.timeout > 0 && time.Now().After(d.at) {
		d.passed = true
		return context.DeadlineExceeded
	}
	return nil
}

// limit lets ctx interrupt the statements that follow, and bounds their time.
func (c *conn) limit(ctx context.Context, timeout time.Duration) {
	c.until = deadline{Context: ctx, timeout: timeout, at: time.Now().Add(timeout)}
	c.db.SetInterrupt(&c.until)
}

// unlimit ends limit.
func (c *conn) unlimit() {
	c.until = deadline{Context: context.Background()}
	c.db.SetInterrupt(context.Background())
}
