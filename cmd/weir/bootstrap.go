package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"weir/internal/catalog"
	"weir/internal/engine"
	"weir/internal/record"
	"weir/internal/store"
)

// bootstrap reads a project's tables, makes the schema and loads the data of tables that are empty.
func bootstrap(ctx context.Context, project fs.FS, s store.Store, e *engine.Engine) (*catalog.Snapshot, error) {
	names, err := fs.Glob(project, "tables/*.yaml")
	if err != nil {
		return nil, err
	}
	var defs catalog.Definitions
	for _, name := range names {
		text, err := fs.ReadFile(project, name)
		if err != nil {
			return nil, err
		}
		var def catalog.TableDef
		d := yaml.NewDecoder(bytes.NewReader(text))
		d.KnownFields(true)
		if err := d.Decode(&def); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defs.Tables = append(defs.Tables, def)
	}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		return nil, err
	}
	plan, err := s.Schema().Plan(ctx, snap)
	if err != nil {
		return nil, err
	}
	if len(plan.Additive) == 0 {
		return snap, nil
	}
	if err := s.Schema().Apply(ctx, plan.Additive); err != nil {
		return nil, err
	}
	files, err := fs.Glob(project, "data/*.csv")
	if err != nil {
		return nil, err
	}
	// Link tables last, for their foreign keys.
	slices.SortStableFunc(files, func(a, b string) int { return links(snap, a) - links(snap, b) })
	for _, name := range files {
		if err := loadCSV(ctx, project, name, snap, e); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return snap, nil
}

func links(snap *catalog.Snapshot, file string) int {
	t, err := snap.Table(strings.TrimSuffix(path.Base(file), ".csv"))
	if err != nil {
		return 0
	}
	n := 0
	for _, f := range t.Fields {
		if f.ForeignKey {
			n++
		}
	}
	return n
}

func loadCSV(ctx context.Context, project fs.FS, name string, snap *catalog.Snapshot, e *engine.Engine) error {
	text, err := fs.ReadFile(project, name)
	if err != nil {
		return err
	}
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return err
	}
	t, err := snap.Table(strings.TrimSuffix(path.Base(name), ".csv"))
	if err != nil {
		return err
	}
	u := &record.Unit{Version: snap.Version, Actors: []record.Actor{{Name: "system", System: true}}}
	for _, line := range lines[1:] {
		op := record.Op{Verb: record.Insert, Table: t.Name, Keep: true}
		for i, text := range line {
			f := t.Field(lines[0][i])
			if f == nil || text == "" {
				continue
			}
			v, err := record.Parse(f.Type, text)
			if err != nil {
				return err
			}
			op.Set = append(op.Set, record.Assign{Field: f.Name, Value: v})
		}
		u.Ops = append(u.Ops, op)
	}
	for i, o := range e.Execute(ctx, snap, u) {
		if o.Err != nil {
			return fmt.Errorf("line %d: %w", i+2, o.Err)
		}
	}
	return nil
}
