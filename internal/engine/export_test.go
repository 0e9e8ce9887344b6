package engine

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// WaitForGathered waits until n writes wait for a statement under way.
func (e *Engine) WaitForGathered(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		e.gather.mu.Lock()
		got := 0
		for _, l := range e.gather.lines {
			got += len(l.waiting)
		}
		e.gather.mu.Unlock()
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d writes wait, not %d", got, n)
		}
	}
}

// TrimTokens is what the trimmer does when it is due.
func (e *Engine) TrimTokens(ctx context.Context, before time.Time) error {
	return e.trimTokens(ctx, before)
}
