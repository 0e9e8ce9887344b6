package engine

import (
	"context"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Loopback passes every unit and every outcome through its encoding on the way to and from x, as a network would. All
// engine tests run through it too, so that nothing can creep into a unit that is not data.
func Loopback(x Executor) Executor { return loopback{x} }

type loopback struct{ x Executor }

func (l loopback) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	sent, err := record.DecodeUnit(record.AppendUnit(nil, u))
	if err != nil {
		return everywhere(len(u.Ops), record.AsError(err))
	}
	out, err := record.DecodeOutcomes(record.AppendOutcomes(nil, l.x.Execute(ctx, snap, sent)))
	if err != nil {
		return everywhere(len(u.Ops), record.AsError(err))
	}
	return out
}

// Stream sends the unit through its encoding; rows that stream come as they are.
func (l loopback) Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	sent, err := record.DecodeUnit(record.AppendUnit(nil, u))
	if err != nil {
		return record.Outcome{Err: record.AsError(err), Total: -1}
	}
	return l.x.Stream(ctx, snap, sent)
}
