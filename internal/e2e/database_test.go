package e2e

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// database is one that belongs to one test.
type database struct {
	kind string // "sqlite" or "postgres"
	url  string // for --db
}

// onEach runs f on each database there is.
func onEach(t *testing.T, f func(t *testing.T, kind string)) {
	t.Run("sqlite", func(t *testing.T) { f(t, "sqlite") })
	if postgresURL(t) != "" {
		t.Run("postgres", func(t *testing.T) { f(t, "postgres") })
	}
}

// postgresURL is the server for tests; without one only SQLite is proved, and never so in CI.
func postgresURL(t *testing.T) string {
	t.Helper()
	at := os.Getenv("WEIR_TEST_POSTGRES")
	if at == "" && mustHavePostgres() {
		t.Fatal("WEIR_TEST_POSTGRES is not set: run the tests through scripts/with-postgres")
	}
	return at
}

func mustHavePostgres() bool {
	return os.Getenv("CI") == "true" || os.Getenv("WEIR_TEST_REQUIRE_POSTGRES") == "1"
}

// demoData is a database that has the demo project, copied from one that was filled once.
func demoData(t *testing.T, kind string) database {
	t.Helper()
	filled.mu.Lock()
	defer filled.mu.Unlock()
	if kind == "sqlite" {
		if filled.file == "" {
			file := filepath.Join(filled.dir, "filled", "weir.db")
			fill(t, database{kind, "sqlite:" + file})
			filled.file = file
		}
		to := t.TempDir()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			b, err := os.ReadFile(filled.file + suffix)
			if os.IsNotExist(err) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(to, "weir.db"+suffix), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return database{kind, "sqlite:" + filepath.Join(to, "weir.db")}
	}
	at := postgresURL(t)
	if filled.postgres == "" {
		name := "weir_e2e_" + randomHex()
		sql(t, at, "CREATE DATABASE "+name)
		filled.postgres, filled.server = name, at
		fill(t, database{kind, withName(t, at, name)})
	}
	return database{kind, newPostgres(t, at, " TEMPLATE "+filled.postgres)}
}

// filled are the databases that hold the demo as it is after the first start.
var filled templates

type templates struct {
	mu               sync.Mutex
	dir              string // where the SQLite file is; removed with everything in it
	file             string
	postgres, server string
}

// drop removes what no test's end removes.
func (f *templates) drop() {
	if f.postgres == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, f.server)
	if err != nil {
		return // a server for tests that is gone already
	}
	defer c.Close(ctx)
	c.Exec(ctx, "DROP DATABASE "+f.postgres+" WITH (FORCE)")
}

// fill starts a server once, which loads the demo.
func fill(t *testing.T, db database) {
	t.Helper()
	w := serve(t, db)
	if code := w.stop(); code != 0 {
		t.Fatalf("the server that filled the database ended with %d\n%s", code, w.log)
	}
}

// newPostgres makes a database that is dropped after the test.
func newPostgres(t *testing.T, server, options string) string {
	t.Helper()
	name := "weir_e2e_" + randomHex()
	sql(t, server, "CREATE DATABASE "+name+options)
	t.Cleanup(func() { sql(t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	return withName(t, server, name)
}

func withName(t *testing.T, server, name string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// sql runs statements on a PostgreSQL database.
func sql(t *testing.T, at string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	for _, s := range statements {
		if _, err := c.Exec(ctx, s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func randomHex() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
