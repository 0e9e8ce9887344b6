package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
)

// Engine scripts are units and what must become of them, as text: testdata/scripts/*.txtar. A file is a list of sections.
//
//	-- unit --           ops, one on a line; a first line "ordered" or "ordered stop" says how they run
//	-- outcomes --       one line for each op of the unit before
//	-- state TABLE --    what a list of the fields in its first line returns to the admin
//
// An op is a verb, a table, a key (get, update, delete), assignments field=value and clauses: match=f, group=n, as=name,
// token=t, if=op (succeeded), unless=op, has=field:value, return=f,g. A key or value 7 of a reference or sys_id is short
// for 32 digits; $2.f is a field of the outcome of op 2. Each script runs fused and one by one, on all stores, through a
// socket.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, fuse := range []bool{true, false} {
		t.Run(map[bool]string{true: "fused", false: "apart"}[fuse], func(t *testing.T) {
			for name, open := range openers(t) {
				t.Run(name, func(t *testing.T) {
					b := newBench(t, open(t), engine.Options{Fuse: &fuse})
					b.split()
					for _, file := range files {
						t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { b.script(t, file) })
					}
				})
			}
		})
	}
}

func (b *bench) script(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b.wipe(t)
	var out []record.Outcome
	for _, section := range txtar.Parse(data).Files {
		body := strings.TrimSpace(string(section.Data))
		verb, table, _ := strings.Cut(section.Name, " ")
		got := ""
		switch verb {
		case "unit":
			out = b.unit(b.parse(t, body))
			continue
		case "outcomes":
			got = shows(out)
		case "state":
			fields, _, _ := strings.Cut(body, "\n")
			rows := b.must(list(table, nil, strings.Fields(fields)...))[0].Rows
			lines := []string{fields}
			for i := range rows.Len() {
				var values []string
				for _, v := range rows.At(i) {
					s := v.Text()
					if len(s) == 32 {
						s = strings.TrimLeft(s, "0")
					}
					if v.IsNull() {
						s = "-"
					}
					values = append(values, s)
				}
				lines = append(lines, strings.Join(values, " "))
			}
			got = strings.Join(lines, "\n")
		default:
			t.Fatalf("%s: unknown section %q", file, section.Name)
		}
		if got != body {
			t.Errorf("%s: %s:\n%s\nwant:\n%s\n%s", file, section.Name, got, body, errs(out))
		}
	}
}

var actorNames = map[string]int{"admin": 0, "agent": 1, "beth": 2, "boss": 3}

func (b *bench) parse(t *testing.T, body string) record.Unit {
	u := record.Unit{Actors: []record.Actor{enginetest.Admin, enginetest.Agent, enginetest.Beth, enginetest.Boss}}
	for _, l := range strings.Split(body, "\n") {
		words := strings.Fields(l)
		switch {
		case len(words) == 0 || strings.HasPrefix(l, "#"):
		case words[0] == "ordered":
			u.Ordered, u.StopOnError = true, len(words) > 1 && words[1] == "stop"
		default:
			u.Ops = append(u.Ops, b.parseOp(t, words))
		}
	}
	return u
}

func (b *bench) parseOp(t *testing.T, words []string) record.Op {
	verbs := map[string]record.Verb{
		"get": record.Get, "list": record.List, "insert": record.Insert, "update": record.Update, "upsert": record.Upsert, "delete": record.Delete,
	}
	verb, ok := verbs[words[0]]
	if !ok {
		t.Fatalf("unknown verb %q", words[0])
	}
	op := record.Op{Verb: verb, Table: words[1]}
	words = words[2:]
	value := func(name, s string) record.Value { return b.parseValue(t, op.Table, name, s) }
	if verb == record.Get || verb == record.Update || verb == record.Delete {
		table, err := b.snap.Table(op.Table)
		if err != nil {
			t.Fatal(err)
		}
		op.Key = []record.Value{value(table.Key[0], words[0])}
		words = words[1:]
	}
	if verb == record.List {
		op.Query = &record.Query{Limit: -1, Sort: []record.Sort{{Path: "sys_id"}}}
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, w := range words {
		name, v, _ := strings.Cut(w, "=")
		switch name {
		case "match":
			op.Match = []string{v}
		case "group":
			op.Group = number(v)
		case "as":
			op.Actor = actorNames[v]
		case "token":
			op.Token = v
		case "if", "unless":
			op.If = append(op.If, record.Condition{Op: number(v), Failed: name == "unless"})
		case "has":
			field, want, _ := strings.Cut(v, ":")
			op.If = append(op.If, record.Condition{Field: field, Values: []record.Value{value(field, want)}})
		case "return":
			op.Return = strings.Split(v, ",")
		default:
			op.Set = append(op.Set, record.Assign{Field: name, Value: value(name, v)})
		}
	}
	return op
}

func (b *bench) parseValue(t *testing.T, table, field, s string) record.Value {
	if ref, ok := strings.CutPrefix(s, "$"); ok {
		n, name, _ := strings.Cut(ref, ".")
		i, err := strconv.Atoi(n)
		if err != nil {
			t.Fatal(err)
		}
		return record.RefTo(i, name)
	}
	tab, err := b.snap.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	f := tab.Field(field)
	if f == nil {
		return text(s)
	}
	if n, err := strconv.Atoi(s); err == nil && (f.Type == record.TypeReference || f.Type == record.TypeGUID) {
		return text(fmt.Sprintf("%032d", n))
	}
	v, err := record.Parse(f.Type, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
