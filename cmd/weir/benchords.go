package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"weir/demo"
	"weir/internal/bench"
)

type ordsLeversCommand struct {
	target      `embed:""`
	Client      string        `help:"OAuth client that gets the bearer token." default:"demo"`
	Secret      string        `help:"Its secret." default:"demo" env:"WEIR_TEST_BENCH_SECRET"`
	Base        string        `help:"Where the endpoints are (/ords/levers)." placeholder:"PATH"`
	Only        []string      `help:"Pull only levers whose names begin so, with commas between: auth, etag-cheap, etag-heavy, metadata, cursor, cursor-3, cursor-large." placeholder:"NAME"`
	Store       string        `help:"Measure only on sqlite or postgres." placeholder:"NAME"`
	Postgres    string        `help:"PostgreSQL server where databases and roles may be made and dropped. Without one: SQLite only." env:"WEIR_TEST_POSTGRES" placeholder:"URL"`
	Users       int           `help:"Users who call at once." default:"25"`
	Requests    int           `help:"Requests that each of them makes." default:"100"`
	Rounds      int           `help:"Rounds of which medians are taken." default:"3"`
	Longest     time.Duration `help:"The longest that one measurement may take; what is slow is not called to the end." default:"10s"`
	Departments int           `help:"Departments of the larger tables; 0 leaves cursor-large out." default:"1000"`
	Employees   int           `help:"Employees of the larger tables." default:"50000"`
	Quick       bool          `help:"20 requests for each user, 2 rounds, smaller tables."`
	Write       string        `help:"Do not measure, but add the endpoints to this project, which has the demo's departments and employees." type:"existingdir" placeholder:"FOLDER"`
}

// Help is the command's longer help.
func (ordsLeversCommand) Help() string {
	return `Pulls the levers of the article one at a time, interleaved: who proves how who is calling, entity tags, the cache of definitions, nested rows. It starts nodes with the shipped defaults on throw-away databases and prints a table, the article's figures beside ours.

A target is measured as far as it has the endpoints; --write adds them to a weir project, and other ORDS servers take handlers with the same statements on the same paths.

Examples:
  scripts/with-postgres weir bench ords-levers
  weir bench ords-levers --only etag --quick
  weir bench ords-levers --write ./project && weir apply ./project && weir bench ords-levers --target http://127.0.0.1:8080`
}

// Run measures.
func (c *ordsLeversCommand) Run(ctx context.Context, s streams) (err error) {
	if c.Quick {
		c.Requests, c.Rounds, c.Departments, c.Employees = min(c.Requests, 20), min(c.Rounds, 2), min(c.Departments, 100), min(c.Employees, 5000)
	}
	if c.Write != "" {
		return bench.WriteLevers(c.Write, c.Departments, c.Employees)
	}
	if c.DB != "" {
		return usageError{errors.New("its nodes run on databases of their own; --postgres names a server for them")}
	}
	if c.Departments > 0 && c.Employees < c.Departments {
		return usageError{fmt.Errorf("%d employees are too few for %d departments", c.Employees, c.Departments)}
	}
	dir, err := os.MkdirTemp("", "weir-levers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	levers := bench.OrdsLevers{
		Access: c.access(c.Target), Client: c.Client, Secret: c.Secret, Base: c.Base, Users: c.Users, Requests: c.Requests, Rounds: c.Rounds, Longest: c.Longest, Only: c.Only,
	}
	if len(c.Target) == 0 {
		if levers.Program, levers.Project, err = leverProject(dir, c.Departments, c.Employees); err != nil {
			return err
		}
		if c.Store != "postgres" {
			levers.Stores = append(levers.Stores, bench.OrdsStore{BarStore: bench.BarStore{Name: "sqlite", URL: "sqlite:" + filepath.Join(dir, "weir.db")}})
		}
		if c.Postgres != "" && c.Store != "sqlite" {
			store, drop, err := leverDatabase(ctx, c.Postgres)
			if err != nil {
				return err
			}
			defer drop()
			levers.Stores = append(levers.Stores, store)
		}
		if len(levers.Stores) == 0 {
			return usageError{errors.New("no store to measure on: --postgres or WEIR_TEST_POSTGRES names a server")}
		}
	}
	result, err := levers.Run(ctx, s.err)
	if err != nil {
		return err
	}
	return c.report(s, result, result.OK)
}

