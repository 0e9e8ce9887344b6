package ords_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir/internal/catalog"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/ords"
	"weir/internal/endpoint"
	"weir/internal/engine"
	"weir/internal/project"
	"weir/internal/store/postgres"
	"weir/internal/store/storetest"
)

const routines = `
CREATE FUNCTION add_up(a integer, b integer DEFAULT 10) RETURNS integer LANGUAGE sql AS 'SELECT a + b';
CREATE FUNCTION split(whole numeric, OUT half numeric, OUT odd boolean) LANGUAGE sql AS 'SELECT whole / 2, whole % 2 = 1';
CREATE FUNCTION numbers(n integer) RETURNS TABLE (i integer, square bigint) LANGUAGE sql AS 'SELECT i, (i * i)::bigint FROM generate_series(1, n) i';
CREATE FUNCTION nothing() RETURNS void LANGUAGE sql AS '';
CREATE FUNCTION fails() RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no such luck''; END';
CREATE FUNCTION cursed() RETURNS refcursor LANGUAGE sql AS 'SELECT NULL::refcursor';
CREATE PROCEDURE greet(name text, INOUT greeting text, OUT length integer) LANGUAGE plpgsql AS 'BEGIN greeting := greeting || name; length := length(greeting); END';
`

// Functions and procedures of PostgreSQL are called by name, with their parameters as members of a JSON object.
func TestRoutines_AreCalledByName(t *testing.T) {
	if storetest.Postgres(t) == "" {
		return
	}
	url := storetest.Postgres(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), routines); err != nil {
		t.Fatal(err)
	}
	st, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	service := func(names ...string) *project.Project {
		svc := catalog.ServiceDef{Name: "fn", Protocol: "ords"}
		for _, name := range names {
			svc.Functions = append(svc.Functions, catalog.FunctionDef{Name: strings.ReplaceAll(name, "_", "-"), Routine: name})
		}
		return &project.Project{Definitions: catalog.Definitions{Services: []catalog.ServiceDef{svc}}}
	}
	for name, want := range map[string]string{"cursed": "cursor", "absent": "no function"} {
		if _, err := project.Apply(t.Context(), st, service(name), project.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	report, err := project.Apply(t.Context(), st, service("add_up", "split", "numbers", "nothing", "fails", "greet"), project.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(st, engine.Options{SQL: endpoint.New(st)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	s := dialecttest.Server{Snapshot: report.Snapshot, Executor: e, Dialect: ords.New(ords.Options{})}
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"add-up", `{"a":1,"b":2}`, 200, `{"~ret":3}`},
		{"add-up", `{"a":1}`, 200, `{"~ret":11}`},
		{"add-up", `{"a":1,"c":2}`, 400, "c"},
		{"add-up", `{"a":"x"}`, 400, "a"},
		{"add-up", `[1]`, 400, "object"},
		{"split", `{"whole":5}`, 200, `{"half":2.5,"odd":true}`},
		{"numbers", `{"n":2}`, 200, `{"~ret":[{"i":1,"square":1},{"i":2,"square":4}]}`},
		{"nothing", ``, 200, ``},
		{"fails", `{}`, 555, "UserDefinedResourceError"},
		{"greet", `{"name":"Ann","greeting":"Hello "}`, 200, `{"greeting":"Hello Ann","length":9}`},
	} {
		a := do(t, s, "POST", "/ords/fn/"+c.name+"/", c.body, "Content-Type", "application/json")
		if a.Status != c.status || !strings.Contains(string(a.Body), c.want) {
			t.Errorf("%s %s: %d %s, want %d %s", c.name, c.body, a.Status, a.Body, c.status, c.want)
		}
	}
	if a := do(t, s, "GET", "/ords/fn/add-up/", ""); a.Status != 405 {
		t.Errorf("GET: %d", a.Status)
	}
	if a := do(t, s, "GET", "/ords/fn/open-api-catalog/", ""); !strings.Contains(string(a.Body), `"/greet/":{"post"`) {
		t.Errorf("%s", a.Body)
	}
}
