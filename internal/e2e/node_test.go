package e2e

import (
	"bytes"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/demo"
)

// pair is two servers over one database, started one after the other.
func pair(t *testing.T, db database, args ...string) [2]*weir {
	t.Helper()
	return [2]*weir{serve(t, db, args...), serve(t, db, args...)}
}

// TestNodes_NeverGiveANumberTwice creates on both nodes at once, singly and in batches.
func TestNodes_NeverGiveANumberTwice(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		nodes := pair(t, demoData(t, kind))
		l := newLedger()
		var clients sync.WaitGroup
		for n, w := range nodes {
			for c := range 8 {
				clients.Go(func() {
					for i := range 20 {
						if c < 6 {
							l.create(w, fmt.Sprintf("e2e-%d-%d-%d", n, c, i))
							continue
						}
						names := make([]string, 10)
						for k := range names {
							names[k] = fmt.Sprintf("e2e-%d-%d-%d-%d", n, c, i, k)
						}
						l.send(w, names, nil)
					}
				})
			}
		}
		clients.Wait()
		if want, got := 2*(6*20+2*20*10), l.acknowledged(); got != want {
			t.Errorf("%d of %d creates were acknowledged", got, want)
		}
		for _, w := range nodes {
			l.audit(t, w) // both see all of it
		}
	})
}

// TestNodes_SeeWhatIsAppliedWithoutRestart changes a project under two running nodes.
func TestNodes_SeeWhatIsAppliedWithoutRestart(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		db := demoData(t, kind)
		nodes := pair(t, db)
		folder := t.TempDir()
		if err := os.CopyFS(folder, demo.Project()); err != nil {
			t.Fatal(err)
		}
		// A field nobody has heard of is ignored, and a path leads nowhere.
		const with = "/api/now/table/incident?sysparm_fields=short_description,proof_note"
		for _, w := range nodes {
			a := w.must(http.StatusCreated, request{method: "POST", path: with, body: `{"short_description":"x","proof_note":"kept"}`}, nil)
			if a.body != `{"result":{"short_description":"x"}}` {
				t.Fatalf("before: %s", a.body)
			}
			w.must(http.StatusBadRequest, request{path: "/api/snc/proof"}, nil)
		}

		edit(t, filepath.Join(folder, "tables", "incident.yaml"), "fields:\n", "fields:\n  - {name: proof_note, label: Proof, type: string, max_length: 40}\n")
		script := example(t, folder)
		write(t, filepath.Join(folder, "endpoints", "snc", "proof.js"), script)
		out, err := exec.Command(binary, "apply", folder, "--db", db.url).CombinedOutput()
		if err != nil {
			t.Fatalf("weir apply: %v\n%s", err, out)
		}
		for i, w := range nodes {
			w.until(fmt.Sprintf("node %d to take up what was applied", i), 10*time.Second, func() bool {
				a, err := w.do(request{method: "POST", path: with, body: `{"short_description":"x","proof_note":"kept"}`})
				return err == nil && a.body == `{"result":{"short_description":"x","proof_note":"kept"}}`
			})
			w.until(fmt.Sprintf("node %d to serve the new endpoint", i), 10*time.Second, func() bool {
				a, err := w.do(request{path: "/api/snc/proof"})
				return err == nil && a.status == http.StatusOK
			})
		}
	})
}

// example is the demo's first endpoint under another address.
func example(t *testing.T, folder string) string {
	t.Helper()
	b, err := fs.ReadFile(os.DirFS(folder), "endpoints/snc/test_api_1.js")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("test_api_1", "proof", "Test API 1", "Proof").Replace(string(b))
}

func edit(t *testing.T, file, old, new string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(b, []byte(old)) {
		t.Fatalf("%s has no %q", file, old)
	}
	write(t, file, string(bytes.Replace(b, []byte(old), []byte(new), 1)))
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestNodes_RevokedCredentialIsRefusedByAll changes a password on one node that the other remembers, and then locks the user out.
func TestNodes_RevokedCredentialIsRefusedByAll(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		// The caches would keep it for an hour if nobody told them.
		nodes := pair(t, demoData(t, kind), "--set", "auth.remember=1h", "--set", "auth.roles=1h")
		const beth = "/api/now/table/sys_user/40ffc6683dd254c4684cfdad332e0a84"
		as := func(w *weir, user string) int {
			a, err := w.do(request{path: "/api/now/table/incident?sysparm_limit=1", user: user})
			if err != nil {
				t.Fatal(err)
			}
			return a.status
		}
		for i, w := range nodes {
			if got := as(w, "beth.anglin"); got != http.StatusOK {
				t.Fatalf("node %d: beth is answered %d before", i, got)
			}
		}
		nodes[0].must(http.StatusOK, request{method: "PATCH", path: beth, body: `{"user_password":"something new"}`}, nil)
		for i, w := range nodes {
			w.until(fmt.Sprintf("node %d to refuse the old password", i), 10*time.Second, func() bool { return as(w, "beth.anglin") == http.StatusUnauthorized })
		}
		nodes[1].must(http.StatusOK, request{method: "PATCH", path: beth, body: `{"user_password":"beth.anglin"}`}, nil)
		for i, w := range nodes {
			w.until(fmt.Sprintf("node %d to take the new password", i), 10*time.Second, func() bool { return as(w, "beth.anglin") == http.StatusOK })
		}
		nodes[0].must(http.StatusOK, request{method: "PATCH", path: beth, body: `{"locked_out":"true"}`}, nil)
		for i, w := range nodes {
			w.until(fmt.Sprintf("node %d to lock the user out", i), 10*time.Second, func() bool { return as(w, "beth.anglin") == http.StatusUnauthorized })
		}
	})
}
