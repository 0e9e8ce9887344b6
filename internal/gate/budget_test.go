package gate

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func testBudget(limit int64, queue int) *Budget {
	return newBudget(BudgetConfig{Limit: limit, Queue: queue, Wait: 10 * time.Second})
}

func mustReserve(t *testing.T, b *Budget, n int64) *Hold {
	t.Helper()
	h, err := b.Reserve(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func wantBudgetError(t *testing.T, err error, tooLarge bool, text string) {
	t.Helper()
	var e *BudgetError
	if !errors.As(err, &e) || e.TooLarge() != tooLarge || e.Error() != text {
		t.Fatalf("got %v, want %s", err, text)
	}
}

func TestBudget_MoreThanAllIsRefusedAtOnce(t *testing.T) {
	b := testBudget(100, 5)
	_, err := b.Reserve(t.Context(), 101)
	wantBudgetError(t, err, true, "byte budget: 101 bytes wanted, more than all 100; see gate.bytes.limit")
}

func TestBudget_WaitersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100, 2)
		first := mustReserve(t, b, 60)
		var order []int64
		reserve := func(n int64) {
			go func() {
				h, err := b.Reserve(t.Context(), n)
				if err != nil {
					t.Error(err)
				}
				order = append(order, n) // one after another: each waits for the one before
				time.Sleep(time.Second)
				h.Release()
			}()
			synctest.Wait()
		}
		reserve(80)
		reserve(30) // would fit now, but must not starve the 80 before it
		if len(order) != 0 {
			t.Fatalf("%v overtook", order)
		}
		_, err := b.Reserve(t.Context(), 1)
		wantBudgetError(t, err, false, "byte budget: 1 bytes wanted, 60 of 100 held, 2 of 2 waiting; see gate.bytes.limit")
		first.Release()
		first.Release()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(order) != 2 || order[0] != 80 || order[1] != 30 {
			t.Errorf("order %v, want 80 and then 30", order)
		}
		if s := b.Stats(); s.Used != 0 || s.MaxUsed != 80 || s.MaxWaiting != 2 || s.Rejected != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestBudget_WaitEndsAtItsLimitOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100, 2)
		h := mustReserve(t, b, 100)
		start := time.Now()
		_, err := b.Reserve(t.Context(), 1)
		wantBudgetError(t, err, false, "byte budget: 1 bytes wanted, 100 of 100 held, 0 of 2 waiting; see gate.bytes.limit")
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("waited %v, want 10s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Reserve(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		h.Release()
		if s := b.Stats(); s.Used != 0 || s.Waiting != 0 || s.Left != 1 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestHold_GrowsAtOnceOrNotAtAll(t *testing.T) {
	b := testBudget(100, 2)
	other := mustReserve(t, b, 10)
	defer other.Release()
	h := mustReserve(t, b, 50)
	if err := h.Grow(40); err != nil {
		t.Fatal(err)
	}
	wantBudgetError(t, h.Grow(1), false, "byte budget: 1 bytes wanted, 100 of 100 held, 0 of 2 waiting; see gate.bytes.limit")
	h.Shrink(1000)
	if h.Size() != 0 || b.Stats().Used != 10 {
		t.Errorf("size %d, used %d after giving all back", h.Size(), b.Stats().Used)
	}
	h.Release()
	if h.Grow(1) == nil {
		t.Error("a released hold grew")
	}
	(*Hold)(nil).Release()
}

func TestHold_GrowingBeyondTheWholeBudgetIsTooLarge(t *testing.T) {
	h := mustReserve(t, testBudget(100, 2), 60)
	wantBudgetError(t, h.Grow(41), true, "byte budget: 101 bytes wanted, more than all 100; see gate.bytes.limit")
}

func TestBudget_WhatIsThereAlreadyCountsBeyondTheLimitAndOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100, 2)
		answer := b.Take(150)
		body := mustReserve(t, b, 0)
		body.Resize(20)
		granted := make(chan *Hold)
		go func() {
			h, err := b.Reserve(t.Context(), 10)
			if err != nil {
				t.Error(err)
			}
			granted <- h
		}()
		synctest.Wait()
		if s := b.Stats(); s.Used != 170 || s.MaxUsed != 170 || s.Waiting != 1 {
			t.Errorf("%+v", s)
		}
		answer.Resize(70)
		(<-granted).Release()
		answer.Release()
		body.Release()
		body.Resize(50) // released: nothing
		if s := b.Stats(); s.Used != 0 {
			t.Errorf("%d bytes are left", s.Used)
		}
	})
}

func TestBudget_ShrinkingRefusesWhatCanNeverFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBudget(100, 5)
		h := mustReserve(t, b, 50)
		errs := make(chan error, 2)
		for _, n := range []int64{90, 10} {
			go func() {
				h, err := b.Reserve(t.Context(), n)
				h.Release()
				errs <- err
			}()
			synctest.Wait()
		}
		b.reconfigure(BudgetConfig{Limit: 60, Queue: 5, Wait: time.Hour})
		start := time.Now()
		var tooLarge, ok int
		for range 2 {
			var e *BudgetError
			switch err := <-errs; {
			case err == nil:
				ok++
			case errors.As(err, &e) && e.TooLarge():
				tooLarge++
			}
		}
		if tooLarge != 1 || ok != 1 || time.Since(start) != 0 {
			t.Errorf("%d refused, %d granted after %v; want one each at once", tooLarge, ok, time.Since(start))
		}
		h.Release()
	})
}

func TestBudget_NeverExceedsItsLimit(t *testing.T) {
	b := newBudget(BudgetConfig{Limit: 1000, Queue: 8, Wait: 200 * time.Microsecond})
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 3))
			for range 500 {
				h, err := b.Reserve(t.Context(), rnd.Int64N(400))
				if err == nil && h.Grow(rnd.Int64N(100)) == nil {
					h.Shrink(rnd.Int64N(200))
				}
				h.Release()
				if s := b.Stats(); s.Used > s.Limit || s.Used < 0 || s.Waiting > s.Queue {
					t.Errorf("stats %+v", s)
				}
			}
		})
	}
	wg.Wait()
	if s := b.Stats(); s.Used != 0 || s.Waiting != 0 || s.MaxUsed > s.Limit || s.MaxUsed == 0 {
		t.Errorf("stats %+v", s)
	}
}
