package main

import (
	"math"
	"testing"
)

func TestMemoryLimit_FollowsTheByteBudgetUnlessItIsSet(t *testing.T) {
	f := func(setting, budget, want int64) {
		t.Helper()
		if got := memoryLimit(setting, budget); got != want {
			t.Errorf("setting %d, budget %d: %d, want %d", setting, budget, got, want)
		}
	}
	f(0, 32<<20, 80<<20)
	f(1<<30, 32<<20, 1<<30)
	f(-1, 32<<20, math.MaxInt64)
	f(0, math.MaxInt64-1, math.MaxInt64)
}
