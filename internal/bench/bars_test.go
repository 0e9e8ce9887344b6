package bench

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBar_VerdictIsByItsValue(t *testing.T) {
	f := func(b Bar, want string) {
		t.Helper()
		if got := b.Verdict(); got != want {
			t.Errorf("%+v: %s, want %s", b, got, want)
		}
	}
	f(Bar{Value: 1.4, Bar: 3, Aim: 1.5}, "aim")
	f(Bar{Value: 1.6, Bar: 3, Aim: 1.5}, "ok")
	f(Bar{Value: 3.1, Bar: 3, Aim: 1.5}, "missed")
	f(Bar{Value: 0.9, Bar: 0.5, Aim: 0.85, More: true}, "aim")
	f(Bar{Value: 0.6, Bar: 0.5, Aim: 0.85, More: true}, "ok")
	f(Bar{Value: 0.4, Bar: 0.5, Aim: 0.85, More: true}, "missed")
	f(Bar{Value: 1, Bar: 3, Aim: 2, Problem: "the server is gone"}, "missed")
}

func TestBarsResult_PrintsRatiosAndProblems(t *testing.T) {
	var b strings.Builder
	r := BarsResult{Bars: []Bar{
		{What: "creates", Store: "sqlite", Unit: "ms", Ours: 150, Yardstick: 100, Value: 1.5, Bar: 3, Aim: 1.4},
		{What: "memory", Store: "sqlite", Unit: "MiB", Ours: 44.2, Value: 44.2, Bar: 80, Aim: 45, Problem: "no such process"},
	}}
	if err := r.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"150 ms", "1.50 ×", "≤ 3.00 ×", "44.2 MiB", "≤ 45.0 MiB", "missed", "memory (sqlite): no such process"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestShapeOf_ReadsWhatTheYardstickMustShow(t *testing.T) {
	got, err := shapeOf([]byte(`{"result":[{"number":"1","active":"","at":"","caller":""},` +
		`{"number":"2","active":"true","at":"2026-01-31 23:59:59","caller":{"link":"http://h/api/now/table/sys_user/ab","value":"ab"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-columns", "number,active,at,caller", "-flags", "active", "-seconds", "at", "-ref", "caller=http://h/api/now/table/sys_user/"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := shapeOf([]byte(`<html>`)); err == nil {
		t.Error("a page has a shape")
	}
}

func TestCountRows_SeesMarksThatAreCut(t *testing.T) {
	for size := 1; size < 40; size++ {
		text := strings.Repeat(`{"number":"INC1","state":"1"},`, 7)
		n, err := countRows(&slow{text, size})
		if err != nil || n != 7 {
			t.Errorf("in pieces of %d: %d rows, %v", size, n, err)
		}
	}
}

// slow reads in small pieces.
type slow struct {
	text string
	size int
}

func (s *slow) Read(b []byte) (int, error) {
	return strings.NewReader(s.take(len(b))).Read(b)
}

func (s *slow) take(most int) string {
	n := min(s.size, most, len(s.text))
	piece := s.text[:n]
	s.text = s.text[n:]
	return piece
}
