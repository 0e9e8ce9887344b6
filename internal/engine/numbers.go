package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// numbers draws the numbers of sequences, in blocks: one for all the records of a unit. Under load it draws ahead, so
// that a flood of single inserts does not pay a commit each; numbers that were drawn and not used serve the next unit,
// and are lost when the process ends.
type numbers struct {
	store store.Store
	mu    sync.Mutex
	seqs  map[string]*sequence
}

type sequence struct {
	mu    sync.Mutex
	free  []int64 // drawn, not used, ascending
	ahead int     // how many to draw beyond what is asked for
	last  time.Time
}

const (
	drawAgain = 100 * time.Millisecond // draws that follow each other faster than this draw ahead
	maxAhead  = 128
)

func (n *numbers) sequence(name string) *sequence {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.seqs[name]
	if s == nil {
		if n.seqs == nil {
			n.seqs = map[string]*sequence{}
		}
		s = &sequence{}
		n.seqs[name] = s
	}
	return s
}

func (n *numbers) draw(ctx context.Context, seq *catalog.Sequence, count int) ([]int64, error) {
	s := n.sequence(seq.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if short := count - len(s.free); short > 0 {
		now := time.Now()
		if !s.last.IsZero() && now.Sub(s.last) < drawAgain {
			s.ahead = min(max(2*s.ahead, 1), maxAhead)
		} else {
			s.ahead /= 2
		}
		s.last = now
		first, err := n.store.Numbers(ctx, seq.Name, seq.Start, short+s.ahead)
		if err != nil {
			return nil, err
		}
		for i := range short + s.ahead {
			s.free = append(s.free, first+int64(i))
		}
	}
	got := slices.Clone(s.free[:count])
	s.free = append(s.free[:0], s.free[count:]...)
	return got, nil
}

func (n *numbers) give(name string, list []int64) {
	if len(list) == 0 {
		return
	}
	s := n.sequence(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, list...)
	slices.Sort(s.free)
}

// spares are numbers of a unit that belong to no op: they are for records that rules derive. What a run took comes back
// when the run is undone.
type spares struct {
	free  map[string][]int64
	taken []drawn
	used  int
	short map[*catalog.Sequence]int
}

type drawn struct {
	name string
	n    int64
}

func (s *spares) take(seq *catalog.Sequence) (int64, bool) {
	free := s.free[seq.Name]
	if len(free) == 0 {
		if s.short == nil {
			s.short = map[*catalog.Sequence]int{}
		}
		s.short[seq] = 2*s.short[seq] + 1
		return 0, false
	}
	s.free[seq.Name] = free[1:]
	s.taken = append(s.taken, drawn{seq.Name, free[0]})
	s.used = len(s.taken)
	return free[0], true
}

// rewind gives back what was taken after the first used.
func (s *spares) rewind(used int) {
	for i := len(s.taken) - 1; i >= used; i-- {
		d := s.taken[i]
		s.free[d.name] = append([]int64{d.n}, s.free[d.name]...)
	}
	s.taken = s.taken[:min(used, len(s.taken))]
	s.used = len(s.taken)
}

// keep makes what was taken final.
func (s *spares) keep() { s.taken, s.used = s.taken[:0], 0 }

// drawNumbers draws all numbers that the records of atoms may need: one block for each sequence. SQLite has one writer,
// so this must be over when the transaction begins.
func (x *unit) drawNumbers(ctx context.Context, atoms []*atom) error {
	type want struct {
		seq   *catalog.Sequence
		spare int
		slots []*int64
	}
	var wants []*want
	of := func(seq *catalog.Sequence) *want {
		for _, w := range wants {
			if w.seq.Name == seq.Name {
				return w
			}
		}
		w := &want{seq: seq}
		wants = append(wants, w)
		return w
	}
	for _, a := range atoms {
		for _, t := range a.tasks {
			if t.info == nil || t.err != nil || !t.op.Verb.Writes() || t.op.Verb == record.Delete {
				continue
			}
			if t.numbers == nil {
				x.deriveNumbers(t, func(seq *catalog.Sequence) { of(seq).spare++ })
			}
			if t.op.Verb == record.Update || len(t.info.numbered) == 0 || t.numbers != nil {
				continue
			}
			t.numbers = make([]int64, len(t.info.numbered))
			for i, f := range t.info.numbered {
				given := t.set
				if t.fresh != nil {
					given = t.fresh
				}
				if !slices.ContainsFunc(given, func(a assign) bool { return a.f == f && !a.v.Empty() }) {
					w := of(f.Sequence)
					w.slots = append(w.slots, &t.numbers[i])
				}
			}
		}
	}
	for seq, n := range x.spare.short {
		of(seq).spare += n
	}
	for _, w := range wants {
		got, err := x.e.numbers.draw(ctx, w.seq, len(w.slots)+w.spare)
		if err != nil {
			return err
		}
		for i, slot := range w.slots {
			*slot = got[i]
		}
		if w.spare > 0 {
			if x.spare.free == nil {
				x.spare.free = map[string][]int64{}
			}
			x.spare.free[w.seq.Name] = append(x.spare.free[w.seq.Name], got[len(w.slots):]...)
		}
	}
	return nil
}

// deriveNumbers tells of the sequences of the records that the rules of t may derive.
func (x *unit) deriveNumbers(t *task, f func(*catalog.Sequence)) {
	if t.info.program == nil {
		return
	}
	for _, name := range t.info.program.Writes() {
		if target, err := x.snap.Table(name); err == nil {
			for _, field := range x.m.table(target).numbered {
				f(field.Sequence)
			}
		}
	}
}

// nextNumber is the number of the i-th numbered field of a new record.
func (x *unit) nextNumber(t *task, i int) (int64, error) {
	if i < len(t.numbers) && t.numbers[i] != 0 {
		return t.numbers[i], nil
	}
	if n, ok := x.spare.take(t.info.numbered[i].Sequence); ok {
		return n, nil
	}
	return 0, errShort
}

// giveBack returns the numbers that no committed record holds.
func (n *numbers) giveBack(x *unit) {
	for i := range x.tasks {
		t := &x.tasks[i]
		if t.numbers == nil || t.lost || t.done && t.out.Err == nil && t.out.Inserted && !t.stored {
			continue
		}
		for j, f := range t.info.numbered {
			if t.numbers[j] != 0 {
				n.give(f.Sequence.Name, t.numbers[j:j+1])
			}
		}
	}
	for name, list := range x.spare.free {
		n.give(name, list)
	}
}
