package sqlite

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// tx is the write transaction. It holds the only write connection: who has one must not ask for a second, nor for
// Numbers, before it ends.
type tx struct {
	store *Store
	conn  *conn
	opts  store.SQLOptions // of statements that Run runs
	done  bool
}

// All marks have one name: SQLite knows which is the last.
const (
	begin    = "BEGIN IMMEDIATE"
	commit   = "COMMIT"
	rollback = "ROLLBACK"
	mark     = "SAVEPOINT w"
	back     = "ROLLBACK TO w"
	drop     = "RELEASE w"
)

// Begin takes the write connection and the file's write lock.
func (s *Store) Begin(ctx context.Context) (store.Tx, error) {
	c, err := s.writer.get(ctx)
	if err != nil {
		return nil, err
	}
	t := &tx{store: s, conn: c}
	if err := t.exec(ctx, begin); err != nil {
		t.finish()
		return nil, err
	}
	return t, nil
}

var errOver = &record.Error{Kind: record.Internal, Msg: "the transaction is over"}

// exec runs a statement that takes nothing and returns nothing.
func (t *tx) exec(ctx context.Context, sql string) error {
	if t.done {
		return errOver
	}
	t.conn.limit(ctx, t.store.opts.Statement)
	if err := t.conn.exec(sql); err != nil {
		return t.conn.translate(ctx, err, nil)
	}
	return nil
}

// Query reads within the transaction. The rows are held in memory. Lock is nothing to do: no one else writes.
func (t *tx) Query(ctx context.Context, q *store.Read) (*store.Result, error) {
	if t.done {
		return nil, errOver
	}
	r, err := t.store.compile(q)
	if err != nil {
		return nil, err
	}
	return r.run(ctx, t.conn, nil, t.store.opts.Statement)
}

// Insert writes new records one by one.
func (t *tx) Insert(ctx context.Context, s *store.InsertSet) (*store.Written, error) {
	st, err := t.store.compiler.Insert(s)
	if err != nil {
		return nil, err
	}
	return t.write(ctx, &set{table: s.Table, st: st, fields: s.Fields, rows: s.Rows, back: s.Return, n: len(s.Rows), insert: true})
}

// Update changes records one by one.
func (t *tx) Update(ctx context.Context, s *store.UpdateSet) (*store.Written, error) {
	st, err := t.store.compiler.Update(s)
	if err != nil {
		return nil, err
	}
	return t.write(ctx, &set{table: s.Table, st: st, fields: s.Fields, keys: s.Keys, rows: s.Rows, back: s.Return, n: len(s.Keys)})
}

// Delete removes records one by one.
func (t *tx) Delete(ctx context.Context, s *store.DeleteSet) (*store.Written, error) {
	st, err := t.store.compiler.Delete(s)
	if err != nil {
		return nil, err
	}
	return t.write(ctx, &set{table: s.Table, st: st, keys: s.Keys, n: len(s.Keys)})
}

// set is what write needs of the three kinds.
type set struct {
	table      *catalog.Table
	st         *store.Statement
	fields     []string
	keys, rows [][]record.Value
	back       []string
	n          int
	insert     bool
}

// yieldEvery is after how many rows a large set lets waiting goroutines go first. A set of 10,000 computes for hundreds of
// milliseconds, and Go takes the processor away only every ten.
const yieldEvery = 16

func (t *tx) write(ctx context.Context, s *set) (*store.Written, error) {
	if t.done {
		return nil, errOver
	}
	began := time.Now()
	defer func() { telemetry.From(ctx).Statement(time.Since(began)) }()
	t.conn.limit(ctx, t.store.opts.Statement)
	p, err := t.conn.prepare(s.st.SQL)
	if err != nil {
		return nil, t.conn.translate(ctx, err, s.table)
	}
	defer t.conn.release(p)
	w := &store.Written{Hit: make([]bool, s.n)}
	var row, none []record.Value
	if len(s.back) > 0 {
		types := make([]record.Type, len(s.back))
		for i := range types {
			types[i] = s.st.Out[i].Type
		}
		w.Rows = record.NewRows(s.back, types)
		row, none = make([]record.Value, len(s.back)), make([]record.Value, len(s.back))
	}
	for i := range s.n {
		if i%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
		err := t.bind(p, s, i)
		var hit bool
		if err == nil {
			if len(s.back) == 0 {
				if err = p.Exec(); err == nil {
					hit = s.insert || t.conn.db.Changes() > 0
				}
			} else {
				hit = p.Step()
				if hit {
					for j := range row {
						row[j] = column(p, j, s.st.Out[j].Type)
					}
					w.Rows.Append(row)
				}
				if e := p.Reset(); e != nil {
					err, hit = e, false
				}
			}
		}
		if err != nil {
			fault := t.conn.translate(ctx, err, s.table)
			if !ofRow(fault.Kind) {
				return nil, fault
			}
			switch fault.Kind {
			case record.Conflict:
				fault = named(fault, s, i)
			case record.Restricted:
				if s.rows == nil {
					fault.Msg = "other records refer to it"
					break
				}
				fault = fault.At(t.referring(s, i))
				fault.Msg = "it refers to a record that does not exist"
			}
			if w.Errs == nil {
				w.Errs = make([]*record.Error, s.n)
			}
			w.Errs[i] = fault
		}
		w.Hit[i] = hit
		if !hit && w.Rows != nil {
			w.Rows.AppendShared(none)
		}
	}
	return w, nil
}

