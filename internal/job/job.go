// Package job keeps calls that are to be answered later. A call is stored before its client is told so; some node then takes it, and
// keeps telling the others that it is at work. When it falls silent another one takes over, so a call outlives whoever accepted it.
// That a call which was executed twice has taken effect once is up to the idempotency tokens of its writes.
package job

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Job is one call with what became of it.
type Job struct {
	ID   string
	User string // who asked for it, and alone may ask what became of it
	Head []byte // of the call, as its maker wrote it
	Body []byte // of the call

	State    State
	Attempts int  // how often it was begun
	Canceled bool // its user has asked to stop it

	Answer []byte // the head of the answer, when it is done
	Result []byte // the body of the answer

	Claim string // names who has taken it up, and when; for those who pass jobs on
}

// State is how far a job is.
type State int

// The states.
const (
	Waiting State = iota
	Running
	Done
)

// Data is what jobs are kept in.
type Data interface {
	Query(ctx context.Context, q *store.Read) (*store.Result, error)
	Begin(ctx context.Context) (store.Tx, error)
}

// Store keeps jobs in weir's own tables. It is safe for concurrent use, by many nodes.
type Store struct {
	data  Data
	table *catalog.Table
	node  string // names this process
	now   func() time.Time
}

// New is a store of jobs in data.
func New(data Data) *Store {
	t, err := catalog.System().Table("job")
	if err != nil {
		panic(err)
	}
	return &Store{data: data, table: t, node: NewID(), now: time.Now}
}

// NewID is an id that nobody guesses.
func NewID() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

func is(field string, v record.Value) *record.Expr {
	return record.Compare(record.Eq, record.F(field), record.C(v))
}

func state(s State) *record.Expr { return is("state", record.IntValue(int64(s))) }

// open are the jobs that somebody may take at a time: those that wait, and those whose node fell silent.
func open(now time.Time) *record.Expr {
	return record.AllOf(
		record.Compare(record.Lt, record.F("state"), record.C(record.IntValue(int64(Done)))),
		record.Compare(record.Le, record.F("lease"), record.C(record.TimeValue(now))),
	)
}

// Put stores a job that waits from now on. The error is a Busy if more than limit jobs are not done.
func (s *Store) Put(ctx context.Context, j *Job, limit int) error {
	tx, err := s.data.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	n, err := s.count(ctx, tx)
	if err != nil {
		return err
	}
	if n >= limit {
		return record.Errorf(record.Busy, "", "%d deferred calls are not done yet; see async.queue", n)
	}
	now := record.TimeValue(s.now())
	w, err := tx.Insert(ctx, &store.InsertSet{
		Table:  s.table,
		Fields: []string{"id", "user", "head", "body", "state", "attempts", "canceled", "created", "lease"},
		Rows: [][]record.Value{{
			record.TextValue(j.ID), record.TextValue(j.User), record.TextValue(string(j.Head)), record.TextValue(string(j.Body)),
			record.IntValue(int64(Waiting)), record.IntValue(0), record.BoolValue(false), now, now,
		}},
	})
	if err != nil {
		return err
	}
	for _, e := range w.Errs {
		if e != nil {
			return e
		}
	}
	return tx.Commit(ctx)
}

func (s *Store) count(ctx context.Context, tx store.Tx) (int, error) {
	res, err := tx.Query(ctx, &store.Read{Snapshot: catalog.System(), Table: s.table, Fields: []string{"id"}, Query: &record.Query{
		Where: record.Compare(record.Lt, record.F("state"), record.C(record.IntValue(int64(Done)))), Limit: 0, Count: true,
	}})
	if err != nil {
		return 0, err
	}
	defer res.Close()
	return int(res.Total), res.Materialise(0)
}

