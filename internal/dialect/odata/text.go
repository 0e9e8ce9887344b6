package odata

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// The texts of values that several formats share. All of them append, and take a value that its form allows only: a value of
// another form, which a service that maps a property to a field of another type may give, is written as its canonical text.

// appendDecimal appends the canonical digits of a decimal, with at least scale digits after the point, and without zeros beyond them.
// No digit but such a zero is lost. What JSON does not take for a number (a plus, a bare point, zeros in front) is put right.
func appendDecimal(dst []byte, s string, scale int) []byte {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		if s[0] == '-' {
			dst = append(dst, '-')
		}
		s = s[1:]
	}
	for len(s) > 1 && s[0] == '0' && s[1] != '.' {
		s = s[1:]
	}
	point := -1
	for i := range len(s) {
		if s[i] == '.' {
			point = i
			break
		}
	}
	if point < 0 {
		dst = append(dst, s...)
		if s == "" {
			dst = append(dst, '0')
		}
		if scale > 0 {
			dst = append(dst, '.')
			dst = appendZeros(dst, scale)
		}
		return dst
	}
	if point == 0 {
		dst = append(dst, '0')
	}
	digits := len(s) - point - 1
	for digits > scale && s[len(s)-1] == '0' {
		s, digits = s[:len(s)-1], digits-1
	}
	if digits == 0 && scale == 0 {
		return append(dst, s[:point]...)
	}
	dst = append(dst, s...)
	return appendZeros(dst, scale-digits)
}

func appendZeros(dst []byte, n int) []byte {
	for ; n > 0; n-- {
		dst = append(dst, '0')
	}
	return dst
}

// appendFloat appends a finite number as JSON and XML take it, without exponent where that is short.
func appendFloat(dst []byte, f float64, bits int) []byte {
	format := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'E'
	}
	return strconv.AppendFloat(dst, f, format, -1, bits)
}

// unreal is the text of a number that has no digits, "" for all others.
func unreal(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "INF"
	case math.IsInf(f, -1):
		return "-INF"
	}
	return ""
}

// appendDateTime appends YYYY-MM-DDThh:mm:ss and the fraction, if any, without zone.
func appendDateTime(dst []byte, micros int64) []byte {
	at := len(dst)
	dst = record.Value{Form: record.Time, N: micros}.AppendText(dst)
	if len(dst) > at+10 && dst[at+10] == ' ' {
		dst[at+10] = 'T'
	}
	return dst
}

// appendMillis appends the milliseconds since 1970 that /Date(…)/ holds.
func appendMillis(dst []byte, micros int64) []byte {
	ms := micros / 1000
	if micros%1000 < 0 {
		ms-- // digits are cut, which is towards the past before 1970 too
	}
	return strconv.AppendInt(dst, ms, 10)
}

// dateMicros is the beginning of a day given as YYYY-MM-DD; false if it is none. It is arithmetic, since time.Parse shows in feeds.
func dateMicros(s string) (int64, bool) {
	if len(s) != len("2006-01-02") || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	number := func(s string) (n int) {
		for i := range len(s) {
			if s[i] < '0' || s[i] > '9' {
				return -1
			}
			n = n*10 + int(s[i]-'0')
		}
		return n
	}
	y, m, d := number(s[:4]), number(s[5:7]), number(s[8:])
	if y < 0 || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, false
	}
	return time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC).UnixMicro(), true
}

// appendGUID appends a GUID in lower case with hyphens, however the field stores it.
func appendGUID(dst []byte, s string) []byte {
	if len(s) != 32 && len(s) != 36 {
		return append(dst, s...)
	}
	for i := range len(s) {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if len(s) == 32 && (i == 8 || i == 12 || i == 16 || i == 20) {
			dst = append(dst, '-')
		}
		dst = append(dst, c)
	}
	return dst
}

