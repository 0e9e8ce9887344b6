package engine

import "sync/atomic"

// counters are what an engine has done since it began.
type counters struct {
	units, sets, ops     atomic.Int64
	splits, retries      atomic.Int64
	coalesced, gathered  atomic.Int64
	invocations, redrawn atomic.Int64
}

// set counts a set of n ops.
func (c *counters) set(n int) {
	c.sets.Add(1)
	c.ops.Add(int64(n))
}

// Counters are the engine's figures by the names that metrics show. Ops by sets is how many ops a statement served.
func (e *Engine) Counters() map[string]float64 {
	c := &e.count
	all := map[string]float64{}
	for name, n := range map[string]*atomic.Int64{
		"weir_engine_units_total":           &c.units,       // units executed; gathered writes are one
		"weir_engine_sets_total":            &c.sets,        // sets executed, each one statement or a few
		"weir_engine_set_ops_total":         &c.ops,         // ops in them
		"weir_engine_invocations_total":     &c.invocations, // scripted endpoints run
		"weir_engine_splits_total":          &c.splits,      // times that atoms were halved to find the guilty ones
		"weir_engine_retries_total":         &c.retries,     // transactions tried again, after deadlocks and the like
		"weir_engine_redrawn_total":         &c.redrawn,     // transactions begun again with more numbers drawn
		"weir_engine_coalesced_ops_total":   &c.coalesced,   // single writes that shared a unit with those of other requests
		"weir_engine_coalesced_units_total": &c.gathered,    // units made of them
	} {
		all[name] = float64(n.Load())
	}
	return all
}
