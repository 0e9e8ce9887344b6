package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// update rewrites the golden files from what the server answers.
var update = flag.Bool("update", false, "rewrite the golden files")

// binary is the command under test: built once for all tests, or the one that WEIR_TEST_BINARY names (a release, say).
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weir-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary = os.Getenv("WEIR_TEST_BINARY"); binary == "" {
		binary = filepath.Join(dir, "weir")
		build := exec.Command("go", "build", "-o", binary, "weir/cmd/weir")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
			return 1
		}
	}
	filled.dir = dir
	defer filled.drop()
	return m.Run()
}