// appendEdmTime appends an Edm.Time of V2, always with hours, minutes and seconds of two digits: PT10H30M15S.
func appendEdmTime(dst []byte, seconds int64) []byte {
	if seconds < 0 {
		dst = append(dst, '-')
		seconds = -seconds
	}
	two := func(n int64, unit byte) {
		if n < 10 {
			dst = append(dst, '0')
		}
		dst = append(strconv.AppendInt(dst, n, 10), unit)
	}
	dst = append(dst, "PT"...)
	two(seconds/3600, 'H')
	two(seconds/60%60, 'M')
	two(seconds%60, 'S')
	return dst
}

// isClock reports whether s is a time of day, hh:mm:ss[.f].
func isClock(s string) bool {
	if len(s) < 8 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 2 || i == 5:
			if c != ':' {
				return false
			}
		case i == 8:
			if c != '.' {
				return false
			}
		case c < '0' || c > '9':
			return false
		}
	}
	return true
}

// appendClock appends an Edm.Time of V2 for a time of day, which isClock has let through.
func appendClock(dst []byte, s string) []byte {
	dst = append(append(append(dst, "PT"...), s[:2]...), 'H')
	dst = append(append(dst, s[3:5]...), 'M')
	return append(append(dst, s[6:]...), 'S')
}

// appendDuration appends an Edm.Duration of V4: P1DT2H3M4S, PT0S.
func appendDuration(dst []byte, seconds int64) []byte {
	if seconds < 0 {
		dst = append(dst, '-')
		seconds = -seconds
	}
	dst = append(dst, 'P')
	if d := seconds / 86400; d > 0 {
		dst = append(strconv.AppendInt(dst, d, 10), 'D')
		if seconds %= 86400; seconds == 0 {
			return dst
		}
	}
	dst = append(dst, 'T')
	if h := seconds / 3600; h > 0 {
		dst = append(strconv.AppendInt(dst, h, 10), 'H')
	}
	if m := seconds / 60 % 60; m > 0 {
		dst = append(strconv.AppendInt(dst, m, 10), 'M')
	}
	if s := seconds % 60; s > 0 || seconds == 0 {
		dst = append(strconv.AppendInt(dst, s, 10), 'S')
	}
	return dst
}

// isNumber reports whether v may stand as a number without quotes.
func isNumber(v record.Value) bool {
	switch v.Form {
	case record.Int:
		return true
	case record.Num:
		return unreal(v.Float()) == ""
	case record.Text:
		digits, dot := 0, false
		for i := range len(v.S) {
			switch c := v.S[i]; {
			case c >= '0' && c <= '9':
				digits++
			case c == '.' && !dot:
				dot = true
			case i == 0 && (c == '-' || c == '+'):
			default:
				return false
			}
		}
		return digits > 0
	}
	return false
}

// appendNumber appends a number that isNumber has let through.
func appendNumber(dst []byte, v record.Value, scale int) []byte {
	switch v.Form {
	case record.Int:
		dst = strconv.AppendInt(dst, v.N, 10)
		if scale > 0 {
			dst = appendZeros(append(dst, '.'), scale)
		}
		return dst
	case record.Num:
		return appendFloat(dst, v.Float(), 64)
	}
	return appendDecimal(dst, v.S, scale)
}

