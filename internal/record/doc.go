// Package record is weir's vocabulary: values, expressions, operations, units, outcomes and the error type.
//
// Everything here is data. A unit can be encoded, sent to another process and executed there; it holds no closures, no
// catalog pointers and no trace of HTTP or SQL. Packages above translate protocols into these words, packages below
// translate them into SQL.
package record
