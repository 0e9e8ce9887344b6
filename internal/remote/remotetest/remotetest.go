// Package remotetest puts executors behind a real socket, so that what is tested in one process is tested through hub and backend too.
package remotetest

import (
	"context"
	"net"
	"testing"
	"time"

	"weir/internal/auth"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/remote"
)

// Key is the shared key of tests.
const Key auth.Secret = "a key for tests only"

// Config is settings for a line on this machine.
func Config() remote.Config {
	c := remote.Defaults()
	c.Key, c.Listen = Key, "127.0.0.1:0"
	return c
}

// Backend serves options on a socket of this machine until the test ends, and returns its address. What options lack is filled in.
func Backend(t testing.TB, o remote.Options) (addr string) {
	t.Helper()
	if o.Config.Listen == "" {
		o.Config = Config()
	}
	if o.Drain == 0 {
		o.Drain = 10 * time.Second
	}
	s, err := remote.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", o.Config.Listen)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("backend: %v", err)
		}
	})
	return l.Addr().String()
}

// Hub connects to backends until the test ends.
func Hub(t testing.TB, c remote.Config, backends ...string) *remote.Client {
	t.Helper()
	c.Backends = backends
	hub, err := remote.Dial(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Close(); err != nil {
			t.Errorf("hub: %v", err)
		}
	})
	if err := hub.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return hub
}

// Split is x behind a socket, with the definitions as they come over it.
func Split(t testing.TB, x dialect.Executor, snap *catalog.Snapshot) (*remote.Client, *catalog.Snapshot) {
	t.Helper()
	addr := Backend(t, remote.Options{Exec: x, Snapshot: func(context.Context) (*catalog.Snapshot, error) { return snap, nil }})
	hub := Hub(t, Config(), addr)
	snap, err := hub.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return hub, snap
}
