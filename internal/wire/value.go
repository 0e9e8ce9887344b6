package wire

import (
	"encoding/base64"
	"math"
	"strconv"

	"weir/internal/record"
)

// AppendValue appends a value of type t as JSON, as ORDS' clients know it (protocol notes, section 5): numbers are numbers, a
// decimal without zeros that say nothing, dates and times RFC 3339 in UTC with a fraction only where there is one, bytes base64,
// null and what is no number null. A value of TypeJSON is put in as it stands. A value that is not of its type, as only tables of
// others hold, or whose type is not known, says itself what it is.
func AppendValue(dst []byte, t record.Type, v record.Value) []byte {
	switch v.Form {
	case record.Bool:
		return strconv.AppendBool(dst, v.N != 0)
	case record.Int:
		return strconv.AppendInt(dst, v.N, 10)
	case record.Num:
		return AppendFloat(dst, v.Float())
	case record.Time:
		dst = append(dst, '"')
		dst = AppendTime(dst, v)
		return append(dst, '"')
	case record.Text:
		switch t {
		case record.TypeJSON:
			return append(dst, v.S...)
		case record.TypeBytes:
			dst = append(dst, '"')
			dst = base64.StdEncoding.AppendEncode(dst, []byte(v.S))
			return append(dst, '"')
		case record.TypeDecimal:
			if to, ok := appendDecimal(dst, v.S); ok {
				return to
			}
		case record.TypeDate:
			if len(v.S) == len("2006-01-02") {
				dst = append(dst, '"')
				dst = append(dst, v.S...)
				return append(dst, `T00:00:00Z"`...)
			}
		}
		return AppendQuote(dst, v.S)
	}
	return append(dst, "null"...)
}

// AppendTime appends a time in RFC 3339, in UTC and without zeros at the end of its fraction.
func AppendTime(dst []byte, v record.Value) []byte {
	at := len(dst)
	dst = v.AppendText(dst)
	if len(dst) > at+10 {
		dst[at+10] = 'T'
	}
	return append(dst, 'Z')
}

// AppendFloat appends the shortest number that reads as f; infinity and what is no number are null.
func AppendFloat(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return append(dst, "null"...)
	}
	// As encoding/json and browsers write it.
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}

// appendDecimal appends the text of a decimal as a JSON number: no plus, no zeros before the digits or at the end of the fraction.
// False if it is none; what databases write for no number is null.
func appendDecimal(dst []byte, s string) ([]byte, bool) {
	switch s {
	case "NaN", "Infinity", "-Infinity":
		return append(dst, "null"...), true
	}
	negative := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative, s = s[0] == '-', s[1:]
	}
	point, digits := len(s), 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && point == len(s):
			point = i
		default:
			return dst, false
		}
	}
	if digits == 0 {
		return dst, false
	}
	from, to := 0, len(s)
	for from < point && s[from] == '0' {
		from++
	}
	for to > point && (s[to-1] == '0' || s[to-1] == '.') {
		to--
	}
	if from == to {
		return append(dst, '0'), true
	}
	if negative {
		dst = append(dst, '-')
	}
	if from == point {
		dst = append(dst, '0')
	}
	return append(dst, s[from:to]...), true
}
