package odata

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/internal/catalog"
	"weir/internal/edm"
	"weir/internal/record"
)

func TestParseLiteral(t *testing.T) {
	for _, c := range []struct {
		ver  version // 0: both
		kind edm.Kind
		in   string
		want string // "!": Invalid
	}{
		{0, edm.String, "'x'", "x"},
		{0, edm.String, "''", ""},
		{0, edm.String, "'O''Neil'", "O'Neil"},
		{0, edm.String, "''''", "'"},
		{0, edm.String, "'", "!"},
		{0, edm.String, "'''", "!"},
		{0, edm.String, "'a'b'", "!"},
		{0, edm.String, "x", "!"},
		{0, edm.String, "5", "!"},
		{0, edm.String, "", "!"},
		{0, edm.String, "true", "!"},
		{0, edm.String, "guid'x'", "!"},
		{0, edm.Boolean, "true", "true"},
		{0, edm.Boolean, "false", "false"},
		{v2, edm.Boolean, "1", "true"},
		{v2, edm.Boolean, "0", "false"},
		{v2, edm.Boolean, "2", "!"},
		{v4, edm.Boolean, "1", "!"},
		{v4, edm.Boolean, "TRUE", "true"},
		{v2, edm.Boolean, "'true'", "!"},
		{0, edm.Byte, "0", "0"},
		{0, edm.Byte, "255", "255"},
		{0, edm.Byte, "256", "!"},
		{0, edm.Byte, "-1", "!"},
		{0, edm.SByte, "-128", "-128"},
		{0, edm.SByte, "128", "!"},
		{0, edm.Int16, "-32768", "-32768"},
		{0, edm.Int16, "32768", "!"},
		{0, edm.Int32, "2147483647", "2147483647"},
		{0, edm.Int32, "2147483648", "!"},
		{0, edm.Int32, "+5", "5"},
		{0, edm.Int32, "5.0", "5"},
		{0, edm.Int32, "5.5", "!"},
		{0, edm.Int32, "'5'", "!"},
		{v2, edm.Int32, "5L", "5"},
		{v2, edm.Int64, "5L", "5"},
		{v2, edm.Int64, "5l", "5"},
		{v4, edm.Int64, "5L", "5"},
		{0, edm.Int64, "-9223372036854775808", "-9223372036854775808"},
		{0, edm.Int64, "9223372036854775808", "!"},
		{v2, edm.Int64, "9223372036854775808L", "!"},
		{v2, edm.Int64, "5.5L", "!"},
		{v2, edm.Int64, "L", "!"},
		{v2, edm.Decimal, "2.5M", "2.5"},
		{v2, edm.Decimal, "1m", "1"},
		{0, edm.Decimal, "2.5", "2.5"},
		{0, edm.Decimal, "-.5", "-0.5"},
		{0, edm.Decimal, "007", "7"},
		{0, edm.Decimal, "1e3", "1000"},
		{v2, edm.Decimal, "1.25E-3M", "0.00125"},
		{0, edm.Decimal, "-0", "0"},
		{0, edm.Decimal, "1.50", "1.50"},
		{0, edm.Decimal, "12345678901234567890.123", "12345678901234567890.123"},
		{v2, edm.Decimal, "1e999M", "!"},
		{0, edm.Decimal, "NaN", "!"},
		{v2, edm.Decimal, "1e99999999999999999999M", "!"},
		{0, edm.Decimal, ".", "!"},
		{0, edm.Decimal, "1.2.3", "!"},
		{0, edm.Decimal, "1e", "!"},
		{v2, edm.Double, "2.5d", "2.5"},
		{v2, edm.Double, "2.5D", "2.5"},
		{0, edm.Double, "1E+3", "1000"},
		{0, edm.Double, "5", "5"},
		{0, edm.Double, "INF", "!"},
		{v2, edm.Double, "2.5M", "2.5"},
		{0, edm.Double, "1e999", "!"},
		{v2, edm.Single, "2.5f", "2.5"},
		{v2, edm.Single, "2.5F", "2.5"},
		{0, edm.Single, "1e39", "!"},
		{0, edm.Double, "-INF", "!"},
		{0, edm.Double, "NaN", "!"},
		{v4, edm.Double, "2.5d", "2.5"},
		{0, edm.Double, "0x10", "!"},
		{0, edm.Double, "1_000", "!"},
		{v2, edm.DateTimeOffset, "datetime'2024-01-31T10:00:00'", "2024-01-31 10:00:00"},
		{v2, edm.DateTimeOffset, "datetime'2024-01-31T10:00'", "2024-01-31 10:00:00"},
		{v2, edm.DateTimeOffset, "datetime'2024-01-31T10:00:00.1234567'", "2024-01-31 10:00:00.123456"},
		{v2, edm.DateTimeOffset, "datetime'1969-12-31T23:59:59.5'", "1969-12-31 23:59:59.5"},
		{v2, edm.DateTimeOffset, "DateTime'2024-01-31T10:00:00Z'", "2024-01-31 10:00:00"},
		{v2, edm.DateTimeOffset, "datetimeoffset'2024-01-31T10:00:00Z'", "2024-01-31 10:00:00"},
		{v2, edm.DateTimeOffset, "datetimeoffset'2024-01-31T10:00:00+02:30'", "2024-01-31 07:30:00"},
		{v2, edm.DateTimeOffset, "datetimeoffset'2024-01-31T10:00:00'", "!"},
		{v2, edm.DateTimeOffset, "datetime'2024-02-30T10:00:00'", "!"},
		{v2, edm.DateTimeOffset, "datetime'2024-01-31T24:00:00'", "!"},
		{v2, edm.DateTimeOffset, "datetime'2024-01-31'", "!"},
		{v2, edm.DateTimeOffset, "datetime'2024-01-31T10:00:00.'", "!"},
		{v2, edm.DateTimeOffset, "datetimeoffset'0001-01-01T00:00:00+01:00'", "!"},
		{v2, edm.DateTimeOffset, "'2024-01-31T10:00:00'", "!"},
		{v2, edm.DateTimeOffset, "datetime'0000-01-01T00:00:00'", "!"},
		{v4, edm.DateTimeOffset, "datetime'2024-01-31T10:00:00'", "!"},
		{v4, edm.DateTimeOffset, "2024-01-31T10:00:00Z", "2024-01-31 10:00:00"},
		{v4, edm.DateTimeOffset, "2024-01-31T10:00Z", "2024-01-31 10:00:00"},
		{v4, edm.DateTimeOffset, "2024-01-31T10:00:00.25-01:00", "2024-01-31 11:00:00.25"},
		{v4, edm.DateTimeOffset, "2024-01-31T10:00:00", "!"},
		{v4, edm.DateTimeOffset, "2024-01-31", "2024-01-31 00:00:00"},
		{v4, edm.DateTimeOffset, "2024-01-31T10:00:00z", "2024-01-31 10:00:00"},
		{v2, edm.Date, "datetime'2024-01-31T00:00:00'", "2024-01-31"},
		{v2, edm.Date, "datetime'2024-01-31T00:00:01'", "!"},
		{v4, edm.Date, "2024-01-31", "2024-01-31"},
		{v4, edm.Date, "2024-13-31", "!"},
		{v4, edm.Date, "2024-1-31", "!"},
		{v2, edm.TimeOfDay, "time'PT10H30M15S'", "10:30:15"},
		{v2, edm.TimeOfDay, "time'PT24H'", "!"},
		{v2, edm.TimeOfDay, "time'PT0.5S'", "00:00:00.5"},
		{v2, edm.TimeOfDay, "time'-PT1H'", "!"},
		{v4, edm.TimeOfDay, "10:30:15", "10:30:15"},
		{v4, edm.TimeOfDay, "10:30", "10:30:00"},
		{v4, edm.TimeOfDay, "10:30:15.250", "10:30:15.25"},
		{v4, edm.TimeOfDay, "10:60:15", "!"},
		{v4, edm.TimeOfDay, "10:30:", "!"},
		{v2, edm.Duration, "time'P1DT2H3M4S'", "93784"},
		{v2, edm.Duration, "time'PT90M'", "5400"},
		{v2, edm.Duration, "time'PT'", "!"},
		{v2, edm.Duration, "time'P'", "!"},
		{v4, edm.Duration, "duration'PT1S'", "1"},
		{v4, edm.Duration, "'PT1S'", "1"},
		{v4, edm.Duration, "duration'-P1D'", "-86400"},
		{v4, edm.Duration, "duration'PT1.5S'", "!"},
		{v4, edm.Duration, "duration'PT1.0S'", "1"},
		{v4, edm.Duration, "duration'P1Y'", "!"},
		{v4, edm.Duration, "duration'PT1M2H'", "!"},
		{v4, edm.Duration, "duration'PTTT1S'", "!"},
		{v4, edm.Duration, "duration'P99999999999999D'", "!"},
		{v4, edm.Duration, "duration'P1DT'", "!"},
		{v4, edm.Duration, "'x'", "!"},
		{v2, edm.GUID, "guid'01234567-89AB-cdef-0123-456789abcdef'", "0123456789abcdef0123456789abcdef"},
		{v4, edm.GUID, "01234567-89AB-cdef-0123-456789abcdef", "0123456789abcdef0123456789abcdef"},
		{v4, edm.GUID, "abcdef67-89AB-cdef-0123-456789abcdef", "abcdef6789abcdef0123456789abcdef"},
		{v2, edm.GUID, "01234567-89AB-cdef-0123-456789abcdef", "!"},
		{v2, edm.GUID, "guid'0123456789abcdef0123456789abcdef'", "!"},
		{0, edm.GUID, "'x'", "!"},
		{v2, edm.Binary, "X'FF00'", "\xff\x00"},
		{v2, edm.Binary, "binary'ff00'", "\xff\x00"},
		{v2, edm.Binary, "X''", ""},
		{v2, edm.Binary, "X'F'", "!"},
		{v2, edm.Binary, "X'GG'", "!"},
		{v4, edm.Binary, "binary'_wA='", "\xff\x00"},
		{v4, edm.Binary, "binary'_wA'", "\xff\x00"},
		{v4, edm.Binary, "binary'?'", "!"},
		{0, edm.String, "null", "<null>"},
		{0, edm.Int32, "null", "<null>"},
		{0, edm.Int32, "Null", "!"},
		{0, edm.Int32, "foo'5'", "!"},
		{0, edm.Int32, "5'", "!"},
	} {
		in := []version{c.ver}
		if c.ver == 0 {
			in = []version{v2, v4}
		}
		for _, ver := range in {
			v, err := parseLiteral(ver, c.kind, c.in)
			got := v.Text()
			switch {
			case err != nil && record.KindOf(err) == record.Invalid:
				got = "!"
			case err != nil:
				got = err.Error()
			case v.IsNull():
				got = "<null>"
			}
			if got != c.want {
				t.Errorf("V%d %s %s: got %q, want %q", ver, c.kind, c.in, got, c.want)
			}
		}
	}
}

