package main

import (
	"fmt"
	"strconv"
	"strings"
)

// column is one column of the copied table with the value of its first row.
type column struct {
	name, kind string
	unique     bool // in the primary key or a unique index: each row needs another value
	value      *string
}

// counterDigits is how much of a unique text is replaced by a counter; ten million rows fit.
const counterDigits = 7

// at is the column's value in row n: the first row's, where unique with its tail replaced by n so that the length stays.
func (c column) at(n int) *string {
	if !c.unique || c.value == nil {
		return c.value
	}
	v := *c.value
	if i, err := strconv.ParseInt(v, 10, 64); err == nil && len(v) < 19 {
		v = strconv.FormatInt(i+int64(n), 10)
		return &v
	}
	v = v[:max(0, len(v)-counterDigits)] + fmt.Sprintf("%0*d", counterDigits, n)
	return &v
}

// names returns the columns' names, each through quote.
func names(columns []column, quote func(string) string) []string {
	var list []string
	for _, c := range columns {
		list = append(list, quote(c.name))
	}
	return list
}

// childQuery selects the child rows of the first rows of the table, as many as the parameter says, in the order of those.
func (o *options) childQuery(quote func(string) string, param string) string {
	var columns []string
	for _, c := range o.childColumns {
		columns = append(columns, quote(c))
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + quote(o.child) + " WHERE " + quote(o.fk) + " IN (SELECT " + quote(o.key) +
		" FROM " + quote(o.table) + " ORDER BY " + quote(o.key) + " LIMIT " + param + ") ORDER BY " + quote(o.fk)
}

// show settles which columns serve shows and refuses those that the table lacks.
func (o *options) show(columns []column) error {
	have := make(map[string]bool)
	for _, c := range columns {
		have[c.name] = true
	}
	if len(o.columns) == 0 {
		for _, c := range columns {
			o.columns = append(o.columns, c.name)
		}
	}
	for _, c := range append([]string{o.key}, o.columns...) {
		if !have[c] {
			return fmt.Errorf("table %s has no column %q", o.table, c)
		}
	}
	return nil
}
