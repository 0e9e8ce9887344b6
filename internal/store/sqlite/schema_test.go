package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"weir/internal/catalog"
	"weir/internal/store/storetest"
)

func TestSchema_PassesTheSuite(t *testing.T) {
	s, err := Open(context.Background(), Options{Path: filepath.Join(t.TempDir(), "weir.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	storetest.RunSchema(t, s)
}

func TestIntrospect_DescribesANastySchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nasty.db")
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	err = conn.Exec(`
		CREATE TABLE customer (id INTEGER PRIMARY KEY, mail VARCHAR(40) NOT NULL UNIQUE, born DATETIME, small SMALLINT NOT NULL DEFAULT 7,
			credit DECIMAL(10,2) CHECK (credit >= 0), doubled INT GENERATED ALWAYS AS (small * 2) STORED, anything, happy BOOLEAN, day DATE, odd GEOMETRY, pic BLOB);
		CREATE TABLE "Order Details" ("order" INT, "Line No." INT, "select" TEXT, "Select-" TEXT NOT NULL, customer REFERENCES customer,
			PRIMARY KEY ("Line No.", "order"), UNIQUE ("select", "Select-"));
		CREATE TABLE log (at TIMESTAMP, line TEXT);
		CREATE INDEX part ON log (line) WHERE line IS NOT NULL;
		CREATE VIEW happy AS SELECT id, mail FROM customer WHERE happy;`)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	defs, err := s.Schema().Introspect(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	plain := false
	want := []catalog.TableDef{
		{Name: "Order_Details", Label: "Order Details", Stored: "Order Details", Key: []string{"Line_No", "order"}, Uniques: [][]string{{"select", "Select_2"}}, Fields: []catalog.FieldDef{
			{Name: "order", Type: "integer", Native: "INT"},
			{Name: "Line_No", Label: "Line No.", Column: "Line No.", Type: "integer", Native: "INT"},
			{Name: "select", Type: "string", Native: "TEXT"},
			{Name: "Select_2", Label: "Select-", Column: "Select-", Type: "string", Native: "TEXT", Mandatory: true},
			{Name: "customer", Type: "reference", Reference: "customer", ForeignKey: true},
		}},
		{Name: "customer", Key: []string{"id"}, Uniques: [][]string{{"mail"}}, Fields: []catalog.FieldDef{
			{Name: "id", Type: "integer", Native: "INTEGER", Identity: true},
			{Name: "mail", Type: "string", Native: "VARCHAR(40)", MaxLength: 40, Mandatory: true},
			{Name: "born", Type: "datetime", Native: "DATETIME"},
			{Name: "small", Type: "integer", Native: "SMALLINT"},
			{Name: "credit", Type: "decimal", Native: "DECIMAL(10,2)"},
			{Name: "doubled", Type: "integer", Native: "INT", Generated: true},
			{Name: "anything", Type: "string"},
			{Name: "happy", Type: "boolean", Native: "BOOLEAN"},
			{Name: "day", Type: "date", Native: "DATE"},
			{Name: "odd", Type: "string", Native: "GEOMETRY", ReadOnly: true},
			{Name: "pic", Type: "bytes", Native: "BLOB"},
		}},
		{Name: "happy", ReadOnly: true, Fields: []catalog.FieldDef{
			{Name: "id", Type: "integer", Native: "INTEGER"}, {Name: "mail", Type: "string", Native: "VARCHAR(40)", MaxLength: 40},
		}},
		{Name: "log", ReadOnly: true, Fields: []catalog.FieldDef{
			{Name: "at", Type: "datetime", Native: "TIMESTAMP"}, {Name: "line", Type: "string", Native: "TEXT"},
		}},
	}
	for i := range want {
		want[i].External, want[i].Audit = true, &plain
	}
	if d := cmp.Diff(want, defs); d != "" {
		t.Fatal(d)
	}
	if _, err := catalog.Build(1, catalog.Definitions{Tables: defs}); err != nil {
		t.Fatal(err)
	}
}
