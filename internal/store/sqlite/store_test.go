package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/storetest"
)

// people is a set of n persons whose keys begin with prefix.
func people(t testing.TB, prefix string, n int) *store.InsertSet {
	t.Helper()
	person, err := storetest.Snapshot(t).Table("person")
	if err != nil {
		t.Fatal(err)
	}
	set := &store.InsertSet{Table: person, Fields: []string{"sys_id", "name", "email", "team", "age", "score", "active", "sys_created_on"}}
	at := record.TimeValue(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for i := range n {
		key := fmt.Sprintf("%s%08d", prefix, i)
		set.Rows = append(set.Rows, []record.Value{
			record.TextValue(key), record.TextValue("a name"), record.TextValue(key + "@example.com"), record.TextValue("t1"),
			record.IntValue(int64(i)), record.NumValue(1.5), record.BoolValue(true), at,
		})
	}
	return set
}

func write(t testing.TB, s *Store, set *store.InsertSet) error {
	t.Helper()
	tx, err := s.Begin(t.Context())
	if err != nil {
		return err
	}
	defer tx.Rollback()
	w, err := tx.Insert(t.Context(), set)
	if err != nil {
		return err
	}
	for _, e := range w.Errs {
		if e != nil {
			return e
		}
	}
	return tx.Commit(t.Context())
}

func TestStore_SharesItsFileWithAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	var stores [2]*Store
	for i := range stores {
		s, err := Open(t.Context(), Options{Path: path, Wait: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores[i] = s
	}
	storetest.Create(t, stores[0], storetest.Snapshot(t))
	var wg sync.WaitGroup
	for i, s := range stores {
		wg.Go(func() {
			for j := range 10 {
				if err := write(t, s, people(t, fmt.Sprintf("%d-%d-", i, j), 20)); err != nil {
					t.Error(err)
				}
				if _, err := s.Numbers(t.Context(), "n", 1, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n, err := stores[1].Numbers(t.Context(), "n", 1, 1); err != nil || n != 21 {
		t.Errorf("the next number is %d (%v), want 21", n, err)
	}
}

func TestStore_AHeldWriteLockIsUnavailable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	a, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Open(t.Context(), Options{Path: path, Wait: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	held, err := a.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Begin(t.Context())
	if record.KindOf(err) != record.Unavailable || !strings.Contains(err.Error(), "database.pool.wait") {
		t.Errorf("another process's lock: %v", err)
	}
	held.Rollback()
	tx, err := b.Begin(t.Context())
	if err != nil {
		t.Fatalf("after the lock was given back: %v", err)
	}
	// The same process waits in line for its one write connection, and is told its figures.
	_, err = b.Begin(t.Context())
	if record.KindOf(err) != record.Unavailable || !strings.Contains(err.Error(), "1 of 1 in use") {
		t.Errorf("the own lock: %v", err)
	}
	tx.Rollback()
}

func TestStore_ALongStatementTimesOut(t *testing.T) {
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), "weir.db"), Statement: 30 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := s.readers.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.readers.put(c)
	c.limit(t.Context(), s.opts.Statement)
	err = c.exec("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
	fault := c.translate(t.Context(), err, nil)
	c.unlimit()
	if fault == nil || fault.Kind != record.Timeout || !strings.Contains(fault.Msg, "database.statement_timeout") {
		t.Errorf("%v, want a timeout that names its setting", fault)
	}
	if err := c.exec("SELECT 1"); err != nil {
		t.Errorf("the connection serves no more: %v", err)
	}
}

func TestStore_ReadersCannotWrite(t *testing.T) {
	s := open(t, 1)
	defer s.Close()
	c, err := s.readers.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.readers.put(c)
	err = c.exec("DELETE FROM weir_sequence")
	if k := c.translate(t.Context(), err, nil); k == nil || k.Kind != record.Unavailable {
		t.Errorf("a read connection deletes: %v", err)
	}
}

func TestStore_CommitsAreDurable(t *testing.T) {
	s := open(t, 1)
	defer s.Close()
	// Numbers commit without waiting for the disk; nothing else may, afterwards as before.
	if _, err := s.Numbers(t.Context(), "n", 1, 1); err != nil {
		t.Fatal(err)
	}
	err := s.writing(t.Context(), func(c *conn) error {
		for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1"} {
			p, err := c.prepare("PRAGMA " + pragma)
			if err != nil {
				return err
			}
			p.Step()
			if got := p.ColumnText(0); got != want {
				t.Errorf("%s is %s, want %s", pragma, got, want)
			}
			c.release(p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPool_ServesInTheOrderOfAsking(t *testing.T) {
	s := open(t, 1)
	defer s.Close()
	held, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i := range 5 {
		for s.writer.stats().Waiting != i {
			runtime.Gosched() // until the one before stands in line
		}
		wg.Go(func() {
			tx, err := s.Begin(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			tx.Rollback()
		})
	}
	for s.writer.stats().Waiting != 5 {
		runtime.Gosched()
	}
	// One who leaves the line does not hold it up.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Begin(ctx); record.KindOf(err) != record.Canceled {
		t.Error(err)
	}
	held.Rollback()
	wg.Wait()
	if d := cmp.Diff([]int{0, 1, 2, 3, 4}, order); d != "" {
		t.Error(d)
	}
}

func TestCompareDecimals_OrdersNumbers(t *testing.T) {
	sorted := []string{"-100", "-9.5", "-9.49", "-0.001", "0", "0.001", "0.5", "9.99", "10", "10.000000000000000000001", "100"}
	for i, a := range sorted {
		for j, b := range sorted {
			got := compareDecimals([]byte(a), []byte(b))
			if (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
		}
	}
	for _, same := range [][2]string{{"1", "1.0"}, {"-0", "0"}, {"007", "7"}, {"+1", "1"}, {"0.10", ".1"}} {
		if compareDecimals([]byte(same[0]), []byte(same[1])) != 0 {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
}

func TestParseMicros_ReadsWhatValuesWrite(t *testing.T) {
	for _, at := range []int64{0, 1, -1, 999999, 1767322800_500000, -62135596800_000000, 253402300799_999999, 951782400_000000, -2203891200_000001} {
		v := record.Value{Form: record.Time, N: at}
		if got, ok := parseMicros(v.Text()); !ok || got != at {
			t.Errorf("%s: %d (%v), want %d", v.Text(), got, ok, at)
		}
	}
	for _, bad := range []string{"", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05.", "2026-13-02 03:04:05", "2026-01-02 03:04:0x"} {
		if _, ok := parseMicros(bad); ok {
			t.Errorf("%q is read as a time", bad)
		}
	}
}

func BenchmarkInsert_1000(b *testing.B) {
	s := open(b, 1)
	defer s.Close()
	storetest.Create(b, s, storetest.Snapshot(b))
	set := people(b, "", 1000)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i := range set.Rows {
			key := fmt.Sprintf("%d-%d", n, i)
			set.Rows[i][0], set.Rows[i][2] = record.TextValue(key), record.TextValue(key)
		}
		if err := write(b, s, set); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkQuery(b *testing.B) {
	s := open(b, 1)
	defer s.Close()
	snap := storetest.Snapshot(b)
	storetest.Create(b, s, snap)
	set := people(b, "", 20_000)
	if err := write(b, s, set); err != nil {
		b.Fatal(err)
	}
	for name, q := range map[string]*store.Read{
		"key":  {Keys: [][]record.Value{{record.TextValue("00000100")}}},
		"page": {Query: &record.Query{Where: record.Compare(record.Eq, record.F("team"), record.C(record.TextValue("t1"))), Limit: 25}},
		"all":  {Query: &record.Query{Limit: -1}},
	} {
		q.Snapshot, q.Table, q.Fields = snap, set.Table, set.Fields
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			rows := 0
			for b.Loop() {
				res, err := s.Query(b.Context(), q)
				if err != nil {
					b.Fatal(err)
				}
				for _, ok := res.Next(); ok; _, ok = res.Next() {
					rows++
				}
				res.Close()
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// BenchmarkRaw is what the driver alone takes for the same: a prepared loop in a transaction, and a row by key.
func BenchmarkRaw(b *testing.B) {
	s := open(b, 1)
	defer s.Close()
	storetest.Create(b, s, storetest.Snapshot(b))
	set := people(b, "", 1000)
	if err := write(b, s, set); err != nil {
		b.Fatal(err)
	}
	b.Run("insert 1000", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			err := s.writing(b.Context(), func(c *conn) error {
				p, err := c.prepare(`INSERT INTO person (sys_id, name, email, team, age, score, active, sys_created_on) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)`)
				if err != nil {
					return err
				}
				defer c.release(p)
				tx, err := c.db.BeginImmediate()
				if err != nil {
					return err
				}
				for i := range 1000 {
					key := fmt.Sprintf("%d-%d", n, i)
					p.BindText(1, key)
					p.BindText(2, "a name")
					p.BindText(3, key)
					p.BindText(4, "t1")
					p.BindInt64(5, int64(i))
					p.BindFloat(6, 1.5)
					p.BindInt64(7, 1)
					p.BindText(8, "2026-01-02 03:04:05")
					if err := p.Exec(); err != nil {
						return err
					}
				}
				return tx.Commit()
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("key", func(b *testing.B) {
		c, err := s.readers.get(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer s.readers.put(c)
		p, err := c.prepare(`SELECT sys_id, name, email, team, age, score, active, sys_created_on FROM person WHERE sys_id = ?1`)
		if err != nil {
			b.Fatal(err)
		}
		defer c.release(p)
		for b.Loop() {
			p.BindText(1, "00000100")
			if !p.Step() {
				b.Fatal(p.Err())
			}
			for i := range 8 {
				if len(p.ColumnRawText(i)) == 0 {
					b.Fatal(i)
				}
			}
			p.Reset()
		}
	})
}
