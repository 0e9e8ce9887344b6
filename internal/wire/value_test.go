package wire

import (
	"math"
	"testing"
	"time"

	"weir/internal/record"
)

func TestAppendValue(t *testing.T) {
	f := func(typ record.Type, v record.Value, want string) {
		t.Helper()
		if got := string(AppendValue(nil, typ, v)); got != want {
			t.Errorf("%s %+v: got %s, want %s", typ, v, got, want)
		}
	}
	f(record.TypeString, record.Value{}, "null")
	f(record.TypeString, record.TextValue("a\"b"), `"a\"b"`)
	f(record.TypeBoolean, record.BoolValue(true), "true")
	f(record.TypeInteger, record.IntValue(-7), "-7")
	for in, want := range map[string]string{
		"1.50": "1.5", "007": "7", "+1": "1", "-0.0": "0", "-.50": "-0.5", "10": "10", "100.00": "100", "5.": "5", "0": "0",
		"12345678901234567890.10": "12345678901234567890.1", "NaN": "null", "Infinity": "null", "1e5": `"1e5"`, "": `""`, ".": `"."`,
	} {
		f(record.TypeDecimal, record.TextValue(in), want)
	}
	f(record.TypeFloat, record.NumValue(0.1), "0.1")
	f(record.TypeFloat, record.NumValue(1e6), "1000000")
	f(record.TypeFloat, record.NumValue(1e300), "1e+300")
	f(record.TypeFloat, record.NumValue(math.NaN()), "null")
	f(record.TypeFloat, record.NumValue(math.Inf(-1)), "null")
	f(record.TypeDate, record.TextValue("1980-12-17"), `"1980-12-17T00:00:00Z"`)
	f(record.TypeDate, record.TextValue("infinity"), `"infinity"`)
	f(record.TypeDateTime, record.TimeValue(time.Date(1980, 12, 17, 1, 2, 3, 0, time.UTC)), `"1980-12-17T01:02:03Z"`)
	f(record.TypeDateTime, record.TimeValue(time.Date(1980, 12, 17, 1, 2, 3, 120e6, time.UTC)), `"1980-12-17T01:02:03.12Z"`)
	f(record.TypeBytes, record.TextValue("\x00\xff"), `"AP8="`)
	f(record.TypeJSON, record.TextValue(`{"a":[1]}`), `{"a":[1]}`)
	f(255, record.TextValue("5"), `"5"`)
	f(255, record.IntValue(5), `5`)
}