// Claim takes the oldest job that is open, for lease; nil if there is none. The lease of a job under way must be renewed.
func (s *Store) Claim(ctx context.Context, lease time.Duration) (*Job, error) {
	// Most of the time there is nothing to do, and to see that takes no write transaction.
	query := &record.Query{Where: open(s.now()), Sort: []record.Sort{{Path: "created"}, {Path: "id"}}, Limit: 1}
	read := &store.Read{Snapshot: catalog.System(), Table: s.table, Fields: []string{"id"}, Query: query}
	res, err := s.data.Query(ctx, read)
	if err != nil {
		return nil, err
	}
	if err := res.Materialise(0); err != nil || res.Len() == 0 {
		return nil, err
	}
	tx, err := s.data.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	read.Lock, read.Fields = true, []string{"id", "user", "head", "body", "attempts", "canceled"}
	if res, err = tx.Query(ctx, read); err != nil {
		return nil, err
	}
	if err := res.Materialise(0); err != nil || res.Len() == 0 {
		return nil, err // another node was faster
	}
	row := res.At(0)
	j := &Job{
		ID: row[0].S, User: row[1].S, Head: []byte(row[2].S), Body: []byte(row[3].S), State: Running,
		Attempts: int(row[4].N) + 1, Canceled: row[5].Truth(), Claim: s.node + "/" + NewID(),
	}
	if err := s.update(ctx, tx, j.ID, []string{"state", "attempts", "node", "lease"}, []record.Value{
		record.IntValue(int64(Running)), record.IntValue(int64(j.Attempts)), record.TextValue(j.Claim), record.TimeValue(s.now().Add(lease)),
	}); err != nil {
		return nil, err
	}
	return j, tx.Commit(ctx)
}

func (s *Store) update(ctx context.Context, tx store.Tx, id string, fields []string, values []record.Value) error {
	w, err := tx.Update(ctx, &store.UpdateSet{
		Table: s.table, Keys: [][]record.Value{{record.TextValue(id)}}, Fields: fields, Rows: [][]record.Value{values},
	})
	if err != nil {
		return err
	}
	for _, e := range w.Errs {
		if e != nil {
			return e
		}
	}
	return nil
}

// held opens a transaction in which j is locked; ok is false if it is not this claim's any more.
func (s *Store) held(ctx context.Context, j *Job) (tx store.Tx, canceled, ok bool, err error) {
	tx, err = s.data.Begin(ctx)
	if err != nil {
		return nil, false, false, err
	}
	res, err := tx.Query(ctx, &store.Read{
		Snapshot: catalog.System(), Table: s.table, Fields: []string{"canceled"}, Lock: true,
		Query: &record.Query{Where: record.AllOf(is("id", record.TextValue(j.ID)), is("node", record.TextValue(j.Claim)), state(Running)), Limit: 1},
	})
	if err == nil {
		err = res.Materialise(0)
	}
	if err != nil {
		tx.Rollback()
		return nil, false, false, err
	}
	if res.Len() == 0 {
		return tx, false, false, nil
	}
	return tx, res.At(0)[0].Truth(), true, nil
}

// Renew says that the job's node is at work still. canceled says that its user has asked to stop it; lost that another node
// has taken over.
func (s *Store) Renew(ctx context.Context, j *Job, lease time.Duration) (canceled, lost bool, err error) {
	tx, canceled, ok, err := s.held(ctx, j)
	if err != nil {
		return false, false, err
	}
	defer tx.Rollback()
	if !ok {
		return false, true, nil
	}
	if err := s.update(ctx, tx, j.ID, []string{"lease"}, []record.Value{record.TimeValue(s.now().Add(lease))}); err != nil {
		return false, false, err
	}
	return canceled, false, tx.Commit(ctx)
}

// Finish stores the answer of a job. What another node has taken over is that one's to finish.
func (s *Store) Finish(ctx context.Context, j *Job, answer, result []byte) error {
	return s.settle(ctx, j, func(tx store.Tx) error {
		return s.update(ctx, tx, j.ID, []string{"state", "answer", "result", "finished", "body"}, []record.Value{
			record.IntValue(int64(Done)), record.TextValue(string(answer)), record.TextValue(string(result)), record.TimeValue(s.now()), {},
		})
	})
}

