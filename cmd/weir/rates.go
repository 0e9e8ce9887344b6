package main

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"weir/internal/config"
	"weir/internal/gate"
	"weir/internal/record"
)

// ratesTable is where a project keeps its hourly limits, beside those of gate.rates.rules (protocol notes, section 11.3).
const ratesTable = "sys_rate_limit_rules"

// ratesEvery is how old the rules may be that a node goes by.
const ratesEvery = 10 * time.Second

// regate puts the gate's settings in force, with the project's rate limits added. What cannot be read stays as it was.
func (n *node) regate(ctx context.Context, settings gate.Config) error {
	rules, err := n.rateRules(ctx)
	if err != nil {
		return err
	}
	settings.Rates.Rules = append(settings.Rates.Rules[:len(settings.Rates.Rules):len(settings.Rates.Rules)], rules...)
	if reflect.DeepEqual(settings, *n.gate.Config()) {
		return nil
	}
	if err := n.gate.Reconfigure(settings); err != nil {
		return err
	}
	if n.regated != nil {
		n.regated(&settings)
	}
	return nil
}

// gateChange is a wish for other settings of the gate, told on done whether they are in force.
type gateChange struct {
	patch []byte
	done  chan error
}

// change lays a patch over the gate's settings and returns when the result is in force.
func (n *node) change(ctx context.Context, patch []byte) error {
	c := gateChange{patch, make(chan error, 1)}
	select {
	case n.changes <- c:
	case <-ctx.Done():
		return record.Errorf(record.Canceled, "", "the client went away").Because(ctx.Err())
	}
	return <-c.done
}

// changed are settings with a patch in force.
func (n *node) changed(ctx context.Context, settings gate.Config, patch []byte) (gate.Config, error) {
	next, err := config.PatchGate(settings, patch)
	if err != nil {
		return settings, record.Errorf(record.Invalid, "", "%s", err.Error())
	}
	var known *record.Error
	switch err := n.regate(ctx, next); {
	case err == nil:
		return next, nil
	case errors.As(err, &known):
		return settings, err
	default: // a rule of the project has the id of one in the patch
		return settings, record.Errorf(record.Invalid, "", "%s", err.Error())
	}
}

// followGate keeps the gate at the project's rate limits and at settings that arrive while it runs.
func (n *node) followGate(ctx context.Context, settings gate.Config) {
	tick := time.NewTicker(ratesEvery)
	defer tick.Stop()
	var err error
	for {
		if err := n.regate(ctx, settings); err != nil && ctx.Err() == nil {
			n.log.Warn("the gate keeps its settings", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case settings = <-n.settings:
			n.log.Info("new settings of the gate")
		case c := <-n.changes:
			settings, err = n.changed(ctx, settings, c.patch)
			c.done <- err
		}
	}
}

// rateRules reads the project's active rules. Rules that name no user, role or limit they need are left out: the table's own
// rules refuse them.
func (n *node) rateRules(ctx context.Context) ([]gate.RateRule, error) {
	snap, err := n.below.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	t, err := snap.Table(ratesTable)
	if err != nil {
		return nil, nil
	}
	fields := []string{"sys_id", "api", "resource", "method", "scope", "user.user_name", "role.name", "limit_per_hour"}
	for _, f := range fields {
		if _, err := snap.Resolve(t, f); err != nil {
			return nil, nil // a table of that name, but another one
		}
	}
	out := n.below.exec.Execute(ctx, snap, &record.Unit{
		Version: snap.Version, Actors: []record.Actor{{Name: "system", System: true}},
		Ops: []record.Op{{Verb: record.List, Table: ratesTable, Return: fields, Query: &record.Query{
			Where: record.Compare(record.Eq, record.F("active"), record.C(record.BoolValue(true))),
			Sort:  []record.Sort{{Path: "sys_id"}}, Limit: 1000,
		}}},
	})
	if out[0].Err != nil {
		return nil, out[0].Err
	}
	var rules []gate.RateRule
	for i := range out[0].Rows.Len() {
		row := out[0].Rows.At(i)
		r := gate.RateRule{ID: row[0].Text(), PerHour: int(row[7].N)}
		r.Path, r.Method = ratePath(row[1].Text(), row[2].Text()), row[3].Text()
		switch row[4].Text() {
		case "user":
			r.User = row[5].Text()
		case "role":
			r.Role = row[6].Text()
		}
		if r.PerHour < 1 || r.User == "" && row[4].Text() == "user" || r.Role == "" && row[4].Text() == "role" {
			continue
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// ratePath is the path that a rule means: its resource if that is a path, else that of its API, which may be written
// as a path, as "now/table" or by its title, "Table API".
func ratePath(api, resource string) string {
	switch {
	case strings.HasPrefix(resource, "/"):
		return resource
	case api == "" || strings.HasPrefix(api, "/"):
		return api
	case strings.Contains(api, "/"):
		return "/api/" + api
	case strings.EqualFold(api, "Import Set API"):
		return "/api/now/import" // the one whose path is not its title
	}
	return "/api/now/" + strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(api, " API"), " ", "_"))
}
