package dialecttest

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/remote/remotetest"
	"weir/internal/wire"
)

var update = flag.Bool("update", false, "rewrite the ops and responses of golden wire files")

// Base is what stands before paths in links.
const Base = "https://weir.test"

// Actors are the callers that a file may name: `# as itil` in a request. Without a name it is admin. They are users of the demo.
var Actors = map[string]record.Actor{
	"admin": {Key: "6816f79cc0a8016401c5a33be04be441", Name: "admin", Roles: []string{"admin"}},
	"itil":  {Key: "40ffc6683dd254c4684cfdad332e0a84", Name: "beth.anglin", Roles: []string{"itil"}},
	"guest": {Name: "guest"}, // nobody
	"ess":   {Key: "62826bf03710200044e0bfc8bcbe5df1", Name: "abel.tuter", Roles: []string{"ess"}},
}

// Unit runs the files that match glob against a dialect without an engine. A file is a sequence of calls, each with its
// sections:
//
//	-- request --
//	# as itil
//	POST /api/now/table/incident?sysparm_fields=number,priority
//	Content-Type: application/json
//
//	{"short_description":"disk full"}
//	-- outcome --
//	key ["9d385017c611228701d22104cc95c371"]
//	inserted
//	row {"number":"INC0010001","priority":"3"}
//	-- ops --
//	insert incident {short_description: "disk full"} returning number, priority
//	-- response --
//	201
//	Content-Type: application/json;charset=UTF-8
//
//	{"result":{"number":"INC0010001","priority":"3"}}
//
// Ops and response are compared, and with -update rewritten. The outcome is one block of lines for each op, with a line
// "op" before each but the first: key and row (JSON; values as text of the field's type), inserted, changed, total N, took (a
// duration), result (the document of an invocation), of SQL endpoints tag, same, status, forward, out NAME TEXT, set NAME JSON, unserviced, error (JSON with kind, field, rule, msg), streamed (rows come from a cursor), breaks (JSON: the error that ends the cursor).
// Other lines with # in a request are words for newDialect, which may turn settings by them.
func Unit(t *testing.T, glob string, snap *catalog.Snapshot, newDialect func(words []string) dialect.Dialect) {
	each(t, glob, func(t *testing.T, f *file) {
		for i := range f.calls {
			c := &f.calls[i]
			call, words := c.parse(t, c.request)
			d := newDialect(words)
			a := &wire.Answer{}
			outcomes := outcomeReader{t: t, snap: snap, blocks: splitOutcomes(c.outcome)}
			ops := ""
			if b, ok := d.(dialect.Batcher); ok && b.IsBatch(call.Method, call.Path) {
				e := &replay{outcomes: &outcomes}
				b.Batch(context.Background(), batchRun(snap, e, d), call, a)
				f.check(t, c, "ops", &c.ops, e.ops)
				f.check(t, c, "response", &c.response, printAnswer(a)+printItems(a.Body))
				continue
			}
			x, err := d.Decode(snap, call)
			for err == nil {
				if ops != "" {
					ops += "then\n"
				}
				ops += Print(x.Ops)
				if x.Token != "" {
					ops += fmt.Sprintf("token %q\n", x.Token)
				}
				out := outcomes.take(x.Ops)
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
			f.check(t, c, "ops", &c.ops, ops)
			f.check(t, c, "response", &c.response, printAnswer(a))
		}
	})
}

// Server is something that runs units, for [EndToEnd].
type Server struct {
	Snapshot *catalog.Snapshot
	Executor dialect.Executor
	Dialect  dialect.Dialect
}

// EndToEnd runs the files that match glob against servers: newServer is called twice for each file and gives one whose
// records are those of the demo. The second one is split into hub and backend, with a socket between. Requests of a file run in order. Only responses are compared; in them ids that the request
// or an earlier file line did not name become ${id1}, ${id2} … in order of appearance, which later requests may use, and
// times become <time>.
func EndToEnd(t *testing.T, glob string, newServer func(t *testing.T) Server) {
	each(t, glob, func(t *testing.T, f *file) {
		play(t, f, newServer(t))
		if !*update {
			t.Run("split", func(t *testing.T) { play(t, f, Split(t, newServer(t))) })
		}
	})
}

// Split is a server whose executor stands behind a socket, with the definitions as they come over it: what a hub is.
func Split(t testing.TB, s Server) Server {
	s.Executor, s.Snapshot = remotetest.Split(t, s.Executor, s.Snapshot)
	return s
}

func play(t *testing.T, f *file, s Server) {
	ids := &idNames{}
	for i := range f.calls {
		c := &f.calls[i]
		call, _ := c.parse(t, ids.fill(c.request))
		a := Do(context.Background(), s, call)
		f.check(t, c, "response", &c.response, ids.hide(call, printAnswer(a)))
	}
}

// Do answers one call: decode, execute, reply; or the items of a batch.
func Do(ctx context.Context, s Server, call *dialect.Call) *wire.Answer {
	a := &wire.Answer{}
	if b, ok := s.Dialect.(dialect.Batcher); ok && b.IsBatch(call.Method, call.Path) {
		b.Batch(ctx, batchRun(s.Snapshot, s.Executor, s.Dialect), call, a)
		return a
	}
	if l, ok := s.Dialect.(dialect.Loader); ok {
		if _, ok := l.Loads(s.Snapshot, call); ok {
			l.Load(ctx, &dialect.LoadRun{Snapshot: s.Snapshot, Exec: s.Executor, Public: func(err error) error { return err }},
				call, io.NopCloser(bytes.NewReader(call.Body)), a)
			return a
		}
	}
	x, err := s.Dialect.Decode(s.Snapshot, call)
	for err == nil {
		u := dialect.UnitOf(s.Snapshot, call, x)
		var out []record.Outcome
		sql := len(u.Ops) == 1 && u.Ops[0].Invoke != nil && u.Ops[0].Invoke.SQL != nil && x.Next == nil && (call.Method == "GET" || call.Method == "HEAD")
		if sql || len(u.Ops) == 1 && u.Ops[0].Verb == record.List {
			out = []record.Outcome{s.Executor.Stream(ctx, s.Snapshot, u)}
		} else {
			out = s.Executor.Execute(ctx, s.Snapshot, u)
		}
		var next *dialect.Exchange
		if x.Next != nil {
			for i := range out {
				if out[i].Rows != nil && out[i].Err == nil {
					if err := out[i].Rows.Materialise(0); err != nil {
						out[i] = record.Outcome{Err: record.AsError(err)}
					}
				}
			}
			next, err = x.Next(out)
		}
		if err == nil && next == nil {
			x.Reply(out, a)
		}
		for i := range out {
			if out[i].Rows != nil {
				out[i].Rows.Close()
			}
		}
		if next == nil {
			break
		}
		x = next
	}
	if err != nil {
		s.Dialect.Fail(call, err, a)
	}
	return a
}

func batchRun(snap *catalog.Snapshot, e dialect.Executor, d dialect.Dialect) *dialect.BatchRun {
	mux := &dialect.Mux{}
	mux.Handle("/api/", d)
	return &dialect.BatchRun{Snapshot: snap, Exec: e, Mux: mux}
}

// replay is an executor that prints the units of a batch and answers with the outcomes of a file.
type replay struct {
	outcomes *outcomeReader
	ops      string
}

func (e *replay) Execute(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
	if e.ops != "" {
		e.ops += "then\n"
	}
	if u.Ordered {
		e.ops += "ordered\n"
	}
	e.ops += Print(u.Ops)
	return e.outcomes.take(u.Ops)
}

func (e *replay) Stream(context.Context, *catalog.Snapshot, *record.Unit) record.Outcome {
	panic("dialecttest: a batch streams nothing")
}

// printItems tells the bodies of the items of a batch in the clear.
func printItems(body []byte) string {
	var answer struct {
		Serviced []struct {
			ID   string
			Body []byte
		} `json:"serviced_requests"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	var b strings.Builder
	for _, item := range answer.Serviced {
		fmt.Fprintf(&b, "(%s) %s\n", item.ID, item.Body)
	}
	return b.String()
}

// file is one golden file.
type file struct {
	path    string
	archive *txtar.Archive
	calls   []goldenCall
	changed bool
}

// goldenCall is one request with its sections; indexes are positions in the archive, -1 for none.
type goldenCall struct {
	at       int // of the request
	request  string
	outcome  string
	ops      int
	response int
}

func each(t *testing.T, glob string, run func(*testing.T, *file)) {
	paths, err := filepath.Glob(glob)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files match %s (%v)", glob, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			f := &file{path: path, archive: archive}
			f.index(t)
			run(t, f)
			if *update && f.changed {
				f.write(t)
			}
		})
	}
}

func (f *file) index(t *testing.T) {
	for i := range f.archive.Files {
		data := string(f.archive.Files[i].Data)
		if f.archive.Files[i].Name == "request" {
			f.calls = append(f.calls, goldenCall{at: i, request: data, ops: -1, response: -1})
			continue
		}
		if len(f.calls) == 0 {
			t.Fatalf("%s: %q stands before the first request", f.path, f.archive.Files[i].Name)
		}
		c := &f.calls[len(f.calls)-1]
		switch f.archive.Files[i].Name {
		case "outcome":
			c.outcome = data
		case "ops":
			c.ops = i
		case "response":
			c.response = i
		default:
			t.Fatalf("%s: unknown section %q", f.path, f.archive.Files[i].Name)
		}
	}
	if len(f.calls) == 0 {
		t.Fatalf("%s: no request", f.path)
	}
}

// check compares a section, or notes what it must become.
func (f *file) check(t *testing.T, c *goldenCall, name string, at *int, got string) {
	t.Helper()
	if !strings.HasSuffix(got, "\n") && got != "" {
		got += "\n"
	}
	if *update {
		f.changed = true
		if *at < 0 {
			f.archive.Files = append(f.archive.Files, txtar.File{Name: name, Data: []byte(got)})
			*at = len(f.archive.Files) - 1
		} else {
			f.archive.Files[*at].Data = []byte(got)
		}
		return
	}
	want := ""
	if *at >= 0 {
		want = string(f.archive.Files[*at].Data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s of %s (-want +got):\n%s", name, strings.TrimSpace(c.request), diff)
	}
}

func (f *file) write(t *testing.T) {
	out := &txtar.Archive{Comment: f.archive.Comment}
	for _, c := range f.calls {
		out.Files = append(out.Files, f.archive.Files[c.at])
		if c.outcome != "" {
			out.Files = append(out.Files, txtar.File{Name: "outcome", Data: []byte(c.outcome)})
		}
		for _, i := range []int{c.ops, c.response} {
			if i >= 0 {
				out.Files = append(out.Files, f.archive.Files[i])
			}
		}
	}
	if err := os.WriteFile(f.path, txtar.Format(out), 0o644); err != nil {
		t.Fatal(err)
	}
}

// parse reads a request: words, request line, headers, a blank line, the body.
func (c *goldenCall) parse(t *testing.T, text string) (*dialect.Call, []string) {
	t.Helper()
	call := &dialect.Call{Base: Base, Actor: Actors["admin"]}
	var words []string
	head, body, _ := strings.Cut(text, "\n\n")
	for _, line := range strings.Split(strings.TrimSuffix(head, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "# as "):
			actor, ok := Actors[strings.TrimPrefix(line, "# as ")]
			if !ok {
				t.Fatalf("no actor %q", line)
			}
			call.Actor = actor
		case strings.HasPrefix(line, "#"):
			words = append(words, strings.TrimSpace(line[1:]))
		case call.Method == "":
			method, target, ok := strings.Cut(line, " ")
			if !ok {
				t.Fatalf("request line %q is not METHOD target", line)
			}
			path, query, _ := strings.Cut(target, "?")
			call.RawPath = path
			path, err := url.PathUnescape(path)
			if err != nil {
				t.Fatal(err)
			}
			call.Method, call.Path, call.RawQuery = method, path, query
		default:
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				t.Fatalf("header line %q", line)
			}
			call.Header.Add(name, strings.TrimSpace(value))
		}
	}
	call.Body = []byte(strings.TrimSuffix(body, "\n"))
	return call, words
}

// boring are headers that every answer has.
var boring = []string{"Cache-Control", "Pragma", "Expires"}

func printAnswer(a *wire.Answer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d\n", a.Status)
	for _, h := range a.Header {
		if !slices.Contains(boring, h.Name) {
			fmt.Fprintf(&b, "%s: %s\n", h.Name, h.Value)
		}
	}
	if a.Err != nil {
		fmt.Fprintf(&b, "(connection broken: %v)\n", a.Err)
	}
	if len(a.Body) > 0 {
		fmt.Fprintf(&b, "\n%s\n", a.Body)
	}
	return b.String()
}

// outcomeReader hands out the outcomes of a section.
type outcomeReader struct {
	t      *testing.T
	snap   *catalog.Snapshot
	blocks [][]string
}

func splitOutcomes(text string) [][]string {
	blocks := [][]string{nil}
	for _, line := range strings.Split(text, "\n") {
		switch line = strings.TrimSpace(line); line {
		case "":
		case "op":
			blocks = append(blocks, nil)
		default:
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], line)
		}
	}
	return blocks
}

func (r *outcomeReader) take(ops []record.Op) []record.Outcome {
	r.t.Helper()
	out := make([]record.Outcome, len(ops))
	for i := range ops {
		out[i].Total = -1
		if len(r.blocks) == 0 {
			continue
		}
		r.outcome(&ops[i], r.blocks[0], &out[i])
		r.blocks = r.blocks[1:]
	}
	return out
}

type outcomeError struct{ Kind, Field, Rule, Msg string }

func (r *outcomeReader) err(text string) *record.Error {
	r.t.Helper()
	var e outcomeError
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		r.t.Fatal(err)
	}
	for k := record.Kind(0); k < record.NumKinds; k++ {
		if k.String() == e.Kind {
			return &record.Error{Kind: k, Field: e.Field, Rule: e.Rule, Msg: e.Msg}
		}
	}
	r.t.Fatalf("no error kind %q", e.Kind)
	return nil
}

func (r *outcomeReader) outcome(op *record.Op, lines []string, o *record.Outcome) {
	r.t.Helper()
	table, _ := r.snap.Table(op.Table)
	fields, types := slices.Clone(op.Return), []record.Type(nil)
	if op.Verb == record.Aggregate {
		fields = append(fields, op.Query.Group...)
		for _, a := range op.Query.Aggs {
			fields = append(fields, PrintAgg(a))
		}
	}
	for _, path := range fields {
		types = append(types, r.typeOf(table, path))
	}
	var sql *catalog.SQLDef
	if op.Invoke != nil && op.Invoke.SQL != nil {
		sql, o.SQL = r.snap.Endpoint(op.Invoke.Endpoint).SQL, &record.SQLOutcome{}
		for _, c := range sql.Compiled.Statements[0].Columns {
			fields, types = append(fields, c.Name), append(types, sqlType(c.Type))
			if c.Rel != "" {
				fields[len(fields)-1] = "$" + c.Rel
			}
		}
	}
	rows := record.NewRows(fields, types)
	streamed := false
	var breaks error
	for _, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "inserted":
			o.Inserted, o.Changed = true, true
		case "changed":
			o.Changed = true
		case "streamed":
			streamed = true
		case "total":
			fmt.Sscan(rest, &o.Total)
		case "error":
			o.Err = r.err(rest)
		case "unserviced":
			o.Unserviced = true
		case "took":
			d, err := time.ParseDuration(rest)
			if err != nil {
				r.t.Fatal(err)
			}
			o.Stat.End = d
		case "result":
			o.Result = []byte(rest)
		case "breaks":
			streamed, breaks = true, r.err(rest)
		case "key":
			var key []string
			r.json(rest, &key)
			for i, s := range key {
				v, err := record.Parse(table.KeyFields()[i].Type, s)
				if err != nil {
					r.t.Fatal(err)
				}
				o.Key = append(o.Key, v)
			}
		case "tag":
			o.SQL.Tag = rest
		case "same":
			o.SQL.Same = true
		case "status":
			fmt.Sscan(rest, &o.SQL.Status)
		case "forward":
			o.SQL.Forward = rest
		case "out":
			name, text, _ := strings.Cut(rest, " ")
			o.SQL.Out = append(o.SQL.Out, record.Assign{Field: name, Value: r.value(record.TypeString, text)})
			for _, p := range sql.Params {
				if t, ok := map[string]record.Type{"INT": record.TypeInteger, "TIMESTAMP": record.TypeDateTime, "DOUBLE": record.TypeFloat}[p.Type]; ok && p.Name == name {
					o.SQL.Out[len(o.SQL.Out)-1].Value = r.value(t, text)
				}
			}
		case "set":
			name, text, _ := strings.Cut(rest, " ")
			o.SQL.Sets = append(o.SQL.Sets, record.OutRows{Name: name, Rows: r.set(sql, name, text)})
		case "row":
			var values map[string]string
			r.json(rest, &values)
			row := make([]record.Value, len(fields))
			for i, f := range fields {
				row[i] = r.value(types[i], values[f])
				delete(values, f)
			}
			for name := range values {
				r.t.Fatalf("row has %q, which the op does not return (%s)", name, strings.Join(fields, ", "))
			}
			rows.Append(row)
		default:
			r.t.Fatalf("outcome line %q", line)
		}
	}
	if o.Err != nil {
		return
	}
	o.Rows = rows
	if streamed {
		o.Rows = record.StreamRows(fields, types, &cursor{rows: rows, err: breaks})
	}
}

// sqlType is the type of a column of a SQL endpoint: texts are what says itself what it is.
func sqlType(name string) record.Type {
	if t, ok := record.ParseType(name); ok {
		return t
	}
	return record.TypeString
}

func (r *outcomeReader) value(t record.Type, text string) record.Value {
	r.t.Helper()
	v, err := record.Parse(t, text)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// set is rows of a block's parameter, as a JSON list of objects with texts.
func (r *outcomeReader) set(sql *catalog.SQLDef, name, text string) *record.Rows {
	r.t.Helper()
	var list []map[string]string
	r.json(text, &list)
	for _, p := range sql.Params {
		for _, st := range sql.Compiled.Statements {
			if p.Name != name || len(st.Into) != 1 || st.Into[0] != p.Bind {
				continue
			}
			var fields []string
			var types []record.Type
			for _, c := range st.Columns {
				fields, types = append(fields, c.Name), append(types, sqlType(c.Type))
			}
			rows := record.NewRows(fields, types)
			for _, values := range list {
				row := make([]record.Value, len(fields))
				for i, f := range fields {
					row[i] = r.value(types[i], values[f])
				}
				rows.Append(row)
			}
			return rows
		}
	}
	r.t.Fatalf("there is no parameter %s that is rows", name)
	return nil
}

func (r *outcomeReader) json(text string, v any) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
}

func (r *outcomeReader) typeOf(t *catalog.Table, path string) record.Type {
	r.t.Helper()
	if path == "count" {
		return record.TypeInteger
	}
	if _, inner, ok := strings.Cut(path, "("); ok {
		if strings.HasPrefix(path, "avg") {
			return record.TypeFloat
		}
		path = strings.TrimSuffix(inner, ")")
	}
	steps, err := r.snap.Resolve(t, path)
	if err != nil {
		r.t.Fatal(err)
	}
	return steps[len(steps)-1].Field.Type
}

// cursor streams rows held in memory, then ends with err.
type cursor struct {
	rows *record.Rows
	err  error
	done bool
}

func (c *cursor) Next() ([]record.Value, bool) {
	row, ok := c.rows.Next()
	c.done = !ok
	return row, ok
}

func (c *cursor) Err() error {
	if c.done {
		return c.err
	}
	return nil
}

func (c *cursor) Close() error { return nil }

// idNames gives names to ids that differ from run to run.
type idNames struct{ ids []string }

var (
	idPattern   = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
	timePattern = regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\b`)
)

func (n *idNames) fill(text string) string {
	for i, id := range n.ids {
		text = strings.ReplaceAll(text, fmt.Sprintf("${id%d}", i+1), id)
	}
	return text
}

// hide replaces times and the ids that the file did not name itself. Records of the demo have ids that are the same in
// every run; they are those that a request or Actors name, all others are hidden.
func (n *idNames) hide(call *dialect.Call, text string) string {
	named := call.Path + " " + call.RawQuery + " " + string(call.Body)
	text = idPattern.ReplaceAllStringFunc(text, func(id string) string {
		if i := slices.Index(n.ids, id); i >= 0 {
			return fmt.Sprintf("${id%d}", i+1)
		}
		if strings.Contains(named, id) {
			return id
		}
		for _, a := range Actors {
			if a.Key == id {
				return id
			}
		}
		n.ids = append(n.ids, id)
		return fmt.Sprintf("${id%d}", len(n.ids))
	})
	return timePattern.ReplaceAllString(text, "<time>")
}
