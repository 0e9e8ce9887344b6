package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"weir/internal/catalog"
	"weir/internal/project"
)

// endpointsCommand lists the endpoints that are applied.
type endpointsCommand struct {
	place `embed:""`
	JSON  bool `name:"json" help:"One JSON array instead of text."`
}

// Help is the command's longer help.
func (endpointsCommand) Help() string {
	return `Reads the endpoints from the database as they are applied, SQL and scripted ones: method and route, what answers it, who may call it, and for SQL endpoints their parameters and columns with the types that the database told.

Examples:
  weir endpoints ./project
  weir endpoints --db postgres://weir@127.0.0.1/weir --json`
}

// listed is one endpoint in the list.
type listed struct {
	Name       string         `json:"name"`
	Method     string         `json:"method"`
	Route      string         `json:"route"`
	File       string         `json:"file"`
	Source     string         `json:"source"` // of a SQL endpoint, else "script"
	Module     string         `json:"module,omitempty"`
	Priority   int            `json:"priority,omitempty"`
	ETag       string         `json:"etag,omitempty"`
	Public     bool           `json:"public,omitempty"`
	Roles      []string       `json:"roles,omitempty"`
	Auth       []string       `json:"auth,omitempty"`
	Published  bool           `json:"published"`
	Store      string         `json:"store,omitempty"`      // the only database that it is for
	Statements int            `json:"statements,omitempty"` // that one call runs; nested rows run more
	Nested     string         `json:"nested,omitempty"`
	Parameters []listedName   `json:"parameters,omitempty"`
	Columns    []listedColumn `json:"columns,omitempty"`
}

// listedName is a parameter.
type listedName struct {
	Name   string `json:"name"`
	Bind   string `json:"bind"`
	Source string `json:"source,omitempty"`
	Type   string `json:"type,omitempty"`
	Access string `json:"access,omitempty"`
}

// listedColumn is a column.
type listedColumn struct {
	Name   string `json:"name"`
	Type   string `json:"type,omitempty"`
	Native string `json:"native,omitempty"`
}

// Run lists them.
func (c *endpointsCommand) Run(ctx context.Context, s streams) error {
	e, err := c.load()
	if err != nil {
		return err
	}
	db, err := openStore(ctx, &e.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	snap, err := project.Load(ctx, db)
	if err != nil {
		return err
	}
	var list []listed
	for _, e := range snap.SQLEndpoints() {
		list = append(list, describeSQL(&e.EndpointDef))
	}
	for _, e := range snap.Endpoints() {
		list = append(list, listed{
			Name: e.Name, Method: e.Method, Route: e.Path, File: e.File, Source: "script", Public: e.Public, Roles: e.Roles, Published: true,
		})
	}
	slices.SortStableFunc(list, func(a, b listed) int { return strings.Compare(a.Route+" "+a.Method, b.Route+" "+b.Method) })
	if c.JSON {
		enc := json.NewEncoder(s.out)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if list == nil {
			list = []listed{}
		}
		return enc.Encode(list)
	}
	for i := range list {
		list[i].print(s.out)
	}
	fmt.Fprintf(s.out, "%d endpoints, version %d\n", len(list), snap.Version)
	return nil
}

func describeSQL(e *catalog.EndpointDef) listed {
	d := e.SQL
	l := listed{
		Name: e.Name, Method: e.Method, Route: e.Path, File: e.File, Source: d.Source, Module: d.Module, Priority: d.Priority, ETag: d.ETag,
		Public: e.Public, Roles: e.Roles, Auth: d.Auth, Published: !d.Unpublished, Nested: d.Nested, Store: d.Store,
	}
	if d.Compiled == nil {
		return l
	}
	l.Statements = len(d.Compiled.Statements)
	if d.Compiled.Tag != nil {
		l.Statements++
	}
	for _, b := range d.Compiled.Binds {
		p := listedName{Name: b.Name, Bind: b.Name, Type: b.Type}
		for _, q := range d.Params {
			if q.Bind == b.Name {
				p = listedName{Name: q.Name, Bind: q.Bind, Source: q.Source, Type: q.Type, Access: q.Access}
			}
		}
		l.Parameters = append(l.Parameters, p)
	}
	if d.Source != catalog.SourceBlock && len(d.Compiled.Statements) == 1 {
		for _, c := range d.Compiled.Statements[0].Columns {
			name := c.Name
			if c.Rel != "" {
				name = "$" + c.Rel
			}
			col := listedColumn{Name: name, Type: c.Type, Native: c.Native}
			if c.JSON {
				col.Type = "json"
			}
			l.Columns = append(l.Columns, col)
		}
	}
	return l
}

// print writes one endpoint as text.
func (l *listed) print(w io.Writer) {
	fmt.Fprintf(w, "%-6s %s\n", l.Method, l.Route)
	what := []string{l.Source}
	if l.ETag != "" {
		what = append(what, "etag "+l.ETag)
	}
	switch {
	case l.Public:
		what = append(what, "public")
	case len(l.Roles) > 0:
		what = append(what, "roles "+strings.Join(l.Roles, ", "))
	default:
		what = append(what, "anybody authenticated")
	}
	if len(l.Auth) > 0 {
		what = append(what, "by "+strings.Join(l.Auth, ", "))
	}
	if l.Statements > 1 {
		what = append(what, fmt.Sprintf("%d statements", l.Statements))
	}
	if l.Nested == "rows" {
		what = append(what, "nested rows one by one")
	}
	if l.Priority > 0 {
		what = append(what, fmt.Sprintf("priority %d", l.Priority))
	}
	if l.Store != "" {
		what = append(what, l.Store+" only")
	}
	if !l.Published {
		what = append(what, "not published")
	}
	fmt.Fprintf(w, "       %s (%s)\n", strings.Join(what, " · "), l.File)
	var names []string
	for _, p := range l.Parameters {
		text := ":" + p.Bind
		if p.Name != p.Bind {
			text = p.Name + " as " + text
		}
		names = append(names, strings.Join(strings.Fields(strings.Join([]string{text, p.Source, p.Type, p.Access}, " ")), " "))
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "       takes  %s\n", strings.Join(names, ", "))
	}
	names = names[:0]
	for _, c := range l.Columns {
		names = append(names, strings.TrimSpace(c.Name+" "+c.Type))
	}
	if len(names) > 0 {
		fmt.Fprintf(w, "       gives  %s\n", strings.Join(names, ", "))
	}
}
