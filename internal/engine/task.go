package engine

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"weir/internal/catalog"
	"weir/internal/record"
)

// task is one op on its way through the engine.
type task struct {
	i      int // index in the unit; -1 for a record that a rule derives
	op     *record.Op
	t      *catalog.Table
	info   *tableInfo
	who    *who
	atom   *atom
	parent *task // the task whose rule derived this one
	depth  int
	err    *record.Error // what is wrong with the op whatever the records are

	foot footprint
	deps []int  // ops whose outcome this one needs
	id   string // of the record at hand, so that a set holds it once; "" when nothing is known
	refs bool   // some value is a Ref

	ret *project // of op.Return; empty without one

	// Worked out when the task runs.
	key     []record.Value
	set     []assign
	fresh   []assign           // upsert: what a new record gets instead of set; nil: the same
	final   []assign           // set with Refs resolved
	added   []assign           // fresh with Refs resolved
	ifs     []record.Condition // op.If with Refs resolved
	asked   *record.Query      // op.Query with Refs resolved
	newID   string
	numbers []int64 // by info.numbered; 0: none drawn
	out     *record.Outcome
	dirty   bool           // something was written for it
	done    bool           // it has its outcome
	row     []record.Value // by field index of rowOf, for Refs
	rowOf   *catalog.Table
	stored  bool // its outcome comes from an idempotency token
	lost    bool // it may or may not be committed: its numbers are not used again
}

type assign struct {
	f *catalog.Field
	v record.Value
}

// atom is what succeeds or fails alone.
type atom struct {
	pos    int // in the unit, from 1
	tasks  []*task
	begun  bool
	guilty *task // of a group, the op that failed
}

// project says how the paths asked for come out of what is read.
type project struct {
	fields []string      // as asked
	types  []record.Type // of fields
	src    []string      // what is read
	col    []int         // by fields: column of src, -1 for what the actor may not see
	index  []int         // by fields: field index, -1 for a path that walks
	walks  []walk        // the paths that walk, by the references that they begin with
	simple bool          // no path walks
	masked bool          // some column is hidden
	open   bool          // nobody may see more or less of it
	keyed  []string      // the key's fields, then src: what a read by key reads
}

// walk is paths that go through one reference of a record.
type walk struct {
	field *catalog.Field // the reference
	table *catalog.Table // that it refers to
	paths []string       // from there on
	to    []int          // by paths: where the value goes
}

// nothing is what an op without Return reads.
var nothing project

// prepare finds everything that is wrong or known about an op without looking at records.
func (x *unit) prepare(t *task, op *record.Op) {
	t.op, t.ret = op, &nothing
	if op.Actor < 0 || op.Actor >= len(x.who) {
		t.err = record.Errorf(record.Invalid, "", "op %d: there is no actor %d", t.i, op.Actor)
		return
	}
	t.who = x.who[op.Actor]
	for _, c := range op.If {
		if c.Field == "" {
			x.dependsOn(t, int64(c.Op))
		}
	}
	if op.Verb == record.Invoke {
		switch {
		case op.Invoke == nil:
			t.fault(record.Errorf(record.Invalid, "", "an invocation names no endpoint"))
		case op.Group != 0:
			t.fault(record.Errorf(record.Invalid, "", "an invocation cannot be part of a group"))
		case op.Invoke.SQL != nil:
			if x.e.opt.SQL == nil {
				t.fault(record.Errorf(record.NoPath, "", "SQL endpoints are not available here"))
			}
		case x.e.opt.Invoker == nil:
			t.fault(record.Errorf(record.NoPath, "", "scripted endpoints are not available here"))
		}
		return
	}
	if op.Verb == record.Load {
		t.fault(record.Errorf(record.Invalid, "", "a load is the only operation of its unit"))
		return
	}
	if op.Verb > record.Load {
		t.fault(record.Errorf(record.Invalid, "", "unknown verb %d", op.Verb))
		return
	}
	table, err := x.snap.Table(op.Table)
	if err != nil {
		t.fault(record.AsError(err))
		return
	}
	t.t, t.info = table, x.m.table(table)
	switch op.Verb {
	case record.Get:
		x.prepareReturn(t)
		x.prepareKey(t)
		if isNever(t.who.guard(table)) {
			t.fault(forbidden(op.Verb, table))
		}
		x.footRead(t)
	case record.List, record.Aggregate:
		x.prepareQuery(t)
	default:
		x.prepareWrite(t)
	}
}

