// Package rule runs what a table does by itself on a write: defaults, computed fields, checks, lookups, choices, derived
// records. It works on the whole set of a statement, never on one row with a query of its own.
package rule

import (
	"context"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Row is one record on its way into the database. Values are by Field.Index of its table.
type Row struct {
	Table  *catalog.Table // the record's own class
	Actor  *record.Actor
	Event  Event
	Old    []record.Value // as stored before; nil for an insert
	New    []record.Value // as it will be stored; nil for a delete
	Given  []bool         // fields that the caller gave
	Err    *record.Error  // why this row must not be written; set by rules, such rows are skipped by later ones
	Derive []Derived      // records to write in the same atom
}

// Event is what happens to a record.
type Event uint8

// The events.
const (
	Insert Event = iota
	Update
	Delete
)

// Derived is one record that a rule adds to the atom of a row.
type Derived struct {
	Op     record.Op             // an Insert or Upsert
	Result *catalog.DeriveResult // fields of the row that receive the outcome; nil for none
}

// Data reads records for lookups. Reads see what the atom's transaction sees and are not limited by access rules.
type Data interface {
	Find(ctx context.Context, table *catalog.Table, fields []string, where *record.Expr) (*record.Rows, error)
}
