package gate

import (
	"container/list"
	"context"
	"fmt"
	"sync"
	"time"
)

// Budget counts the bytes held for clients against one limit. Whoever knows what it needs reserves it before, and may wait for it,
// first come first served; whoever finds out while reading grows its hold, and does not wait.
type Budget struct {
	mu             sync.Mutex
	cfg            BudgetConfig
	used, maxUsed  int64
	waiting        list.List // of *Hold
	maxWaiting     int
	rejected, left uint64
}

// Hold is bytes counted against a budget. A hold belongs to one request and is not for concurrent use, but for Release.
type Hold struct {
	budget *Budget
	size   int64
	state  state
	ready  chan struct{} // closed when granted, or refused for good
	place  *list.Element
}

func newBudget(c BudgetConfig) *Budget { return &Budget{cfg: c} }

// Reserve counts n bytes, waiting for them if it must. The error is a [*BudgetError], or wraps the cause of ctx if ctx ended
// first. A negative n counts as 0.
func (b *Budget) Reserve(ctx context.Context, n int64) (*Hold, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("reserve %d bytes: %w", n, context.Cause(ctx))
	}
	h := &Hold{budget: b, size: max(n, 0)}
	b.mu.Lock()
	switch {
	case h.size <= b.cfg.Limit-b.used && b.waiting.Len() == 0, h.size == 0:
		b.grant(h)
		b.mu.Unlock()
		return h, nil
	case h.size > b.cfg.Limit, b.waiting.Len() >= b.cfg.Queue:
		defer b.mu.Unlock()
		return nil, b.reject(h.size)
	}
	h.ready = make(chan struct{})
	h.place = b.waiting.PushBack(h)
	b.maxWaiting = max(b.maxWaiting, b.waiting.Len())
	wait := b.cfg.Wait
	b.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-h.ready:
	case <-timer.C:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		b.left++
		b.drop(h)
		return nil, fmt.Errorf("wait for %d bytes: %w", h.size, context.Cause(ctx))
	case h.state == held:
		return h, nil
	default:
		b.drop(h)
		return nil, b.reject(h.size)
	}
}

func (b *Budget) grant(h *Hold) {
	h.state = held
	b.used += h.size
	b.maxUsed = max(b.maxUsed, b.used)
	if h.ready != nil {
		close(h.ready)
	}
}

// drop ends a hold in whatever state it is.
func (b *Budget) drop(h *Hold) {
	switch h.state {
	case waiting:
		b.waiting.Remove(h.place)
	case held:
		b.used -= h.size
	}
	h.state = gone
	b.wake()
}

// wake serves the line from its head. The first that does not fit holds up the rest: otherwise small ones would starve it.
func (b *Budget) wake() {
	for e := b.waiting.Front(); e != nil; e = b.waiting.Front() {
		h := e.Value.(*Hold)
		if h.size > b.cfg.Limit {
			b.waiting.Remove(e) // the limit shrank below it: it would hold up the line for ever
			h.state = gone
			close(h.ready)
			continue
		}
		if h.size > b.cfg.Limit-b.used {
			return
		}
		b.waiting.Remove(e)
		b.grant(h)
	}
}

func (b *Budget) reconfigure(c BudgetConfig) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cfg = c
	b.wake()
}

// Grow counts n more bytes, at once or not at all: holders that waited for each other's bytes would wait for ever. It goes
// before those who wait, because a holder that finishes gives everything back.
func (h *Hold) Grow(n int64) error {
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.state != held {
		return fmt.Errorf("grow by %d bytes: the hold is released", n)
	}
	n = max(n, 0)
	if h.size > b.cfg.Limit-n {
		return b.reject(h.size + n) // never, however long anybody waits
	}
	if n > b.cfg.Limit-b.used {
		return b.reject(n)
	}
	h.size += n
	b.used += n
	b.maxUsed = max(b.maxUsed, b.used)
	return nil
}

// Take counts n bytes that are there already, even beyond the limit: those who come later wait until they are given back.
func (b *Budget) Take(n int64) *Hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := &Hold{budget: b, size: max(n, 0)}
	b.grant(h)
	return h
}

// Resize makes the hold n bytes, even beyond the limit: for what is there already, and took the place of what was held before.
func (h *Hold) Resize(n int64) {
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.state != held {
		return
	}
	n = max(n, 0)
	b.used += n - h.size
	h.size = n
	b.maxUsed = max(b.maxUsed, b.used)
	b.wake()
}

// Shrink gives back n bytes, at most all of them.
func (h *Hold) Shrink(n int64) {
	b := h.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.state != held {
		return
	}
	n = min(max(n, 0), h.size)
	h.size -= n
	b.used -= n
	b.wake()
}

// Release gives back all bytes. Only the first call counts, and a nil hold holds nothing.
func (h *Hold) Release() {
	if h == nil {
		return
	}
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	if h.state == held {
		h.budget.drop(h)
	}
}

// Size returns the bytes held.
func (h *Hold) Size() int64 {
	h.budget.mu.Lock()
	defer h.budget.mu.Unlock()
	if h.state != held {
		return 0
	}
	return h.size
}

// BudgetError says that bytes were not granted.
type BudgetError struct {
	Want, Used, Limit int64
	Waiting, Queue    int
	Setting           string
}

// TooLarge reports that no wait would have helped: more was wanted than the whole budget.
func (e *BudgetError) TooLarge() bool { return e.Want > e.Limit }

func (e *BudgetError) Error() string {
	if e.TooLarge() {
		return fmt.Sprintf("byte budget: %d bytes wanted, more than all %d; see %s", e.Want, e.Limit, e.Setting)
	}
	return fmt.Sprintf("byte budget: %d bytes wanted, %d of %d held, %d of %d waiting; see %s",
		e.Want, e.Used, e.Limit, e.Waiting, e.Queue, e.Setting)
}

func (b *Budget) reject(want int64) error {
	b.rejected++
	return &BudgetError{
		Want: want, Used: b.used, Limit: b.cfg.Limit, Waiting: b.waiting.Len(), Queue: b.cfg.Queue,
		Setting: "gate.bytes.limit",
	}
}

// BudgetStats are the figures of the byte budget.
type BudgetStats struct {
	Limit, Used, MaxUsed       int64 // bytes
	Queue, Waiting, MaxWaiting int   // requests
	Rejected, Left             uint64
}

// Stats returns the figures of the budget.
func (b *Budget) Stats() BudgetStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	return BudgetStats{
		Limit: b.cfg.Limit, Used: b.used, MaxUsed: b.maxUsed,
		Queue: b.cfg.Queue, Waiting: b.waiting.Len(), MaxWaiting: b.maxWaiting,
		Rejected: b.rejected, Left: b.left,
	}
}
