package now

import (
	"slices"
	"strconv"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
)

// operator is an operator of encoded queries.
type operator uint8

const (
	opEq operator = iota + 1
	opNe
	opLt
	opLe
	opGt
	opGe
	opLike
	opNotLike
	opStarts
	opEnds
	opIn
	opNotIn
	opEmpty
	opNotEmpty
	opAnything
	opBetween
	opSame
	opNotSame
	opGtField
	opLtField
	opGeField
	opLeField
	opOn
	opNotOn
	opRelGt
	opRelLt
	opRelGe
	opRelLe
	opRelEe
	opMoreThan
	opLessThan
	opDatePart
	opDynamic
	opInHierarchy
	opInHierarchyDynamic
	opInstanceOf
	opNoRead // exists, but says nothing about a stored record
)

// operatorTexts are the spellings, as documented: they are case-sensitive and two of them hold a blank.
var operatorTexts = map[string]operator{
	"=": opEq, "!=": opNe, "<": opLt, "<=": opLe, ">": opGt, ">=": opGe,
	"LIKE": opLike, "*": opLike, "CONTAINS": opLike,
	"NOT LIKE": opNotLike, "NOTLIKE": opNotLike, "!*": opNotLike, "DOES NOT CONTAIN": opNotLike,
	"STARTSWITH": opStarts, "ENDSWITH": opEnds, "%": opEnds,
	"IN": opIn, "NOT IN": opNotIn, "NOTIN": opNotIn,
	"ISEMPTY": opEmpty, "EMPTYSTRING": opEmpty, "ISNOTEMPTY": opNotEmpty, "ANYTHING": opAnything,
	"BETWEEN": opBetween, "SAMEAS": opSame, "NSAMEAS": opNotSame,
	"GT_FIELD": opGtField, "LT_FIELD": opLtField, "GT_OR_EQUALS_FIELD": opGeField, "LT_OR_EQUALS_FIELD": opLeField,
	"ON": opOn, "NOTON": opNotOn,
	"RELATIVEGT": opRelGt, "RELATIVELT": opRelLt, "RELATIVEGE": opRelGe, "RELATIVELE": opRelLe, "RELATIVEEE": opRelEe,
	"MORETHAN": opMoreThan, "LESSTHAN": opLessThan, "DATEPART": opDatePart, "DYNAMIC": opDynamic,
	"IN_HIERARCHY": opInHierarchy, "IN_HIERARCHY_DYNAMIC": opInHierarchyDynamic, "INSTANCEOF": opInstanceOf,
	"VALCHANGES": opNoRead, "CHANGESFROM": opNoRead, "CHANGESTO": opNoRead, "DOESNOTHAVE": opNoRead, "EXCLUDING": opNoRead,
}

type operatorText struct {
	text string
	op   operator
}

// operatorsBy are the spellings by first character, longer ones first.
var operatorsBy = func() (by [128][]operatorText) {
	for text, op := range operatorTexts {
		by[text[0]] = append(by[text[0]], operatorText{text, op})
	}
	for _, list := range by {
		slices.SortFunc(list, func(a, b operatorText) int { return len(b.text) - len(a.text) })
	}
	return by
}()

func operatorAt(s string) (string, operator) {
	if s == "" || s[0] >= 128 {
		return "", 0
	}
	for _, o := range operatorsBy[s[0]] {
		if strings.HasPrefix(s, o.text) {
			return o.text, o.op
		}
	}
	return "", 0
}

// textQueries are the names that full-text conditions have in place of a field, and whether one of the words is enough.
var textQueries = map[string]bool{"123TEXTQUERY321": false, "IR_AND_QUERY": false, "IR_OR_QUERY": true}

// maxPath is how far the operator of a condition may be from its start: fields of 80 characters, walked.
const maxPath = (catalog.MaxWalk + 1) * 81

