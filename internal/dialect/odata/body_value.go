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
func valueOf(p *edm.Property, s scalar) (v record.Value, fault string) {
	switch s.kind {
	case 'n':
		if !p.Nullable {
			return v, "null is not allowed"
		}
		return v, ""
	case '{', '[':
		return v, "a single value of type " + p.Kind.Name() + " is expected"
	case 't', 'f':
		if p.Kind == edm.Boolean {
			return record.BoolValue(s.kind == 't'), ""
		}
		return v, notA(p, s.text)
	case '0':
		switch p.Kind {
		case edm.Byte, edm.SByte, edm.Int16, edm.Int32, edm.Int64, edm.Decimal, edm.Single, edm.Double:
			return textValueOf(p, s.text)
		}
		return v, notA(p, s.text)
	}
	if p.Kind == edm.Boolean {
		return v, notA(p, s.text)
	}
	return textValueOf(p, s.text)
}

func notA(p *edm.Property, text string) string {
	return fmt.Sprintf("%.60q is not a valid %s", text, p.Kind.Name())
}

// textValueOf is a text, as JSON holds it in quotes and XML between tags, as a value of p.
func textValueOf(p *edm.Property, s string) (v record.Value, fault string) {
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
		return decimalValue(p, s)
	case edm.Single, edm.Double:
		bits := 64
		if p.Kind == edm.Single {
			bits = 32
		}
		if f, err := strconv.ParseFloat(s, bits); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) && plainNumber(s) {
			return record.NumValue(f), ""
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
		var n int64
		if n, ok = seconds(s); ok {
			v = record.IntValue(n)
		}
	case edm.GUID:
		v, ok = guidValue(p, s)
	case edm.Binary:
		return binaryValue(p, s)
	}
	if !ok {
		return v, notA(p, s)
	}
	return v, ""
}

// plainNumber reports whether s has only what JSON numbers have: Go reads more.
func plainNumber(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '-', c == '+', c == '.', c == 'e', c == 'E':
		default:
			return false
		}
	}
	return true
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
func decimalValue(p *edm.Property, s string) (v record.Value, fault string) {
	whole, frac, exp, ok := digitsOf(s)
	if !ok {
		return v, notA(p, s)
	}
	text := s
	if exp != 0 || s[0] == '+' || s[0] == '.' {
		// Written out: the database and the answer know no exponents.
		all := whole + frac
		point := len(whole) + exp
		if point < -maxDigits || point > maxDigits || len(all) > maxDigits {
			return v, notA(p, s)
		}
		var b []byte
		if s[0] == '-' {
			b = append(b, '-')
		}
		if point <= 0 {
			b = append(b, '0')
			if strings.Trim(all, "0") != "" {
				b = append(append(append(b, '.'), strings.Repeat("0", -point)...), all...)
			}
		} else {
			if point > len(all) {
				all += strings.Repeat("0", point-len(all))
			}
			b = append(b, all[:point]...)
			if point < len(all) {
				b = append(append(b, '.'), all[point:]...)
			}
		}
		text = string(b)
		if whole, frac, _, ok = digitsOf(text); !ok {
			return v, notA(p, s)
		}
	}
	if len(whole)+len(frac) > maxDigits {
		return v, notA(p, s)
	}
	if p.Precision > 0 {
		whole, frac = strings.TrimLeft(whole, "0"), strings.TrimRight(frac, "0")
		if len(frac) > p.Scale {
			return v, fmt.Sprintf("%.60q has more than %d digits after the point", s, p.Scale)
		}
		if len(whole) > p.Precision-p.Scale {
			return v, fmt.Sprintf("%.60q has more than %d digits before the point", s, p.Precision-p.Scale)
		}
	}
	return record.TextValue(text), ""
}

