package server

import (
	"context"
	"errors"
	"net/http"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// firsthand is the executor of one call. It notes whether all that the call wanted run was refused, since other definitions than
// those that it was decoded with are in force where it was to run.
type firsthand struct {
	dialect.Executor
	ran, stale bool
}

func (f *firsthand) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	out := f.Executor.Execute(ctx, snap, u)
	if len(out) > 0 {
		f.note(&out[0])
	}
	return out
}

func (f *firsthand) Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	out := f.Executor.Stream(ctx, snap, u)
	f.note(&out)
	return out
}

func (f *firsthand) note(o *record.Outcome) {
	if o.Err != nil && errors.Is(o.Err, dialect.ErrStale) {
		f.stale = true
	} else {
		f.ran = true
	}
}

// compute makes the answer of a call that has its slot. When the definitions change between its decoding and its execution at a backend, it is decoded
// again with the new ones, once: nothing of it was run.
func (v *Visit) compute(ctx context.Context, snap *catalog.Snapshot, a *wire.Answer) error {
	first := &firsthand{Executor: v.s.exec}
	v.exec = first
	err := v.decoded(ctx, snap, a)
	if !first.stale || first.ran || v.sent {
		return err
	}
	fresh, lost := v.s.o.Snapshot(ctx)
	if lost != nil || fresh.Version == snap.Version {
		return err
	}
	v.snap, v.exec, v.Err, v.Items, v.wrote = fresh, v.s.exec, nil, nil, 0
	a.Status, a.Header, a.Body, a.Err = http.StatusOK, a.Header[:0], a.Body[:0], nil
	return v.decoded(ctx, fresh, a)
}
