package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/internal/bench"
)

type barsCommand struct {
	Only      []string      `help:"Measure only rows whose names begin so, with commas between: batch-20, now-batch, idle-memory, start, get-one, get-list, get-page, fairness, create-batch, create-bad1, create-allbad, odata-…, create-single, p99, bodies, stream." placeholder:"NAME"`
	Store     string        `help:"Measure only on sqlite or postgres." placeholder:"NAME"`
	Quick     bool          `help:"Fewer and shorter rounds."`
	Rounds    int           `help:"Rounds of what has a median (5)."`
	Load      time.Duration `help:"Length of one measurement under load (5s)."`
	Postgres  string        `help:"PostgreSQL server where databases may be made and dropped. Without one: SQLite only." env:"WEIR_TEST_POSTGRES" placeholder:"URL"`
	Yardstick string        `help:"Built yardstick; without one it is built from ./internal/yardstick." type:"existingfile" placeholder:"FILE"`
	JSON      string        `name:"json" help:"Also write the result to this file." type:"path" placeholder:"FILE"`
}

// Help is the command's longer help.
func (barsCommand) Help() string {
	return `Starts nodes with the shipped defaults on throw-away databases, measures them and hand-written yardsticks by turns, and prints a table of ratios. To be run in the source tree.

Examples:
  scripts/with-postgres go run ./cmd/weir bench bars
  weir bench bars --only get,create-batch --quick`
}

// Run measures.
func (c *barsCommand) Run(ctx context.Context, s streams) (err error) {
	dir, err := os.MkdirTemp("", "weir-bars-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	yardstick := c.Yardstick
	if yardstick == "" {
		yardstick = filepath.Join(dir, "yardstick")
		build := exec.CommandContext(ctx, "go", "build", "-o", yardstick, "weir/internal/yardstick")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build the yardstick (to be run in the source tree): %w\n%s", err, out)
		}
	}
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "weir/internal/yardstick")
	source, err := list.Output()
	if err != nil {
		return fmt.Errorf("find the yardstick's source (to be run in the source tree): %w", err)
	}
	bars := bench.Bars{
		CAP:  filepath.Join(strings.TrimSpace(string(source)), "cap"),
		User: "admin", Password: "admin", Program: program, Yardstick: yardstick, Dir: dir,
		Rounds: c.Rounds, Load: c.Load, Quick: c.Quick, Only: c.Only,
	}
	if c.Store != "postgres" {
		bars.Stores = append(bars.Stores, bench.BarStore{Name: "sqlite", URL: "sqlite:" + filepath.Join(dir, "weir.db")})
	}
	if c.Postgres != "" && c.Store != "sqlite" {
		db, drop, err := scratchDatabase(ctx, c.Postgres)
		if err != nil {
			return err
		}
		defer drop()
		bars.Stores = append(bars.Stores, bench.BarStore{Name: "postgres", URL: db})
	}
	if len(bars.Stores) == 0 {
		return usageError{errors.New("no store to measure on: --postgres or WEIR_TEST_POSTGRES names a server")}
	}
	result, err := bars.Run(ctx, s.err)
	if err != nil {
		return err
	}
	return (&target{JSON: c.JSON}).report(s, result, result.OK)
}

// scratchDatabase makes a database on a server and returns its URL and what drops it.
func scratchDatabase(ctx context.Context, server string) (db string, drop func(), err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, usageError{fmt.Errorf("--postgres: %w", err)}
	}
	name := fmt.Sprintf("weir_bars_%d_%d", os.Getpid(), time.Now().UnixNano())
	do := func(ctx context.Context, statement string) error {
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		_, err = conn.Exec(ctx, statement)
		return err
	}
	if err := do(ctx, "CREATE DATABASE "+name); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := do(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			fmt.Fprintln(os.Stderr, "weir: the scratch database", name, "is left:", err)
		}
	}, nil
}
