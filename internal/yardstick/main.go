// Command yardstick is what weir's speed is held against: the least Go that does the same work on the same driver and
// database. It knows one table, no users, no rules, no log; what it lacks is what weir may cost.
//
//	yardstick -db sqlite:PATH|postgres://… -table incident insert      # 1,000 rows in one commit, JSON with the times
//	yardstick -db … -table incident savepoints                          # 1,000 failing inserts, each in its savepoint
//	yardstick -db postgres://… -table incident pgbench                  # single inserts of the same row by pgbench, 50 at once
//	yardstick -db … -table incident -key sys_id serve                   # GET /one/{key} and /list until interrupted
//	yardstick -db … -table sales_order -key id -child item -fk order_id serve  # GET /expand too: each row with its children
//	yardstick -db … -numbers salary -tail '}' query 'SELECT …'             # GET / answers the rows of a statement until interrupted
//
// The table is read from a database that weir made: its columns, types, keys and indexes are copied as they are into a
// scratch place (a file, a schema), and the rows are copies of its first row (with -where: the first that matches) with
// fresh unique values, so both write the same bytes. serve reads the table itself, with -where its matching rows.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// database is one yardstick on one database.
type database interface {
	// insert writes n new rows in one commit and returns how long that took.
	insert(ctx context.Context, n int) (time.Duration, error)
	// savepoints tries n inserts of a row that is there already, each in its own savepoint of one transaction.
	savepoints(ctx context.Context, n int) (time.Duration, error)
	// one and list call row for the rows read, with values in the order of the columns asked for, NULL as nil; values are
	// valid during the call only.
	one(ctx context.Context, key string, row func(values [][]byte)) error
	list(ctx context.Context, n int, row func(values [][]byte)) error
	// count is how many rows list would show without a limit.
	count(ctx context.Context) (int64, error)
	// children calls row for the rows of the child table that belong to the first n rows of list, in the order of those.
	children(ctx context.Context, n int, row func(values [][]byte)) error
	close() error
}

