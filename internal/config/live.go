package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// live are the settings that change while a node runs, beside those of the gate; what stands before a database is a backend's alone.
var live = []string{
	"cache.metadata", "cache.timeout",
	"database.pool.max", "database.pool.wait",
	"ords.debug", "ords.error_format", "ords.max_rows", "ords.page_size", "ords.trace_header",
	"telemetry.slow_statement",
}

// Row is one setting as people look at it: ORDS' `config list` has the first three columns.
type Row struct {
	Setting string `json:"setting"`
	Value   any    `json:"value"`
	Source  string `json:"source"`
	Live    bool   `json:"live,omitempty"`  // it changes while the node runs
	Alias   string `json:"alias,omitempty"` // ORDS' name of it
}

// Rows are all settings, sorted by name, secrets as ***.
func (e *Effective) Rows() ([]Row, error) {
	var n yaml.Node
	if err := n.Encode(e.Config); err != nil {
		return nil, err
	}
	known := e.leaves()
	var rows []Row
	var within func(n *yaml.Node, path string) error
	within = func(n *yaml.Node, path string) error {
		if _, leaf := known[path]; n.Kind == yaml.MappingNode && !leaf {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if err := within(n.Content[i+1], join(path, n.Content[i].Value)); err != nil {
					return err
				}
			}
			return nil
		}
		r := Row{Setting: path, Source: e.Origin(path), Live: slices.Contains(live, path)}
		for _, a := range aliases {
			if a.ours == path {
				r.Alias = a.ords
			}
		}
		rows = append(rows, r)
		return n.Decode(&rows[len(rows)-1].Value)
	}
	err := within(&n, "")
	slices.SortFunc(rows, func(a, b Row) int { return bytes.Compare([]byte(a.Setting), []byte(b.Setting)) })
	return rows, err
}

// Change is e with the settings of a JSON document, which names them as weir.yaml does, in keys within each other or in one, or as ORDS does;
// null takes a setting back to what it is in base. Only those that change while a node runs may stand there. names are those that it
// sets. The error joins all faults.
func (e *Effective) Change(base *Effective, patch []byte, from string) (next *Effective, names []string, err error) {
	var doc map[string]any
	d := json.NewDecoder(bytes.NewReader(patch))
	d.UseNumber()
	if err := d.Decode(&doc); err != nil {
		return nil, nil, fmt.Errorf("the document is no JSON object: %w", err)
	}
	next = &Effective{Config: e.Config, origin: maps.Clone(e.origin)}
	if next.origin == nil {
		next.origin = map[string]string{}
	}
	var faults []error
	var within func(v any, path string)
	within = func(v any, path string) {
		if object, ok := v.(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(object)) {
				within(object[name], join(path, name))
			}
			return
		}
		name, err := next.change(base, path, v, from)
		if err != nil {
			faults = append(faults, err)
			return
		}
		names = append(names, name)
	}
	within(doc, "")
	if err := errors.Join(faults...); err != nil {
		return nil, nil, err
	}
	return next, names, next.Validate()
}

// change gives one setting a value, or that of base for nil, and returns its name.
func (e *Effective) change(base *Effective, path string, v any, from string) (string, error) {
	a, fault := aliasOf(path, false)
	if fault != nil {
		return "", fault
	}
	s := Setting{Path: path, From: from}
	if a != nil {
		s.Path = a.ours
	}
	if _, known := e.leaves()[s.Path]; !known {
		return "", fmt.Errorf("%s: no such setting", path)
	}
	if !slices.Contains(live, s.Path) {
		return "", fmt.Errorf("%s: changes with a new start only", path)
	}
	switch v := v.(type) {
	case nil:
		return s.Path, e.takeBack(base, s.Path)
	case string:
		s.Value = v
	case bool, json.Number:
		s.Value = fmt.Sprint(v)
	default:
		return "", fmt.Errorf("%s: takes one value", path)
	}
	if a != nil {
		var err error
		if s, err = a.setting(s.Value, from); err != nil {
			return "", err
		}
	}
	return s.Path, e.set(s)
}

// takeBack gives one setting the value that it has in base.
func (e *Effective) takeBack(base *Effective, path string) error {
	rows, err := base.Rows()
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Setting == path {
			if err := e.set(Setting{Path: path, Value: fmt.Sprint(r.Value)}); err != nil {
				return err
			}
			delete(e.origin, path)
			if from := base.origin[path]; from != "" {
				e.origin[path] = from
			}
		}
	}
	return nil
}
