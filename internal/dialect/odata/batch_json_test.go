package odata

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// Every file of testdata/batch_json is one body for one rule.
func TestReadJSONBatch(t *testing.T) {
	paths, err := filepath.Glob("testdata/batch_json/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := printEnvelope(readJSONBatch(archive.Files[0].Data, limits(), ""))
			if flag.Lookup("update").Value.String() == "true" {
				archive.Files = append(archive.Files[:1], txtar.File{Name: "envelope", Data: []byte(got)})
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadJSONBatch_Bounds(t *testing.T) {
	o := limits()
	o.MaxParts = 1
	_, err := readJSONBatch([]byte(`{"requests":[{"id":"1","method":"get","url":"S"},{"id":"2","method":"get","url":"S"}]}`), o, "")
	if record.KindOf(err) != record.TooLarge || !strings.Contains(err.Error(), "odata.batch.max_parts") {
		t.Error(err)
	}
	env, err := readJSONBatch([]byte(`{"requests":[{"id":"1","method":"get","url":"S"},{"id":"2","method":"get","url":"S","headers":{"prefer":"x"}}]}`), limits(), "return=minimal")
	if err != nil || env.items[0].Header.Get("Prefer") != "return=minimal" || env.items[1].Header.Get("Prefer") != "x" {
		t.Error(env, err)
	}
}

func TestReadJSONBatch_BodiesAreViews(t *testing.T) {
	body := []byte(`{"requests":[{"id":"1","method":"post","url":"S","body":{"n":7}}, {"id":"2","method":"post","url":"S","body":{"n":8}} ]}`)
	env, err := readJSONBatch(body, limits(), "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range body {
		if body[i] == '7' || body[i] == '8' {
			body[i]++
		}
	}
	if string(env.items[0].Body) != `{"n":8}` || string(env.items[1].Body) != `{"n":9}` {
		t.Errorf("%s %s", env.items[0].Body, env.items[1].Body)
	}
}

func TestCondition(t *testing.T) {
	parts := []dialect.Part{{}, {}, {}}
	parts[0].Answer = wire.Answer{Status: 201, Body: []byte(`{"ID":"O'Neil","N":5,"In":{"Deep":true},"Nil":null}`)}
	parts[1].Answer = wire.Answer{Status: 204}
	parts[2].Answer = wire.Answer{Status: 404}
	r := &jsonBatchReader{byID: map[string]int{"0": 0, "1": 1, "x": 2}, groups: map[string]int{"g": 1}}
	b := &batch{}
	for _, c := range []struct{ text, want string }{
		{"$0/$succeeded", "true"},
		{"$x/$succeeded", "false"},
		{"not $x/$succeeded", "true"},
		{"$g/$succeeded and $0/$succeeded", "true"},
		{"$g/$succeeded and $x/$succeeded or true", "true"},
		{"$g/$succeeded and ( $x/$succeeded or false )", "false"},
		{"not ($x/$succeeded eq false)", "false"},
		{"$x/$succeeded ne $0/$succeeded", "true"},
		{"$0/ID eq 'O''Neil'", "true"},
		{"$0/ID ne 'O''Neil'", "false"},
		{"$0/N eq 5 and $0/In/Deep", "true"},
		{"$0/N eq 5.0", "true"},
		{"$0/Nil eq null and $0/Nothing eq null and $1/N eq null", "true"},
		{"$0/N", "if: the condition is neither true nor false"},
		{"$0/N and true", "if: the condition compares what is neither true nor false"},
		{"", `if: the condition cannot be read at ""`},
		{"true true", `if: the condition cannot be read at "true"`},
		{"(true", `if: the condition cannot be read at ""`},
		{"'x", `if: the condition cannot be read at "'x"`},
		{"$0/N lt 5", `if: the condition cannot be read at "lt 5"`},
		{"nottrue", `if: the condition cannot be read at "nottrue"`},
		{strings.Repeat("(", 5000), "if: the condition has more than 4096 bytes"},
		{strings.Repeat("(", 4000), `if: the condition cannot be read at ""`},
		{"$2/$succeeded", "if: $2 is not among the requests that dependsOn names"},
	} {
		got := func() string {
			cond, err := parseIf(c.text)
			if err == nil {
				err = cond.bind(r, &dialect.Item{After: []int{0, 1, 2}})
			}
			var holds bool
			if err == nil {
				holds, err = cond.holds(b, parts)
			}
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(holds)
		}()
		if got != c.want {
			t.Errorf("%.40s: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestJSONWriter(t *testing.T) {
	w := &jsonWriter{}
	answer := func(status int, kind, body string) *wire.Answer {
		a := &wire.Answer{Status: status, Body: []byte(body)}
		if kind != "" {
			a.Header.Add("Content-Type", kind)
		}
		return a
	}
	w.part(answer(201, "application/json;odata.metadata=minimal", `{"a":1}`), "1", "g\"1")
	w.part(answer(204, "", ""), "2", "")
	w.part(answer(200, "text/plain;charset=utf-8", `say "5"`), "", "")
	w.part(answer(200, "application/octet-stream", "\xff\xfe?"), "4", "")
	want := `{"id":"1","atomicityGroup":"g\"1","status":201,"headers":{"content-type":"application/json;odata.metadata=minimal"},"body":{"a":1}},` +
		`{"id":"2","status":204},{"status":200,"headers":{"content-type":"text/plain;charset=utf-8"},"body":"say \"5\""},` +
		`{"id":"4","status":200,"headers":{"content-type":"application/octet-stream"},"body":"__4_"}`
	if diff := cmp.Diff(want, string(w.dst)); diff != "" {
		t.Error(diff)
	}
}

func FuzzReadJSONBatch(f *testing.F) {
	paths, _ := filepath.Glob("testdata/batch_json/*.txtar")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 1<<16 {
			return
		}
		o := limits()
		o.MaxParts = 50
		env, err := readJSONBatch(body, o, "")
		if err != nil {
			if k := record.KindOf(err); k != record.Invalid && k != record.TooLarge {
				t.Fatalf("%v: %v", k, err)
			}
			return
		}
		w := &jsonWriter{dst: []byte("[")}
		for _, p := range env.parts {
			for i := p.first; i < p.first+p.n; i++ {
				it := &env.items[i]
				if it.ID == "" || it.URL == "" || it.Method == "" || (p.n > 1) != (it.Group != 0) {
					t.Fatalf("item %+v", it)
				}
				for _, a := range it.After {
					if a >= p.first {
						t.Fatalf("item %d of part %+v comes after %d", i, p, a)
					}
				}
				w.part(&wire.Answer{Status: 200, Header: it.Header, Body: []byte(`{"a":[1]}`)}, it.ID, p.name)
			}
		}
		if w.dst = append(w.dst, ']'); len(env.items) > 0 && !json.Valid(w.dst) {
			t.Fatalf("%s", w.dst)
		}
	})
}
