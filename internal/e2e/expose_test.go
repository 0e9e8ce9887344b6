package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// foreign is a schema that weir did not make: keys of one and two columns, a reference, a view, a table without a key.
var foreign = []string{
	`CREATE TABLE dept (deptno integer PRIMARY KEY, dname varchar(14) NOT NULL)`,
	`CREATE TABLE emp (empno integer PRIMARY KEY, ename varchar(10), sal numeric(7,2), deptno integer REFERENCES dept (deptno))`,
	`CREATE TABLE rating (empno integer, since date, stars integer, PRIMARY KEY (empno, since))`,
	`CREATE TABLE logbook (line text)`,
	`CREATE VIEW rich AS SELECT empno, ename FROM emp WHERE sal > 2000`,
	`INSERT INTO dept VALUES (10, 'ACCOUNTING'), (20, 'RESEARCH')`,
	`INSERT INTO emp VALUES (1, 'KING', 5000, 10), (2, 'SMITH', 800.5, 20)`,
	`INSERT INTO rating VALUES (1, '2026-01-01', 5)`,
	`INSERT INTO logbook VALUES ('first')`,
}

func foreignDatabase(t *testing.T, kind string) (db database, schema string) {
	t.Helper()
	if kind == "postgres" {
		at := newPostgres(t, postgresURL(t), "")
		sql(t, at, append([]string{"CREATE SCHEMA shop", "SET search_path TO shop"}, foreign...)...)
		return database{kind, at}, "shop"
	}
	file := filepath.Join(t.TempDir(), "shop.db")
	c, err := sqlite3.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, s := range foreign {
		if err := c.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return database{kind, "sqlite:" + file}, "main"
}

type page struct {
	Items   []map[string]any
	HasMore bool
	Links   []struct{ Rel, Href string }
}

// TestExpose_ASchemaIsAnAPI serves a schema of a database that weir did not make, without a project.
func TestExpose_ASchemaIsAnAPI(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		db, schema := foreignDatabase(t, kind)
		at := "/ords/" + schema + "/"
		w := &weir{t: t}
		w.launch(t.TempDir(), "serve", "--db", db.url, "--expose", schema, "--listen", "127.0.0.1:0")
		t.Cleanup(w.kill)
		var p page
		w.get(at+"emp/?limit=1", &p)
		if len(p.Items) != 1 || !p.HasMore || p.Items[0]["deptno"] != 10.0 || p.Items[0]["sal"] != 5000.0 {
			t.Errorf("%+v", p)
		}
		for _, l := range p.Links {
			switch l.Rel {
			case "next":
				w.get(strings.TrimPrefix(l.Href, w.url), &p)
				if len(p.Items) != 1 || p.Items[0]["ename"] != "SMITH" {
					t.Errorf("%+v", p)
				}
			case "edit":
				t.Error("what is read-only has a link edit")
			}
		}
		var one map[string]any
		w.get(at+"rating/1,2026-01-01", &one)
		if one["stars"] != 5.0 {
			t.Errorf("%v", one)
		}
		w.get(at+"rich/", &p)
		if len(p.Items) != 1 || p.Items[0]["ename"] != "KING" {
			t.Errorf("%+v", p)
		}
		w.get(at+`logbook/?q={"line":"first"}`, &p)
		if len(p.Items) != 1 {
			t.Errorf("%+v", p)
		}
		w.get(at+"metadata-catalog/", &p)
		if len(p.Items) != 5 {
			t.Errorf("%+v", p)
		}
		w.get(at+"open-api-catalog/", &one)
		w.must(http.StatusMethodNotAllowed, request{method: "POST", path: at + "dept/", body: `{"deptno":30,"dname":"X"}`}, nil)
		w.must(http.StatusMethodNotAllowed, request{method: "DELETE", path: at + "dept/10"}, nil)
		w.must(http.StatusNotFound, request{path: at + "logbook/1"}, nil)
		w.must(http.StatusUnauthorized, request{path: at + "emp/", user: "-"}, nil)
		for _, own := range []string{"/ords/weir/token/", at + "weir_token/", at + "token/"} {
			w.must(http.StatusNotFound, request{path: own}, nil)
		}
		if code := w.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}

		w.launch(t.TempDir(), "serve", "--db", db.url, "--expose", schema, "--expose-write", "--listen", "127.0.0.1:0")
		a := w.must(http.StatusCreated, request{method: "POST", path: at + "dept/", body: `{"deptno":30,"dname":"SALES"}`}, nil)
		if got := a.header.Get("Location"); got != w.url+at+"dept/30" {
			t.Errorf("Location %s", got)
		}
		w.must(http.StatusOK, request{method: "PUT", path: at + "emp/2", body: `{"ename":"SMITH","sal":900,"deptno":30}`}, &one)
		w.must(http.StatusConflict, request{method: "DELETE", path: at + "dept/30"}, nil)
		w.must(http.StatusMethodNotAllowed, request{method: "POST", path: at + "logbook/", body: `{"line":"x"}`}, nil)
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		fmt.Fprintln(z, "EMPNO,ENAME,SAL,DEPTNO")
		const rows = 20_000
		for i := range rows {
			fmt.Fprintf(z, "%d,NAME %d,1.5,%d\n", i+1, i%1000, 10+i%2*10)
		}
		z.Close()
		a = w.must(http.StatusOK, request{
			method: "POST", path: at + "emp/batchload?batchRows=5000", body: zipped.String(),
			header: map[string]string{"Content-Type": "text/csv", "Content-Encoding": "gzip"},
		}, nil)
		// Two rows were there before.
		for _, want := range []string{"Number of rows processed: 20000", "Number of rows in error: 2", "column empno", "WARNING"} {
			if !strings.Contains(a.body, want) {
				t.Errorf("the answer lacks %q:\n%s", want, a.body)
			}
		}
		w.must(http.StatusOK, request{method: "DELETE", path: at + `emp/?q={"empno":{"$gt":19990}}`}, &one)
		if one["rowsDeleted"] != 10.0 {
			t.Errorf("%v", one)
		}
		if code := w.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}

		for _, args := range [][]string{
			{"--db", db.url, "--expose", "weir"},
			{"--db", db.url, "--expose", "nowhere"},
			{"--expose", schema},
			{"--db", db.url, "--expose-write"},
			{"--db", db.url, "--expose", schema, "--listen", "0.0.0.0:0"},
		} {
			out, err := exec.Command(binary, append([]string{"serve"}, args...)...).CombinedOutput()
			if err == nil {
				t.Errorf("serve %v was not refused:\n%s", args, out)
			}
		}
	})
}

