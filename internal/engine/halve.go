package engine

import (
	"context"
	"strconv"

	"weir/internal/record"
)

// halve runs atoms that cannot all succeed together: each half by itself, and again in halves where that fails, until
// the guilty ones stand alone. After as many splits as the settings allow, atoms run one by one.
func (w *writer) halve(ctx context.Context, atoms []*atom) error {
	if len(atoms) == 1 {
		// Which op of a group fails first is only sure when they run in their order.
		w.apart = true
		_, err := w.marked(ctx, atoms)
		w.apart = false
		return err
	}
	parts := [][]*atom{atoms[:len(atoms)/2], atoms[len(atoms)/2:]}
	if w.splits >= w.x.e.opt.Splits {
		parts = parts[:0]
		for i := range atoms {
			parts = append(parts, atoms[i:i+1])
		}
	}
	w.splits++
	w.x.e.count.splits.Add(1)
	for i, part := range parts {
		if len(part) == 1 && w.splits > w.x.e.opt.Splits {
			if err := w.halve(ctx, part); err != nil {
				return err
			}
			if w.x.stopOnError() && w.x.anyFailed(part) {
				return nil
			}
			continue
		}
		ok, err := w.marked(ctx, part)
		if err == nil && !ok && (len(part) > 1 || len(part[0].tasks) > 1) {
			err = w.halve(ctx, part)
		}
		if err != nil {
			return err
		}
		if w.x.stopOnError() && w.x.anyFailed(part) {
			// What comes after the first failure is not run; it settles as skipped.
			for _, rest := range parts[i+1:] {
				w.reset(rest)
			}
			return nil
		}
	}
	return nil
}

// marked runs atoms so that a fault undoes them and nothing else.
func (w *writer) marked(ctx context.Context, atoms []*atom) (ok bool, err error) {
	if err := w.tx.Mark(ctx); err != nil {
		return false, err
	}
	used, wrote := w.x.spare.used, w.wrote
	if err := w.run(ctx, atoms); err != nil {
		return false, err
	}
	if w.fault {
		if err := w.tx.Back(ctx); err != nil {
			return false, err
		}
		w.x.spare.rewind(used)
		w.wrote = wrote
	}
	return !w.fault, w.tx.Drop(ctx)
}

// groupFailed is the error of the ops of a group that failed because of guilty.
func groupFailed(guilty *task) *record.Error {
	return record.Errorf(record.Dependency, strconv.Itoa(guilty.i), "undone, since operation %d of its group failed", guilty.i)
}
