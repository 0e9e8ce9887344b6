package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/rule"
	"weir/internal/store"
)

// pending is one record on its way into the database.
type pending struct {
	t       *task
	row     *rule.Row
	info    *tableInfo // of the record's own class
	journal []entry
	secrets []secret
	changed bool
	depth   int // of a cascade
}

// maxDerive is how deep records may derive records.
const maxDerive = 8

// change writes new and changed records: rules, derived records, checks, positions, then the statements and the totals.
func (w *writer) change(ctx context.Context, list []*pending) error {
	if err := w.rules(ctx, list); err != nil {
		return err
	}
	list = w.living(list)
	if err := w.derive(ctx, list); err != nil || w.fault {
		return err
	}
	for _, p := range list {
		if err := w.finish(p); err != nil {
			w.fail(p.t, err)
		}
	}
	list = w.living(list)
	if err := w.positions(ctx, list); err != nil || w.fault {
		return err
	}
	if err := w.holdOwners(ctx, list); err != nil {
		return err
	}
	list = w.living(list)
	if err := w.statements(ctx, list); err != nil || w.fault {
		return err
	}
	list = w.living(list)
	if err := w.besides(ctx, list); err != nil || w.fault {
		return err
	}
	if err := w.checkCreated(ctx, list); err != nil || w.fault {
		return err
	}
	if err := w.totals(ctx, list); err != nil || w.fault {
		return err
	}
	return w.results(ctx, list)
}

// living are those that have not failed.
func (w *writer) living(list []*pending) []*pending {
	return slices.DeleteFunc(list, func(p *pending) bool { return p.t.done })
}

// rules runs the rules of each class on all its records at once.
func (w *writer) rules(ctx context.Context, list []*pending) error {
	done := map[*tableInfo]bool{}
	for _, p := range list {
		if done[p.info] {
			continue
		}
		done[p.info] = true
		if p.info.err != nil {
			return p.info.err
		}
		if p.info.program.Empty() {
			continue
		}
		rows := make([]*rule.Row, 0, len(list))
		for _, o := range list {
			if o.info == p.info {
				rows = append(rows, o.row)
			}
		}
		began := time.Now()
		if err := p.info.program.Run(ctx, rule.Env{Now: w.x.fine, Data: w}, rows); err != nil {
			return err
		}
		if rec := w.x.rec; rec != nil {
			rec.Rules.Add(int64(time.Since(began)))
			rec.RuleCount.Add(int64(len(p.info.t.Rules)))
		}
	}
	for _, p := range list {
		if p.row.Err != nil {
			w.fail(p.t, p.row.Err)
		}
	}
	return nil
}

// Find reads records for rules, in key order, within the transaction.
func (w *writer) Find(ctx context.Context, t *catalog.Table, fields []string, where *record.Expr) (*record.Rows, error) {
	q := &record.Query{Where: where, Limit: -1}
	for _, k := range t.Key {
		q.Sort = append(q.Sort, record.Sort{Path: k})
	}
	return w.read(ctx, &store.Read{Snapshot: w.x.snap, Table: t, Fields: fields, Query: q})
}

