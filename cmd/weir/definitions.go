package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"weir/internal/catalog"
)

// definitions are how work gets the snapshot that it goes by. The settings cache.metadata and cache.timeout may change meanwhile.
type definitions struct {
	kept  func(context.Context) (*catalog.Snapshot, error) // those in memory
	load  func(context.Context) (*catalog.Snapshot, error) // those of the database
	check func(context.Context) error                      // brings those in memory up to date; nil: they always are
	log   *slog.Logger

	uncached atomic.Bool
	timeout  atomic.Int64 // nanoseconds, 0 for none
	looked   atomic.Int64 // when those in memory were known to be current, since began
	began    time.Time

	hits, loads, checks atomic.Int64
}

// set puts the settings in force.
func (d *definitions) set(metadata bool, timeout time.Duration) {
	d.uncached.Store(!metadata)
	d.timeout.Store(int64(timeout))
}

// snapshot is the definitions that work beginning now goes by.
func (d *definitions) snapshot(ctx context.Context) (*catalog.Snapshot, error) {
	if d.uncached.Load() {
		d.loads.Add(1)
		return d.load(ctx)
	}
	d.hits.Add(1)
	if timeout := d.timeout.Load(); timeout > 0 && d.check != nil {
		now, last := int64(time.Since(d.began)), d.looked.Load()
		if now-last >= timeout && d.looked.CompareAndSwap(last, now) { // who comes meanwhile goes by those there are
			d.checks.Add(1)
			if err := d.check(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("whether there are newer definitions is not known; the last ones stay", "error", err.Error())
			}
		}
	}
	return d.kept(ctx)
}

// counters are the lookups so far: those answered from memory, those that read all, and those that looked whether there are newer ones.
func (d *definitions) counters() map[string]float64 {
	return map[string]float64{
		"weir_metadata_hits_total":   float64(d.hits.Load()),
		"weir_metadata_loads_total":  float64(d.loads.Load()),
		"weir_metadata_checks_total": float64(d.checks.Load()),
	}
}
