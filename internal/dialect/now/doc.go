// Package now is the dialect of the Now REST API: the Table API, the Aggregate API, encoded queries, display values, the
// error envelope, JSON and XML.
//
// It decodes a call into ops and renders their outcomes. It is safe for concurrent use. Wire facts follow the vendor's
// public documentation of release "Australia" and the behaviour that published clients rely on; where those are silent
// the choice is ours and the comment says so.
package now
