package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store/storetest"
)

// Result is what became of one op, reduced to what must not depend on how it was run.
type Result struct {
	Kind       string // "" for success
	Field      string // of the error; not for conflicts, where several constraints may be broken at once
	Unserviced bool
	Inserted   bool
	Changed    bool
	Rows       string
}

// ResultOf is the result of an outcome.
func ResultOf(o *record.Outcome) Result {
	r := Result{Unserviced: o.Unserviced, Inserted: o.Inserted, Changed: o.Changed}
	if o.Err != nil {
		r.Kind, r.Field = o.Err.Kind.String(), o.Err.Field
		if o.Err.Kind == record.Conflict || o.Err.Kind == record.Restricted {
			r.Field = ""
		}
	}
	if o.Rows != nil {
		var b strings.Builder
		for i := range o.Rows.Len() {
			b.WriteString(line(o.Rows.At(i)))
			b.WriteByte('\n')
		}
		r.Rows = b.String()
	}
	return r
}

func line(row []record.Value) string {
	parts := make([]string, len(row))
	for i, v := range row {
		parts[i] = v.Text()
		if v.IsNull() {
			parts[i] = "-"
		}
	}
	return strings.Join(parts, " ")
}

// Model is the tables of this package in memory, with what their rules and access lists say written out by hand. It runs
// ops one by one in the order given.
type Model struct {
	Snap *catalog.Snapshot
	Now  time.Time
	Rows map[string][]storetest.Record // by root
	ids  int
}

// NewModel is an empty model.
func NewModel(snap *catalog.Snapshot, now time.Time) *Model {
	return &Model{Snap: snap, Now: now, Rows: map[string][]storetest.Record{}}
}

// run is one unit under way.
type run struct {
	*Model
	u    *record.Unit
	errs []*record.Error
	out  []Result
	rows []storetest.Record // written or read, for Refs
	done []bool
}

// Execute runs a unit.
func (m *Model) Execute(u *record.Unit) []Result {
	r := &run{Model: m, u: u, errs: make([]*record.Error, len(u.Ops)), out: make([]Result, len(u.Ops)), rows: make([]storetest.Record, len(u.Ops)), done: make([]bool, len(u.Ops))}
	var order [][]int
	groups := map[int]int{}
	for i, op := range u.Ops {
		if g := op.Group; g != 0 {
			if at, ok := groups[g]; ok {
				order[at] = append(order[at], i)
				continue
			}
			groups[g] = len(order)
		}
		order = append(order, []int{i})
	}
	for n, atom := range order {
		before := m.copy()
		failed := -1
		for _, i := range atom {
			if err := r.op(i); err != nil {
				failed = i
				r.fail(i, err)
				break
			}
			r.done[i] = true
		}
		if failed < 0 {
			continue
		}
		m.Rows = before
		for _, i := range atom {
			if i != failed {
				r.fail(i, record.Errorf(record.Dependency, strconv.Itoa(failed), ""))
			}
		}
		if u.Ordered && u.StopOnError {
			for _, later := range order[n+1:] {
				for _, i := range later {
					r.fail(i, record.Errorf(record.Dependency, strconv.Itoa(failed), ""))
					r.out[i].Unserviced = true
				}
			}
			break
		}
	}
	return r.out
}

func (r *run) fail(i int, err *record.Error) {
	r.errs[i] = err
	r.done[i] = true
	r.out[i] = ResultOf(&record.Outcome{Err: err})
}

func (m *Model) copy() map[string][]storetest.Record {
	c := map[string][]storetest.Record{}
	for root, rows := range m.Rows {
		for _, row := range rows {
			c[root] = append(c[root], maps.Clone(row))
		}
	}
	return c
}

func (m *Model) table(name string) *catalog.Table {
	t, err := m.Snap.Table(name)
	if err != nil {
		panic(err)
	}
	return t
}

func (m *Model) find(t *catalog.Table, key record.Value) storetest.Record {
	for _, row := range m.Rows[t.Root] {
		if row[t.Key[0]] == key && m.is(t, row) {
			return row
		}
	}
	return nil
}

func (m *Model) is(t *catalog.Table, row storetest.Record) bool {
	return t.ClassField == "" || slices.Contains(t.Classes, row[t.ClassField].S)
}

