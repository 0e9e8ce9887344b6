// Package sqlite stores records in one SQLite file.
//
// It is the database of a weir that nobody set up: no server, one file that people can open with any SQLite tool. It
// promises what the interface of package store promises, in this way:
//
//   - WAL, synchronous=FULL: what was acknowledged survives a power cut. Commits are paid for by the set, since the engine
//     puts many records into one.
//   - One write connection, taken in turn (first come, first served); a bounded number of read connections, opened when
//     needed, which the database itself keeps from writing (PRAGMA query_only). Several processes may share the file: a
//     writer waits for the other's lock as long as for a connection (database.pool.wait).
//   - Statements are prepared once for each connection. A set is written by a loop over one prepared statement in the
//     transaction, 0.4 million rows a second, where a statement over a JSON array makes 0.1. A row that fails is undone by
//     SQLite itself and the others stand, so Written.Errs names all kinds of faults here, not only conflicts.
//   - Rows stream as views of the connection's memory, valid until the next row; reading allocates nothing for each value.
//   - A context that ends interrupts the running statement.
//
// How values are stored:
//
//	string, reference, list, journal, password, json, guid  TEXT
//	integer, duration                                       INTEGER
//	float                                                   REAL
//	boolean                                                 INTEGER 0 or 1
//	datetime   TEXT "YYYY-MM-DD hh:mm:ss[.ffffff]", UTC, no trailing zeros: its order is that of time, and people can
//	           read it; parsing costs 20 ns, which no list shows
//	date       TEXT "YYYY-MM-DD"
//	decimal    TEXT, as given, since SQLite's numbers would lose digits. Comparisons, sorting and grouping name the
//	           collation weir_decimal, which orders the digits as numbers, and sums are exact. An index on a decimal
//	           declared without that collation does not serve comparisons. Arithmetic in conditions is floating-point.
//	bytes      BLOB
//
// On a platform without shared memory for the WAL index (Windows, BSD) one exclusive connection serves all, and the file
// cannot be shared between processes.
package sqlite
