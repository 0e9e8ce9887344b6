package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAppendQuote_IsReadBackAsItWas(t *testing.T) {
	for c := 0; c < 0x80; c++ {
		in := "a" + string(rune(c)) + "ü\u2028z"
		var out string
		if err := json.Unmarshal(AppendQuote(nil, in), &out); err != nil || out != in {
			t.Errorf("%q is read back as %q (%v)", in, out, err)
		}
	}
	if got := string(AppendQuote(nil, "a\xffb")); got != "\"a\uFFFDb\"" {
		t.Errorf("invalid UTF-8 is %s", got)
	}
}

func BenchmarkAppendQuote(b *testing.B) {
	s := strings.Repeat("0123456789abcdef", 2)
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendQuote(dst[:0], s)
	}
}
