package odata

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/engine"
	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
	"weir/internal/wire"
)

// batchShop is a shop with an engine and a dialect, behind a path of its own a dialect of another kind.
type batchShop struct {
	snap *catalog.Snapshot
	exec *counted
	d    *Dialect
	mux  *dialect.Mux
}

// counted is an executor that counts units.
type counted struct {
	dialect.Executor
	units []*record.Unit
}

func (c *counted) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	c.units = append(c.units, u)
	return c.Executor.Execute(ctx, snap, u)
}

// onBatchShop calls f for each database with a maker of shops. Without a PostgreSQL for tests it is SQLite alone.
func onBatchShop(t *testing.T, f func(t *testing.T, open func(t *testing.T) *batchShop)) {
	t.Run("sqlite", func(t *testing.T) {
		f(t, func(t *testing.T) *batchShop {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
			if err != nil {
				t.Fatal(err)
			}
			return newBatchShop(t, s)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		if storetest.Postgres(t) == "" {
			return
		}
		f(t, func(t *testing.T) *batchShop {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: storetest.Postgres(t)})
			if err != nil {
				t.Fatal(err)
			}
			return newBatchShop(t, s)
		})
	})
}

func newBatchShop(t testing.TB, s store.Store) *batchShop {
	t.Cleanup(func() { s.Close() })
	b := &batchShop{snap: shop(t), mux: &dialect.Mux{}}
	storetest.Create(t, s, b.snap)
	e, err := engine.New(s, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	b.exec = &counted{Executor: e}
	b.d = New(Options{Batch: BatchOptions{Boundary: func() string { return "Z" }}})
	b.d.now = shopDialect().now
	for _, p := range Prefixes {
		b.mux.Handle(p, b.d)
	}
	b.mux.Handle("/api/", notes{})
	return b
}

// notes is a dialect that stores what it is sent as a remark.
type notes struct{}

func (notes) Name() string { return "now" }
func (notes) Decode(_ *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	return &dialect.Exchange{
		Ops: []record.Op{{Verb: record.Insert, Table: "remark", Set: []record.Assign{{Field: "text", Value: record.TextValue(string(c.Body))}}, Return: []string{"text"}}},
		Reply: func(out []record.Outcome, a *wire.Answer) {
			if out[0].Err != nil {
				notes{}.Fail(c, out[0].Err, a)
				return
			}
			a.Status = 201
			a.Header.Add("Content-Type", "application/json")
			a.Body = fmt.Appendf(a.Body, `{"result":%q}`, out[0].Rows.At(0)[0].S)
		},
	}, nil
}

func (notes) Fail(_ *dialect.Call, err error, a *wire.Answer) {
	a.Status = 400
	a.Body = append(a.Body, err.Error()...)
}

// do answers one call.
func (b *batchShop) do(ctx context.Context, c *dialect.Call) (*wire.Answer, []dialect.ItemRecord) {
	if !b.d.IsBatch(c.Method, c.Path) {
		return dialecttest.Do(ctx, dialecttest.Server{Snapshot: b.snap, Executor: b.exec, Dialect: b.d}, c), nil
	}
	a := &wire.Answer{}
	records := b.d.Batch(ctx, &dialect.BatchRun{Snapshot: b.snap, Exec: b.exec, Mux: b.mux}, c, a)
	return a, records
}

// The files of testdata/batch are batches on the wire against a shop on a real engine, in order. Line ends are CRLF where a file says
// so; those of answers must be. An answer is followed by what the transaction log learns of the operations: how many ops the largest set had
// that they were part of, and how many units that took in all.
func TestBatch_OnTheWire(t *testing.T) {
	paths, err := filepath.Glob("testdata/batch/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	onBatchShop(t, func(t *testing.T, open func(t *testing.T) *batchShop) {
		for _, path := range paths {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
				archive, err := txtar.ParseFile(path)
				if err != nil {
					t.Fatal(err)
				}
				b := open(t)
				out := &txtar.Archive{Comment: archive.Comment}
				for _, f := range archive.Files {
					if f.Name != "request" {
						continue
					}
					out.Files = append(out.Files, f, txtar.File{Name: "response", Data: []byte(b.exchange(t, string(f.Data)))})
				}
				if flag.Lookup("update").Value.String() == "true" {
					if err := os.WriteFile(path, txtar.Format(out), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(out))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	})
}

// parseCall reads a request as it stands in a file.
func parseCall(t *testing.T, text string) *dialect.Call {
	t.Helper()
	c := &dialect.Call{Base: dialecttest.Base, Actor: dialecttest.Actors["admin"]}
	head, body, _ := strings.Cut(text, "\n\n")
	crlf := false
	for _, line := range strings.Split(strings.TrimSuffix(head, "\n"), "\n") {
		name, value, _ := strings.Cut(line, " ")
		switch {
		case line == "# CRLF":
			crlf = true
		case c.Method == "":
			c.Method = name
			c.Path, c.RawQuery, _ = strings.Cut(value, "?")
			c.RawPath = c.Path
		default:
			c.Header.Add(strings.TrimSuffix(name, ":"), value)
		}
	}
	if body = strings.TrimSuffix(body, "\n"); crlf {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	}
	c.Body = []byte(body)
	return c
}

// batchGUIDs are keys that differ from run to run.
var batchGUIDs = regexp.MustCompile(`[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}`)

// exchange sends a request and prints what came of it.
func (b *batchShop) exchange(t *testing.T, text string) string {
	t.Helper()
	c := parseCall(t, text)
	b.exec.units = nil
	a, records := b.do(t.Context(), c)
	var out strings.Builder
	fmt.Fprintf(&out, "%d\n", a.Status)
	for _, f := range a.Header {
		fmt.Fprintf(&out, "%s: %s\n", f.Name, f.Value)
	}
	body := a.Body
	if strings.HasPrefix(a.Header.Get("Content-Type"), "multipart/") {
		for _, line := range bytes.SplitAfter(body, []byte("\n")) {
			if bytes.HasSuffix(line, []byte("\n")) && !bytes.HasSuffix(line, []byte("\r\n")) {
				t.Errorf("a bare line break behind %q", line)
			}
		}
		for _, p := range splitAnswer(t, body, "Z") {
			if _, boundary := mediaType(p.header.Get("Content-Type")); boundary != "" {
				splitAnswer(t, p.content, boundary)
			}
		}
		body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	}
	fmt.Fprintf(&out, "\n%s\n", bytes.TrimSuffix(batchGUIDs.ReplaceAll(body, []byte("<guid>")), []byte("\n")))
	for i, r := range records {
		if i == 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "(%s) %s %s %d", r.ID, r.Method, r.URL, r.Status)
		if r.SetOps > 0 {
			fmt.Fprintf(&out, " in a set of %d", r.SetOps)
		}
		if r.Unserviced {
			out.WriteString(" unserviced")
		}
		out.WriteString("\n")
	}
	if len(records) > 0 {
		fmt.Fprintf(&out, "%d units\n", len(b.exec.units))
	}
	return out.String()
}

// What passes a bound is refused before anything is executed, and the answer names the setting.
func TestBatch_TooLargeIsRefusedAsAWhole(t *testing.T) {
	s := marketSnapshot(t).snap
	many := strings.Repeat("--b\nContent-Type: application/http\n\nDELETE ProductSet('1') HTTP/1.1\n\n\n", 10_001) + "--b--"
	for name, c := range map[string]struct {
		opt        BatchOptions
		kind, body string
		says       string
	}{
		"parts":  {BatchOptions{}, "multipart/mixed; boundary=b", many, "odata.batch.max_parts"},
		"json":   {BatchOptions{MaxParts: 1}, "application/json", `{"requests":[{"id":"1","method":"delete","url":"A"},{"id":"2","method":"delete","url":"A"}]}`, "odata.batch.max_parts"},
		"body":   {BatchOptions{MaxBody: 100}, "multipart/mixed; boundary=b", many, "100; see odata.batch.max_body"},
		"header": {BatchOptions{MaxHeader: 300}, "multipart/mixed; boundary=b", "--b\nContent-Type: application/http\n\nDELETE " + strings.Repeat("a", 300) + " HTTP/1.1\nA: b\n\n\n--b--", "odata.batch.max_header"},
	} {
		d := New(Options{Batch: c.opt})
		x := &counted{Executor: &inserted{}}
		a := &wire.Answer{}
		call := &dialect.Call{Method: "POST", Path: "/odata/v4/MARKET/$batch", RawPath: "/odata/v4/MARKET/$batch", Actor: dialecttest.Actors["admin"], Body: []byte(c.body)}
		call.Header.Add("Content-Type", c.kind)
		mux := &dialect.Mux{}
		mux.Handle("/odata/", d)
		records := d.Batch(t.Context(), &dialect.BatchRun{Snapshot: s, Exec: x, Mux: mux}, call, a)
		if a.Status != 413 || !bytes.Contains(a.Body, []byte(c.says)) || len(x.units) > 0 || records != nil {
			t.Errorf("%s: %d %s, %d units", name, a.Status, a.Body, len(x.units))
		}
	}
}

func TestIsBatch(t *testing.T) {
	d := New(Options{})
	for _, c := range []struct {
		method, path string
		want         bool
	}{
		{"POST", "/sap/opu/odata/sap/S/$batch", true},
		{"POST", "/sap/opu/odata/sap/S;v=2/$batch/", true},
		{"POST", "/odata/v4/S/$batch", true},
		{"GET", "/odata/v4/S/$batch", false},
		{"HEAD", "/odata/v4/S/$batch/", false},
		{"POST", "/odata/v4/S/batch", false},
		{"POST", "/api/now/$batch", false},
	} {
		if got := d.IsBatch(c.method, c.path); got != c.want {
			t.Errorf("%s %s: %v", c.method, c.path, got)
		}
	}
}

func TestPreferred(t *testing.T) {
	h := wire.Header{{Name: "prefer", Value: `return=minimal; x=y , wait=5`}, {Name: "Accept", Value: "continue-on-error"}, {Name: "Prefer", Value: `odata.continue-on-error, odata.track-changes="TRUE"`}}
	for name, want := range map[string]string{"return": "minimal true", "continue-on-error": "true true", "track-changes": "true true", "wait": "5 true", "respond-async": " false"} {
		v, ok := preferred(h, name)
		if got := fmt.Sprintf("%s %v", v, ok); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Whatever a batch holds, it is answered with what stands for it, and never as a fault of ours.
func FuzzBatch(f *testing.F) {
	paths, _ := filepath.Glob("testdata/batch/*.txtar")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range archive.Files {
			if part.Name == "request" {
				head, body, _ := strings.Cut(string(part.Data), "\n\n")
				_, rest, _ := strings.Cut(head, "Content-Type: ")
				kind, _, _ := strings.Cut(rest, "\n")
				f.Add(strings.Contains(head, "v4"), kind, []byte(body))
			}
		}
	}
	st, err := sqlite.Open(f.Context(), sqlite.Options{Path: filepath.Join(f.TempDir(), "weir.db")})
	if err != nil {
		f.Fatal(err)
	}
	s := newBatchShop(f, st)
	s.d.opt.Batch.MaxParts = 40
	f.Fuzz(func(t *testing.T, four bool, kind string, body []byte) {
		if len(body) > 1<<14 {
			return
		}
		c := &dialect.Call{Method: "POST", Path: "/odata/v2/SHOP/$batch", Base: dialecttest.Base, Actor: dialecttest.Actors["admin"], Body: bytes.Clone(body)}
		if four {
			c.Path = "/odata/v4/SHOP/$batch"
		}
		c.RawPath = c.Path
		c.Header.Add("Content-Type", kind)
		a, records := s.do(t.Context(), c)
		if a.Status >= 500 || a.Status == 0 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		for i, r := range records {
			if r.Status >= 500 && r.Status != 501 || r.Status == 0 && !r.Unserviced {
				t.Fatalf("operation %d: %d\n%s", i, r.Status, a.Body)
			}
		}
	})
}
