package odata

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/edm"
	"weir/internal/record"
)

// valueOf is a JSON value as a value of p. Both versions are read alike and leniently: numbers may be texts, as IEEE754Compatible and V2
// write them, and times may have any of the forms of the protocol notes, section 2. The fault is "" or says what is wrong.
func valueOf(ver version, p *edm.Property, s scalar) (v record.Value, fault string) {
	switch s.kind {
	case 'n':
		if !p.Nullable {
			return v, "null is not allowed"
		}
		return v, ""
	case '{', '[':
		return v, "a single value of type " + kindName(ver, p.Kind) + " is expected"
	case 't', 'f':
		if p.Kind == edm.Boolean {
			return record.BoolValue(s.kind == 't'), ""
		}
		return v, notA(ver, p, s.text)
	case '0':
		switch p.Kind {
		case edm.Byte, edm.SByte, edm.Int16, edm.Int32, edm.Int64, edm.Decimal, edm.Single, edm.Double:
			return textValueOf(ver, p, s.text)
		}
		return v, notA(ver, p, s.text)
	}
	if p.Kind == edm.Boolean {
		return v, notA(ver, p, s.text)
	}
	return textValueOf(ver, p, s.text)
}

func notA(ver version, p *edm.Property, text string) string {
	return fmt.Sprintf("%.60q is not a valid %s", text, kindName(ver, p.Kind))
}

// textValueOf is a text, as JSON holds it in quotes and XML between tags, as a value of p.
func textValueOf(ver version, p *edm.Property, s string) (v record.Value, fault string) {
	ok := false
	switch p.Kind {
	case edm.String:
		if p.MaxLength > 0 && len(s) > p.MaxLength {
			if n := utf8.RuneCountInString(s); n > p.MaxLength {
				return v, fmt.Sprintf("%d characters are more than the %d allowed", n, p.MaxLength)
			}
		}
		return record.TextValue(s), ""
	case edm.Boolean: // of XML
		switch strings.TrimSpace(s) {
		case "true", "1":
			return record.BoolValue(true), ""
		case "false", "0":
			return record.BoolValue(false), ""
		}
	case edm.Byte:
		v, ok = intValue(s, 0, math.MaxUint8)
	case edm.SByte:
		v, ok = intValue(s, math.MinInt8, math.MaxInt8)
	case edm.Int16:
		v, ok = intValue(s, math.MinInt16, math.MaxInt16)
	case edm.Int32:
		v, ok = intValue(s, math.MinInt32, math.MaxInt32)
	case edm.Int64:
		v, ok = intValue(s, math.MinInt64, math.MaxInt64)
	case edm.Decimal:
		return decimalValue(ver, p, s)
	case edm.Single, edm.Double:
		bits := 64
		if p.Kind == edm.Single {
			bits = 32
		}
		if ok, _, _ := shapeOfNumber(s); ok {
			if f, err := strconv.ParseFloat(s, bits); err == nil {
				return record.NumValue(f), ""
			}
		}
	case edm.DateTimeOffset:
		var micros int64
		if micros, ok = instant(s); ok {
			v = record.Value{Form: record.Time, N: micros}
		}
	case edm.Date:
		v, ok = dateValue(s)
	case edm.TimeOfDay:
		v, ok = clockValue(s)
	case edm.Duration:
		if v, ok = readDuration(s); ok && v.Form != record.Int {
			return v, fmt.Sprintf("%.60q: durations are whole seconds", s)
		}
	case edm.GUID:
		if len(s) == 32 || len(s) == 36 {
			s, ok = hexOfGUID(s)
			v = storedValue(edm.GUID, p.Field, record.TextValue(s))
		}
	case edm.Binary:
		return binaryValue(p, s)
	}
	if !ok {
		return v, notA(ver, p, s)
	}
	return v, ""
}

func intValue(s string, least, most int64) (record.Value, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		return record.Value{}, false
	}
	return record.IntValue(n), true
}

// maxDigits bounds a decimal, whose exponent could make it any length.
const maxDigits = 400

// decimalValue reads digits with sign, point and exponent. What does not fit precision and scale is a fault, zeros at the end aside.
func decimalValue(ver version, p *edm.Property, s string) (v record.Value, fault string) {
	ok, _, exponent := shapeOfNumber(s)
	text := s
	if ok && (exponent || s[0] == '+' || s[0] == '.') {
		text, ok = plainDigits(s) // the database and the answer know no exponents
	}
	if !ok || len(text) > maxDigits {
		return v, notA(ver, p, s)
	}
	if p.Precision > 0 {
		whole, frac, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
		if n := len(strings.TrimRight(frac, "0")); n > p.Scale {
			return v, fmt.Sprintf("%.60q has more than %d digits after the point", s, p.Scale)
		}
		if n := len(strings.TrimLeft(whole, "0")); n > p.Precision-p.Scale {
			return v, fmt.Sprintf("%.60q has more than %d digits before the point", s, p.Precision-p.Scale)
		}
	}
	return record.TextValue(text), ""
}

// instant reads a point in time in microseconds since 1970: /Date(ms)/, /Date(ms+0060)/, whose offset in minutes does not move it, or ISO 8601, which
// without a zone is UTC.
func instant(s string) (micros int64, ok bool) {
	if ms, ok := strings.CutPrefix(s, "/Date("); ok {
		if ms, ok = strings.CutSuffix(ms, ")/"); !ok || len(ms) < 1 {
			return 0, false
		}
		if i := strings.LastIndexAny(ms, "+-"); i > 0 {
			if n, err := strconv.Atoi(ms[i+1:]); err != nil || n < 0 || n > 24*60 || len(ms)-i > 5 {
				return 0, false
			}
			ms = ms[:i]
		}
		n, err := strconv.ParseInt(ms, 10, 64)
		const most = 300_000_000_000_000 // beyond the year 9999; the engine knows what it can store
		if err != nil || n > most || n < -most || ms[0] == '+' {
			return 0, false
		}
		return n * 1000, true
	}
	v, ok := readTime(s, false)
	return v.N, ok
}

// dateValue reads a day: of a time it is the day in UTC.
func dateValue(s string) (record.Value, bool) {
	if isDate(s) {
		return record.TextValue(s), true
	}
	micros, ok := instant(s)
	t := time.UnixMicro(micros).UTC()
	if y := t.Year(); !ok || y < 1 || y > 9999 {
		return record.Value{}, false
	}
	return record.TextValue(t.Format(time.DateOnly)), true
}

// clockValue reads a time of day: hh:mm[:ss[.f]], or PT10H30M15S.
func clockValue(s string) (record.Value, bool) {
	if strings.HasPrefix(s, "P") {
		v, ok := readDuration(s)
		if !ok {
			return v, false
		}
		c, ok := clockOf(v.Float())
		return record.TextValue(string(appendTimeOfDay(nil, c))), ok
	}
	text, ok := readClock(s)
	return record.TextValue(text), ok
}

// binaryValue reads base64 in either alphabet, with or without padding.
func binaryValue(p *edm.Property, s string) (v record.Value, fault string) {
	s = strings.TrimRight(s, "=")
	code := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		code = base64.RawURLEncoding
	}
	b, err := code.DecodeString(s)
	if err != nil {
		return v, "the text is not valid base64"
	}
	if p.MaxLength > 0 && len(b) > p.MaxLength {
		return v, fmt.Sprintf("%d bytes are more than the %d allowed", len(b), p.MaxLength)
	}
	return record.TextValue(string(b)), ""
}
