// Package catalog holds the definitions that weir serves: tables, fields, access, rules, endpoints.
//
// Definitions ([Definitions], as table files spell them) are compiled by [Build] into an immutable [Snapshot]. A
// [Catalog] holds the current snapshot behind one atomic pointer; a request takes it once and carries it down, so a
// change in mid-flight cannot show one request two truths.
package catalog
