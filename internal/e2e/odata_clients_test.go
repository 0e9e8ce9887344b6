package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// clientsDir is the folder whose node_modules holds the clients that scripts/with-clients installs.
func clientsDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("WEIR_TEST_CLIENTS")
	if dir == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("WEIR_TEST_CLIENTS is not set: run by scripts/with-clients")
		}
		t.Skip("WEIR_TEST_CLIENTS is not set: run by scripts/with-clients")
	}
	return dir
}

// scenarios runs a script of clients/ and makes a subtest of each line that it prints.
func scenarios(t *testing.T, script string, args ...string) {
	t.Helper()
	clientsDir(t)
	cmd := exec.Command("node", append([]string{filepath.Join("clients", script)}, args...)...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, failed := cmd.Output()
	ran := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); ran++ {
		var s struct{ Name, Error string }
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%s printed %q", script, lines.Text())
		}
		t.Run(s.Name, func(t *testing.T) {
			if s.Error != "" {
				t.Error(s.Error)
			}
		})
	}
	if failed != nil && !t.Failed() || ran == 0 {
		t.Fatalf("%s: %v, %d scenarios\n%s", script, failed, ran, errors.String())
	}
}

// origin puts the services, OpenUI5's sources and the scenarios on one origin, as an application's server does.
func origin(t *testing.T, w *weir) string {
	t.Helper()
	to, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	resources := filepath.Join(clientsDir(t), "node_modules/@openui5/sap.ui.core/src")
	mux.Handle("/resources/", http.StripPrefix("/resources/", http.FileServer(http.Dir(resources))))
	mux.Handle("/clients/", http.StripPrefix("/clients/", http.FileServer(http.Dir("clients"))))
	mux.Handle("/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestODataClients_OpenUI5(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		base := origin(t, serve(t, demoData(t, kind)))
		for _, module := range []string{"ui5v2", "ui5v4"} {
			t.Run(module, func(t *testing.T) { scenarios(t, "ui5.mjs", base, module) })
		}
	})
}