func (t *task) fault(err *record.Error) {
	if t.err == nil {
		t.err = err
	}
}

func (x *unit) dependsOn(t *task, op int64) {
	if op < 0 || op >= int64(len(x.u.Ops)) || op == int64(t.i) {
		t.fault(record.Errorf(record.Invalid, "", "op %d refers to op %d, which does not exist", t.i, op))
		return
	}
	t.deps = append(t.deps, int(op))
}

// ref notes that v is a Ref, and what it asks of its op.
func (x *unit) ref(t *task, v *record.Value) bool {
	if v.Form != record.Ref {
		return false
	}
	t.refs = true
	x.dependsOn(t, v.N)
	if x.wants == nil {
		x.wants = map[int][]string{}
	}
	// The children of a deep insert, thousands of them, ask their parent for the same.
	if list := x.wants[int(v.N)]; len(list) == 0 || list[len(list)-1] != v.S {
		x.wants[int(v.N)] = append(list, v.S)
	}
	return true
}

func (x *unit) prepareKey(t *task) {
	fields := t.t.KeyFields()
	if len(fields) == 0 || len(t.op.Key) != len(fields) {
		t.fault(record.Errorf(record.Invalid, "", "a key of table %s has %d fields, not %d", t.t.Name, len(fields), len(t.op.Key)))
		return
	}
	known := true
	for i := range fields {
		v := &t.op.Key[i]
		if x.ref(t, v) {
			known = false
			continue
		}
		if err := checkForm(fields[i], *v); err != nil {
			t.fault(err)
			return
		}
	}
	if known {
		t.key = t.op.Key
		t.id = keyID(t.op.Key)
	}
}

func (x *unit) prepareReturn(t *task) {
	if t.op.Return == nil {
		return
	}
	p, err := t.who.projectOf(t.t, t.op.Return)
	if err != nil {
		t.fault(err)
		return
	}
	t.ret = p
}

// projectKey finds a project again: dialects ask with the same list of paths for every request of a kind.
type projectKey struct {
	t     *catalog.Table
	first *string
	n     int
	all   bool
}

// maxProjects bounds the projects that a model keeps; who asks for more kinds makes them up.
const maxProjects = 500

// projectOf is project, remembered where it is the same for everybody, or for everybody who may see all.
func (w *who) projectOf(t *catalog.Table, paths []string) (*project, *record.Error) {
	if len(paths) == 0 {
		return w.project(t, paths)
	}
	k := projectKey{t, &paths[0], len(paths), w.all}
	w.m.mu.RLock()
	p := w.m.projects[k]
	w.m.mu.RUnlock()
	if p != nil && slices.Equal(p.fields, paths) {
		return p, nil
	}
	p, err := w.project(t, paths)
	if err != nil || !w.all && !p.open {
		return p, err
	}
	kept := *p
	kept.fields = slices.Clone(paths) // whoever changes the list later is noticed
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.m.projects == nil || len(w.m.projects) >= maxProjects {
		w.m.projects = map[projectKey]*project{}
	}
	w.m.projects[k] = &kept
	return p, nil
}

// project resolves the paths asked for.
func (w *who) project(t *catalog.Table, paths []string) (*project, *record.Error) {
	p := &project{fields: paths, simple: true, open: true, types: make([]record.Type, len(paths)), col: make([]int, len(paths)), index: make([]int, len(paths))}
	p.src = make([]string, 0, len(paths)+1)
	for i, path := range paths {
		var last *catalog.Field
		var steps []catalog.Step
		seen := true
		if last = t.Field(path); last != nil {
			p.index[i] = last.Index
			seen = w.sees(last)
			p.open = p.open && len(last.Access.Read) == 0
		} else {
			var err error
			if steps, err = w.snap.Resolve(t, path); err != nil {
				return p, record.AsError(err)
			}
			p.simple, p.index[i] = false, -1
			for _, s := range steps {
				seen = seen && w.sees(s.Field)
				p.open = p.open && len(s.Field.Access.Read) == 0
			}
			last = steps[len(steps)-1].Field
		}
		p.types[i] = last.Type
		if !seen {
			p.col[i], p.masked = -1, true
			continue
		}
		p.col[i] = len(p.src)
		p.src = append(p.src, path)
		if p.index[i] < 0 {
			p.walk(steps, path, i)
		}
	}
	p.keyed = append(slices.Clone(t.Key), p.src...)
	return p, nil
}

