package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestWatch_AppliesAgainWhenAFileHasChanged(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	applied, done := make(chan int, 10), make(chan error, 1)
	var said bytes.Buffer
	n := 0
	go func() {
		done <- watch(ctx, os.DirFS(dir), &said, func() error {
			n++
			applied <- n
			if n == 2 {
				return errors.New("a.sql:1:8: no such column")
			}
			return nil
		})
	}()
	wait := func(want int) {
		t.Helper()
		select {
		case got := <-applied:
			if got != want {
				t.Fatalf("apply %d, want %d", got, want)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("no apply %d", want)
		}
	}
	wait(1)
	for i, text := range []string{"SELECT nothing", "SELECT 1"} {
		if err := os.WriteFile(filepath.Join(dir, "a.sql"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		wait(i + 2)
	}
	stop()
	if err := <-done; err != nil || said.String() != "weir: a.sql:1:8: no such column\n" {
		t.Errorf("%v, %q", err, said.String())
	}
}