// digitsOf takes a decimal apart: the digits before and after the point, and the exponent.
func digitsOf(s string) (whole, frac string, exp int, ok bool) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	start := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	whole = s[start:i]
	if i < len(s) && s[i] == '.' {
		start = i + 1
		for i++; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		}
		frac = s[start:i]
	}
	if len(whole)+len(frac) == 0 {
		return "", "", 0, false
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil || n > 2*maxDigits || n < -2*maxDigits {
			return "", "", 0, false
		}
		return whole, frac, n, true
	}
	return whole, frac, 0, i == len(s)
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
	return isoTime(s)
}

// isoTime reads YYYY-MM-DDThh:mm[:ss[.f]] with an optional zone.
func isoTime(s string) (micros int64, ok bool) {
	if len(s) < len("2006-01-02T15:04") || s[10]|0x20 != 't' {
		return 0, false
	}
	y, m, d, ok := isoDate(s[:10])
	if !ok {
		return 0, false
	}
	h, ok1 := two(s[11:])
	mi, ok2 := two(s[14:])
	if !ok1 || !ok2 || s[13] != ':' || h > 23 || mi > 59 {
		return 0, false
	}
	s = s[16:]
	sec, frac := 0, int64(0)
	if strings.HasPrefix(s, ":") {
		if sec, ok = two(s[1:]); !ok || sec > 59 {
			return 0, false
		}
		if frac, s, ok = fraction(s[3:]); !ok {
			return 0, false
		}
	}
	micros = time.Date(y, time.Month(m), d, h, mi, sec, 0, time.UTC).UnixMicro() + frac
	switch {
	case s == "" || s == "Z" || s == "z":
		return micros, true
	case len(s) == 6 && (s[0] == '+' || s[0] == '-') && s[3] == ':':
		h, ok1 := two(s[1:])
		mi, ok2 := two(s[4:])
		if !ok1 || !ok2 || h > 14 || mi > 59 {
			return 0, false
		}
		offset := int64(h*60+mi) * 60_000_000
		if s[0] == '-' {
			offset = -offset
		}
		return micros - offset, true
	}
	return 0, false
}

// fraction reads .f up to twelve digits and cuts them to microseconds.
func fraction(s string) (micros int64, rest string, ok bool) {
	if !strings.HasPrefix(s, ".") {
		return 0, s, true
	}
	i, unit := 1, int64(100_000)
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		micros += int64(s[i]-'0') * unit
		unit /= 10
	}
	return micros, s[i:], i > 1 && i <= 13
}

// two reads two digits.
func two(s string) (int, bool) {
	if len(s) < 2 || s[0] < '0' || s[0] > '9' || s[1] < '0' || s[1] > '9' {
		return 0, false
	}
	return int(s[0]-'0')*10 + int(s[1]-'0'), true
}

// isoDate reads YYYY-MM-DD, of the years 1 to 9999.
func isoDate(s string) (y, m, d int, ok bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, 0, 0, false
	}
	century, ok1 := two(s)
	year, ok2 := two(s[2:])
	m, ok3 := two(s[5:])
	d, ok4 := two(s[8:])
	y = century*100 + year
	if !ok1 || !ok2 || !ok3 || !ok4 || y == 0 || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, 0, 0, false
	}
	if d > 28 && time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).Day() != d {
		return 0, 0, 0, false
	}
	return y, m, d, true
}

// dateValue reads a day: of a time it is the day in UTC.
func dateValue(s string) (record.Value, bool) {
	if len(s) == 10 {
		_, _, _, ok := isoDate(s)
		return record.TextValue(s), ok
	}
	micros, ok := instant(s)
	if !ok {
		return record.Value{}, false
	}
	t := time.UnixMicro(micros).UTC()
	if y := t.Year(); y < 1 || y > 9999 {
		return record.Value{}, false
	}
	return record.TextValue(t.Format("2006-01-02")), true
}

