package postgres

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// plainSettings are what an operator's statement wants of its session.
func (s *Store) plainSettings(ctx context.Context, o store.SQLOptions) (settings, error) {
	want := settings{timeout: o.Timeout}
	if s.opts.RequestIDs {
		want.name = o.ID
	}
	if o.Login != nil {
		return want, nil
	}
	var err error
	want.role, err = s.endpointRole(ctx)
	return want, err
}

// connection takes a connection of the pool, or logs in.
func (s *Store) connection(ctx context.Context, o *store.SQLOptions) (lease, error) {
	if o.Login != nil {
		return s.logIn(ctx, o.Login)
	}
	return s.acquire(ctx)
}

// Select runs a statement that reads and streams its rows: the connection is held until Close.
func (s *Store) Select(ctx context.Context, st *store.Statement, args []record.Value, o store.SQLOptions) (*record.Rows, error) {
	if err := store.CheckVerb(st.SQL); err != nil {
		return nil, rejected(err)
	}
	want, err := s.plainSettings(ctx, o)
	if err != nil {
		return nil, err
	}
	conn, err := s.connection(ctx, &o)
	if err != nil {
		return nil, err
	}
	rows, err := s.selectOn(ctx, conn, st, args, want)
	if err == nil {
		return rows, nil
	}
	again := broken(ctx, conn) && o.Login == nil // while it was idle, most likely
	s.release(conn)
	e := conn.fault(ctx, err, st.SQL)
	if !again && (o.Login != nil || !s.regrant(ctx, e, false)) {
		return nil, e
	}
	if conn, err = s.acquire(ctx); err != nil {
		return nil, err
	}
	if rows, err = s.selectOn(ctx, conn, st, args, want); err != nil {
		s.release(conn)
		return nil, conn.fault(ctx, err, st.SQL)
	}
	return rows, nil
}

// selectOn starts the statement on a connection and reads its first row, since most of what can go wrong goes wrong before it.
func (s *Store) selectOn(ctx context.Context, conn lease, st *store.Statement, args []record.Value, want settings) (*record.Rows, error) {
	session := sessionOf(conn)
	began := time.Now()
	c, err := session.start(ctx, session.adopt(want), step{st: st, plain: true, values: args})
	if err != nil {
		return nil, err
	}
	src := &stream{store: s, conn: conn, ctx: ctx, cursor: c}
	src.fault = func(err error) *record.Error { return conn.fault(ctx, err, st.SQL) }
	row, ok := c.next()
	telemetry.From(ctx).Statement(time.Since(began))
	if !ok {
		if err := c.close(); err != nil {
			return nil, err
		}
		src.done = true
		s.release(conn)
	}
	return record.StreamRows(c.plan.describe(), c.plan.types, &peeked{stream: src, row: row, ok: ok}), nil
}

// peeked is a stream whose first row was read already.
type peeked struct {
	*stream
	row []record.Value
	ok  bool
}

// Next is the next row.
func (p *peeked) Next() ([]record.Value, bool) {
	if p.ok {
		p.ok = false
		return p.row, true
	}
	return p.stream.Next()
}

// describe is the names of the columns; it fills the types too.
func (p *prepared) describe() []string {
	if p.names == nil {
		p.names = make([]string, len(p.desc.Fields))
		for i := range p.desc.Fields {
			p.names[i] = p.desc.Fields[i].Name
		}
	}
	if p.types == nil {
		p.types = make([]record.Type, len(p.columns))
		for i := range p.columns {
			p.types[i] = p.columns[i].typ
		}
	}
	return p.names
}

// BeginPlain is Begin for statements that Tx.Run runs.
func (s *Store) BeginPlain(ctx context.Context, o store.SQLOptions) (store.Tx, error) {
	want, err := s.plainSettings(ctx, o)
	if err != nil {
		return nil, err
	}
	conn, err := s.connection(ctx, &o)
	if err != nil {
		return nil, err
	}
	return &tx{store: s, conn: conn, session: sessionOf(conn), pending: []string{begin}, want: want, memory: o.Memory}, nil
}

// Run runs a statement of the operator's own.
func (t *tx) Run(ctx context.Context, st *store.Statement, args []record.Value) (*record.Rows, int64, error) {
	if err := store.CheckVerb(st.SQL); err != nil {
		return nil, 0, rejected(err)
	}
	return t.runPlain(ctx, st, args)
}

func (t *tx) runPlain(ctx context.Context, st *store.Statement, args []record.Value) (*record.Rows, int64, error) {
	began := time.Now()
	defer func() { telemetry.From(ctx).Statement(time.Since(began)) }()
	c, err := t.start(ctx, step{st: st, plain: true, values: args})
	if err != nil {
		return nil, 0, t.conn.fault(ctx, err, st.SQL)
	}
	names := c.plan.describe()
	rows := record.NewRows(names, c.plan.types)
	left := t.memory
	for row, ok := c.next(); ok; row, ok = c.next() {
		rows.Append(row)
		if left -= store.RowSize(row); left < 0 && t.memory > 0 {
			c.err = store.TooMany(t.memory)
		}
	}
	if err := c.close(); err != nil {
		return nil, 0, t.conn.fault(ctx, err, st.SQL)
	}
	affected := c.tag.RowsAffected()
	if c.tag.Select() {
		affected = 0
	}
	if len(names) == 0 {
		return nil, affected, nil
	}
	return rows, affected, nil
}

