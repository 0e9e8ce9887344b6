package odata

import (
	"slices"
	"strconv"
	"strings"

	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// read is the exchange of a GET.
func (q *request) read(t *target) (*dialect.Exchange, error) {
	if t.kind == functionTarget {
		return q.invoke(t)
	}
	if t.each {
		return nil, record.Errorf(record.NotAllowed, "", "$each is for PATCH and DELETE")
	}
	qy, err := q.parseQuery(t)
	if err != nil {
		return nil, err
	}
	return q.get(t, qy)
}

// get is the exchange of a GET whose query is read.
func (q *request) get(t *target, qy *query) (*dialect.Exchange, error) {
	r := &reading{request: q, target: t, query: qy, set: t.end()}
	if err := readable(r.set, qy); err != nil {
		return nil, err
	}
	if err := r.want(); err != nil {
		return nil, err
	}
	r.spot = spot{set: t.set, key: slices.Clone(t.key), many: t.key == nil} // Refs in it belong to the op
	for i, p := range t.set.Type.Key {
		if t.key != nil && p.Path != "" {
			r.spot.known = append(r.spot.known, fact{p, t.key[i]})
		}
	}
	return r.round()
}

// reading is a GET under way: a walk along the path from entity to entity, then what is wanted of its end, then what is expanded of
// that, level by level.
type reading struct {
	*request
	target *target
	query  *query
	set    *edm.Set
	shape  *shape
	order  []record.Sort
	page   *page
	top    int64 // what of $top is left for the pages after this one, -1: no $top
	pref   int64 // the page size that the client asked for and got, 0: none

	spot  spot
	step  int // of the path, from where the walk stands
	ops   []record.Op
	tests []test // of the ops, but for that of the answer

	final  int // index of the op that answers, -1: nothing is to be read
	total  int // index of the op that counts, -1: the answer's own does or nobody
	root   *node
	count  int64 // what was counted, -1: nothing
	growth []*growth
}

// spot is where a walk stands: an entity, addressed by its key or by what it must have, or a collection.
type spot struct {
	set     *edm.Set
	key     []record.Value // nil: found by the conditions
	many    bool
	known   []fact // what the address says of the entity's properties
	must    []fact // what it has if it belongs to the entity before it
	nowhere bool   // the navigation leads nowhere: a value of the entity before it is null
	found   bool   // known to be there
}

// fact is a property and its value.
type fact struct {
	prop  *edm.Property
	value record.Value
}

// test is what must hold of the outcome of an op of the walk.
type test struct {
	op   int
	set  *edm.Set
	must []fact // in the last columns of its row
}

// noEntity is the error of an entity that is not there, or that the caller may not see.
func noEntity(set *edm.Set) error {
	return record.Errorf(record.NotFound, "", "Resource not found for segment '%s'", set.Type.Name)
}

// fact is the value of a property where the address says it.
func (s *spot) fact(p *edm.Property) (record.Value, bool) {
	for i := range s.known {
		if s.known[i].prop == p {
			return s.known[i].value, true
		}
	}
	return record.Value{}, false
}

// values are what a navigation property compares, false if they must be read first.
func (s *spot) values(nav *edm.Nav) ([]record.Value, bool) {
	list := make([]record.Value, len(nav.On))
	for i, l := range nav.On {
		v, ok := s.fact(l.Own)
		if !ok {
			return nil, false
		}
		list[i] = v
	}
	return list, true
}

// op reads paths of the entity, and what it must have.
func (s *spot) op(paths []string) record.Op {
	for _, f := range s.must {
		if s.key != nil {
			paths = append(paths[:len(paths):len(paths)], f.prop.Path)
		}
	}
	if s.key != nil {
		return record.Op{Verb: record.Get, Table: s.set.Type.Table.Name, Key: s.key, Return: paths}
	}
	if len(paths) == 0 {
		paths = []string{s.set.Type.Key[0].Path}
	}
	return record.Op{Verb: record.List, Table: s.set.Type.Table.Name, Query: &record.Query{Where: s.where(), Limit: 1}, Return: paths}
}

// where is the condition of the entity or the collection. It is made anew for each op, since values may be Refs, which the join
// changes in place.
func (s *spot) where() *record.Expr {
	conds := make([]*record.Expr, 0, len(s.must))
	for _, f := range s.must {
		conds = append(conds, record.Compare(record.Eq, record.F(f.prop.Path), record.C(f.value)))
	}
	if s.nowhere {
		return &record.Expr{Op: record.Never}
	}
	return record.AllOf(conds...)
}

// round plans what can be read now.
func (r *reading) round() (*dialect.Exchange, error) {
	r.ops, r.tests = nil, nil
	for r.step < len(r.target.path) {
		if r.spot.set.Type.Table == nil || r.spot.nowhere {
			return nil, noEntity(r.spot.set)
		}
		st := &r.target.path[r.step]
		values, ok := r.spot.values(st.nav)
		if !ok {
			return r.look(st.nav), nil
		}
		r.ensure()
		next, err := r.follow(st, values)
		if err != nil {
			return nil, err
		}
		r.spot = next
		r.step++
	}
	return r.finish()
}

// ensure adds an op that finds the entity where the walk stands, unless it is known to be there: what a path leads through must be
// visible to the caller.
func (r *reading) ensure() {
	if r.spot.found {
		return
	}
	r.tests = append(r.tests, test{len(r.ops), r.spot.set, r.checked()})
	r.ops = append(r.ops, r.spot.op(nil))
}

// checked are the facts that a row must be compared with: those of an entity read by its key.
func (r *reading) checked() []fact {
	if r.spot.key == nil {
		return nil
	}
	return r.spot.must
}

// look is a round that reads of the entity where the walk stands what a navigation property compares.
func (r *reading) look(nav *edm.Nav) *dialect.Exchange {
	paths := make([]string, len(nav.On))
	for i, l := range nav.On {
		paths[i] = l.Own.Path
	}
	at := len(r.ops)
	r.tests = append(r.tests, test{at, r.spot.set, r.checked()})
	r.ops = append(r.ops, r.spot.op(paths))
	return &dialect.Exchange{Ops: r.ops, Reply: r.reply, Next: func(out []record.Outcome) (*dialect.Exchange, error) {
		if err := r.check(out); err != nil {
			return nil, err
		}
		row := out[at].Rows.At(0)
		for i, l := range nav.On {
			r.spot.known = append(r.spot.known, fact{l.Own, row[i]})
		}
		r.spot.found = true
		return r.round()
	}}
}

// check looks at the outcomes of the walk's ops.
func (r *reading) check(out []record.Outcome) error {
	for _, t := range r.tests {
		o := &out[t.op]
		if o.Err == nil && o.Rows != nil && o.Rows.Streaming() { // an entity that is found by conditions is a list of one
			if err := o.Rows.Materialise(0); err != nil {
				return err
			}
		}
		switch {
		case o.Err != nil && o.Err.Kind == record.NotFound, o.Err == nil && o.Rows != nil && o.Rows.Len() == 0:
			return noEntity(t.set)
		case o.Err != nil:
			return o.Err
		}
		if len(t.must) == 0 {
			continue
		}
		row := o.Rows.At(0)
		for i, f := range t.must {
			if v := row[len(row)-len(t.must)+i]; v.IsNull() || v.Text() != f.value.Text() {
				return noEntity(t.set)
			}
		}
	}
	return nil
}

// follow is where a step leads from an entity with these values.
func (r *reading) follow(st *step, values []record.Value) (spot, error) {
	target := st.nav.Target
	next := spot{set: target, many: st.nav.Many && st.key == nil}
	if len(st.nav.On) == 0 || target.Type.Table == nil {
		next.nowhere = true // below a transport shell
	}
	for i, l := range st.nav.On {
		values[i] = fitting(l.Other, values[i])
		next.nowhere = next.nowhere || values[i].IsNull()
	}
	if next.nowhere {
		return next, nil
	}
	key := target.Type.Key
	if st.key != nil {
		next.key = slices.Clone(st.key)
		for i, p := range key {
			next.known = append(next.known, fact{p, st.key[i]})
		}
	} else if !st.nav.Many {
		next.key = keyOf(st.nav, values)
	}
	for i, l := range st.nav.On {
		f := fact{l.Other, values[i]}
		switch v, ok := next.fact(l.Other); {
		case ok && v.Form != record.Ref && f.value.Form != record.Ref:
			if v.Text() != f.value.Text() {
				return next, noEntity(target)
			}
		case ok, st.key != nil:
			next.must = append(next.must, f)
		case next.key != nil:
			next.known = append(next.known, f)
		default:
			next.known, next.must = append(next.known, f), append(next.must, f)
		}
	}
	return next, nil
}

// keyOf is the key of the entity that a navigation property with these values leads to, nil if it compares other properties.
func keyOf(nav *edm.Nav, values []record.Value) []record.Value {
	props := nav.Target.Type.Key
	if len(props) != len(nav.On) {
		return nil
	}
	key := make([]record.Value, len(props))
	for i, p := range props {
		for k, l := range nav.On {
			if l.Other == p {
				key[i] = values[k]
			}
		}
		if key[i].IsNull() {
			return nil
		}
	}
	return key
}

// fitting is a value in the form of a property that it is to be compared with: a reference is text whatever the key it refers to is. A
// text that cannot be such a value is null, and refers to nothing.
func fitting(p *edm.Property, v record.Value) record.Value {
	if p.Field == nil || v.Form != record.Text || p.Field.Type.Textual() {
		return v
	}
	v, err := record.Parse(p.Field.Type, v.S)
	if err != nil {
		return record.Value{}
	}
	return v
}

// want works out what is read of the end of the path.
func (r *reading) want() error {
	t, qy := r.target, r.query
	r.final, r.total, r.top, r.count = -1, -1, -1, -1
	switch {
	case t.count || qy.apply != nil:
	case t.kind == propertyTarget:
		p := t.prop[len(t.prop)-1]
		sel := query{top: -1, props: []*edm.Property{p}}
		r.shape = r.request.shape(r.set, &sel)
	case t.value:
		return record.Errorf(record.NoPath, "", "entities of %s have no stream", r.set.Name)
	case t.links:
		r.shape = r.request.shape(r.set, &query{top: -1, sort: qy.sort})
		qy.expand = nil
	default:
		r.shape = r.request.shape(r.set, qy)
	}
	if t.kind != setTarget || t.count || qy.apply != nil {
		return nil
	}
	r.order = qy.sort
	size, asked := r.pageSize(r.set)
	if qy.token == "" && (size == 0 || qy.top >= 0 && qy.top <= size) || r.set.Type.Table == nil {
		return nil
	}
	r.order = totalOrder(r.set, qy.sort)
	if size > 0 && (qy.top < 0 || qy.top > size) {
		r.page = &page{left: size, seal: seal(r.set, r.order)}
		for _, s := range r.order {
			r.page.cols = append(r.page.cols, r.shape.column(s.Path))
		}
		r.pref = asked
		if qy.top >= 0 {
			r.top = qy.top - size
		}
	}
	return nil
}

// finish plans the reading of the end of the path.
func (r *reading) finish() (*dialect.Exchange, error) {
	t, s := r.target, &r.spot
	if s.set.Type.Table == nil || s.nowhere {
		return r.nothing()
	}
	x := &dialect.Exchange{Reply: r.reply}
	switch {
	case t.count:
		r.final = len(r.ops)
		r.ops = append(r.ops, r.counting())
	case r.query.apply != nil:
		r.final = len(r.ops)
		r.ops = append(r.ops, r.aggregating())
	case s.many:
		if err := r.listing(); err != nil {
			return nil, err
		}
	default:
		r.tests = append(r.tests, test{len(r.ops), s.set, r.checked()})
		r.final = len(r.ops)
		r.ops = append(r.ops, s.op(r.shape.paths))
		r.foresee()
	}
	x.Ops = r.ops
	if r.shape != nil && len(r.query.expand) > 0 {
		x.Next = r.gather
	}
	return x, nil
}

// conditions are what the address and the options ask of a collection, without the token of a page.
func (r *reading) conditions() *record.Expr {
	return record.AllOf(r.spot.where(), r.target.filter, r.query.filter)
}

func (r *reading) counting() record.Op {
	return record.Op{Verb: record.Aggregate, Table: r.set.Type.Table.Name, Query: &record.Query{
		Where: r.conditions(), Aggs: []record.Agg{{Func: record.Count}}, Limit: -1,
	}}
}

// listing adds the op that reads the collection, and one that counts it if this is not its first page: what comes before a page
// counts too.
func (r *reading) listing() error {
	qy := r.query
	list := &record.Query{Where: r.conditions(), Sort: r.order, Offset: qy.skip, Limit: qy.top, Count: qy.count}
	if r.page != nil {
		list.Limit = r.page.left + 1
	}
	if qy.token != "" {
		values, err := readToken(r.set, r.order, qy.token)
		if err != nil {
			return err
		}
		list.Where = record.AllOf(list.Where, behind(r.order, values))
		if qy.count {
			list.Count = false
			r.total = len(r.ops)
			r.ops = append(r.ops, r.counting())
		}
	}
	r.final = len(r.ops)
	r.ops = append(r.ops, record.Op{Verb: record.List, Table: r.set.Type.Table.Name, Query: list, Return: r.shape.paths})
	return nil
}

// foresee reads along what the entity's address says enough of to be expanded: in the same unit.
func (r *reading) foresee() {
	for _, exp := range r.query.expand {
		values, ok := r.spot.values(exp.nav)
		for _, v := range values {
			ok = ok && v.Form != record.Ref
		}
		if !ok || len(values) == 0 {
			continue
		}
		g := &growth{exp: exp, op: -1, count: -1}
		g.known(r.request, values)
		r.ops = g.plan(r.ops)
		r.growth = append(r.growth, g)
	}
}

// gather takes the outcomes of the last round of the walk and plans the first level of what is expanded.
func (r *reading) gather(out []record.Outcome) (*dialect.Exchange, error) {
	if err := r.settle(out); err != nil {
		return nil, err
	}
	rows := r.root.rows.Len()
	if r.page != nil {
		rows = min(rows, int(r.page.left))
	}
	early := r.growth
	for _, g := range early {
		g.parent = r.root
		if err := g.ripen(out); err != nil {
			return nil, err
		}
	}
	rest := *r.query
	rest.expand = nil
	for _, exp := range r.query.expand {
		if !foreseen(early, exp) {
			rest.expand = append(rest.expand, exp)
		}
	}
	r.ops, r.growth = r.grow(nil, nil, r.root, rows, &rest)
	for _, g := range early {
		b := g.branch()
		r.ops, r.growth = r.grow(r.ops, r.growth, b.node, b.node.rows.Len(), g.query)
	}
	return r.level()
}

func foreseen(list []*growth, exp *expansion) bool {
	for _, g := range list {
		if g.exp == exp {
			return true
		}
	}
	return false
}

// level is the round that reads a level of what is expanded; nil when there is nothing more to read.
func (r *reading) level() (*dialect.Exchange, error) {
	for len(r.growth) > 0 {
		if len(r.ops) > 0 {
			return &dialect.Exchange{Ops: r.ops, Reply: r.reply, Next: r.ripen}, nil
		}
		if err := r.harvest(nil); err != nil {
			return nil, err
		}
	}
	most := int64(r.d.opt.MaxEntities)
	if n := r.root.weigh(r.root.rows.Len(), most); n > most {
		return nil, record.Errorf(record.TooLarge, "$expand", "the answer has more than %d entities; see odata.max_entities", most)
	}
	return nil, nil
}

// ripen takes the outcomes of a level.
func (r *reading) ripen(out []record.Outcome) (*dialect.Exchange, error) {
	if err := r.harvest(out); err != nil {
		return nil, err
	}
	return r.level()
}

// harvest makes branches of a level that was read and plans the next one.
func (r *reading) harvest(out []record.Outcome) error {
	done := r.growth
	r.ops, r.growth = nil, nil
	for _, g := range done {
		if err := g.ripen(out); err != nil {
			return err
		}
		b := g.branch()
		r.ops, r.growth = r.grow(r.ops, r.growth, b.node, b.node.rows.Len(), g.query)
	}
	return nil
}

// settle makes the root of the answer of the outcomes of the walk's last round.
func (r *reading) settle(out []record.Outcome) error {
	if err := r.check(out); err != nil {
		return err
	}
	o := &out[r.final]
	if o.Err != nil {
		return o.Err
	}
	r.count = o.Total
	if r.total >= 0 {
		if err := out[r.total].Err; err != nil {
			return err
		}
		r.count = out[r.total].Rows.At(0)[0].N
	}
	r.plant(o.Rows)
	return nil
}

// plant makes the root of rows; nil are none.
func (r *reading) plant(rows *record.Rows) {
	if r.shape == nil {
		return
	}
	if rows == nil {
		rows = record.NewRows(r.shape.paths, make([]record.Type, len(r.shape.paths)))
	}
	r.root = &node{shape: r.shape, rows: rows, page: r.page}
}

// nothing answers where nothing is to be read: what is not stored, or what no entity belongs to.
func (r *reading) nothing() (*dialect.Exchange, error) {
	t := r.target
	switch {
	case r.spot.many:
	case len(t.path) > 0 && t.kind == entityTarget && r.ver == v4:
		return &dialect.Exchange{Ops: r.ops, Reply: func(out []record.Outcome, a *wire.Answer) {
			if err := r.check(out); err != nil {
				r.fail(a, err)
				return
			}
			r.head(a, 204)
		}}, nil
	default:
		return nil, noEntity(r.spot.set)
	}
	return &dialect.Exchange{Ops: r.ops, Reply: func(out []record.Outcome, a *wire.Answer) {
		if err := r.check(out); err != nil {
			r.fail(a, err)
			return
		}
		if r.query.count {
			r.count = 0
		}
		switch {
		case t.count:
			r.number(a, 0)
		case r.query.apply != nil:
			r.applied(a, nil)
		default:
			r.plant(nil)
			r.collection(a)
		}
	}}, nil
}

// reply answers.
func (r *reading) reply(out []record.Outcome, a *wire.Answer) {
	if r.root == nil {
		if err := r.settle(out); err != nil {
			r.fail(a, err)
			return
		}
	}
	switch {
	case r.target.count:
		r.number(a, out[r.final].Rows.At(0)[0].N)
	case r.query.apply != nil:
		r.applied(a, out[r.final].Rows)
	case r.spot.many:
		r.collection(a)
	default:
		r.entity(a)
	}
}

// collection writes entities, or their addresses. If the rows end early by an error, an answer of which nothing was sent becomes the
// error's; else a.Err tells the server to break the connection, so that a cut feed cannot pass for a whole one.
func (r *reading) collection(a *wire.Answer) {
	headers, body := len(a.Header), len(a.Body)
	r.head(a, 200)
	if r.pref > 0 {
		a.Header.Add("Preference-Applied", "odata.maxpagesize="+strconv.FormatInt(r.pref, 10))
	}
	if r.target.links {
		r.format.links(r.request, a, r.root, false, r.count, r.next)
	} else {
		r.format.feed(r.request, a, r.root, r.count, r.next)
	}
	err := r.root.rows.Err()
	if err == nil {
		return
	}
	if r.sent {
		a.Err = err
		return
	}
	a.Header, a.Body = a.Header[:headers], a.Body[:body]
	r.fail(a, err)
}

// next is the address of the following page, "" on the last one.
func (r *reading) next() string {
	if r.page == nil || !r.page.more {
		return ""
	}
	return r.nextLink(r.page.last, r.top)
}

// entity writes one entity or what is wanted of it.
func (r *reading) entity(a *wire.Answer) {
	row := r.root.rows.At(0)
	if tag := r.tag(row); tag != "" && matches(r.call.Header.Get("If-None-Match"), tag) {
		r.head(a, 304)
		a.Header.Add("ETag", tag)
		return
	}
	switch {
	case r.target.kind == propertyTarget:
		r.property(a, row)
	case r.target.links:
		r.head(a, 200)
		r.format.links(r.request, a, r.root, true, -1, nil)
	default:
		r.replyEntry(a, 200, r.root, 0)
	}
}

// tag is the ETag of a row, "" if its type has none.
func (r *reading) tag(row []record.Value) string {
	if r.shape.etag < 0 {
		return ""
	}
	return etagOf(r.ver, r.set.Type.ETag, row[r.shape.etag])
}

// matches reports whether an If-None-Match names a tag. Weak tags are compared as they are: a W/ makes no difference.
func matches(header, tag string) bool {
	for more := header != ""; more; {
		var item string
		item, header, more = cutQuoted(header, ',')
		item = strings.TrimSpace(item)
		if item == "*" || strings.TrimPrefix(item, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// property writes a property or its raw value.
func (r *reading) property(a *wire.Answer, row []record.Value) {
	p := r.target.prop[len(r.target.prop)-1]
	values := make([]record.Value, 0, max(1, len(p.Parts)))
	if p.Kind == edm.ComplexKind {
		for _, part := range p.Parts {
			values = append(values, row[r.shape.column(columnOf(part))])
		}
	} else {
		values = append(values, row[r.shape.column(columnOf(p))])
	}
	v := shown(p, values[0])
	switch {
	case r.target.value && p.Kind == edm.ComplexKind:
		r.fail(a, record.Errorf(record.NoPath, "", "the complex property %s has no raw value", p.Name))
		return
	case p.Kind != edm.ComplexKind && v.IsNull() && r.ver == v4:
		r.head(a, 204)
		return
	case r.target.value && v.IsNull():
		r.fail(a, record.Errorf(record.NotFound, "", "the property %s is null", p.Name))
		return
	}
	r.head(a, 200)
	r.etagHeader(a, r.shape, row)
	if !r.target.value {
		r.format.property(r.request, a, r.set, p, values)
		return
	}
	if p.Kind == edm.Binary {
		a.Header.Add("Content-Type", "application/octet-stream")
		a.Body = append(a.Body, v.S...)
		return
	}
	a.Header.Add("Content-Type", contentText)
	a.Body = appendRaw(a.Body, r.ver, p, v)
}

// number writes a count.
func (r *reading) number(a *wire.Answer, n int64) {
	r.head(a, 200)
	a.Header.Add("Content-Type", contentText)
	a.Body = strconv.AppendInt(a.Body, n, 10)
}
