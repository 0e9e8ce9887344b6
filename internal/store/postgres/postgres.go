package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// Options are the settings of a store.
type Options struct {
	// URL says where the database is, as libpq does: postgres://user@host:port/database?sslmode=…
	URL string
	// Max is how many connections the pool opens at most. Three more serve numbers and notices.
	//
	// Defaults to 4 for each processor, but at least 8 and at most 20: sessions that take turns on the same processors cost
	// more than those that wait for one here.
	Max int
	// Min is how many connections stay open when nothing is to be done, as far as Max allows. Negative: none.
	//
	// Defaults to 2.
	Min int
	// Idle is how long a connection beyond those may be without work before it is closed.
	//
	// Defaults to 30 min.
	Idle time.Duration
	// Age is how old a connection may become before another one takes its place.
	//
	// Defaults to 1 h.
	Age time.Duration
	// Wait is how long a request waits for a connection before it gets an Unavailable error.
	//
	// Defaults to 5 s.
	Wait time.Duration
	// Statement is how long the database works on one statement before it gives up. Negative: no limit.
	//
	// Defaults to 30 s.
	Statement time.Duration
	// Lock is how long a statement waits for a record that another transaction holds. Negative: no limit.
	//
	// Defaults to 10 s.
	Lock time.Duration
	// Connect is how long the opening of one connection may take.
	//
	// Defaults to 5 s.
	Connect time.Duration
}

// Defaults fills what is not set.
func (o *Options) Defaults() {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	if o.Max == 0 {
		o.Max = min(max(4*runtime.GOMAXPROCS(0), 8), 20)
	}
	if o.Min == 0 {
		o.Min = 2
	}
	o.Min = max(min(o.Min, o.Max), 0)
	set(&o.Idle, 30*time.Minute)
	set(&o.Age, time.Hour)
	set(&o.Wait, 5*time.Second)
	set(&o.Statement, 30*time.Second)
	set(&o.Lock, 10*time.Second)
	set(&o.Connect, 5*time.Second)
}

// Validate returns all faults of the settings.
func (o *Options) Validate() error {
	var faults []error
	if o.Max < 1 || o.Max > 10000 {
		faults = append(faults, fmt.Errorf("database.pool.max: %d is not between 1 and 10000", o.Max))
	}
	if o.Wait < 0 {
		faults = append(faults, errors.New("database.pool.wait: must not be negative"))
	}
	if _, err := pgxpool.ParseConfig(o.URL); err != nil {
		faults = append(faults, fmt.Errorf("database.url: %w", err))
	}
	return errors.Join(faults...)
}

// Store is a PostgreSQL database. It is safe for concurrent use.
type Store struct {
	opts     Options
	pool     *pgxpool.Pool
	numbers  *pgxpool.Pool
	compiler *store.Compiler

	role     role
	slots    chan struct{} // one for each connection that may be in use
	waiting  atomic.Int64
	borrowed atomic.Int64
	waited   atomic.Int64 // nanoseconds
}

var _ store.Store = (*Store)(nil)

// Open connects to a database and makes sure that weir's own tables are there. When the database cannot be reached the
// error is Unavailable.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.Defaults()
	if err := o.Validate(); err != nil {
		return nil, record.Errorf(record.Invalid, "database", "%s", err.Error())
	}
	s := &Store{opts: o, compiler: store.NewCompiler(store.PostgreSQL), slots: make(chan struct{}, o.Max)}
	var err error
	if s.pool, err = pgxpool.NewWithConfig(ctx, s.config(o.Max, o.Min, nil)); err != nil {
		return nil, translate(ctx, err, nil)
	}
	// A number is drawn by a commit of its own. It need not reach the disk before the record that bears it: the log is
	// written in order, so the record's commit carries it along.
	if s.numbers, err = pgxpool.NewWithConfig(ctx, s.config(2, 0, map[string]string{"synchronous_commit": "off"})); err != nil {
		s.pool.Close()
		return nil, translate(ctx, err, nil)
	}
	if err := s.install(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// config is the settings of a pool whose sessions have the parameters that statements rely on.
func (s *Store) config(maxConns, minConns int, params map[string]string) *pgxpool.Config {
	c, err := pgxpool.ParseConfig(s.opts.URL)
	if err != nil {
		panic("postgres: a validated URL: " + err.Error())
	}
	c.MaxConns, c.MinConns = int32(maxConns), int32(minConns)
	c.MaxConnLifetime, c.MaxConnLifetimeJitter, c.MaxConnIdleTime = s.opts.Age, s.opts.Age/6, s.opts.Idle
	c.HealthCheckPeriod = 10 * time.Second
	c.PingTimeout = s.opts.Connect
	s.session(c.ConnConfig, params)
	// A context that ends cancels the statement in the database; the connection stays good.
	c.ConnConfig.BuildContextWatcherHandler = func(pg *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: pg, DeadlineDelay: 5 * time.Second}
	}
	c.AfterConnect = hideSystem
	return c
}

// hideSystem takes weir's own schema out of the search path, where it would be for a login of the same name: tables of
// definitions are never found there.
func hideSystem(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `SELECT set_config('search_path', coalesce(string_agg(quote_ident(s), ', ' ORDER BY n), ''), false)
		FROM unnest(current_schemas(false)) WITH ORDINALITY u(s, n) WHERE s <> $1`, pgx.QueryExecModeExec, catalog.SystemSchema)
	return err
}