// Return lets a job wait again, for at least pause.
func (s *Store) Return(ctx context.Context, j *Job, pause time.Duration) error {
	return s.settle(ctx, j, func(tx store.Tx) error {
		return s.update(ctx, tx, j.ID, []string{"state", "lease"}, []record.Value{record.IntValue(int64(Waiting)), record.TimeValue(s.now().Add(pause))})
	})
}

// Drop forgets a job that was canceled.
func (s *Store) Drop(ctx context.Context, j *Job) error {
	return s.settle(ctx, j, func(tx store.Tx) error {
		_, err := tx.Delete(ctx, &store.DeleteSet{Table: s.table, Keys: [][]record.Value{{record.TextValue(j.ID)}}})
		return err
	})
}

func (s *Store) settle(ctx context.Context, j *Job, do func(store.Tx) error) error {
	tx, _, ok, err := s.held(ctx, j)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if !ok {
		return nil
	}
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// Find is the job of that id, with its answer and without its call; nil if there is none.
func (s *Store) Find(ctx context.Context, id string) (*Job, error) {
	res, err := s.data.Query(ctx, &store.Read{
		Snapshot: catalog.System(), Table: s.table, Fields: []string{"id", "user", "state", "attempts", "canceled", "answer", "result"},
		Keys: [][]record.Value{{record.TextValue(id)}},
	})
	if err != nil {
		return nil, err
	}
	if err := res.Materialise(0); err != nil || res.Len() == 0 {
		return nil, err
	}
	row := res.At(0)
	return &Job{
		ID: row[0].S, User: row[1].S, State: State(row[2].N), Attempts: int(row[3].N), Canceled: row[4].Truth(),
		Answer: []byte(row[5].S), Result: []byte(row[6].S),
	}, nil
}

// Cancel asks to stop a job. It is gone at once unless it is under way; then its node learns it when it renews its lease, and under says so.
func (s *Store) Cancel(ctx context.Context, id string) (under bool, err error) {
	tx, err := s.data.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	key := [][]record.Value{{record.TextValue(id)}}
	res, err := tx.Query(ctx, &store.Read{Snapshot: catalog.System(), Table: s.table, Fields: []string{"state"}, Keys: key, Lock: true})
	if err != nil {
		return false, err
	}
	if err := res.Materialise(0); err != nil || res.Len() == 0 {
		return false, err
	}
	if under = State(res.At(0)[0].N) == Running; under {
		err = s.update(ctx, tx, id, []string{"canceled"}, []record.Value{record.BoolValue(true)})
	} else {
		_, err = tx.Delete(ctx, &store.DeleteSet{Table: s.table, Keys: key})
	}
	if err != nil {
		return false, err
	}
	return under, tx.Commit(ctx)
}

// Trim removes jobs that were done before a time, at most a hundred, and returns how many went.
func (s *Store) Trim(ctx context.Context, before time.Time) (int, error) {
	res, err := s.data.Query(ctx, &store.Read{Snapshot: catalog.System(), Table: s.table, Fields: []string{"id"}, Query: &record.Query{
		Where: record.AllOf(state(Done), record.Compare(record.Lt, record.F("finished"), record.C(record.TimeValue(before)))), Limit: 100,
	}})
	if err != nil {
		return 0, err
	}
	if err := res.Materialise(0); err != nil || res.Len() == 0 {
		return 0, err
	}
	set := &store.DeleteSet{Table: s.table}
	for i := range res.Len() {
		set.Keys = append(set.Keys, res.At(i)[:1])
	}
	tx, err := s.data.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	if _, err := tx.Delete(ctx, set); err != nil {
		return 0, err
	}
	return len(set.Keys), tx.Commit(ctx)
}
