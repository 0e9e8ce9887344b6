package ords_test

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/now"
	"weir/internal/dialect/ords"
	"weir/internal/endpoint"
	"weir/internal/engine"
	"weir/internal/project"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
	"weir/internal/wire"
)

// onHR calls f for each database with a maker of servers, each on a fresh database with demo/hr in it. Without a PostgreSQL for tests it is
// SQLite alone.
func onHR(t *testing.T, f func(t *testing.T, newServer func(*testing.T) dialecttest.Server)) {
	p, err := project.Read(os.DirFS("../../../demo/hr"))
	if err != nil {
		t.Fatal(err)
	}
	serve := func(t *testing.T, st store.Store, err error) dialecttest.Server {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		report, err := project.Apply(t.Context(), st, p, project.Options{Hash: func(string) (string, error) { return "-", nil }})
		if err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(st, engine.Options{SQL: endpoint.New(st)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return dialecttest.Server{Snapshot: report.Snapshot, Executor: e, Dialect: ords.New(ords.Options{})}
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

// The files of testdata/e2e run against demo/hr on a real engine, alone and behind a hub; both databases answer alike.
func TestGolden_SQLEndToEnd(t *testing.T) {
	onHR(t, func(t *testing.T, newServer func(*testing.T) dialecttest.Server) {
		dialecttest.EndToEnd(t, "testdata/e2e/*.txtar", newServer)
	})
}

func do(t *testing.T, s dialecttest.Server, method, target, body string, headers ...string) *wire.Answer {
	t.Helper()
	path, query, _ := strings.Cut(target, "?")
	c := &dialect.Call{Method: method, Path: path, RawPath: path, RawQuery: query, Base: "https://h", Actor: dialecttest.Actors["admin"], Body: []byte(body)}
	for i := 0; i < len(headers); i += 2 {
		c.Header.Add(headers[i], headers[i+1])
	}
	return dialecttest.Do(t.Context(), s, c)
}

// A block inserts and forwards: the answer is what a GET of the Location answers, with the tag that it will have.
func TestSQL_BlockForwardsAndTagsHold(t *testing.T) {
	onHR(t, func(t *testing.T, newServer func(*testing.T) dialecttest.Server) {
		s := newServer(t)
		a := do(t, s, "POST", "/ords/hr/people/", `{"first_name":"Ada","last_name":"O'Neil","email":"ada@example.com","job_id":"SA_REP","salary":9000,"department_id":40}`,
			"Content-Type", "application/json")
		if a.Status != 201 || a.Header.Get("Location") != "https://h/ords/hr/people/207" || !strings.Contains(string(a.Body), `"last_name":"O'Neil"`) {
			t.Fatalf("%d %v %s", a.Status, a.Header, a.Body)
		}
		tag := a.Header.Get("ETag")
		same := do(t, s, "GET", "/ords/hr/people/207", "", "If-None-Match", `"x", W/`+tag)
		if tag == "" || same.Status != 304 || len(same.Body) > 0 || same.Header.Get("ETag") != tag {
			t.Errorf("%d %v %s", same.Status, same.Header, same.Body)
		}
		fresh := do(t, s, "GET", "/ords/hr/people/207", "", "If-None-Match", `"x"`)
		if fresh.Status != 200 || string(fresh.Body) != string(a.Body) {
			t.Errorf("%d %s", fresh.Status, fresh.Body)
		}
		hashed := do(t, s, "GET", "/ords/hr/people/", "")
		if again := do(t, s, "GET", "/ords/hr/people/", "", "If-None-Match", hashed.Header.Get("ETag")); again.Status != 304 || len(again.Body) > 0 {
			t.Errorf("%d %s", again.Status, again.Body)
		}
	})
}

// The items of a batch of another dialect may be calls of SQL endpoints.
func TestSQL_InBatchesOfOtherDialects(t *testing.T) {
	onHR(t, func(t *testing.T, newServer func(*testing.T) dialecttest.Server) {
		s := newServer(t)
		batch := now.New(now.Options{})
		mux := &dialect.Mux{}
		mux.Handle("/api/", batch)
		mux.Handle(ords.Prefix, s.Dialect)
		item := func(id, method, url, body string) map[string]any {
			return map[string]any{"id": id, "method": method, "url": url, "body": []byte(body), "headers": []map[string]string{{"name": "Content-Type", "value": "application/json"}}}
		}
		envelope, err := json.Marshal(map[string]any{"batch_request_id": "1", "enforce_order": true, "rest_requests": []any{
			item("1", "POST", "/ords/hr/people/", `{"first_name":"Ada","last_name":"Lovelace","email":"a@x","job_id":"SA_REP","salary":1,"department_id":40}`),
			item("2", "GET", `/ords/hr/people/?q={"email":"a@x"}`, ""),
			item("3", "GET", "/ords/hr/people/none", ""),
			item("4", "GET", "/ords/hr/salaries.csv?limit=1", ""),
			item("5", "GET", "/ords/hr/people", ""),
			item("6", "HEAD", "/ords/hr/people/100", ""),
		}})
		if err != nil {
			t.Fatal(err)
		}
		c := &dialect.Call{Method: "POST", Path: "/api/now/v1/batch", Base: "https://h", Actor: dialecttest.Actors["admin"], Body: envelope}
		c.Header.Add("Content-Type", "application/json")
		a := &wire.Answer{}
		batch.Batch(t.Context(), &dialect.BatchRun{Snapshot: s.Snapshot, Exec: s.Executor, Mux: mux}, c, a)
		var answer struct {
			Serviced []struct {
				ID     string
				Body   []byte
				Status int `json:"status_code"`
			} `json:"serviced_requests"`
		}
		if err := json.Unmarshal(a.Body, &answer); err != nil || len(answer.Serviced) != 6 {
			t.Fatalf("%v %s", err, a.Body)
		}
		for i, want := range []struct {
			status int
			says   string
		}{{201, `"last_name":"Lovelace"`}, {200, `"last_name":"Lovelace"`}, {400, `"code":"BadRequest"`}, {200, "job_id,job_title"}, {200, `{"items":[`}, {200, ""}} {
			got := answer.Serviced[i]
			if got.Status != want.status || !strings.Contains(string(got.Body), want.says) || want.says == "" && len(got.Body) > 0 {
				t.Errorf("item %s: %d %s", got.ID, got.Status, got.Body)
			}
		}
	})
}

// What callers send is a value wherever they put it: nothing of it is SQL, and nothing of it is our fault.
func TestSQL_InjectionThroughEveryParameter(t *testing.T) {
	payloads := []string{
		"' OR 1=1 --", `" OR ""="`, "'; DROP TABLE employees; --", "1; DELETE FROM employees", "1 OR 1=1", "') UNION SELECT user_name FROM sys_user --", "$1", ":name", "?1",
		"\\'; --", "/*", "*/", "{}x", "%", "\x00", "\xff\xfe", "a\r\nSet-Cookie: x=y", "${jndi}", "{{1}}", strings.Repeat("'", 500), "1e999", "-9223372036854775809", "NaN",
	}
	onHR(t, func(t *testing.T, newServer func(*testing.T) dialecttest.Server) {
		s := newServer(t)
		all := string(do(t, s, "GET", "/ords/hr/people/?limit=1000", "").Body)
		check := func(a *wire.Answer, where, payload string) {
			t.Helper()
			if a.Status >= 500 || a.Err != nil {
				t.Errorf("%s %q: %d %s", where, payload, a.Status, a.Body)
			}
			for _, f := range a.Header {
				if strings.ContainsAny(f.Value, "\r\n\x00") {
					t.Errorf("%s %q: header %s: %q", where, payload, f.Name, f.Value)
				}
			}
			if kind := a.Header.Get("Content-Type"); strings.Contains(kind, "json") && !json.Valid(a.Body) {
				t.Errorf("%s %q: %s", where, payload, a.Body)
			}
			if a.Status == 200 && where != "offset" && strings.Count(string(a.Body), "employee_id") > 30 {
				t.Errorf("%s %q finds all", where, payload)
			}
		}
		for _, p := range payloads {
			text, _ := json.Marshal(p)
			esc := url.QueryEscape(p)
			path := url.PathEscape(p)
			get := func(where, target string, headers ...string) {
				check(do(t, s, "GET", target, "", headers...), where, p)
			}
			get("path", "/ords/hr/search/"+path)
			get("number in path", "/ords/hr/people/"+path)
			get("schema", "/ords/"+path+"/people/")
			get("template", "/ords/hr/"+path)
			get("query", "/ords/hr/search/x?least="+esc)
			get("name of a query", "/ords/hr/search/x?"+esc+"=1")
			get("limit", "/ords/hr/people/?limit="+esc)
			get("offset", "/ords/hr/people/?offset="+esc)
			get("page", "/ords/hr/people/?page="+esc)
			get("q", "/ords/hr/people/?q="+esc)
			for _, form := range []string{
				`{"last_name":X}`, `{"salary":{"$gt":X}}`, `{"hire_date":{"$lt":{"$date":X}}}`, `{"last_name":{"$like":X}}`, `{"last_name":{"$instr":X}}`,
				`{"salary":{"$like":X}}`, `{"last_name":{"$in":[X]}}`, `{"last_name":{"$between":[X,X]}}`, `{X:1}`, `{"last_name":{X:1}}`, `{"$orderby":{X:1}}`, `{"$orderby":{"salary":X}}`,
			} {
				get("q "+form, "/ords/hr/people/?limit=20&q="+url.QueryEscape(strings.ReplaceAll(form, "X", string(text))))
			}
			get("tag", "/ords/hr/people/100", "If-None-Match", p)
			get("id", "/ords/hr/people/x", "Request-Id", p)
			get("type", "/ords/hr/people/x", "Accept", p, "Content-Type", p)
			check(do(t, s, "PUT", "/ords/hr/people/1", p, "Content-Type", p, "If-Match", p), "put", p)
			check(do(t, s, "POST", "/ords/hr/people/", p, "Content-Type", "application/json"), "body", p)
			check(do(t, s, "POST", "/ords/hr/people/", `{`+string(text)+`:1,"salary":`+string(text)+`}`, "Content-Type", "application/json"), "members", p)
		}
		if now := string(do(t, s, "GET", "/ords/hr/people/?limit=1000", "").Body); now != all {
			t.Error("the employees are others now")
		}
	})
}
