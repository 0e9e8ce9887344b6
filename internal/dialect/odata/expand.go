package odata

import (
	"math"
	"slices"

	"weir/internal/edm"
	"weir/internal/record"
)

// Navigation is read in one statement for each navigation property of a level: the entities of a level say which records belong to
// them, all of those are read at once, and each finds its entity in memory. What is counted beside a bound for each entity is one
// statement more.

// growth is a navigation property of a node's entities, being read.
type growth struct {
	parent *node
	exp    *expansion
	query  *query // what is asked of the entities read
	shape  *shape
	own    []int // columns of the parent's rows that the navigation compares
	other  []int // and of the rows read
	op     int   // index in the unit, -1: nothing is to be read
	count  int   // index of the op that counts for each entity, -1: none
	keys   keyring
}

// keyring numbers the values that entities navigate by.
type keyring struct {
	one   map[record.Value]int32 // of one property
	many  map[string]int32       // of several
	of    []int32                // by entity: its number, -1 where a value is null and leads nowhere
	lists [][]record.Value       // by property: the distinct values
	seen  []map[record.Value]bool
	text  []bool // by property: the two sides hold it in different forms, so it is compared as text
	buf   []byte
}

// find is the number of values, -1 if they have none. With add they get one.
func (k *keyring) find(row []record.Value, cols []int, add bool) int32 {
	if len(cols) == 1 {
		v := row[cols[0]]
		if v.IsNull() {
			return -1
		}
		if k.text[0] && v.Form != record.Text {
			v = record.TextValue(v.Text())
		}
		n, ok := k.one[v]
		if ok || !add {
			if !ok {
				n = -1
			}
			return n
		}
		n = int32(len(k.one))
		k.one[v] = n
		k.lists[0] = append(k.lists[0], row[cols[0]])
		return n
	}
	k.buf = k.buf[:0]
	for i, c := range cols {
		v := row[c]
		if v.IsNull() {
			return -1
		}
		if k.text[i] && v.Form != record.Text {
			v = record.TextValue(v.Text())
		}
		k.buf = appendTokenValue(k.buf, v)
	}
	n, ok := k.many[string(k.buf)]
	if ok || !add {
		if !ok {
			n = -1
		}
		return n
	}
	n = int32(len(k.many))
	k.many[string(k.buf)] = n
	for i, c := range cols {
		if !k.seen[i][row[c]] {
			k.seen[i][row[c]] = true
			k.lists[i] = append(k.lists[i], row[c])
		}
	}
	return n
}

// known numbers the values that one entity navigates by, which are not read.
func (g *growth) known(q *request, values []record.Value) {
	g.prepare(q)
	cols := make([]int, len(values))
	for i := range cols {
		cols[i] = i
	}
	g.keys.of = []int32{g.keys.find(values, cols, true)}
}

// grow plans the reading of what qy expands of the first n rows of a node.
func (q *request) grow(ops []record.Op, list []*growth, parent *node, n int, qy *query) ([]record.Op, []*growth) {
	for _, exp := range qy.expand {
		g := &growth{parent: parent, exp: exp, op: -1, count: -1}
		for _, l := range exp.nav.On {
			g.own = append(g.own, parent.shape.column(columnOf(l.Own)))
		}
		g.prepare(q)
		g.keys.of = make([]int32, n)
		for i := range n {
			g.keys.of[i] = -1
			if len(g.own) > 0 {
				g.keys.of[i] = g.keys.find(parent.rows.At(i), g.own, true)
			}
		}
		ops = g.plan(ops)
		list = append(list, g)
	}
	return ops, list
}

// prepare finds what is read of the entities navigated to.
func (g *growth) prepare(q *request) {
	on := g.exp.nav.On
	paths := make([]string, len(on))
	for i, l := range on {
		paths[i] = columnOf(l.Other)
	}
	g.query = g.exp.within()
	g.shape = q.shapeWith(g.exp.nav.Target, g.query, paths)
	g.keys = keyring{lists: make([][]record.Value, len(on)), text: make([]bool, len(on))}
	if len(on) == 1 {
		g.keys.one = map[record.Value]int32{}
	} else {
		g.keys.many = map[string]int32{}
		for range on {
			g.keys.seen = append(g.keys.seen, map[record.Value]bool{})
		}
	}
	for i, l := range on {
		g.other = append(g.other, g.shape.column(paths[i]))
		g.keys.text[i] = heldAsText(l.Own) != heldAsText(l.Other)
	}
}

// heldAsText reports whether values of a property are held as text.
func heldAsText(p *edm.Property) bool {
	if p.Field != nil {
		return p.Field.Type.Textual()
	}
	switch p.Kind {
	case edm.String, edm.GUID, edm.Date, edm.TimeOfDay, edm.Binary:
		return true
	}
	return false
}

// within is what is asked of the entities expanded: the options inside, and with $levels the same navigation again.
func (e *expansion) within() *query {
	if e.refs {
		return &query{top: -1, sort: e.query.sort}
	}
	if e.depth == 0 || e.nav.Target.Type != e.nav.Owner {
		return &e.query
	}
	qy := e.query
	again := *e
	if again.depth < 0 {
		again.depth = mostLevels
	}
	again.depth--
	qy.expand = append(slices.Clone(qy.expand), &again)
	return &qy
}

