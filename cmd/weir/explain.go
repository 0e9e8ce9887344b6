package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"weir/internal/config"
	"weir/internal/endpoint"
	"weir/internal/project"
	"weir/internal/record"
	"weir/internal/server"
)

type explainCommand struct {
	Endpoint string            `arg:"" help:"Name of the endpoint, as weir endpoints lists it."`
	Binds    []string          `arg:"" optional:"" placeholder:"NAME=VALUE" help:"Values of its binds; those not named are null."`
	Analyze  bool              `help:"Run it, in a transaction that can write nothing, and show what it took."`
	Tag      bool              `help:"The query of its entity tag instead."`
	JSON     bool              `name:"json" help:"The plan as JSON."`
	Limit    int64             `help:"Rows of the page that is asked for (one more than the endpoint's page)." placeholder:"N"`
	Offset   int64             `help:"Rows before the page." placeholder:"N"`
	Folder   string            `name:"project" help:"Project folder, whose weir.yaml says where the database is. Without one: the demo inside the binary." type:"existingdir" placeholder:"DIR" group:"Settings"`
	Data     string            `help:"Folder for the SQLite database (weir-data)." placeholder:"DIR" group:"Settings"`
	DB       string            `name:"db" help:"Database: sqlite:PATH or postgres://user@host/database." placeholder:"URL" group:"Settings"`
	Set      map[string]string `help:"Any setting by name; may be repeated." placeholder:"NAME=VALUE" mapsep:"none" group:"Settings"`
	File     string            `name:"config" help:"Settings file to read instead of the project's weir.yaml." type:"existingfile" placeholder:"FILE" group:"Settings"`
}

// Help is the command's longer help.
func (explainCommand) Help() string {
	return `Shows the database's plan for what a call of a SQL endpoint runs: the endpoint as it was applied to the database, with the page that a caller gets. A server tells the same to administrators at /weir/endpoints/NAME/plan?NAME=VALUE&analyze=1.

Examples:
  weir explain hr/departments
  weir explain hr/employees dept=50 --analyze --db postgres://weir@127.0.0.1/weir`
}

// Run explains.
func (c *explainCommand) Run(ctx context.Context, s streams) error {
	p := place{general: general{Project: c.Folder, Set: c.Set, File: c.File}, Data: c.Data, DB: c.DB}
	e, err := p.load()
	if err != nil {
		return err
	}
	plan := endpoint.Plan{Endpoint: c.Endpoint, Binds: map[string]string{}, Tag: c.Tag, Analyze: c.Analyze, Offset: c.Offset, Limit: c.Limit}
	for _, b := range c.Binds {
		name, value, ok := strings.Cut(b, "=")
		if !ok {
			return usageError{fmt.Errorf("%q is not NAME=VALUE", b)}
		}
		plan.Binds[name] = value
	}
	return c.explain(ctx, s, &e.Config, plan)
}

func (c *explainCommand) explain(ctx context.Context, s streams, cfg *config.Config, plan endpoint.Plan) (err error) {
	st, err := openStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	snap, err := project.Load(ctx, st)
	if err != nil {
		return err
	}
	x, err := endpoint.NewWith(st, endpoint.Options{MaxRows: cfg.ORDS.MaxRows}).Explain(ctx, snap, plan)
	if err != nil {
		if kind := record.KindOf(err); kind == record.Invalid || kind == record.NotFound || kind == record.NotAllowed {
			return usageError{err}
		}
		return err
	}
	if !c.JSON {
		fmt.Fprintln(s.out, strings.TrimRight(x.Text, "\n"))
		return nil
	}
	out := json.NewEncoder(s.out)
	out.SetIndent("", "  ")
	return out.Encode(server.PlanDocument(plan.Endpoint, x))
}