// appendRaw appends a value as plain text: what …/$value answers, and unescaped what Atom holds in an element. Times
// follow the version: V2 writes an Edm.DateTime without zone and an Edm.Time.
func appendRaw(dst []byte, ver version, p *edm.Property, v record.Value) []byte {
	switch p.Kind {
	case edm.Decimal:
		if isNumber(v) {
			return appendNumber(dst, v, p.Scale)
		}
	case edm.Single, edm.Double:
		if v.Form == record.Num {
			if s := unreal(v.Float()); s != "" {
				return append(dst, s...)
			}
			bits := 64
			if p.Kind == edm.Single {
				bits = 32
			}
			return appendFloat(dst, v.Float(), bits)
		}
	case edm.DateTimeOffset:
		if v.Form == record.Time {
			dst = appendDateTime(dst, v.N)
			if ver == v4 {
				dst = append(dst, 'Z')
			}
			return dst
		}
	case edm.Date:
		if ver == v2 && v.Form == record.Text && len(v.S) == len("2006-01-02") {
			return append(append(dst, v.S...), "T00:00:00"...)
		}
	case edm.TimeOfDay:
		if ver == v2 && isClock(v.S) {
			return appendClock(dst, v.S)
		}
	case edm.Duration:
		if v.Form == record.Int {
			if ver == v2 {
				return appendEdmTime(dst, v.N)
			}
			return appendDuration(dst, v.N)
		}
	case edm.GUID:
		return appendGUID(dst, v.S)
	case edm.Binary:
		return base64.StdEncoding.AppendEncode(dst, []byte(v.S))
	}
	return v.AppendText(dst)
}

// shown is a value as it is written: a text that may not be null but is, since empty texts are stored so, is empty.
func shown(p *edm.Property, v record.Value) record.Value {
	if v.Form == record.Null && !p.Nullable && p.Kind == edm.String {
		return record.Value{Form: record.Text}
	}
	return v
}

// appendJSON2 appends a value as JSON of V2 (protocol notes, section 2): numbers that JavaScript cannot hold exactly are texts,
// times are /Date(…)/ and Edm.Time.
func appendJSON2(dst []byte, p *edm.Property, v record.Value) []byte {
	switch v.Form {
	case record.Null:
		if !p.Nullable && p.Kind == edm.String {
			return append(dst, `""`...)
		}
		return append(dst, "null"...)
	case record.Text:
		switch p.Kind {
		case edm.String:
			return wire.AppendQuote(dst, v.S)
		case edm.Decimal:
			if isNumber(v) {
				dst = appendDecimal(append(dst, '"'), v.S, p.Scale)
				return append(dst, '"')
			}
		case edm.GUID:
			if len(v.S) == 32 || len(v.S) == 36 {
				at := len(dst)
				dst = wire.AppendQuote(dst, v.S)
				if len(dst)-at == len(v.S)+2 { // nothing was escaped
					dst = appendGUID(dst[:at+1], v.S)
					dst = append(dst, '"')
				}
				return dst
			}
		case edm.Date, edm.DateTimeOffset:
			if micros, ok := dateMicros(v.S); ok {
				return appendDate2(dst, micros)
			}
		case edm.TimeOfDay:
			if isClock(v.S) {
				return append(appendClock(append(dst, '"'), v.S), '"')
			}
		case edm.Binary:
			dst = base64.StdEncoding.AppendEncode(append(dst, '"'), []byte(v.S))
			return append(dst, '"')
		case edm.Byte, edm.SByte, edm.Int16, edm.Int32:
			if isNumber(v) {
				return appendDecimal(dst, v.S, 0)
			}
		}
		return wire.AppendQuote(dst, v.S)
	case record.Bool:
		if p.Kind == edm.String {
			return append(strconv.AppendBool(append(dst, '"'), v.N != 0), '"')
		}
		return strconv.AppendBool(dst, v.N != 0)
	case record.Int:
		switch p.Kind {
		case edm.Byte, edm.SByte, edm.Int16, edm.Int32:
			return strconv.AppendInt(dst, v.N, 10)
		case edm.Duration, edm.TimeOfDay:
			return append(appendEdmTime(append(dst, '"'), v.N), '"')
		case edm.Decimal:
			return append(appendNumber(append(dst, '"'), v, p.Scale), '"')
		}
		return append(strconv.AppendInt(append(dst, '"'), v.N, 10), '"')
	case record.Num:
		dst = append(dst, '"')
		switch f := v.Float(); {
		case unreal(f) != "":
			dst = append(dst, unreal(f)...)
		case p.Kind == edm.Single:
			dst = strconv.AppendFloat(dst, f, 'E', -1, 32)
		case p.Kind == edm.Double:
			dst = strconv.AppendFloat(dst, f, 'E', -1, 64)
		default:
			dst = appendFloat(dst, f, 64)
		}
		return append(dst, '"')
	case record.Time:
		if p.Kind == edm.String {
			return append(v.AppendText(append(dst, '"')), '"')
		}
		return appendDate2(dst, v.N)
	}
	return append(dst, "null"...)
}