// Who may do what.

func isTask(t *catalog.Table) bool { return t.Root == "task" }

func may(a *record.Actor, verb record.Verb, t *catalog.Table, row storetest.Record) bool {
	if a.Has("admin") {
		return true
	}
	itil, own := a.Has("itil"), row["owner"].S == a.Name && a.Name != ""
	state := row["state"].N
	switch {
	case isTask(t) && verb == record.Get, isTask(t) && verb == record.Insert:
		return itil || own
	case isTask(t) && verb == record.Update:
		// Comparisons with null: != holds, < does not.
		null := row["state"].IsNull()
		return itil && (null || state != 4) || own && !null && state < 3
	case isTask(t), (t.Name == "step" || t.Name == "bill" || t.Name == "line") && verb != record.Get:
		return itil
	case t.Name == "item":
		return true
	}
	return verb == record.Get
}

// never reports whether the actor may not do it to any record, so that asking is refused whatever the records are.
func never(a *record.Actor, verb record.Verb, t *catalog.Table) bool {
	if a.Has("itil") || a.Has("admin") {
		return !a.Has("admin") && verb != record.Get && (t.Name == "dept" || t.Name == "ci" || t.Name == "sys_journal_field")
	}
	switch {
	case isTask(t):
		return verb == record.Delete
	case t.Name == "item":
		return false
	}
	return verb != record.Get
}

func sees(a *record.Actor, f *catalog.Field) bool {
	return f.Type != record.TypePassword && (f.Name != "hidden" || a.Has("boss"))
}

func (r *run) guard(a *record.Actor) func(*catalog.Table) *record.Expr {
	return func(t *catalog.Table) *record.Expr {
		if a.Has("itil") || !isTask(t) {
			return nil
		}
		return record.Compare(record.Eq, record.F("owner"), record.C(record.TextValue(a.Name)))
	}
}

func (r *run) world(a *record.Actor) *storetest.World {
	return &storetest.World{Snapshot: r.Snap, Rows: r.Rows, Guard: r.guard(a)}
}

func (r *run) visible(a *record.Actor, t *catalog.Table, row storetest.Record) bool {
	return may(a, record.Get, t, row)
}

// op runs one op.
func (r *run) op(i int) *record.Error {
	op := &r.u.Ops[i]
	a := &r.u.Actors[op.Actor]
	for _, c := range op.If {
		if c.Field == "" && (r.errs[c.Op] != nil) != c.Failed {
			return record.Errorf(record.Dependency, strconv.Itoa(c.Op), "")
		}
	}
	if err := r.static(op, a); err != nil {
		return err
	}
	value := func(v record.Value) (record.Value, *record.Error) {
		if v.Form != record.Ref {
			return v, nil
		}
		if r.errs[v.N] != nil {
			return v, record.Errorf(record.Dependency, strconv.Itoa(int(v.N)), "")
		}
		return r.rows[v.N][v.S], nil
	}
	var key record.Value
	for _, k := range op.Key {
		var err *record.Error
		if key, err = value(k); err != nil {
			return err
		}
	}
	values := func(list []record.Assign) (storetest.Record, *record.Error) {
		set := storetest.Record{}
		for _, s := range list {
			v, err := value(s.Value)
			if err != nil {
				return nil, err
			}
			if v.Form == record.Text && v.S == "" {
				v = record.Value{}
			}
			set[s.Field] = v
		}
		return set, nil
	}
	set, err := values(op.Set)
	if err != nil {
		return err
	}
	fresh := set
	if op.New != nil {
		if fresh, err = values(op.New); err != nil {
			return err
		}
	}
	t := r.table(op.Table)
	switch op.Verb {
	case record.Get:
		row := r.find(t, key)
		if row == nil || !r.visible(a, t, row) {
			return record.Errorf(record.NotFound, "", "")
		}
		r.rows[i] = maps.Clone(row)
		r.out[i].Rows = r.project(a, t, row, op.Return)
		return conditions(op, row)
	case record.List:
		return r.list(i, op, a, t)
	case record.Aggregate:
		return r.count(i, op, a, t)
	case record.Insert:
		return r.insert(i, op, a, t, set)
	case record.Update:
		row := r.find(t, key)
		if row == nil || !r.visible(a, t, row) {
			return record.Errorf(record.NotFound, "", "")
		}
		return r.update(i, op, a, t, row, set)
	case record.Upsert:
		var hits []storetest.Record
		match := op.Match[0]
		for _, row := range r.Rows[t.Root] {
			if r.is(t, row) && !set[match].IsNull() && row[match] == set[match] {
				hits = append(hits, row)
			}
		}
		switch len(hits) {
		case 0:
			return r.insert(i, op, a, t, fresh)
		case 1:
			return r.update(i, op, a, t, hits[0], set)
		}
		return record.Errorf(record.Conflict, match, "")
	}
	return r.delete(i, op, a, t, key)
}

