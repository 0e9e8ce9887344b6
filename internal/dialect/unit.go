package dialect

import (
	"strconv"

	"weir/internal/catalog"
	"weir/internal/record"
)

// UnitOf is the unit of one call alone: the exchange's ops on behalf of the call's actor. Every writing op gets its own
// idempotency token, made of the exchange's and the op's place.
func UnitOf(snap *catalog.Snapshot, c *Call, ex *Exchange) *record.Unit {
	if ex.Token != "" {
		for i := range ex.Ops {
			if ex.Ops[i].Verb.Writes() && ex.Ops[i].Token == "" {
				ex.Ops[i].Token = ex.Token + "/" + strconv.Itoa(i)
			}
		}
	}
	return &record.Unit{Version: snap.Version, Ops: ex.Ops, Actors: []record.Actor{c.Actor}, Ordered: ex.Ordered}
}