func TestStoredValue(t *testing.T) {
	const hexed, hyphens = "0123456789abcdef0123456789abcdef", "01234567-89ab-cdef-0123-456789abcdef"
	for _, c := range []struct {
		f    *catalog.Field
		want string
	}{
		{nil, hyphens},
		{&catalog.Field{Type: record.TypeGUID}, hexed},
		{&catalog.Field{Type: record.TypeGUID, Native: "uuid"}, hyphens},
		{&catalog.Field{Type: record.TypeGUID, Native: "character(32)", MaxLength: 32}, hexed},
	} {
		for _, in := range []string{hexed, hyphens} {
			if v := storedValue(edm.GUID, c.f, record.TextValue(in)); v.S != c.want {
				t.Errorf("%v: %s", c.f, v.S)
			}
		}
	}
	if v := storedValue(edm.String, nil, record.TextValue(hexed)); v.S != hexed {
		t.Error(v.S)
	}
}

// anyValue is a value of a kind as records hold it.
func anyValue(kind edm.Kind) *rapid.Generator[record.Value] {
	return rapid.Custom(func(t *rapid.T) record.Value {
		switch kind {
		case edm.String:
			return record.TextValue(strings.ReplaceAll(rapid.String().Draw(t, "s"), "\x00", ""))
		case edm.Boolean:
			return record.BoolValue(rapid.Bool().Draw(t, "b"))
		case edm.Byte, edm.SByte, edm.Int16, edm.Int32, edm.Int64:
			return record.IntValue(rapid.Int64Range(ranges[kind][0], ranges[kind][1]).Draw(t, "n"))
		case edm.Decimal:
			return record.TextValue(rapid.StringMatching(`0|-?[1-9][0-9]{0,20}(\.[0-9]{0,5}[1-9])?`).Draw(t, "d"))
		case edm.Single:
			return record.NumValue(float64(rapid.Float32().Draw(t, "f")))
		case edm.Double:
			return record.NumValue(rapid.Float64().Draw(t, "f"))
		case edm.DateTimeOffset:
			return record.Value{Form: record.Time, N: rapid.Int64Range(-62135596800_000000, 253402300799_999999).Draw(t, "t")}
		case edm.Date:
			return record.TextValue(time.Unix(86400*rapid.Int64Range(-719162, 2932896).Draw(t, "day"), 0).UTC().Format(time.DateOnly))
		case edm.TimeOfDay:
			return record.TextValue(rapid.StringMatching(`([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{0,5}[1-9])?`).Draw(t, "t"))
		case edm.Duration:
			return record.IntValue(rapid.Int64Range(-maxSeconds, maxSeconds).Draw(t, "n"))
		case edm.GUID:
			return record.TextValue(rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "g"))
		}
		return record.TextValue(string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")))
	})
}