func (s *Store) session(c *pgx.ConnConfig, params map[string]string) {
	c.ConnectTimeout = s.opts.Connect
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	p := c.RuntimeParams
	p["application_name"], p["timezone"], p["datestyle"], p["intervalstyle"] = "weir", "UTC", "ISO", "postgres"
	// Compiling a statement takes longer than most of ours run, and cannot be canceled: 5 s were seen on a busy machine.
	p["jit"] = "off"
	p["bytea_output"], p["extra_float_digits"] = "hex", "1"
	p["statement_timeout"] = millis(s.opts.Statement)
	p["lock_timeout"] = millis(s.opts.Lock)
	for k, v := range params {
		p[k] = v
	}
}

func millis(d time.Duration) string {
	if d < 0 {
		return "0"
	}
	return fmt.Sprint(max(d.Milliseconds(), 1))
}

// install creates what is missing of weir's own tables. Nodes that start together take turns.
func (s *Store) install(ctx context.Context) error {
	var there bool
	err := s.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)", catalog.SystemSchema).Scan(&there)
	})
	if err != nil {
		return err
	}
	var changes []store.Change
	if !there {
		changes = append(changes, store.Change{What: "create schema", SQL: []string{"CREATE SCHEMA IF NOT EXISTS " + store.Quote(catalog.SystemSchema)}})
	}
	plan, err := s.Schema().Plan(ctx, catalog.System())
	if err != nil {
		return err
	}
	if len(plan.Destructive) > 0 {
		c := plan.Destructive[0]
		return record.Errorf(record.Invalid, "database", "weir's own table %s is not as this version needs it: %s", c.Table, c.What)
	}
	if changes = append(changes, plan.Additive...); len(changes) == 0 {
		return nil
	}
	return s.Schema().Apply(ctx, changes)
}

// Name is "postgres".
func (s *Store) Name() string { return "postgres" }

// closeLimit is how long Close waits for connections in use.
const closeLimit = 10 * time.Second

// Close closes all connections; it waits a while for those in use, and the error says if some are left.
func (s *Store) Close() error {
	closed := make(chan struct{})
	go func() {
		s.pool.Close()
		s.numbers.Close()
		close(closed)
	}()
	timer := time.NewTimer(closeLimit)
	defer timer.Stop()
	select {
	case <-closed:
		return nil
	case <-timer.C:
		return record.Errorf(record.Unavailable, "", "%d connections are still in use after %s", len(s.slots), closeLimit)
	}
}

// Stats are the figures of the pool.
func (s *Store) Stats() store.Stats {
	return store.Stats{
		Max: s.opts.Max, InUse: len(s.slots), Idle: int(s.pool.Stat().IdleConns()), Waiting: int(s.waiting.Load()),
		Borrowed: s.borrowed.Load(), WaitTime: time.Duration(s.waited.Load()),
	}
}

// acquire takes a connection, waiting at most Options.Wait for one.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	select {
	case s.slots <- struct{}{}:
	default:
		if err := s.wait(ctx); err != nil {
			return nil, err
		}
	}
	s.borrowed.Add(1)
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		<-s.slots
		return nil, translate(ctx, err, nil)
	}
	return conn, nil
}

func (s *Store) wait(ctx context.Context) error {
	start := time.Now()
	s.waiting.Add(1)
	timer := time.NewTimer(s.opts.Wait)
	defer func() {
		d := time.Since(start)
		timer.Stop()
		s.waiting.Add(-1)
		s.waited.Add(int64(d))
		telemetry.From(ctx).Borrowed(d)
	}()
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx, ctx.Err())
	case <-timer.C:
		st := s.Stats()
		return record.Errorf(record.Unavailable, "",
			"no database connection came free within %s: %d of %d in use, %d idle, %d waiting; see database.pool.max and database.pool.wait",
			s.opts.Wait, st.InUse, st.Max, st.Idle, st.Waiting)
	}
}

// release gives a connection back. One that broke meanwhile tells that the others are likely broken too, as after a
// restart of the server: the idle ones are dropped before somebody else meets them.
func (s *Store) release(conn *pgxpool.Conn) {
	if conn.Conn().IsClosed() {
		s.pool.Reset()
	}
	conn.Release()
	<-s.slots
}

// broken reports whether a connection was lost by no doing of the caller.
func broken(ctx context.Context, conn *pgxpool.Conn) bool {
	return conn.Conn().IsClosed() && ctx.Err() == nil
}

// with runs f on a connection.
func (s *Store) with(ctx context.Context, f func(*pgx.Conn) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.release(conn)
	session := sessionOf(conn)
	if set := session.adopt(settings{}); len(set) > 0 { // an endpoint's statement was here
		if err := session.pg.Exec(ctx, strings.Join(set, "; ")).Close(); err != nil {
			return translate(ctx, err, nil)
		}
		session.settle()
	}
	if err := f(conn.Conn()); err != nil {
		return translate(ctx, err, nil)
	}
	return nil
}

var drawSQL = fmt.Sprintf(`INSERT INTO %s AS s (name, next) VALUES ($1, $2::bigint + $3::bigint)
	ON CONFLICT (name) DO UPDATE SET next = s.next + $3::bigint RETURNING next - $3::bigint`, tableName(catalog.SystemSchema, "sequence"))

// Numbers draws n consecutive numbers of a sequence and returns the first. It has connections of its own, so that a
// transaction that holds one of the pool's never waits for another.
func (s *Store) Numbers(ctx context.Context, sequence string, start int64, n int) (int64, error) {
	if n < 1 || start > math.MaxInt64-int64(n) {
		return 0, record.Errorf(record.Invalid, "", "cannot draw %d numbers from %d on", n, start)
	}
	begin := time.Now()
	var first int64
	err := s.numbers.QueryRow(ctx, drawSQL, sequence, start, n).Scan(&first)
	telemetry.From(ctx).Statement(time.Since(begin))
	if err != nil {
		return 0, translate(ctx, err, nil)
	}
	return first, nil
}