// static is what is wrong with an op whatever the records are.
func (r *run) static(op *record.Op, a *record.Actor) *record.Error {
	t := r.table(op.Table)
	if op.Verb == record.List {
		var bad *record.Error
		op.Query.Where.Walk("", func(_ string, e *record.Expr) bool {
			if e.Op == record.Field && strings.HasSuffix(e.Path, "hidden") && !a.Has("boss") {
				bad = record.Errorf(record.Forbidden, e.Path, "")
			}
			return bad == nil
		})
		return bad
	}
	if !op.Verb.Writes() {
		return nil
	}
	denied := never(a, op.Verb, t)
	if op.Verb == record.Upsert {
		denied = never(a, record.Insert, t) && never(a, record.Update, t)
	}
	if denied {
		return record.Errorf(record.Forbidden, "", "")
	}
	if op.Verb == record.Delete {
		return nil
	}
	for _, s := range slices.Concat(op.Set, op.New) {
		f := t.Field(s.Field)
		if f == nil {
			return record.Errorf(record.Invalid, s.Field, "")
		}
		if f.ReadOnly || f.Audit || f.Name == "id" && op.Verb == record.Update {
			continue
		}
		if f.Name == "hidden" && !a.Has("boss") {
			return record.Errorf(record.Forbidden, "hidden", "")
		}
		if err := fits(f, s.Value); err != nil {
			return err
		}
	}
	return nil
}

func fits(f *catalog.Field, v record.Value) *record.Error {
	bad := false
	switch v.Form {
	case record.Null, record.Ref:
	case record.Int:
		bad = f.Type != record.TypeInteger
	case record.Text:
		bad = !f.Type.Textual() && f.Type != record.TypeDecimal || f.MaxLength > 0 && utf8.RuneCountInString(v.S) > f.MaxLength
	}
	if bad {
		return record.Errorf(record.Invalid, f.Name, "")
	}
	return nil
}

func conditions(op *record.Op, row storetest.Record) *record.Error {
	for _, c := range op.If {
		if c.Field != "" && slices.Contains(c.Values, row[c.Field]) == c.Negate {
			return record.Errorf(record.Precondition, c.Field, "")
		}
	}
	return nil
}

func (r *run) project(a *record.Actor, t *catalog.Table, row storetest.Record, fields []string) string {
	if fields == nil {
		return ""
	}
	w := r.world(a)
	values := make([]record.Value, len(fields))
	for i, path := range fields {
		steps, err := r.Snap.Resolve(t, path)
		if err != nil {
			panic(err)
		}
		if !sees(a, steps[len(steps)-1].Field) {
			continue
		}
		if values[i], err = w.Get(t, row, path); err != nil {
			panic(err)
		}
	}
	return line(values) + "\n"
}

func (r *run) matching(op *record.Op, a *record.Actor, t *catalog.Table) []storetest.Record {
	w := r.world(a)
	rows, err := w.Visible(t)
	if err != nil {
		panic(err)
	}
	var list []storetest.Record
	for _, row := range rows {
		ok, err := w.Holds(t, row, op.Query.Where)
		if err != nil {
			panic(err)
		}
		if ok {
			list = append(list, row)
		}
	}
	key := t.Key[0]
	sort.Slice(list, func(i, j int) bool {
		x, y := list[i][key], list[j][key]
		return x.N < y.N || x.N == y.N && x.S < y.S
	})
	return list
}

func (r *run) list(i int, op *record.Op, a *record.Actor, t *catalog.Table) *record.Error {
	for _, row := range r.matching(op, a, t) {
		r.out[i].Rows += r.project(a, t, row, op.Return)
	}
	return nil
}

