package odata

import (
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// fault is an error on its way to the wire.
type fault struct {
	status    int
	code      string
	message   string
	target    string // property or position at fault
	contentID string // of the part of a changeset that failed
	details   []fault
	err       *record.Error
}

// fail writes the error envelope for err in the format that the call accepts.
func (d *Dialect) fail(c *dialect.Call, err error, a *wire.Answer) {
	a.Status = 500
}
