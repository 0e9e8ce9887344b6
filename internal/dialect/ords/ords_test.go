package ords_test

import (
	"encoding/json"
	"strings"
	"testing"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/ords"
	"weir/internal/record"
	"weir/internal/wire"
)

// newDialect turns settings by the words of a golden file.
func newDialect(words []string) dialect.Dialect {
	opt := ords.Options{MaxRows: 100}
	for _, w := range words {
		switch w {
		case "debug":
			opt.Debug = true
		case "errors as pages":
			opt.ErrorFormat = ords.ErrorHTML
		case "errors as JSON":
			opt.ErrorFormat = ords.ErrorJSON
		case "plain 503":
			off := false
			opt.Status57x = &off
		case "few":
			opt.MaxRows, opt.MaxConditions, opt.MaxQuery, opt.MaxForwards = 2, 2, 100, 1
		case "no pages":
			none := 0
			opt.PageSize = &none
		case "guarded CSV":
			opt.CSVGuard = true
		default:
			panic("unknown word " + w)
		}
	}
	return ords.New(opt)
}

func TestGolden_SQL(t *testing.T) {
	dialecttest.Unit(t, "testdata/sql/*.txtar", hr(t), newDialect)
}

// col is a column of a query, by its name and its type.
func col(name, typ string) catalog.SQLColumn { return catalog.SQLColumn{Name: name, Type: typ} }

// raw is a column that holds JSON.
func raw(name string) catalog.SQLColumn {
	return catalog.SQLColumn{Name: name, Type: "string", JSON: true}
}

// link is a column that is a link.
func link(rel string) catalog.SQLColumn {
	return catalog.SQLColumn{Name: "$" + rel, Type: "string", Rel: rel}
}

var (
	deptno = col("deptno", "integer")
	dname  = col("dname", "string")
	empno  = col("empno", "integer")
	ename  = col("ename", "string")
	sal    = col("sal", "decimal")
	hired  = col("hiredate", "datetime")
	id     = catalog.SQLBind{Name: "id", Type: "integer"}
	size2  = 2
	whole  = 0
)

func binds(list ...catalog.SQLBind) []catalog.SQLBind { return list }

func text(name string) catalog.SQLBind { return catalog.SQLBind{Name: name, Type: "string"} }

// query is an endpoint that reads.
func query(name, pattern, source, etag string, binds []catalog.SQLBind, columns ...catalog.SQLColumn) catalog.EndpointDef {
	st := catalog.SQLStatement{SQL: "SELECT", Columns: columns, Reads: true}
	for i := range binds {
		st.Params = append(st.Params, i)
	}
	c := &catalog.SQLCompiled{Store: "sqlite", Binds: binds, Statements: []catalog.SQLStatement{st}}
	d := &catalog.SQLDef{Schema: "hr", Base: "v1/", Pattern: pattern, Source: source, ETag: etag, Compiled: c}
	if etag == catalog.ETagQuery {
		d.TagQuery, c.Tag = "SELECT", &catalog.SQLStatement{SQL: "SELECT"}
	}
	return catalog.EndpointDef{Name: "hr/" + name, Path: "/ords/hr/v1/" + pattern, Method: "GET", SQL: d}
}

// block is an endpoint of statements.
func block(name, method, pattern string, binds []catalog.SQLBind, params ...catalog.SQLParam) catalog.EndpointDef {
	e := query(name, pattern, catalog.SourceBlock, catalog.ETagNone, binds)
	e.Method, e.SQL.Params = method, params
	return e
}

func with(e catalog.EndpointDef, f func(*catalog.EndpointDef)) catalog.EndpointDef {
	f(&e)
	return e
}

