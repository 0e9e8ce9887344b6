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
	// Logins is how many sessions of callers' own (database users who log in for one call) may be open at once, beside the
	// pool's connections. A call waits for one as long as for a connection of the pool.
	//
	// Defaults to 10.
	Logins int
	// TrustLogins accepts the login of a caller although the server asks for no password. Without it such a server, which
	// would let in anybody, lets in nobody.
	TrustLogins bool
	// RequestIDs names the request in the database (application_name), for its log and its views of what runs.
	RequestIDs bool
	// Connect is how long the opening of one connection may take.
	//
	// Defaults to 5 s.
	Connect time.Duration
}

// hardMax is how many connections a pool may have at most, whatever the settings.
const hardMax = 10000

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
	if o.Logins == 0 {
		o.Logins = 10
	}
	set(&o.Wait, 5*time.Second)
	set(&o.Statement, 30*time.Second)
	set(&o.Lock, 10*time.Second)
	set(&o.Connect, 5*time.Second)
}

// Validate returns all faults of the settings.
func (o *Options) Validate() error {
	var faults []error
	if o.Max < 1 || o.Max > hardMax {
		faults = append(faults, fmt.Errorf("database.pool.max: %d is not between 1 and %d", o.Max, hardMax))
	}
	if o.Logins < 1 || o.Logins > hardMax {
		faults = append(faults, fmt.Errorf("database.logins.max: %d is not between 1 and %d", o.Logins, hardMax))
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

	role   role
	slots  slots       // of connections that may be in use
	logins slots       // of sessions of callers' own
	shrunk atomic.Bool // there may be more connections than slots
}

var _ store.Store = (*Store)(nil)

// Open connects to a database and makes sure that weir's own tables are there. When the database cannot be reached the
// error is Unavailable.
func Open(ctx context.Context, o Options) (*Store, error) {
	o.Defaults()
	if err := o.Validate(); err != nil {
		return nil, record.Errorf(record.Invalid, "database", "%s", err.Error())
	}
	s := &Store{opts: o, compiler: store.NewCompiler(store.PostgreSQL)}
	s.slots.resize(o.Max, o.Wait)
	s.slots.full = s.exhausted
	s.logins.resize(o.Logins, o.Wait)
	s.logins.full = noLogins
	var err error
	if s.pool, err = pgxpool.NewWithConfig(ctx, s.config(hardMax, o.Min, nil)); err != nil {
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
	c.ConnConfig.DialFunc = counting(c.ConnConfig.DialFunc)
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
		return record.Errorf(record.Unavailable, "", "%d connections are still in use after %s", s.slots.stats().InUse, closeLimit)
	}
}

// Stats are the figures of the pool.
func (s *Store) Stats() store.Stats {
	st := s.slots.stats()
	st.Idle = int(s.pool.Stat().IdleConns())
	return st
}

// exhausted is the error of who waited for a connection in vain.
func (s *Store) exhausted(_ store.Stats, wait time.Duration) *record.Error {
	return record.Errorf(record.Unavailable, "", "no database connection came free within %s: %s; see database.pool.max and database.pool.wait",
		wait, s.Stats()).By(record.RulePool)
}

// Resize changes how many connections there may be and how long work waits for one; 0 leaves it. Connections in use are not
// disturbed; those too many are closed as they come back.
func (s *Store) Resize(limit int, wait time.Duration) {
	before := s.slots.stats().Max
	s.slots.resize(min(limit, hardMax), wait)
	if limit <= 0 || limit >= before {
		return
	}
	s.shrunk.Store(true)
	for _, conn := range s.pool.AcquireAllIdle(context.Background()) {
		if !s.closeSurplus(conn) {
			conn.Release()
		}
	}
}

// closeSurplus closes a connection when there are more than slots.
func (s *Store) closeSurplus(conn *pgxpool.Conn) bool {
	if !s.shrunk.Load() || int(s.pool.Stat().TotalConns()) <= s.slots.stats().Max {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.opts.Connect)
	defer cancel()
	_ = conn.Hijack().Close(ctx) // a goodbye that the server misses is its timeout's concern
	return true
}

// lease is a connection in use: one of the pool, or a session of a caller's own.
type lease struct {
	conn   *pgx.Conn
	pooled *pgxpool.Conn // nil: the caller's own
	meter  meter
}

// acquire takes a connection, waiting for one no longer than the slots allow.
func (s *Store) acquire(ctx context.Context) (lease, error) {
	if err := s.slots.take(ctx); err != nil {
		return lease{}, err
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		s.slots.give()
		return lease{}, translate(ctx, err, nil)
	}
	return lease{conn: conn.Conn(), pooled: conn, meter: newMeter(ctx, conn.Conn())}, nil
}

// release gives a connection back. One that broke meanwhile tells that the others are likely broken too, as after a
// restart of the server: the idle ones are dropped before somebody else meets them.
func (s *Store) release(l lease) {
	l.meter.stop()
	if l.pooled == nil {
		s.logOut(l)
		return
	}
	defer s.slots.give()
	if l.conn.IsClosed() {
		s.pool.Reset()
	} else if s.closeSurplus(l.pooled) {
		return
	}
	l.pooled.Release()
}

// drop ends a connection in the middle of its work, without a goodbye: the server is still sending.
func (s *Store) drop(l lease) {
	l.meter.stop()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l.conn.Close(ctx)
	if l.pooled == nil {
		s.logins.give()
		return
	}
	l.pooled.Release()
	s.slots.give()
}

// broken reports whether a connection was lost by no doing of the caller.
func broken(ctx context.Context, l lease) bool {
	return l.conn.IsClosed() && ctx.Err() == nil
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
	if err := f(conn.conn); err != nil {
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
