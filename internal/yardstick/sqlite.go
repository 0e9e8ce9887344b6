package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// sqliteDB is the yardstick on SQLite: raw prepared statements, WAL, synchronous FULL.
type sqliteDB struct {
	columns []column
	next    int // the counter of the next new row

	scratch string // folder of the copy; empty when serving
	conn    *sqlite3.Conn
	put     *sqlite3.Stmt

	readers chan *sqliteReader
}

// sqliteReader is one read-only connection with its statements.
type sqliteReader struct {
	conn      *sqlite3.Conn
	one, list *sqlite3.Stmt
	count     *sqlite3.Stmt
	children  *sqlite3.Stmt // nil without a child table
	values    [][]byte
}

func openSQLite(_ context.Context, o *options, path string, serving bool) (_ *sqliteDB, err error) {
	source, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READONLY)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer source.Close()
	d := &sqliteDB{}
	ddl, err := d.readTable(source, o)
	if err != nil {
		return nil, fmt.Errorf("read table %s: %w", o.table, err)
	}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if serving {
		return d, d.openReaders(o, path)
	}
	for _, c := range d.columns {
		if c.unique && c.value == nil {
			return nil, fmt.Errorf("table %s has no row to copy: create one record first", o.table)
		}
	}
	// Beside the source, so that both write to the same kind of disk.
	if d.scratch, err = os.MkdirTemp(filepath.Dir(path), "yardstick-"); err != nil {
		return nil, err
	}
	if d.conn, err = sqlite3.Open(filepath.Join(d.scratch, "copy.db")); err != nil {
		return nil, err
	}
	// What the table refers to is not copied, so references are not checked.
	if err := d.conn.Exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=OFF;" + strings.Join(ddl, ";") + ";"); err != nil {
		return nil, fmt.Errorf("copy table %s: %w", o.table, err)
	}
	d.put, _, err = d.conn.Prepare("INSERT INTO " + sqlite3.QuoteIdentifier(o.table) + " (" +
		strings.Join(names(d.columns, sqlite3.QuoteIdentifier), ", ") + ") VALUES (?" + strings.Repeat(", ?", len(d.columns)-1) + ")")
	return d, err
}

// readTable reads columns, unique keys, the first row, and the statements that make the table and its indexes.
func (d *sqliteDB) readTable(source *sqlite3.Conn, o *options) (ddl []string, err error) {
	table := o.table
	err = each(source, `SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('table', 'index') AND sql IS NOT NULL ORDER BY type DESC`,
		table, func(s *sqlite3.Stmt) { ddl = append(ddl, s.ColumnText(0)) })
	if err != nil {
		return nil, err
	}
	if len(ddl) == 0 {
		return nil, errors.New("there is no such table")
	}
	err = each(source, `SELECT name, type, pk > 0 OR name IN (SELECT i.name FROM pragma_index_list(?1) l, pragma_index_info(l.name) i WHERE l."unique") FROM pragma_table_info(?1)`,
		table, func(s *sqlite3.Stmt) {
			d.columns = append(d.columns, column{name: s.ColumnText(0), kind: s.ColumnText(1), unique: s.ColumnBool(2)})
		})
	if err != nil {
		return nil, err
	}
	err = each(source, "SELECT "+strings.Join(names(d.columns, sqlite3.QuoteIdentifier), ", ")+" FROM "+sqlite3.QuoteIdentifier(table)+o.whereSQLite()+" LIMIT 1",
		"", func(s *sqlite3.Stmt) {
			for i := range d.columns {
				if s.ColumnType(i) != sqlite3.NULL {
					v := s.ColumnText(i)
					d.columns[i].value = &v
				}
			}
		})
	return ddl, err
}

// whereSQLite is the condition, with the value as a literal.
func (o *options) whereSQLite() string {
	if o.whereColumn == "" {
		return ""
	}
	return " WHERE " + sqlite3.QuoteIdentifier(o.whereColumn) + " = " + sqlite3.Quote(o.whereValue)
}

// each runs a query with at most one text parameter and calls row for each row.
func each(c *sqlite3.Conn, query, param string, row func(s *sqlite3.Stmt)) error {
	s, _, err := c.Prepare(query)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.BindCount() > 0 {
		if err := s.BindText(1, param); err != nil {
			return err
		}
	}
	for s.Step() {
		row(s)
	}
	return s.Err()
}

