package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"weir/demo"
	"weir/internal/bench"
	"weir/internal/config"
)

type benchCommand struct {
	NowBatch nowBatchCommand `cmd:"" name:"now-batch" help:"Twenty endpoints called singly and in batches of 5, 10 and 20."`
	Bars     barsCommand     `cmd:"" help:"The speed bars against the yardsticks, with a table of ratios."`
	Load     loadCommand     `cmd:"" help:"One GET over and over, as fast as it is answered; prints JSON."`
	SAPMass  sapMassCommand  `cmd:"" name:"sap-mass" help:"Products created through one $batch and through one deep insert, the time split by layer."`
	NowFlood nowFloodCommand `cmd:"" name:"now-flood" help:"Users open a page of 20 calls at once, singly and in batches."`

	OrdsLevers ordsLeversCommand `cmd:"" name:"ords-levers" help:"What each lever of a SQL endpoint is worth: logins, entity tags, cached definitions, nested rows."`
	OrdsPool   ordsPoolCommand   `cmd:"" name:"ords-pool" help:"A pool of 10 connections against one of 50 under 50 users."`
}

// errFailed is a measurement whose verdict is bad; its report says why.
var errFailed = errors.New("the result is not as it should be; see above")

// target is the flags of commands that measure a server.
type target struct {
	Target   []string `help:"Base URLs of the nodes to measure. Without one: nodes of its own, on a throw-away database." placeholder:"URL"`
	User     string   `help:"Login." default:"admin"`
	Password string   `help:"Password." default:"admin" env:"WEIR_TEST_BENCH_PASSWORD"`
	Insecure bool     `help:"Accept any TLS certificate."`
	DB       string   `name:"db" help:"Database of its own nodes (a new SQLite file)." placeholder:"URL"`
	JSON     string   `name:"json" help:"Also write the result to this file." type:"path" placeholder:"FILE"`
}

func (t *target) access(targets []string) bench.Access {
	return bench.Access{Targets: targets, User: t.User, Password: t.Password, Insecure: t.Insecure}
}

// report prints a result, writes it if asked to, and turns its verdict into an exit code.
func (t *target) report(s streams, result interface{ Print(io.Writer) error }, ok bool) error {
	if err := result.Print(s.out); err != nil {
		return err
	}
	if t.JSON != "" {
		if err := bench.WriteJSON(t.JSON, result); err != nil {
			return err
		}
	}
	if !ok {
		return errFailed
	}
	return nil
}

type nowBatchCommand struct {
	target
	Threads  int           `help:"Threads that call at once." default:"8"`
	Duration time.Duration `help:"How long each case is measured (10s, with --full 5m)."`
	Full     bool          `help:"The article's five minutes a case."`
	Profile  string        `help:"Gate profile of its own nodes." default:"auto"`
	Nodes    int           `help:"How many nodes of its own; the article had 2." default:"1"`
}

// Help is the command's longer help.
func (nowBatchCommand) Help() string {
	return `Prints the article's table beside ours, the fitted fixed cost for each request and the cost for each call.

Examples:
  weir bench now-batch
  weir bench now-batch --profile servicenow --nodes 2
  weir bench now-batch --target https://dev1.example --user me --password secret --full`
}

// Run measures.
func (c *nowBatchCommand) Run(ctx context.Context, s streams) error {
	targets := c.Target
	if len(targets) == 0 {
		nodes := ownNodes{count: c.Nodes, db: c.DB, log: s.err}
		var stop func()
		var err error
		if targets, stop, err = nodes.Configure(ctx, c.Profile, nil); err != nil {
			return err
		}
		defer stop()
	}
	result, err := bench.NowBatch{Access: c.access(targets), Threads: c.Threads, Duration: c.Duration, Full: c.Full}.Run(ctx, s.err)
	if err != nil {
		return err
	}
	return c.report(s, result, result.OK)
}

type nowFloodCommand struct {
	target
	Users    int           `help:"Users who open the page." default:"60"`
	Arrive   time.Duration `help:"Time within which they do." default:"2s"`
	Nodes    int           `help:"How many nodes; the article had 2." default:"2"`
	NoSearch bool          `help:"Do not look for the number of users at which each way breaks."`
}

// Help is the command's longer help.
func (nowFloodCommand) Help() string {
	return `The article's customer, as an experiment. It starts nodes of its own, because it needs them under several settings.

Example:
  weir bench now-flood --users 60 --no-search`
}

// Run floods.
func (c *nowFloodCommand) Run(ctx context.Context, s streams) error {
	if len(c.Target) > 0 {
		return usageError{errors.New("now-flood starts its own nodes; --target is for now-batch")}
	}
	flood := bench.NowFlood{User: c.User, Password: c.Password, Users: c.Users, Arrive: c.Arrive}
	if c.NoSearch {
		flood.SearchTime = -1
	}
	result, err := flood.Run(ctx, ownNodes{count: c.Nodes, db: c.DB, log: s.err}, s.err)
	if err != nil {
		return err
	}
	return c.report(s, result, result.OK)
}

// ownNodes starts nodes in this process over one database of the demo.
type ownNodes struct {
	count int
	db    string
	log   io.Writer
}