// TestLoad_WhoStopsSendingIsNotWaitedFor sends part of a batch load, and then nothing, too much, or nobody.
func TestLoad_WhoStopsSendingIsNotWaitedFor(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		db, schema := foreignDatabase(t, kind)
		path := "/ords/" + schema + "/emp/batchload?batchRows=1"
		w := &weir{t: t}
		w.launch(t.TempDir(), "serve", "--db", db.url, "--expose", schema, "--expose-write", "--listen", "127.0.0.1:0",
			"--set", "limits.body_time=1s", "--set", "limits.load=100000", "--set", "gate.pools.default.slots=2")
		t.Cleanup(w.kill)
		count := func() int {
			var p page
			w.get("/ords/"+schema+"/emp/?limit=10000", &p)
			return len(p.Items)
		}
		start := count()
		for range 3 { // more than there are slots
			c := w.dial()
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic YWRtaW46YWRtaW4=\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\nempno\n%d\n%d\n", path, w.addr, 100+count(), 200+count())
			b, _ := io.ReadAll(c)
			c.Close()
			if got := string(b); !strings.Contains(got, "limits.body_time") || !strings.Contains(got, "Number of rows processed: 2") {
				t.Errorf("answered:\n%s", got)
			}
		}
		if n := count() - start; n != 6 {
			t.Errorf("%d rows were committed, not 6", n)
		}
		big := "empno\n" + strings.Repeat("900\n", 30_000)
		if a := w.must(http.StatusRequestEntityTooLarge, request{method: "POST", path: path, body: big, header: map[string]string{"Content-Type": "text/csv"}}, nil); !strings.Contains(a.body, "limits.load") {
			t.Errorf("%s", a.body)
		}
		for range 3 {
			c := w.dial()
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Basic YWRtaW46YWRtaW4=\r\nContent-Type: text/csv\r\nContent-Length: 1000\r\n\r\nempno\n", path, w.addr)
			c.Close()
		}
		if n := count() - start; n != 6 {
			t.Errorf("%d rows were committed, not 6", n)
		}
		if code := w.stop(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
}
