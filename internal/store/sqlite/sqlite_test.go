package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"weir/internal/store"
	"weir/internal/store/storetest"
)

func open(t testing.TB, size int) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{
		Path: filepath.Join(t.TempDir(), "weir.db"), Max: size, Wait: time.Second, Poll: 20 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore_PassesTheSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T, size int) store.Store { return open(t, size) })
}
