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

// collectAt is GOGC where the environment sets none. A server's live memory is small beside what requests use and drop, so that
// with Go's own 100 a tenth of the processors' time goes to collecting.
const collectAt = 300

// tuneCollector puts limits.memory in force. By the collector's own rule as much garbage as there is in use would stand, and more: 200
// bodies of 64 MiB made 700 MiB of a budget of 256. Where the environment says how to collect, it goes before.
func tuneCollector(setting, budget int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit(setting, budget))
	}
}
