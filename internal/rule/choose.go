package rule

import (
	"context"

	"weir/internal/catalog"
	"weir/internal/record"
)

// choose copies fields of the best matching row of an assignment table. One query serves the whole set.
type choose struct {
	table  *catalog.Table
	match  []pair
	fields []string // the match fields, then the order field if any, then the copied ones
	order  int      // column of the order field, or -1
	copies []copied
}

func (c *compiler) choose(what string, d *catalog.ChooseDef) *choose {
	t := c.other(what, d.Table)
	if t == nil {
		return nil
	}
	ch := &choose{table: t, match: c.pairs(what, t, d.Match), order: -1}
	for _, p := range ch.match {
		ch.fields = append(ch.fields, p.theirs.Name)
	}
	if d.Order != "" {
		if f := c.field(what+": order", t, d.Order); f != nil {
			ch.order = len(ch.fields)
			ch.fields = append(ch.fields, f.Name)
		}
	}
	ch.copies = c.copies(what+": set", t, d.Set, &ch.fields)
	return ch
}

func (r *run) choose(ctx context.Context, s *step, rows []*Row) error {
	ch := s.choose
	wanted := make([][]record.Value, len(rows))
	var asked [][]record.Value
	for i, row := range rows {
		wanted[i], _ = r.wanted(s, ch.match, row)
		if wanted[i] != nil {
			asked = append(asked, wanted[i])
		}
	}
	if len(asked) == 0 {
		return nil
	}
	table, err := r.env.Data.Find(ctx, ch.table, ch.fields, among(ch.match, asked, true))
	if err != nil {
		return err
	}
	for i, row := range rows {
		if row.Err != nil || wanted[i] == nil || row.New == nil {
			continue
		}
		if best := ch.best(table, wanted[i]); best >= 0 {
			copyFields(row, ch.copies, table.At(best))
		}
	}
	return nil
}

// best is the row of the assignment table that fits best, -1 if none does. Rows come in key order, so the first of equals
// has the lowest key.
func (ch *choose) best(table *record.Rows, wanted []record.Value) int {
	best, bestEqual, bestOrder := -1, -1, 0.0
	for i := range table.Len() {
		row := table.At(i)
		equal, fits := 0, true
		for j, want := range wanted {
			switch {
			case row[j].Empty():
			case row[j].Text() == want.Text():
				equal++
			default:
				fits = false
			}
		}
		order := 0.0
		if ch.order >= 0 {
			order = row[ch.order].Float()
		}
		if fits && (equal > bestEqual || equal == bestEqual && order < bestOrder) {
			best, bestEqual, bestOrder = i, equal, order
		}
	}
	return best
}
