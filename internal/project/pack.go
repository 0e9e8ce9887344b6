package project

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"weir/internal/catalog"
)

// packed is the definitions of a snapshot on their way to another machine: as the rows that the database holds.
type packed struct {
	Version uint64      `json:"version"`
	Applied time.Time   `json:"applied"`
	Rows    [][3]string `json:"rows"`
}

// Pack writes the definitions of a snapshot with their version, for another machine.
func Pack(snap *catalog.Snapshot) ([]byte, error) {
	s, err := encode(snap.Definitions())
	if err != nil {
		return nil, err
	}
	return json.Marshal(packed{snap.Version, snap.Applied, s.rows})
}

// Unpack compiles the definitions that Pack wrote into a snapshot with the same version.
func Unpack(b []byte) (*catalog.Snapshot, error) {
	var p packed
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	var defs catalog.Definitions
	for _, r := range p.Rows {
		if err := decode(&defs, r[0], r[1], r[2]); err != nil {
			return nil, err
		}
	}
	snap, err := catalog.Build(p.Version, sorted(defs))
	if err != nil {
		return nil, err
	}
	snap.Applied = p.Applied
	return snap, nil
}
