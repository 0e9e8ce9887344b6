package remote

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/telemetry"
)

var streaming = &grpc.StreamDesc{StreamName: "Stream", ServerStreams: true}

// Stream runs a unit of one list at a backend. The rows of its outcome stream: the caller closes them.
func (c *Client) Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	u = with(snap, u)
	rec := telemetry.From(ctx)
	leave := rec.Enter(telemetry.Wire)
	var cur *cursor
	fail := c.try(ctx, repeatable(u), func(ctx context.Context, b *backend) (err error) {
		cur, err = c.open(ctx, b, u)
		return err
	})
	leave()
	if fail != nil {
		c.freshen(ctx, fail.err)
		return record.Outcome{Err: fail.err, Unserviced: !fail.begun, Total: -1}
	}
	cur.rec = rec
	head := cur.frame.head
	out := head.Outcome
	if cur.frame.tail != nil {
		cur.ended()
	}
	if !head.Rows {
		cur.Close()
		return out
	}
	cur.row = make([]record.Value, len(head.Fields))
	cur.rest = cur.frame.rows
	out.Rows = record.StreamRows(head.Fields, head.Types, cur)
	return out
}

// open sends a unit and reads the first frame of what comes back.
func (c *Client) open(ctx context.Context, b *backend, u *record.Unit) (*cursor, error) {
	ctx, cancel := context.WithCancel(ctx)
	cur := &cursor{c: c, b: b, ctx: ctx, cancel: cancel}
	b.outstanding.Add(1)
	stream, err := b.conn.NewStream(ctx, streaming, "/"+service+"/Stream")
	if err == nil {
		cur.stream = stream
		if err = stream.SendMsg(&plain[record.Unit]{*u}); err == nil {
			err = stream.CloseSend()
		}
		if err == nil || errors.Is(err, io.EOF) { // EOF: the status is read below
			err = stream.RecvMsg(&cur.frame)
		}
	}
	if err == nil && cur.frame.head == nil {
		err = errFrame
	}
	if err != nil {
		cur.Close()
		return nil, err
	}
	return cur, nil
}

// cursor is rows on their way from a backend. It belongs to the request's goroutine.
type cursor struct {
	c      *Client
	b      *backend
	ctx    context.Context
	cancel context.CancelFunc
	stream grpc.ClientStream
	rec    *telemetry.Recorder

	frame  frame
	rest   []byte // of the frame's rows
	row    []record.Value
	err    error
	done   bool // the tail was read, or the stream is broken
	closed bool
}

// Next is the next row. It and its texts are views of the frame.
func (c *cursor) Next() ([]record.Value, bool) {
	for len(c.rest) == 0 {
		if c.done || c.closed {
			return nil, false
		}
		c.receive()
	}
	rest, err := record.DecodeRow(c.rest, c.row)
	if err != nil || len(c.row) == 0 {
		c.rest, c.done, c.err = nil, true, errFrame
		return nil, false
	}
	c.rest = rest
	return c.row, true
}

// receive reads the next frame.
func (c *cursor) receive() {
	begin := time.Now()
	err := c.stream.RecvMsg(&c.frame)
	c.rec.Move(telemetry.Wire, time.Since(begin))
	if err != nil {
		// Rows were given out already, so it is not tried again.
		a := &attempt{}
		a.sent.Store(true)
		_, e := c.c.judge(c.ctx, c.b, a, err)
		if e.Kind == record.Unavailable {
			e = record.Errorf(record.Unavailable, "", "the backend was lost in the middle of the rows").Because(err)
		}
		c.done, c.err = true, e
		return
	}
	c.rest = c.frame.rows
	if c.frame.tail != nil {
		c.ended()
	}
}

// ended takes the tail, behind which there is only the end of the stream.
func (c *cursor) ended() {
	c.done = true
	if e := c.frame.tail.Err; e != nil {
		c.err = e
	}
	c.frame.tail.Figures.book(c.rec)
	if err := c.stream.RecvMsg(&frame{}); err == nil {
		c.rest, c.err = nil, errFrame
	}
}

// Err is what ended the rows early.
func (c *cursor) Err() error {
	if len(c.rest) > 0 {
		return nil
	}
	return c.err
}

// Close ends the work at the backend, if it is not at its end.
func (c *cursor) Close() error {
	if !c.closed {
		c.closed = true
		c.cancel()
		c.b.outstanding.Add(-1)
	}
	return nil
}
