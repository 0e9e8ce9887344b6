package ords

import (
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/record"
)

// untyped is the type of a column whose values say it themselves.
const untyped record.Type = 255

// filterColumn is a column that a filter may name.
type filterColumn struct {
	Path string // in the expression
	Type record.Type
}

// filter is a FilterObject: the value of the parameter q (protocol notes, section 9).
type filter struct {
	where *record.Expr // nil: all rows
	sort  []record.Sort
}

// maxFilterDepth bounds how deep conditions may be nested.
const maxFilterDepth = 20

// parseFilter reads a FilterObject. find finds a column by its name in answers, which is in lower case unless it was quoted; most bounds
// the conditions. Every mistake is an Invalid about q that says where it is.
func parseFilter(text string, most int, find func(name string) (filterColumn, bool)) (*filter, error) {
	p := &filterParser{find: find, most: most, dec: jsontext.NewDecoder(strings.NewReader(text))}
	if p.dec.PeekKind() != '{' {
		if _, err := p.dec.ReadToken(); err != nil {
			return nil, p.broken(err)
		}
		return nil, p.fault("it is not a JSON object")
	}
	e, err := p.object(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, p.fault("something follows the JSON object")
	}
	p.out.where = e
	return &p.out, nil
}

type filterParser struct {
	find  func(string) (filterColumn, bool)
	dec   *jsontext.Decoder
	most  int
	count int
	out   filter
}

// fault is what is wrong with the filter, and where.
func (p *filterParser) fault(format string, args ...any) error {
	e := record.Errorf(record.Invalid, "q", format, args...)
	if at := p.dec.StackPointer(); at != "" {
		e.Msg = "at " + clip(string(at), 80) + ": " + e.Msg
	}
	return e
}

// broken is the fault of a text that is no JSON.
func (p *filterParser) broken(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return record.Errorf(record.Invalid, "q", "it is not valid JSON at byte %d: %s", syntactic.ByteOffset, syntactic.Err)
	}
	return record.Errorf(record.Invalid, "q", "it is not valid JSON: it ends too early")
}

