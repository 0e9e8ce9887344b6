package rule

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"weir/internal/catalog"
	"weir/internal/record"
)

const tablesYAML = `
tables:
  - name: sys_user
    fields:
      - {name: user_name, type: string, unique: true}
      - {name: company, type: string}
  - name: assignment
    fields:
      - {name: category, type: string}
      - {name: site, type: string}
      - {name: order, type: integer}
      - {name: group, type: string}
  - name: audit
    fields:
      - {name: document, type: string}
      - {name: text, type: string}
  - name: ticket
    fields:
      - {name: state, label: State, type: integer, default: 1, choices: [{value: 1, label: New}, {value: 6, label: Resolved}]}
      - {name: impact, type: integer, default: 3}
      - {name: urgency, type: integer, default: 3}
      - {name: priority, type: integer, compute: 'lookup("priority", impact, urgency) ?? 4'}
      - {name: opened, type: datetime, default: '=now()'}
      - {name: opened_by, type: string, default: '=user.sys_id'}
      - {name: caller, type: reference, reference: sys_user}
      - {name: company, type: string}
      - {name: category, type: string}
      - {name: site, type: string}
      - {name: group, type: string}
      - {name: moves, type: integer, default: 0}
      - {name: resolved, type: datetime}
      - {name: notes, type: string}
      - {name: cost, type: decimal}
      - {name: version, type: datetime, compute: 'instant()'}
    matrices:
      priority: [[1, 1, 1], [1, 2, 2], [2, 1, 2], [3, 3, 5]]
    rules:
      - {name: resolve, when: 'changed("state") && state == 6', require: [notes], set: {resolved: 'resolved ?? now()'}}
      - {name: moved, on: [update], when: 'changed("group") && previous.group != nil', set: {moves: 'moves + 1'}}
      - {name: legal, transition: {field: state, from: {6: [1]}}}
      - {name: positive, check: 'cost >= 0', message: cost must not be negative, field: cost}
      - {name: company, lookup: {table: sys_user, match: {sys_id: caller}, set: {company: company}, none: error}, when: 'caller != nil'}
      - {name: assign, on: [insert], when: 'group == nil', choose: {table: assignment, match: {category: category, site: site}, order: order, set: {group: group}}}
      - {name: trail, on: [update], when: 'changed("state")', derive: {table: audit, values: {document: sys_id, text: 'string(previous.state) + ">" + string(state)'}}}
`

var clock = time.Date(2026, 11, 30, 17, 2, 10, 0, time.UTC)

func build(t *testing.T, text string) *catalog.Snapshot {
	t.Helper()
	var defs catalog.Definitions
	dec := yaml.NewDecoder(strings.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&defs); err != nil {
		t.Fatal(err)
	}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// tables answers Find from rows in memory and counts the queries.
type tables struct {
	rows  map[string][]map[string]string
	finds int
}

func (d *tables) Find(_ context.Context, t *catalog.Table, fields []string, where *record.Expr) (*record.Rows, error) {
	d.finds++
	out := record.NewRows(fields, make([]record.Type, len(fields)))
	for _, r := range d.rows[t.Name] {
		if !holds(where, r) {
			continue
		}
		row := make([]record.Value, len(fields))
		for i, f := range fields {
			row[i], _ = record.Parse(t.Field(f).Type, r[f])
		}
		out.Append(row)
	}
	return out, nil
}

func holds(e *record.Expr, row map[string]string) bool {
	switch e.Op {
	case record.And:
		for _, a := range e.Args {
			if !holds(a, row) {
				return false
			}
		}
		return true
	case record.Or:
		for _, a := range e.Args {
			if holds(a, row) {
				return true
			}
		}
		return false
	case record.In:
		for _, v := range e.Values {
			if v.Text() == row[e.Args[0].Path] {
				return true
			}
		}
		return false
	case record.IsEmpty:
		return row[e.Args[0].Path] == ""
	}
	panic("not used by rules")
}

// fixture is a ticket table with a program and data.
type fixture struct {
	t     *testing.T
	table *catalog.Table
	p     *Program
	data  *tables
}

func newFixture(t *testing.T) *fixture {
	snap := build(t, tablesYAML)
	table, _ := snap.Table("ticket")
	p, err := Compile(snap, table)
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, table, p, &tables{rows: map[string][]map[string]string{
		"sys_user": {{"sys_id": "u1", "company": "ACME"}, {"sys_id": "u2", "company": "Initech"}},
		"assignment": {
			{"category": "", "site": "", "order": "9", "group": "desk"},
			{"category": "network", "site": "", "order": "5", "group": "net"},
			{"category": "network", "site": "b", "order": "7", "group": "net-b"},
			{"category": "", "site": "b", "order": "1", "group": "site-b"},
		},
	}}}
}

