package ords

import (
	"weir/internal/dialect"
	"weir/internal/record"
)

// routine is a call of a function or procedure.
func (q *tableCall) routine() (*dialect.Exchange, error) {
	return nil, record.Errorf(record.NotAllowed, "", "routines cannot be called yet")
}

// routinePaths adds the path of a routine.
func (q *request) routinePaths(paths object, t *thing) {}
