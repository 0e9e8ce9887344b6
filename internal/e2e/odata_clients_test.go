package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestODataClients has unmodified clients work with the sample service: OpenUI5's models in a browser, SAP Cloud SDK with a client that
// it generates from our $metadata, @odata/client and SAP's odata-library. What each does is in clients/.
func TestODataClients(t *testing.T) {
	dir := clientsDir(t)
	each := onEach
	if split { // what the databases do differently shows without the wire
		each = func(t *testing.T, f func(t *testing.T, kind string)) {
			t.Run("sqlite", func(t *testing.T) { f(t, "sqlite") })
		}
	}
	each(t, func(t *testing.T, kind string) {
		base := origin(t, serve(t, demoData(t, kind)), dir)
		run := func(name string, command ...string) {
			t.Run(name, func(t *testing.T) { scenarios(t, command...) })
		}
		run("OpenUI5", "ui5.mjs", base)
		made := generateClients(t, dir, base)
		for _, version := range []string{"v2", "v4"} {
			run("SAP Cloud SDK "+version, "cloud-sdk.mjs", base, made, version)
			run("odata-client "+version, "odata-client.mjs", base, version)
			run("odata-library "+version, "odata-library.mjs", base, version)
		}
	})
}

// clientsDir is the folder whose node_modules holds the clients that scripts/with-clients installs. Without it there is nothing to
// test, which fails in CI.
func clientsDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("WEIR_TEST_CLIENTS")
	switch {
	case dir != "" && os.Getenv("WEIR_TEST_CHROMIUM") == "":
		t.Fatal("WEIR_TEST_CHROMIUM is not set: run the tests through scripts/with-clients")
	case dir == "" && os.Getenv("CI") == "true":
		t.Fatal("WEIR_TEST_CLIENTS is not set: run the tests through scripts/with-clients")
	case dir == "":
		t.Skip("WEIR_TEST_CLIENTS is not set: run the tests through scripts/with-clients")
	}
	return dir
}

// origin puts the services, OpenUI5's sources and the scenarios on one origin, as an application's server does.
func origin(t *testing.T, w *weir, dir string) string {
	t.Helper()
	to, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	resources := filepath.Join(dir, "node_modules/@openui5/sap.ui.core/src")
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

// nodeLimit bounds one run of a client. It judges nothing: the scenarios have limits of their own.
const nodeLimit = 5 * time.Minute

// node runs a script of Node.js in a folder. It reaches nothing but this machine, whatever proxy the environment names.
func node(t *testing.T, dir string, args ...string) (stdout []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nodeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	// Asked to end, it ends its browser first.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	var said bytes.Buffer
	cmd.Stderr = &said
	if stdout, err = cmd.Output(); err != nil {
		err = errors.Join(err, ctx.Err(), errors.New(said.String()))
	}
	return stdout, err
}

// scenarios runs a script of clients/ and makes a subtest of each line that it prints.
func scenarios(t *testing.T, command ...string) {
	t.Helper()
	out, err := node(t, "clients", command...)
	ran := 0
	for lines := json.NewDecoder(bytes.NewReader(out)); ; ran++ {
		var s struct{ Name, Error string }
		if bad := lines.Decode(&s); bad == io.EOF {
			break
		} else if bad != nil {
			t.Fatalf("%s printed %v: %s", command[0], bad, out)
		}
		t.Run(s.Name, func(t *testing.T) {
			if s.Error != "" {
				t.Error(s.Error)
			}
		})
	}
	if err != nil && !t.Failed() || ran == 0 {
		t.Fatalf("%s, after %d scenarios: %v", command[0], ran, err)
	}
}

// generated is what SAP Cloud SDK has generated, once for all tests: the documents do not depend on the database.
var generated struct {
	once sync.Once
	dir  string
	err  error
}

// generateClients has SAP Cloud SDK generate and compile clients from the $metadata of the sample service in V2 and V4.
func generateClients(t *testing.T, dir, base string) string {
	t.Helper()
	generated.once.Do(func() {
		generated.dir = filepath.Join(filled.dir, "clients")
		generated.err = generate(t, dir, base, generated.dir)
	})
	if generated.err != nil {
		t.Fatal(generated.err)
	}
	return generated.dir
}

func generate(t *testing.T, dir, base, out string) error {
	// The V2 document says itself where its service is; for V4 the generator has to be told.
	const root4 = "/sap/opu/odata4/iwbep/gwsample/default/iwbep/GWSAMPLE_BASIC/0001"
	v2, err := metadata(base + "/sap/opu/odata/IWBEP/GWSAMPLE_BASIC")
	if err != nil {
		return err
	}
	v4, err := metadata(base + root4)
	if err != nil {
		return err
	}
	tsconfig, err := filepath.Abs("clients/tsconfig.json")
	if err != nil {
		return err
	}
	options := `{"gwsample-v4.edmx":{"directoryName":"gwsample-v4","packageName":"gwsample-v4","basePath":"` + root4 + `"}}`
	if err := errors.Join(
		os.Mkdir(out, 0o777),
		os.WriteFile(out+"/gwsample-v2.edmx", v2, 0o666), os.WriteFile(out+"/gwsample-v4.edmx", v4, 0o666), os.WriteFile(out+"/options.json", []byte(options), 0o666),
		os.Symlink(filepath.Join(dir, "node_modules"), out+"/node_modules"),
	); err != nil {
		return err
	}
	_, err = node(t, out, "node_modules/@sap-cloud-sdk/generator/dist/cli.js",
		"--input", "*.edmx", "--outputDir", ".", "--optionsPerService", "options.json", "--transpile", "--tsconfig", tsconfig)
	return err
}

// metadata reads the $metadata document of a service.
func metadata(root string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, root+"/$metadata", nil)
	if err != nil {
		return nil, err
	}
	req.SetBasicAuth("admin", "admin")
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, errors.New(root + "/$metadata: " + res.Status)
	}
	return io.ReadAll(res.Body)
}
