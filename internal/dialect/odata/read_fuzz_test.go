package odata

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/store/sqlite"
)

// FuzzGet answers any GET from a real engine: whatever a client asks, it is never our fault.
func FuzzGet(f *testing.F) {
	files, err := filepath.Glob("testdata/read/*.txtar")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			if rest, ok := strings.CutPrefix(line, "GET /odata/v"); ok {
				f.Add(rest[0] == '2', rest[len("4/MARKET/"):], "application/json")
			}
		}
	}
	f.Add(true, "ProductSet('HT-1000')", "application/atom+xml")
	s, err := sqlite.Open(f.Context(), sqlite.Options{Path: filepath.Join(f.TempDir(), "weir.db")})
	if err != nil {
		f.Fatal(err)
	}
	m := newMarket(f, s)
	f.Fuzz(func(t *testing.T, two bool, address, accept string) {
		if len(address) > 2000 {
			return
		}
		path, query, _ := strings.Cut(address, "?")
		root := "/odata/v4/MARKET/"
		if two {
			root = "/odata/v2/MARKET/"
		}
		plain, err := url.PathUnescape(path)
		if err != nil {
			return // the server refuses it
		}
		c := &dialect.Call{Method: "GET", Path: root + plain, RawPath: root + path, RawQuery: query, Base: dialecttest.Base, Actor: dialecttest.Actors["admin"]}
		c.Header.Add("Accept", accept)
		a := dialecttest.Do(t.Context(), dialecttest.Server{Snapshot: m.snap, Executor: m.exec, Dialect: m.d}, c)
		if a.Status < 200 || a.Status >= 500 && a.Status != 501 || a.Err != nil {
			t.Fatalf("%q: %d %.500s (%v)", address, a.Status, a.Body, a.Err)
		}
		if strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") && !json.Valid(a.Body) {
			t.Fatalf("%q is no JSON: %s", address, a.Body)
		}
	})
}
