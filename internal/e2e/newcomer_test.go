package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestNewcomer_OneCommandAnswers is what somebody sees who has just built weir: a server in an empty folder, and three lines to try.
func TestNewcomer_OneCommandAnswers(t *testing.T) {
	dir := t.TempDir()
	w := &weir{t: t}
	w.launch(dir, "serve", "--listen", "127.0.0.1:0")
	t.Cleanup(w.kill)
	said := w.greet.String()
	t.Logf("answered after %s", w.took)
	if limit := 5 * time.Second; w.took > limit {
		t.Errorf("the first start took %s, which is more than %s", w.took, limit)
	}
	for _, want := range []string{"http://" + w.addr, "admin / admin"} {
		if !strings.Contains(said, want) {
			t.Errorf("the greeting does not mention %q:\n%s", want, said)
		}
	}
	var lines []string
	for s := bufio.NewScanner(strings.NewReader(said)); s.Scan(); {
		if line := strings.TrimSpace(s.Text()); strings.HasPrefix(line, "curl ") {
			lines = append(lines, line)
		}
	}
	if len(lines) != 3 {
		t.Fatalf("%d curl lines instead of 3:\n%s", len(lines), said)
	}
	for _, line := range lines {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		// As typed into a shell, but an error answer is an error.
		out, err := exec.CommandContext(ctx, "sh", "-c", strings.Replace(line, "curl ", "curl --silent --show-error --fail ", 1)).CombinedOutput()
		cancel()
		if err != nil {
			t.Errorf("%s\n%v\n%s", line, err, out)
		} else if !strings.HasPrefix(string(out), `{"result":`) {
			t.Errorf("%s\nanswered %s", line, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "weir-data", "weir.db")); err != nil {
		t.Errorf("the data is not where the help says: %v", err)
	}
	if code := w.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}

	// What was there before is served at once.
	w.launch(dir, "serve", "--listen", "127.0.0.1:0")
	t.Logf("answered after %s on an existing database", w.took)
	if limit := 2 * time.Second; w.took > limit {
		t.Errorf("the second start took %s, which is more than %s", w.took, limit)
	}
	if n := len(w.rows("incident", "short_description=disk full", "number")); n != 1 {
		t.Errorf("%d incidents of the curl line, not 1", n)
	}
}