// count is the only aggregate that is asked for: COUNT(*).
func (r *run) count(i int, op *record.Op, a *record.Actor, t *catalog.Table) *record.Error {
	r.out[i].Rows = fmt.Sprintln(len(r.matching(op, a, t)))
	return nil
}

// Writing.

func (r *run) insert(i int, op *record.Op, a *record.Actor, t *catalog.Table, set storetest.Record) *record.Error {
	row := storetest.Record{}
	given := func(f *catalog.Field) bool { return !f.ReadOnly && !f.Audit }
	for name, v := range set {
		if given(t.Field(name)) {
			row[name] = v
		}
	}
	if t.Audit {
		row["sys_id"] = set["sys_id"]
		row["sys_mod_count"] = record.IntValue(0)
		row["sys_created_by"], row["sys_updated_by"] = record.TextValue(a.Name), record.TextValue(a.Name)
		row["sys_created_on"], row["sys_updated_on"] = record.TimeValue(r.Now), record.TimeValue(r.Now)
	}
	if isTask(t) {
		row["sys_class_name"] = record.TextValue(t.Name)
		if _, ok := set["state"]; !ok {
			row["state"] = record.IntValue(1)
		}
		if row["number"].IsNull() {
			row["number"] = record.TextValue("drawn")
		}
	}
	if _, ok := set["severity"]; t.Name == "incident" && !ok {
		row["severity"] = record.IntValue(3)
	}
	if t.Name == "item" && row["id"].IsNull() {
		return record.Errorf(record.Invalid, "id", "")
	}
	if t.Name == "bill" {
		r.ids++
		row["number"], row["total"] = record.TextValue(fmt.Sprintf("bill%d", r.ids)), record.IntValue(0)
	}
	if err := r.rules(a, t, nil, row); err != nil {
		return err
	}
	if t.Name == "line" && !row["bill"].IsNull() {
		if r.find(r.table("bill"), row["bill"]) == nil {
			return record.Errorf(record.Restricted, "bill", "")
		}
		row["pos"] = record.IntValue(10)
		for _, other := range r.Rows["line"] {
			if other["bill"] == row["bill"] {
				row["pos"] = record.IntValue(max(row["pos"].N, other["pos"].N+10))
			}
		}
	}
	if err := r.constraints(t, nil, row); err != nil {
		return err
	}
	r.Rows[t.Root] = append(r.Rows[t.Root], row)
	if !may(a, record.Insert, t, row) {
		return record.Errorf(record.Forbidden, "", "")
	}
	r.addUp()
	r.wrote(i, op, a, t, row, true, true)
	return nil
}

func (r *run) update(i int, op *record.Op, a *record.Actor, t *catalog.Table, old, set storetest.Record) *record.Error {
	if !may(a, record.Update, t, old) {
		return record.Errorf(record.Forbidden, "", "")
	}
	if err := conditions(op, old); err != nil {
		return err
	}
	if isTask(t) {
		t = r.table(old["sys_class_name"].S)
	}
	row := maps.Clone(old)
	for name, v := range set {
		f := t.Field(name)
		if !f.ReadOnly && !f.Audit && !(op.Verb == record.Update && name == t.Key[0]) {
			row[name] = v
		}
	}
	if err := r.rules(a, t, old, row); err != nil {
		return err
	}
	changed := len(row["note"].S) > 0 || !row["pin"].IsNull()
	if _, ok := set["pin"]; ok {
		changed = true
	}
	for _, f := range t.Fields {
		changed = changed || f.Type != record.TypeJournal && f.Type != record.TypePassword && row[f.Name] != old[f.Name]
	}
	if changed && t.Audit {
		r.stamp(a, row)
	}
	if err := r.constraints(t, old, row); err != nil {
		return err
	}
	maps.Copy(old, row)
	r.addUp()
	r.wrote(i, op, a, t, old, false, changed)
	return nil
}

func (r *run) stamp(a *record.Actor, row storetest.Record) {
	row["sys_mod_count"] = record.IntValue(row["sys_mod_count"].N + 1)
	row["sys_updated_by"], row["sys_updated_on"] = record.TextValue(a.Name), record.TimeValue(r.Now)
}

