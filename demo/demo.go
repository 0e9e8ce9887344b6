// Package demo holds the project that weir serves when it is given none, made of three folders: itsm is IT service management,
// with tasks, a configuration database, users, import sets and twenty scripted endpoints; epm is the business partners, products
// and sales orders of the sample services that OData clients know; hr is departments and employees behind SQL endpoints. Together they
// have some three thousand records. Merged, they are a project folder like any other.
//
// The records are written by the generator in demo/gen and committed; `go run ./demo/gen` writes them again.
package demo

import (
	"embed"
	"io/fs"
)

//go:embed all:itsm all:epm all:hr
var files embed.FS

// Parts are the folders that the project is made of.
var Parts = []string{"itsm", "epm", "hr"}

// Project returns the demo's project folder: weir.yaml stands at its root. It is read-only and safe for concurrent use.
func Project() fs.FS { return whole }

var whole = func() fs.FS {
	var parts []fs.FS
	for _, name := range Parts {
		part, err := fs.Sub(files, name)
		if err != nil {
			panic(err) // the names are constants and valid
		}
		parts = append(parts, part)
	}
	return merged(parts)
}()