// object reads members, which are ANDed.
func (p *filterParser) object(depth int) (*record.Expr, error) {
	if depth > maxFilterDepth {
		return nil, p.fault("conditions are nested deeper than %d", maxFilterDepth)
	}
	if kind := p.dec.PeekKind(); kind != '{' {
		return nil, p.unexpected("an object of conditions")
	}
	p.dec.ReadToken()
	var list []*record.Expr
	for {
		t, err := p.dec.ReadToken()
		if err != nil {
			return nil, p.broken(err)
		}
		if t.Kind() == '}' {
			return record.AllOf(list...), nil
		}
		e, err := p.member(t.String(), depth)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
}

func (p *filterParser) member(name string, depth int) (*record.Expr, error) {
	switch name {
	case "$and", "$or":
		return p.junction(name, func() (*record.Expr, error) { return p.object(depth + 1) })
	case "$orderby":
		if depth > 0 {
			return nil, p.fault("$orderby stands in the outer object only")
		}
		return nil, p.orderBy()
	case "$asof":
		return nil, p.fault("$asof is not supported: this database keeps no former states")
	}
	if strings.HasPrefix(name, "$") {
		return nil, p.fault("there is no %.40s here; there are $and, $or and $orderby", name)
	}
	c, err := p.column(name)
	if err != nil {
		return nil, err
	}
	switch p.dec.PeekKind() {
	case '{':
		return p.conditions(&c, true)
	case '[':
		p.dec.ReadToken()
		var list []*record.Expr
		for p.dec.PeekKind() != ']' {
			e, err := p.conditions(&c, true)
			if err != nil {
				return nil, err
			}
			list = append(list, e)
		}
		_, err := p.dec.ReadToken()
		if err != nil {
			return nil, p.broken(err)
		}
		if len(list) == 0 {
			return nil, p.fault("the list of conditions is empty")
		}
		return record.AllOf(list...), nil
	case '"', '0', 't', 'f', 'n':
		v, err := p.value(&c)
		if err != nil {
			return nil, err
		}
		return p.compare(record.Eq, &c, v)
	}
	return nil, p.unexpected("a value or conditions")
}

// junction reads a list of conditions, ANDed or ORed by name.
func (p *filterParser) junction(name string, one func() (*record.Expr, error)) (*record.Expr, error) {
	if p.dec.PeekKind() != '[' {
		return nil, p.unexpected("a list of conditions")
	}
	p.dec.ReadToken()
	var list []*record.Expr
	all := false
	for p.dec.PeekKind() != ']' {
		if p.dec.PeekKind() == 0 {
			break
		}
		e, err := one()
		if err != nil {
			return nil, err
		}
		if all = all || e == nil; e != nil {
			list = append(list, e)
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, p.broken(err)
	}
	switch {
	case len(list) == 0 && !all:
		return nil, p.fault("%s has no conditions", name)
	case name == "$and":
		return record.AllOf(list...), nil
	case all:
		return nil, nil // one of them holds always
	}
	return record.AnyOf(list...), nil
}

// conditions reads the conditions on a column: {op: value, …}, ANDed. $and and $or are not nested.
func (p *filterParser) conditions(c *filterColumn, junctions bool) (*record.Expr, error) {
	if p.dec.PeekKind() != '{' {
		return nil, p.unexpected("an operator with its value")
	}
	p.dec.ReadToken()
	var list []*record.Expr
	for {
		t, err := p.dec.ReadToken()
		if err != nil {
			return nil, p.broken(err)
		}
		if t.Kind() == '}' {
			break
		}
		e, err := p.condition(c, t.String(), junctions)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return nil, p.fault("there is no operator")
	}
	return record.AllOf(list...), nil
}

var comparisons = map[string]record.ExprOp{
	"$eq": record.Eq, "$ne": record.Ne, "$lt": record.Lt, "$lte": record.Le, "$gt": record.Gt, "$gte": record.Ge,
}

// condition reads the value of one operator. $in and $nin are no operators of ORDS, but asked for often enough.
func (p *filterParser) condition(c *filterColumn, op string, junctions bool) (*record.Expr, error) {
	if cmp, ok := comparisons[op]; ok {
		v, err := p.value(c)
		if err != nil {
			return nil, err
		}
		return p.compare(cmp, c, v)
	}
	switch op {
	case "$and", "$or":
		if !junctions {
			return nil, p.fault("%s of one column is not nested", op)
		}
		return p.junction(op, func() (*record.Expr, error) { return p.conditions(c, false) })
	case "$date", "$timestamp":
		v, err := p.moment(c)
		if err != nil {
			return nil, err
		}
		return p.compare(record.Eq, c, v)
	case "$like", "$instr", "$ninstr":
		return p.search(c, op)
	case "$null", "$notnull":
		t, err := p.dec.ReadToken()
		if err != nil {
			return nil, p.broken(err)
		}
		if t.Kind() != 'n' {
			return nil, p.fault("%s takes null", op)
		}
		cmp := record.Eq
		if op == "$notnull" {
			cmp = record.Ne
		}
		return p.compare(cmp, c, record.Value{})
	case "$between":
		return p.between(c)
	case "$in", "$nin":
		return p.in(c, op == "$nin")
	}
	return nil, p.fault("there is no operator %.40s", op)
}

// compare makes a comparison. SQL's <> does not find null, unlike record.Ne.
func (p *filterParser) compare(op record.ExprOp, c *filterColumn, v record.Value) (*record.Expr, error) {
	if err := p.counted(); err != nil {
		return nil, err
	}
	e := record.Compare(op, record.F(c.Path), record.C(v))
	if op == record.Ne && !v.IsNull() {
		return record.AllOf(e, record.Compare(record.Ne, record.F(c.Path), record.C(record.Value{}))), nil
	}
	return e, nil
}

func (p *filterParser) counted() error {
	if p.count++; p.count > p.most {
		return p.fault("there are more than %d conditions; see ords.max_conditions", p.most)
	}
	return nil
}

func (p *filterParser) search(c *filterColumn, op string) (*record.Expr, error) {
	t, err := p.dec.ReadToken()
	if err != nil {
		return nil, p.broken(err)
	}
	if t.Kind() != '"' && t.Kind() != '0' {
		return nil, p.fault("%s takes a text", op)
	}
	if err := p.counted(); err != nil {
		return nil, err
	}
	text := record.C(record.TextValue(t.String()))
	switch op {
	case "$like":
		return record.Compare(record.Like, record.F(c.Path), text), nil
	case "$instr":
		return record.Compare(record.Contains, record.F(c.Path), text), nil
	}
	return record.AllOf(record.Negate(record.Compare(record.Contains, record.F(c.Path), text)),
		record.Compare(record.Ne, record.F(c.Path), record.C(record.Value{}))), nil
}

// between reads [a, b]. Null is an open end.
func (p *filterParser) between(c *filterColumn) (*record.Expr, error) {
	list, err := p.values(c)
	if err != nil {
		return nil, err
	}
	if len(list) != 2 {
		return nil, p.fault("$between takes two values")
	}
	if list[0].IsNull() && list[1].IsNull() {
		return nil, p.fault("$between has no end that is a value")
	}
	if text := c.Type == record.TypeString && (list[0].IsNull() || list[1].IsNull()); text {
		return nil, p.fault("$between of texts has no open end")
	}
	var parts []*record.Expr
	for i, op := range []record.ExprOp{record.Ge, record.Le} {
		if list[i].IsNull() {
			continue
		}
		e, err := p.compare(op, c, list[i])
		if err != nil {
			return nil, err
		}
		parts = append(parts, e)
	}
	return record.AllOf(parts...), nil
}

func (p *filterParser) in(c *filterColumn, not bool) (*record.Expr, error) {
	list, err := p.values(c)
	if err != nil {
		return nil, err
	}
	for _, v := range list {
		if v.IsNull() {
			return nil, p.fault("null is in no list; there is $null")
		}
		if err := p.counted(); err != nil {
			return nil, err
		}
	}
	e := &record.Expr{Op: record.In, Args: []*record.Expr{record.F(c.Path)}, Values: list}
	if not {
		e = record.AllOf(record.Negate(e), record.Compare(record.Ne, record.F(c.Path), record.C(record.Value{})))
	}
	return e, nil
}

var directions = map[string]bool{"asc": false, "1": false, "desc": true, "-1": true}

func (p *filterParser) orderBy() error {
	if p.dec.PeekKind() != '{' {
		return p.unexpected("an object of columns with their directions")
	}
	p.dec.ReadToken()
	for {
		t, err := p.dec.ReadToken()
		if err != nil {
			return p.broken(err)
		}
		if t.Kind() == '}' {
			return nil
		}
		c, err := p.column(t.String())
		if err != nil {
			return err
		}
		if p.dec.PeekKind() != '"' && p.dec.PeekKind() != '0' {
			return p.unexpected(`a direction: "ASC", "DESC", 1 or -1`)
		}
		if t, err = p.dec.ReadToken(); err != nil {
			return p.broken(err)
		}
		desc, ok := directions[strings.ToLower(t.String())]
		if !ok {
			return p.fault(`%.40q is no direction; there are "ASC", "DESC", 1 and -1`, t.String())
		}
		if err := p.counted(); err != nil {
			return err
		}
		p.out.sort = append(p.out.sort, record.Sort{Path: c.Path, Desc: desc})
	}
}

func (p *filterParser) column(name string) (filterColumn, error) {
	c, ok := p.find(name)
	if !ok {
		c, ok = p.find(strings.ToLower(name))
	}
	if !ok {
		return c, p.fault("there is no column %.80s that can be filtered or sorted by", name)
	}
	return c, nil
}

// unexpected is the fault of a value that is not what stands here; what was wanted instead.
func (p *filterParser) unexpected(wanted string) error {
	if t, err := p.dec.ReadToken(); err != nil {
		return p.broken(err)
	} else if t.Kind() == ']' || t.Kind() == '}' {
		return p.fault("%s is missing", wanted)
	}
	return p.fault("it is not %s", wanted)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
