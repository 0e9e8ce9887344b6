package endpoint_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/fstest"

	"weir/internal/catalog"
	"weir/internal/endpoint"
	"weir/internal/project"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
	"weir/internal/wire"
)

// onEach runs f on an empty database of each kind.
func onEach(t *testing.T, f func(t *testing.T, w *world)) {
	t.Run("sqlite", func(t *testing.T) {
		st, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		f(t, &world{t: t, st: st, r: endpoint.New(st)})
	})
	t.Run("postgres", func(t *testing.T) {
		url := storetest.Postgres(t)
		if url == "" {
			return // SQLite alone was asked for
		}
		st, err := postgres.Open(t.Context(), postgres.Options{URL: url, Max: 5})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		f(t, &world{t: t, st: st, r: endpoint.New(st), url: url})
	})
}

// world is a database with a project.
type world struct {
	t     *testing.T
	st    store.Store
	url   string // of PostgreSQL
	r     *endpoint.Runner
	files fstest.MapFS
	snap  *catalog.Snapshot
}

// tables are what all tests have: departments, people and one record of every type.
var tables = map[string]string{
	"tables/dept.yaml": `
name: dept
audit: false
key: [id]
fields:
  - {name: id, type: integer}
  - {name: name, type: string}
  - {name: opened, type: date}
`,
	"tables/emp.yaml": `
name: emp
audit: false
key: [id]
fields:
  - {name: id, type: integer}
  - {name: name, type: string}
  - {name: dept_id, type: integer}
  - {name: salary, type: decimal}
  - {name: rate, type: float}
  - {name: active, type: boolean}
  - {name: hired, type: datetime}
  - {name: born, type: date}
  - {name: photo, type: bytes}
  - {name: info, type: json}
`,
	"data/dept.csv": "id,name,opened\n1,Sales,1980-12-17\n2,\"R\"\"D\",\n3,Empty,2000-01-01\n",
	"data/emp.csv": `id,name,dept_id,salary,rate,active,hired,born,info
10,Ann,1,1000.50,0.1,true,2020-01-02 03:04:05,1990-05-06,"{""a"":[1,2]}"
11,Bob,1,+0020.00,1e6,false,2020-01-02 03:04:05.25,,
12,Cid,2,,,,,,
13,Dee,2,7,-2.5,true,1999-12-31 23:59:59,1970-01-01,null
`,
}

// apply applies the tables and further files, each a file of endpoints/hr/ without its ending.
func (w *world) apply(files map[string]string) error {
	if w.files == nil {
		w.files = fstest.MapFS{}
		for name, text := range tables {
			w.files[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	for name, text := range files {
		w.files["endpoints/hr/"+name+".sql"] = &fstest.MapFile{Data: []byte(text)}
	}
	p, err := project.Read(w.files)
	if err != nil {
		return err
	}
	report, err := project.Apply(w.t.Context(), w.st, p, project.Options{})
	if err != nil {
		return err
	}
	w.snap = report.Snapshot
	return nil
}

func (w *world) mustApply(files map[string]string) {
	w.t.Helper()
	if err := w.apply(files); err != nil {
		w.t.Fatal(err)
	}
}

// call makes a call of an endpoint with binds by name.
func (w *world) call(name string, binds map[string]any) *record.Invocation {
	w.t.Helper()
	e := w.snap.Endpoint("hr/" + name)
	if e == nil {
		w.t.Fatalf("there is no endpoint hr/%s", name)
	}
	c := &record.SQLCall{Limit: -1}
	for _, b := range e.SQL.Compiled.Binds {
		var v record.Value
		switch x := binds[b.Name].(type) {
		case nil:
		case string:
			v = record.TextValue(x)
		case int:
			v = record.IntValue(int64(x))
		case bool:
			v = record.BoolValue(x)
		default:
			w.t.Fatalf("%T is no value", x)
		}
		c.Binds = append(c.Binds, v)
		delete(binds, b.Name)
	}
	for name := range binds {
		w.t.Fatalf("%s has no bind %s", e.Name, name)
	}
	return &record.Invocation{Endpoint: e.Name, SQL: c}
}

var nobody = &record.Actor{}

// rows runs a call and shows the rows as JSON.
func (w *world) rows(call *record.Invocation) string {
	w.t.Helper()
	rows, _, err := w.r.RunSQL(w.t.Context(), w.snap, &record.Actor{Roles: []string{"hr"}}, call, false, 1<<20)
	if err != nil {
		w.t.Fatalf("%s: %v", call.Endpoint, err)
	}
	return w.show(call.Endpoint, 0, rows)
}

// show is rows of a statement of an endpoint as JSON.
func (w *world) show(name string, n int, rows *record.Rows) string {
	out := []byte("[")
	for row, ok := rows.Next(); ok; row, ok = rows.Next() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, '{')
		for i, c := range w.snap.Endpoint(name).SQL.Compiled.Statements[n].Columns {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(wire.AppendQuote(out, c.Name), ':')
			if c.JSON && row[i].Form == record.Text {
				out = append(out, row[i].S...)
				continue
			}
			t, known := record.ParseType(c.Type)
			if !known {
				t = store.Untyped
			}
			out = wire.AppendValue(out, t, row[i])
		}
		out = append(out, '}')
	}
	return string(append(out, ']'))
}

func (w *world) block(call *record.Invocation) (*record.SQLOutcome, *record.Error) {
	_, out, err := w.r.RunSQL(context.Background(), w.snap, nobody, call, false, 1<<20)
	return out, err
}
