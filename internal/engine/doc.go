// Package engine executes units: it plans their ops into waves of sets, runs the sets on a store and says what became of
// each op.
//
// Its first law is that fusion is unobservable but for time: results, errors and final state are those of running the ops
// one by one in the order given. What the law rests on:
//
//   - Order holds between ops whose footprints meet with at least one writing ([footprint.go], [plan.go]).
//   - An op that fails before it changed anything just fails. Whatever fails later undoes its whole run of atoms, which is
//     then halved until the guilty atom stands alone ([halve.go]).
//   - A set runs only ops that cannot see each other: one op per key, no rule that reads what the set writes.
//
// All writes of a unit run on one transaction in plan order and are committed once. Reads that no write of the unit can
// touch run beside each other on read connections. An [Engine] is safe for concurrent use; Close waits until it is quiet.
package engine