// ofRow reports whether an error is a fault of one row, which leaves the transaction as it was before that row.
func ofRow(k record.Kind) bool {
	switch k {
	case record.Conflict, record.Restricted, record.Invalid, record.Rejected, record.TooLarge:
		return true
	}
	return false
}

// named is a conflict with the values that exist already.
func named(e *record.Error, s *set, i int) *record.Error {
	var values []string
	for name := range strings.SplitSeq(e.Field, ", ") {
		j := slices.Index(s.fields, name)
		if j < 0 {
			return e
		}
		values = append(values, s.rows[i][j].Text())
	}
	return record.Errorf(record.Conflict, e.Field, "%.200s exists already", strings.Join(values, ", ")).Because(e.Err)
}

// referring is the field of row i that a broken foreign key is about, as SQLite does not tell; "" if that cannot be found out.
func (t *tx) referring(s *set, i int) string {
	var found []int
	for j, name := range s.fields {
		if f := s.table.Field(name); f != nil && f.ForeignKey && !s.rows[i][j].IsNull() {
			found = append(found, j)
		}
	}
	if len(found) == 1 {
		return s.fields[found[0]]
	}
	for _, j := range found {
		if missing, err := t.dangles(s.table, s.table.Field(s.fields[j]), s.rows[i][j]); err == nil && missing {
			return s.fields[j]
		}
	}
	return ""
}

// dangles reports whether a foreign key refers to no record.
func (t *tx) dangles(table *catalog.Table, f *catalog.Field, v record.Value) (bool, error) {
	p, err := t.conn.prepare(`SELECT "table", "to" FROM pragma_foreign_key_list(?) WHERE "from" = ? AND "to" IS NOT NULL`)
	if err != nil {
		return false, err
	}
	defer t.conn.release(p)
	if err := errors.Join(p.BindText(1, bareTable(table.Schema, table.Stored)), p.BindText(2, f.Column)); err != nil {
		return false, err
	}
	if !p.Step() {
		return false, p.Reset()
	}
	sql := "SELECT 1 FROM " + store.Quote(p.ColumnText(0)) + " WHERE " + store.Quote(p.ColumnText(1)) + " = ?"
	if err := p.Reset(); err != nil {
		return false, err
	}
	q, err := t.conn.prepare(sql)
	if err != nil {
		return false, err
	}
	defer t.conn.release(q)
	if v, err = store.Fit(f.Type, v); err == nil {
		err = t.conn.bind(q, 1, f.Type, v)
	}
	if err != nil {
		return false, err
	}
	there := q.Step()
	return !there, q.Reset()
}

func (t *tx) bind(p *prepared, s *set, i int) error {
	var key, row []record.Value
	if s.keys != nil {
		key = s.keys[i]
	}
	if s.rows != nil {
		row = s.rows[i]
	}
	for j := range s.st.Params {
		typ := s.st.Params[j].Type
		v, err := store.Fit(typ, s.st.Row(j, key, row))
		if err != nil {
			name := ""
			if f := s.st.Field(j); f >= 0 {
				name = s.fields[f]
			}
			return record.AsError(err).At(name)
		}
		if err := t.conn.bind(p, j+1, typ, v); err != nil {
			return err
		}
	}
	return nil
}

// Mark sets the point that Back returns to.
func (t *tx) Mark(ctx context.Context) error { return t.exec(ctx, mark) }

// Back undoes everything since the last Mark and keeps that mark.
func (t *tx) Back(ctx context.Context) error { return t.exec(ctx, back) }

// Drop forgets the last Mark and keeps what was done since.
func (t *tx) Drop(ctx context.Context) error { return t.exec(ctx, drop) }

// Commit makes everything durable. A context that is over before it leaves nothing done; once begun it is not interrupted.
func (t *tx) Commit(ctx context.Context) error {
	if t.done {
		return errOver
	}
	if err := ctx.Err(); err != nil {
		t.Rollback()
		return ended(err)
	}
	began := time.Now()
	err := t.exec(context.WithoutCancel(ctx), commit)
	telemetry.From(ctx).Statement(time.Since(began))
	if err != nil {
		t.Rollback()
		return err
	}
	t.finish()
	return nil
}

// Rollback ends the transaction; after Commit it does nothing.
func (t *tx) Rollback() {
	if t.done {
		return
	}
	t.conn.unlimit()
	if !t.conn.db.GetAutocommit() { // an interrupted write has rolled back already
		if err := t.conn.exec(rollback); err != nil {
			t.conn.broken = true
		}
	}
	t.finish()
}

func (t *tx) finish() {
	t.done = true
	t.conn.unlimit()
	t.store.writer.put(t.conn)
}
