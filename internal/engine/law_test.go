package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
	"weir/internal/store"
)

// The first law: fusion is unobservable but for time. Random units run fused, one op at a time, and in a model in memory
// that shares no code with the engine; results, errors and what is stored must agree, unit after unit.

// unitsPerCheck times rapid's number of checks is how many units are compared on each store.
const unitsPerCheck = 20

var actors = []record.Actor{enginetest.Admin, enginetest.Agent, enginetest.Beth, enginetest.Boss}

func TestLaw_FusionIsUnobservable(t *testing.T) {
	off := false
	for name, open := range openers(t) {
		t.Run(name, func(t *testing.T) {
			fused := newBench(t, open(t), engine.Options{Coalesce: &off, Splits: 3}) // few splits, so that running one by one after them happens too
			fused.split()
			apart := newBench(t, open(t), engine.Options{Coalesce: &off, Fuse: &off})
			seen := counts{}
			rapid.Check(t, func(rt *rapid.T) {
				fused.wipe(rt)
				apart.wipe(rt)
				model := enginetest.NewModel(fused.snap, clock)
				g := &generator{rt: rt, drawn: 100}
				for i := range unitsPerCheck {
					u := g.unit()
					switch {
					case i%6 == 0:
						u = furnish()
					case i == 1 || i == 7:
						u = g.moves()
					case i == 2 || i == 8:
						u = g.chain()
					case i == 3 || i == 9 || i == 15:
						u = g.deep()
					}
					want := model.Execute(u)
					seen.unit(u, want)
					compare(rt, "one by one", apart, model, u, want)
					compare(rt, "fused", fused, model, u, want)
				}
			})
			if !t.Failed() {
				seen.enough(t)
			}
		})
	}
}

func compare(rt *rapid.T, how string, b *bench, model *enginetest.Model, u *record.Unit, want []enginetest.Result) {
	out := b.x.Execute(context.Background(), b.snap, u)
	got := make([]enginetest.Result, len(out))
	for i := range out {
		got[i] = enginetest.ResultOf(&out[i])
	}
	if d := cmp.Diff(want, got); d != "" {
		rt.Fatalf("%s: results differ from the model (-model +engine):\n%s\nunit:\n%s\nerrors:\n%s", how, d, describe(u), errs(out))
	}
	for table := range enginetest.Shown {
		if d := cmp.Diff(model.Dump(table), b.dump(rt, table)); d != "" {
			rt.Fatalf("%s: table %s differs from the model (-model +engine):\n%s\nunit:\n%s", how, table, d, describe(u))
		}
	}
}

// fataler is a test, rapid's or the standard one.
type fataler interface{ Fatal(args ...any) }

