package endpoint

import (
	"slices"
	"testing"

	"weir/internal/catalog"
)

// render is the text of the first statement of src with CURSORs stubbed, "" and the fault if it cannot be read.
func render(src string, postgres bool) (*text, *statement, error) {
	s, err := newSource(src, 1, true, postgres)
	if err != nil {
		return nil, nil, err
	}
	list := s.statements()
	if len(list) == 0 {
		return nil, nil, nil
	}
	c := &compiler{postgres: postgres, typing: untold(), def: &catalog.EndpointDef{SQL: &catalog.SQLDef{}}, out: &catalog.SQLCompiled{}}
	q := list[0]
	var w text
	c.copyCode(&w, s, q.lo, q.hi, c.stubs(q))
	c.infer(q)
	q.quotedNames()
	return &w, q, nil
}

func TestStatement_BindsCommentsAndCursors(t *testing.T) {
	f := func(src, postgres, sqlite string) {
		t.Helper()
		for want, pg := range map[string]bool{postgres: true, sqlite: false} {
			w, _, err := render(src, pg)
			if err != nil {
				t.Errorf("%s: %v", src, err)
			} else if string(w.sql) != want {
				t.Errorf("%s: %s, want %s", src, w.sql, want)
			}
		}
	}
	f("SELECT :a, ':a', x::text -- :b\nFROM t WHERE y = :b AND z = :a", "SELECT $1, ':a', x::text  \nFROM t WHERE y = $2 AND z = $1", "SELECT ?1, ':a', x::text  \nFROM t WHERE y = ?2 AND z = ?1")
	f("SELECT a, CURSOR(SELECT :x FROM u) AS b FROM t; SELECT 2", "SELECT a, NULL::json AS b FROM t", "SELECT a, NULL AS b FROM t")
	f("SELECT cursor FROM t", "SELECT cursor FROM t", "SELECT cursor FROM t")
}

func TestStatement_Arms(t *testing.T) {
	f := func(src string, arms int, bounded bool, verb string) {
		t.Helper()
		_, q, err := render(src, true)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		if len(q.arms) != arms || q.bounded != bounded || q.verb != verb {
			t.Errorf("%s: %d arms, bounded %v, %s", src, len(q.arms), q.bounded, q.verb)
		}
	}
	f("SELECT a FROM t", 1, false, "SELECT")
	f("SELECT DISTINCT ON (a, b) a IS DISTINCT FROM b, extract(year FROM c) FROM t ORDER BY a LIMIT 3", 1, true, "SELECT")
	f("SELECT a FROM t UNION ALL SELECT b FROM u", 2, false, "SELECT")
	f("WITH x (a) AS MATERIALIZED (SELECT 1 LIMIT 1), y AS (SELECT 2) SELECT a FROM x, y", 1, false, "SELECT")
	f("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", 0, false, "INSERT")
	f("(SELECT 1) UNION (SELECT 2)", 0, false, "SELECT")
	f("SELECT t.\"limit\", t.offset FROM t", 1, false, "SELECT")
}

func FuzzStatement(f *testing.F) {
	for _, s := range []string{
		"SELECT a, CURSOR(SELECT :x FROM u) AS b FROM t WHERE x IN (:a, :b) AND y BETWEEN :c AND :d LIMIT :n", "INSERT INTO t (a, b) VALUES (:a, :b), (1, :c) RETURNING a AS \":x\"",
		"WITH x AS (SELECT 1) SELECT", "CURSOR(SELECT", "((", "SELECT ;;", ") (", "a.b.c.", "INSERT INTO", "WITH", "UPDATE t SET a = :a",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, postgres := range []bool{true, false} {
			w, _, err := render(src, postgres)
			if err != nil || w == nil {
				continue
			}
			for i := range w.sql {
				if at := w.origin(i); at < 0 || at > len(src) {
					t.Fatalf("%q: byte %d comes from %d", src, i, at)
				}
			}
			for i, n := range w.params {
				if n < 0 || slices.Index(w.params, n) != i {
					t.Fatalf("%q: parameters %v", src, w.params)
				}
			}
		}
	})
}
