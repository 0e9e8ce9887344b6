package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/config"
	"weir/internal/project"
	"weir/internal/record"
	"weir/internal/rule"
	"weir/internal/script"
	"weir/internal/store"
)

// apply brings a database to what a project folder says.
func apply(ctx context.Context, s store.Store, folder fs.FS, destructive bool, log *slog.Logger) (*project.Report, error) {
	p, err := project.Read(folder)
	if err != nil {
		return nil, usageError{err}
	}
	report, err := project.Apply(ctx, s, p, project.Options{AllowDestructive: destructive, Check: compiles, Hash: auth.Hash, Log: log})
	if err != nil && record.KindOf(err) == record.Invalid {
		return nil, usageError{err}
	}
	return report, err
}

// compiles finds rules, conditions and scripts that do not compile.
func compiles(snap *catalog.Snapshot) error {
	var faults []error
	for _, name := range snap.Tables() {
		t, err := snap.Table(name)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if _, err := rule.Compile(snap, t); err != nil {
			faults = append(faults, fmt.Errorf("table %s: %w", name, err))
		}
		for _, grants := range [][]catalog.GrantDef{t.Access.Read, t.Access.Create, t.Access.Update, t.Access.Delete} {
			for _, g := range grants {
				if g.Where == "" {
					continue
				}
				if _, err := rule.Condition(snap, t, g.Where, &record.Actor{}); err != nil {
					faults = append(faults, fmt.Errorf("table %s: access: %w", name, err))
				}
			}
		}
	}
	for _, e := range snap.Endpoints() {
		if err := script.Check(&e.EndpointDef); err != nil {
			faults = append(faults, fmt.Errorf("endpoint %s: %w", e.Name, err))
		}
	}
	return errors.Join(faults...)
}

type applyCommand struct {
	settings         `embed:""`
	AllowDestructive bool `help:"Carry out schema changes that lose something, too."`
	Watch            bool `help:"Go on: apply again whenever a file of the project changes."`
}

// Help is the command's longer help.
func (applyCommand) Help() string {
	return `Changes stored tables additively, loads data files that were never loaded, and stores the definitions under a new version, which running nodes take up by themselves. Changes that would lose something are listed and refused.

Examples:
  weir apply ./project --db postgres://weir@127.0.0.1/weir
  weir apply ./project --data ./weir-data --allow-destructive
  weir apply ./project --watch`
}

// Run applies the project and says what was done.
func (c *applyCommand) Run(ctx context.Context, s streams) error {
	e, err := c.load()
	if err != nil {
		return err
	}
	db, err := openStore(ctx, &e.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	folder, isDemo := c.folder()
	once := func() error {
		report, err := apply(ctx, db, folder, c.AllowDestructive, newLog(s.err, e.Log))
		if err == nil {
			said(s.out, report)
		}
		return err
	}
	if !c.Watch {
		return once()
	}
	if isDemo {
		return usageError{errors.New("--watch needs a project folder")}
	}
	return watch(ctx, folder, s.err, once)
}

// said prints what was done.
func said(out io.Writer, report *project.Report) {
	for _, change := range report.Schema {
		fmt.Fprintf(out, "schema   %s: %s\n", change.Table, change.What)
	}
	for _, l := range report.Loaded {
		fmt.Fprintf(out, "data     %s: %d records of %s\n", l.File, l.Rows, l.Table)
	}
	if report.Changed {
		fmt.Fprintf(out, "applied  version %d\n", report.Snapshot.Version)
	} else {
		fmt.Fprintf(out, "nothing to do: version %d is applied\n", report.Snapshot.Version)
	}
}

type introspectCommand struct {
	DB     string `name:"db" required:"" help:"Database: sqlite:PATH or postgres://user@host/database." placeholder:"URL"`
	Schema string `help:"Schema of the database (its default one)." placeholder:"NAME"`
	Out    string `arg:"" optional:"" default:"tables" type:"path" help:"Folder to write table files to (tables). Files that exist are kept."`
}

// Help is the command's longer help.
func (introspectCommand) Help() string {
	return `Reads the tables and views of an existing database and writes a table file for each. weir serves them as they are and never changes their schema.

Example:
  weir introspect --db postgres://weir@127.0.0.1/shop ./shop/tables
  weir serve ./shop --db postgres://weir@127.0.0.1/shop`
}

// Run writes the files.
func (c *introspectCommand) Run(ctx context.Context, s streams) error {
	set := settings{place: place{DB: c.DB}}
	e, err := set.load()
	if err != nil {
		return err
	}
	db, err := openStore(ctx, &e.Config)
	if err != nil {
		return err
	}
	defer db.Close()
	tables, err := db.Schema().Introspect(ctx, c.Schema)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	kept := 0
	for i := range tables {
		text, err := yaml.Marshal(&tables[i])
		if err != nil {
			return err
		}
		path := filepath.Join(c.Out, tables[i].Name+".yaml")
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			fmt.Fprintf(s.out, "kept     %s\n", path)
			kept++
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "written  %s\n", path)
	}
	fmt.Fprintf(s.out, "%d tables, %d files kept\n", len(tables), kept)
	return nil
}

type schemaCommand struct {
	Out string `arg:"" optional:"" type:"path" help:"Folder to write NAME.schema.json to. Without one: to the standard output."`
}

// Run writes the schemas.
func (c *schemaCommand) Run(s streams) error {
	schemas := project.Schemas()
	schemas["weir"] = config.Schema()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		text := schemas[name]
		if c.Out == "" {
			s.out.Write(text)
			continue
		}
		if err := os.MkdirAll(c.Out, 0o755); err != nil {
			return err
		}
		path := filepath.Join(c.Out, name+".schema.json")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "written  %s\n", path)
	}
	return nil
}