// Describe asks the server what a statement takes and gives. It is prepared, and planned once without values as the role
// that will run it, so that rights which that role lacks are found out too.
func (s *Store) Describe(ctx context.Context, sql string, natives []string) (*store.Described, error) {
	if err := store.CheckVerb(sql); err != nil {
		return nil, err
	}
	// Who may set a role may set it back.
	if name, pos := store.OneOf(sql, "set_config"); name != "" {
		return nil, &store.SQLError{Msg: name + " changes the session, which is shared with other calls", Pos: pos}
	}
	role, err := s.endpointRole(ctx)
	if err != nil {
		return nil, err
	}
	d, err := s.describe(ctx, sql, natives, role)
	if err != nil && s.regrant(ctx, err, true) {
		d, err = s.describe(ctx, sql, natives, role)
	}
	return d, err
}

const describing = "weir_describe"

func (s *Store) describe(ctx context.Context, sql string, natives []string, role string) (d *store.Described, err error) {
	err = s.with(ctx, func(conn *pgx.Conn) error {
		oids, err := paramTypes(ctx, conn, natives)
		if err != nil {
			return err
		}
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(context.WithoutCancel(ctx))
		if role != "" {
			if _, err := tx.Exec(ctx, "SET LOCAL ROLE "+store.Quote(role)); err != nil {
				return err
			}
		}
		pg := conn.PgConn()
		desc, err := pg.Prepare(ctx, describing, sql, oids)
		if err != nil {
			return faulty(ctx, err, sql)
		}
		defer pg.Deallocate(context.WithoutCancel(ctx), describing)
		if err := touchesOwn(ctx, tx); err != nil {
			return err
		}
		if d, err = describeTypes(ctx, tx, desc); err != nil {
			return err
		}
		return mayRun(ctx, tx, sql, len(desc.ParamOIDs))
	})
	var fault *store.SQLError
	if errors.As(err, &fault) {
		return nil, fault
	}
	return d, err
}

// paramTypes looks up the types of parameters that are known.
func paramTypes(ctx context.Context, conn *pgx.Conn, natives []string) ([]uint32, error) {
	oids := make([]uint32, len(natives))
	for i, name := range natives {
		if name == "" {
			continue
		}
		err := conn.QueryRow(ctx, "SELECT coalesce(to_regtype($1)::oid, 0)", name).Scan(&oids[i])
		var pg *pgconn.PgError
		if asPgError(err, &pg) && !infra(pg.Code) || err == nil && oids[i] == 0 {
			return nil, record.Errorf(record.Invalid, "", "the database has no type %.60q", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return oids, nil
}

// touchesOwn refuses statements that name weir's own tables, directly or through views: preparing has locked what they
// touch. A role without rights there is kept out anyway; weir's login is not.
func touchesOwn(ctx context.Context, tx pgx.Tx) error {
	var name string
	err := tx.QueryRow(ctx, `SELECT c.relname FROM pg_locks l JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND n.nspname = $1 LIMIT 1`, pgx.QueryExecModeExec, catalog.SystemSchema).Scan(&name)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return &store.SQLError{Msg: "permission denied: " + catalog.SystemSchema + "." + name + " is weir's own", Code: "42501", Pos: -1}
}

// describeTypes names the types of parameters and columns, and the stored columns that these come from.
func describeTypes(ctx context.Context, tx pgx.Tx, desc *pgconn.StatementDescription) (*store.Described, error) {
	d := &store.Described{}
	types := append([]uint32(nil), desc.ParamOIDs...)
	mods := make([]int32, len(types))
	tables, columns := make([]uint32, len(types)), make([]int32, len(types))
	for i := range mods {
		mods[i] = -1
	}
	for i := range desc.Fields {
		f := &desc.Fields[i]
		types, mods = append(types, f.DataTypeOID), append(mods, f.TypeModifier)
		tables, columns = append(tables, f.TableOID), append(columns, int32(f.TableAttributeNumber))
	}
	rows, err := tx.Query(ctx, `SELECT format_type(u.typ, nullif(u.mod, -1)), coalesce(a.attname, ''),
			coalesce(CASE WHEN pg_table_is_visible(c.oid) THEN c.relname ELSE n.nspname || '.' || c.relname END, '')
		FROM unnest($1::oid[], $2::int4[], $3::oid[], $4::int4[]) WITH ORDINALITY u (typ, mod, rel, att, i)
		LEFT JOIN pg_class c ON c.oid = u.rel LEFT JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_attribute a ON a.attrelid = u.rel AND a.attnum = u.att ORDER BY u.i`, types, mods, tables, columns)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for i := 0; rows.Next(); i++ {
		c := store.DescribedColumn{Type: typeOf(types[i])}
		if err := rows.Scan(&c.Native, &c.Column, &c.Table); err != nil {
			return nil, err
		}
		if i < len(desc.ParamOIDs) {
			d.Params = append(d.Params, c)
			continue
		}
		c.Name = desc.Fields[i-len(desc.ParamOIDs)].Name
		d.Columns = append(d.Columns, c)
	}
	return d, rows.Err()
}

// mayRun plans the prepared statement with nulls and reports a right that is lacking. Other faults of planning are no faults
// of the statement: its values will be others.
func mayRun(ctx context.Context, tx pgx.Tx, sql string, params int) error {
	switch word, _ := store.FirstWord(sql); word {
	case "CALL", "TRUNCATE", "LOCK", "NOTIFY": // these have no plan
		return nil
	}
	values := ""
	if params > 0 {
		values = "(NULL" + strings.Repeat(", NULL", params-1) + ")"
	}
	_, err := tx.Exec(ctx, "EXPLAIN EXECUTE "+describing+values, pgx.QueryExecModeExec)
	var pg *pgconn.PgError
	if err != nil && asPgError(err, &pg) && pg.Code == "42501" {
		return sqlError(sql, pg)
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}
