// Package demo holds the project that weir serves when it is given none: IT service management, with tasks, a configuration
// database, users, import sets, twenty scripted endpoints and some two thousand records. It is a project folder like any other.
//
// The records are written by the generator in demo/gen and committed; `go run ./demo/gen` writes them again.
package demo

import (
	"embed"
	"io/fs"
)

//go:embed all:itsm
var files embed.FS

// ITSM returns the demo's project folder: weir.yaml stands at its root. It is read-only and safe for concurrent use.
func ITSM() fs.FS {
	project, err := fs.Sub(files, "itsm")
	if err != nil {
		panic(err) // the name is a constant and valid
	}
	return project
}