// walk adds the i-th path, which goes through the reference that its first step is.
func (p *project) walk(steps []catalog.Step, path string, i int) {
	field := steps[0].Field
	_, rest, _ := strings.Cut(path, ".")
	for j := range p.walks {
		if w := &p.walks[j]; w.field == field {
			w.paths, w.to = append(w.paths, rest), append(w.to, i)
			return
		}
	}
	p.walks = append(p.walks, walk{field, steps[1].Table, []string{rest}, []int{i}})
}

// footRead is what a read by key, or the rows a write returns, looks at.
func (x *unit) footRead(t *task) {
	if x.alone {
		return
	}
	a := asks{w: t.who, m: x.m, f: &t.foot}
	if !t.op.Verb.Writes() {
		a.table(t.t)
	}
	for _, path := range t.op.Return {
		if !strings.Contains(path, ".") {
			continue
		}
		steps, err := x.snap.Resolve(t.t, path)
		switch {
		case err != nil:
		case x.walksToInserted(t, steps):
			t.foot.row(x.m.table(steps[1].Table).id)
		default:
			a.steps(steps)
		}
	}
}

func (x *unit) prepareQuery(t *task) {
	op, w, table := t.op, t.who, t.t
	if op.Query == nil {
		t.fault(record.Errorf(record.Invalid, "", "a %s has no query", op.Verb))
		return
	}
	if isNever(w.guard(table)) {
		t.fault(forbidden(op.Verb, table))
	}
	a := asks{w: w, m: x.m, f: &t.foot}
	a.table(table)
	ask := func(own *catalog.Table, path string) {
		steps, err := w.ask(own, path)
		if err != nil {
			t.fault(err)
			return
		}
		a.steps(steps)
	}
	q := op.Query
	q.Where.Walk("", func(rel string, e *record.Expr) bool {
		own := table
		if rel != "" {
			var err error
			if own, err = x.snap.Table(rel); err != nil {
				t.fault(record.AsError(err))
				return false
			}
		}
		switch {
		case e.Op == record.Field:
			ask(own, e.Path)
		case e.Op == record.Const:
			x.ref(t, &e.Value)
		case e.Op == record.In:
			for i := range e.Values {
				x.ref(t, &e.Values[i])
			}
		case e.Rel != nil:
			other, err := x.snap.Table(e.Rel.Table)
			if err != nil {
				t.fault(record.AsError(err))
				return false
			}
			a.table(other)
			ask(other, e.Rel.Field)
			ask(own, e.Rel.Own)
			for _, tie := range e.Rel.More {
				ask(other, tie.Field)
				ask(own, tie.Own)
			}
		}
		return true
	})
	for _, s := range q.Sort {
		switch {
		case s.Agg == nil:
			ask(table, s.Path)
		case s.Agg.Path != "":
			ask(table, s.Agg.Path)
		}
	}
	if q.Each != nil {
		if op.Verb != record.List {
			t.fault(record.Errorf(record.Invalid, "", "an aggregate has no bound for each value"))
		}
		for _, p := range q.Each.Paths {
			ask(table, p)
		}
	}
	if op.Verb == record.List {
		if len(op.Return) == 0 {
			t.fault(record.Errorf(record.Invalid, "", "a list names no fields"))
			return
		}
		x.prepareReturn(t)
		x.footRead(t)
		return
	}
	for _, g := range q.Group {
		ask(table, g)
	}
	for _, agg := range q.Aggs {
		if agg.Path != "" {
			ask(table, agg.Path)
		}
	}
	for _, h := range q.Having {
		if h.Agg.Path != "" {
			ask(table, h.Agg.Path)
		}
	}
	if len(q.Group)+len(q.Aggs) == 0 {
		t.fault(record.Errorf(record.Invalid, "", "an aggregate asks for nothing"))
	}
}

