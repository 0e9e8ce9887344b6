package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weir/internal/config"
	"weir/internal/record"
)

// levers are the settings that change while a node runs, beside those of the gate.
type levers struct {
	mu        sync.Mutex
	base, now *config.Effective // as they were read; in force
	apply     []func(*config.Config)
	elsewhere []string // what other nodes have: beginnings of names
}

// newLevers are the settings as they were read, but for those whose names begin with elsewhere.
func newLevers(e *config.Effective, elsewhere ...string) *levers {
	return &levers{base: e, now: e, elsewhere: elsewhere}
}

// others reports whether a setting is one of other nodes.
func (l *levers) others(name string) bool {
	return slices.ContainsFunc(l.elsewhere, func(p string) bool { return strings.HasPrefix(name, p) })
}

// pull puts the settings in force in one more part.
func (l *levers) pull(apply func(*config.Config)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apply = append(l.apply, apply)
	apply(&l.now.Config)
}

// reread puts settings in force that were read again. What was changed meanwhile is forgotten.
func (l *levers) reread(e *config.Effective) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base, l.now = e, e
	l.push()
}

func (l *levers) push() {
	for _, f := range l.apply {
		f(&l.now.Config)
	}
}

// list is what the page of settings shows.
func (l *levers) list() (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rows, err := l.now.Rows()
	for i := range rows {
		rows[i].Live = rows[i].Live && !l.others(rows[i].Setting)
	}
	return rows, err
}

// change puts a patch in force.
func (l *levers) change(_ context.Context, patch []byte, by string) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, names, err := l.now.Change(l.base, patch, fmt.Sprintf("changed by %s at %s", by, time.Now().UTC().Format(time.RFC3339)))
	if err != nil {
		return nil, record.Errorf(record.Invalid, "", "%s", err.Error())
	}
	if i := slices.IndexFunc(names, l.others); i >= 0 {
		return nil, record.Errorf(record.Invalid, names[i], "that is the backends': change it there, with a new start")
	}
	l.now = next
	l.push()
	return names, nil
}