// rules is what the tables do by themselves.
func (r *run) rules(a *record.Actor, t *catalog.Table, old, row storetest.Record) *record.Error {
	if prev := r.find(r.table("step"), row["after"]); t.Name == "step" && prev != nil && !row["after"].IsNull() {
		row["text"] = prev["text"]
	}
	if bill := r.find(r.table("bill"), row["bill"]); t.Name == "line" && bill != nil && !row["bill"].IsNull() {
		row["mark"] = bill["label"]
	}
	if t.Name == "line" && !row["amount"].IsNull() && row["amount"].N >= 9 {
		return record.Errorf(record.Rejected, "amount", "")
	}
	if !isTask(t) {
		return nil
	}
	score := func() {
		row["score"] = record.Value{}
		if !row["state"].IsNull() && !row["prio"].IsNull() {
			row["score"] = record.IntValue(row["state"].N*10 + row["prio"].N)
		}
	}
	if !row["prio"].IsNull() && row["prio"].N > 5 {
		return record.Errorf(record.Rejected, "prio", "")
	}
	if old != nil && old["state"].N == 3 && row["state"] != old["state"] && row["state"] != record.IntValue(4) {
		return record.Errorf(record.Rejected, "state", "")
	}
	if d := r.find(r.table("dept"), row["dept"]); d != nil && !row["dept"].IsNull() {
		row["grp"] = d["grp"]
	}
	if t.Name == "incident" && !row["ci_name"].IsNull() && (old == nil || row["ci_name"] != old["ci_name"]) {
		r.deriveCI(a, row)
	}
	score()
	return nil
}

func (r *run) deriveCI(a *record.Actor, row storetest.Record) {
	for _, ci := range r.Rows["ci"] {
		if ci["name"] != row["ci_name"] {
			continue
		}
		state := "ignored"
		if ci["seen"] != row["title"] {
			state, ci["seen"] = "updated", row["title"]
			r.stamp(a, ci)
		}
		row["ci"], row["ci_state"] = ci["sys_id"], record.TextValue(state)
		return
	}
	r.ids++
	ci := storetest.Record{
		"sys_id": record.TextValue(fmt.Sprintf("ci%d", r.ids)), "name": row["ci_name"], "seen": row["title"], "number": record.TextValue("drawn"),
		"sys_mod_count": record.IntValue(0), "sys_created_by": record.TextValue(a.Name),
	}
	r.stamp(a, ci)
	ci["sys_mod_count"] = record.IntValue(0)
	r.Rows["ci"] = append(r.Rows["ci"], ci)
	row["ci"], row["ci_state"] = ci["sys_id"], record.TextValue("inserted")
}

// addUp makes the totals of all bills.
func (r *run) addUp() {
	for _, bill := range r.Rows["bill"] {
		var sum int64
		for _, l := range r.Rows["line"] {
			if l["bill"] == bill["number"] {
				sum += l["amount"].N
			}
		}
		bill["total"] = record.IntValue(sum)
	}
}

// constraints is what must hold of a record, journal entries included.
func (r *run) constraints(t *catalog.Table, old, row storetest.Record) *record.Error {
	if isTask(t) && row["title"].IsNull() {
		return record.Errorf(record.Invalid, "title", "")
	}
	unique := []string{t.Key[0]}
	for _, u := range t.Uniques {
		if len(u) == 1 {
			unique = append(unique, u[0])
		}
	}
	for _, name := range unique {
		for _, other := range r.Rows[t.Root] {
			if !row[name].IsNull() && other[name] == row[name] && (old == nil || other[t.Key[0]] != old[t.Key[0]]) {
				return record.Errorf(record.Conflict, name, "")
			}
		}
	}
	for _, other := range r.Rows["line"] {
		if t.Name == "line" && !row["bill"].IsNull() && other["bill"] == row["bill"] && !row["pos"].IsNull() && other["pos"] == row["pos"] && (old == nil || other["sys_id"] != old["sys_id"]) {
			return record.Errorf(record.Conflict, "", "")
		}
	}
	if t.Name == "item" && !row["dept"].IsNull() && r.find(r.table("dept"), row["dept"]) == nil {
		return record.Errorf(record.Restricted, "", "")
	}
	return nil
}

