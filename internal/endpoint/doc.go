// Package endpoint is SQL endpoints below the protocol: files of annotations and SQL to definitions ([Parse]), definitions to what the
// database runs ([Compile]), and the runner that executes calls for the engine ([Runner]).
//
// A file becomes a handler in ORDS' words. When a project is applied the database describes each statement, so that mistakes are
// found then, with file, line and column; CURSOR(SELECT …) becomes part of the one statement that builds the JSON in the database.
package endpoint