// split finds field, operator and value of a condition: the longest operator at the earliest position after a field name.
// Since an operator could be part of a name in capitals, a position where what stands before is a field of the table wins;
// steps is nil if there is none.
func (p *queryParser) split(term string, t *catalog.Table) (path string, op operator, value string, steps []catalog.Step) {
	for i := 0; i < len(term) && i < maxPath; i++ {
		if i > 0 {
			if text, o := operatorAt(term[i:]); o != 0 {
				if s, err := p.q.snap.Resolve(t, term[:i]); err == nil {
					return term[:i], o, term[i+len(text):], s
				}
				if op == 0 {
					path, op, value = term[:i], o, term[i+len(text):]
				}
			}
		}
		if c := term[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && c != '_' && c != '.' {
			break
		}
	}
	return path, op, value, nil
}

// condition reads one condition; nil if it is invalid.
func (p *queryParser) condition(term string, t *catalog.Table) *record.Expr {
	path, op, value, steps := p.split(term, t)
	if op == 0 {
		return nil
	}
	if steps == nil {
		if any, ok := textQueries[path]; ok && op == opEq {
			return p.words(value, any, t)
		}
		return nil
	}
	last := steps[len(steps)-1]
	if !comparable(last.Field) {
		return nil
	}
	p.out.walks.add(path)
	c := &comparison{p: p, path: path, table: t, owner: last.Table, field: last.Field}
	return c.expr(op, value)
}

// words finds records that hold every word, or any of them, in some text field.
func (p *queryParser) words(value string, any bool, t *catalog.Table) *record.Expr {
	words := strings.Fields(value)
	if len(words) == 0 {
		return nil
	}
	var all []*record.Expr
	for _, w := range words {
		var fields []*record.Expr
		for _, f := range t.Fields {
			if f.Type == record.TypeString && len(f.Choices) == 0 && !f.Audit && len(f.Access.Read) == 0 {
				fields = append(fields, &record.Expr{Op: record.Contains, Fold: true, Args: []*record.Expr{record.F(f.Name), record.C(record.TextValue(w))}})
			}
		}
		if p.terms += len(fields); p.terms > p.q.d.opt.MaxConditions {
			return nil // finish makes it an error
		}
		all = append(all, record.AnyOf(fields...))
	}
	if any {
		return record.AnyOf(all...)
	}
	return record.AllOf(all...)
}

// comparison makes the expression of one condition on one field.
type comparison struct {
	p     *queryParser
	path  string
	table *catalog.Table // that the query is over
	owner *catalog.Table // that the field is of
	field *catalog.Field
}

// expr is the condition; nil if the value does not fit the field or the operator says nothing about it.
func (c *comparison) expr(op operator, value string) *record.Expr {
	switch op {
	case opEq:
		return c.equal(value)
	case opNe:
		return negate(c.equal(value))
	case opLt:
		return c.compare(record.Lt, value)
	case opLe:
		return c.compare(record.Le, value)
	case opGt:
		return c.compare(record.Gt, value)
	case opGe:
		return c.compare(record.Ge, value)
	case opLike:
		return c.text(record.Contains, value)
	case opNotLike:
		return negate(c.text(record.Contains, value))
	case opStarts:
		return c.text(record.StartsWith, value)
	case opEnds:
		return c.text(record.EndsWith, value)
	case opIn:
		return c.in(value)
	case opNotIn:
		return negate(c.in(value))
	case opEmpty:
		return c.empty()
	case opNotEmpty:
		return negate(c.empty())
	case opAnything:
		return &record.Expr{Op: record.Always}
	case opBetween:
		low, high, _ := strings.Cut(value, "@")
		return both(c.compare(record.Ge, low), c.compare(record.Le, high))
	case opSame:
		return c.same(value)
	case opNotSame:
		return negate(c.same(value))
	case opGtField:
		return c.withField(record.Gt, value)
	case opLtField:
		return c.withField(record.Lt, value)
	case opGeField:
		return c.withField(record.Ge, value)
	case opLeField:
		return c.withField(record.Le, value)
	case opOn:
		return c.on(value)
	case opNotOn:
		return negate(c.on(value))
	case opRelGt, opRelLt, opRelGe, opRelLe, opRelEe:
		return c.relative(op, value)
	case opMoreThan, opLessThan:
		return c.distance(op, value)
	case opDatePart:
		return c.datePart(value)
	case opDynamic:
		if key := c.dynamic(value); key != "" {
			return c.equal(key)
		}
	case opInHierarchy:
		return c.inHierarchy(value)
	case opInHierarchyDynamic:
		if key := c.dynamic(value); key != "" {
			return c.inHierarchy(key)
		}
	case opInstanceOf:
		return c.instanceOf(value)
	}
	return nil
}

func negate(e *record.Expr) *record.Expr {
	if e == nil {
		return nil
	}
	switch {
	case e.Op == record.Eq:
		n := *e
		n.Op = record.Ne
		return &n
	case e.Op == record.Not:
		return e.Args[0]
	}
	return record.Negate(e)
}

// both is a AND b, nil if one is invalid.
func both(a, b *record.Expr) *record.Expr {
	if a == nil || b == nil {
		return nil
	}
	return record.AllOf(a, b)
}

func (c *comparison) empty() *record.Expr {
	return &record.Expr{Op: record.IsEmpty, Args: []*record.Expr{record.F(c.path)}}
}

// fold reports whether values of the field are compared without regard to case. Keys, ids and names of tables never are.
func (c *comparison) fold() bool {
	return !c.p.q.d.opt.CaseSensitive && c.field.Name != c.owner.ClassField && (c.field.Type == record.TypeString || c.field.Type == record.TypeJournal)
}

func (c *comparison) make(op record.ExprOp, v record.Value) *record.Expr {
	return &record.Expr{Op: op, Fold: c.fold(), Args: []*record.Expr{record.F(c.path), record.C(v)}}
}

func (c *comparison) equal(text string) *record.Expr {
	if text == "" {
		return c.empty()
	}
	v, ok := c.value(text)
	if !ok {
		return nil
	}
	if v.IsNull() {
		return c.empty()
	}
	if c.fold() && c.indexed() {
		return c.among(spellings(v))
	}
	return c.make(record.Eq, v)
}

// indexed reports whether an index of the table begins with the field. Equality without regard to case would not use it:
// a search for one number among a million would read them all. Such fields hold numbers, logins and ids of other systems,
// so the value is looked for as given, in capitals and in small letters instead.
func (c *comparison) indexed() bool {
	if c.field.Unique {
		return true
	}
	for _, list := range [][][]string{c.owner.Indexes, c.owner.Uniques} {
		for _, fields := range list {
			if fields[0] == c.field.Name {
				return true
			}
		}
	}
	return false
}

// spellings are a text as given, in capitals and in small letters, each once.
func spellings(v record.Value) []record.Value {
	list := []record.Value{v}
	for _, s := range []string{strings.ToUpper(v.S), strings.ToLower(v.S)} {
		if s != v.S {
			list = append(list, record.TextValue(s))
		}
	}
	return list
}

// among is the condition that the field has exactly one of the values.
func (c *comparison) among(values []record.Value) *record.Expr {
	if len(values) == 1 {
		return record.Compare(record.Eq, record.F(c.path), record.C(values[0]))
	}
	return &record.Expr{Op: record.In, Args: []*record.Expr{record.F(c.path)}, Values: values}
}

func (c *comparison) compare(op record.ExprOp, text string) *record.Expr {
	v, ok := c.value(text)
	if !ok || v.IsNull() {
		return nil
	}
	return c.make(op, v)
}

// value reads a value of the field; false if the text does not fit.
func (c *comparison) value(text string) (record.Value, bool) {
	return c.p.value(c.field, text)
}

func (p *queryParser) value(f *catalog.Field, text string) (record.Value, bool) {
	if call, ok := strings.CutPrefix(text, "javascript:"); ok {
		return p.evaluate(f, call)
	}
	if f.Type == record.TypeReference {
		text = spellReference(p.q.snap, f, text)
	}
	v, err := record.Parse(f.Type, spellID(f.Type, text))
	return v, err == nil
}

// evaluate runs a whitelisted call for its value.
func (p *queryParser) evaluate(f *catalog.Field, call string) (record.Value, bool) {
	switch name, args, ok := parseCall(call); {
	case !ok:
		return record.Value{}, false
	case len(args) == 0 && name == "getUserID":
		v, err := record.Parse(f.Type, p.q.call.Actor.Key)
		return v, err == nil
	case len(args) == 0 && name == "getUserName":
		v, err := record.Parse(f.Type, p.q.call.Actor.Name)
		return v, err == nil
	default:
		at, ok := p.clock.call(name, args)
		if !ok {
			return record.Value{}, false
		}
		switch f.Type {
		case record.TypeDateTime:
			return record.TimeValue(at.UTC()), true
		case record.TypeDate:
			return record.TextValue(at.Format("2006-01-02")), true
		case record.TypeString:
			return record.TextValue(at.UTC().Format(record.TimeLayout)), true
		}
		return record.Value{}, false
	}
}

// text compares text: of a string itself, of a reference what is shown of it, of a choice its stored values.
func (c *comparison) text(op record.ExprOp, text string) *record.Expr {
	if call, ok := strings.CutPrefix(text, "javascript:"); ok {
		v, ok := c.p.evaluate(&catalog.Field{Type: record.TypeString}, call)
		if !ok {
			return nil
		}
		text = v.S
	}
	if text == "" {
		return nil
	}
	f := c.field
	switch {
	case f.Type == record.TypeReference:
		if shown := c.shown(); shown != nil {
			return shown.text(op, text)
		}
		return nil
	case f.Type.Textual():
		return c.make(op, record.TextValue(spellID(f.Type, text)))
	case len(f.Choices) > 0:
		return c.choices(op, text)
	case f.Type == record.TypeDateTime && op != record.EndsWith:
		return c.within(text)
	}
	return nil
}

// shown is a comparison of what is shown of the record that the field refers to; nil if that cannot be compared.
func (c *comparison) shown() *comparison {
	path, f := shownPath(c.p.q.snap, c.table, c.path, c.field)
	if f == nil || !comparable(f) {
		return nil
	}
	steps, err := c.p.q.snap.Resolve(c.table, path)
	if err != nil {
		return nil
	}
	c.p.out.walks.add(path)
	return &comparison{p: c.p, path: path, table: c.table, owner: steps[len(steps)-1].Table, field: f}
}

// choices turns a text condition on a number with choices into the list of the choices that satisfy it.
func (c *comparison) choices(op record.ExprOp, text string) *record.Expr {
	match := map[record.ExprOp]func(s, part string) bool{
		record.Contains: strings.Contains, record.StartsWith: strings.HasPrefix, record.EndsWith: strings.HasSuffix,
	}[op]
	e := &record.Expr{Op: record.In, Args: []*record.Expr{record.F(c.path)}}
	for _, ch := range c.field.Choices {
		if match(ch.Value, text) {
			if v, err := record.Parse(c.field.Type, ch.Value); err == nil {
				e.Values = append(e.Values, v)
			}
		}
	}
	return e
}

// in reads a comma list. Blanks belong to the values. A value that does not fit the field equals no record's.
func (c *comparison) in(list string) *record.Expr {
	e := &record.Expr{Op: record.In, Fold: c.fold(), Args: []*record.Expr{record.F(c.path)}}
	spelled := e.Fold && c.indexed()
	e.Fold = e.Fold && !spelled
	if list == "" {
		return e
	}
	empty, valid := false, false
	pieces := []string{list}
	if !strings.HasPrefix(list, "javascript:") {
		pieces = strings.Split(list, ",")
	}
	for _, piece := range pieces {
		switch v, ok := c.value(piece); {
		case !ok:
		case v.IsNull():
			empty, valid = true, true
		case spelled:
			e.Values, valid = append(e.Values, spellings(v)...), true
		default:
			e.Values, valid = append(e.Values, v), true
		}
	}
	switch {
	case !valid:
		return nil
	case empty && len(e.Values) == 0:
		return c.empty()
	case empty:
		return record.AnyOf(c.empty(), e)
	}
	return e
}

// other finds another field of the record.
func (c *comparison) other(path string) *catalog.Field {
	steps, err := c.p.q.snap.Resolve(c.table, path)
	if err != nil || !comparable(steps[len(steps)-1].Field) {
		return nil
	}
	c.p.out.walks.add(path)
	return steps[len(steps)-1].Field
}

func (c *comparison) withField(op record.ExprOp, path string) *record.Expr {
	f := c.other(path)
	if f == nil || !alike(f, c.field) {
		return nil
	}
	return record.Compare(op, record.F(c.path), record.F(path))
}

// alike reports whether two fields hold values that can be compared.
func alike(a, b *catalog.Field) bool {
	number := func(f *catalog.Field) bool {
		switch f.Type {
		case record.TypeInteger, record.TypeFloat, record.TypeDecimal, record.TypeDuration:
			return true
		}
		return false
	}
	return a.Type == b.Type || a.Type.Textual() && b.Type.Textual() || number(a) && number(b)
}

// same reads SAMEAS<field>[@unit]: dates may be compared by the day, month and so on that they fall in.
func (c *comparison) same(value string) *record.Expr {
	path, unit, _ := strings.Cut(value, "@")
	if unit == "" {
		e := c.withField(record.Eq, path)
		if e != nil {
			e.Fold = c.fold()
		}
		return e
	}
	f := c.other(path)
	if f == nil || !isDate(f) || !isDate(c.field) {
		return nil
	}
	var all []*record.Expr
	for _, part := range dateParts[unit] {
		all = append(all, record.Compare(record.Eq,
			&record.Expr{Op: part, Args: []*record.Expr{record.F(c.path)}},
			&record.Expr{Op: part, Args: []*record.Expr{record.F(path)}}))
	}
	return record.AllOf(all...)
}

// dateParts are the parts of two times that are equal when they fall into the same unit.
var dateParts = map[string][]record.ExprOp{
	"year":      {record.Year},
	"quarter":   {record.Year, record.Quarter},
	"month":     {record.Year, record.Month},
	"day":       {record.Year, record.Month, record.Day},
	"dayofweek": {record.Weekday},
	"hour":      {record.Year, record.Month, record.Day, record.Hour},
	"minute":    {record.Year, record.Month, record.Day, record.Hour, record.Minute},
}

// me is the id of the dynamic filter option "Me", the same on every instance.
const me = "90d1921e5f510100a9ad2572f2b477fe"

// dynamic is the value of a dynamic filter option, "" if it is none that weir has.
func (c *comparison) dynamic(id string) string {
	if strings.EqualFold(id, me) {
		return c.p.q.call.Actor.Key
	}
	return ""
}

// inHierarchy finds the record referred to and those below it, as far up as a path may walk: the table referred to must
// refer to itself by a field parent.
func (c *comparison) inHierarchy(key string) *record.Expr {
	if c.field.Type != record.TypeReference || key == "" {
		return nil
	}
	line := []*record.Expr{c.equal(key)}
	if line[0] == nil {
		return nil
	}
	if t, err := c.p.q.snap.Table(c.field.Reference); err == nil {
		if up := t.Field("parent"); up != nil && up.Type == record.TypeReference && (t.Is(up.Reference) || up.Reference == t.Name) {
			path := c.path
			for strings.Count(path, ".") < catalog.MaxWalk-1 {
				path += ".parent"
				c.p.out.walks.add(path)
				line = append(line, record.Compare(record.Eq, record.F(path), line[0].Args[1]))
			}
		}
	}
	return record.AnyOf(line...)
}

// instanceOf finds records of a class and its descendants.
func (c *comparison) instanceOf(class string) *record.Expr {
	t, err := c.p.q.snap.Table(class)
	if err != nil || c.field.Name != c.owner.ClassField {
		return nil
	}
	if c.path == c.field.Name {
		return &record.Expr{Op: record.Instance, Value: record.TextValue(class)}
	}
	e := &record.Expr{Op: record.In, Args: []*record.Expr{record.F(c.path)}}
	for _, name := range t.Classes {
		e.Values = append(e.Values, record.TextValue(name))
	}
	return e
}

// shorthand is one <field>=<value> parameter; nil if there is no such field or the value does not fit.
func (p *queryParser) shorthand(path, value string) *record.Expr {
	steps, err := p.q.snap.Resolve(p.q.table, path)
	if err != nil || !comparable(steps[len(steps)-1].Field) {
		return nil
	}
	last := steps[len(steps)-1]
	p.out.walks.add(path)
	c := &comparison{p: p, path: path, table: p.q.table, owner: last.Table, field: last.Field}
	switch {
	case last.Field.Type == record.TypeReference:
		list := []*record.Expr{c.equal(value)}
		if shown := c.shown(); shown != nil {
			if e := shown.equal(value); e != nil {
				list = append(list, e)
			}
		}
		if list[0] == nil {
			list = list[1:] // no key looks like this
		}
		if len(list) == 0 {
			return nil
		}
		return record.AnyOf(list...)
	case len(last.Field.Choices) > 0:
		return c.equal(choiceValue(last.Field, value))
	}
	return c.equal(value)
}

// choiceValue is the value of the choice with a label, in any case; the text itself if it is a value or no choice.
func choiceValue(f *catalog.Field, text string) string {
	for i := range f.Choices {
		if f.Choices[i].Value == text {
			return text
		}
	}
	for i := range f.Choices {
		if strings.EqualFold(f.Choices[i].Label, text) {
			return f.Choices[i].Value
		}
	}
	return text
}

func parseInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	return n, err == nil
}