func (x *unit) prepareWrite(t *task) {
	op, w, table := t.op, t.who, t.t
	if t.info.err != nil {
		t.fault(t.info.err)
	}
	if !table.Writable() && !(w.actor.System && table.Kept()) {
		t.fault(record.Errorf(record.NotAllowed, "", "table %s is read-only", table.Name))
		return
	}
	denied := isNever(w.may(table, op.Verb))
	if op.Verb == record.Upsert {
		denied = isNever(w.may(table, record.Insert)) && isNever(w.may(table, record.Update))
	}
	if denied {
		t.fault(forbidden(op.Verb, table))
		return
	}
	x.prepareReturn(t)
	t.foot = t.info.write
	if op.Verb == record.Delete {
		t.foot = t.info.del
	}
	t.foot.reads, t.foot.writes = clip(t.foot.reads), clip(t.foot.writes)
	x.footRows(t)
	x.footRead(t)
	x.footAccess(t)
	if op.Token != "" {
		t.foot.wrote(x.tokenID(t))
	}
	for _, c := range op.If {
		if c.Field == "" {
			continue
		}
		if op.Verb == record.Insert {
			t.fault(record.Errorf(record.Invalid, c.Field, "a new record has no version to compare"))
		}
		if f := table.Field(c.Field); f == nil {
			t.fault(record.Errorf(record.Invalid, c.Field, "table %s has no field %.80s", table.Name, c.Field))
		} else if !w.sees(f) {
			t.fault(record.Errorf(record.Forbidden, c.Field, "you may not read %s.%s", table.Name, f.Name))
		}
		for i := range c.Values {
			x.ref(t, &c.Values[i])
		}
	}
	if op.Verb != record.Insert && op.Verb != record.Upsert {
		x.prepareKey(t)
	}
	x.prepareSet(t)
	if op.Verb == record.Upsert {
		x.prepareMatch(t)
	}
}

func clip(s []int) []int { return s[:len(s):len(s)] }

// footAccess adds what row conditions on the written table look at.
func (x *unit) footAccess(t *task) {
	if t.who.all || x.alone {
		return
	}
	a := asks{w: t.who, m: x.m, f: &t.foot, seen: map[*catalog.Table]bool{t.t: true}}
	verbs := []record.Verb{t.op.Verb}
	if t.op.Verb == record.Upsert {
		verbs = []record.Verb{record.Insert, record.Update}
	}
	for _, v := range verbs {
		if cond := t.who.may(t.t, v); cond != nil {
			a.expr(t.t, cond)
		}
	}
	if g := t.who.guard(t.t); g != nil {
		a.expr(t.t, g)
	}
}

// prepareSet keeps what the caller may give. What the engine keeps itself, and what is read-only, is left out in silence,
// as clients send back whole records that they have read.
func (x *unit) prepareSet(t *task) {
	if t.op.Verb == record.Delete {
		return
	}
	t.set = x.assigns(t, t.op.Set)
	switch {
	case t.op.New == nil:
	case t.op.Verb != record.Upsert:
		t.fault(record.Errorf(record.Invalid, "", "what a new record gets instead is said of upserts alone"))
	default:
		t.fresh = x.assigns(t, t.op.New)
	}
}

func (x *unit) assigns(t *task, given []record.Assign) []assign {
	op, table := t.op, t.t
	set := make([]assign, 0, len(given))
	for i := range given {
		a := &given[i]
		f := table.Field(a.Field)
		if f == nil {
			t.fault(record.Errorf(record.Invalid, a.Field, "table %s has no field %.80s", table.Name, a.Field))
			return nil
		}
		isRef := x.ref(t, &a.Value)
		if !x.given(t, f) {
			if f.Audit && table.SingleKey() == f && op.Verb != record.Update && a.Value.Form == record.Text && isHexID(a.Value.S) {
				t.newID = strings.ToLower(a.Value.S)
			}
			continue
		}
		if !t.who.sets(f) {
			t.fault(record.Errorf(record.Forbidden, f.Name, "you may not set %s.%s", table.Name, f.Name))
			return nil
		}
		v := a.Value
		if !isRef {
			if err := checkForm(f, v); err != nil {
				t.fault(err)
				return nil
			}
			if !table.External && v.Empty() {
				v = record.Value{}
			}
		}
		if f.Type == record.TypePassword && x.e.opt.Hash == nil {
			t.fault(record.Errorf(record.Unsupported, f.Name, "passwords cannot be stored here"))
			return nil
		}
		set = append(set, assign{f, v})
	}
	return set
}

// given reports whether a value that the caller sends for f counts.
func (x *unit) given(t *task, f *catalog.Field) bool {
	switch {
	case t.parent != nil:
		return !f.Generated && !(f.Audit && f.Name == t.t.ClassField)
	case f.Generated:
		return false
	case f.Audit && f.Name == "sys_tags":
		return true
	case f.Audit:
		return t.op.Keep && t.who.actor.Admin() && f != t.t.SingleKey() && f.Name != t.t.ClassField
	case t.op.Verb == record.Update && isKey(t.t, f):
		return false // the key names the record; changing it would be another record
	}
	return !f.ReadOnly
}

