package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// lookEvery is how often the files of a project are looked at. Stating some hundred files takes a millisecond.
const lookEvery = 300 * time.Millisecond

// watch runs apply now, and again when a file of folder has changed and then rested for one look, so that no file is read while an
// editor writes it. Faults are printed, and it goes on until ctx ends.
func watch(ctx context.Context, folder fs.FS, errOut io.Writer, apply func() error) error {
	run := func() {
		if err := apply(); err != nil && ctx.Err() == nil {
			fmt.Fprintf(errOut, "weir: %v\n", err)
		}
	}
	seen := fingerprint(folder)
	run()
	applied := seen
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now := fingerprint(folder)
		rested := now == seen
		seen = now
		if rested && now != applied {
			applied = now
			run()
		}
	}
}

// fingerprint is names, sizes and times of all files of a folder, but those whose names begin with a dot.
func fingerprint(folder fs.FS) [sha256.Size]byte {
	sum := sha256.New()
	err := fs.WalkDir(folder, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != "." && e.Name()[0] == '.' {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := e.Info(); err == nil && !e.IsDir() {
			fmt.Fprintf(sum, "%q %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	if err != nil {
		fmt.Fprintln(sum, err)
	}
	var out [sha256.Size]byte
	sum.Sum(out[:0])
	return out
}