func appendDate2(dst []byte, micros int64) []byte {
	dst = append(dst, `"/Date(`...)
	dst = appendMillis(dst, micros)
	return append(dst, `)/"`...)
}

// appendJSON4 appends a value as JSON of V4. With texts (IEEE754Compatible=true) Int64 and Decimal are texts.
func appendJSON4(dst []byte, p *edm.Property, v record.Value, texts bool) []byte {
	switch v.Form {
	case record.Null:
		if !p.Nullable && p.Kind == edm.String {
			return append(dst, `""`...)
		}
		return append(dst, "null"...)
	case record.Text:
		switch p.Kind {
		case edm.String:
			return wire.AppendQuote(dst, v.S)
		case edm.Decimal, edm.Byte, edm.SByte, edm.Int16, edm.Int32, edm.Int64:
			if !isNumber(v) {
				break
			}
			if texts && (p.Kind == edm.Decimal || p.Kind == edm.Int64) {
				dst = appendDecimal(append(dst, '"'), v.S, p.Scale)
				return append(dst, '"')
			}
			return appendDecimal(dst, v.S, p.Scale)
		case edm.GUID:
			if len(v.S) == 32 || len(v.S) == 36 {
				at := len(dst)
				dst = wire.AppendQuote(dst, v.S)
				if len(dst)-at == len(v.S)+2 {
					dst = appendGUID(dst[:at+1], v.S)
					dst = append(dst, '"')
				}
				return dst
			}
		case edm.Binary:
			dst = base64.URLEncoding.AppendEncode(append(dst, '"'), []byte(v.S))
			return append(dst, '"')
		}
		return wire.AppendQuote(dst, v.S)
	case record.Bool:
		if p.Kind == edm.String {
			return append(strconv.AppendBool(append(dst, '"'), v.N != 0), '"')
		}
		return strconv.AppendBool(dst, v.N != 0)
	case record.Int:
		switch p.Kind {
		case edm.Duration:
			return append(appendDuration(append(dst, '"'), v.N), '"')
		case edm.Decimal, edm.Int64:
			if texts {
				return append(appendNumber(append(dst, '"'), v, p.Scale), '"')
			}
			return appendNumber(dst, v, p.Scale)
		case edm.String:
			return append(strconv.AppendInt(append(dst, '"'), v.N, 10), '"')
		}
		return strconv.AppendInt(dst, v.N, 10)
	case record.Num:
		f := v.Float()
		if s := unreal(f); s != "" {
			return append(append(append(dst, '"'), s...), '"')
		}
		bits := 64
		if p.Kind == edm.Single {
			bits = 32
		}
		if p.Kind == edm.String || texts && (p.Kind == edm.Decimal || p.Kind == edm.Int64) {
			return append(appendFloat(append(dst, '"'), f, bits), '"')
		}
		return appendFloat(dst, f, bits)
	case record.Time:
		dst = append(dst, '"')
		if p.Kind == edm.String {
			return append(v.AppendText(dst), '"')
		}
		return append(appendDateTime(dst, v.N), `Z"`...)
	}
	return append(dst, "null"...)
}

// appendHexUpper appends bytes as the hexadecimal digits of a binary literal.
func appendHexUpper(dst []byte, s string) []byte {
	at := len(dst)
	dst = hex.AppendEncode(dst, []byte(s))
	for i := at; i < len(dst); i++ {
		if c := dst[i]; 'a' <= c && c <= 'f' {
			dst[i] = c - 'a' + 'A'
		}
	}
	return dst
}