type ordsPoolCommand struct {
	Postgres string        `help:"PostgreSQL server where databases may be made and dropped." env:"WEIR_TEST_POSTGRES" placeholder:"URL"`
	Pools    []int         `help:"Sizes of the pool." default:"10,50"`
	Users    int           `help:"Users who call at once." default:"50"`
	Requests int           `help:"Requests that each of them makes." default:"20"`
	Hold     time.Duration `help:"How long a request holds its connection." default:"200ms"`
	Wait     time.Duration `help:"How long one waits for a connection." default:"600ms"`
	JSON     string        `name:"json" help:"Also write the result to this file." type:"path" placeholder:"FILE"`
}

// Help is the command's longer help.
func (ordsPoolCommand) Help() string {
	return `The article's pool of connections that was too small, on a throw-away PostgreSQL database: with weir's gate as it is shipped, and with a slot at the gate for each connection.

Example:
  scripts/with-postgres weir bench ords-pool`
}

// Run measures.
func (c *ordsPoolCommand) Run(ctx context.Context, s streams) (err error) {
	if c.Postgres == "" {
		return usageError{errors.New("it needs a PostgreSQL server: --postgres or WEIR_TEST_POSTGRES names one")}
	}
	dir, err := os.MkdirTemp("", "weir-pool-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program, project, err := leverProject(dir, 0, 0)
	if err != nil {
		return err
	}
	db, drop, err := scratchDatabase(ctx, c.Postgres)
	if err != nil {
		return err
	}
	defer drop()
	result, err := bench.OrdsPool{
		User: "admin", Password: "admin", Program: program, Project: project, DB: db, Pools: c.Pools, Users: c.Users, Requests: c.Requests, Hold: c.Hold, Wait: c.Wait,
	}.Run(ctx, s.err)
	if err != nil {
		return err
	}
	return (&target{JSON: c.JSON}).report(s, result, result.OK)
}

// leverProject is this program and the demo as a project folder below dir, with the endpoints that are measured.
func leverProject(dir string, departments, employees int) (program, project string, err error) {
	if program, err = os.Executable(); err != nil {
		return "", "", err
	}
	project = filepath.Join(dir, "project")
	if err := os.CopyFS(project, demo.Project()); err != nil {
		return "", "", err
	}
	return program, project, bench.WriteLevers(project, departments, employees)
}

// leverDatabase makes a database, and a role that may read it and signs in with a password.
func leverDatabase(ctx context.Context, server string) (store bench.OrdsStore, drop func(), err error) {
	db, dropDatabase, err := scratchDatabase(ctx, server)
	if err != nil {
		return store, nil, err
	}
	role := "weir_lever_" + strings.ToLower(rand.Text())
	do := func(ctx context.Context, statement string) error {
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		_, err = conn.Exec(ctx, statement)
		return err
	}
	login := &bench.OrdsLogin{User: role, Password: rand.Text()}
	// The name and the password are letters and digits.
	if err := do(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s' IN ROLE pg_read_all_data", role, login.Password)); err != nil {
		dropDatabase()
		return store, nil, fmt.Errorf("make a user of the database: %w", err)
	}
	drop = func() {
		dropDatabase()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if err := do(ctx, "DROP ROLE "+role); err != nil {
			fmt.Fprintln(os.Stderr, "weir: the role", role, "is left:", err)
		}
	}
	u, err := url.Parse(db)
	if err != nil {
		drop()
		return store, nil, err
	}
	u.User = url.UserPassword(role, "not "+login.Password)
	if conn, err := pgx.Connect(ctx, u.String()); err == nil {
		login.Trusted = true
		conn.Close(ctx)
	}
	return bench.OrdsStore{BarStore: bench.BarStore{Name: "postgres", URL: db}, Login: login}, drop, nil
}
