package postgres

import (
	"testing"
	"time"

	"weir/internal/store"
	"weir/internal/store/storetest"
)

func TestStore_PassesTheSuite(t *testing.T) {
	if storetest.Postgres(t) == "" {
		return
	}
	storetest.Run(t, func(t *testing.T, size int) store.Store {
		return open(t, Options{Max: size, Wait: time.Second})
	})
}
