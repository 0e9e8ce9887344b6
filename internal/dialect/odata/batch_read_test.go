package odata

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	_ "weir/internal/dialect/dialecttest" // for -update
	"weir/internal/record"
	"weir/internal/wire"
)

func limits() *BatchOptions {
	o := &BatchOptions{}
	o.defaults()
	return o
}

// printEnvelope is a batch as text that people can read.
func printEnvelope(env *envelope, err error) string {
	if err != nil {
		return fmt.Sprintf("%s error: %v\n", record.KindOf(err), record.AsError(err).Msg)
	}
	var b strings.Builder
	for n, p := range env.parts {
		kind := "operation"
		if p.changeset {
			kind = fmt.Sprintf("changeset of %d", p.n)
		}
		fmt.Fprintf(&b, "part %d: %s", n+1, kind)
		if p.name != "" {
			fmt.Fprintf(&b, " %q", p.name)
		}
		b.WriteByte('\n')
		for i := p.first; i < p.first+p.n; i++ {
			it := &env.items[i]
			fmt.Fprintf(&b, "  %s [%s]", it.Method, it.URL)
			if it.ID != "" {
				where := "of the part"
				if env.inner[i] {
					where = "of the request"
				}
				fmt.Fprintf(&b, " Content-ID %q %s", it.ID, where)
			}
			if it.Group != 0 {
				fmt.Fprintf(&b, " in group %d", it.Group)
			}
			if len(it.After) > 0 {
				fmt.Fprintf(&b, " after %v", it.After)
			}
			b.WriteByte('\n')
			for _, f := range it.Header {
				fmt.Fprintf(&b, "    %s: %s\n", f.Name, f.Value)
			}
			if it.Body != nil {
				fmt.Fprintf(&b, "    body %q\n", bytes.ReplaceAll(it.Body, []byte("\r\n"), []byte("\n")))
			}
			if it.Err != nil {
				fmt.Fprintf(&b, "    error: %v\n", it.Err)
			}
		}
	}
	return b.String()
}

