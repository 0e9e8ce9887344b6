package main

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/ncruces/go-sqlite3"
)

// statement is one SELECT without parameters, kept prepared.
type statement interface {
	// rows calls row for each row, NULL as nil; values are valid during the call only.
	rows(ctx context.Context, row func(values [][]byte)) error
	names() []string
	close() error
}

// queryOptions say how the rows of a statement are shown.
type queryOptions struct {
	numbers  []string // columns that are written without quotes
	document bool     // the one column of the one row is the JSON of all items
	tail     string   // what follows the items
}

// queryHandler answers any GET with the rows of a statement: {"items":[{"name":value,…}] and the tail.
func queryHandler(s statement, o queryOptions) http.Handler {
	var members [][]byte
	var bare []bool
	for i, name := range s.names() {
		m, _ := jsontext.AppendQuote([]byte{"{,"[min(i, 1)]}, name)
		members, bare = append(members, append(m, ':')), append(bare, slices.Contains(o.numbers, name))
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b := buffers.Get().(*[]byte)
		defer buffers.Put(b)
		*b = append((*b)[:0], `{"items":`...)
		var err error
		if o.document {
			err = s.rows(r.Context(), func(values [][]byte) { *b = append(*b, values[0]...) })
		} else {
			*b = append(*b, '[')
			first := true
			err = s.rows(r.Context(), func(values [][]byte) {
				if !first {
					*b = append(*b, ',')
				}
				first = false
				for i, v := range values {
					*b = append(*b, members[i]...)
					switch {
					case v == nil:
						*b = append(*b, "null"...)
					case bare[i]:
						*b = append(*b, v...)
					default:
						*b, _ = jsontext.AppendQuote(*b, v)
					}
				}
				*b = append(*b, '}')
			})
			*b = append(*b, ']')
		}
		*b = append(*b, o.tail...)
		send(rw, *b, err)
	})
}

// openStatement prepares a SELECT on a database.
func openStatement(ctx context.Context, db, sql string) (statement, error) {
	if path, ok := strings.CutPrefix(db, "sqlite:"); ok {
		return openSQLiteStatement(path, sql)
	}
	pool, err := pgxpool.New(ctx, db)
	if err != nil {
		return nil, err
	}
	s := &postgresStatement{pool: pool, sql: sql}
	rows, err := pool.Query(ctx, sql, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		pool.Close()
		return nil, err
	}
	for _, f := range rows.FieldDescriptions() {
		s.columns = append(s.columns, f.Name)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

type postgresStatement struct {
	pool    *pgxpool.Pool
	sql     string
	columns []string
}

func (s *postgresStatement) names() []string { return s.columns }

// rows asks for text, so that the bytes go to the answer as they come.
func (s *postgresStatement) rows(ctx context.Context, row func([][]byte)) error {
	rows, err := s.pool.Query(ctx, s.sql, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row(rows.RawValues())
	}
	return rows.Err()
}

func (s *postgresStatement) close() error {
	s.pool.Close()
	return nil
}

// sqliteStatement is the statement on each of some connections.
type sqliteStatement struct{ free chan *sqlite3.Stmt }

func openSQLiteStatement(path, sql string) (*sqliteStatement, error) {
	n := 2 * runtime.GOMAXPROCS(0)
	s := &sqliteStatement{free: make(chan *sqlite3.Stmt, n)}
	for range n {
		conn, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READONLY)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		stmt, _, err := conn.Prepare(sql)
		if err != nil {
			return nil, errors.Join(err, conn.Close(), s.close())
		}
		s.free <- stmt
	}
	return s, nil
}

func (s *sqliteStatement) names() []string {
	stmt := <-s.free
	defer func() { s.free <- stmt }()
	names := make([]string, stmt.ColumnCount())
	for i := range names {
		names[i] = stmt.ColumnName(i)
	}
	return names
}

func (s *sqliteStatement) rows(_ context.Context, row func([][]byte)) error {
	stmt := <-s.free
	defer func() { s.free <- stmt }()
	values := make([][]byte, stmt.ColumnCount())
	for stmt.Step() {
		for i := range values {
			values[i] = stmt.ColumnRawText(i)
		}
		row(values)
	}
	return stmt.Reset()
}

func (s *sqliteStatement) close() error {
	var errs []error
	for range len(s.free) {
		stmt := <-s.free
		conn := stmt.Conn()
		errs = append(errs, stmt.Close(), conn.Close())
	}
	return errors.Join(errs...)
}