func (f *fixture) row(event Event, old, set map[string]string) *Row {
	r := &Row{
		Table: f.table, Event: event, Actor: &record.Actor{Key: "u1", Name: "abel", Roles: []string{"itil"}},
		New: make([]record.Value, len(f.table.Fields)), Given: make([]bool, len(f.table.Fields)),
	}
	if event == Update {
		r.Old = f.values(old)
		copy(r.New, r.Old)
	}
	for i, v := range f.values(set) {
		if _, given := set[f.table.Fields[i].Name]; given {
			r.New[i], r.Given[i] = v, true
		}
	}
	return r
}

func (f *fixture) values(m map[string]string) []record.Value {
	out := make([]record.Value, len(f.table.Fields))
	for name, text := range m {
		fd := f.table.Field(name)
		v, err := record.Parse(fd.Type, text)
		if err != nil {
			f.t.Fatal(err)
		}
		out[fd.Index] = v
	}
	return out
}

func (f *fixture) run(rows ...*Row) {
	f.t.Helper()
	if err := f.p.Run(context.Background(), Env{Now: clock, Data: f.data}, rows); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) get(r *Row, name string) string { return r.New[f.table.Field(name).Index].Text() }

func TestNow_IsInWholeSecondsAndInstantInMilliseconds(t *testing.T) {
	f := newFixture(t)
	r := f.row(Insert, nil, map[string]string{"caller": "u2"})
	env := Env{Now: clock.Add(123456789 * time.Nanosecond), Data: f.data}
	if err := f.p.Run(context.Background(), env, []*Row{r}); err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	if got := f.get(r, "opened"); got != "2026-11-30 17:02:10" {
		t.Errorf("now() is %s", got)
	}
	if got := f.get(r, "version"); got != "2026-11-30 17:02:10.123" {
		t.Errorf("instant() is %s", got)
	}
}

