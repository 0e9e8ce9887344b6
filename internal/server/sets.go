package server

import (
	"time"

	"weir/internal/record"
	"weir/internal/telemetry"
)

// noteSets keeps in the recorder which sets a unit made, whose execution began at, and numbers them within the request: an outcome
// names its set by the number in the recorder from then on.
func noteSets(rec *telemetry.Recorder, at time.Duration, ops []record.Op, out []record.Outcome) {
	if rec == nil {
		return
	}
	if len(out) == 1 {
		if s := &out[0].Stat; s.Set > 0 {
			s.Set = rec.AddSets(setOf(&ops[0], s, at))
		}
		return
	}
	most := 0
	for i := range out {
		most = max(most, out[i].Stat.Set)
	}
	if most == 0 {
		return
	}
	// A set that was tried and halved has a number that no outcome names, so those that are left move together.
	places := make([]int, most+1)
	var sets []telemetry.Set
	for i := range out {
		s := &out[i].Stat
		switch n := s.Set; {
		case n <= 0:
		case places[n] == 0:
			sets = append(sets, setOf(&ops[i], s, at))
			places[n] = len(sets)
		default:
			sets[places[n]-1].Rows += s.Rows
		}
	}
	first := rec.AddSets(sets...)
	for i := range out {
		if s := &out[i].Stat; s.Set > 0 {
			s.Set = first + places[s.Set] - 1
		}
	}
}

func setOf(op *record.Op, s *record.Stat, at time.Duration) telemetry.Set {
	table := op.Table
	if op.Invoke != nil {
		table = op.Invoke.Endpoint
	}
	return telemetry.Set{Verb: op.Verb.String(), Table: table, Ops: s.SetOps, Rows: s.Rows, Start: at + max(s.End-s.SetTime, 0), Time: s.SetTime}
}
