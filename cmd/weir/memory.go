package main

import (
	"math"
	"os"
	"runtime/debug"
)

// beside is what a node takes beside the bytes that it holds for clients.
const beside = 48 << 20

// memoryLimit is the soft limit of limits.memory with a byte budget.
func memoryLimit(setting, budget int64) int64 {
	switch {
	case setting < 0, setting == 0 && budget > math.MaxInt64-beside:
		return math.MaxInt64
	case setting == 0:
		return budget + beside
	}
	return setting
}

// boundMemory puts limits.memory in force. Without it the collector would let as much garbage stand as there is live memory, and a
// flood of large bodies take three times the byte budget.
func boundMemory(setting, budget int64) {
	if os.Getenv("GOMEMLIMIT") == "" { // the runtime obeys it by itself
		debug.SetMemoryLimit(memoryLimit(setting, budget))
	}
}
