package now_test

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"weir/demo"
	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/now"
	"weir/internal/engine"
	"weir/internal/project"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

// onDemo calls f for each database with a maker of servers, each on a fresh database with the demo in it. Without a
// PostgreSQL for tests it is SQLite alone.
func onDemo(t *testing.T, f func(t *testing.T, newServer func(*testing.T) dialecttest.Server)) {
	p, err := project.Read(demo.Project())
	if err != nil {
		t.Fatal(err)
	}
	serve := func(t *testing.T, st store.Store, err error) dialecttest.Server {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		// Nobody signs in here, so passwords need no hash.
		report, err := project.Apply(t.Context(), st, p, project.Options{Hash: func(string) (string, error) { return "-", nil }})
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(st, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return dialecttest.Server{Snapshot: report.Snapshot, Executor: e, Dialect: now.New(now.Options{})}
	}
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) dialecttest.Server {
			st, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
			return serve(t, st, err)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		if storetest.Postgres(t) == "" {
			return
		}
		f(t, func(t *testing.T) dialecttest.Server {
			st, err := postgres.Open(t.Context(), postgres.Options{URL: storetest.Postgres(t)})
			return serve(t, st, err)
		})
	})
}

// The files of testdata/e2e run against the demo on a real engine.
func TestGolden_EndToEnd(t *testing.T) {
	onDemo(t, func(t *testing.T, newServer func(*testing.T) dialecttest.Server) {
		dialecttest.EndToEnd(t, "testdata/e2e/*.txtar", newServer)
	})
}

// Every query of the golden files is one that the databases understand, for lists and aggregates, for everybody.
func TestQueries_RunOnEveryDatabase(t *testing.T) {
	onDemo(t, func(t *testing.T, newServer func(*testing.T) dialecttest.Server) {
		s := newServer(t)
		ran := 0
		for _, r := range requests(t) {
			line, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r, "# strict\n"), "# in Tokyo\n"), "\n")
			method, target, _ := strings.Cut(line, " ")
			path, query, _ := strings.Cut(target, "?")
			if method != "GET" || !strings.Contains(query, "sysparm_query=") {
				continue
			}
			for _, who := range []string{"admin", "itil"} {
				for _, extra := range []string{"", "&sysparm_display_value=all&sysparm_limit=3"} {
					call := &dialect.Call{Method: "GET", Path: path, RawQuery: query + extra, Base: "https://h", Actor: dialecttest.Actors[who]}
					a := dialecttest.Do(t.Context(), s, call)
					ran++
					if a.Status >= 500 || a.Err != nil || a.Status == 400 && !strings.Contains(string(a.Body), "Invalid table") && !strings.Contains(string(a.Body), "sysparm_") {
						decoded, _ := url.QueryUnescape(query)
						t.Errorf("%s as %s: %d %.300s (%v)", decoded, who, a.Status, a.Body, a.Err)
					}
				}
			}
		}
		if ran < 500 {
			t.Errorf("only %d queries ran", ran)
		}
	})
}
