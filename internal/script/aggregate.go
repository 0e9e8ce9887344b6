package script

import (
	"slices"
	"strings"

	"github.com/dop251/goja"

	"weir/internal/record"
)

// glideAggregate is one GlideAggregate.
type glideAggregate struct {
	query
	groups []string
	aggs   []record.Agg
	rows   *record.Rows
	next   int
	row    []record.Value
}

var aggFuncs = map[string]record.AggFunc{
	"COUNT": record.Count, "SUM": record.Sum, "AVG": record.Avg, "MIN": record.Min, "MAX": record.Max, "COUNT(DISTINCT": record.CountDistinct,
}

// newGlideAggregate is the constructor GlideAggregate.
func (c *call) newGlideAggregate(f goja.ConstructorCall) *goja.Object {
	t, err := c.snap.Table(f.Argument(0).String())
	if err != nil {
		c.throw(err)
	}
	c.teachStrings()
	g := &glideAggregate{query: query{c: c, table: t}}
	return c.vm.NewDynamicObject(&aggregateObject{surface[*glideAggregate]{c: c, self: g, methods: aggregateMethods}})
}

// aggregateObject is a GlideAggregate as scripts see it: its methods, and the fields that it is grouped by.
type aggregateObject struct {
	surface[*glideAggregate]
}

// Get is the method or the field named key.
func (o *aggregateObject) Get(key string) goja.Value {
	if v := o.surface.Get(key); v != nil {
		return v
	}
	if e := o.self.group(key); e != nil {
		return e.member()
	}
	return nil
}

// Has reports whether there is such a member.
func (o *aggregateObject) Has(key string) bool { return o.surface.Has(key) || o.self.group(key) != nil }

// group is a field of the group at hand, nil if the rows are not grouped by it.
func (g *glideAggregate) group(path string) *element {
	i := slices.Index(g.groups, path)
	if i < 0 || g.row == nil {
		return nil
	}
	steps, err := g.c.snap.Resolve(g.table, path)
	if err != nil {
		return nil
	}
	f := steps[len(steps)-1].Field
	return &element{g: g.c.recordOf(g.table), root: f, from: g.row[i], f: f}
}

var aggregateMethods map[string]func(*glideAggregate, goja.FunctionCall) goja.Value

func init() {
	aggregateMethods = map[string]func(*glideAggregate, goja.FunctionCall) goja.Value{
		"addQuery": func(g *glideAggregate, f goja.FunctionCall) goja.Value { return g.addQuery(f) },
		"addEncodedQuery": func(g *glideAggregate, f goja.FunctionCall) goja.Value {
			g.encoded = append(g.encoded, text(f, 0))
			return goja.Undefined()
		},
		"addNullQuery":    func(g *glideAggregate, f goja.FunctionCall) goja.Value { return g.term(text(f, 0), "ISEMPTY", nil) },
		"addNotNullQuery": func(g *glideAggregate, f goja.FunctionCall) goja.Value { return g.term(text(f, 0), "ISNOTEMPTY", nil) },
		"groupBy": func(g *glideAggregate, f goja.FunctionCall) goja.Value {
			if _, err := g.c.snap.Resolve(g.table, text(f, 0)); err != nil {
				g.c.throw(err)
			}
			g.groups = append(g.groups, text(f, 0))
			return goja.Undefined()
		},
		"orderBy": func(g *glideAggregate, f goja.FunctionCall) goja.Value {
			g.order(text(f, 0), false)
			return goja.Undefined()
		},
		"orderByDesc": func(g *glideAggregate, f goja.FunctionCall) goja.Value {
			g.order(text(f, 0), true)
			return goja.Undefined()
		},
		"addAggregate": func(g *glideAggregate, f goja.FunctionCall) goja.Value {
			g.aggs = append(g.aggs, g.agg(f))
			return goja.Undefined()
		},
		"query": (*glideAggregate).find,
		"next": func(g *glideAggregate, _ goja.FunctionCall) goja.Value {
			if g.rows == nil || g.next >= g.rows.Len() {
				return g.c.vm.ToValue(false)
			}
			g.row = g.rows.At(g.next)
			g.next++
			return g.c.vm.ToValue(true)
		},
		"hasNext": func(g *glideAggregate, _ goja.FunctionCall) goja.Value {
			return g.c.vm.ToValue(g.rows != nil && g.next < g.rows.Len())
		},
		"getRowCount": func(g *glideAggregate, _ goja.FunctionCall) goja.Value {
			if g.rows == nil {
				return g.c.vm.ToValue(0)
			}
			return g.c.vm.ToValue(g.rows.Len())
		},
		"getAggregate": func(g *glideAggregate, f goja.FunctionCall) goja.Value {
			want := g.agg(f)
			for i, a := range g.aggs {
				if a == want && g.row != nil {
					return g.c.vm.ToValue(g.row[len(g.groups)+i].Text())
				}
			}
			return goja.Null()
		},
		"getValue": func(g *glideAggregate, f goja.FunctionCall) goja.Value {
			if e := g.group(text(f, 0)); e != nil {
				return g.c.vm.ToValue(e.of().Text())
			}
			return goja.Null()
		},
		"getDisplayValue": func(g *glideAggregate, f goja.FunctionCall) goja.Value {
			if e := g.group(text(f, 0)); e != nil {
				return g.c.vm.ToValue(e.display())
			}
			return goja.Null()
		},
	}
}

// agg reads (function, field).
func (g *glideAggregate) agg(f goja.FunctionCall) record.Agg {
	fn, ok := aggFuncs[strings.ToUpper(text(f, 0))]
	if !ok {
		g.c.throw(record.Errorf(record.Invalid, "", "%.40q is no aggregate", text(f, 0)))
	}
	path := text(f, 1)
	if path == "" && fn != record.Count {
		g.c.throw(record.Errorf(record.Invalid, "", "%s needs a field", text(f, 0)))
	}
	if path != "" {
		if _, err := g.c.snap.Resolve(g.table, path); err != nil {
			g.c.throw(err)
		}
	}
	return record.Agg{Func: fn, Path: path}
}

func (g *glideAggregate) find(goja.FunctionCall) goja.Value {
	where, sort := g.where()
	if len(sort) == 0 {
		for _, path := range g.groups {
			sort = append(sort, record.Sort{Path: path})
		}
	}
	most := int64(g.c.r.opt.Config.MaxRows)
	out := g.c.alone(record.Op{Verb: record.Aggregate, Table: g.table.Name, Query: &record.Query{
		Where: where, Sort: sort, Group: g.groups, Aggs: g.aggs, Limit: most,
	}})
	if out.Err != nil {
		g.c.throw(out.Err)
	}
	g.rows, g.next, g.row = out.Rows, 0, nil
	return goja.Undefined()
}
