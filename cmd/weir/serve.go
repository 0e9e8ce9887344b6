package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"weir/internal/config"
	"weir/internal/gate"
	"weir/internal/server"
)

type serveCommand struct {
	settings `embed:""`
	exposure `embed:""`
}

// Help is the command's longer help.
func (serveCommand) Help() string {
	return `Opens the database (SQLite in --data unless --db says otherwise), applies the project and answers until SIGTERM or SIGINT. Then it finishes every request that it has accepted.

Examples:
  weir serve
  weir serve ./project --listen 127.0.0.1:9000
  weir serve ./project --db postgres://weir@127.0.0.1/weir
  weir serve --profile servicenow --set gate.session.waiting=20
  weir serve --db postgres://weir@127.0.0.1/shop --expose public

With --expose there is no project: the tables and views of the schema are served as they are, and nothing of it is stored.

Beside the API it answers /healthz, /readyz and /metrics. SIGHUP reads the settings again and puts those of the gate in force.`
}

// Run serves until the context ends.
func (c *serveCommand) Run(ctx context.Context, s streams) error {
	c.bare = c.on()
	e, err := c.load()
	if err == nil {
		err = c.exposure.check(&e.Config, c.Project)
	}
	if err != nil {
		return err
	}
	tuneCollector(e.Limits.Memory, e.Gate.Bytes.Limit)
	folder, isDemo := c.folder()
	n, err := newNode(ctx, e, folder, &c.exposure, newLog(s.err, e.Log))
	if err != nil {
		return err
	}
	// The process is this node's alone.
	n.regated = func(g *gate.Config) { tuneCollector(e.Limits.Memory, g.Bytes.Limit) }
	if at := e.Telemetry.Pprof; at != "" {
		stop, err := serveProfiles(at)
		if err != nil {
			return errors.Join(err, n.close())
		}
		defer stop()
	}
	greet(s.out, &e.Config, n, isDemo && !c.on())
	if c.on() {
		c.exposure.greet(s.out, &e.Config, n)
	}
	stop := reloads(ctx, n, c.load)
	defer stop()
	return n.Serve(ctx)
}

// reloads reads the settings again at every SIGHUP and puts those of the gate in force; the others need a new start.
func reloads(ctx context.Context, n *node, load func() (*config.Effective, error)) (stop func()) {
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-again:
			}
			e, err := load()
			if err != nil {
				n.log.Error("the settings stay as they were", "error", err.Error())
				continue
			}
			n.levers.reread(e)
			select {
			case n.settings <- e.Gate:
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		signal.Stop(again)
		cancel()
		work.Wait()
	}
}

// newLog writes to w as the settings say.
func newLog(w io.Writer, c server.Log) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // checked with the settings
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// scheme is how clients address the listeners.
func scheme(c *config.Config) string {
	if c.TLS.Self || c.TLS.Cert != "" {
		return "https"
	}
	return "http"
}

// named is the project's name.
func named(c *config.Config) string {
	if c.Name == "" {
		return "a project without a name"
	}
	return c.Name
}

// greet says where the server is, and what to try.
func greet(w io.Writer, c *config.Config, n *node, isDemo bool) {
	insecure := ""
	if c.TLS.Self {
		insecure = "-k "
	}
	for _, a := range n.Addrs {
		fmt.Fprintf(w, "weir serves %s at %s://%s\n", named(c), scheme(c), a)
	}
	if !isDemo {
		return
	}
	at := scheme(c) + "://" + n.Addrs[0].String()
	fmt.Fprintf(w, `login: admin / admin (from this machine only)

Try:
  curl %[2]s-u admin:admin '%[1]s/api/now/table/incident?sysparm_limit=2&sysparm_fields=number,short_description,caller_id.name'
  curl %[2]s-u admin:admin -H 'Content-Type: application/json' -d '{"short_description":"disk full","urgency":"1","impact":"1"}' '%[1]s/api/now/table/incident?sysparm_fields=number,priority'
  curl %[2]s-u admin:admin '%[1]s/api/now/stats/incident?sysparm_count=true&sysparm_group_by=priority'
`, at, insecure)
}
