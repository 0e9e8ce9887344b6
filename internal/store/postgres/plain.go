package postgres

import (
	"context"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

var errSoon = record.Errorf(record.Unsupported, "", "statements of SQL endpoints are not run yet")

// Describe asks the database what a statement takes and gives, without running it.
func (s *Store) Describe(ctx context.Context, sql string, natives []string) (*store.Described, error) {
	return nil, errSoon
}

// Select runs a statement that reads and streams its rows.
func (s *Store) Select(ctx context.Context, st *store.Statement, args []record.Value, o store.SQLOptions) (*record.Rows, error) {
	return nil, errSoon
}

// BeginPlain is Begin for statements that Tx.Run runs.
func (s *Store) BeginPlain(ctx context.Context, o store.SQLOptions) (store.Tx, error) {
	return nil, errSoon
}

// Explain is the database's plan for a SELECT.
func (s *Store) Explain(ctx context.Context, st *store.Statement, args []record.Value, analyze bool, o store.SQLOptions) (*store.Explained, error) {
	return nil, errSoon
}

// Resize changes how many connections there may be and how long work waits for one.
func (s *Store) Resize(limit int, wait time.Duration) {}

// Run runs a statement of the operator's own.
func (t *tx) Run(ctx context.Context, st *store.Statement, args []record.Value) (*record.Rows, int64, error) {
	return nil, 0, errSoon
}

// Load writes new records by COPY.
func (t *tx) Load(ctx context.Context, table *catalog.Table, fields []string, rows [][]record.Value) error {
	return errSoon
}
