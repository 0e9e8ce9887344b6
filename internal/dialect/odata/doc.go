// Package odata is the OData front end, V2 as SAP Gateway speaks it and V4 (4.01), over services that a project defines.
//
// A call goes down as url → target and query (the parser), → ops (read, write, deep insert), and comes up as outcomes → nodes
// → text (one format each for V2 JSON, V4 JSON and Atom). Both versions share everything between the two ends. A changeset or an
// atomicity group is a few exchanges whose ops are one group of the unit; a deep insert is one exchange whose ops are one, so both cost
// the same statements.
package odata
