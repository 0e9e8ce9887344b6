package ords

import (
	"path/filepath"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"weir/internal/autorest"
	"weir/internal/catalog"
	"weir/internal/dialect/dialecttest"
	"weir/internal/engine"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

// The office is what the tests of tables work on: departments with a version, employees without one, presence with a key of two columns,
// notes that weir audits, and a view of no key.
const officeDefinitions = `
tables:
  - name: department
    audit: false
    key: [deptno]
    fields:
      - {name: deptno, type: integer, mandatory: true}
      - {name: dname, type: string, max_length: 14, mandatory: true, unique: true}
      - {name: loc, type: string, max_length: 13, default: NEW YORK}
      - {name: version, type: integer, read_only: true, default: 1}
    rules:
      - {name: version, on: [update], set: {version: 'version + 1'}}
  - name: employee
    audit: false
    key: [empno]
    fields:
      - {name: empno, type: integer, mandatory: true}
      - {name: ename, type: string, max_length: 10}
      - {name: job, type: string, max_length: 9}
      - {name: mgr, type: integer}
      - {name: hiredate, type: date}
      - {name: seen, type: datetime}
      - {name: sal, type: decimal}
      - {name: rating, type: float}
      - {name: active, type: boolean}
      - {name: photo, type: bytes}
      - {name: extra, type: json}
      - {name: deptno, type: integer}
    access:
      read: [{roles: [itil]}]
      create: [{roles: [itil]}]
      update: [{roles: [itil]}]
      delete: [{roles: [itil]}]
  - name: presence
    audit: false
    key: [day, room]
    fields:
      - {name: day, type: date, mandatory: true}
      - {name: room, type: string, max_length: 20, mandatory: true}
      - {name: people, type: integer}
  - name: remark
    fields:
      - {name: Text, type: string, max_length: 100}
      - {name: number, type: string, read_only: true, sequence: {prefix: R, digits: 4}}
services:
  - name: hr
    protocol: ords
    page_size: 3
    sets:
      - {name: dept, table: department, etag: version}
      - {name: emp, table: employee}
      - {name: names, table: employee, allow: [read], properties: [{name: id, field: empno}, {name: who, field: ename}]}
      - {name: presence}
    expose: [remark]
  - name: closed
    protocol: ords
    roles: [itil]
    expose: [department]
`

type office struct {
	snap *catalog.Snapshot
	exec *engine.Engine
	d    *Dialect
}

// onOffice calls f for each database with a maker of offices. Without a PostgreSQL for tests it is SQLite alone.
func onOffice(t *testing.T, f func(t *testing.T, open func(t *testing.T) *office)) {
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) *office {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
			if err != nil {
				t.Fatal(err)
			}
			return newOffice(t, s)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		if storetest.Postgres(t) == "" {
			return
		}
		f(t, func(t *testing.T) *office {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: storetest.Postgres(t)})
			if err != nil {
				t.Fatal(err)
			}
			return newOffice(t, s)
		})
	})
}

func newOffice(t testing.TB, s store.Store) *office {
	t.Cleanup(func() { s.Close() })
	o := &office{snap: officeSnapshot(t), d: New(Options{})}
	storetest.Create(t, s, o.snap)
	e, err := engine.New(s, engine.Options{Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	o.exec = e
	o.insert(t, "department", []string{"deptno", "dname", "loc"}, [][]string{
		{"10", "ACCOUNTING", "NEW YORK"}, {"20", "RESEARCH", "DALLAS"}, {"30", "SALES", "CHICAGO"}, {"40", "OPERATIONS", "BOSTON"},
	})
	o.insert(t, "employee", []string{"empno", "ename", "job", "mgr", "hiredate", "sal", "deptno"}, [][]string{
		{"7369", "SMITH", "CLERK", "7902", "1980-12-17", "800", "20"},
		{"7499", "ALLEN", "SALESMAN", "7698", "1981-02-20", "1600", "30"},
		{"7521", "WARD", "SALESMAN", "7698", "1981-02-22", "1250", "30"},
		{"7566", "JONES", "MANAGER", "7839", "1981-04-02", "2975", "20"},
		{"7839", "KING", "PRESIDENT", "", "1981-11-17", "5000", "10"},
		{"7900", "JAMES", "CLERK", "7698", "1981-12-03", "950.5", "30"},
		{"7902", "FORD", "ANALYST", "7566", "1981-12-03", "3000", "20"},
	})
	o.insert(t, "presence", []string{"day", "room", "people"}, [][]string{{"2026-11-30", "A/1, left", "4"}, {"2026-12-01", "B", "2"}})
	return o
}

func officeSnapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	var defs catalog.Definitions
	if err := yaml.Unmarshal([]byte(officeDefinitions), &defs); err != nil {
		t.Fatal(err)
	}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// insert writes records of a table: each row is the texts of fields, "" for null.
func (o *office) insert(t testing.TB, name string, fields []string, rows [][]string) {
	t.Helper()
	table, err := o.snap.Table(name)
	if err != nil {
		t.Fatal(err)
	}
	u := &record.Unit{Version: 1, Actors: []record.Actor{{System: true}}}
	for _, row := range rows {
		op := record.Op{Verb: record.Insert, Table: name, Group: 1}
		for i, text := range row {
			if text == "" {
				continue
			}
			v, err := record.Parse(table.Field(fields[i]).Type, text)
			if err != nil {
				t.Fatal(err)
			}
			op.Set = append(op.Set, record.Assign{Field: fields[i], Value: v})
		}
		u.Ops = append(u.Ops, op)
	}
	for _, out := range o.exec.Execute(t.Context(), o.snap, u) {
		if out.Err != nil {
			t.Fatal(out.Err)
		}
	}
}

// The files of testdata/table run against the office, each file against one of its own.
func TestGolden_Table(t *testing.T) {
	onOffice(t, func(t *testing.T, open func(t *testing.T) *office) {
		dialecttest.EndToEnd(t, "testdata/table/*.txtar", func(t *testing.T) dialecttest.Server {
			o := open(t)
			return dialecttest.Server{Snapshot: o.snap, Executor: o.exec, Dialect: o.d}
		})
	})
}

// officeColumn is a column of the employees.
func officeColumn(t testing.TB, name string) *autorest.Column {
	t.Helper()
	col := New(Options{}).modelOf(officeSnapshot(t)).schemas["hr"].tables.shapes["emp"].Column(name)
	if col == nil {
		t.Fatalf("no column %s", name)
	}
	return col
}
