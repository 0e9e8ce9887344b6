package odata

import (
	"encoding/json"
	"math"
	"testing"

	"weir/internal/edm"
	"weir/internal/record"
)

func TestValues_AreWrittenAsEachFormatHasThem(t *testing.T) {
	at := func(s string) record.Value {
		tm, ok := record.ParseTime(s)
		if !ok {
			t.Fatal(s)
		}
		return record.TimeValue(tm)
	}
	text, number, float := record.TextValue, record.IntValue, record.NumValue
	for _, c := range []struct {
		prop                     edm.Property
		value                    record.Value
		json2, json4, texts, raw string // raw is that of V2
	}{
		{edm.Property{Kind: edm.String}, text("a\"b\\\n<é😀"), `"a\"b\\\n<é😀"`, `"a\"b\\\n<é😀"`, "", "a\"b\\\n<é😀"},
		{edm.Property{Kind: edm.String}, record.Value{}, `""`, `""`, "", ""},
		{edm.Property{Kind: edm.String, Nullable: true}, record.Value{}, `null`, `null`, "", ""},
		{edm.Property{Kind: edm.Int32}, record.Value{}, `null`, `null`, "", ""},
		{edm.Property{Kind: edm.String}, number(5), `"5"`, `"5"`, "", "5"},
		{edm.Property{Kind: edm.String}, record.BoolValue(true), `"true"`, `"true"`, "", "true"},
		{edm.Property{Kind: edm.Boolean}, record.BoolValue(false), `false`, `false`, "", "false"},
		{edm.Property{Kind: edm.Byte}, number(255), `255`, `255`, "", "255"},
		{edm.Property{Kind: edm.Int32}, number(-5), `-5`, `-5`, "", "-5"},
		{edm.Property{Kind: edm.Int32}, text("0012"), `12`, `12`, "", "0012"},
		{edm.Property{Kind: edm.Int32}, text("x"), `"x"`, `"x"`, "", "x"},
		{edm.Property{Kind: edm.Int64}, number(math.MaxInt64), `"9223372036854775807"`, `9223372036854775807`, `"9223372036854775807"`, "9223372036854775807"},
		{edm.Property{Kind: edm.Decimal, Scale: 3}, text("2.5"), `"2.500"`, `2.500`, `"2.500"`, "2.500"},
		{edm.Property{Kind: edm.Decimal, Scale: 3}, text("-12"), `"-12.000"`, `-12.000`, `"-12.000"`, "-12.000"},
		{edm.Property{Kind: edm.Decimal, Scale: 3}, text("1.23456"), `"1.23456"`, `1.23456`, `"1.23456"`, "1.23456"},
		{edm.Property{Kind: edm.Decimal, Scale: 2}, text("1.2000"), `"1.20"`, `1.20`, `"1.20"`, "1.20"},
		{edm.Property{Kind: edm.Decimal}, text("1.2000"), `"1.2"`, `1.2`, `"1.2"`, "1.2"},
		{edm.Property{Kind: edm.Decimal}, text("10.0"), `"10"`, `10`, `"10"`, "10"},
		{edm.Property{Kind: edm.Decimal}, text("+007"), `"7"`, `7`, `"7"`, "7"},
		{edm.Property{Kind: edm.Decimal}, text("-.5"), `"-0.5"`, `-0.5`, `"-0.5"`, "-0.5"},
		{edm.Property{Kind: edm.Decimal}, text("5."), `"5"`, `5`, `"5"`, "5"},
		{edm.Property{Kind: edm.Decimal}, text("000.10"), `"0.1"`, `0.1`, `"0.1"`, "0.1"},
		{edm.Property{Kind: edm.Decimal, Scale: 2}, number(3), `"3.00"`, `3.00`, `"3.00"`, "3.00"},
		{edm.Property{Kind: edm.Double}, float(2.5), `"2.5E+00"`, `2.5`, "", "2.5"},
		{edm.Property{Kind: edm.Double}, float(1e300), `"1E+300"`, `1E+300`, "", "1E+300"},
		{edm.Property{Kind: edm.Double}, float(math.Inf(-1)), `"-INF"`, `"-INF"`, "", "-INF"},
		{edm.Property{Kind: edm.Double}, float(math.NaN()), `"NaN"`, `"NaN"`, "", "NaN"},
		{edm.Property{Kind: edm.Single}, float(float64(float32(0.1))), `"1E-01"`, `0.1`, "", "0.1"},
		{edm.Property{Kind: edm.DateTimeOffset}, at("2024-01-31 10:00:00"), `"/Date(1706695200000)/"`, `"2024-01-31T10:00:00Z"`, "", "2024-01-31T10:00:00"},
		{edm.Property{Kind: edm.DateTimeOffset}, at("2024-01-31 10:00:00.1234"), `"/Date(1706695200123)/"`, `"2024-01-31T10:00:00.1234Z"`, "", "2024-01-31T10:00:00.1234"},
		{edm.Property{Kind: edm.DateTimeOffset}, at("1969-12-31 23:59:59.9999"), `"/Date(-1)/"`, `"1969-12-31T23:59:59.9999Z"`, "", "1969-12-31T23:59:59.9999"},
		{edm.Property{Kind: edm.Date}, text("2024-02-29"), `"/Date(1709164800000)/"`, `"2024-02-29"`, "", "2024-02-29T00:00:00"},
		{edm.Property{Kind: edm.TimeOfDay}, text("10:30:15"), `"PT10H30M15S"`, `"10:30:15"`, "", "PT10H30M15S"},
		{edm.Property{Kind: edm.Duration}, number(0), `"PT00H00M00S"`, `"PT0S"`, "", "PT00H00M00S"},
		{edm.Property{Kind: edm.Duration}, number(90061), `"PT25H01M01S"`, `"P1DT1H1M1S"`, "", "PT25H01M01S"},
		{edm.Property{Kind: edm.Duration}, number(-172800), `"-PT48H00M00S"`, `"-P2D"`, "", "-PT48H00M00S"},
		{edm.Property{Kind: edm.GUID}, text("0123456789ABCDEF0123456789abcdef"), `"01234567-89ab-cdef-0123-456789abcdef"`, `"01234567-89ab-cdef-0123-456789abcdef"`, "", "01234567-89ab-cdef-0123-456789abcdef"},
		{edm.Property{Kind: edm.GUID}, text("01234567-89AB-cdef-0123-456789abcdef"), `"01234567-89ab-cdef-0123-456789abcdef"`, `"01234567-89ab-cdef-0123-456789abcdef"`, "", "01234567-89ab-cdef-0123-456789abcdef"},
		{edm.Property{Kind: edm.GUID}, text("\"123456789abcdef0123456789abcde\""), `"\"123456789abcdef0123456789abcde\""`, `"\"123456789abcdef0123456789abcde\""`, "", "\"1234567-89ab-cdef-0123-456789abcde\""},
		{edm.Property{Kind: edm.Binary}, text("\xfb\xff\x00"), `"+/8A"`, `"-_8A"`, "", "+/8A"},
	} {
		if got := string(appendJSON2(nil, &c.prop, c.value)); got != c.json2 {
			t.Errorf("%s %q in JSON of V2: %s, want %s", kindName(v4, c.prop.Kind), c.value.Text(), got, c.json2)
		}
		if got := string(appendJSON4(nil, &c.prop, c.value, false)); got != c.json4 {
			t.Errorf("%s %q in JSON of V4: %s, want %s", kindName(v4, c.prop.Kind), c.value.Text(), got, c.json4)
		}
		want := c.texts
		if want == "" {
			want = c.json4
		}
		if got := string(appendJSON4(nil, &c.prop, c.value, true)); got != want {
			t.Errorf("%s %q in JSON of V4, numbers as texts: %s, want %s", kindName(v4, c.prop.Kind), c.value.Text(), got, want)
		}
		if got := string(appendRaw(nil, v2, &c.prop, c.value)); got != c.raw {
			t.Errorf("%s %q as text: %s, want %s", kindName(v4, c.prop.Kind), c.value.Text(), got, c.raw)
		}
	}
}

// Whatever the field behind a property holds, its JSON can be read.
func TestValues_OfEveryKindAndFormAreJSON(t *testing.T) {
	for kind := edm.String; kind < edm.ComplexKind; kind++ {
		for _, v := range []record.Value{
			{},
			record.BoolValue(true), record.IntValue(-3), record.NumValue(1.5), record.NumValue(math.Inf(1)), record.TextValue(""),
			record.TextValue("\"\xff"), record.TextValue("-"), record.TextValue("+."), record.TextValue("00:\"0:00"),
			{Form: record.Time, N: -1},
		} {
			p := edm.Property{Kind: kind, Scale: 2}
			for _, b := range [][]byte{appendJSON2(nil, &p, v), appendJSON4(nil, &p, v, false), appendJSON4(nil, &p, v, true)} {
				if !json.Valid(b) {
					t.Errorf("%s of form %d, %q: %s", kindName(v4, kind), v.Form, v.Text(), b)
				}
			}
		}
	}
}
