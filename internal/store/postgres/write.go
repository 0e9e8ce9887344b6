package postgres

import (
	"context"
	"slices"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Insert writes new records by one statement. Rows that meet an existing unique value are told apart by the keys that
// come back, and named by one more statement.
func (t *tx) Insert(ctx context.Context, set *store.InsertSet) (*store.Written, error) {
	st, err := t.store.compiler.Insert(set)
	if err != nil {
		return nil, err
	}
	w := &store.Written{}
	n := len(set.Rows)
	if n == 0 {
		return w, nil
	}
	keyed := newKeyed(set, st.Keys)
	asked := len(set.Return)
	if n > 1 && keyed.known && len(set.Table.Uniques) > 0 && keyed.repeats() {
		// Of rows with one key the first may meet another unique value, so that it is a later one that comes back: those values tell.
		set = keyed.more()
		if st, err = t.store.compiler.Insert(set); err != nil {
			return nil, err
		}
	}
	several := !keyed.known && n > 1
	if several {
		// Which of the rows came back cannot be told without their keys.
		if err := t.Mark(ctx); err != nil {
			return nil, err
		}
	}
	back := newBack(set.Return[:asked], st.Out[len(st.Out)-len(set.Return):], st.Keys)
	came := 0
	at := make([]int, 0, n) // the row that each returned one belongs to
	lost := false
	s := step{st: st, args: st.Bind(nil, set.Rows, nil), fields: set.Fields}
	err = t.run(ctx, set.Table, s, func(row []record.Value) error {
		i := came
		if keyed.known {
			i = keyed.take(row)
		}
		lost = lost || i < 0
		at = append(at, i)
		back.add(row)
		came++
		return nil
	})
	if err != nil {
		return nil, err
	}
	if several {
		if came < n {
			if err := t.Back(ctx); err != nil {
				return nil, err
			}
			return t.insertOneByOne(ctx, set)
		}
		if err := t.Drop(ctx); err != nil {
			return nil, err
		}
	}
	if lost && came != n {
		return nil, record.Errorf(record.Internal, "", "the database gave records other keys than were sent, and left some out: which cannot be told")
	}
	if lost {
		for i := range at {
			at[i] = i
		}
	}
	w.Rows = back.align(at, n)
	if came == n {
		return w, nil
	}
	w.Errs = make([]*record.Error, n)
	written := make([]bool, n)
	for _, i := range at {
		written[i] = true
	}
	missing := make([]int, 0, n-came)
	for i := range written {
		if !written[i] {
			missing = append(missing, i)
		}
	}
	return w, t.conflicts(ctx, set, missing, w.Errs)
}

// insertOneByOne writes records that cannot be told apart by their keys when some of them meet an existing unique value.
func (t *tx) insertOneByOne(ctx context.Context, set *store.InsertSet) (*store.Written, error) {
	all := &store.Written{Errs: make([]*record.Error, len(set.Rows))}
	for i := range set.Rows {
		one := *set
		one.Rows = set.Rows[i : i+1]
		w, err := t.Insert(ctx, &one)
		if err != nil {
			return nil, err
		}
		if w.Errs != nil {
			all.Errs[i] = w.Errs[0]
		}
		if w.Rows != nil {
			if all.Rows == nil {
				all.Rows = record.NewRows(w.Rows.Fields, w.Rows.Types)
			}
			all.Rows.AppendShared(w.Rows.At(0))
		}
	}
	return all, nil
}

// Update sets fields of the records with the given keys by one statement.
func (t *tx) Update(ctx context.Context, set *store.UpdateSet) (*store.Written, error) {
	st, err := t.store.compiler.Update(set)
	if err != nil {
		return nil, err
	}
	s := step{st: st, args: st.Bind(set.Keys, set.Rows, nil), fields: set.Fields}
	return t.change(ctx, set.Table, s, set.Return, len(set.Keys))
}

// Delete removes the records with the given keys by one statement.
func (t *tx) Delete(ctx context.Context, set *store.DeleteSet) (*store.Written, error) {
	st, err := t.store.compiler.Delete(set)
	if err != nil {
		return nil, err
	}
	return t.change(ctx, set.Table, step{st: st, args: st.Bind(set.Keys, nil, nil)}, nil, len(set.Keys))
}

// change runs an update or a delete, whose rows come back with their number in the set.
func (t *tx) change(ctx context.Context, table *catalog.Table, s step, fields []string, n int) (*store.Written, error) {
	w := &store.Written{Hit: make([]bool, n)}
	if n == 0 {
		return w, nil
	}
	back := newBack(fields, s.st.Out[len(s.st.Out)-len(fields):], 1)
	at := make([]int, 0, n)
	err := t.run(ctx, table, s, func(row []record.Value) error {
		i := int(row[0].N) - 1
		w.Hit[i] = true
		at = append(at, i)
		back.add(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.Rows = back.align(at, n)
	return w, nil
}

// keyed finds the row of a set that a returned key belongs to. Rows come back in the order in which they were sent, some
// missing, so it walks along with them; the map is for the day on which they do not.
type keyed struct {
	known bool // all key fields are among the set's, so that their values can be told from the rows
	set   *store.InsertSet
	cols  []int // in the set
	out   []int // in the rows that come back, where it is not the same as the position in cols
	next  int
	taken []bool
	rows  map[string][]int
	buf   []byte
}

func newKeyed(set *store.InsertSet, keys int) *keyed {
	k := &keyed{known: keys > 0, set: set, cols: make([]int, keys), taken: make([]bool, len(set.Rows))}
	for i, f := range set.Table.KeyFields() {
		if k.cols[i] = slices.Index(set.Fields, f.Name); k.cols[i] < 0 || f.Identity || f.Generated {
			k.known = false
		}
	}
	return k
}

// more compares the unique values beside the key too: the result is the set, which returns them.
func (k *keyed) more() *store.InsertSet {
	set := *k.set
	keys := len(k.cols)
	for i := range keys {
		k.out = append(k.out, i)
	}
	for _, u := range set.Table.Uniques {
		for _, name := range u {
			in := slices.Index(set.Fields, name)
			if in < 0 || slices.Contains(k.cols, in) {
				continue
			}
			at := slices.Index(set.Return, name)
			if at < 0 {
				at = len(set.Return)
				set.Return = append(set.Return[:at:at], name)
			}
			k.cols, k.out = append(k.cols, in), append(k.out, keys+at)
		}
	}
	return &set
}

// value is field i of the key of a row of the set, in the form that the database returns.
func (k *keyed) value(row, i int) record.Value {
	v := k.set.Rows[row][k.cols[i]]
	if fit, err := store.Fit(k.set.Table.Field(k.set.Fields[k.cols[i]]).Type, v); err == nil {
		return fit
	}
	return v
}

func (k *keyed) is(row int, key []record.Value) bool {
	for i := range key {
		if k.value(row, i) != key[i] {
			return false
		}
	}
	return true
}

// take is the first row with the key of one that came back that was not taken yet, -1 if there is none.
func (k *keyed) take(back []record.Value) int {
	if len(k.taken) == 1 {
		return 0 // even if a trigger gave it another key
	}
	key := back[:len(k.cols)]
	if k.out != nil {
		key = make([]record.Value, len(k.out))
		for i, at := range k.out {
			key[i] = back[at]
		}
	}
	for ; k.rows == nil && k.next < len(k.taken); k.next++ {
		if k.is(k.next, key) {
			k.taken[k.next] = true
			k.next++
			return k.next - 1
		}
	}
	if k.rows == nil {
		k.rows = map[string][]int{}
		row := make([]record.Value, len(key))
		for i, taken := range k.taken {
			if !taken {
				for j := range row {
					row[j] = k.value(i, j)
				}
				text := string(k.text(row))
				k.rows[text] = append(k.rows[text], i)
			}
		}
	}
	list := k.rows[string(k.text(key))]
	if len(list) == 0 {
		return -1
	}
	k.rows[string(k.buf)] = list[1:]
	k.taken[list[0]] = true
	return list[0]
}

// repeats reports whether several rows of the set have one key.
func (k *keyed) repeats() bool {
	row := make([]record.Value, len(k.cols))
	seen := make(map[string]bool, len(k.taken))
	for i := range k.taken {
		for j := range row {
			row[j] = k.value(i, j)
		}
		text := k.text(row)
		if seen[string(text)] {
			return true
		}
		seen[string(text)] = true
	}
	return false
}

func (k *keyed) text(key []record.Value) []byte {
	k.buf = k.buf[:0]
	for _, v := range key {
		k.buf = append(v.AppendText(k.buf), 0)
	}
	return k.buf
}

// back gathers what a set asked to be returned.
type back struct {
	rows *record.Rows
	skip int
}

func newBack(fields []string, out []store.Output, skip int) *back {
	b := &back{skip: skip}
	if len(fields) > 0 {
		types := make([]record.Type, len(fields))
		for i := range types {
			types[i] = out[i].Type
		}
		b.rows = record.NewRows(fields, types)
	}
	return b
}

func (b *back) add(row []record.Value) {
	if b.rows != nil {
		b.rows.Append(row[b.skip : b.skip+len(b.rows.Fields)])
	}
}

// align puts the returned rows, which belong to the set's rows at, in the set's order, with null rows for the others.
func (b *back) align(at []int, n int) *record.Rows {
	if b.rows == nil {
		return nil
	}
	if len(at) == n && slices.IsSorted(at) {
		return b.rows
	}
	from := make([]int, n)
	for i := range from {
		from[i] = -1
	}
	for i, row := range at {
		from[row] = i
	}
	aligned := record.NewRows(b.rows.Fields, b.rows.Types)
	null := make([]record.Value, len(b.rows.Fields))
	for _, i := range from {
		if i < 0 {
			aligned.AppendShared(null)
		} else {
			aligned.AppendShared(b.rows.At(i))
		}
	}
	return aligned
}