// options say which table, and what serve shows of it.
type options struct {
	db, table, key string
	columns        []string // for serve; empty is all
	refs           map[string]string
	flags, seconds []string // for serve: columns shown as true and false, and times shown without fractions
	whereColumn    string   // "" is all rows
	whereValue     string
	child, fk      string   // table whose rows belong to those of table by their column fk; "" for none
	childColumns   []string // its columns; the first is fk
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "yardstick:", err)
		}
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, help io.Writer) (err error) {
	f := flag.NewFlagSet("yardstick", flag.ContinueOnError)
	f.SetOutput(help)
	o := options{refs: make(map[string]string)}
	f.StringVar(&o.db, "db", "", "database that weir made: sqlite:PATH or postgres://…")
	f.StringVar(&o.table, "table", "incident", "table to copy or to serve")
	f.StringVar(&o.key, "key", "sys_id", "serve: column of the key")
	columns := f.String("columns", "", "serve: columns to show, separated by commas (default all)")
	f.Func("ref", "serve: COLUMN=PREFIX shows the column as {\"link\":PREFIX+value,\"value\":value}; may repeat", func(s string) error {
		column, prefix, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("want COLUMN=PREFIX")
		}
		o.refs[column] = prefix
		return nil
	})
	f.Func("where", "COLUMN=VALUE: the row to copy, the rows that /list shows", func(s string) error {
		var ok bool
		if o.whereColumn, o.whereValue, ok = strings.Cut(s, "="); !ok {
			return errors.New("want COLUMN=VALUE")
		}
		return nil
	})
	flags := f.String("flags", "", "serve: columns to show as true and false")
	whole := f.String("seconds", "", "serve: columns of times to show without fractions of a second")
	f.StringVar(&o.child, "child", "", "serve: table whose rows /expand puts into those of the other")
	f.StringVar(&o.fk, "fk", "", "serve: its column that holds their key")
	childColumns := f.String("child-columns", "", "serve: its columns to show, separated by commas; needed with -child")
	clients := f.Int("clients", 50, "pgbench: clients")
	duration := f.Duration("for", 5*time.Second, "pgbench: how long, in whole seconds")
	rows := f.Int("rows", 1000, "insert, savepoints: rows a run")
	runs := f.Int("runs", 7, "insert, savepoints: runs, after one that is not counted")
	var q queryOptions
	numbers := f.String("numbers", "", "query: columns of numbers, separated by commas")
	f.BoolVar(&q.document, "document", false, "query: the one column of the one row is the JSON of all items")
	f.StringVar(&q.tail, "tail", "}", "query: what follows the items")
	listen := f.String("listen", "127.0.0.1:0", "serve, query: address; its URL is printed")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *columns != "" {
		o.columns = strings.Split(*columns, ",")
	}
	if o.child != "" {
		o.childColumns = append([]string{o.fk}, strings.Split(*childColumns, ",")...)
	}
	o.flags, o.seconds = strings.Split(*flags, ","), strings.Split(*whole, ",")
	if *rows < 1 || *runs < 1 {
		return errors.New("-rows and -runs must be 1 or more")
	}
	if f.Arg(0) == "query" {
		q.numbers = strings.Split(*numbers, ",")
		st, err := openStatement(ctx, o.db, f.Arg(1))
		if err != nil {
			return err
		}
		return errors.Join(serve(ctx, out, *listen, queryHandler(st, q)), st.close())
	}
	d, err := open(ctx, &o, f.Arg(0) == "serve")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	switch f.Arg(0) {
	case "insert":
		return measure(ctx, out, "insert", *rows, *runs, d.insert)
	case "savepoints":
		return measure(ctx, out, "savepoints", *rows, *runs, d.savepoints)
	case "pgbench":
		pg, ok := d.(*postgresDB)
		if !ok {
			return errors.New("pgbench is for PostgreSQL")
		}
		rate, err := pg.pgbench(ctx, o.db, *clients, *duration)
		if err != nil {
			return fmt.Errorf("pgbench: %w", err)
		}
		return json.NewEncoder(out).Encode(Result{What: "pgbench", PerSecond: rate})
	case "serve":
		return serve(ctx, out, *listen, handler(d, o))
	}
	return fmt.Errorf("what to do? insert, savepoints, pgbench, serve or query, not %q", f.Arg(0))
}

func open(ctx context.Context, o *options, serving bool) (database, error) {
	if path, ok := strings.CutPrefix(o.db, "sqlite:"); ok {
		return openSQLite(ctx, o, path, serving)
	}
	if strings.HasPrefix(o.db, "postgres://") || strings.HasPrefix(o.db, "postgresql://") {
		return openPostgres(ctx, o, serving)
	}
	return nil, fmt.Errorf("-db %q: want sqlite:PATH or postgres://…", o.db)
}

// Result is what insert and savepoints print, and pgbench with its rate.
type Result struct {
	What      string    `json:"what"`
	Rows      int       `json:"rows,omitempty"`
	MS        []float64 `json:"ms,omitempty"`
	MedianMS  float64   `json:"median_ms,omitempty"`
	PerSecond float64   `json:"per_second,omitempty"`
}

func measure(ctx context.Context, out io.Writer, what string, rows, runs int, f func(context.Context, int) (time.Duration, error)) error {
	r := Result{What: what, Rows: rows}
	for i := range runs + 1 {
		took, err := f(ctx, rows)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if i > 0 { // the first run prepares statements and grows files
			r.MS = append(r.MS, float64(took.Microseconds())/1000)
		}
	}
	sorted := slices.Sorted(slices.Values(r.MS))
	r.MedianMS = sorted[len(sorted)/2]
	return json.NewEncoder(out).Encode(r)
}

func serve(ctx context.Context, out io.Writer, listen string, h http.Handler) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s\n", l.Addr())
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = s.Shutdown(last)
	<-ended
	return err
}
