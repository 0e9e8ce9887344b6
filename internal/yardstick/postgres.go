package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// scratchSchema holds the copy while insert or savepoints runs; it is dropped at the end.
const scratchSchema = "weir_yardstick"

// postgresDB is the yardstick on PostgreSQL: pgx, prepared statements, arrays through unnest.
type postgresDB struct {
	pool           *pgxpool.Pool
	columns        []column
	next           int
	scratch        bool
	set, row       string // insert n rows from arrays, insert one
	copied         string // the copy's name
	getOne, getAll string
	countAll       string
	getChildren    string
}

func openPostgres(ctx context.Context, o *options, serving bool) (_ *postgresDB, err error) {
	pool, err := pgxpool.New(ctx, o.db)
	if err != nil {
		return nil, err
	}
	d := &postgresDB{pool: pool}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	source := quotePG(o.table)
	if schema, table, ok := strings.Cut(o.table, "."); ok {
		source = quotePG(schema) + "." + quotePG(table)
	}
	if err := d.readTable(ctx, source, o); err != nil {
		return nil, fmt.Errorf("read table %s: %w", o.table, err)
	}
	if serving {
		if err := o.show(d.columns); err != nil {
			return nil, err
		}
		var quoted []string
		for _, c := range o.columns {
			quoted = append(quoted, quotePG(c))
		}
		query := "SELECT " + strings.Join(quoted, ", ") + " FROM " + source
		d.getOne = query + " WHERE " + quotePG(o.key) + " = $1"
		d.getAll = query + o.wherePG() + " ORDER BY " + quotePG(o.key) + " LIMIT $1"
		if o.child != "" {
			d.getChildren = o.childQuery(quotePG, "$1")
		}
		d.countAll = "SELECT count(*) FROM " + source + o.wherePG()
		return d, nil
	}
	return d, d.copyTable(ctx, source)
}

// wherePG is the condition, with the value as a literal.
func (o *options) wherePG() string {
	if o.whereColumn == "" {
		return ""
	}
	return " WHERE " + quotePG(o.whereColumn) + " = " + literalPG(o.whereValue)
}

// literalPG quotes a text under standard_conforming_strings, which is on unless someone turned it off.
func literalPG(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func quotePG(name string) string { return pgx.Identifier{name}.Sanitize() }

// readTable reads columns, types, unique keys and the first row.
func (d *postgresDB) readTable(ctx context.Context, source string, o *options) error {
	rows, err := d.pool.Query(ctx, `
		SELECT a.attname, format_type(a.atttypid, a.atttypmod), EXISTS (
			SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND a.attnum = ANY (i.indkey))
		FROM pg_attribute a WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
		ORDER BY a.attnum`, source)
	if err != nil {
		return err
	}
	d.columns, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (c column, err error) {
		return c, r.Scan(&c.name, &c.kind, &c.unique)
	})
	if err != nil {
		return err
	}
	var texts []string
	var into []any
	for i, c := range d.columns {
		texts = append(texts, quotePG(c.name)+"::text")
		into = append(into, &d.columns[i].value)
	}
	err = d.pool.QueryRow(ctx, "SELECT "+strings.Join(texts, ", ")+" FROM "+source+o.wherePG()+" LIMIT 1").Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// copyTable makes the scratch table like the source, with its indexes and constraints, and the two statements.
func (d *postgresDB) copyTable(ctx context.Context, source string) error {
	for _, c := range d.columns {
		if c.unique && c.value == nil {
			return fmt.Errorf("table %s has no row to copy: create one record first", source)
		}
	}
	copied := scratchSchema + ".copy"
	d.scratch, d.copied = true, copied
	_, err := d.pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+scratchSchema+" CASCADE; CREATE SCHEMA "+scratchSchema+
		"; CREATE TABLE "+copied+" (LIKE "+source+" INCLUDING ALL)", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return fmt.Errorf("copy table %s: %w", source, err)
	}
	// Arrays and parameters go over as text; PostgreSQL casts what is another type.
	var arrays, aliases, fromArrays, fromParams []string
	for i, c := range d.columns {
		n := strconv.Itoa(i + 1)
		arrays = append(arrays, "$"+n+"::text[]")
		aliases = append(aliases, "c"+n)
		fromArrays = append(fromArrays, "u.c"+n+"::"+c.kind)
		fromParams = append(fromParams, "$"+n+"::text::"+c.kind)
	}
	into := "INSERT INTO " + copied + " (" + strings.Join(names(d.columns, quotePG), ", ") + ") OVERRIDING SYSTEM VALUE "
	d.set = into + "SELECT " + strings.Join(fromArrays, ", ") + " FROM unnest(" + strings.Join(arrays, ", ") + ") AS u(" + strings.Join(aliases, ", ") + ")"
	d.row = into + "VALUES (" + strings.Join(fromParams, ", ") + ")"
	return nil
}

func (d *postgresDB) insert(ctx context.Context, n int) (time.Duration, error) {
	begin := time.Now()
	arrays := make([]any, len(d.columns))
	for i, c := range d.columns {
		values := make([]*string, n)
		for k := range values {
			values[k] = c.at(d.next + 1 + k)
		}
		arrays[i] = values
	}
	d.next += n
	_, err := d.pool.Exec(ctx, d.set, arrays...) // one statement is one transaction
	return time.Since(begin), err
}

func (d *postgresDB) savepoints(ctx context.Context, n int) (time.Duration, error) {
	if d.next == 0 {
		if _, err := d.insert(ctx, 1); err != nil {
			return 0, err
		}
	}
	params := make([]any, len(d.columns))
	for i, c := range d.columns {
		params[i] = c.at(1)
	}
	begin := time.Now()
	err := pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		for range n {
			if _, err := tx.Exec(ctx, "SAVEPOINT one"); err != nil {
				return err
			}
			var bad *pgconn.PgError
			if _, err := tx.Exec(ctx, d.row, params...); !errors.As(err, &bad) || bad.Code != "23505" {
				return fmt.Errorf("a row that is there already was inserted again: %v", err)
			}
			if _, err := tx.Exec(ctx, "ROLLBACK TO one; RELEASE one", pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(begin), err
}

func (d *postgresDB) one(ctx context.Context, key string, row func([][]byte)) error {
	return d.read(ctx, row, d.getOne, key)
}

func (d *postgresDB) list(ctx context.Context, n int, row func([][]byte)) error {
	return d.read(ctx, row, d.getAll, n)
}

func (d *postgresDB) children(ctx context.Context, n int, row func([][]byte)) error {
	return d.read(ctx, row, d.getChildren, n)
}

func (d *postgresDB) count(ctx context.Context) (n int64, err error) {
	err = d.pool.QueryRow(ctx, d.countAll).Scan(&n)
	return n, err
}

// read asks for text, so that the bytes go to the answer as they come.
func (d *postgresDB) read(ctx context.Context, row func([][]byte), query string, param any) error {
	rows, err := d.pool.Query(ctx, query, pgx.QueryResultFormats{pgx.TextFormatCode}, param)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row(rows.RawValues())
	}
	return rows.Err()
}

func (d *postgresDB) close() error {
	var err error
	if d.scratch {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err = d.pool.Exec(ctx, "DROP SCHEMA IF EXISTS "+scratchSchema+" CASCADE")
	}
	d.pool.Close()
	return err
}