// plan adds the ops that read what the values known lead to.
func (g *growth) plan(ops []record.Op) []record.Op {
	keys := &g.keys
	distinct := len(keys.one) + len(keys.many)
	e, table := &g.exp.query, g.exp.nav.Target.Type.Table
	if distinct == 0 || table == nil {
		return ops
	}
	conds := make([]*record.Expr, 0, len(g.other)+1)
	paths := make([]string, len(g.other))
	for i, c := range g.other {
		paths[i] = g.shape.paths[c]
		in := &record.Expr{Op: record.In, Args: []*record.Expr{record.F(paths[i])}, Values: keys.lists[i]}
		if len(keys.lists[i]) == 1 {
			in = record.Compare(record.Eq, in.Args[0], record.C(keys.lists[i][0]))
		}
		conds = append(conds, in)
	}
	where := record.AllOf(append(conds, e.filter)...)
	bounded := g.exp.nav.Many && (e.skip > 0 || e.top >= 0)
	if g.exp.only || e.count && bounded {
		g.count = len(ops)
		ops = append(ops, record.Op{Verb: record.Aggregate, Table: table.Name, Query: &record.Query{
			Where: where, Group: paths, Aggs: []record.Agg{{Func: record.Count}}, Limit: -1,
		}})
	}
	if g.exp.only {
		return ops
	}
	list := &record.Query{Where: where, Sort: e.sort, Limit: -1}
	switch {
	case bounded && distinct == 1:
		list.Offset, list.Limit = e.skip, e.top
	case bounded:
		list.Each = &record.Each{Paths: paths, Offset: e.skip, Limit: e.top}
	}
	g.op = len(ops)
	return append(ops, record.Op{Verb: record.List, Table: table.Name, Query: list, Return: g.shape.paths})
}

// ripen puts what was read where it belongs. The error is that of an op.
func (g *growth) ripen(out []record.Outcome) error {
	b := branch{exp: g.exp, node: &node{shape: g.shape}}
	n := len(g.keys.of)
	b.of = make([][]int32, n)
	if g.op >= 0 {
		if err := out[g.op].Err; err != nil {
			return err
		}
		b.node.rows = out[g.op].Rows
	}
	if b.node.rows == nil {
		b.node.rows = record.NewRows(g.shape.paths, make([]record.Type, len(g.shape.paths)))
	}
	groups := g.sort(b.node.rows)
	for i, k := range g.keys.of {
		if k >= 0 {
			b.of[i] = groups[k]
		}
	}
	if g.exp.only || g.exp.query.count {
		b.totals = make([]int64, n)
		if err := g.totals(out, &b); err != nil {
			return err
		}
	}
	g.parent.branch = append(g.parent.branch, b)
	return nil
}

// branch is what ripen made.
func (g *growth) branch() *branch {
	for i := range g.parent.branch {
		if b := &g.parent.branch[i]; b.exp == g.exp {
			return b
		}
	}
	return nil
}

// sort is the rows that belong to each number of the keyring, in their order.
func (g *growth) sort(rows *record.Rows) [][]int32 {
	keys := &g.keys
	distinct := len(keys.one) + len(keys.many)
	groups := make([][]int32, distinct)
	n := rows.Len()
	if n == 0 {
		return groups
	}
	number := make([]int32, n)
	size := make([]int32, distinct)
	for i := range n {
		k := keys.find(rows.At(i), g.other, false)
		if number[i] = k; k >= 0 {
			size[k]++
		}
	}
	all := make([]int32, n)
	at := int32(0)
	for k, s := range size {
		groups[k] = all[at : at : at+s]
		at += s
	}
	for i, k := range number {
		if k >= 0 {
			groups[k] = append(groups[k], int32(i))
		}
	}
	return groups
}

// totals counts what belongs to each entity.
func (g *growth) totals(out []record.Outcome, b *branch) error {
	if g.count < 0 {
		for i := range b.totals {
			b.totals[i] = int64(len(b.of[i]))
		}
		return nil
	}
	o := &out[g.count]
	if o.Err != nil {
		return o.Err
	}
	cols := make([]int, len(g.other))
	for i := range cols {
		cols[i] = i
	}
	by := make(map[int32]int64)
	for i := range o.Rows.Len() {
		row := o.Rows.At(i)
		if k := g.keys.find(row, cols, false); k >= 0 {
			by[k] += row[len(cols)].N
		}
	}
	for i, k := range g.keys.of {
		b.totals[i] = by[k]
	}
	return nil
}

// mostLevels is how deep $levels=max goes.
const mostLevels = 10

// weigh counts the entities that writing the first n of a node writes, those expanded of them included: one that belongs to many is
// written many times, so a few rows that refer to each other can become any number. It stops at the bound.
func (n *node) weigh(rows int, most int64) int64 {
	total := int64(0)
	for _, w := range n.weights(rows) {
		if total += w; total > most {
			return total
		}
	}
	return total
}

// weights is how many entities each of a node's first rows brings, itself included.
func (n *node) weights(rows int) []int64 {
	list := make([]int64, rows)
	for i := range list {
		list[i] = 1
	}
	for k := range n.branch {
		b := &n.branch[k]
		inner := b.node.weights(b.node.rows.Len())
		for i := range min(rows, len(b.of)) {
			for _, r := range b.of[i] {
				list[i] = min(list[i]+inner[r], math.MaxInt32)
			}
		}
	}
	return list
}

// readable refuses what the service does not let clients read, at any depth.
func readable(set *edm.Set, qy *query) error {
	if !set.Readable {
		return record.Errorf(record.NotAllowed, set.Name, "entities of %s cannot be read", set.Name)
	}
	for _, e := range qy.expand {
		if err := readable(e.nav.Target, &e.query); err != nil {
			return err
		}
	}
	return nil
}
