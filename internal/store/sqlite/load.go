package sqlite

import (
	"context"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Load writes new records one by one, by one prepared statement: SQLite has nothing faster.
func (t *tx) Load(ctx context.Context, table *catalog.Table, fields []string, rows [][]record.Value) error {
	w, err := t.Insert(ctx, &store.InsertSet{Table: table, Fields: fields, Rows: rows})
	if err != nil {
		return err
	}
	for _, e := range w.Errs {
		if e != nil {
			return e
		}
	}
	return nil
}
