package gate

import (
	"context"
	"fmt"
	"os"
)

// wake lets the goroutine that waits for a granted slot go on.
//
// While run runs it does so by way of a pipe. A goroutine that wakes another puts it at the head of its processor's line, and
// Go's scheduler looks for what has come in from the network only when that line is empty. Under a flood each request
// that ends wakes the next that waits here, the line is never empty, and the requests of others lie unread in their sockets for
// a hundred milliseconds, however fair the turns are. Through the pipe a granted slot comes in from outside like they do.
func (d *door) wake(s *Slot) {
	if d.bell == nil {
		close(s.ready)
		return
	}
	d.woken = append(d.woken, s)
	if len(d.woken) == 1 {
		// The pipe is empty, so this does not block. It fails when run has ended, which then wakes them itself.
		_, _ = d.bell.Write([]byte{0})
	}
}

// run wakes those who were granted a slot.
func (d *door) run(ctx context.Context) error {
	hear, bell, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	d.mu.Lock()
	d.bell = bell
	d.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { hear.Close() })
	defer stop()
	var one [1]byte
	for {
		_, err := hear.Read(one[:])
		d.mu.Lock()
		for i, s := range d.woken {
			close(s.ready)
			d.woken[i] = nil
		}
		d.woken = d.woken[:0]
		if err != nil {
			d.bell = nil
			d.mu.Unlock()
			bell.Close()
			hear.Close()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("gate: %w", err)
		}
		d.mu.Unlock()
	}
}
