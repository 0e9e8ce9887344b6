package postgres

import (
	"context"
	"errors"
	"sync"
	"testing"

	"weir/internal/record"
	"weir/internal/store/storetest"
)

func TestSchema_PassesTheSuite(t *testing.T) {
	s := open(t, Options{})
	if s == nil {
		return
	}
	storetest.RunSchema(t, s)
}

func TestOpen_NodesThatStartTogetherShareTheSystemTables(t *testing.T) {
	url := storetest.Postgres(t)
	if url == "" {
		return
	}
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() {
			s, err := Open(context.Background(), Options{URL: url, Max: 2})
			if errs[i] = err; err == nil {
				errs[i] = s.Close()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err, record.AsError(err).Err)
	}
}

func TestOpen_ServerThatIsNotThereIsUnavailable(t *testing.T) {
	_, err := Open(context.Background(), Options{URL: "postgres://nobody@127.0.0.1:1/none"})
	if record.KindOf(err) != record.Unavailable {
		t.Fatalf("got %v", err)
	}
}
