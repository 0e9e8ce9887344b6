package storetest

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Record is one record in memory: its values by field. A field that it does not name is null.
type Record map[string]record.Value

// World is tables in memory, against which databases and the engine are compared: slow, and meant to be obviously right.
// It follows record.Expr's documentation and shares no code with the compiler.
type World struct {
	Snapshot *catalog.Snapshot
	// Rows are the records of each hierarchy, by its root's name. On hierarchies the class field is set.
	Rows map[string][]Record
	// Guard hides records, as store.Read.Guard does; nil hides none.
	Guard func(*catalog.Table) *record.Expr
}

// free is the world as a guard sees it: nothing is hidden.
func (w *World) free() *World { return &World{Snapshot: w.Snapshot, Rows: w.Rows} }

// Visible are the records of t: those of its class or below that its guard lets pass.
func (w *World) Visible(t *catalog.Table) ([]Record, error) {
	var list []Record
	for _, r := range w.Rows[t.Root] {
		ok, err := w.visible(t, r)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, r)
		}
	}
	return list, nil
}

func (w *World) visible(t *catalog.Table, r Record) (bool, error) {
	if t.ClassField != "" && !slices.Contains(t.Classes, r[t.ClassField].S) {
		return false, nil
	}
	if w.Guard == nil {
		return true, nil
	}
	g := w.Guard(t)
	if g == nil {
		return true, nil
	}
	return w.free().Holds(t, r, g)
}

// typed is a value with its type; a constant has none of its own.
type typed struct {
	v     record.Value
	t     record.Type
	konst bool
}

func (x typed) null() bool { return x.v.IsNull() }

// Get is the value at a path of a record of t.
func (w *World) Get(t *catalog.Table, r Record, path string) (record.Value, error) {
	x, err := w.path(t, r, path)
	return x.v, err
}

func (w *World) path(t *catalog.Table, r Record, path string) (typed, error) {
	steps, err := w.Snapshot.Resolve(t, path)
	if err != nil {
		return typed{}, err
	}
	last := steps[len(steps)-1].Field
	for _, s := range steps[:len(steps)-1] {
		to, err := w.Snapshot.Table(s.Field.Reference)
		if err != nil {
			return typed{}, err
		}
		if r, err = w.find(to, r[s.Field.Name]); err != nil {
			return typed{}, err
		}
	}
	return typed{v: r[last.Name], t: last.Type}, nil
}

// find is the visible record of t with a key, nil if there is none.
func (w *World) find(t *catalog.Table, key record.Value) (Record, error) {
	if key.IsNull() {
		return nil, nil
	}
	for _, r := range w.Rows[t.Root] {
		if r[t.Key[0]].S == key.S {
			ok, err := w.visible(t, r)
			if err != nil || !ok {
				return nil, err
			}
			return r, nil
		}
	}
	return nil, nil
}

var errOperand = errors.New("an operand is missing or of a wrong type")

// Holds reports whether a record of t satisfies e; nil holds always.
func (w *World) Holds(t *catalog.Table, r Record, e *record.Expr) (bool, error) {
	if e == nil {
		return true, nil
	}
	switch e.Op {
	case record.Always:
		return true, nil
	case record.Never:
		return false, nil
	case record.And, record.Or:
		for _, a := range e.Args {
			ok, err := w.Holds(t, r, a)
			if err != nil || ok == (e.Op == record.Or) {
				return ok, err
			}
		}
		return e.Op == record.And, nil
	case record.Not:
		ok, err := w.Holds(t, r, e.Args[0])
		return !ok, err
	case record.Instance:
		class, err := w.Snapshot.Table(e.Value.S)
		if err != nil {
			return false, nil
		}
		own := t.Name
		if t.ClassField != "" {
			own = r[t.ClassField].S
		}
		return slices.Contains(class.Classes, own), nil
	case record.Related:
		return w.related(t, r, e.Rel)
	case record.Eq, record.Ne, record.Lt, record.Le, record.Gt, record.Ge:
		return w.compare(t, r, e)
	case record.In:
		x, err := w.eval(t, r, e.Args[0])
		if err != nil {
			return false, err
		}
		for _, v := range e.Values {
			ok, err := equal(x, typed{v: v, konst: true}, e.Fold)
			if err != nil || ok {
				return ok, err
			}
		}
		return false, nil
	case record.Contains, record.StartsWith, record.EndsWith:
		x, err := w.text(t, r, e, 0)
		if err != nil {
			return false, err
		}
		y, err := w.text(t, r, e, 1)
		if err != nil || x.null() || y.null() {
			return false, err
		}
		a, b := fold(x.v.S, e.Fold), fold(y.v.S, e.Fold)
		switch e.Op {
		case record.Contains:
			return strings.Contains(a, b), nil
		case record.StartsWith:
			return strings.HasPrefix(a, b), nil
		}
		return strings.HasSuffix(a, b), nil
	case record.IsEmpty:
		x, err := w.eval(t, r, e.Args[0])
		return x.v.Empty(), err
	}
	x, err := w.eval(t, r, e)
	return x.v.Truth(), err
}

