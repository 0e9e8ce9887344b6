package store

import (
	"context"
	"fmt"
	"time"

	"weir/internal/record"
)

// Plain runs the operator's own SQL, that of SQL endpoints. A statement is a [Statement] whose Out may have columns of unknown
// type (Untyped): their values say it themselves. It runs without the rights of a superuser, and on SQLite without ATTACH and PRAGMA.
type Plain interface {
	// Describe asks the database what a statement takes and gives, without running it. Parameters stand in it as $1 …
	// (PostgreSQL) or ?1 … (SQLite); natives are the database's own types of parameters that are known, "" for others. When the
	// statement is wrong the error is a *SQLError.
	Describe(ctx context.Context, sql string, natives []string) (*Described, error)
	// Select runs a statement that reads and streams its rows, as Query does.
	Select(ctx context.Context, st *Statement, args []record.Value, o SQLOptions) (*record.Rows, error)
	// BeginPlain is Begin for statements that Tx.Run runs.
	BeginPlain(ctx context.Context, o SQLOptions) (Tx, error)
	// Explain is the database's plan for a SELECT. With analyze it is run, in a transaction that can write nothing.
	Explain(ctx context.Context, st *Statement, args []record.Value, analyze bool, o SQLOptions) (*Explained, error)
	// Resize changes how many connections there may be and how long work waits for one; 0 leaves it. Connections in use are not
	// disturbed.
	Resize(limit int, wait time.Duration)
}

// SQLOptions say how a statement of the operator's runs.
type SQLOptions struct {
	Timeout time.Duration // of each statement; 0: the store's own
	Login   *record.Login // in a session of this user's own, opened for it (PostgreSQL); a wrong one is Unauthenticated
	ID      string        // of the request, for the database's own log
}

// Untyped is the type of a column whose values say it themselves.
const Untyped record.Type = 255

// Described is what a statement takes and gives.
type Described struct {
	Params  []DescribedColumn // types only
	Columns []DescribedColumn // none: it gives no rows
}

// DescribedColumn is the type of a parameter or a column.
type DescribedColumn struct {
	Name   string
	Type   record.Type // Untyped when the database does not know
	Native string
	Table  string // the stored table that the column comes from, "" if computed or unknown
	Column string
}

// SQLError is what is wrong with a statement of the operator's.
type SQLError struct {
	Msg  string // the database's own
	Code string // SQLSTATE, or SQLite's name of the code
	Pos  int    // byte of the statement, from 0; -1 if the database does not say
	// Missing is the name of a column or table that the database does not know, as it spells it, "" for other faults.
	Missing string
}

// Error is the database's message.
func (e *SQLError) Error() string {
	if e.Code == "" {
		return e.Msg
	}
	return fmt.Sprintf("%s (%s)", e.Msg, e.Code)
}

// Explained is a plan.
type Explained struct {
	Text string
	JSON []byte
	SQL  string // what was explained
}
