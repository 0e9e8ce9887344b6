package project

import (
	"context"
	"log/slog"
	"time"

	"weir/internal/catalog"
	"weir/internal/store"
)

// A notice can be lost while a connection is made or made again, so the version is also looked at now and then: one read
// of one row. After an error the next look comes sooner.
const (
	lookEvery = 15 * time.Second
	lookAgain = time.Second
)

// Follow keeps cat at the version that is applied, until ctx ends; then it returns nil. While the database cannot be read
// cat keeps what it has. log may be nil.
func Follow(ctx context.Context, st store.Store, cat *catalog.Catalog, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	noticed := make(chan struct{}, 1)
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-noticed:
			case <-timer.C:
			}
			next := lookEvery
			if err := Refresh(ctx, st, cat, log); err != nil && ctx.Err() == nil {
				log.Error("definitions cannot be read; the last ones stay", "err", err)
				next = lookAgain
			}
			timer.Reset(next)
		}
	}()
	err := st.Watch(ctx, func() {
		select {
		case noticed <- struct{}{}:
		default: // a look is due already
		}
	})
	cancel()
	<-done
	return err
}

// Refresh brings cat to the version that is applied now.
func Refresh(ctx context.Context, st store.Store, cat *catalog.Catalog, log *slog.Logger) error {
	return cat.Update(func(was *catalog.Snapshot) (*catalog.Snapshot, error) {
		version, err := Version(ctx, st)
		if err != nil || was != nil && was.Version == version {
			return was, err
		}
		s, err := Load(ctx, st)
		if err == nil {
			log.Info("definitions", "version", s.Version)
		}
		return s, err
	})
}
