package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"weir/internal/auth"
	"weir/internal/autorest"
	"weir/internal/catalog"
	"weir/internal/config"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/store"
)

// exposure is a schema of a database that is served as it is, without a project.
type exposure struct {
	Expose      string `help:"Serve the tables and views of this schema of the database as they are, without a project: under /ords/SCHEMA/, read-only. The schema of an SQLite database is main." placeholder:"SCHEMA"`
	ExposeWrite bool   `help:"With --expose: whoever has the role admin may write, too."`
}

// on reports whether a schema is served.
func (x *exposure) on() bool { return x != nil && x.Expose != "" }

// check finds what cannot go together, and gives this machine's user a login if there is none.
func (x *exposure) check(c *config.Config, project string) error {
	switch {
	case !x.on() && x.ExposeWrite:
		return usageError{fmt.Errorf("--expose-write says how --expose SCHEMA serves")}
	case !x.on():
		return nil
	case project != "":
		return usageError{fmt.Errorf("--expose serves a schema without a project; %s is one", project)}
	case c.Database.URL == "":
		return usageError{fmt.Errorf("--expose needs --db: the database whose schema %s is served", x.Expose)}
	}
	if c.Name == "" {
		c.Name = "schema " + x.Expose
	}
	if len(c.Auth.Users)+len(c.Auth.Clients) > 0 || c.Auth.Trusted.Header != "" {
		return nil
	}
	for _, at := range c.Listen {
		if !auth.LoopbackHost(at) {
			return usageError{fmt.Errorf("listen %s: nobody can sign in to schema %s yet; name users in auth.users or clients in auth.clients", at, x.Expose)}
		}
	}
	// The login that works from this machine only, as the demo's does.
	c.Auth.Users = append(c.Auth.Users, auth.StaticUser{Name: "admin", Password: "admin", Roles: []string{"admin"}})
	return nil
}

// snapshot describes what the schema holds now. Nothing of it is stored, and no project that the database has is touched.
func (x *exposure) snapshot(ctx context.Context, s store.Store, log *slog.Logger) (*catalog.Snapshot, error) {
	schema := x.Expose
	if s.Name() == "sqlite" {
		if schema != "main" {
			return nil, usageError{fmt.Errorf("--expose %s: the schema of an SQLite database is main", schema)}
		}
		schema = ""
	}
	tables, err := s.Schema().Introspect(ctx, schema)
	if err != nil {
		if record.KindOf(err) == record.Invalid {
			return nil, usageError{err}
		}
		return nil, err
	}
	if len(tables) == 0 {
		return nil, usageError{fmt.Errorf("--expose %s: the database has no such schema, or it holds no tables that this user may see", x.Expose)}
	}
	svc := catalog.ServiceDef{Name: strings.ToLower(x.Expose), Protocol: autorest.Protocol}
	web := catalog.ServiceDef{Name: x.Expose}
	taken := map[string]bool{}
	for i := range tables {
		t := &tables[i]
		t.ReadOnly = t.ReadOnly || !x.ExposeWrite
		alias := strings.ToLower(t.Name)
		if taken[alias] || autorest.Reserved(alias) {
			alias = t.Name + "_"
		}
		taken[alias] = true
		svc.Sets = append(svc.Sets, catalog.SetDef{Name: alias, Table: t.Name})
		if len(t.Key) > 0 {
			web.Expose = append(web.Expose, t.Name)
		}
	}
	defs := catalog.Definitions{Tables: tables, Services: []catalog.ServiceDef{svc}}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		return nil, err
	}
	if _, err := autorest.Compile(snap, &svc); err != nil {
		return nil, err
	}
	// What has keys is an OData service as well, where its names allow it.
	if _, err := edm.Compile(snap, &web); err != nil || len(web.Expose) == 0 {
		log.Info("the schema is no OData service", "schema", x.Expose)
		return snap, nil
	}
	defs.Services = append(defs.Services, web)
	return catalog.Build(1, defs)
}

// greet says where the schema is.
func (x *exposure) greet(w io.Writer, c *config.Config, n *node) {
	at := scheme(c) + "://" + n.Addrs[0].String()
	how := "it is read-only"
	if x.ExposeWrite {
		how = "whoever has the role admin may write"
	}
	fmt.Fprintf(w, "its tables are listed at %s/ords/%s/metadata-catalog/; %s\n", at, strings.ToLower(x.Expose), how)
	if len(c.Auth.Users) == 1 && c.Auth.Users[0].Name == "admin" && c.Auth.Users[0].Password.Reveal() == "admin" {
		fmt.Fprintln(w, "login: admin / admin (from this machine only)")
	}
}
