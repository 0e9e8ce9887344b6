package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Idempotency: a token commits in the transaction of its op, with the hash of the request and the outcome. A repeat finds
// it and gets the stored outcome. Failed ops leave no token, so that they can be tried again.

var tokenTable = func() *catalog.Table {
	t, err := catalog.System().Table("token")
	if err != nil {
		panic(err)
	}
	return t
}()

// tokenID numbers the tokens of a unit for its plan: two ops with the same token must not share a set. No stored table
// has a negative number.
func (x *unit) tokenID(t *task) int {
	if x.token == nil {
		x.token = map[string]int{}
	}
	key := t.tokenKey()
	id, ok := x.token[key]
	if !ok {
		id = -1 - len(x.token)
		x.token[key] = id
	}
	return id
}

func (t *task) tokenKey() string {
	a := t.who.actor
	sum := sha256.Sum256([]byte(a.Key + "\x00" + a.Name + "\x00" + t.op.Token))
	return hex.EncodeToString(sum[:])
}

func (t *task) requestHash() string {
	op := *t.op
	op.Actor, op.Group, op.Token = 0, 0, ""
	sum := sha256.Sum256(record.AppendOp(nil, &op))
	return hex.EncodeToString(sum[:])
}

// repeats settles the tasks whose token is known and returns the others.
func (w *writer) repeats(ctx context.Context, tasks []*task) ([]*task, error) {
	var keys [][]record.Value
	for _, t := range tasks {
		if t.op.Token != "" {
			keys = append(keys, []record.Value{record.TextValue(t.tokenKey())})
		}
	}
	if keys == nil {
		return tasks, nil
	}
	rows, err := w.read(ctx, &store.Read{
		Snapshot: catalog.System(), Table: tokenTable, Fields: []string{"token", "request", "outcome"}, Keys: keys,
	})
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	known := map[string][]record.Value{}
	for i := range rows.Len() {
		known[rows.At(i)[0].S] = rows.At(i)
	}
	var fresh []*task
	for _, t := range tasks {
		row := known[t.tokenKey()]
		switch {
		case t.op.Token == "" || row == nil:
			fresh = append(fresh, t)
		case row[1].S != t.requestHash():
			used := record.Errorf(record.Conflict, "", "this idempotency key was used for another request")
			used.Rule = record.RuleToken
			w.fail(t, used)
		default:
			out, err := decodeStored(row[2].S)
			if err != nil {
				return nil, err
			}
			out.Stat = t.out.Stat
			*t.out = out
			t.done, t.stored = true, true
		}
	}
	return fresh, nil
}

func decodeStored(s string) (record.Outcome, error) {
	b, err := base64.StdEncoding.DecodeString(s)
	if err == nil {
		var out []record.Outcome
		if out, err = record.DecodeOutcomes(b); err == nil && len(out) == 1 {
			return out[0], nil
		}
	}
	return record.Outcome{}, fmt.Errorf("stored outcome of a token: %w", err)
}

// claim stores the tokens of successful tasks with their outcomes.
func (w *writer) claim(ctx context.Context, tasks []*task) error {
	s := &store.InsertSet{Table: tokenTable, Fields: []string{"token", "request", "outcome", "at"}}
	for _, t := range tasks {
		if t.op.Token == "" || t.out.Err != nil || t.stored {
			continue
		}
		out := *t.out
		out.Stat = record.Stat{}
		b := record.AppendOutcomes(nil, []record.Outcome{out})
		s.Rows = append(s.Rows, []record.Value{
			record.TextValue(t.tokenKey()), record.TextValue(t.requestHash()),
			record.TextValue(base64.StdEncoding.EncodeToString(b)), record.TimeValue(w.x.now),
		})
		w.mine(t)
	}
	if len(s.Rows) == 0 {
		return nil
	}
	written, err := w.tx.Insert(ctx, s)
	if err != nil {
		return fmt.Errorf("store tokens: %w", err)
	}
	for _, e := range written.Errs {
		if e != nil {
			// The same request ran beside this one and has won. Starting again finds its outcome.
			return record.Errorf(record.Unavailable, "", "the same request is being answered already; try again")
		}
	}
	w.x.e.trim.start(w.x)
	return nil
}

// trimmer removes old tokens now and then.
type trimmer struct {
	mu   sync.Mutex
	next time.Time
}

const (
	trimEvery = time.Minute
	trimBatch = 1000
)

func (r *trimmer) start(x *unit) {
	e, now := x.e, time.Now()
	r.mu.Lock()
	due := now.After(r.next)
	if due {
		r.next = now.Add(trimEvery)
	}
	r.mu.Unlock()
	if !due {
		return
	}
	before := x.now.Add(-e.opt.TokenAge)
	e.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), trimEvery/2)
		defer cancel()
		_ = e.trimTokens(ctx, before) // the next round tries again
	})
}

// trimTokens removes tokens stored before a time, at most a batch.
func (e *Engine) trimTokens(ctx context.Context, before time.Time) error {
	tx, err := e.store.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	res, err := tx.Query(ctx, &store.Read{
		Snapshot: catalog.System(), Table: tokenTable, Fields: []string{"token"},
		Query: &record.Query{Where: record.Compare(record.Lt, record.F("at"), record.C(record.TimeValue(before))), Limit: trimBatch},
	})
	if err != nil {
		return err
	}
	if err := res.Materialise(0); err != nil || res.Len() == 0 {
		return err
	}
	s := &store.DeleteSet{Table: tokenTable}
	for i := range res.Len() {
		s.Keys = append(s.Keys, res.At(i)[:1])
	}
	if _, err := tx.Delete(ctx, s); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
