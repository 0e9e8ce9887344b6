package odata

import (
	"strings"

	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// aggregating is the op of $apply.
func (r *reading) aggregating() record.Op {
	ap := r.query.apply
	aggs := make([]record.Agg, len(ap.aggs))
	for i := range ap.aggs {
		aggs[i] = ap.aggs[i].agg
	}
	return record.Op{Verb: record.Aggregate, Table: r.set.Type.Table.Name, Query: &record.Query{
		Where: record.AllOf(r.conditions(), ap.filter), Group: ap.groupPaths, Aggs: aggs, Having: ap.having, Sort: ap.sort,
		Offset: max(ap.skip, 0), Limit: ap.top, Count: r.query.count,
	}}
}

// column is a value of an aggregate's row, or an object that holds some.
type column struct {
	name  string
	prop  edm.Property
	col   int // -1: an object
	inner []column
}

// columns are what a row of $apply shows: groups, those over navigation nested as the navigation is, then aggregates.
func (ap *apply) columns() []column {
	var list []column
	for i, names := range ap.groupNames {
		at := &list
		for _, name := range names[:len(names)-1] {
			at = inner(at, name)
		}
		prop := *ap.group[i]
		prop.Nullable = true
		*at = append(*at, column{name: names[len(names)-1], prop: prop, col: i})
	}
	for i := range ap.aggs {
		list = append(list, column{
			name: ap.aggs[i].alias, prop: edm.Property{Kind: ap.aggs[i].kind, Nullable: true}, col: len(ap.group) + i,
		})
	}
	return list
}

// inner is the object of that name, made if there is none.
func inner(list *[]column, name string) *[]column {
	for i := range *list {
		if (*list)[i].name == name {
			return &(*list)[i].inner
		}
	}
	*list = append(*list, column{name: name, col: -1})
	return &(*list)[len(*list)-1].inner
}

// columnNames are the columns as a context names them: Category,ToSupplier(CompanyName),Total.
func columnNames(list []column) string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].name
		if list[i].col < 0 {
			names[i] += "(" + columnNames(list[i].inner) + ")"
		}
	}
	return strings.Join(names, ",")
}

// applied writes the rows of $apply, which V4 alone has.
func (r *reading) applied(a *wire.Answer, rows *record.Rows) {
	f, ok := r.format.(*json4)
	if !ok {
		r.fail(a, record.Errorf(record.Invalid, "$apply", "$apply is for version 4"))
		return
	}
	columns := r.query.apply.columns()
	r.head(a, 200)
	f.content(a)
	a.Body = f.context(r.request, append(a.Body, '{'), []byte(r.set.Name+"("+columnNames(columns)+")"))
	a.Body = f.count(a.Body, r.count)
	a.Body = append(a.Body, `"value":[`...)
	for i := 0; rows != nil && i < rows.Len(); i++ {
		if i > 0 {
			a.Body = append(a.Body, ',')
		}
		a.Body = f.columns(append(a.Body, '{'), columns, rows.At(i))
		a.Body = append(a.Body, '}')
	}
	a.Body = f.end(a.Body, "")
}

func (f *json4) columns(dst []byte, list []column, row []record.Value) []byte {
	for i := range list {
		c := &list[i]
		if c.col < 0 {
			dst = append(wire.AppendQuote(comma(dst), c.name), `:{`...)
			dst = append(f.columns(dst, c.inner, row), '}')
			continue
		}
		if f.meta != none && c.prop.Field == nil { // what is computed is no property of the type, whose values tell their type
			dst = f.typed(dst, c.name, c.prop.Kind, row[c.col])
		}
		dst = append(wire.AppendQuote(comma(dst), c.name), ':')
		dst = appendJSON4(dst, &c.prop, row[c.col], f.texts)
	}
	return dst
}