func isKey(t *catalog.Table, f *catalog.Field) bool {
	for _, k := range t.KeyFields() {
		if k == f {
			return true
		}
	}
	return false
}

func isHexID(s string) bool {
	if len(s) != 32 {
		return false
	}
	for i := range len(s) {
		c := s[i] | 0x20
		if (s[i] < '0' || s[i] > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func (x *unit) prepareMatch(t *task) {
	if len(t.op.Match) == 0 {
		t.fault(record.Errorf(record.Invalid, "", "an upsert names no fields to match"))
		return
	}
	id := []byte("m")
	known := true
	for _, name := range t.op.Match {
		v, ok := t.matchValue(name)
		if !ok {
			t.fault(record.Errorf(record.Invalid, name, "an upsert matches %.80s but gives it no value", name))
			return
		}
		f := t.t.Field(name)
		if f == nil || f.Type == record.TypePassword || f.Type == record.TypeJournal {
			t.fault(record.Errorf(record.Invalid, name, "%.80s cannot find a record of table %s", name, t.t.Name))
			return
		}
		if !t.who.sees(f) {
			t.fault(record.Errorf(record.Forbidden, name, "you may not read %s.%s", t.t.Name, f.Name))
			return
		}
		if v.Form == record.Ref {
			known = false
			continue
		}
		if err := checkForm(f, v); err != nil {
			t.fault(err)
			return
		}
		id = append(id, name...)
		id = appendKeyID(id, v)
	}
	if known {
		t.id = string(id)
	}
}

// matchValue is what the caller gave for a match field, read-only and key fields included.
func (t *task) matchValue(name string) (record.Value, bool) {
	for i := range t.op.Set {
		if t.op.Set[i].Field == name {
			return t.op.Set[i].Value, true
		}
	}
	return record.Value{}, false
}

// checkForm checks that a value can stand in a field: its form, its characters, its length.
func checkForm(f *catalog.Field, v record.Value) *record.Error {
	switch v.Form {
	case record.Null, record.Ref:
		return nil
	}
	want := record.Text
	switch f.Type {
	case record.TypeInteger, record.TypeDuration:
		want = record.Int
	case record.TypeFloat:
		want = record.Num
	case record.TypeBoolean:
		want = record.Bool
	case record.TypeDateTime:
		want = record.Time
	}
	if v.Form != want {
		return record.Errorf(record.Invalid, f.Name, "%.60q is not a valid %s", v.Text(), f.Type)
	}
	switch v.Form {
	case record.Time:
		if y := v.Time().Year(); y < 1 || y > 9999 {
			return record.Errorf(record.Invalid, f.Name, "the year %d is out of range", y)
		}
	case record.Text:
		return checkText(f, v.S)
	}
	return nil
}

func checkText(f *catalog.Field, s string) *record.Error {
	if f.Type == record.TypeBytes {
		return nil
	}
	if !utf8.ValidString(s) {
		return record.Errorf(record.Invalid, f.Name, "the text is not valid UTF-8")
	}
	if strings.IndexByte(s, 0) >= 0 {
		return record.Errorf(record.Invalid, f.Name, "the text holds a NUL character")
	}
	if f.MaxLength > 0 && len(s) > f.MaxLength && f.Type != record.TypePassword {
		if n := utf8.RuneCountInString(s); n > f.MaxLength {
			return record.Errorf(record.Invalid, f.Name, "%d characters are more than the %d allowed", n, f.MaxLength)
		}
	}
	if f.Type == record.TypeDate || f.Type == record.TypeDecimal {
		if s == "" {
			return nil
		}
		if v, err := record.Parse(f.Type, s); err != nil || v.S != s {
			return record.Errorf(record.Invalid, f.Name, "%.60q is not a valid %s", s, f.Type)
		}
	}
	return nil
}

// keyID is a key as one comparable text.
func keyID(key []record.Value) string {
	if len(key) == 1 && key[0].Form == record.Text {
		return key[0].S
	}
	var b []byte
	for _, v := range key {
		b = appendKeyID(b, v)
	}
	return string(b)
}

func appendKeyID(b []byte, v record.Value) []byte {
	at := len(b)
	b = append(b, '0'+byte(v.Form))
	b = v.AppendText(b)
	return append(strconv.AppendInt(append(b, 0), int64(len(b)-at), 10), 0)
}
