// Package postgres stores records in PostgreSQL.
//
// It speaks the extended protocol directly on pgx's connections: statements are prepared once for each connection, a set
// is one statement whose parameters are arrays, and what surrounds a statement (BEGIN, SAVEPOINT, RELEASE) travels in
// the same round trip. Values are read from the row buffer without a copy.
//
// A broken connection is dropped and replaced when the server is back; what was under way on it gets an Unavailable
// error. A connection lost during COMMIT leaves the outcome unknown, and the error says so.
package postgres
