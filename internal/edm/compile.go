package edm

import (
	"errors"

	"weir/internal/catalog"
)

// Compile resolves a definition against the tables of snap. The error joins all faults, each with the set and property.
func Compile(snap *catalog.Snapshot, def *catalog.ServiceDef) (*Service, error) {
	return nil, errors.New("not built yet")
}
