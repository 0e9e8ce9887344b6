package bench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program writes an executable script.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadIn_RunsTheProgramAndReadsItsResult(t *testing.T) {
	o := LoadOptions{
		Access:  Access{Targets: []string{"http://a", "http://b"}, User: "me", Password: "secret"},
		Request: Request{Path: "/x?y=1"}, Connections: 7, SessionPath: "/s",
	}
	script := program(t, `case "$*" in *secret*) exit 3;; esac
[ "$*" = "bench load /x?y=1 --connections 7 --duration 2s --user me --target http://a,http://b --session /s" ] || { echo "$*" >&2; exit 4; }
[ "$WEIR_TEST_BENCH_PASSWORD" = secret ] || exit 5
echo '{"requests": 12, "p90_ms": 1.5}'`)
	r, err := loadIn(context.Background(), script, o, 2*time.Second)
	if err != nil || r.Requests != 12 || r.P90MS != 1.5 {
		t.Fatalf("%+v, %v", r, err)
	}
}

func TestLoadIn_TellsWhyItFailed(t *testing.T) {
	script := program(t, "echo the server is gone >&2; exit 1")
	if _, err := loadIn(context.Background(), script, LoadOptions{}, time.Second); err == nil || !strings.Contains(err.Error(), "the server is gone") {
		t.Fatal(err)
	}
	if _, err := loadIn(context.Background(), program(t, "echo no JSON"), LoadOptions{}, time.Second); err == nil {
		t.Fatal("what is no JSON was taken for a result")
	}
}