// dump is the state of a table as Model.Dump writes it.
func (b *bench) dump(rt *rapid.T, table string) string {
	rows := b.all(rt, table, enginetest.Shown[table])
	var lines []string
	for i := range rows.Len() {
		row := rows.At(i)
		parts := make([]string, len(row))
		for j, v := range row {
			parts[j] = v.Text()
			if v.IsNull() {
				parts[j] = "-"
			}
		}
		lines = append(lines, strings.Join(parts, " "))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

func (b *bench) all(rt fataler, table string, fields []string) *record.Rows {
	t, err := b.snap.Table(table)
	if err != nil {
		rt.Fatal(err)
	}
	res, err := b.s.Query(context.Background(), &store.Read{Snapshot: b.snap, Table: t, Fields: fields})
	if err != nil {
		rt.Fatal(err)
	}
	if err := res.Materialise(0); err != nil {
		rt.Fatal(err)
	}
	return res.Rows
}

// wipe empties all tables.
func (b *bench) wipe(rt fataler) {
	ctx := context.Background()
	tx, err := b.s.Begin(ctx)
	if err != nil {
		rt.Fatal(err)
	}
	defer tx.Rollback()
	for _, name := range []string{"sys_journal_field", "item", "step", "task", "ci", "dept", "line", "bill"} {
		t, _ := b.snap.Table(name)
		rows := b.all(rt, name, t.Key)
		s := &store.DeleteSet{Table: t}
		for i := range rows.Len() {
			s.Keys = append(s.Keys, rows.At(i))
		}
		if len(s.Keys) == 0 {
			continue
		}
		if _, err := tx.Delete(ctx, s); err != nil {
			rt.Fatal(err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		rt.Fatal(err)
	}
}

func describe(u *record.Unit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "ordered=%t stop=%t\n", u.Ordered, u.StopOnError)
	for i, op := range u.Ops {
		fmt.Fprintf(&b, "%2d %s %s", i, op.Verb, op.Table)
		for _, k := range op.Key {
			fmt.Fprintf(&b, " key=%s", strings.TrimLeft(k.Text(), "0"))
		}
		for _, a := range op.Set {
			fmt.Fprintf(&b, " %s=%q", a.Field, strings.TrimLeft(a.Value.Text(), "0"))
		}
		if op.Match != nil {
			fmt.Fprintf(&b, " match=%v", op.Match)
		}
		for _, c := range op.If {
			fmt.Fprintf(&b, " if(%d failed=%t %s %v not=%t)", c.Op, c.Failed, c.Field, c.Values, c.Negate)
		}
		if op.Query != nil && op.Query.Where != nil {
			fmt.Fprintf(&b, " where=%s", op.Query.Where.Args[0].Path)
		}
		fmt.Fprintf(&b, " return=%v group=%d as=%s\n", op.Return, op.Group, u.Actors[op.Actor].Name)
	}
	return b.String()
}

// generator draws units over few records and few values, so that ops meet.
type generator struct {
	rt    *rapid.T
	drawn int
	u     *record.Unit
}

// n is a number below limit, all equally likely: rapid's own ranges prefer small ones.
func (g *generator) n(limit int) int {
	return int(rapid.SampledFrom(numbers[:limit]).Draw(g.rt, "n"))
}

var numbers = func() (list [64]uint8) {
	for i := range list {
		list[i] = uint8(i)
	}
	return list
}()

func pick[T any](g *generator, list ...T) T { return list[g.n(len(list))] }

func (g *generator) unit() *record.Unit {
	g.u = &record.Unit{Actors: actors}
	switch g.n(4) {
	case 0:
		g.u.Ordered = true
	case 1:
		g.u.Ordered, g.u.StopOnError = true, true
	}
	verbs, tables := g.theme()
	group, left := 0, 0
	most := pick(g, 4, 8, 12, 40)
	for range 1 + g.n(most) {
		if left == 0 && g.n(5) == 0 {
			group++
			left = 2 + g.n(3)
		}
		op := g.op(pick(g, verbs...), pick(g, tables...))
		if left > 0 {
			op.Group = group
			left--
		}
		g.u.Ops = append(g.u.Ops, op)
	}
	return g.u
}

// moves is a unit in which unique values move between records: one large set, in which the order matters.
func (g *generator) moves() *record.Unit {
	u := &record.Unit{Actors: actors}
	for _, n := range rapid.Permutation([]int{20, 21, 22, 23, 24, 25}).Draw(g.rt, "order")[:2+g.n(5)] {
		op := update("task", id(n), "code", fmt.Sprintf("c%d", g.n(4)))
		if g.n(3) == 0 {
			op.Set = set("code", "", "prio", g.n(7))
		}
		u.Ops = append(u.Ops, op)
	}
	return u
}

// chain is a unit of steps whose rule reads the other steps: each sees what the ones before it wrote.
func (g *generator) chain() *record.Unit {
	u := &record.Unit{Actors: actors}
	for _, n := range rapid.Permutation([]int{30, 31, 32}).Draw(g.rt, "order") {
		op := update("step", id(n), "text", fmt.Sprintf("s%d", g.n(9)), "after", "")
		if g.n(3) > 0 {
			op.Set = set("after", id(30+g.n(3)))
		}
		u.Ops = append(u.Ops, op)
	}
	return u
}

// deep is a unit of deep inserts: departments with items, tasks and their steps, which refer to ops before them. Between them some other
// op meets the same tables, and some of the groups fail.
func (g *generator) deep() *record.Unit {
	g.u = &record.Unit{Actors: actors, Ordered: g.n(3) == 0}
	add := func(op record.Op, group int, field string, parent int) int {
		op.Group, op.If = group, nil
		if field != "" {
			op.Set = slices.DeleteFunc(op.Set, func(a record.Assign) bool { return a.Field == field })
			op.Set = append(op.Set, set(field, record.RefTo(parent, "sys_id"))...)
		}
		g.u.Ops = append(g.u.Ops, op)
		return len(g.u.Ops) - 1
	}
	child := func(table string) record.Op {
		op := g.op(record.Insert, table)
		if g.n(4) > 0 {
			op.Actor = 0
		}
		switch {
		case table == "item" && g.n(4) > 0:
			g.drawn++
			op.Set = append(slices.DeleteFunc(op.Set, func(a record.Assign) bool { return a.Field == "id" }), set("id", 100+g.drawn)...)
		case table == "item" || table == "dept":
		case g.n(3) > 0: // with a key of its own, so that more of the groups succeed
			g.drawn++
			op.Set = append(slices.DeleteFunc(op.Set, func(a record.Assign) bool { return a.Field == "sys_id" }), set("sys_id", id(keys[table]*1000+g.drawn))...)
		}
		return op
	}
	for group := 1; group <= 2+g.n(4); group++ {
		g.drawn++
		parent := add(record.Op{Verb: record.Insert, Table: "dept", Set: set("sys_id", id(10*1000+g.drawn), "name", fmt.Sprintf("deep%d", g.n(12)), "grp", "g1")}, group, "", 0)
		for range g.n(4) {
			switch g.n(4) {
			case 0:
				task := add(child(pick(g, "task", "incident")), group, "dept", parent)
				for range g.n(3) {
					add(child("step"), group, "task", task)
				}
			default:
				add(child("item"), group, "dept", parent)
			}
		}
		switch g.n(6) {
		case 3:
			name := fmt.Sprintf("deep%d", g.n(20))
			g.drawn++
			key := id(10*1000 + g.drawn)
			op := record.Op{Verb: record.Upsert, Table: "dept", Match: []string{"name"}, Set: set("name", name, "grp", "old"), New: set("sys_id", key, "name", name, "grp", "new")}
			if g.n(2) == 0 {
				op.Set, op.New[2] = op.Set[:1], set("grp", record.RefTo(parent, "name"))[0]
			}
			add(op, pick(g, 0, group), "", 0)
		case 0:
			op := update("dept", "", "name", fmt.Sprintf("deep%d", g.n(12)), "grp", fmt.Sprintf("g%d", g.n(3)))
			op.Key = []record.Value{record.RefTo(parent, "sys_id")}
			add(op, pick(g, 0, group), "", 0)
		case 1:
			add(record.Op{Verb: record.Delete, Table: "dept", Key: []record.Value{record.RefTo(parent, "sys_id")}}, 0, "", 0)
		case 2:
			add(record.Op{Verb: record.Get, Table: "dept", Key: []record.Value{record.RefTo(parent, "sys_id")}, Return: []string{"name"}}, 0, "", 0)
		}
	}
	return g.u
}

// furnish is a unit that makes records which later units find.
func furnish() *record.Unit {
	task := func(n, state int, pairs ...any) record.Op {
		return insert("task", id(20+n), append([]any{"title", "t", "state", state}, pairs...)...)
	}
	incident := insert("incident", id(22), "title", "i", "owner", "beth", "ci_name", "ci1", "code", "c1")
	return &record.Unit{Actors: actors, Ops: []record.Op{
		insert("dept", id(10), "name", "d1", "grp", "g1"), insert("dept", id(11), "name", "d2"), insert("dept", id(12), "name", "d3"),
		task(0, 3, "dept", id(10), "code", "c0", "owner", "beth"), task(1, 4, "owner", "beth"), incident, task(3, 2, "dept", id(11), "hidden", "h1"), task(4, 3),
		insert("step", id(30), "task", id(20), "blocker", id(23)), insert("step", id(31), "task", id(22), "blocker", id(24)), insert("step", id(32), "blocker", id(23)),
		{Verb: record.Insert, Table: "item", Set: set("id", 1, "dept", id(12))},
		insert("bill", "", "label", "f"), insert("line", id(40), "bill", record.RefTo(12, "number"), "amount", 3), insert("line", id(41), "bill", record.RefTo(12, "number"), "amount", 4),
	}}
}

// theme narrows a unit, so that sets grow large often enough.
func (g *generator) theme() ([]record.Verb, []string) {
	writes := []record.Verb{record.Insert, record.Update, record.Update, record.Upsert, record.Delete}
	all := append(writes, record.Insert, record.Insert, record.Get, record.List, record.Aggregate)
	tables := []string{"task", "incident", "dept", "step", "item", "bill", "line"}
	switch g.n(10) {
	case 0:
		return []record.Verb{record.Insert}, []string{pick(g, tables...)}
	case 1:
		return []record.Verb{record.Update}, []string{"task", "incident"}
	case 2:
		return writes, []string{pick(g, tables...)}
	case 3:
		return []record.Verb{record.Delete, record.Insert}, []string{"task", "step", "dept"}
	case 4:
		return []record.Verb{record.Get, record.List, record.List, record.Update}, []string{"task", "incident", "step"}
	case 5:
		return []record.Verb{record.Insert}, []string{"bill", "line", "line", "line"}
	case 6:
		return append(writes, record.Insert, record.Insert, record.Get), []string{"bill", "line", "line"}
	}
	return all, tables
}

// keys are the records of a table.
var keys = map[string]int{"dept": 10, "task": 20, "incident": 20, "step": 30, "line": 40}

func (g *generator) key(table string) record.Value {
	switch table {
	case "item":
		return record.IntValue(int64(1 + g.n(4)))
	case "bill":
		return text("none") // its keys are drawn: only a Ref can name one
	}
	return text(id(keys[table] + g.n(6)))
}

// keyOrRef is the key of a record, or sometimes that of an earlier op's record in the table.
func (g *generator) keyOrRef(table string) record.Value {
	key, odds := "sys_id", 4
	if table == "bill" {
		key, odds = "number", 1
	}
	if g.n(odds) == 0 {
		for i := len(g.u.Ops) - 1; i >= 0; i-- {
			op := &g.u.Ops[i]
			if op.Table == table && op.Verb != record.List && op.Verb != record.Aggregate && table != "item" && g.n(2) == 0 {
				return record.RefTo(i, key)
			}
		}
	}
	return g.key(table)
}

func (g *generator) op(verb record.Verb, table string) record.Op {
	op := record.Op{Verb: verb, Table: table}
	if op.Actor = 0; g.n(2) == 0 {
		op.Actor = g.n(len(actors))
	}
	if len(g.u.Ops) > 0 && g.n(8) == 0 {
		op.If = append(op.If, record.Condition{Op: g.n(len(g.u.Ops)), Failed: g.n(3) == 0})
	}
	switch verb {
	case record.List, record.Aggregate:
		if table == "bill" {
			op.Verb = record.Aggregate // in the order of their keys they come in no order that a model knows
		}
		g.query(&op)
		return op
	case record.Get:
		op.Key = []record.Value{g.keyOrRef(table)}
		op.Return = g.fields(table)
		return op
	case record.Update, record.Delete:
		op.Key = []record.Value{g.keyOrRef(table)}
		if table != "item" && table != "bill" && g.n(5) == 0 {
			op.If = append(op.If, record.Condition{
				Field: "sys_mod_count", Values: []record.Value{record.IntValue(int64(g.n(2)))}, Negate: g.n(4) == 0,
			})
		}
	case record.Upsert:
		if table != "dept" && table != "task" && table != "incident" {
			op.Verb = record.Insert
		}
	}
	if g.n(2) == 0 {
		op.Return = g.fields(table)
	}
	if verb != record.Delete {
		g.values(&op)
	}
	if op.Verb == record.Upsert && g.n(4) > 0 {
		op.New = slices.Clone(op.Set)
		switch other := (record.Op{Verb: record.Upsert, Table: table}); g.n(3) {
		case 0:
			g.values(&other)
			op.New = other.Set
		case 1:
			op.New = op.New[:len(op.New)-g.n(len(op.New))]
		}
	}
	return op
}

func (g *generator) fields(table string) []string {
	switch table {
	case "dept":
		return []string{"name", "grp"}
	case "task":
		return pick(g, []string{"title", "state", "hidden", "score"}, []string{"title", "dept.name", "sys_mod_count"}, []string{"grp", "pin"})
	case "incident":
		return pick(g, []string{"title", "severity", "ci.name"}, []string{"ci_state", "dept.grp", "hidden"})
	case "step":
		return pick(g, []string{"text"}, []string{"text", "task.title", "blocker.hidden"})
	case "bill":
		return []string{"label", "total"}
	case "line":
		return pick(g, []string{"pos", "mark"}, []string{"amount", "bill.label", "bill.total"})
	}
	return []string{"id", "amount", "dept.name"}
}

func (g *generator) query(op *record.Op) {
	q := &record.Query{Limit: -1}
	op.Query = q
	if op.Verb == record.Aggregate {
		q.Aggs = []record.Agg{{Func: record.Count}}
		return
	}
	op.Return = g.fields(op.Table)
	key := "sys_id"
	if op.Table == "item" {
		key = "id"
	}
	q.Sort = []record.Sort{{Path: key}}
	where := map[string][]*record.Expr{
		"task": {
			record.Compare(record.Ge, record.F("state"), record.C(record.IntValue(2))), record.Compare(record.Eq, record.F("dept.name"), record.C(text("d1"))),
			record.Compare(record.Eq, record.F("hidden"), record.C(text("h1"))),
		},
		"step": {record.Compare(record.Ne, record.F("task.owner"), record.C(text("beth"))), record.Compare(record.Eq, record.F("task.hidden"), record.C(text("h1")))},
	}
	where["incident"] = where["task"]
	if list := where[op.Table]; list != nil && g.n(2) == 0 {
		q.Where = pick(g, list...)
		if op.Actor == 0 && g.n(2) == 0 {
			op.Actor = g.n(len(actors)) // what not all may ask for
		}
	}
}

func (g *generator) values(op *record.Op) {
	create := op.Verb != record.Update
	add := func(field string, v any, odds int) {
		if g.n(odds) == 0 {
			op.Set = append(op.Set, set(field, v)...)
		}
	}
	always := func(field string, v any) { add(field, v, 1) }
	if g.n(40) == 0 {
		always("no_such_field", "x")
	}
	if create && op.Table != "item" && op.Table != "bill" {
		// Few keys, so that some exist already; for what matters only once, fresh ones.
		if g.n(3) == 0 {
			always("sys_id", g.key(op.Table))
		} else {
			g.drawn++
			always("sys_id", text(id(keys[op.Table]*1000+g.drawn)))
			if g.n(2) == 0 {
				op.Set[len(op.Set)-1].Value = g.key(op.Table)
			}
		}
	}
	switch op.Table {
	case "dept":
		if create || g.n(3) == 0 {
			always("name", fmt.Sprintf("d%d", g.n(8)))
		}
		add("grp", fmt.Sprintf("g%d", g.n(3)), 2)
		if op.Verb == record.Upsert {
			op.Match = []string{"name"}
		}
	case "task", "incident":
		if create || g.n(3) == 0 {
			always("title", pick(g, "t1", "t2", "t3", "t4", "", "longer than twenty characters"[:15+g.n(8)]))
		}
		add("state", pick(g, 1, 2, 3, 4, 4), 3)
		add("prio", g.n(7), 3)
		if g.n(3) == 0 {
			always("dept", g.keyOrRef("dept"))
		}
		if g.n(2) == 0 {
			always("owner", pick(g, "beth", "agent", ""))
		}
		if op.Verb == record.Upsert || g.n(4) == 0 {
			always("code", fmt.Sprintf("c%d", g.n(4)))
		}
		add("hidden", fmt.Sprintf("h%d", g.n(2)), 6)
		add("note", fmt.Sprintf("n%d", g.n(3)), 6)
		add("pin", fmt.Sprintf("%d", g.n(3)), 8)
		add("score", 7, 8) // read-only: ignored
		if op.Verb == record.Upsert {
			op.Match = []string{"code"}
		}
		if op.Table == "incident" {
			add("severity", g.n(4), 3)
			add("ci_name", fmt.Sprintf("ci%d", g.n(3)), 2)
		}
	case "step":
		add("task", g.keyOrRef("task"), 2)
		if g.n(2) == 0 {
			always("blocker", g.keyOrRef("task"))
		}
		if g.n(2) == 0 {
			always("after", g.keyOrRef("step"))
		}
		always("text", fmt.Sprintf("s%d", g.n(3)))
	case "bill":
		always("label", fmt.Sprintf("l%d", g.n(4)))
		add("total", 99, 4) // read-only: ignored
	case "line":
		if create || g.n(3) == 0 {
			always("bill", pick(g, g.keyOrRef("bill"), g.keyOrRef("bill"), text("")))
		}
		always("amount", g.n(10))
	case "item":
		if create {
			always("id", g.key("item"))
		}
		add("amount", fmt.Sprintf("%d.50", g.n(3)), 2)
		if g.n(2) == 0 {
			always("dept", g.keyOrRef("dept"))
		}
	}
}

// counts says how often something that matters was drawn, so that the test cannot quietly stop testing it.
type counts map[string]int

func (c counts) unit(u *record.Unit, results []enginetest.Result) {
	c["units"]++
	failed := false
	for i, r := range results {
		op := &u.Ops[i]
		outcome := "ok"
		if r.Kind != "" {
			failed, outcome = true, r.Kind
		}
		c[op.Verb.String()+" "+outcome]++
		c[op.Table]++
		if op.Group != 0 {
			c["grouped "+outcome]++
		}
		if op.Actor == 2 {
			c["limited "+outcome]++
		}
		for _, cond := range op.If {
			c["condition on "+map[bool]string{true: "op", false: "record"}[cond.Field == ""]+" "+outcome]++
		}
		refs := false
		for _, v := range op.Key {
			refs = refs || v.Form == record.Ref
		}
		for _, a := range op.Set {
			refs = refs || a.Value.Form == record.Ref
		}
		if refs {
			c["ref "+outcome]++
		}
		if op.New != nil && r.Inserted {
			c["upsert new"]++
		}
		if op.Group != 0 && refs && op.Verb == record.Insert {
			c["nested "+outcome]++
		}
	}
	if failed {
		c["units with failures"]++
	}
	if u.StopOnError {
		c["stopping units"]++
	}
}

func (c counts) enough(t *testing.T) {
	t.Helper()
	units := c["units"]
	if 10*c["units with failures"] < 3*units {
		t.Errorf("%d of %d units had failures: less than 30 %%", c["units with failures"], units)
	}
	var seldom []string
	for _, what := range []string{
		"get ok", "get not found", "list ok", "list forbidden", "aggregate ok", "insert ok", "insert conflict", "insert restricted", "insert invalid",
		"insert rejected", "insert forbidden", "update ok", "update not found", "update conflict", "update rejected", "update precondition",
		"update forbidden", "upsert ok", "upsert conflict", "delete ok", "delete not found", "delete restricted", "delete rejected",
		"delete precondition", "grouped ok", "grouped dependency", "limited ok", "limited forbidden", "limited not found",
		"condition on op ok", "condition on op dependency", "bill", "line", "condition on record ok", "ref ok", "ref dependency", "incident", "stopping units",
		"upsert new", "nested ok", "nested dependency", "nested conflict",
	} {
		if c[what] < units/500 {
			seldom = append(seldom, fmt.Sprintf("%q %d times", what, c[what]))
		}
	}
	// Chance leaves out one or another of so many; more than that says that the generator has forgotten something.
	if len(seldom) > 3 {
		t.Errorf("in %d units were drawn too seldom: %s", units, strings.Join(seldom, ", "))
	}
}