func (w *World) compare(t *catalog.Table, r Record, e *record.Expr) (bool, error) {
	a, err := w.eval(t, r, e.Args[0])
	if err != nil {
		return false, err
	}
	b, err := w.eval(t, r, e.Args[1])
	if err != nil {
		return false, err
	}
	switch e.Op {
	case record.Eq:
		return equal(a, b, e.Fold)
	case record.Ne:
		ok, err := equal(a, b, e.Fold)
		return !ok, err
	}
	if a.null() || b.null() {
		return false, nil
	}
	n, err := order(a, b, e.Fold)
	return compares(e.Op, n), err
}

func compares(op record.ExprOp, n int) bool {
	switch op {
	case record.Eq:
		return n == 0
	case record.Ne:
		return n != 0
	case record.Lt:
		return n < 0
	case record.Le:
		return n <= 0
	case record.Gt:
		return n > 0
	case record.Ge:
		return n >= 0
	}
	return false
}

func equal(a, b typed, folded bool) (bool, error) {
	if a.null() || b.null() {
		return a.null() && b.null(), nil
	}
	n, err := order(a, b, folded)
	return n == 0, err
}

func fold(s string, folded bool) string {
	if !folded {
		return s
	}
	return ascii(s, 'A', 'Z', 'a'-'A')
}

// ascii moves the ASCII letters from first to last by d.
func ascii(s string, first, last rune, d rune) string {
	return strings.Map(func(c rune) rune {
		if c >= first && c <= last {
			return c + d
		}
		return c
	}, s)
}

func isText(t record.Type) bool { return t.Textual() && t != record.TypeDate }

func isNumber(t record.Type) bool {
	return t == record.TypeInteger || t == record.TypeDuration || t == record.TypeFloat || t == record.TypeDecimal
}

// own is the type that a constant has by its form.
func own(v record.Value) record.Type {
	switch v.Form {
	case record.Bool:
		return record.TypeBoolean
	case record.Int:
		return record.TypeInteger
	case record.Num:
		return record.TypeFloat
	case record.Time:
		return record.TypeDateTime
	}
	return record.TypeString
}

// beside gives a constant the type of what it is compared with.
func beside(x typed, other record.Type) (typed, error) {
	t := own(x.v)
	if isNumber(t) && isNumber(other) || t == other || isText(t) && isText(other) {
		if other == record.TypeDecimal {
			x.v = record.TextValue(rat(x).FloatString(12))
			t = other
		}
		return typed{v: x.v, t: t}, nil
	}
	if isText(other) {
		return typed{v: record.TextValue(x.v.Text()), t: other}, nil
	}
	v, err := record.Parse(other, x.v.Text())
	return typed{v: v, t: other}, err
}

func rat(x typed) *big.Rat {
	switch x.v.Form {
	case record.Int:
		return new(big.Rat).SetInt64(x.v.N)
	case record.Num:
		return new(big.Rat).SetFloat64(x.v.Float())
	}
	r, ok := new(big.Rat).SetString(x.v.S)
	if !ok {
		return new(big.Rat)
	}
	return r
}

