package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/ncruces/go-sqlite3"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ddl = `
CREATE TABLE task (sys_id TEXT PRIMARY KEY NOT NULL, number TEXT, state INTEGER, caller TEXT, note TEXT, "order" REAL,
	CHECK (state < 10));
CREATE UNIQUE INDEX task_number ON task (number);
CREATE INDEX task_state ON task (state, caller);
INSERT INTO task VALUES ('b4fd7c8437201000deeabfc8bcbe5dc1', 'INC0010001', 1, '6816f79cc0a8016401c5a33be04be441', NULL, 1.5);`

// newSQLite makes a database with one table and the statements' effect, and returns its -db value.
func newSQLite(t *testing.T, statements string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exec("PRAGMA journal_mode=WAL;" + statements); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path
}

// postgresURL is the server for tests that WEIR_TEST_POSTGRES names, or "" where none is required.
func postgresURL(t *testing.T) string {
	t.Helper()
	url := os.Getenv("WEIR_TEST_POSTGRES")
	if url == "" && (os.Getenv("CI") == "true" || os.Getenv("WEIR_TEST_REQUIRE_POSTGRES") == "1") {
		t.Fatal("WEIR_TEST_POSTGRES is not set")
	}
	return url
}

func TestPostgres_MeasuresACopyAndServesTheTable(t *testing.T) {
	url := postgresURL(t)
	if url == "" {
		t.Log("no PostgreSQL: set WEIR_TEST_POSTGRES")
		return
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `
		DROP SCHEMA IF EXISTS yardstick_test CASCADE; CREATE SCHEMA yardstick_test;
		CREATE TYPE yardstick_test.mood AS ENUM ('good', 'bad');
		CREATE TABLE yardstick_test.task (id bigint GENERATED ALWAYS AS IDENTITY, sys_id char(32) PRIMARY KEY, number text UNIQUE, state int,
			mood yardstick_test.mood, "Order" numeric(8,2), note text, up text GENERATED ALWAYS AS (upper(number)) STORED);
		INSERT INTO yardstick_test.task (sys_id, number, state, mood, "Order")
			VALUES ('b4fd7c8437201000deeabfc8bcbe5dc1', 'INC0010001', 1, 'good', 1.5)`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Exec(context.Background(), "DROP SCHEMA yardstick_test CASCADE")

	for _, what := range []string{"insert", "savepoints"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-db", url, "-table", "yardstick_test.task", "-rows", "20", "-runs", "3", what}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), `"rows":20`) {
			t.Errorf("got %s", &out)
		}
	}
	var rows, schemas int
	err = conn.QueryRow(t.Context(), "SELECT (SELECT count(*) FROM yardstick_test.task), (SELECT count(*) FROM pg_namespace WHERE nspname = $1)", scratchSchema).Scan(&rows, &schemas)
	if err != nil || rows != 1 || schemas != 0 {
		t.Errorf("the table has %d rows and %d copies were left, %v; want 1 and 0", rows, schemas, err)
	}

	o := options{db: url, table: "yardstick_test.task", key: "sys_id", columns: []string{"number", "Order", "note", "mood"}}
	d, err := open(t.Context(), &o, true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	const row = `{"number":"INC0010001","Order":"1.50","note":"","mood":"good"}`
	for path, want := range map[string]string{"/one/b4fd7c8437201000deeabfc8bcbe5dc1": `{"result":` + row + `}`, "/list": `{"result":[` + row + `]}`} {
		w := httptest.NewRecorder()
		handler(d, o).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if diff := cmp.Diff(want, w.Body.String()); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestSQLite_InsertsAndSavepointsOnACopy(t *testing.T) {
	db := newSQLite(t, ddl)
	for _, what := range []string{"insert", "savepoints"} {
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-db", db, "-table", "task", "-rows", "50", "-runs", "3", what}, &out, io.Discard); err != nil {
			t.Fatal(err)
		}
		var r Result
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.What != what || r.Rows != 50 || len(r.MS) != 3 || r.MedianMS <= 0 {
			t.Errorf("got %+v", r)
		}
	}
	left, err := os.ReadDir(filepath.Dir(strings.TrimPrefix(db, "sqlite:")))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.HasPrefix(f.Name(), "yardstick-") {
			t.Errorf("the copy %s was left behind", f.Name())
		}
	}
}

func TestSQLite_CopyHasTheSameTableAndFreshRows(t *testing.T) {
	o := options{table: "task"}
	d, err := openSQLite(t.Context(), &o, strings.TrimPrefix(newSQLite(t, ddl), "sqlite:"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if _, err := d.insert(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if _, err := d.savepoints(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = each(d.conn, `SELECT sys_id || ' ' || number || ' ' || typeof(state) || ' ' || typeof("order") || ' ' || (note IS NULL) FROM task ORDER BY 1`, "",
		func(s *sqlite3.Stmt) { got = append(got, s.ColumnText(0)) })
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"b4fd7c8437201000deeabfc8b0000001 INC0000001 integer real 1",
		"b4fd7c8437201000deeabfc8b0000002 INC0000002 integer real 1",
		"b4fd7c8437201000deeabfc8b0000003 INC0000003 integer real 1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	indexes := 0
	if err := each(d.conn, "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL", "", func(*sqlite3.Stmt) { indexes++ }); err != nil || indexes != 2 {
		t.Errorf("%d indexes, %v; want the source's 2", indexes, err)
	}
}

func TestSQLite_ServesOneAndList(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{
			"-db", newSQLite(t, ddl), "-table", "task", "-columns", "number,caller,note,state",
			"-ref", "caller=http://h/api/now/table/sys_user/", "serve",
		}, in, io.Discard)
	}()
	base, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	base = strings.TrimSpace(base)
	const row = `{"number":"INC0010001","caller":{"link":"http://h/api/now/table/sys_user/6816f79cc0a8016401c5a33be04be441","value":"6816f79cc0a8016401c5a33be04be441"},"note":"","state":"1"}`
	f := func(path string, wantStatus int, want string) {
		t.Helper()
		resp, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != wantStatus || (wantStatus == 200 && string(b) != want) {
			t.Errorf("%s: %d %s, %v", path, resp.StatusCode, b, err)
		}
	}
	f("/one/b4fd7c8437201000deeabfc8bcbe5dc1", 200, `{"result":`+row+`}`)
	f("/one/none", 404, "")
	f("/list", 200, `{"result":[`+row+`]}`)
	f("/list?n=x", 400, "")
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestRun_SaysWhatIsWrong(t *testing.T) {
	db, empty := newSQLite(t, ddl), newSQLite(t, "CREATE TABLE task (sys_id TEXT PRIMARY KEY)")
	f := func(want string, args ...string) {
		t.Helper()
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want an error naming %q", args, err, want)
		}
	}
	f("sqlite:PATH or postgres://", "-db", "mysql:x", "insert")
	f("no such table", "-db", db, "-table", "none", "insert")
	f("no row to copy", "-db", empty, "-table", "task", "insert")
	f("insert, savepoints, pgbench, serve or query", "-db", db, "-table", "task")
	f(`no column "x"`, "-db", db, "-table", "task", "-columns", "x", "serve")
	f("-rows", "-db", db, "-rows", "0", "insert")
	f("COLUMN=PREFIX", "-db", db, "-ref", "x", "serve")
	f("open", "-db", "sqlite:"+filepath.Join(t.TempDir(), "none.db"), "insert")
}