func TestLiteral_WhatIsAppendedIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := edm.Kind(rapid.IntRange(int(edm.String), int(edm.Binary)).Draw(t, "kind"))
		v := anyValue(kind).Draw(t, "value")
		for _, ver := range []version{v2, v4} {
			if f := v.Float(); v.Form == record.Num && (math.IsInf(f, 0) || math.IsNaN(f)) {
				return
			}
			text := string(appendLiteral(nil, ver, kind, v))
			plain, ok := unescape(text, true)
			if !ok {
				t.Fatalf("V%d %s: %q has a bad escape", ver, kind, text)
			}
			if strings.ContainsAny(text, "/?#&+ \"<>") {
				t.Fatalf("V%d %s: %q is no segment of a path", ver, kind, text)
			}
			got, err := parseLiteral(ver, kind, plain)
			if err != nil {
				t.Fatalf("V%d %s: %q: %v", ver, kind, text, err)
			}
			if got != v {
				t.Fatalf("V%d %s: %q is %+v, not %+v", ver, kind, text, got, v)
			}
		}
	})
}

func TestParseParams(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"a=1", "a=1"},
		{"a=1&b=2&a=3", "a=1|b=2|a=3"},
		{"a=b+c%20d%2Be", "a=b c d+e"},
		{"%24top=5", "$top=5"},
		{"a", "a="},
		{"&&a=1&", "a=1"},
		{"a=b=c", "a=b=c"},
		{"a=%C3%a4", "a=ä"},
		{"=x", "=x"},
		{"a=1;b=2", "a=1;b=2"},
		{"a=%", "!a"},
		{"a=%4", "!a"},
		{"a=%zz", "!a"},
		{"a=%ff", "!a"},
		{"a=%00", "!a"},
		{"%zz=1", "!"},
	} {
		list, err := parseParams(c.in)
		var parts []string
		for _, p := range list {
			parts = append(parts, p.name+"="+p.value)
		}
		got := strings.Join(parts, "|")
		if err != nil {
			got = "!" + record.AsError(err).Field
			if record.KindOf(err) != record.Invalid {
				t.Errorf("%q: %v", c.in, err)
			}
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
	list, _ := parseParams("a=1&b=2&a=3")
	if v, ok := list.get("a"); v != "3" || !ok {
		t.Error(v, ok)
	}
	if _, ok := list.get("c"); ok {
		t.Error("c is there")
	}
}