// hr is a schema with an endpoint for each thing that the wire can say.
func hr(t testing.TB) *catalog.Snapshot {
	t.Helper()
	none := catalog.ETagNone
	snap, err := catalog.Build(1, catalog.Definitions{Endpoints: []catalog.EndpointDef{
		query("departments", "departments/", catalog.SourceCollection, none, binds(text("dname")), deptno, dname),
		query("department", "departments/:id", catalog.SourceItem, none, binds(id), deptno, dname),
		with(query("employees", "employees/:id?", catalog.SourceCollection, none, binds(id), empno, ename, sal, hired, col("active", "boolean"),
			col("score", "float"), col("photo", "bytes"), col("any", ""), raw("skills"), link("self")), func(e *catalog.EndpointDef) {
			e.SQL.PageSize = &size2
		}),
		query("hashed", "hashed/", catalog.SourceCollection, "", nil, deptno),
		query("tagged", "tagged/", catalog.SourceCollection, catalog.ETagQuery, nil, deptno),
		with(query("all", "all/", catalog.SourceCollection, none, nil, deptno), func(e *catalog.EndpointDef) { e.SQL.PageSize = &whole }),
		with(query("old", "old/", catalog.SourceQuery, none, nil, deptno, link("uri")), func(e *catalog.EndpointDef) { e.SQL.PageSize = &size2 }),
		query("one", "one/:id", catalog.SourceSingle, none, binds(id), deptno, link("uri")),
		with(query("feed", "feed/", catalog.SourceFeed, none, nil, deptno, dname), func(e *catalog.EndpointDef) { e.SQL.PageSize = &size2 }),
		query("csv", "departments.csv", catalog.SourceCSV, none, nil, deptno, dname, sal, hired),
		query("photo", "photos/:id", catalog.SourceMedia, none, binds(id), col("type", "string"), col("content", "bytes")),
		query("files", "files/:path*", catalog.SourceCollection, none, binds(text("path")), dname),
		query("root", ".", catalog.SourceCollection, none, nil, dname),
		with(query("first", "pick/:x", catalog.SourceSingle, none, binds(text("x")), dname), func(e *catalog.EndpointDef) { e.SQL.Priority = 9 }),
		query("literal", "pick/me", catalog.SourceSingle, none, nil, dname),
		with(query("older", "older/{a}/{b}", catalog.SourceSingle, none, binds(text("a"), text("b")), dname), func(e *catalog.EndpointDef) {}),
		with(query("hidden", "hidden/", catalog.SourceCollection, none, nil, dname), func(e *catalog.EndpointDef) { e.SQL.Unpublished = true }),
		with(query("pager", "pager/", catalog.SourceCollection, none, binds(text("fetch_offset"), text("fetch_size"), text("row_offset"), text("row_count"),
			text("page_offset")), dname), func(e *catalog.EndpointDef) {}),
		with(query("pages", "pages/", catalog.SourceCollection, none, binds(text("page_size")), dname), func(e *catalog.EndpointDef) { e.SQL.PageSize = &size2 }),
		with(query("typed", "typed/", catalog.SourceSingle, none, binds(
			catalog.SQLBind{Name: "n", Type: "integer"}, catalog.SQLBind{Name: "f", Type: "float"}, catalog.SQLBind{Name: "b", Type: "boolean"},
			catalog.SQLBind{Name: "t", Type: "datetime"}, text("agent"), text("content_type"), text("current_user")), dname), func(e *catalog.EndpointDef) {
			e.SQL.Params = []catalog.SQLParam{
				{Name: "n", Bind: "n", Source: "URI", Type: "INT", Access: "IN"},
				{Name: "X-Agent", Bind: "agent", Source: "HEADER", Type: "STRING", Access: "IN"},
			}
		}),
		block("insert", "POST", "departments/", binds(deptnoBind, text("dname"), catalog.SQLBind{Name: "extra"}),
			catalog.SQLParam{Name: "id", Bind: "id", Source: "RESPONSE", Type: "INT", Access: "OUT"},
			catalog.SQLParam{Name: "X-Made", Bind: "made", Source: "HEADER", Type: "TIMESTAMP", Access: "OUT"},
			catalog.SQLParam{Name: "note", Bind: "note", Source: "RESPONSE", Type: "STRING", Access: "OUT"}),
		block("update", "PUT", "departments/:id", binds(id, text("dname"))),
		with(block("mimes", "PUT", "mimes/", binds(text("body"))), func(e *catalog.EndpointDef) { e.SQL.Mimes = []string{"application/json", "image/*"} }),
		block("whole", "POST", "whole/", binds(text("body"), text("body_text"), text("content_type"), text("dname"))),
		block("form", "POST", "form/", binds(text("body_json"), text("dname"))),
		with(block("sets", "GET", "sets/", nil, catalog.SQLParam{Name: "rows", Bind: "rows", Source: "RESPONSE", Type: "RESULTSET", Access: "OUT"},
			catalog.SQLParam{Name: "n", Bind: "n", Source: "RESPONSE", Type: "INT", Access: "OUT"}), func(e *catalog.EndpointDef) {
			e.SQL.ETag = catalog.ETagHash
			e.SQL.Compiled.Statements = []catalog.SQLStatement{{SQL: "SELECT", Columns: []catalog.SQLColumn{deptno, raw("more")}, Into: []string{"rows"}}}
		}),
		query("locked", "locked/", catalog.SourceSingle, "", nil, dname),
		block("lock", "PUT", "locked/", binds(text("dname"))),
		with(block("locks", "DELETE", "locked/", nil), func(e *catalog.EndpointDef) {
			e.SQL.ETag, e.SQL.Compiled.Tag = catalog.ETagQuery, &catalog.SQLStatement{SQL: "SELECT"}
		}),
		with(block("open", "GET", "open/", nil), func(e *catalog.EndpointDef) { e.Public = true }),
		block("variables", "POST", "variables/", binds(catalog.SQLBind{Name: "next", Type: "string", Out: true}, catalog.SQLBind{Name: "both", Type: "string", Out: true}, text("in")),
			catalog.SQLParam{Name: "X-Both", Bind: "both", Source: "HEADER", Type: "STRING", Access: "INOUT"}),
		block("round", "GET", "round/", nil),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

var deptnoBind = catalog.SQLBind{Name: "deptno", Type: "integer"}

// cursor streams the same row n times, then ends with err.
type cursor struct {
	n   int
	err error
}

func (c *cursor) Next() ([]record.Value, bool) {
	c.n--
	return []record.Value{record.IntValue(int64(c.n)), record.TextValue(strings.Repeat("x", 1000)), {}, {}}, c.n >= 0
}

func (c *cursor) Err() error   { return c.err }
func (c *cursor) Close() error { return nil }

// A large collection goes out while its rows come, unless its tag is a hash of them. One that breaks when part of it is out is no answer.
func TestSQL_LargeCollectionsStream(t *testing.T) {
	snap, d := hr(t), ords.New(ords.Options{})
	run := func(path string, rows int, fails error) (a *wire.Answer, sent []byte, flushes int) {
		t.Helper()
		x, err := d.Decode(snap, &dialect.Call{Method: "GET", Path: path, RawQuery: "limit=1000", Base: "https://h"})
		if err != nil {
			t.Fatal(err)
		}
		a = &wire.Answer{}
		a.Flush = func(a *wire.Answer) error {
			flushes++
			sent = append(sent, a.Body...)
			a.Body = a.Body[:0]
			return nil
		}
		x.Reply([]record.Outcome{{
			Rows: record.StreamRows([]string{"deptno", "dname"}, []record.Type{record.TypeInteger, record.TypeString}, &cursor{n: rows, err: fails}),
			SQL:  &record.SQLOutcome{},
		}}, a)
		return a, append(sent, a.Body...), flushes
	}
	a, body, flushes := run("/ords/hr/v1/departments/", 1001, nil)
	var got struct {
		Items   []struct{ Deptno int }
		HasMore bool
		Count   int
	}
	if err := json.Unmarshal(body, &got); err != nil || len(got.Items) != 1000 || !got.HasMore || got.Count != 1000 || flushes < 10 || a.Err != nil {
		t.Errorf("%v, %d items, %d flushes, %v", err, len(got.Items), flushes, a.Err)
	}
	if a, body, flushes = run("/ords/hr/v1/hashed/", 500, nil); flushes != 0 || a.Header.Get("ETag") == "" || len(body) == 0 {
		t.Errorf("%d flushes, %v", flushes, a.Header)
	}
	broken := record.Errorf(record.Timeout, "", "too long")
	if a, _, flushes = run("/ords/hr/v1/departments/", 500, broken); flushes == 0 || a.Err == nil {
		t.Errorf("%d flushes, %v", flushes, a.Err)
	}
	if a, _, flushes = run("/ords/hr/v1/departments/", 1, broken); flushes != 0 || a.Err != nil || a.Status != 504 {
		t.Errorf("%d flushes, %v, %d", flushes, a.Err, a.Status)
	}
	if a, _, flushes = run("/ords/hr/v1/departments.csv", 50, nil); a.Err != nil || a.Status != 200 || flushes != 0 {
		t.Errorf("%v, %d, %d flushes: whether there is a next page stands before the rows", a.Err, a.Status, flushes)
	}
}

func TestResourceOf(t *testing.T) {
	snap, d := hr(t), ords.New(ords.Options{})
	f := func(path, want string) {
		t.Helper()
		if got, known := d.ResourceOf(snap, path); got != want || known != (want != "") {
			t.Errorf("%s: %q %v", path, got, known)
		}
	}
	f("/ords/hr/v1/departments/", "ords/hr/v1/departments/")
	f("/ords/hr/v1/departments/10", "ords/hr/v1/departments/:id")
	f("/ords/hr/v1/files/a/b", "ords/hr/v1/files/:path*")
	f("/ords/hr/v1/hidden/", "")
	f("/ords/nobody/x", "")
	f("/ords/", "")
}
