package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/ncruces/go-sqlite3/vfs"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Options are the settings of a store.
type Options struct {
	// Path is the file. It is created when it does not exist.
	Path string
	// Max is how many connections may read at once, beside the one that writes. Each takes 1 to 3 MiB once it is opened.
	//
	// Defaults to twice the number of processors, at least 4.
	Max int
	// Wait is how long a request waits for a connection, or for the write lock of another process, before it gets an
	// Unavailable error.
	//
	// Defaults to 5 s.
	Wait time.Duration
	// Statement is how long the database works on one statement before it gives up. Negative: no limit.
	//
	// Defaults to 30 s.
	Statement time.Duration
	// Cache bounds the page cache of each connection, in KiB.
	//
	// Defaults to 2000.
	Cache int
	// Poll is how often the file is asked whether another node has changed definitions or credentials.
	//
	// Defaults to 500 ms.
	Poll time.Duration
}

// Defaults fills what is not set.
func (o *Options) Defaults() {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	if o.Max == 0 {
		o.Max = max(4, 2*runtime.GOMAXPROCS(0))
	}
	if o.Cache == 0 {
		o.Cache = 2000
	}
	set(&o.Wait, 5*time.Second)
	set(&o.Statement, 30*time.Second)
	set(&o.Poll, 500*time.Millisecond)
}

// Validate returns all faults of the settings.
func (o *Options) Validate() error {
	var faults []error
	if o.Path == "" {
		faults = append(faults, errors.New("database.path: names no file"))
	}
	if o.Max < 1 || o.Max > 1000 {
		faults = append(faults, fmt.Errorf("database.pool.max: %d is not between 1 and 1000", o.Max))
	}
	if o.Wait < 0 {
		faults = append(faults, errors.New("database.pool.wait: must not be negative"))
	}
	if o.Cache < 100 {
		faults = append(faults, fmt.Errorf("database.cache: %d is less than 100 KiB", o.Cache))
	}
	if o.Poll < time.Millisecond {
		faults = append(faults, fmt.Errorf("database.poll: %s is less than 1ms", o.Poll))
	}
	return errors.Join(faults...)
}

// Store is one database file.
type Store struct {
	opts     Options
	compiler *store.Compiler
	readers  *pool
	writer   *pool
}

var _ store.Store = (*Store)(nil)

// Open opens the file, creating it when it does not exist, and makes sure that weir's own tables are there. A file that
// cannot be opened is Unavailable.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.Defaults()
	if err := o.Validate(); err != nil {
		return nil, record.Errorf(record.Invalid, "database", "%s", err.Error())
	}
	s := &Store{opts: o, compiler: store.NewCompiler(store.SQLite)}
	s.writer = newPool("write", 1, o.Wait, func() (*conn, error) { return openConn(&s.opts, false) })
	s.readers = newPool("read", o.Max, o.Wait, func() (*conn, error) { return openConn(&s.opts, true) })
	if !vfs.SupportsSharedMemory {
		s.readers = s.writer
	}
	// The first connection makes the file a WAL database, before any reader opens it.
	if err := s.install(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("open %s: %w", o.Path, err)
	}
	return s, nil
}

// install creates weir's own tables where they are missing.
func (s *Store) install(ctx context.Context) error {
	plan, err := s.Schema().Plan(ctx, catalog.System())
	if err != nil || len(plan.Additive) == 0 {
		return err
	}
	return s.Schema().Apply(ctx, plan.Additive)
}

// Name is "sqlite".
func (s *Store) Name() string { return store.SQLite.Name }

// Stats are the figures of the read and the write connections together.
func (s *Store) Stats() store.Stats {
	st := s.writer.stats()
	if s.readers != s.writer {
		r := s.readers.stats()
		st.Max += r.Max
		st.InUse += r.InUse
		st.Idle += r.Idle
		st.Waiting += r.Waiting
		st.Borrowed += r.Borrowed
		st.Timeouts += r.Timeouts
		st.WaitTime += r.WaitTime
	}
	return st
}

// Close closes all connections, waiting for those in use.
func (s *Store) Close() error {
	err := s.readers.close()
	if s.writer != s.readers {
		if e := s.writer.close(); err == nil {
			err = e
		}
	}
	return err
}

// Schema inspects and changes the file's tables, on the write connection.
func (s *Store) Schema() store.Schema { return schema{s} }

type schema struct{ *Store }

func (s schema) Plan(ctx context.Context, snap *catalog.Snapshot) (plan *store.Plan, err error) {
	err = s.writing(ctx, func(c *conn) error {
		plan, err = planSchema(c.db, snap)
		return err
	})
	return plan, err
}

func (s schema) Apply(ctx context.Context, changes []store.Change) error {
	return s.writing(ctx, func(c *conn) error {
		// Prepared statements would notice the change by themselves, but some would be prepared anew at each of them.
		c.forget()
		return applySchema(c.db, changes)
	})
}

func (s schema) Introspect(ctx context.Context, _ string) (defs []catalog.TableDef, err error) {
	err = s.writing(ctx, func(c *conn) error {
		defs, err = introspect(c.db)
		return err
	})
	return defs, err
}

// writing calls f with the write connection. It must not be called by who holds a transaction.
func (s *Store) writing(ctx context.Context, f func(*conn) error) error {
	c, err := s.writer.get(ctx)
	if err != nil {
		return err
	}
	defer s.writer.put(c)
	c.limit(ctx, s.opts.Statement)
	defer c.unlimit()
	if err := f(c); err != nil {
		return c.translate(ctx, err, nil)
	}
	return nil
}

// Routines are none: SQLite has no functions that are stored.
func (schema) Routines(context.Context, string) ([]store.Routine, error) { return nil, nil }
