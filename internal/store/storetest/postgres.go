// Package storetest is what all databases must do alike, and what tests need to reach one.
package storetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresVariable names the environment variable that says where a PostgreSQL for tests is.
const PostgresVariable = "WEIR_TEST_POSTGRES"

// Postgres creates a database of a random name on the server that WEIR_TEST_POSTGRES names and returns its URL; the
// database goes with the test. Without the variable it returns "", or fails the test if PostgreSQL is required (CI=true or
// WEIR_TEST_REQUIRE_POSTGRES=1).
func Postgres(t testing.TB) string {
	t.Helper()
	server := os.Getenv(PostgresVariable)
	if server == "" {
		if os.Getenv("CI") == "true" || os.Getenv("WEIR_TEST_REQUIRE_POSTGRES") == "1" {
			t.Fatal(PostgresVariable + " is not set")
		}
		return ""
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s: %v", PostgresVariable, err)
	}
	random := make([]byte, 8)
	rand.Read(random)
	name := "weir_test_" + hex.EncodeToString(random)
	admin := func(sql string) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			t.Fatalf("%s: %v", PostgresVariable, err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	admin("CREATE DATABASE " + name + " ENCODING 'UTF8' TEMPLATE template0")
	t.Cleanup(func() { admin("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}