func (r *run) wrote(i int, op *record.Op, a *record.Actor, t *catalog.Table, row storetest.Record, inserted, changed bool) {
	if v := row["note"]; !v.IsNull() && isTask(t) {
		r.Rows["sys_journal_field"] = append(r.Rows["sys_journal_field"], storetest.Record{
			"name": record.TextValue(t.Name), "element": record.TextValue("note"), "element_id": row["sys_id"], "value": v,
			"sys_created_by": record.TextValue(a.Name),
		})
	}
	delete(row, "note")
	delete(row, "pin")
	r.out[i].Inserted, r.out[i].Changed = inserted, changed
	r.rows[i] = maps.Clone(row)
	if r.visible(a, t, row) {
		r.out[i].Rows = r.project(a, t, row, op.Return)
	}
}

func (r *run) delete(i int, op *record.Op, a *record.Actor, t *catalog.Table, key record.Value) *record.Error {
	row := r.find(t, key)
	switch {
	case row == nil || !r.visible(a, t, row):
		return record.Errorf(record.NotFound, "", "")
	case !may(a, record.Delete, t, row):
		return record.Errorf(record.Forbidden, "", "")
	}
	if err := conditions(op, row); err != nil {
		return err
	}
	if isTask(t) {
		if row["state"] == record.IntValue(4) {
			return record.Errorf(record.Rejected, "state", "")
		}
		for _, s := range r.Rows["step"] {
			if s["blocker"] == key {
				return record.Errorf(record.Restricted, "", "")
			}
		}
		r.Rows["step"] = slices.DeleteFunc(r.Rows["step"], func(s storetest.Record) bool { return s["task"] == key })
	}
	if t.Name == "dept" {
		for _, item := range r.Rows["item"] {
			if item["dept"] == key {
				return record.Errorf(record.Restricted, "", "")
			}
		}
		for _, task := range r.Rows["task"] {
			if task["dept"] == key {
				task["dept"] = record.Value{}
				r.stamp(a, task)
			}
		}
	}
	if t.Name == "bill" {
		r.Rows["line"] = slices.DeleteFunc(r.Rows["line"], func(l storetest.Record) bool { return l["bill"] == key })
	}
	if op.Return != nil {
		r.out[i].Rows = r.project(a, t, row, op.Return)
	}
	r.rows[i] = maps.Clone(row)
	r.Rows[t.Root] = slices.DeleteFunc(r.Rows[t.Root], func(o storetest.Record) bool { return o[t.Key[0]] == key })
	r.out[i].Changed = true
	r.addUp()
	return nil
}

// Shown are the fields of each table that two worlds must agree on. Drawn keys and numbers are left out.
var Shown = map[string][]string{
	"dept":              {"sys_id", "name", "grp", "sys_mod_count", "sys_updated_by"},
	"ci":                {"name", "seen", "sys_mod_count", "sys_created_by", "sys_updated_by"},
	"task":              {"sys_id", "sys_class_name", "title", "state", "prio", "dept", "owner", "code", "grp", "score", "hidden", "note", "sys_mod_count", "sys_created_by", "sys_updated_by"},
	"incident":          {"sys_id", "severity", "ci_name", "ci.name", "ci_state"},
	"step":              {"sys_id", "task", "blocker", "after", "text", "sys_mod_count"},
	"item":              {"id", "amount", "dept"},
	"bill":              {"label", "total"},
	"line":              {"sys_id", "bill.label", "bill.total", "pos", "amount", "mark", "sys_mod_count"},
	"sys_journal_field": {"name", "element", "element_id", "value", "sys_created_by"},
}

// Dump is the state of a table: its records, sorted, one on a line.
func (m *Model) Dump(table string) string {
	t := m.table(table)
	w := &storetest.World{Snapshot: m.Snap, Rows: m.Rows}
	rows, err := w.Visible(t)
	if err != nil {
		panic(err)
	}
	lines := make([]string, 0, len(rows))
	for _, row := range rows {
		values := make([]record.Value, 0, 16)
		for _, path := range Shown[table] {
			v, err := w.Get(t, row, path)
			if err != nil {
				panic(err)
			}
			values = append(values, v)
		}
		lines = append(lines, line(values))
	}
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