// bind binds row n. Text is bound as it is: the column's affinity turns it into numbers where it is declared so.
func (d *sqliteDB) bind(n int) error {
	for i, c := range d.columns {
		var err error
		if v := c.at(n); v == nil {
			err = d.put.BindNull(i + 1)
		} else if k, bad := strconv.ParseInt(*v, 10, 64); bad == nil && strings.Contains(strings.ToUpper(c.kind), "INT") {
			err = d.put.BindInt64(i+1, k)
		} else {
			err = d.put.BindText(i+1, *v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *sqliteDB) insert(_ context.Context, n int) (time.Duration, error) {
	begin := time.Now()
	err := d.inTx(func() error {
		for range n {
			d.next++
			if err := d.bind(d.next); err != nil {
				return err
			}
			if err := d.put.Exec(); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(begin), err
}

func (d *sqliteDB) savepoints(ctx context.Context, n int) (time.Duration, error) {
	if d.next == 0 {
		if _, err := d.insert(ctx, 1); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	err := d.inTx(func() error {
		for range n {
			if err := d.conn.Exec("SAVEPOINT one"); err != nil {
				return err
			}
			if err := d.bind(1); err != nil {
				return err
			}
			if err := d.put.Exec(); !errors.Is(err, sqlite3.CONSTRAINT) {
				return fmt.Errorf("a row that is there already was inserted again: %v", err)
			}
			if err := d.conn.Exec("ROLLBACK TO one; RELEASE one"); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(begin), err
}

func (d *sqliteDB) inTx(f func() error) error {
	if err := d.conn.Exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := f(); err != nil {
		return errors.Join(err, d.conn.Exec("ROLLBACK"))
	}
	return d.conn.Exec("COMMIT")
}

func (d *sqliteDB) openReaders(o *options, path string) error {
	if err := o.show(d.columns); err != nil {
		return err
	}
	n := 2 * runtime.GOMAXPROCS(0)
	d.readers = make(chan *sqliteReader, n)
	var quoted []string
	for _, c := range o.columns {
		quoted = append(quoted, sqlite3.QuoteIdentifier(c))
	}
	key := sqlite3.QuoteIdentifier(o.key)
	query := "SELECT " + strings.Join(quoted, ", ") + " FROM " + sqlite3.QuoteIdentifier(o.table)
	for range n {
		conn, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READONLY)
		if err != nil {
			return err
		}
		r := &sqliteReader{conn: conn, values: make([][]byte, max(len(o.columns), len(o.childColumns)))}
		d.readers <- r
		if r.one, _, err = conn.Prepare(query + " WHERE " + key + " = ?"); err != nil {
			return err
		}
		if r.list, _, err = conn.Prepare(query + o.whereSQLite() + " ORDER BY " + key + " LIMIT ?"); err != nil {
			return err
		}
		if r.count, _, err = conn.Prepare("SELECT count(*) FROM " + sqlite3.QuoteIdentifier(o.table) + o.whereSQLite()); err != nil {
			return err
		}
		if o.child == "" {
			continue
		}
		if r.children, _, err = conn.Prepare(o.childQuery(sqlite3.QuoteIdentifier, "?")); err != nil {
			return err
		}
	}
	return nil
}

func (d *sqliteDB) children(_ context.Context, n int, row func([][]byte)) error {
	r := <-d.readers
	defer func() { d.readers <- r }()
	if err := r.children.BindInt(1, n); err != nil {
		return err
	}
	return r.read(r.children, row)
}

func (d *sqliteDB) one(_ context.Context, key string, row func([][]byte)) error {
	r := <-d.readers
	defer func() { d.readers <- r }()
	if err := r.one.BindText(1, key); err != nil {
		return err
	}
	return r.read(r.one, row)
}

func (d *sqliteDB) list(_ context.Context, n int, row func([][]byte)) error {
	r := <-d.readers
	defer func() { d.readers <- r }()
	if err := r.list.BindInt(1, n); err != nil {
		return err
	}
	return r.read(r.list, row)
}

func (d *sqliteDB) count(context.Context) (n int64, err error) {
	r := <-d.readers
	defer func() { d.readers <- r }()
	for r.count.Step() {
		n = r.count.ColumnInt64(0)
	}
	return n, r.count.Reset()
}

func (r *sqliteReader) read(s *sqlite3.Stmt, row func([][]byte)) error {
	for s.Step() {
		values := r.values[:s.ColumnCount()]
		for i := range values {
			values[i] = s.ColumnRawText(i)
		}
		row(values)
	}
	return s.Reset()
}

func (d *sqliteDB) close() error {
	var errs []error
	if d.conn != nil {
		if d.put != nil {
			errs = append(errs, d.put.Close())
		}
		errs = append(errs, d.conn.Close())
	}
	for range len(d.readers) {
		r := <-d.readers
		for _, s := range []*sqlite3.Stmt{r.one, r.list, r.count, r.children} {
			if s != nil {
				errs = append(errs, s.Close())
			}
		}
		errs = append(errs, r.conn.Close())
	}
	if d.scratch != "" {
		errs = append(errs, os.RemoveAll(d.scratch))
	}
	return errors.Join(errs...)
}
