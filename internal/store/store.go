// Package store turns sets of operations into SQL and runs them.
//
// One compiler serves all databases; a database folder (sqlite, postgres) holds only what differs. Statement texts are
// made from catalog names and the shape of a set, never from its size, and every value is bound. Errors are
// [record.Error]s: each database translates its driver's codes in one place.
package store

import (
	"context"
	"fmt"
	"time"

	"weir/internal/catalog"
	"weir/internal/record"
)

// Store is one database. It is safe for concurrent use.
type Store interface {
	// Name is "sqlite" or "postgres".
	Name() string
	// Query runs a read on a connection of its own and streams its rows: the connection is held until Close. A Read with
	// Count reports the number of all matching records through Total.
	Query(ctx context.Context, q *Read) (*Result, error)
	// Begin opens a write transaction on one connection, waiting at most the pool's wait limit (Unavailable, naming the
	// pool's figures).
	Begin(ctx context.Context) (Tx, error)
	// Numbers draws n consecutive numbers of a sequence and returns the first; a sequence unknown yet begins at start. It
	// commits by itself: numbers drawn are never drawn again, by any node, whatever becomes of them. Who holds a Tx must have
	// drawn before Begin: on SQLite both want the one write connection.
	Numbers(ctx context.Context, sequence string, start int64, n int) (int64, error)
	// Schema inspects and changes stored tables.
	Schema() Schema
	Plain
	// Watch calls changed when any node has called Notify, until ctx ends. It may also call it without need.
	Watch(ctx context.Context, changed func()) error
	// Notify tells all nodes that definitions or credentials changed.
	Notify(ctx context.Context) error
	Stats() Stats
	Close() error
}

// Tx is a write transaction. It belongs to one goroutine. After an error of kind other than Internal, Timeout, Canceled
// or Unavailable the transaction may be continued from the last Mark by Back.
type Tx interface {
	// Query reads within the transaction, into memory; with q.Lock the records are locked against other writers until the end.
	Query(ctx context.Context, q *Read) (*Result, error)
	// Insert writes new records. Rows that meet an existing key or unique value are not written and get a Conflict naming
	// the field in Errs[i]; the others are written. Any other fault of a row fails the whole call, which then has written
	// nothing that Back does not undo.
	Insert(ctx context.Context, s *InsertSet) (*Written, error)
	// Update sets the fields of the records with the given keys. A record that does not exist is not in Hit.
	Update(ctx context.Context, s *UpdateSet) (*Written, error)
	// Delete removes the records with the given keys.
	Delete(ctx context.Context, s *DeleteSet) (*Written, error)
	// Run runs a statement of the operator's own and holds the rows that it gives, nil if it gives none, in memory. affected
	// is the number of rows written.
	Run(ctx context.Context, st *Statement, args []record.Value) (rows *record.Rows, affected int64, err error)
	// Load writes new records as fast as the database takes them (COPY on PostgreSQL): values are Fit for their fields, and
	// any fault fails the whole call, which then has written nothing that Back does not undo.
	Load(ctx context.Context, t *catalog.Table, fields []string, rows [][]record.Value) error
	// Mark sets the point that Back returns to; marks nest.
	Mark(ctx context.Context) error
	// Back undoes everything since the last Mark and keeps that mark.
	Back(ctx context.Context) error
	// Drop forgets the last Mark and keeps what was done since.
	Drop(ctx context.Context) error
	Commit(ctx context.Context) error
	// Rollback ends the transaction; after Commit it does nothing.
	Rollback()
}

// Read is one read of a table. Fields, Where, Sort, Group and Having hold paths, which the compiler resolves against
// Snapshot: a walk over references is a LEFT JOIN.
type Read struct {
	Snapshot *catalog.Snapshot
	Table    *catalog.Table
	Fields   []string
	Keys     [][]record.Value // only the records with these keys (text of the statement does not depend on their number)
	Query    *record.Query    // may be nil
	// Guard limits the records of every table that the statement touches, the joined and related ones included: a record
	// that it refuses is absent. Nil, or nil for a table, is no limit. It must depend on nothing but the table.
	Guard func(*catalog.Table) *record.Expr
	Lock  bool
}

// Result is the rows of a read.
type Result struct {
	*record.Rows
	// Total is the number of all matching records when Query.Count asked for it, else -1.
	Total int64
}

// InsertSet is new records of one table: Rows[i][j] is the value of Fields[j]. On hierarchies the class field is one of
// the fields. Return asks for columns as stored, generated ones included.
type InsertSet struct {
	Table  *catalog.Table
	Fields []string
	Rows   [][]record.Value
	Return []string
}

// UpdateSet gives the records with Keys[i] new values: Rows[i][j] for Fields[j]. Keys are distinct.
type UpdateSet struct {
	Table  *catalog.Table
	Keys   [][]record.Value
	Fields []string
	Rows   [][]record.Value
	Return []string
}

// DeleteSet is records to remove by key. Keys are distinct.
type DeleteSet struct {
	Table *catalog.Table
	Keys  [][]record.Value
}

// Written is what a set did.
type Written struct {
	// Errs is by row; nil when no row failed. A database that writes row by row (SQLite) also names here the rows of other
	// faults than conflicts, in updates and deletes too; rows without an error are written.
	Errs []*record.Error
	Hit  []bool       // by row: a record was written (updates and deletes)
	Rows *record.Rows // what Return asked for, aligned with the set's rows (null rows where nothing was written)
}

// Stats are the figures of a connection pool.
type Stats struct {
	Max, InUse, Idle, Waiting int
	Borrowed                  int64         // connections handed out so far
	Timeouts                  int64         // requests that waited for one in vain so far
	WaitTime                  time.Duration // total time waited for one
}

// String is the figures for people.
func (s Stats) String() string {
	return fmt.Sprintf("%d of %d in use, %d idle, %d waiting; %d borrowed, %d timeouts so far", s.InUse, s.Max, s.Idle, s.Waiting, s.Borrowed, s.Timeouts)
}

// Schema inspects and changes the stored tables of a database.
type Schema interface {
	// Plan lists what is missing or different for the tables of s: additive changes, and others with the reason why they
	// would destroy something. External tables are compared, never changed.
	Plan(ctx context.Context, s *catalog.Snapshot) (*Plan, error)
	// Apply carries out changes in one transaction.
	Apply(ctx context.Context, changes []Change) error
	// Introspect describes the existing tables and views of a database schema ("" for the default one) as definitions.
	Introspect(ctx context.Context, schema string) ([]catalog.TableDef, error)
	// Routines describes the functions and procedures of a database schema ("" for the default one) that can be called from outside.
	Routines(ctx context.Context, schema string) ([]Routine, error)
}

// Plan is the difference between definitions and a database.
type Plan struct {
	Additive    []Change
	Destructive []Change
}

// Change is one step of a plan.
type Change struct {
	Table  string
	What   string // for people: "add column number text"
	SQL    []string
	Reason string // why a destructive change is one
}