// Every file of testdata/batch_read is one body, in the form of one client or for one rule. Its comment names the boundary. The line ends
// do not matter: each body is read with LF, with CRLF and with a mixture.
func TestReadMultipart(t *testing.T) {
	paths, err := filepath.Glob("testdata/batch_read/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, rest, ok := strings.Cut(string(archive.Comment), "Content-Type: ")
			if !ok {
				t.Fatal("no Content-Type in the comment")
			}
			kind, _, _ := strings.Cut(rest, "\n")
			_, boundary := mediaType(kind)
			body := bytes.TrimSuffix(archive.Files[0].Data, []byte("\n"))
			for _, name := range []string{"LF", "CRLF", "mixed"} {
				ends := lineEnds[name]
				got := printEnvelope(readMultipart(ends(body), boundary, limits(), ""))
				if name != "LF" {
					got = bytesAt.ReplaceAllString(got, "byte N")
				}
				if flag.Lookup("update").Value.String() == "true" && name == "LF" {
					archive.Files = append(archive.Files[:1], txtar.File{Name: "envelope", Data: []byte(got)})
					if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want := string(archive.Files[1].Data)
				if name != "LF" {
					want = bytesAt.ReplaceAllString(want, "byte N")
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// lineEnds are the ways to end lines.
var lineEnds = map[string]func([]byte) []byte{
	"LF":   func(b []byte) []byte { return b },
	"CRLF": func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n")) },
	"mixed": func(b []byte) []byte {
		var out []byte
		n := 0
		for _, c := range b {
			if c == '\n' {
				if n++; n%2 == 0 {
					out = append(out, '\r')
				}
			}
			out = append(out, c)
		}
		return out
	},
}

var bytesAt = regexp.MustCompile(`byte \d+`)

func TestMediaType(t *testing.T) {
	for _, c := range []struct{ given, media, boundary string }{
		{"multipart/mixed; boundary=batch_1", "multipart/mixed", "batch_1"},
		{"multipart/mixed;boundary=batch_1;charset=utf-8", "multipart/mixed", "batch_1"},
		{`Multipart/Mixed; charset=utf-8 ; Boundary="a b;c" ; x=y`, "Multipart/Mixed", "a b;c"},
		{`multipart/mixed; boundary="a\"b"`, "multipart/mixed", `a"b`},
		{"multipart/mixed; boundary=batch(36522ad7-fc75)", "multipart/mixed", "batch(36522ad7-fc75)"},
		{"multipart/mixed; boundary= a=b ", "multipart/mixed", "a=b"},
		{`multipart/mixed; boundary="a`, "multipart/mixed", ""},
		{"multipart/mixed", "multipart/mixed", ""},
		{"application/http;msgtype=request", "application/http", ""},
		{"", "", ""},
	} {
		if media, boundary := mediaType(c.given); media != c.media || boundary != c.boundary {
			t.Errorf("%q: %q %q", c.given, media, boundary)
		}
	}
}

func postPart(n int) string {
	return fmt.Sprintf("--b\nContent-Type: application/http\nContent-Length: 7\n\nPOST S%d HTTP/1.1\nAccept: application/json\nContent-Type: application/json\nContent-Length: 3\n\n{\"n\":%d}\n", n, n)
}

func TestReadMultipart_Bounds(t *testing.T) {
	three := []byte(postPart(1) + postPart(2) + postPart(3) + "--b--")
	for name, c := range map[string]struct {
		turn func(*BatchOptions)
		body []byte
		says string
	}{
		"parts":      {func(o *BatchOptions) { o.MaxParts = 2 }, three, "more than 2 parts; see odata.batch.max_parts"},
		"operations": {func(o *BatchOptions) { o.MaxParts = 2 }, []byte("--b\nContent-Type: multipart/mixed; boundary=c\n\n" + strings.ReplaceAll(string(three), "--b", "--c") + "\n--b--"), "more than 2 operations; see odata.batch.max_parts"},
		"changesets": {func(o *BatchOptions) { o.MaxParts = 2 }, bytes.Repeat([]byte("--b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n"), 4), "more than 2 parts; see odata.batch.max_parts"},
		"header":     {func(o *BatchOptions) { o.MaxHeader = 60 }, three, "odata.batch.max_header"},
		"mime":       {func(o *BatchOptions) { o.MaxHeader = 60 }, []byte("--b\nContent-Type: application/http\nX: " + strings.Repeat("x", 99) + "\n\nGET S\n--b--"), "odata.batch.max_header"},
		"folded":     {func(*BatchOptions) {}, []byte("--b\nContent-Type: application/http\nX: x\n" + strings.Repeat(" x\n", 100_000) + "\nGET S\n--b--"), "odata.batch.max_header"},
	} {
		o := limits()
		c.turn(o)
		_, err := readMultipart(c.body, "b", o, "")
		if record.KindOf(err) != record.TooLarge || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if env, err := readMultipart(three, "b", limits(), "return=minimal"); err != nil || len(env.items) != 3 || env.items[2].Header.Get("Prefer") != "return=minimal" {
		t.Errorf("%+v %v", env, err)
	}
}

// Reading copies nothing: its cost does not grow with the bodies, and what it allocates per operation is its place in the lists.
func TestReadMultipart_BodiesAreViews(t *testing.T) {
	var text bytes.Buffer
	for n := range 1000 {
		text.WriteString(postPart(n))
	}
	text.WriteString("--b--\n")
	body := text.Bytes()
	if n := testing.AllocsPerRun(5, func() { readMultipart(body, "b", limits(), "") }); n > 20 {
		t.Errorf("%.0f allocations for 1,000 operations", n)
	}
	env, err := readMultipart(body, "b", limits(), "")
	if err != nil {
		t.Fatal(err)
	}
	body[bytes.Index(body, []byte(`{"n":7}`))+5] = '8'
	if string(env.items[7].Body) != `{"n":8}` {
		t.Errorf("item 7 is a copy: %s", env.items[7].Body)
	}
}

func FuzzReadMultipart(f *testing.F) {
	paths, _ := filepath.Glob("testdata/batch_read/*.txtar")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(archive.Comment), "Content-Type: ")
		kind, _, _ := strings.Cut(rest, "\n")
		for _, ends := range lineEnds {
			f.Add(kind, ends(archive.Files[0].Data))
		}
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		_, boundary := mediaType(kind)
		if boundary == "" {
			return
		}
		o := limits()
		o.MaxParts = 50
		env, err := readMultipart(body, boundary, o, "")
		if err != nil {
			if k := record.KindOf(err); k != record.Invalid && k != record.TooLarge {
				t.Fatalf("%v: %v", k, err)
			}
			return
		}
		n := 0
		for _, p := range env.parts {
			if p.first != n || !p.changeset && p.n != 1 {
				t.Fatalf("part %+v begins where %d items are", p, n)
			}
			n += p.n
		}
		if n != len(env.items) || n != len(env.inner) || n > 50 {
			t.Fatalf("%d items in parts, %d in all", n, len(env.items))
		}
		for i := range env.items {
			it := &env.items[i]
			if it.Method == "" || it.URL == "" || len(it.Body) > len(body) || strings.ContainsAny(it.ID+it.URL, "\r\n") {
				t.Fatalf("item %+v", it)
			}
		}
		again(t, env)
	})
}

// again reads what is written of an envelope: the answer has the same parts, in the same order, with the same bodies.
func again(t *testing.T, env *envelope) {
	w := &multipartWriter{outer: "3f0cdd", inner: "3f0cdd-1"}
	answer := func(i int) *wire.Answer {
		a := &wire.Answer{Status: 200 + i%5, Body: env.items[i].Body}
		a.Header.Add("Content-Type", "application/json")
		return a
	}
	for _, p := range env.parts {
		if p.changeset {
			w.beginChangeset()
		}
		for i := p.first; i < p.first+p.n; i++ {
			w.part(answer(i), env.items[i].ID, env.inner[i])
		}
		if p.changeset {
			w.endChangeset()
		}
	}
	w.end()
	if bytes.Contains(w.dst, []byte("--3f0cdd")) && strings.Count(string(w.dst), "--3f0cdd") != delimiters(env) {
		return // a body holds the boundary, which in earnest is random
	}
	var got [][]byte
	parts := splitAnswer(t, w.dst, "3f0cdd")
	for _, part := range parts {
		if _, boundary := mediaType(part.header.Get("Content-Type")); boundary != "" {
			for _, inner := range splitAnswer(t, part.content, boundary) {
				got = append(got, inner.content)
			}
		} else {
			got = append(got, part.content)
		}
	}
	if len(parts) != len(env.parts) || len(got) != len(env.items) {
		t.Fatalf("%d parts and %d answers of %d and %d:\n%s", len(parts), len(got), len(env.parts), len(env.items), w.dst)
	}
	for i := range got {
		head, body, ok := bytes.Cut(got[i], []byte("\r\n\r\n"))
		if !ok || !bytes.Equal(body, env.items[i].Body) || !bytes.HasPrefix(head, fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", 200+i%5, reason(200+i%5))) {
			t.Fatalf("answer %d is\n%s\nnot %q", i, got[i], env.items[i].Body)
		}
	}
}

func delimiters(env *envelope) int {
	n := len(env.parts) + 1
	for _, p := range env.parts {
		if p.changeset {
			n += p.n + 1
		}
	}
	return n
}

type answerPart struct {
	header  wire.Header
	content []byte
}

// splitAnswer takes a multipart answer apart by its lengths, and checks that boundaries stand where those say.
func splitAnswer(t *testing.T, b []byte, boundary string) (list []answerPart) {
	t.Helper()
	r := &multipartReader{body: b, limits: limits()}
	for {
		rest, ok := bytes.CutPrefix(b, []byte("--"+boundary))
		if !ok {
			t.Fatalf("no boundary at %.100q", b)
		}
		if rest, ok = bytes.CutPrefix(rest, []byte("\r\n")); !ok {
			if s := string(rest); s != "--" && s != "--\r\n" {
				t.Fatalf("the end is %q", rest)
			}
			return list
		}
		var p answerPart
		for {
			f, after, more, err := r.field(rest)
			if err != nil {
				t.Fatal(err)
			}
			if rest = after; !more {
				break
			}
			p.header = append(p.header, f)
		}
		var n int
		if _, err := fmt.Sscan(p.header.Get("Content-Length"), &n); err != nil || n > len(rest) {
			t.Fatalf("length %v of %d: %v", p.header, len(rest), err)
		}
		p.content = rest[:n]
		list = append(list, p)
		if b, ok = bytes.CutPrefix(rest[n:], []byte("\r\n")); !ok {
			t.Fatalf("no line break after the part: %.100q", rest[n:])
		}
	}
}

func TestMultipartWriter_Layout(t *testing.T) {
	w := &multipartWriter{outer: "Z", inner: "Y"}
	created := &wire.Answer{Status: 201, Body: []byte(`{"d":{"ProductID":"X"}}`)}
	created.Header.Add("DataServiceVersion", "2.0")
	created.Header.Add("content-type", "application/json;charset=utf-8")
	created.Header.Add("Location", "http://host/S('X\r\nEvil: 1')")
	none := &wire.Answer{Status: 204}
	none.Header.Add("DataServiceVersion", "2.0")
	w.beginChangeset()
	w.part(created, "id-1796058342597-9", true)
	w.part(none, "1", false)
	w.endChangeset()
	w.part(&wire.Answer{Status: 299}, "", false)
	w.beginChangeset()
	w.endChangeset()
	w.end()
	want := strings.ReplaceAll(`--Z
Content-Type: multipart/mixed; boundary=Y
Content-Length: 525

--Y
Content-Type: application/http
Content-Length: 209
content-transfer-encoding: binary
Content-ID: id-1796058342597-9

HTTP/1.1 201 Created
Content-Type: application/json;charset=utf-8
Content-Length: 23
DataServiceVersion: 2.0
Location: http://host/S('X  Evil: 1')
Content-ID: id-1796058342597-9

{"d":{"ProductID":"X"}}
--Y
Content-Type: application/http
Content-Length: 71
content-transfer-encoding: binary
Content-ID: 1

HTTP/1.1 204 No Content
Content-Length: 0
DataServiceVersion: 2.0


--Y--
--Z
Content-Type: application/http
Content-Length: 43
content-transfer-encoding: binary

HTTP/1.1 299 Unknown
Content-Length: 0


--Z
Content-Type: multipart/mixed; boundary=Y
Content-Length: 5

--Y--
--Z--
`, "\n", "\r\n")
	if diff := cmp.Diff(want, string(w.dst)); diff != "" {
		t.Error(diff)
	}
	splitAnswer(t, w.dst, "Z")
	if w.contentType() != "multipart/mixed; boundary=Z" {
		t.Error(w.contentType())
	}
}

func TestRandomBoundary(t *testing.T) {
	a, b := randomBoundary(), randomBoundary()
	if a == b || len(a) != 32 || strings.Trim(a, "0123456789abcdef") != "" {
		t.Errorf("%s %s", a, b)
	}
}
