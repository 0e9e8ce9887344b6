package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// pool is a bounded number of connections, opened when needed and handed out in the order that they were asked for. The
// connection given back last goes out first, so that a quiet system keeps few of them warm.
type pool struct {
	what string // read or write, for messages
	max  int
	wait time.Duration
	open func() (*conn, error)

	mu       sync.Mutex
	free     []*conn
	opened   int
	line     []chan *conn // a closed channel: open one yourself
	borrowed int64
	timeouts int64
	waited   time.Duration
	closed   bool
	quiet    *sync.Cond // all connections are back
}

func newPool(what string, limit int, wait time.Duration, open func() (*conn, error)) *pool {
	p := &pool{what: what, max: limit, wait: wait, open: open}
	p.quiet = sync.NewCond(&p.mu)
	return p
}

var errClosed = &record.Error{Kind: record.Unavailable, Msg: "the database is closed"}

// get takes a connection. When none comes in time the error is Unavailable and names the pool's figures.
func (p *pool) get(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, ended(err)
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	if n := len(p.free); n > 0 {
		c := p.free[n-1]
		p.free = p.free[:n-1]
		p.borrowed++
		p.mu.Unlock()
		return c, nil
	}
	if p.opened < p.max {
		p.opened++
		p.borrowed++
		p.mu.Unlock()
		return p.opening()
	}
	mine := make(chan *conn, 1)
	p.line = append(p.line, mine)
	wait := p.wait
	p.mu.Unlock()

	begin := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	var err error
	select {
	case c, ok := <-mine:
		p.waitedFor(ctx, begin)
		if !ok {
			return p.opening()
		}
		if c == nil {
			return nil, errClosed
		}
		return c, nil
	case <-ctx.Done():
		err = ended(ctx.Err())
	case <-timer.C:
		st := p.stats()
		err = record.Errorf(record.Unavailable, "",
			"no %s connection to the database came within %s: %s; see database.pool.wait and database.pool.max", p.what, wait, st).By(record.RulePool)
		p.mu.Lock()
		p.timeouts++
		p.mu.Unlock()
	}
	p.waitedFor(ctx, begin)
	p.leave(mine)
	return nil, err
}

func (p *pool) waitedFor(ctx context.Context, begin time.Time) {
	d := time.Since(begin)
	telemetry.From(ctx).Borrowed(d)
	p.mu.Lock()
	p.waited += d
	p.mu.Unlock()
}

// leave takes a waiter out of the line; a connection that reached it in the same moment goes on to the next.
func (p *pool) leave(mine chan *conn) {
	p.mu.Lock()
	for i, ch := range p.line {
		if ch == mine {
			p.line = append(p.line[:i], p.line[i+1:]...)
			p.mu.Unlock()
			return
		}
	}
	p.mu.Unlock()
	switch c, ok := <-mine; {
	case !ok:
		p.lost()
	case c != nil:
		p.put(c)
	}
}

// opening opens a connection whose place is taken already.
func (p *pool) opening() (*conn, error) {
	c, err := p.open()
	if err != nil {
		p.lost()
		var e *record.Error
		if errors.As(err, &e) {
			return nil, e
		}
		return nil, record.Errorf(record.Unavailable, "", "the database file cannot be opened").Because(err)
	}
	return c, nil
}

// resize changes how many connections there may be and how long to wait for one; 0 leaves either. Those too many are closed,
// the ones in use when they come back.
func (p *pool) resize(limit int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait > 0 {
		p.wait = wait
	}
	if limit > 0 {
		p.max = limit
	}
	for p.opened > p.max && len(p.free) > 0 {
		p.free[0].close()
		p.free = p.free[1:]
		p.opened--
	}
	for p.opened < p.max && len(p.line) > 0 {
		close(p.line[0])
		p.line = p.line[1:]
		p.opened++
		p.borrowed++
	}
}

// lost gives up the place of a connection that is no more; the next in line may open another.
func (p *pool) lost() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.line) > 0 && p.opened <= p.max {
		ch := p.line[0]
		p.line = p.line[1:]
		p.borrowed++
		close(ch)
		return
	}
	p.opened--
	p.quiet.Broadcast()
}

// put gives a connection back.
func (p *pool) put(c *conn) {
	if c.broken {
		c.close()
		p.lost()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opened > p.max {
		c.close()
		p.opened--
		p.quiet.Broadcast()
		return
	}
	if len(p.line) > 0 {
		ch := p.line[0]
		p.line = p.line[1:]
		p.borrowed++
		ch <- c
		return
	}
	p.free = append(p.free, c)
	p.quiet.Broadcast()
}

func (p *pool) stats() store.Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return store.Stats{
		Max: p.max, InUse: p.opened - len(p.free), Idle: len(p.free), Waiting: len(p.line),
		Borrowed: p.borrowed, Timeouts: p.timeouts, WaitTime: p.waited,
	}
}

// close turns away who waits, and closes the connections when all are back.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, ch := range p.line {
		ch <- nil
	}
	p.line = nil
	for len(p.free) < p.opened {
		p.quiet.Wait()
	}
	var err error
	for _, c := range p.free {
		if e := c.close(); err == nil {
			err = e
		}
	}
	p.free, p.opened = nil, 0
	return err
}

// ended is the error of a context that is over.
func ended(err error) *record.Error {
	if errors.Is(err, context.DeadlineExceeded) {
		return record.Errorf(record.Timeout, "", "the time allowed for the work is over").Because(err)
	}
	return record.Errorf(record.Canceled, "", "the caller went away").Because(err)
}
