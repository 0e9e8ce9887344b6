package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir/internal/catalog"
	"weir/internal/engine"
	"weir/internal/engine/enginetest"
	"weir/internal/record"
	"weir/internal/remote/remotetest"
	"weir/internal/store"
	"weir/internal/store/postgres"
	"weir/internal/store/sqlite"
	"weir/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var clock = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// openers are the stores that tests run on.
func openers(t testing.TB) map[string]func(testing.TB) store.Store {
	list := map[string]func(testing.TB) store.Store{
		"sqlite": func(t testing.TB) store.Store {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "test.db")})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
	if os.Getenv(storetest.PostgresVariable) != "" || os.Getenv("CI") == "true" || os.Getenv("WEIR_TEST_REQUIRE_POSTGRES") == "1" {
		list["postgres"] = func(t testing.TB) store.Store {
			s, err := postgres.Open(t.Context(), postgres.Options{URL: storetest.Postgres(t), Max: 6})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	return list
}

// bench is an engine on a store with the test tables.
type bench struct {
	t    testing.TB
	snap *catalog.Snapshot
	s    store.Store
	e    *engine.Engine
	x    engine.Executor
}

func newBench(t testing.TB, s store.Store, opt engine.Options) *bench {
	t.Helper()
	b := &bench{t: t, snap: enginetest.Snapshot(), s: s}
	plan, err := s.Schema().Plan(t.Context(), b.snap)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Schema().Apply(t.Context(), plan.Additive); err != nil {
		t.Fatal(err)
	}
	if opt.Now == nil {
		opt.Now = func() time.Time { return clock }
	}
	if opt.NewID == nil {
		var n atomic.Int64
		opt.NewID = func() string { return fmt.Sprintf("%032x", 0xf000000+n.Add(1)) }
	}
	if opt.Hash == nil {
		opt.Hash = func(s string) (string, error) { return "hash of " + s, nil }
	}
	if b.e, err = engine.New(s, opt); err != nil {
		t.Fatal(err)
	}
	b.x = b.e
	t.Cleanup(func() {
		b.e.Close()
		s.Close()
	})
	return b
}

// each runs f on every store: directly, through the loopback, and from behind a socket as a hub does.
func each(t *testing.T, opt engine.Options, f func(t *testing.T, b *bench)) {
	for name, open := range openers(t) {
		ways := []string{"direct", "loopback", "socket"}
		if name == "postgres" {
			ways = ways[2:] // a database of its own takes a second to make
		}
		for _, way := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				b := newBench(t, open(t), opt)
				switch way {
				case "loopback":
					b.x = engine.Loopback(b.e)
				case "socket":
					b.split()
				}
				f(t, b)
			})
		}
	}
}

// split puts the engine behind a socket.
func (b *bench) split() { b.x, b.snap = remotetest.Split(b.t, b.e, b.snap) }

func id(n int) string { return fmt.Sprintf("%032x", n) }

func text(s string) record.Value { return record.TextValue(s) }

// set is assignments: field, value, field, value …
func set(pairs ...any) []record.Assign {
	var list []record.Assign
	for i := 0; i < len(pairs); i += 2 {
		a := record.Assign{Field: pairs[i].(string)}
		switch v := pairs[i+1].(type) {
		case string:
			a.Value = text(v)
		case int:
			a.Value = record.IntValue(int64(v))
		case record.Value:
			a.Value = v
		}
		list = append(list, a)
	}
	return list
}

func (b *bench) do(actor record.Actor, ops ...record.Op) []record.Outcome {
	return b.unit(record.Unit{Ops: ops, Actors: []record.Actor{actor}})
}

func (b *bench) unit(u record.Unit) []record.Outcome {
	b.t.Helper()
	if u.Actors == nil {
		u.Actors = []record.Actor{enginetest.Admin}
	}
	return b.x.Execute(context.Background(), b.snap, &u)
}

// must runs ops as admin and fails the test if one fails.
func (b *bench) must(ops ...record.Op) []record.Outcome {
	b.t.Helper()
	out := b.do(enginetest.Admin, ops...)
	for i, o := range out {
		if o.Err != nil {
			b.t.Fatalf("op %d: %v: %v", i, o.Err.Kind, o.Err)
		}
	}
	return out
}

func insert(table, key string, pairs ...any) record.Op {
	s := set(pairs...)
	if key != "" {
		s = append(s, record.Assign{Field: "sys_id", Value: text(key)})
	}
	return record.Op{Verb: record.Insert, Table: table, Set: s}
}

func update(table, key string, pairs ...any) record.Op {
	return record.Op{Verb: record.Update, Table: table, Key: []record.Value{text(key)}, Set: set(pairs...)}
}

func del(table, key string) record.Op {
	return record.Op{Verb: record.Delete, Table: table, Key: []record.Value{text(key)}}
}

func get(table, key string, fields ...string) record.Op {
	return record.Op{Verb: record.Get, Table: table, Key: []record.Value{text(key)}, Return: fields}
}

func list(table string, where *record.Expr, fields ...string) record.Op {
	return record.Op{Verb: record.List, Table: table, Return: fields, Query: &record.Query{Where: where, Limit: -1, Sort: []record.Sort{{Path: "sys_id"}}}}
}

// show is an outcome in one line.
func show(o record.Outcome) string {
	if o.Err != nil {
		s := o.Err.Kind.String()
		if o.Err.Field != "" {
			s += " " + o.Err.Field
		}
		if o.Unserviced {
			s += " unserviced"
		}
		return s
	}
	var b strings.Builder
	b.WriteString("ok")
	if o.Inserted {
		b.WriteString(" inserted")
	} else if o.Changed {
		b.WriteString(" changed")
	}
	if o.Rows != nil {
		for i := range o.Rows.Len() {
			if i > 0 {
				b.WriteString(" /")
			}
			for _, v := range o.Rows.At(i) {
				b.WriteString(" ")
				if v.IsNull() {
					b.WriteString("-")
				}
				b.WriteString(v.Text())
			}
		}
	}
	return b.String()
}

func shows(out []record.Outcome) string {
	lines := make([]string, len(out))
	for i, o := range out {
		lines[i] = show(o)
	}
	return strings.Join(lines, "\n")
}

func want(t *testing.T, out []record.Outcome, lines ...string) {
	t.Helper()
	if got, want := shows(out), strings.Join(lines, "\n"); got != want {
		t.Fatalf("outcomes:\n%s\nwant:\n%s\n%v", got, want, errs(out))
	}
}

func errs(out []record.Outcome) string {
	var s []string
	for i, o := range out {
		if o.Err != nil {
			s = append(s, fmt.Sprintf("%d: %v", i, o.Err))
		}
	}
	return strings.Join(s, "\n")
}
