package endpoint

import (
	"strings"
	"testing"
)

// show is tokens, blanks left out, each in its own brackets with the first letter of its kind.
func show(src string, postgres bool) string {
	tokens, err := lex(src, postgres)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, k := range tokens {
		if k.kind != blank {
			b.WriteString("bcwqlnbo;"[k.kind:k.kind+1] + "<" + src[k.from:k.to] + ">")
		}
	}
	return b.String()
}

func TestLex(t *testing.T) {
	f := func(src, postgres, sqlite string) {
		t.Helper()
		if got := show(src, true); got != postgres {
			t.Errorf("%s on PostgreSQL: %s, want %s", src, got, postgres)
		}
		if got := show(src, false); got != sqlite {
			t.Errorf("%s on SQLite: %s, want %s", src, got, sqlite)
		}
	}
	both := func(src, want string) { t.Helper(); f(src, want, want) }
	both("a :b ::c :=d", "w<a>b<:b>o<::>w<c>o<:=>w<d>")
	both("x 'it''s :no' \"q \"\":no\" ", `w<x>l<'it''s :no'>q<"q "":no">`)
	both("-- :no\n:yes", "c<-- :no>b<:yes>")
	both("1.5e-3+.5", "n<1.5e-3>o<+>n<.5>")
	both("a;b", "w<a>;<;>w<b>")
	both("'open", "the text that begins here does not end")
	both(`"open`, `the name that begins with " does not end`)
	both("/* open", "the comment that begins here does not end")
	f("/* a /* b */ c */ d", "c</* a /* b */ c */>w<d>", "c</* a /* b */>w<c>o<*>o</>w<d>")
	f(`E'a\':no' :b`, `l<E'a\':no'>b<:b>`, "the text that begins here does not end")
	f("$$ :no $$ $x$ $$ $x$", "l<$$ :no $$>l<$x$ $$ $x$>", "a parameter is written :name, not $")
	f("$1", "a parameter is written :name, not $", "a parameter is written :name, not $")
	f("a ? b", "w<a>o<?>w<b>", "a parameter is written :name, not ?")
	f("[a b]", "o<[>w<a>w<b>o<]>", "q<[a b]>")
	f("a[1:2]", "w<a>o<[>n<1>o<:>n<2>o<]>", "w<a>q<[1:2]>")
	f("`a`", "o<`>w<a>o<`>", "q<`a`>")
}

func FuzzLex(f *testing.F) {
	for _, s := range []string{"a :b ::c", "'x''y'", `E'\''`, "$a$ $a$", "/* /* */ */", "CURSOR(SELECT 1)", "[x]", "1e+5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, postgres := range []bool{true, false} {
			tokens, err := lex(src, postgres)
			if err != nil {
				if err.pos < 0 || err.pos >= len(src) {
					t.Fatalf("%q: position %d", src, err.pos)
				}
				continue
			}
			at := 0
			for _, k := range tokens {
				if k.from != at || k.to <= at {
					t.Fatalf("%q: token %+v after byte %d", src, k, at)
				}
				at = k.to
			}
			if at != len(src) {
				t.Fatalf("%q: the tokens end at %d", src, at)
			}
		}
	})
}