// order compares two values that are not null.
func order(a, b typed, folded bool) (int, error) {
	var err error
	switch {
	case a.konst && b.konst:
		a.t, b.t = own(a.v), own(b.v)
	case a.konst:
		a, err = beside(a, b.t)
	case b.konst:
		b, err = beside(b, a.t)
	}
	if err != nil {
		return 0, err
	}
	day := func(x *typed) {
		t, _ := time.Parse("2006-01-02", x.v.S)
		x.v, x.t = record.TimeValue(t), record.TypeDateTime
	}
	switch {
	case a.t == record.TypeDate && b.t == record.TypeDateTime:
		day(&a)
	case b.t == record.TypeDate && a.t == record.TypeDateTime:
		day(&b)
	}
	switch {
	case isText(a.t) && isText(b.t):
		return strings.Compare(fold(a.v.S, folded), fold(b.v.S, folded)), nil
	case a.t == record.TypeDecimal && b.t == record.TypeDecimal:
		return rat(a).Cmp(rat(b)), nil
	case isNumber(a.t) && isNumber(b.t):
		if a.v.Form == record.Int && b.v.Form == record.Int {
			return cmpInt(a.v.N, b.v.N), nil
		}
		switch x, y := a.v.Float(), b.v.Float(); {
		case x < y:
			return -1, nil
		case x > y:
			return 1, nil
		}
		return 0, nil
	case a.t == b.t && (a.v.Form == record.Bool || a.v.Form == record.Time):
		return cmpInt(a.v.N, b.v.N), nil
	}
	return strings.Compare(a.v.Text(), b.v.Text()), nil
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (w *World) related(t *catalog.Table, r Record, rel *record.Relation) (bool, error) {
	_, rows, err := w.belonging(t, r, rel)
	return err == nil && compares(rel.Cmp, cmpInt(int64(len(rows)), rel.Count)), err
}

// belonging are the rows of another table that a relation names.
func (w *World) belonging(t *catalog.Table, r Record, rel *record.Relation) (to *catalog.Table, list []Record, err error) {
	if to, err = w.Snapshot.Table(rel.Table); err != nil {
		return nil, nil, err
	}
	rows, err := w.Visible(to)
	if err != nil {
		return nil, nil, err
	}
	for _, other := range rows {
		ok := true
		for _, tie := range append([]record.Tie{{Field: rel.Field, Own: rel.Own}}, rel.More...) {
			mine, err := w.path(t, r, tie.Own)
			if err != nil {
				return nil, nil, err
			}
			theirs, err := w.path(to, other, tie.Field)
			if err != nil {
				return nil, nil, err
			}
			if mine.null() || theirs.null() {
				ok = false
				continue
			}
			d, err := order(mine, theirs, false)
			if err != nil {
				return nil, nil, err
			}
			ok = ok && d == 0
		}
		if !ok {
			continue
		}
		if ok, err = w.Holds(to, other, rel.Where); err != nil {
			return nil, nil, err
		}
		if ok {
			list = append(list, other)
		}
	}
	return to, list, nil
}

// via is a value of the first of the rows that a relation names.
func (w *World) via(t *catalog.Table, r Record, rel *record.Relation) (typed, error) {
	to, rows, err := w.belonging(t, r, rel)
	if err != nil || len(rows) == 0 {
		return typed{}, err
	}
	first := slices.MinFunc(rows, func(a, b Record) int {
		for _, k := range to.Key {
			if n, _ := order(typed{v: a[k], t: to.Field(k).Type}, typed{v: b[k], t: to.Field(k).Type}, false); n != 0 {
				return n
			}
		}
		return 0
	})
	x, err := w.eval(to, first, rel.Value)
	if x.konst {
		x = typed{v: x.v, t: own(x.v)}
	}
	return x, err
}

// text is operand i as text.
func (w *World) text(t *catalog.Table, r Record, e *record.Expr, i int) (typed, error) {
	if i >= len(e.Args) {
		return typed{}, errOperand
	}
	x, err := w.eval(t, r, e.Args[i])
	if err != nil || x.null() {
		return x, err
	}
	return typed{v: record.TextValue(x.v.Text()), t: record.TypeString}, nil
}

// number is operand i as a number, a decimal as floating-point.
func (w *World) number(t *catalog.Table, r Record, e *record.Expr, i int) (typed, error) {
	if i >= len(e.Args) {
		return typed{}, errOperand
	}
	x, err := w.eval(t, r, e.Args[i])
	if err != nil || x.null() {
		return x, err
	}
	switch x.v.Form {
	case record.Int, record.Num:
		return x, nil
	case record.Text:
		if x.konst || x.t == record.TypeDecimal {
			return typed{v: record.NumValue(x.v.Float()), t: record.TypeFloat}, nil
		}
	}
	return typed{}, errOperand
}

// eval is the value of e for a record of t.
func (w *World) eval(t *catalog.Table, r Record, e *record.Expr) (typed, error) {
	switch e.Op {
	case record.Const:
		return typed{v: e.Value, konst: true}, nil
	case record.Field:
		return w.path(t, r, e.Path)
	case record.Lower, record.Upper, record.Length, record.Trim, record.Concat, record.Substring, record.IndexOf, record.Replace:
		return w.texts(t, r, e)
	case record.Add, record.Sub, record.Mul, record.Div, record.Mod:
		return w.arithmetic(t, r, e)
	case record.Neg, record.Round, record.Floor, record.Ceiling:
		x, err := w.number(t, r, e, 0)
		if err != nil || x.null() {
			return x, err
		}
		if x.v.Form == record.Int {
			if e.Op == record.Neg {
				return integer(-x.v.N), nil
			}
			return x, nil
		}
		return float(map[record.ExprOp]func(float64) float64{
			record.Neg: func(f float64) float64 { return -f }, record.Round: math.Round,
			record.Floor: math.Floor, record.Ceiling: math.Ceil,
		}[e.Op](x.v.Float())), nil
	case record.Via:
		return w.via(t, r, e.Rel)
	case record.Year, record.Month, record.Day, record.Hour, record.Minute, record.Second, record.Weekday, record.Quarter, record.Fraction:
		x, err := w.eval(t, r, e.Args[0])
		if err != nil || x.null() {
			return typed{t: record.TypeInteger}, err
		}
		at := x.v.Time()
		if x.v.Form == record.Text {
			var ok bool
			if at, ok = record.ParseTime(x.v.S); !ok {
				return typed{}, errOperand
			}
		}
		if e.Op == record.Fraction {
			return float(float64(at.Nanosecond()/1000) / 1e6), nil
		}
		return integer(int64(part(e.Op, at))), nil
	}
	ok, err := w.Holds(t, r, e)
	return typed{v: record.BoolValue(ok), t: record.TypeBoolean}, err
}

func part(op record.ExprOp, at time.Time) int {
	switch op {
	case record.Year:
		return at.Year()
	case record.Month:
		return int(at.Month())
	case record.Day:
		return at.Day()
	case record.Hour:
		return at.Hour()
	case record.Minute:
		return at.Minute()
	case record.Second:
		return at.Second()
	case record.Quarter:
		return (int(at.Month()) + 2) / 3
	}
	return (int(at.Weekday())+6)%7 + 1
}

func integer(n int64) typed { return typed{v: record.IntValue(n), t: record.TypeInteger} }
func float(f float64) typed { return typed{v: record.NumValue(f), t: record.TypeFloat} }
func str(s string) typed    { return typed{v: record.TextValue(s), t: record.TypeString} }

func (w *World) texts(t *catalog.Table, r Record, e *record.Expr) (typed, error) {
	n := len(e.Args)
	if e.Op == record.Substring {
		n = 1
	}
	list := make([]string, n)
	for i := range list {
		x, err := w.text(t, r, e, i)
		if err != nil || x.null() {
			return typed{t: record.TypeString}, err
		}
		list[i] = x.v.S
	}
	switch e.Op {
	case record.Lower:
		return str(ascii(list[0], 'A', 'Z', 'a'-'A')), nil
	case record.Upper:
		return str(ascii(list[0], 'a', 'z', 'A'-'a')), nil
	case record.Length:
		return integer(int64(len([]rune(list[0])))), nil
	case record.Trim:
		return str(strings.Trim(list[0], " ")), nil
	case record.Concat:
		return str(strings.Join(list, "")), nil
	case record.IndexOf:
		i := strings.Index(list[0], list[1])
		if i > 0 {
			i = len([]rune(list[0][:i]))
		}
		return integer(int64(i)), nil
	case record.Replace:
		if list[1] == "" {
			return str(list[0]), nil
		}
		return str(strings.ReplaceAll(list[0], list[1], list[2])), nil
	}
	runes := []rune(list[0])
	for i := 1; i < len(e.Args); i++ {
		x, err := w.number(t, r, e, i)
		if err != nil || x.null() {
			return typed{t: record.TypeString}, err
		}
		at := int(min(max(x.v.N, 0), int64(len(runes))))
		if i == 1 {
			runes = runes[at:]
		} else {
			runes = runes[:at]
		}
	}
	return str(string(runes)), nil
}

// moment is x as a point in time, if it is one.
func moment(x typed) (int64, bool) {
	switch {
	case x.v.Form == record.Time:
		return x.v.N, true
	case x.t == record.TypeDate && !x.konst:
		at, _ := time.Parse("2006-01-02", x.v.S)
		return at.UnixMicro(), true
	}
	return 0, false
}

func (w *World) arithmetic(t *catalog.Table, r Record, e *record.Expr) (typed, error) {
	a, err := w.eval(t, r, e.Args[0])
	if err != nil {
		return typed{}, err
	}
	b, err := w.eval(t, r, e.Args[1])
	if err != nil {
		return typed{}, err
	}
	if a.null() || b.null() {
		return typed{}, nil
	}
	if ta, ok := moment(a); ok {
		if tb, ok := moment(b); ok {
			return float(float64(ta-tb) / 1e6), nil
		}
		d := int64(math.Round(b.v.Float() * 1e6))
		if e.Op == record.Sub {
			d = -d
		}
		return typed{v: record.Value{Form: record.Time, N: ta + d}, t: record.TypeDateTime}, nil
	}
	if tb, ok := moment(b); ok {
		return typed{v: record.Value{Form: record.Time, N: tb + int64(math.Round(a.v.Float()*1e6))}, t: record.TypeDateTime}, nil
	}
	if a, err = w.number(t, r, e, 0); err != nil {
		return typed{}, err
	}
	if b, err = w.number(t, r, e, 1); err != nil {
		return typed{}, err
	}
	if a.v.Form == record.Int && b.v.Form == record.Int {
		x, y := a.v.N, b.v.N
		switch e.Op {
		case record.Add:
			return integer(x + y), nil
		case record.Sub:
			return integer(x - y), nil
		case record.Mul:
			return integer(x * y), nil
		}
		if y == 0 {
			return typed{t: record.TypeInteger}, nil
		}
		if e.Op == record.Div {
			return integer(x / y), nil
		}
		return integer(x % y), nil
	}
	x, y := a.v.Float(), b.v.Float()
	switch e.Op {
	case record.Add:
		return float(x + y), nil
	case record.Sub:
		return float(x - y), nil
	case record.Mul:
		return float(x * y), nil
	}
	if y == 0 {
		return typed{t: record.TypeFloat}, nil
	}
	if e.Op == record.Div {
		return float(x / y), nil
	}
	return float(x - y*math.Trunc(x/y)), nil
}

// Read is the rows that a read of q returns, and the number of all matching records if the query asks for it, else -1.
// Aggregates come in the order of Sort and then of their groups. The guard is the world's.
func (w *World) Read(q *store.Read) ([][]record.Value, int64, error) {
	all, err := w.Visible(q.Table)
	if err != nil {
		return nil, 0, err
	}
	query := q.Query
	if query == nil {
		query = &record.Query{Limit: -1}
	}
	var kept []Record
	for _, r := range all {
		if q.Keys != nil && !slices.ContainsFunc(q.Keys, func(k []record.Value) bool { return hasKey(q.Table, r, k) }) {
			continue
		}
		ok, err := w.Holds(q.Table, r, query.Where)
		if err != nil {
			return nil, 0, err
		}
		if ok {
			kept = append(kept, r)
		}
	}
	var rows [][]record.Value
	if len(query.Group)+len(query.Aggs) > 0 {
		rows, err = w.aggregate(q.Table, kept, query)
	} else {
		rows, err = w.list(q.Table, kept, q.Fields, query.Sort)
	}
	if err != nil {
		return nil, 0, err
	}
	total := int64(-1)
	if query.Count {
		total = int64(len(rows))
	}
	if query.Each != nil {
		if rows, err = w.each(q.Table, kept, rows, query.Each); err != nil {
			return nil, 0, err
		}
	}
	rows = rows[min(max(query.Offset, 0), int64(len(rows))):]
	if query.Limit >= 0 {
		rows = rows[:min(query.Limit, int64(len(rows)))]
	}
	return rows, total, nil
}

// each drops the rows beyond the bound; kept are the records that they show, in the same order.
func (w *World) each(t *catalog.Table, kept []Record, rows [][]record.Value, e *record.Each) ([][]record.Value, error) {
	seen := map[string]int64{}
	var left [][]record.Value
	for i, r := range kept {
		group := ""
		for _, p := range e.Paths {
			x, err := w.path(t, r, p)
			if err != nil {
				return nil, err
			}
			if x.t == record.TypeDecimal && !x.null() {
				f, _ := new(big.Rat).SetString(x.v.S)
				x.v.S = f.RatString()
			}
			group += fmt.Sprintf("%d:%q,", x.v.Form, x.v.Text())
		}
		seen[group]++
		if n := seen[group]; n > e.Offset && (e.Limit < 0 || n <= e.Offset+e.Limit) {
			left = append(left, rows[i])
		}
	}
	return left, nil
}

func hasKey(t *catalog.Table, r Record, key []record.Value) bool {
	for i, k := range t.Key {
		if r[k].Text() != key[i].Text() {
			return false
		}
	}
	return true
}

func (w *World) list(t *catalog.Table, kept []Record, fields []string, sort []record.Sort) ([][]record.Value, error) {
	keys := slices.Clone(sort)
	for _, k := range t.Key {
		keys = append(keys, record.Sort{Path: k})
	}
	var fault error
	slices.SortStableFunc(kept, func(a, b Record) int {
		for _, k := range keys {
			x, err := w.path(t, a, k.Path)
			if err != nil {
				fault = err
			}
			y, _ := w.path(t, b, k.Path)
			if n := sorted(x, y, k.Desc); n != 0 {
				return n
			}
		}
		return 0
	})
	rows := make([][]record.Value, len(kept))
	for i, r := range kept {
		for _, f := range fields {
			v, err := w.Get(t, r, f)
			if err != nil {
				return nil, err
			}
			rows[i] = append(rows[i], v)
		}
	}
	return rows, fault
}

// sorted orders two values, nulls first, or all the other way around.
func sorted(a, b typed, desc bool) int {
	n := 0
	switch {
	case a.null() && b.null():
	case a.null():
		n = -1
	case b.null():
		n = 1
	default:
		n, _ = order(a, b, false)
	}
	if desc {
		return -n
	}
	return n
}

// group is the records that have equal values at the group's paths.
type group struct {
	by   []typed
	rows []Record
}

func (w *World) aggregate(t *catalog.Table, kept []Record, q *record.Query) ([][]record.Value, error) {
	var groups []*group
	if len(q.Group) == 0 {
		groups = []*group{{}}
	}
	for _, r := range kept {
		by := make([]typed, len(q.Group))
		for i, path := range q.Group {
			x, err := w.path(t, r, path)
			if err != nil {
				return nil, err
			}
			by[i] = x
		}
		at := slices.IndexFunc(groups, func(g *group) bool {
			for i := range by {
				if sorted(g.by[i], by[i], false) != 0 {
					return false
				}
			}
			return true
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{by: by})
		}
		groups[at].rows = append(groups[at].rows, r)
	}
	type result struct {
		g    *group
		aggs []typed
		sort []typed
	}
	var results []result
	for _, g := range groups {
		res := result{g: g}
		keep := true
		for _, h := range q.Having {
			x, err := w.agg(t, g.rows, h.Agg)
			if err != nil {
				return nil, err
			}
			y := typed{v: h.Value, konst: true}
			if h.Cmp == record.Eq || h.Cmp == record.Ne {
				ok, err := equal(x, y, false)
				if err != nil {
					return nil, err
				}
				keep = keep && ok == (h.Cmp == record.Eq)
			} else if x.null() || y.null() {
				keep = false
			} else {
				n, err := order(x, y, false)
				if err != nil {
					return nil, err
				}
				keep = keep && compares(h.Cmp, n)
			}
		}
		if !keep {
			continue
		}
		for _, a := range q.Aggs {
			x, err := w.agg(t, g.rows, a)
			if err != nil {
				return nil, err
			}
			res.aggs = append(res.aggs, x)
		}
		for _, s := range q.Sort {
			if s.Agg == nil {
				i := slices.Index(q.Group, s.Path)
				if i < 0 {
					return nil, fmt.Errorf("sort by %s, which is no group", s.Path)
				}
				res.sort = append(res.sort, g.by[i])
				continue
			}
			x, err := w.agg(t, g.rows, *s.Agg)
			if err != nil {
				return nil, err
			}
			res.sort = append(res.sort, x)
		}
		results = append(results, res)
	}
	slices.SortStableFunc(results, func(a, b result) int {
		for i := range a.sort {
			if n := sorted(a.sort[i], b.sort[i], q.Sort[i].Desc); n != 0 {
				return n
			}
		}
		for i := range a.g.by {
			if n := sorted(a.g.by[i], b.g.by[i], false); n != 0 {
				return n
			}
		}
		return 0
	})
	rows := make([][]record.Value, len(results))
	for i, res := range results {
		for _, x := range append(slices.Clone(res.g.by), res.aggs...) {
			rows[i] = append(rows[i], x.v)
		}
	}
	return rows, nil
}

// agg is one aggregate over records.
func (w *World) agg(t *catalog.Table, rows []Record, a record.Agg) (typed, error) {
	if a.Path == "" {
		return integer(int64(len(rows))), nil
	}
	var list []typed
	for _, r := range rows {
		x, err := w.path(t, r, a.Path)
		if err != nil {
			return typed{}, err
		}
		if !x.null() {
			list = append(list, x)
		}
	}
	switch a.Func {
	case record.Count:
		return integer(int64(len(list))), nil
	case record.CountDistinct:
		slices.SortFunc(list, func(x, y typed) int { return sorted(x, y, false) })
		list = slices.CompactFunc(list, func(x, y typed) bool { return sorted(x, y, false) == 0 })
		return integer(int64(len(list))), nil
	}
	if len(list) == 0 {
		steps, err := w.Snapshot.Resolve(t, a.Path)
		if err != nil {
			return typed{}, err
		}
		return typed{t: steps[len(steps)-1].Field.Type}, nil
	}
	switch a.Func {
	case record.Min:
		return slices.MinFunc(list, func(x, y typed) int { return sorted(x, y, false) }), nil
	case record.Max:
		return slices.MaxFunc(list, func(x, y typed) int { return sorted(x, y, false) }), nil
	}
	sum, exact, places := 0.0, new(big.Rat), 0
	var whole int64
	for _, x := range list {
		sum += x.v.Float()
		whole += x.v.N
		exact.Add(exact, rat(x))
		if _, frac, ok := strings.Cut(x.v.S, "."); ok {
			places = max(places, len(frac))
		}
	}
	switch t := list[0].t; {
	case a.Func == record.Avg:
		return float(sum / float64(len(list))), nil
	case t == record.TypeDecimal:
		return typed{v: record.TextValue(exact.FloatString(places)), t: t}, nil
	case t == record.TypeFloat:
		return float(sum), nil
	default:
		return typed{v: record.IntValue(whole), t: t}, nil
	}
}
