package store

import "weir/internal/record"

var aggNames = [...]string{record.Count: "count", record.Sum: "sum", record.Avg: "avg", record.Min: "min", record.Max: "max", record.CountDistinct: "count_distinct"}

// Columns are the names of the columns of a read's rows: its fields, or for an aggregate the group's paths and then each
// function with its path, as "sum(cost)".
func Columns(q *Read) []string {
	if q.Query == nil || len(q.Query.Group)+len(q.Query.Aggs) == 0 {
		return q.Fields
	}
	names := append(make([]string, 0, len(q.Query.Group)+len(q.Query.Aggs)), q.Query.Group...)
	for _, a := range q.Query.Aggs {
		names = append(names, aggNames[a.Func]+"("+a.Path+")")
	}
	return names
}
