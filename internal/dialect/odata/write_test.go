package odata

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"weir/internal/dialect/dialecttest"
	"weir/internal/engine"
	"weir/internal/script"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

// onShops calls f for each database with a maker of shops that are empty. Without a PostgreSQL for tests it is SQLite alone.
func onShops(t *testing.T, f func(t *testing.T, open func(t *testing.T) dialecttest.Server)) {
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) dialecttest.Server {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
			if err != nil {
				t.Fatal(err)
			}
			return newShop(t, s)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		if storetest.Postgres(t) == "" {
			return
		}
		f(t, func(t *testing.T) dialecttest.Server {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: storetest.Postgres(t)})
			if err != nil {
				t.Fatal(err)
			}
			return newShop(t, s)
		})
	})
}

func newShop(t *testing.T, s store.Store) dialecttest.Server {
	t.Cleanup(func() { s.Close() })
	snap := shop(t)
	storetest.Create(t, s, snap)
	var ids atomic.Int64
	e, err := engine.New(s, engine.Options{
		Now: shopDialect().now, Invoker: script.New(script.Options{}), NewID: func() string { return fmt.Sprintf("%032x", ids.Add(1)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return dialecttest.Server{Snapshot: snap, Executor: e, Dialect: shopDialect()}
}

// The files of testdata/write run in order against an empty shop on a real engine.
func TestGolden_Write(t *testing.T) {
	onShops(t, func(t *testing.T, open func(t *testing.T) dialecttest.Server) {
		dialecttest.EndToEnd(t, "testdata/write/*.txtar", open)
	})
}
