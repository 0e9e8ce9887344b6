package ords

import (
	"testing"

	"weir/internal/record"
)

// Whatever q holds, it is read or refused as a bad request, within its bounds.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{
		`{"deptno":20}`, `{"sal":{"$gt":2000}}`, `{"ename":{"$like":"S%"}}`, `{"sal":{"$between":[1000,null]}}`,
		`{"$or":[{"job":{"$eq":"CLERK"}},{"deptno":10}],"$orderby":{"sal":"DESC"}}`, `{"hiredate":{"$gt":{"$date":"1982-01-01T00:00:00Z"}}}`,
		`{"deptno":[{"$gt":1},{"$or":[{"$lt":5},{"$null":null}]}]}`, `{"$and":[`, `{"deptno":{"$in":[1,2`, `[`, ``, `{"a":1}{"b"`, `{"$orderby":{"sal":-1`,
	} {
		f.Add(s)
	}
	types := map[string]record.Type{
		"deptno": record.TypeInteger, "sal": record.TypeDecimal, "ename": record.TypeString, "job": untyped, "hiredate": record.TypeDateTime,
		"day": record.TypeDate, "active": record.TypeBoolean, "score": record.TypeFloat,
	}
	const most = 50
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			return
		}
		out, err := parseFilter(text, most, func(name string) (filterColumn, bool) {
			typ, ok := types[name]
			return filterColumn{name, typ}, ok
		})
		if err != nil {
			if e := record.AsError(err); e.Kind != record.Invalid || e.Field != "q" || e.Msg == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		terms := len(out.sort)
		out.where.Walk("", func(_ string, e *record.Expr) bool {
			switch e.Op {
			case record.Field:
				if _, ok := types[e.Path]; !ok {
					t.Fatalf("%q names the column %q", text, e.Path)
				}
			case record.Const, record.And, record.Or, record.Not:
			default:
				terms++
			}
			return true
		})
		if terms > 2*most { // what is not equal is also not null
			t.Fatalf("%q has %d terms", text, terms)
		}
	})
}

func TestFailures_EveryKindHasAStatus(t *testing.T) {
	for k := range record.NumKinds {
		if f := failures[k]; f.status < 400 || f.code == "" {
			t.Errorf("%s: %+v", k, f)
		}
	}
}

func TestTags(t *testing.T) {
	f := func(header string, want ...string) {
		t.Helper()
		got := appendTags(nil, header)
		if len(got) != len(want) {
			t.Fatalf("%s: %q", header, got)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%s: %q", header, got)
			}
		}
	}
	f("")
	f(" , ")
	f("*", "*")
	f(`"a"`, "a")
	f(`"a", W/"b,c" ,"d"`, "a", "b,c", "d")
	f(`plain, "x"`, "plain", "x")
	f(`"open`, "open")
	f(`W/`)
}

func TestResolver(t *testing.T) {
	r := &resolver{dir: "https://h.test/ords/hr/v1/emp/"}
	f := func(ref, want string) {
		t.Helper()
		if got := r.resolve(ref); got != want {
			t.Fatalf("%q is %q, not %q", ref, got, want)
		}
	}
	f("./7369", "https://h.test/ords/hr/v1/emp/7369")
	f("7369", "https://h.test/ords/hr/v1/emp/7369")
	f("a/b?c=d#e", "https://h.test/ords/hr/v1/emp/a/b?c=d#e")
	f("../dept/10", "https://h.test/ords/hr/v1/dept/10")
	f("./a/../b", "https://h.test/ords/hr/v1/emp/b")
	f("..", "https://h.test/ords/hr/v1/")
	f("/x", "https://h.test/x")
	f("//other.test/x", "https://other.test/x")
	f("http://other.test/x", "http://other.test/x")
	f("mailto:a@b", "mailto:a@b")
	f("?x=1", "https://h.test/ords/hr/v1/emp/?x=1")
	f("%zz/..", "%zz/..")
}
