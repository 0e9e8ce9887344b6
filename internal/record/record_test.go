package record

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParse_CanonicalText(t *testing.T) {
	f := func(typ Type, in, want string) {
		t.Helper()
		v, err := Parse(typ, in)
		if err != nil {
			t.Errorf("%s %q: %v", typ, in, err)
		} else if got := v.Text(); got != want {
			t.Errorf("%s %q: %q, want %q", typ, in, got, want)
		}
	}
	f(TypeString, " x ", " x ")
	f(TypeInteger, " 42 ", "42")
	f(TypeInteger, "-9223372036854775808", "-9223372036854775808")
	f(TypeDecimal, "00012.3400", "00012.3400")
	f(TypeFloat, "1e3", "1000")
	f(TypeBoolean, "True", "true")
	f(TypeBoolean, "0", "false")
	f(TypeDateTime, "2026-11-30 17:02:10", "2026-11-30 17:02:10")
	f(TypeDateTime, "2026-11-30T18:02:10.250+01:00", "2026-11-30 17:02:10.25")
	f(TypeDateTime, "2026-11-30", "2026-11-30 00:00:00")
	f(TypeDate, "2026-11-30 17:02:10", "2026-11-30")
	f(TypeDuration, "1970-01-01 00:10:00", "600")
	f(TypeGUID, "abc", "abc")
	for typ := range numTypes {
		f(typ, "", "")
	}
}

func TestParse_RefusesWithInvalid(t *testing.T) {
	f := func(typ Type, in string) {
		t.Helper()
		if v, err := Parse(typ, in); err == nil {
			t.Errorf("%s %q: accepted as %q", typ, in, v.Text())
		} else if KindOf(err) != Invalid {
			t.Errorf("%s %q: kind %v", typ, in, KindOf(err))
		}
	}
	f(TypeInteger, "1.5")
	f(TypeInteger, "9223372036854775808")
	f(TypeDecimal, "1e5")
	f(TypeDecimal, ".")
	f(TypeFloat, "NaN")
	f(TypeFloat, "Inf")
	f(TypeBoolean, "maybe")
	f(TypeDateTime, "2026-02-30 00:00:00")
	f(TypeDate, "2026-11-30x")
	f(TypeDuration, "ten")
}

func TestTime_TextAgreesWithTheStandardLayout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tm := time.UnixMicro(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "s") * 1e6).UTC()
		v := TimeValue(tm)
		if got, want := v.Text(), tm.Format(TimeLayout); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		back, err := Parse(TypeDateTime, v.Text())
		if err != nil || back != v {
			t.Fatalf("%q read back as %v, %v", v.Text(), back, err)
		}
	})
}

func TestRows_AppendOwnsItsTexts(t *testing.T) {
	buf := []byte("abc")
	rows := NewRows([]string{"a", "b"}, []Type{TypeString, TypeInteger})
	for i := range 3 {
		buf[0] = byte('a' + i)
		rows.Append([]Value{TextValue(string(buf)), IntValue(int64(i))})
	}
	var got []string
	for {
		row, ok := rows.Next()
		if !ok {
			break
		}
		got = append(got, row[0].Text()+row[1].Text())
	}
	if d := cmp.Diff([]string{"abc0", "bbc1", "cbc2"}, got); d != "" {
		t.Fatal(d)
	}
}

type slowSource struct {
	left   int
	closed bool
}

func (s *slowSource) Next() ([]Value, bool) {
	s.left--
	return []Value{TextValue(strings.Repeat("x", 100))}, s.left >= 0
}
func (s *slowSource) Err() error   { return nil }
func (s *slowSource) Close() error { s.closed = true; return nil }

func TestRows_MaterialiseIsBounded(t *testing.T) {
	src := &slowSource{left: 1000}
	rows := StreamRows([]string{"a"}, []Type{TypeString}, src)
	err := rows.Materialise(10_000)
	if KindOf(err) != TooLarge || !src.closed {
		t.Fatalf("err %v, closed %v", err, src.closed)
	}
}

func TestExpr_WalkReachesRelations(t *testing.T) {
	e := AllOf(Compare(Eq, F("a"), C(IntValue(1))), &Expr{Op: Related, Rel: &Relation{Table: "other", Where: Negate(F("b"))}})
	var got []string
	e.Walk("", func(table string, x *Expr) bool {
		if x.Op == Field {
			got = append(got, table+"."+x.Path)
		}
		return true
	})
	if d := cmp.Diff([]string{".a", "other.b"}, got); d != "" {
		t.Fatal(d)
	}
}

func TestKinds_AllHaveNames(t *testing.T) {
	for k := range NumKinds {
		if k.String() == "" || k.String() == "unknown" {
			t.Errorf("kind %d has no name", k)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "1", "-1.5", "true", "2026-11-30 17:02:10", "2026-11-30T17:02:10Z", "1e999", "\x00", "١"} {
		for typ := range numTypes {
			f.Add(uint8(typ), s)
		}
	}
	f.Fuzz(func(t *testing.T, typ uint8, s string) {
		if typ >= uint8(numTypes) || len(s) > 1000 {
			return
		}
		v, err := Parse(Type(typ), s)
		if err != nil {
			return
		}
		if v.Form == Num && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)) {
			t.Fatalf("%q became %v", s, v.Float())
		}
		if Type(typ) == TypeDuration || Type(typ) == TypeDateTime && (v.Time().Year() < 0 || v.Time().Year() > 9999) {
			return
		}
		again, err := Parse(Type(typ), v.Text())
		if err != nil || again != v {
			t.Fatalf("%s %q: %v, its text reads back as %v, %v", Type(typ), s, v, again, err)
		}
	})
}
