package dialect

import (
	"context"
	"runtime"
	"strconv"
	"time"

	"weir/internal/record"
)

// execute runs the exchanges of the items in list, with all that they want to do next, and answers them.
func (r *run) execute(ctx context.Context, list []int) {
	// An exchange that needs order among its own ops would order the whole unit, so those have a unit of their own.
	loose, tight := list, []int(nil)
	if !r.opt.Ordered {
		for k, i := range list {
			e := r.work[i].exchange
			if !e.Ordered || len(e.Ops) < 2 || r.items[i].Group != 0 {
				if tight != nil {
					loose = append(loose, i)
				}
				continue
			}
			if tight == nil {
				loose = append([]int(nil), list[:k]...)
			}
			tight = append(tight, i)
		}
	}
	r.rounds(ctx, loose, r.opt.Ordered)
	r.rounds(ctx, tight, true)
}

// breathe lets waiting requests go first, now and then: a batch of 10,000 items computes for hundreds of milliseconds, and Go
// takes the processor away only every ten.
func breathe(n int) {
	if n%32 == 31 {
		runtime.Gosched()
	}
}

func (r *run) rounds(ctx context.Context, list []int, ordered bool) {
	for round := 0; len(list) > 0; round++ {
		r.unit(ctx, list, ordered, round == 0)
		if round == 0 {
			r.judge(list)
		}
		var more []int
		for n, i := range list {
			breathe(n)
			w := &r.work[i]
			if round == 0 && allUnserviced(w.out) {
				r.unserviced(i, w.out[0].Err)
				continue
			}
			if w.exchange.Next == nil || r.parts[i].Undone {
				r.reply(i)
				continue
			}
			next, err := w.exchange.Next(w.out)
			switch {
			case err != nil:
				r.fail(i, err)
			case next == nil:
				r.reply(i)
			case round == maxRounds:
				r.fail(i, record.Errorf(record.Internal, "", "the call does not come to an end"))
			default:
				w.exchange = next
				more = append(more, i)
			}
		}
		list = more
	}
}

// judge finds the groups that failed, and the item of each whose failure it was.
func (r *run) judge(list []int) {
	for n := 0; n < len(list); {
		together := r.together(list[n:])
		n += len(together)
		if len(together) == 1 {
			continue
		}
		guilty, kind := -1, record.Dependency
		for _, i := range together {
			for k := range r.work[i].out {
				if err := r.work[i].out[k].Err; err != nil && (guilty < 0 || kind == record.Dependency && err.Kind != record.Dependency) {
					guilty, kind = i, err.Kind
				}
			}
		}
		if guilty < 0 {
			continue
		}
		r.parts[guilty].Guilty = true
		undone := record.Errorf(record.Dependency, r.parts[guilty].ID, "undone, since another request of its group failed")
		for _, i := range together {
			r.parts[i].Undone = true
			for k := range r.work[i].out {
				if err := r.work[i].out[k].Err; i != guilty && err != nil && err.Kind == record.Dependency {
					r.work[i].out[k].Err = undone // the engine speaks of ops, by numbers that mean nothing outside
				}
			}
		}
	}
}

func allUnserviced(out []record.Outcome) bool {
	for k := range out {
		if !out[k].Unserviced {
			return false
		}
	}
	return len(out) > 0
}

// unit joins the ops of the items in list into one unit, executes it and hands each item its outcomes. Groups of items are made in the
// first round, where their writes are.
func (r *run) unit(ctx context.Context, list []int, ordered, grouped bool) {
	n := 0
	for _, i := range list {
		n += len(r.work[i].exchange.Ops)
	}
	u := record.Unit{
		Version: r.Snapshot.Version, Ops: make([]record.Op, 0, n), Ordered: ordered, StopOnError: ordered && r.opt.StopOnError,
		Parallel: r.Config.Parallel,
	}
	if r.Serial {
		u.Parallel = 1
	}
	groups, group, base := 0, 0, 0 // used so far; the group of items under way, and where its ops begin
	for _, i := range list {
		w := &r.work[i]
		e := w.exchange
		key := e.Token
		if key == "" && r.key != "" {
			key = r.key + "#" + strconv.Itoa(i)
		}
		first := len(u.Ops)
		u.Ops = append(u.Ops, e.Ops...)
		ops := u.Ops[first:]
		if g := r.items[i].Group; g == 0 || !grouped {
			group = 0
			groups = shift(ops, first, groups, key)
			continue
		} else if g != group {
			group, base = g, first
			groups++
		}
		if w.own {
			shift(ops, first, 0, key)
		} else {
			shift(ops, base, 0, key)
		}
		for k := range ops {
			ops[k].Group = groups
		}
	}
	u.Actors = actors(r.outer.Actor, u.Ops)
	at := time.Since(r.begin)
	// The least budget is not 0, which would mean that there is none.
	u.Budget = max(r.Config.Time-at, time.Nanosecond)
	var out []record.Outcome
	if n > 0 {
		out = r.Exec.Execute(ctx, r.Snapshot, &u)
	}
	first := 0
	for _, i := range list {
		w := &r.work[i]
		k := len(w.exchange.Ops)
		w.out = out[first : first+k : first+k]
		first += k
		r.parts[i].account(w.out, at)
	}
}

// shift makes the ops of one exchange part of a unit in which they begin at index first and groups were used before. Every
// write gets a token of its own if there is a key. It returns how many groups are used now.
func shift(ops []record.Op, first, groups int, key string) int {
	used := groups
	for k := range ops {
		op := &ops[k]
		if op.Group != 0 {
			op.Group += groups
			used = max(used, op.Group)
		}
		if key != "" && op.Token == "" && op.Verb.Writes() {
			op.Token = key + "/" + strconv.Itoa(k)
		}
		if first == 0 {
			continue
		}
		shiftValues(op.Key, first)
		for a := range op.Set {
			shiftValue(&op.Set[a].Value, first)
		}
		for a := range op.New {
			shiftValue(&op.New[a].Value, first)
		}
		for c := range op.If {
			if op.If[c].Field == "" {
				op.If[c].Op += first
			}
			shiftValues(op.If[c].Values, first)
		}
		if op.Query != nil {
			op.Query.Where.Walk("", func(_ string, e *record.Expr) bool {
				shiftValue(&e.Value, first)
				shiftValues(e.Values, first)
				return true
			})
		}
	}
	return used
}

func shiftValues(list []record.Value, first int) {
	for k := range list {
		shiftValue(&list[k], first)
	}
}

func shiftValue(v *record.Value, first int) {
	if v.Form == record.Ref {
		v.N += int64(first)
	}
}

// account adds the figures of outcomes of a unit that began at.
func (p *Part) account(out []record.Outcome, at time.Duration) {
	for k := range out {
		s := &out[k].Stat
		p.SQL += s.SQL
		p.SQLCount += s.SQLCount
		p.SetOps = max(p.SetOps, s.SetOps)
		p.Rode(s.Set)
		p.Rows += s.Rows
		if s.End == 0 {
			continue
		}
		if p.end == 0 || at+s.Start < p.Start {
			p.Start = at + s.Start
		}
		p.end = max(p.end, at+s.End)
		p.Time = p.end - p.Start
	}
}

// wrote reports whether the item's exchange is one that writes.
func (w *work) wrote() bool {
	for k := range w.exchange.Ops {
		if w.exchange.Ops[k].Verb.Writes() {
			return true
		}
	}
	return false
}
