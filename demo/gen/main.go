// Command gen writes the records of the demo project: the data/*.csv of its parts. It draws from a fixed seed for each table, so
// that the same program always writes the same bytes, and a change to one table leaves the others alone.
//
// Run it from the root of the repository: go run ./demo/gen
package main

import (
	"flag"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"weir/demo"
)

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", "demo", "the `folder` that holds the parts of the demo")
	flag.Parse()

	files, err := generate(demo.Project())
	if err != nil {
		log.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(*dir, name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	log.Printf("wrote %d files below %s", len(files), *dir)
}

// generate returns the text of each data file by its path: the part, then the path in the project. It reads the project's tables, because
// sys_dictionary and its kin repeat what stands there.
func generate(project fs.FS) (map[string][]byte, error) {
	var sheets []*sheet
	w := newWorld()
	for _, make := range []func() []*sheet{w.organisation, w.people, w.things, w.work, w.settings, sales, staff} {
		sheets = append(sheets, make()...)
	}
	described, err := describe(project)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte)
	for _, s := range append(sheets, described...) {
		files[s.part+"/data/"+s.table+".csv"] = s.csv()
	}
	return files, nil
}
