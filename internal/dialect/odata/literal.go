package odata

import (
	"weir/internal/edm"
	"weir/internal/record"
)

// appendLiteral appends a value as it stands in URLs of the version, percent-encoded: 'O%27%27Neil', datetime'2024-01-31T10%3A00%3A00'
// or 2024-01-31T10:00:00Z (protocol notes, sections 2 and 9).
func appendLiteral(dst []byte, ver version, kind edm.Kind, v record.Value) []byte {
	if v.IsNull() {
		return append(dst, "null"...)
	}
	prop := edm.Property{Kind: kind}
	open, end := "", ""
	switch kind {
	case edm.String:
		open, end = "'", "'"
	case edm.GUID:
		if ver == v2 {
			open, end = "guid'", "'"
		}
	case edm.DateTimeOffset, edm.Date:
		if ver == v2 {
			open, end = "datetime'", "'"
		}
	case edm.TimeOfDay, edm.Duration:
		if ver == v2 {
			open, end = "time'", "'"
		} else if kind == edm.Duration {
			open, end = "duration'", "'"
		}
	case edm.Int64:
		if ver == v2 {
			end = "L"
		}
	case edm.Decimal:
		if ver == v2 {
			end = "M"
		}
	case edm.Single:
		if ver == v2 && v.Form == record.Num && unreal(v.Float()) == "" {
			end = "f"
		}
	case edm.Double:
		if ver == v2 && v.Form == record.Num && unreal(v.Float()) == "" {
			end = "d"
		}
	case edm.Binary:
		dst = append(dst, "binary'"...)
		if ver == v2 {
			return append(appendHexUpper(dst, v.S), '\'')
		}
		return append(appendRaw(dst, ver, &prop, v), '\'')
	}
	dst = append(dst, open...)
	if kind == edm.String && v.Form == record.Text {
		dst = appendEscaped(dst, v.S, true)
	} else {
		var room [64]byte
		dst = appendEscaped(dst, string(appendRaw(room[:0], ver, &prop, v)), false)
	}
	return append(dst, end...)
}

const upperHex = "0123456789ABCDEF"

// appendEscaped appends text as part of a path or a query value; quotes are doubled if it stands in quotes.
func appendEscaped(dst []byte, s string, quoted bool) []byte {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == '~':
			dst = append(dst, c)
		case c == '\'' && quoted:
			dst = append(dst, "%27%27"...)
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}