func TestInsert_DefaultsComputeLookupChoose(t *testing.T) {
	f := newFixture(t)
	r := f.row(Insert, nil, map[string]string{"impact": "1", "urgency": "2", "caller": "u2", "category": "network"})
	f.run(r)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	got := map[string]string{}
	for _, n := range []string{"state", "priority", "opened", "opened_by", "company", "group", "moves"} {
		got[n] = f.get(r, n)
	}
	want := map[string]string{
		"state": "1", "priority": "2", "opened": "2026-11-30 17:02:10", "opened_by": "u1", "company": "Initech", "group": "net", "moves": "0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
}

func TestLookup_OneQueryForTheWholeSet(t *testing.T) {
	f := newFixture(t)
	var rows []*Row
	for i := range 100 {
		rows = append(rows, f.row(Insert, nil, map[string]string{"caller": []string{"u1", "u2"}[i%2], "group": "g"}))
	}
	f.run(rows...)
	if f.data.finds != 1 {
		t.Fatalf("%d queries for 100 rows", f.data.finds)
	}
	if got := f.get(rows[1], "company"); got != "Initech" {
		t.Fatalf("company %q", got)
	}
}

func TestChoose_MostEqualFieldsThenOrder(t *testing.T) {
	f := newFixture(t)
	cases := []struct{ category, site, want string }{
		{"network", "b", "net-b"}, {"network", "z", "net"}, {"software", "b", "site-b"}, {"software", "", "desk"}, {"", "", "desk"},
	}
	for _, c := range cases {
		r := f.row(Insert, nil, map[string]string{"category": c.category, "site": c.site})
		f.run(r)
		if got := f.get(r, "group"); got != c.want {
			t.Errorf("%q at %q: group %q, want %q", c.category, c.site, got, c.want)
		}
	}
}

func TestRules_RejectNamesRuleAndField(t *testing.T) {
	f := newFixture(t)
	cases := []struct {
		name     string
		row      *Row
		rule     string
		field    string
		contains string
	}{
		{"require", f.row(Update, map[string]string{"state": "1"}, map[string]string{"state": "6"}), "resolve", "notes", "must be filled in"},
		{"transition", f.row(Update, map[string]string{"state": "6"}, map[string]string{"state": "2"}), "legal", "state", "cannot change from Resolved to 2"},
		{"check", f.row(Insert, nil, map[string]string{"cost": "-1.50", "group": "g"}), "positive", "cost", "negative"},
		{"lookup none", f.row(Insert, nil, map[string]string{"caller": "nobody", "group": "g"}), "company", "", "no sys user is found"},
	}
	for _, c := range cases {
		f.run(c.row)
		if c.row.Err == nil {
			t.Errorf("%s: not rejected", c.name)
			continue
		}
		if e := c.row.Err; e.Kind != record.Rejected || e.Rule != c.rule || e.Field != c.field || !strings.Contains(e.Msg, c.contains) {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
}

func TestCheck_EmptyFieldHolds(t *testing.T) {
	f := newFixture(t)
	r := f.row(Insert, nil, map[string]string{"group": "g"})
	f.run(r)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
}

func TestOneBadRow_LeavesOthersAlone(t *testing.T) {
	f := newFixture(t)
	good, bad := f.row(Insert, nil, map[string]string{"cost": "1"}), f.row(Insert, nil, map[string]string{"cost": "-1"})
	f.run(bad, good)
	if bad.Err == nil || good.Err != nil {
		t.Fatalf("bad %v, good %v", bad.Err, good.Err)
	}
}

func TestUpdate_ChangedPreviousAndDerive(t *testing.T) {
	f := newFixture(t)
	r := f.row(Update, map[string]string{"state": "1", "group": "a", "moves": "2"}, map[string]string{"state": "6", "notes": "done", "group": "b"})
	f.run(r)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	if f.get(r, "moves") != "3" || f.get(r, "resolved") != "2026-11-30 17:02:10" {
		t.Fatalf("moves %s resolved %s", f.get(r, "moves"), f.get(r, "resolved"))
	}
	want := []Derived{{Op: record.Op{Verb: record.Insert, Table: "audit", Set: []record.Assign{{Field: "text", Value: record.TextValue("1>6")}}}}}
	if d := cmp.Diff(want, r.Derive); d != "" {
		t.Fatal(d)
	}
	untouched := f.row(Update, map[string]string{"state": "1", "group": "a"}, map[string]string{"group": "a"})
	f.run(untouched)
	if len(untouched.Derive) != 0 || f.get(untouched, "moves") != "" {
		t.Fatal("a rule ran for a field that did not change")
	}
}

func TestDerive_WhatGivesNothingEmptiesOrIsSkipped(t *testing.T) {
	for _, skip := range []string{"false", "true"} {
		snap := build(t, `
tables:
  - name: person
    fields:
      - {name: login, type: string, unique: true}
      - {name: mail, type: string}
      - {name: phone, type: string}
  - name: staging
    fields: [{name: login, type: string}, {name: mail, type: string}, {name: phone, type: string}]
    rules:
      - {name: person, on: [insert], derive: {table: person, match: login, skip_empty: `+skip+`, values: {login: login, mail: mail, phone: phone}}}
`)
		table, _ := snap.Table("staging")
		p, err := Compile(snap, table)
		if err != nil {
			t.Fatal(err)
		}
		f := &fixture{t, table, p, &tables{}}
		r := f.row(Insert, nil, map[string]string{"login": "abel", "phone": "1"})
		f.run(r)
		var fields []string
		for _, a := range r.Derive[0].Op.Set {
			fields = append(fields, a.Field+"="+a.Value.Text())
		}
		want := []string{"login=abel", "mail=", "phone=1"}
		if skip == "true" {
			want = []string{"login=abel", "phone=1"}
		}
		if d := cmp.Diff(want, fields); d != "" || r.Err != nil {
			t.Errorf("skip_empty %s: %v %s", skip, r.Err, d)
		}
	}
}

func TestCompile_ListsAllFaults(t *testing.T) {
	snap := build(t, `
tables:
  - name: t
    fields: [{name: a, type: string, default: '=b'}]
    rules:
      - {name: r1, check: 'nope > 1'}
      - {name: r2, set: {c: '1'}}
      - {name: r3}
      - {name: r4, lookup: {table: gone, match: {x: a}, set: {a: x}}}
      - {name: r5, check: 'lookup("m", a)'}
      - {name: r6, check: '((('}
`)
	table, _ := snap.Table("t")
	_, err := Compile(snap, table)
	for _, want := range []string{"default of a", "r1", `"nope"`, "r2", "r3", "does nothing", "gone", `matrix "m"`, "r6"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}

func TestCondition_TranslatesToData(t *testing.T) {
	snap := build(t, tablesYAML)
	table, _ := snap.Table("ticket")
	actor := &record.Actor{Key: "u1", Name: "abel", Roles: []string{"ess"}}
	f := record.F
	eq := func(path string, v record.Value) *record.Expr { return record.Compare(record.Eq, f(path), record.C(v)) }
	cases := []struct {
		where string
		want  *record.Expr
	}{
		{"caller == user.sys_id", eq("caller", record.TextValue("u1"))},
		{"caller.company == 'ACME' and not (state in [1, 2])", record.Compare(record.And, eq("caller.company", record.TextValue("ACME")),
			record.Negate(&record.Expr{Op: record.In, Args: []*record.Expr{f("state")}, Values: []record.Value{record.IntValue(1), record.IntValue(2)}}))},
		{"group == nil", &record.Expr{Op: record.IsEmpty, Args: []*record.Expr{f("group")}}},
		{"3 > impact", record.Compare(record.Lt, f("impact"), record.C(record.IntValue(3)))},
		{`"ess" in user.roles`, &record.Expr{Op: record.Always}},
	}
	for _, c := range cases {
		got, err := Condition(snap, table, c.where, actor)
		if err != nil {
			t.Errorf("%s: %v", c.where, err)
		} else if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.where, d)
		}
	}
	for _, bad := range []string{"nope == 1", "state + 1 == 2", "len(group) > 1", "state in state", "(", "impact == 'x'"} {
		if _, err := Condition(snap, table, bad, actor); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
}

func BenchmarkRun(b *testing.B) {
	f := newFixture(&testing.T{})
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		rows := make([]*Row, 1000)
		for i := range rows {
			rows[i] = f.row(Insert, nil, map[string]string{"impact": "1", "urgency": "2", "caller": "u2", "group": "g"})
		}
		b.StartTimer()
		f.run(rows...)
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "rows/s")
}

const belongingYAML = `
tables:
  - name: invoice
    audit: false
    key: [number]
    fields:
      - {name: number, type: string}
      - {name: account, type: reference, reference: account}
      - {name: sum, type: decimal}
      - {name: count, type: integer}
    rules:
      - {name: up, total: {in: account, set: {sum: sum}}}
  - name: account
    audit: false
    key: [name]
    fields: [{name: name, type: string}, {name: sum, type: decimal}, {name: parent, type: reference, reference: account}]
  - name: entry
    fields:
      - {name: invoice, type: reference, reference: invoice}
      - {name: pos, type: string, max_length: 4}
      - {name: place, type: integer}
      - {name: amount, type: decimal}
      - {name: pieces, type: integer}
      - {name: note, type: string}
    rules:
`

func TestCompile_PositionsAndTotals(t *testing.T) {
	snap := build(t, belongingYAML+`
      - {name: pos, position: {field: pos, within: invoice, step: 10, digits: 4}}
      - {name: place, position: {field: place, within: invoice}}
      - {name: sum, total: {in: invoice, set: {sum: amount, count: pieces}}}
`)
	table, _ := snap.Table("entry")
	p, err := Compile(snap, table)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Empty() || len(p.Positions()) != 2 || len(p.Totals()) != 1 {
		t.Fatalf("%d positions, %d totals", len(p.Positions()), len(p.Totals()))
	}
	f := func(pos *Position, last record.Value, want string) {
		t.Helper()
		v, err := pos.Next(last)
		got := v.Text()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("after %q: %q, want %q", last.Text(), got, want)
		}
	}
	pos, place := p.Positions()[0], p.Positions()[1]
	f(pos, record.Value{}, "0010")
	f(pos, record.TextValue("0090"), "0100")
	f(pos, record.TextValue("9989"), "9999")
	f(pos, record.TextValue("9995"), "pos: there is no number after 9995")
	f(pos, record.TextValue("x"), "pos: there is no number after x")
	f(place, record.Value{}, "1")
	f(place, record.IntValue(41), "42")
	f(place, record.IntValue(1<<63-1), "place: there is no number after 9223372036854775807")

	total := p.Totals()[0]
	values, err := total.Values([]record.Value{record.IntValue(3), record.TextValue("10.50")}) // by their names: count, sum
	if d := cmp.Diff([]record.Value{record.IntValue(3), record.TextValue("10.50")}, values); err != nil || d != "" {
		t.Error(err, d)
	}
	if values, err = total.Values(nil); err != nil || values[0] != record.IntValue(0) || values[1] != record.TextValue("0") {
		t.Error(err, values)
	}
}

func TestCompile_ListsFaultsOfPositionsAndTotals(t *testing.T) {
	snap := build(t, belongingYAML+`
      - {name: r01, position: {field: gone, within: invoice}}
      - {name: r02, position: {field: pos, within: note, digits: 4}}
      - {name: r03, position: {field: pos, within: invoice}}
      - {name: r04, position: {field: pos, within: invoice, digits: 5}}
      - {name: r05, position: {field: amount, within: invoice}}
      - {name: r06, position: {field: place, within: invoice, step: -1}}
      - {name: r07, on: [insert], position: {field: place, within: invoice}}
      - {name: r08, when: place > 1, total: {in: invoice, set: {sum: amount}}}
      - {name: r09, total: {in: note, set: {sum: amount}}}
      - {name: r10, total: {in: invoice, set: {}}}
      - {name: r11, total: {in: invoice, set: {count: amount}}}
      - {name: r12, total: {in: invoice, set: {sum: note}}}
      - {name: r13, total: {in: invoice, set: {gone: amount}}}
      - {name: r14, total: {in: invoice, set: {sum: amount}}, position: {field: place, within: invoice}}
      - {name: r15, check: amount > 1, total: {in: invoice, set: {sum: amount}}}
`)
	table, _ := snap.Table("entry")
	_, err := Compile(snap, table)
	for _, want := range []string{
		`rule r01: position: field: table entry has no field "gone"`, "rule r02: position: within: note is no reference", "rule r03: position: digits", "rule r04: position: digits",
		"rule r05: position: amount is neither an integer nor a text", "rule r06: position: step is less than 1", "rule r07: on and when do not apply", "rule r08: on and when do not apply",
		"rule r09: total: in: note is no reference", "rule r10: total: set names no field", "rule r11: total: set: the sum of amount (decimal) does not fit count (integer)",
		"rule r12: total: set: the sum of note", `rule r13: total: set: table invoice has no field "gone"`, "rule r14: a position, and a total, is a rule of its own", "rule r15: a position, and a total,",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}

	snap = build(t, strings.Replace(belongingYAML, "reference: account}]", "reference: account}]\n    rules: [{name: round, total: {in: parent, set: {sum: sum}}}]", 1)+"      - {name: note, require: [note]}\n")
	table, _ = snap.Table("account")
	if _, err := Compile(snap, table); err == nil || !strings.Contains(err.Error(), "go round in a circle") {
		t.Errorf("a circle: %v", err)
	}
}

func TestLookup_SaysWhatItIsTold(t *testing.T) {
	snap := build(t, `
tables:
  - name: other
    fields: [{name: code, type: string}]
  - name: own
    fields: [{name: code, type: string}]
    rules:
      - {name: known, lookup: {table: other, match: {code: code}, set: {}, none: error}, field: code, message: nobody knows the code}
`)
	table, _ := snap.Table("own")
	p, err := Compile(snap, table)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, table, p, &tables{}}
	r := f.row(Insert, nil, map[string]string{"code": "x"})
	f.run(r)
	if r.Err == nil || r.Err.Error() != "code: nobody knows the code" {
		t.Fatal(r.Err)
	}
}
