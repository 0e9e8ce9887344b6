package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The same requests as three people: an administrator, an agent of the service desk (role itil) and an employee (role ess). A golden
// file is a story: comments, and requests ("> METHOD path", then the body) each followed by what each of the three is answered, as
// status, X-Total-Count if there is one, and body. Requests that change something do so for the three in turn.
var people = []struct{ name, user string }{
	{"admin", "admin"}, {"itil", "beth.anglin"}, {"ess", "abel.tuter"},
}

// TestAccess_GoldenFiles plays all stories, each on a database of its own, and both databases must give the same answers.
func TestAccess_GoldenFiles(t *testing.T) {
	stories, err := filepath.Glob("testdata/access/*.txt")
	if err != nil || len(stories) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	onEach(t, func(t *testing.T, kind string) {
		for _, story := range stories {
			t.Run(strings.TrimSuffix(filepath.Base(story), ".txt"), func(t *testing.T) {
				text, err := os.ReadFile(story)
				if err != nil {
					t.Fatal(err)
				}
				played := play(t, serve(t, demoData(t, kind)), string(text))
				if *update && kind == "sqlite" {
					if err := os.WriteFile(story, []byte(played), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				if diff := cmp.Diff(string(text), played); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	})
}

// play sends a story's requests and writes it down anew with the answers.
func play(t *testing.T, w *weir, story string) string {
	t.Helper()
	var out bytes.Buffer
	lines := strings.Split(strings.TrimRight(story, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		call, isRequest := strings.CutPrefix(line, "> ")
		if !isRequest {
			if !answerLine(line) {
				fmt.Fprintln(&out, line)
			}
			continue
		}
		fmt.Fprintln(&out, line)
		method, path, _ := strings.Cut(call, " ")
		var body []string
		for i+1 < len(lines) && lines[i+1] != "" && !answerLine(lines[i+1]) {
			i++
			body = append(body, lines[i])
			fmt.Fprintln(&out, lines[i])
		}
		for _, p := range people {
			a, err := w.do(request{method: method, path: path, user: p.user, body: strings.Join(body, "\n")})
			if err != nil {
				t.Fatalf("%s as %s: %v", line, p.name, err)
			}
			fmt.Fprintf(&out, "%-6s%s\n", p.name, shown(t, w, path, a))
		}
	}
	return out.String()
}

func answerLine(line string) bool {
	for _, p := range people {
		if strings.HasPrefix(line, fmt.Sprintf("%-6s", p.name)) && len(line) > 9 && line[6] >= '1' && line[6] <= '5' {
			return true
		}
	}
	return false
}

// shown is an answer in one line. A batch's items are shown as what they hold.
func shown(t *testing.T, w *weir, path string, a answer) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprint(&b, a.status)
	if n := a.header.Get("X-Total-Count"); n != "" {
		fmt.Fprintf(&b, " total=%s", n)
	}
	if strings.HasSuffix(path, "/batch") && a.status == http.StatusOK {
		var items batchAnswer
		decode(t, a.body, &items)
		for _, it := range items.Serviced {
			fmt.Fprintf(&b, " | %s: %d %s", it.ID, it.Status, strings.TrimSpace(it.text(t)))
		}
	} else {
		fmt.Fprintf(&b, " %s", strings.TrimSpace(a.body))
	}
	return strings.ReplaceAll(b.String(), w.url, "http://HOST")
}
