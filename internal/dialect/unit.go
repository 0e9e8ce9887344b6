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
	return &record.Unit{Version: snap.Version, Ops: ex.Ops, Actors: actors(c.Actor, ex.Ops), Ordered: ex.Ordered}
}

// AsWeir is the Actor of an op that runs as weir itself, without access rules. A dialect uses it only to read what
// belongs to a record that the same exchange reads as the caller, and shows nothing of it if that fails.
const AsWeir = 1

// actors are the actors of a unit of ops: the caller, then weir itself if an op asks for it.
func actors(caller record.Actor, ops []record.Op) []record.Actor {
	for i := range ops {
		if ops[i].Actor == AsWeir {
			return []record.Actor{caller, {System: true}}
		}
	}
	return []record.Actor{caller}
}
