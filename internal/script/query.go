package script

import (
	"strings"

	"github.com/dop251/goja"

	"weir/internal/catalog"
	"weir/internal/record"
)

// query is the conditions that a GlideRecord or GlideAggregate gathers. They are kept as encoded queries, so that they
// mean what the same words mean on the wire.
type query struct {
	c       *call
	table   *catalog.Table
	terms   []*condition
	encoded []string // whole queries of addEncodedQuery
	sort    []record.Sort
}

// condition is one condition with its alternatives.
type condition struct {
	c    *call
	text strings.Builder
}

// operators are those that scripts may name.
var operators = map[string]string{
	"=": "=", "!=": "!=", ">": ">", ">=": ">=", "<": "<", "<=": "<=", "IN": "IN", "NOT IN": "NOT IN", "STARTSWITH": "STARTSWITH", "ENDSWITH": "ENDSWITH",
	"CONTAINS": "LIKE", "LIKE": "LIKE", "DOES NOT CONTAIN": "NOT LIKE", "NOT LIKE": "NOT LIKE", "INSTANCEOF": "INSTANCEOF", "BETWEEN": "BETWEEN",
	"SAMEAS": "SAMEAS", "NSAMEAS": "NSAMEAS", "ISEMPTY": "ISEMPTY", "ISNOTEMPTY": "ISNOTEMPTY",
}

// add writes field, operator and value as a term. Values are escaped, so they stay values. A field that the table does not have throws:
// dropping the condition would let a script change records that it did not mean.
func (t *condition) add(table *catalog.Table, prefix, field, op string, value goja.Value) {
	c := t.c
	if _, err := c.snap.Resolve(table, field); err != nil {
		c.throw(err)
	}
	known, ok := operators[strings.ToUpper(strings.TrimSpace(op))]
	if !ok {
		c.throw(record.Errorf(record.Invalid, "", "%.40q is no operator of a query", op))
	}
	t.text.WriteString(prefix + field + known)
	if value == nil || goja.IsUndefined(value) || goja.IsNull(value) {
		return
	}
	if o, ok := value.(*goja.Object); ok && o.ClassName() == "Array" {
		var list []string
		for _, k := range o.Keys() {
			list = append(list, o.Get(k).String())
		}
		value = c.vm.ToValue(strings.Join(list, ","))
	}
	t.text.WriteString(strings.ReplaceAll(value.String(), "^", "^^"))
}

// addQuery adds (field, value), (field, operator, value) or an encoded query, and returns the condition, to which
// addOrCondition may add alternatives.
func (q *query) addQuery(f goja.FunctionCall) goja.Value {
	switch len(f.Arguments) {
	case 0:
		q.c.throw(record.Errorf(record.Invalid, "", "addQuery needs a field and a value"))
	case 1:
		q.encoded = append(q.encoded, text(f, 0))
		return goja.Undefined()
	case 2:
		return q.term(text(f, 0), "=", f.Argument(1))
	}
	return q.term(text(f, 0), text(f, 1), f.Argument(2))
}

func (q *query) term(field, op string, value goja.Value) goja.Value {
	t := &condition{c: q.c}
	t.add(q.table, "", field, op, value)
	q.terms = append(q.terms, t)
	return newSurface(q.c, &orTarget{q, t}, orMethods)
}

// orTarget is the object that addQuery returns.
type orTarget struct {
	q *query
	t *condition
}

var orMethods map[string]func(*orTarget, goja.FunctionCall) goja.Value

func init() {
	orMethods = map[string]func(*orTarget, goja.FunctionCall) goja.Value{
		"addOrCondition": func(o *orTarget, f goja.FunctionCall) goja.Value {
			op, value := "=", f.Argument(1)
			if len(f.Arguments) > 2 {
				op, value = text(f, 1), f.Argument(2)
			}
			o.t.add(o.q.table, "^OR", text(f, 0), op, value)
			return f.This
		},
		"addCondition": func(o *orTarget, f goja.FunctionCall) goja.Value { return o.q.addQuery(f) },
	}
}

// order adds a sort key.
func (q *query) order(field string, desc bool) {
	if _, err := q.c.snap.Resolve(q.table, field); err != nil {
		q.c.throw(err)
	}
	q.sort = append(q.sort, record.Sort{Path: field, Desc: desc})
}

// where is all conditions as one, and the sort keys.
func (q *query) where() (*record.Expr, []record.Sort) {
	texts := make([]string, 0, len(q.terms))
	for _, t := range q.terms {
		texts = append(texts, t.text.String())
	}
	queries := q.encoded
	if len(texts) > 0 {
		queries = append([]string{strings.Join(texts, "^")}, queries...)
	}
	var all []*record.Expr
	sort := q.sort
	for _, text := range queries {
		if q.c.r.opt.ParseQuery == nil {
			panic(q.c.newFault(500, "scripts cannot query here", ""))
		}
		e, keys, err := q.c.r.opt.ParseQuery(q.c.snap, q.c.actor, q.table.Name, text)
		if err != nil {
			q.c.throw(err)
		}
		all = append(all, e)
		sort = append(sort[:len(sort):len(sort)], keys...)
	}
	return record.AllOf(all...), sort
}
