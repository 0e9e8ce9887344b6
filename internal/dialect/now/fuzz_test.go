package now_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/tools/txtar"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/now"
	"weir/internal/record"
	"weir/internal/wire"
)

// requests are the requests of all golden files.
func requests(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no golden files", err)
	}
	var list []string
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if f.Name == "request" {
				list = append(list, string(f.Data))
			}
		}
	}
	return list
}

// check decodes a call and replies to it with empty, failed and filled outcomes. Answers must be well formed.
func check(t *testing.T, snap *catalog.Snapshot, call *dialect.Call) {
	for _, turn := range []func(op *record.Op) record.Outcome{
		func(*record.Op) record.Outcome { return record.Outcome{Total: -1} },
		func(*record.Op) record.Outcome { return record.Outcome{Err: record.Errorf(record.Rejected, "f", "no")} },
		filled,
	} {
		d := newDialect(nil).(*now.Dialect)
		a := &wire.Answer{}
		x, err := d.Decode(snap, call)
		for err == nil {
			out := make([]record.Outcome, len(x.Ops))
			for i := range x.Ops {
				bounded(t, &x.Ops[i])
				dialecttest.Print(x.Ops[i : i+1])
				out[i] = turn(&x.Ops[i])
			}
			var next *dialect.Exchange
			if x.Next != nil {
				next, err = x.Next(out)
			}
			if err == nil && next == nil {
				x.Reply(out, a)
				break
			}
			x = next
		}
		if err != nil {
			d.Fail(call, err, a)
		}
		wellFormed(t, a)
	}
}

// filled is an outcome with one row that has a value everywhere.
func filled(op *record.Op) record.Outcome {
	o := record.Outcome{Total: 100, Key: []record.Value{record.TextValue("a/b\"<&")}}
	fields := op.Return
	if op.Verb == record.Aggregate {
		fields = append([]string(nil), op.Query.Group...)
		for range op.Query.Aggs {
			fields = append(fields, "agg")
		}
	}
	row := make([]record.Value, len(fields))
	for i := range row {
		switch i % 4 {
		case 0:
			row[i] = record.TextValue("a/b\"<&\x00\xff")
		case 1:
			row[i] = record.IntValue(-1 << 63)
		case 2:
			row[i] = record.Value{Form: record.Time, N: -1 << 62}
		}
	}
	o.Rows = record.NewRows(fields, make([]record.Type, len(fields)))
	if len(row) > 0 {
		o.Rows.Append(row)
	}
	return o
}

// bounded fails when an op holds more expressions than its bounds allow.
func bounded(t *testing.T, op *record.Op) {
	if op.Query == nil {
		return
	}
	n := 0
	op.Query.Where.Walk("", func(_ string, e *record.Expr) bool { n++; return true })
	if n > 40*500 || len(op.Query.Sort) > 600 {
		t.Errorf("%d expressions, %d sort keys", n, len(op.Query.Sort))
	}
}

func wellFormed(t *testing.T, a *wire.Answer) {
	t.Helper()
	if a.Status < 200 || a.Status > 599 {
		t.Errorf("status %d", a.Status)
	}
	for _, h := range a.Header {
		if strings.ContainsAny(h.Value, "\r\n\x00") {
			t.Errorf("header %q", h)
		}
	}
	if len(a.Body) == 0 {
		return
	}
	if strings.Contains(a.Header.Get("Content-Type"), "xml") {
		dec := xml.NewDecoder(bytes.NewReader(a.Body))
		for {
			if _, err := dec.Token(); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("%v in %q", err, a.Body)
			}
		}
	}
	if !jsontext.Value(a.Body).IsValid() {
		t.Fatalf("no JSON: %q", a.Body)
	}
}

func FuzzQuery(f *testing.F) {
	snap := small(f)
	for _, r := range requests(f) {
		if _, q, ok := strings.Cut(strings.SplitN(r, "\n", 2)[0], "sysparm_query="); ok {
			f.Add(q)
		}
	}
	f.Fuzz(func(t *testing.T, query string) {
		check(t, snap, &dialect.Call{Method: "GET", Path: "/api/now/table/incident", RawQuery: "sysparm_query=" + query, Base: "https://h"})
	})
}

func FuzzBody(f *testing.F) {
	snap := small(f)
	for _, r := range requests(f) {
		if _, body, ok := strings.Cut(r, "\n\n"); ok {
			f.Add([]byte(body), strings.Contains(r, "xml"), false)
		}
	}
	f.Add([]byte(`{"caller_id":{"display_value":"Abel"},"state":[1,[2]],"opened_at":null}`), false, true)
	f.Fuzz(func(t *testing.T, body []byte, isXML, display bool) {
		if len(body) > 1<<16 {
			return
		}
		call := &dialect.Call{Method: "POST", Path: "/api/now/table/incident", Body: body, Base: "https://h"}
		call.Header.Add("Content-Type", map[bool]string{false: "application/json", true: "text/xml"}[isXML])
		if display {
			call.RawQuery = "sysparm_input_display_value=true&sysparm_display_value=all"
		}
		check(t, snap, call)
	})
}

func FuzzCall(f *testing.F) {
	snap := small(f)
	for _, r := range requests(f) {
		line, body, _ := strings.Cut(r, "\n\n")
		line, _, _ = strings.Cut(strings.TrimPrefix(line, "# strict\n"), "\n")
		method, target, _ := strings.Cut(line, " ")
		path, query, _ := strings.Cut(target, "?")
		f.Add(method, path, query, "application/json", "application/xml", []byte(body))
	}
	f.Fuzz(func(t *testing.T, method, path, query, contentType, accept string, body []byte) {
		if len(body)+len(query)+len(path) > 1<<16 {
			return
		}
		call := &dialect.Call{Method: method, Path: path, RawQuery: query, Body: body, Base: "https://h"}
		call.Header = wire.Header{{Name: "Content-Type", Value: contentType}, {Name: "Accept", Value: accept}}
		check(t, snap, call)
	})
}