// Configure starts the nodes under a profile with settings on top. It is [bench.Nodes].
func (o ownNodes) Configure(ctx context.Context, profile string, set map[string]string) (targets []string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return nil, nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	stop = func() {
		cancel()
		work.Wait()
		os.RemoveAll(dir)
	}
	defer func() {
		if err != nil {
			stop()
			targets, stop = nil, nil
		}
	}()
	file, err := fs.ReadFile(demo.Project(), "weir.yaml")
	if err != nil {
		return nil, stop, err
	}
	db := o.db
	if db == "" {
		db = "sqlite:" + filepath.Join(dir, "weir.db")
	}
	src := config.Sources{File: file, FileName: "weir.yaml", Flags: []config.Setting{
		{Path: "profile", Value: profile, From: "bench"},
		{Path: "database.url", Value: db, From: "bench"},
		{Path: "listen", Value: "127.0.0.1:0", From: "bench"},
		{Path: "log.level", Value: "warn", From: "bench"},
	}}
	for name, value := range set {
		src.Flags = append(src.Flags, config.Setting{Path: name, Value: value, From: "bench"})
	}
	e, err := config.Load(src)
	if err != nil {
		return nil, stop, err
	}
	log := slog.New(slog.NewTextHandler(o.log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for range o.count {
		n, err := newNode(ctx, e, demo.Project(), nil, log)
		if err != nil {
			return nil, stop, err
		}
		targets = append(targets, fmt.Sprintf("http://%s", n.Addrs[0]))
		work.Go(func() {
			if err := n.Serve(running); err != nil {
				log.Error("node stopped", "error", err.Error())
			}
		})
	}
	return targets, stop, nil
}

type loadCommand struct {
	Path        string        `arg:"" help:"Path with its query, such as /api/now/table/incident?sysparm_limit=1."`
	Target      []string      `help:"Base URLs of the nodes to load." default:"http://127.0.0.1:8080" placeholder:"URL"`
	User        string        `help:"Login." default:"admin"`
	Password    string        `help:"Password." default:"admin" env:"WEIR_TEST_BENCH_PASSWORD"`
	Insecure    bool          `help:"Accept any TLS certificate."`
	Connections int           `help:"Connections that are kept alive and used at once." default:"1"`
	Duration    time.Duration `help:"How long." default:"5s"`
	Session     string        `help:"A path that is asked first for session cookies, so that all connections are one session." placeholder:"PATH"`
}

// Run loads.
func (c *loadCommand) Run(ctx context.Context, s streams) error {
	r, err := bench.Load(ctx, bench.LoadOptions{
		Access:      bench.Access{Targets: c.Target, User: c.User, Password: c.Password, Insecure: c.Insecure},
		Request:     bench.Request{Method: http.MethodGet, Path: c.Path},
		Connections: c.Connections, Duration: c.Duration, SessionPath: c.Session,
	})
	if err != nil {
		return err
	}
	out, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s\n", out)
	if r.Requests == 0 {
		return errFailed
	}
	return nil
}

type sapMassCommand struct {
	target
	Service  string `help:"Path of the service root (the demo's ZGWSAMPLE_MASSINSERT_SRV)." placeholder:"PATH"`
	OData    int    `name:"odata" help:"Version that the service speaks: 2 or 4." default:"2"`
	Set      string `help:"Entity set to create in (ProductSet)." placeholder:"NAME"`
	DeepSet  string `help:"Entity set that deep inserts go to (ProductMassInsertSet); - for none." placeholder:"NAME"`
	DeepNav  string `help:"Its navigation property that holds the entities (ToProducts)." placeholder:"NAME"`
	DeepBody string `help:"Further members of its entity, JSON with a comma at the end." placeholder:"JSON"`
	Body     string `help:"One entity in JSON; {{id}} and {{n}} stand for an unused id of ten characters and a number (a product of the demo)." placeholder:"JSON"`
	Sizes    []int  `help:"Entities in a request." default:"1,10,100,500,1000,2500"`
	Rounds   int    `help:"Rounds of which medians are taken." default:"5"`
}

// Help is the command's longer help.
func (sapMassCommand) Help() string {
	return `Prints the article's table beside ours: total, hub, backend and application, the overhead for each product, and the ratio batch : deep. It runs against any OData V2 or V4 server.

Examples:
  weir bench sap-mass
  weir bench sap-mass --sizes 100,1000 --odata 4
  weir bench sap-mass --target http://127.0.0.1:4004 --odata 4 --service /odata/v4/catalog --set Products --deep-set Mass --deep-nav products --body '{"ID":"{{id}}"}'`
}

// Run measures.
func (c *sapMassCommand) Run(ctx context.Context, s streams) error {
	targets := c.Target
	if len(targets) == 0 {
		nodes := ownNodes{count: 1, db: c.DB, log: s.err}
		var stop func()
		var err error
		if targets, stop, err = nodes.Configure(ctx, config.ProfileAuto, nil); err != nil {
			return err
		}
		defer stop()
	}
	result, err := bench.SAPMass{
		Access: c.access(targets), Service: c.Service, Version: c.OData, Set: c.Set, DeepSet: c.DeepSet, DeepNav: c.DeepNav, DeepBody: c.DeepBody,
		Body: c.Body, Sizes: c.Sizes, Rounds: c.Rounds,
	}.Run(ctx, s.err)
	if err != nil {
		return err
	}
	return c.report(s, result, result.OK)
}