// clockValue reads a time of day: hh:mm[:ss[.f]], or PT10H30M15S. Parts of a second are cut only if they are zero.
func clockValue(s string) (record.Value, bool) {
	if strings.HasPrefix(s, "P") {
		n, ok := seconds(s)
		if !ok || n < 0 || n >= 24*3600 {
			return record.Value{}, false
		}
		return record.TextValue(clockText(n)), true
	}
	h, ok1 := two(s)
	if !ok1 || h > 23 || len(s) < 5 || s[2] != ':' {
		return record.Value{}, false
	}
	m, ok2 := two(s[3:])
	if !ok2 || m > 59 {
		return record.Value{}, false
	}
	sec, frac, rest, ok := 0, int64(0), s[5:], true
	if strings.HasPrefix(rest, ":") {
		if sec, ok = two(rest[1:]); !ok || sec > 59 {
			return record.Value{}, false
		}
		frac, rest, ok = fraction(rest[3:])
	}
	if !ok || rest != "" || frac != 0 {
		return record.Value{}, false
	}
	return record.TextValue(clockText(int64(h*3600 + m*60 + sec))), true
}

// clockText is a number of seconds since midnight as hh:mm:ss.
func clockText(n int64) string {
	b := make([]byte, 0, 8)
	for i, part := range [3]int64{n / 3600, n / 60 % 60, n % 60} {
		if i > 0 {
			b = append(b, ':')
		}
		b = append(b, byte('0'+part/10), byte('0'+part%10))
	}
	return string(b)
}

// seconds reads a duration of days, hours, minutes and seconds: P1DT2H3M4S, -PT15S. Parts of a second are cut only if they are zero; years and
// months have no length.
func seconds(s string) (int64, bool) {
	s, negative := strings.CutPrefix(s, "-")
	s, ok := strings.CutPrefix(s, "P")
	if !ok || s == "" {
		return 0, false
	}
	var sum int64
	units := "DHMS"
	timed := false
	for s != "" {
		if s[0] == 'T' {
			if timed || len(s) == 1 {
				return 0, false
			}
			timed, s = true, s[1:]
			units = strings.TrimPrefix(units, "D")
			continue
		}
		i := 0
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if i == 0 || i > 11 {
			return 0, false
		}
		n, err := strconv.ParseInt(s[:i], 10, 64)
		rest := s[i:]
		if strings.HasPrefix(rest, ".") {
			micros, after, ok := fraction(rest)
			if !ok || micros != 0 || !strings.HasPrefix(after, "S") {
				return 0, false
			}
			rest = after
		}
		if err != nil || rest == "" {
			return 0, false
		}
		at := strings.IndexByte(units, rest[0])
		if at < 0 || timed == (rest[0] == 'D') {
			return 0, false
		}
		switch rest[0] {
		case 'D':
			n *= 86400
		case 'H':
			n *= 3600
		case 'M':
			n *= 60
		}
		sum += n
		units, s = units[at+1:], rest[1:]
	}
	if negative {
		sum = -sum
	}
	return sum, true
}

// guidValue reads 32 hexadecimal digits, with or without hyphens, and spells them as the field stores them.
func guidValue(p *edm.Property, s string) (record.Value, bool) {
	if len(s) != 32 && (len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-') {
		return record.Value{}, false
	}
	hyphens := hyphenated(p)
	b := make([]byte, 0, 36)
	for i := range len(s) {
		c := s[i]
		switch {
		case len(s) == 36 && (i == 8 || i == 13 || i == 18 || i == 23):
			continue
		case c >= 'A' && c <= 'F':
			c += 'a' - 'A'
		case c < '0' || c > 'f' || c > '9' && c < 'a':
			return record.Value{}, false
		}
		if n := len(b); hyphens && (n == 8 || n == 13 || n == 18 || n == 23) {
			b = append(b, '-')
		}
		b = append(b, c)
	}
	return record.TextValue(string(b)), true
}

// hyphenated reports whether the field of a property stores GUIDs with hyphens: columns that weir did not create, of the database's own type.
func hyphenated(p *edm.Property) bool {
	return p.Field != nil && p.Field.Native != "" && p.Field.Type == record.TypeGUID
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