// read reads within the transaction into memory.
func (w *writer) read(ctx context.Context, q *store.Read) (*record.Rows, error) {
	res, err := w.tx.Query(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := w.x.materialise(res.Rows); err != nil {
		return nil, err
	}
	w.x.room.Add(res.Size()) // working memory, given back
	return res.Rows, nil
}

// finish makes a record ready for its statement: numbers and audit fields, checks of what rules set, journal entries and
// secrets, which are stored elsewhere.
func (w *writer) finish(p *pending) *record.Error {
	row, info := p.row, p.info
	for _, f := range info.journals {
		if v := row.New[f.Index]; !v.Empty() {
			p.journal = append(p.journal, entry{f, v})
			row.New[f.Index] = record.Value{}
			p.changed = true
		}
	}
	for _, f := range info.passwords {
		if !row.Given[f.Index] && row.Old == nil && row.New[f.Index].IsNull() || !row.Given[f.Index] && row.Old != nil {
			row.New[f.Index] = record.Value{}
			continue
		}
		p.secrets = append(p.secrets, secret{f, row.New[f.Index]})
		if row.New[f.Index].Empty() && f.Mandatory {
			return mandatory(f)
		}
		row.New[f.Index] = record.Value{}
		p.changed = true
	}
	for _, f := range info.t.Fields {
		v := &row.New[f.Index]
		if row.Old != nil && *v == row.Old[f.Index] {
			continue
		}
		if !info.t.External && v.Form == record.Text && v.S == "" {
			*v = record.Value{}
			if row.Old != nil && row.Old[f.Index].IsNull() {
				continue
			}
		}
		p.changed = true
		if err := checkForm(f, *v); err != nil {
			return err
		}
		if w.x.e.opt.StrictChoices && len(f.Choices) > 0 && !v.Empty() && f.ChoiceLabel(v.Text()) == "" && !isChoice(f, v.Text()) {
			return record.Errorf(record.Invalid, f.Name, "%.60q is not one of its choices", v.Text())
		}
	}
	for _, f := range info.mandatory {
		if row.New[f.Index].Empty() && f.Type != record.TypePassword && !slices.ContainsFunc(p.journal, func(e entry) bool { return e.f == f }) {
			return mandatory(f)
		}
	}
	if row.Old == nil {
		p.changed = true
		return nil
	}
	if p.changed {
		w.stamp(p)
	}
	return nil
}

func isChoice(f *catalog.Field, v string) bool {
	return slices.ContainsFunc(f.Choices, func(c catalog.Choice) bool { return c.Value == v })
}

func mandatory(f *catalog.Field) *record.Error {
	return record.Errorf(record.Invalid, f.Name, "%s must be filled in", f.Label)
}

// stamp keeps the audit fields of a changed record.
func (w *writer) stamp(p *pending) {
	set := func(at int, v record.Value) {
		if at >= 0 && !(p.row.Given[at] && p.t.op.Keep) {
			p.row.New[at] = v
		}
	}
	set(p.info.updated, record.TimeValue(w.x.now))
	set(p.info.updatedBy, byActor(p.row.Actor))
	if at := p.info.modCount; at >= 0 {
		set(at, record.IntValue(p.row.Old[at].N+1))
	}
}

func byActor(a *record.Actor) record.Value {
	if a.Name == "" {
		if a.System {
			return record.TextValue("system")
		}
		return record.Value{}
	}
	return record.TextValue(a.Name)
}

// statements writes the records: changed ones of a class by one update, new ones by one insert. When a changed record
// gets a new unique value the order among all of them could decide who fails, so then they go one by one.
func (w *writer) statements(ctx context.Context, list []*pending) error {
	if w.movesUnique(list) {
		slices.SortStableFunc(list, func(a, b *pending) int { return a.t.i - b.t.i })
		for i := range list {
			if err := w.statement(ctx, list[i:i+1]); err != nil || w.fault {
				return err
			}
		}
		return nil
	}
	return w.statement(ctx, list)
}

func (w *writer) movesUnique(list []*pending) bool {
	if len(list) == 1 {
		return false
	}
	for _, p := range list {
		if p.row.Old == nil {
			continue
		}
		for i, unique := range p.info.inUnique {
			if unique && p.row.New[i] != p.row.Old[i] {
				return true
			}
		}
	}
	return false
}

func (w *writer) statement(ctx context.Context, list []*pending) error {
	for len(list) > 0 {
		var same, rest []*pending
		for _, p := range list {
			if p.info == list[0].info && (p.row.Old == nil) == (list[0].row.Old == nil) {
				same = append(same, p)
			} else {
				rest = append(rest, p)
			}
		}
		var err error
		if same[0].row.Old == nil {
			err = w.insertRows(ctx, same)
		} else {
			err = w.updateRows(ctx, same)
		}
		if err != nil || w.fault {
			return err
		}
		list = rest
	}
	return nil
}

// insertRows writes new records of one class, in their order. A column that is null in all of them is left out, and where
// the database has defaults of its own, one that nobody gave.
func (w *writer) insertRows(ctx context.Context, list []*pending) error {
	for len(list) > 0 {
		n := len(list)
		info := list[0].info
		var fields []*catalog.Field
		if info.readBack {
			fields = columns(list[0])
			for n = 1; n < len(list) && slices.Equal(fields, columns(list[n])); n++ {
			}
		} else {
			for _, f := range info.t.Fields {
				if slices.ContainsFunc(list, func(p *pending) bool { return !p.row.New[f.Index].IsNull() }) {
					fields = append(fields, f)
				}
			}
		}
		if err := w.insertSet(ctx, info, fields, list[:n]); err != nil || w.fault {
			return err
		}
		list = list[n:]
	}
	return nil
}

func columns(p *pending) []*catalog.Field {
	var fields []*catalog.Field
	for _, f := range p.info.t.Fields {
		if !f.Generated && (!p.row.New[f.Index].IsNull() || p.row.Given[f.Index] && !f.Identity) {
			fields = append(fields, f)
		}
	}
	return fields
}

func (w *writer) insertSet(ctx context.Context, info *tableInfo, fields []*catalog.Field, list []*pending) error {
	s := &store.InsertSet{Table: info.t, Return: info.back, Rows: make([][]record.Value, len(list))}
	cells := make([]record.Value, 0, len(list)*len(fields))
	for _, f := range fields {
		s.Fields = append(s.Fields, f.Name)
	}
	for i, p := range list {
		at := len(cells)
		for _, f := range fields {
			cells = append(cells, p.row.New[f.Index])
		}
		s.Rows[i] = cells[at:len(cells):len(cells)]
	}
	written, err := w.tx.Insert(ctx, s)
	if err != nil {
		return fmt.Errorf("insert into %s: %w", info.t.Name, err)
	}
	for i, p := range list {
		if written.Errs != nil && written.Errs[i] != nil {
			if err := w.raced(ctx, p.t); err != nil {
				return err
			}
			w.fail(p.t, written.Errs[i])
			// Those after it may have numbers that one by one they would not have got.
			w.fault = w.fault || i < len(list)-1 && len(info.positions) > 0
			continue
		}
		w.mine(p.t)
		if info.back != nil && written.Rows != nil {
			copy(p.row.New, written.Rows.At(i))
		}
	}
	return nil
}

// mine notes that something was written for a task.
func (w *writer) mine(t *task) {
	w.wrote = true
	for ; t != nil; t = t.parent {
		t.dirty = true
	}
}

// updateRows writes changed records of one class: the columns are all that changed in any of them.
func (w *writer) updateRows(ctx context.Context, list []*pending) error {
	list = slices.DeleteFunc(slices.Clone(list), func(p *pending) bool { return !p.changed })
	if len(list) == 0 {
		return nil
	}
	info := list[0].info
	s := &store.UpdateSet{Table: info.t, Return: info.back}
	var fields []*catalog.Field
	for _, f := range info.t.Fields {
		if f.Generated || isKey(info.t, f) {
			continue
		}
		if slices.ContainsFunc(list, func(p *pending) bool { return p.row.New[f.Index] != p.row.Old[f.Index] }) {
			fields = append(fields, f)
			s.Fields = append(s.Fields, f.Name)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	for _, p := range list {
		row := make([]record.Value, len(fields))
		for j, f := range fields {
			row[j] = p.row.New[f.Index]
		}
		s.Keys = append(s.Keys, keyOf(info.t, p.row.Old))
		s.Rows = append(s.Rows, row)
	}
	written, err := w.tx.Update(ctx, s)
	if err != nil {
		return fmt.Errorf("update %s: %w", info.t.Name, err)
	}
	for i, p := range list {
		switch {
		case written.Errs != nil && written.Errs[i] != nil:
			w.fail(p.t, written.Errs[i])
			continue
		case written.Hit != nil && !written.Hit[i]:
			w.fail(p.t, notFound())
			continue
		}
		w.mine(p.t)
		if info.back != nil && written.Rows != nil {
			copy(p.row.New, written.Rows.At(i))
		}
	}
	return nil
}

func keyOf(t *catalog.Table, row []record.Value) []record.Value {
	key := make([]record.Value, len(t.KeyFields()))
	for i, f := range t.KeyFields() {
		key[i] = row[f.Index]
	}
	return key
}

// checkCreated checks the conditions of create grants on the new records, as the database sees them.
func (w *writer) checkCreated(ctx context.Context, list []*pending) error {
	var news []*pending
	for _, p := range list {
		if p.row.Old == nil {
			news = append(news, p)
		}
	}
	return w.allow(ctx, news, record.Insert, false)
}

// allow fails the tasks whose records the actor may not treat by verb. Records are grouped by actor.
func (w *writer) allow(ctx context.Context, list []*pending, verb record.Verb, visible bool) error {
	type group struct {
		w *who
		t *catalog.Table
	}
	var order []group
	groups := map[group][]*pending{}
	for _, p := range list {
		if p.t.who.all {
			continue
		}
		table := p.info.t
		if visible {
			table = p.t.t // its guard looks at the record's class by itself
		}
		g := group{p.t.who, table}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], p)
	}
	for _, g := range order {
		cond := g.w.may(g.t, verb)
		if cond == nil {
			continue
		}
		refuse := func(p *pending) {
			if visible {
				w.fail(p.t, notFound())
			} else {
				w.fail(p.t, forbidden(verb, g.t))
			}
		}
		if isNever(cond) {
			for _, p := range groups[g] {
				refuse(p)
			}
			continue
		}
		keys := make([][]record.Value, 0, len(groups[g]))
		for _, p := range groups[g] {
			keys = append(keys, keyOf(p.info.t, p.current()))
		}
		began := time.Now()
		rows, err := w.read(ctx, &store.Read{
			Snapshot: w.x.snap, Table: g.t, Fields: g.t.Key, Keys: keys, Query: &record.Query{Where: cond, Limit: -1},
		})
		if rec := w.x.rec; rec != nil {
			rec.Access.Add(int64(time.Since(began)))
		}
		if err != nil {
			return err
		}
		ok := make(map[string]bool, rows.Len())
		for i := range rows.Len() {
			ok[keyID(rows.At(i))] = true
		}
		for i, p := range groups[g] {
			if !ok[keyID(keys[i])] {
				refuse(p)
			}
		}
	}
	return nil
}

func (p *pending) current() []record.Value {
	if p.row.Old != nil {
		return p.row.Old
	}
	return p.row.New
}

// results fills the outcomes of written records: from memory, with what stands behind references read, once for each record
// referred to. Records that their writer may not be allowed to see are read back.
func (w *writer) results(ctx context.Context, list []*pending) error {
	var hidden, walking []*pending
	for _, p := range list {
		t := p.t
		t.row, t.rowOf = p.row.New, p.info.t
		t.out.Key = keyOf(p.info.t, p.row.New)
		t.out.Inserted = p.row.Old == nil
		t.out.Changed = p.changed
		t.out.Stat.Rows = 1
		if t.op.Return == nil {
			continue
		}
		if t.who.guard(t.t) != nil {
			hidden = append(hidden, p)
			continue
		}
		cells := make([]record.Value, len(t.ret.fields))
		for i := range cells {
			if at := t.ret.index[i]; t.ret.col[i] >= 0 && at >= 0 {
				cells[i] = p.row.New[at]
			}
		}
		t.out.Rows = record.Of(t.ret.fields, t.ret.types, cells)
		if len(t.ret.walks) > 0 {
			walking = append(walking, p)
		}
	}
	if err := w.walk(ctx, walking); err != nil {
		return err
	}
	return w.readBack(ctx, hidden)
}

// walk fills in the paths that go through references.
func (w *writer) walk(ctx context.Context, list []*pending) error {
	for len(list) > 0 {
		first := list[0].t
		same, rest := list[:0:0], list[:0:0]
		for _, p := range list {
			if t := p.t; t.t == first.t && t.who == first.who && (t.ret == first.ret || slices.Equal(t.op.Return, first.op.Return)) {
				same = append(same, p)
			} else {
				rest = append(rest, p)
			}
		}
		for i := range first.ret.walks {
			if err := w.walkOne(ctx, first, &first.ret.walks[i], same); err != nil {
				return err
			}
		}
		list = rest
	}
	return nil
}

func (w *writer) walkOne(ctx context.Context, first *task, k *walk, list []*pending) error {
	q := &store.Read{Snapshot: w.x.snap, Table: k.table, Guard: first.who.guardFunc()}
	q.Fields = append(slices.Clone(k.table.Key), k.paths...)
	found := map[record.Value][]record.Value{}
	for _, p := range list {
		if key := p.row.New[k.field.Index]; !key.Empty() {
			if _, known := found[key]; !known {
				found[key] = nil
				q.Keys = append(q.Keys, []record.Value{key})
			}
		}
	}
	if len(q.Keys) == 0 {
		return nil
	}
	rows, err := w.read(ctx, q)
	if err != nil {
		return err
	}
	for i := range rows.Len() {
		row := rows.At(i)
		found[row[0]] = row[1:]
	}
	for _, p := range list {
		values := found[p.row.New[k.field.Index]]
		if values == nil {
			continue
		}
		cells := p.t.out.Rows.At(0)
		for i, to := range k.to {
			cells[to] = values[i]
		}
	}
	return nil
}

// readBack reads written records again.
func (w *writer) readBack(ctx context.Context, list []*pending) error {
	for len(list) > 0 {
		first := list[0].t
		var rest []*pending
		byID := map[string]*task{}
		q := &store.Read{Snapshot: w.x.snap, Table: first.t, Guard: first.who.guardFunc()}
		q.Fields = append(slices.Clone(first.t.Key), first.ret.src...)
		for _, p := range list {
			t := p.t
			if t.t != first.t || t.who != first.who || !slices.Equal(t.op.Return, first.op.Return) {
				rest = append(rest, p)
				continue
			}
			q.Keys = append(q.Keys, t.out.Key)
			byID[keyID(t.out.Key)] = t
		}
		rows, err := w.read(ctx, q)
		if err != nil {
			return err
		}
		nk := len(first.t.Key)
		for i := range rows.Len() {
			row := rows.At(i)
			if t := byID[keyID(row[:nk])]; t != nil {
				t.out.Rows = t.ret.one(row[nk:])
			}
		}
		list = rest
	}
	return nil
}

// number is the text of a sequence's number in a field.
func number(f *catalog.Field, n int64) record.Value {
	if f.Type == record.TypeInteger {
		return record.IntValue(n)
	}
	digits := fmt.Sprint(n)
	return record.TextValue(f.Sequence.Prefix + strings.Repeat("0", max(f.Sequence.Digits-len(digits), 0)) + digits)
}
