// Package e2e proves the promises of the whole: its tests build the command, start it as a child process on a database of its
// own and talk to it over real sockets, as clients do. What they kill, they kill; what they flood, they flood.
//
// There is nothing here but tests. Each runs on SQLite and, where WEIR_TEST_POSTGRES names a server, on PostgreSQL.
package e2e
