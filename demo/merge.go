package demo

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// merged is several file systems as one: a folder holds what it holds in any of them, and of files with one path the first is
// seen.
type merged []fs.FS

// Open opens a file, or a folder that lists what all parts have in it.
func (m merged) Open(name string) (fs.File, error) {
	err := error(&fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	for _, part := range m {
		f, openErr := part.Open(name)
		if openErr != nil {
			if !errors.Is(openErr, fs.ErrNotExist) {
				return nil, openErr
			}
			continue
		}
		info, statErr := f.Stat()
		if statErr != nil {
			f.Close()
			return nil, statErr
		}
		if !info.IsDir() {
			return f, nil
		}
		entries, readErr := m.ReadDir(name)
		if readErr != nil {
			f.Close()
			return nil, readErr
		}
		return &folder{File: f, entries: entries}, nil
	}
	return nil, err
}

// ReadDir lists a folder, sorted by name.
func (m merged) ReadDir(name string) ([]fs.DirEntry, error) {
	var list []fs.DirEntry
	err := error(&fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist})
	for _, part := range m {
		entries, partErr := fs.ReadDir(part, name)
		if partErr != nil {
			if !errors.Is(partErr, fs.ErrNotExist) {
				return nil, partErr
			}
			continue
		}
		err = nil
		for _, e := range entries {
			if !slices.ContainsFunc(list, func(o fs.DirEntry) bool { return o.Name() == e.Name() }) {
				list = append(list, e)
			}
		}
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// folder is an open folder of a merged file system.
type folder struct {
	fs.File
	entries []fs.DirEntry
	next    int
}

// ReadDir returns the next n entries, or all that are left if n is not positive.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	left := f.entries[f.next:]
	if n <= 0 {
		f.next = len(f.entries)
		return slices.Clone(left), nil
	}
	if len(left) == 0 {
		return nil, io.EOF
	}
	left = left[:min(n, len(left))]
	f.next += len(left)
	return slices.Clone(left), nil
}
