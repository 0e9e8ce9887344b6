package main

import "testing"

func TestKind_ShowsAsTheDialectDoes(t *testing.T) {
	f := func(k kind, in, want string) {
		t.Helper()
		if got := string(k.show([]byte(in))); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	f(truth, "t", "true")
	f(truth, "1", "true")
	f(truth, "f", "false")
	f(truth, "0", "false")
	f(truth, "", "")
	f(whole, "2026-01-31 23:59:59.123456", "2026-01-31 23:59:59")
	f(whole, "", "")
	f(plain, "t", "t")
}

func TestPgbenchRate_FindsTheRate(t *testing.T) {
	const out = "number of failed transactions: 0 (0.000%)\nlatency average = 11.2 ms\ntps = 4435.131352 (without initial connection time)\n"
	if rate, err := pgbenchRate(out); err != nil || rate != 4435.131352 {
		t.Errorf("%v, %v", rate, err)
	}
	if _, err := pgbenchRate("pgbench: error"); err == nil {
		t.Error("an error has a rate")
	}
}
