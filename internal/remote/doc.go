// Package remote is the line between a hub, which speaks the protocols, and its backends, which own the database, the engine,
// the definitions and the users.
//
// A [Server] stands at a backend and runs what hubs send it; a [Client] stands at a hub and is its executor, its authority on
// who is calling and the source of its definitions. Both ends must know each other: by certificates of one authority (mutual TLS), or
// for trials by a shared key.
//
// What a client promises:
//
//   - A call is sent again, to another backend, only when that changes nothing: it never left, or it only reads, or every write of it
//     carries an idempotency token.
//   - Whatever else becomes of a backend, the caller has an answer: an Unavailable, which says whether anything may have happened.
//     Rows that stream end with that error.
//   - A deadline or the end of the caller's context ends the work at the backend.
//   - The times of the backend are those of the recorder in the caller's context; what a call took beyond them is the layer wire.
package remote
