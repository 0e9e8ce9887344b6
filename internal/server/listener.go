package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// listener accepts at most so many connections at once; the rest wait in the kernel's line.
type listener struct {
	*net.TCPListener
	free   chan struct{}
	closed chan struct{}
	once   sync.Once
}

func newListener(l *net.TCPListener, max int) *listener {
	return &listener{TCPListener: l, free: make(chan struct{}, max), closed: make(chan struct{})}
}

// Accept waits for leave and then for a connection.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.TCPListener.AcceptTCP()
	if err != nil {
		<-l.free
		if e, ok := err.(net.Error); ok && e.Timeout() {
			err = net.ErrClosed // the deadline of drain
		}
		return nil, err
	}
	return &conn{TCPConn: c, leave: func() { <-l.free }}, nil
}

// lastCall is how long a draining listener still accepts: what the kernel has accepted on our behalf is taken in, not reset.
const lastCall = 50 * time.Millisecond

// drain takes in what stands in line and then closes.
func (l *listener) drain() {
	l.SetDeadline(time.Now().Add(lastCall))
	l.once.Do(func() { time.AfterFunc(lastCall, func() { close(l.closed); l.TCPListener.Close() }) })
}

// conn gives its place back once it is closed.
type conn struct {
	*net.TCPConn
	once  sync.Once
	leave func()
}

func (c *conn) Close() error {
	err := c.TCPConn.Close()
	c.once.Do(c.leave)
	return err
}

// conns counts the connections that are owed an answer: new ones, which may have sent a request, and those with one under way.
type conns struct {
	mu    sync.Mutex
	busy  map[net.Conn]struct{}
	empty chan struct{} // closed when somebody waits and nothing is busy
}

// note is http.Server's ConnState. Connections of HTTP/2 are not counted: they are told to go away properly by Shutdown.
func (c *conns) note(n net.Conn, state http.ConnState) {
	busy := state == http.StateNew || state == http.StateActive
	if t, ok := n.(*tls.Conn); ok && busy && state == http.StateActive && t.ConnectionState().NegotiatedProtocol == "h2" {
		busy = false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy == nil {
		c.busy = map[net.Conn]struct{}{}
	}
	if busy {
		c.busy[n] = struct{}{}
		return
	}
	delete(c.busy, n)
	if len(c.busy) == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// quiet waits until no connection is owed an answer and the listeners have made their last call, or until ctx ends.
func (c *conns) quiet(ctx context.Context) {
	last := time.NewTimer(2 * lastCall)
	defer last.Stop()
	select {
	case <-last.C:
	case <-ctx.Done():
		return
	}
	for {
		c.mu.Lock()
		if len(c.busy) == 0 {
			c.mu.Unlock()
			return
		}
		if c.empty == nil {
			c.empty = make(chan struct{})
		}
		empty := c.empty
		c.mu.Unlock()
		select {
		case <-empty:
		case <-ctx.Done():
			return
		}
	}
}
