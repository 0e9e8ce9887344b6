package odata

import (
	"strings"
	"unicode/utf8"

	"weir/internal/record"
)

// params are the name=value pairs of a query string, decoded, in the order given.
type params []param

type param struct{ name, value string }

// get is the value of the last parameter of that name, and whether it is there. Names are compared as they stand.
func (p params) get(name string) (string, bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].name == name {
			return p[i].value, true
		}
	}
	return "", false
}

// parseParams reads a query string: a blank is + or %20, a parameter without = has an empty value, and empty ones are left out.
// The error is an Invalid and names the parameter that has a bad escape, is not UTF-8 or holds a zero byte.
func parseParams(raw string) (params, error) {
	if raw == "" {
		return nil, nil
	}
	list := make(params, 0, strings.Count(raw, "&")+1)
	for more := true; more; {
		var pair string
		pair, raw, more = strings.Cut(raw, "&")
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		var p param
		var ok bool
		if p.name, ok = unescape(name, true); !ok {
			return nil, record.Errorf(record.Invalid, "", "the name of the query option %.80q has a bad escape", name)
		}
		if p.value, ok = unescape(value, true); !ok {
			return nil, record.Errorf(record.Invalid, p.name, "the value of the query option %.80s has a bad escape", p.name)
		}
		list = append(list, p)
	}
	return list, nil
}

// unescape decodes percent-encoding, and + as a blank if plus. It is false for what is no text: a bad escape, bytes that are
// not UTF-8, a zero byte.
func unescape(s string, plus bool) (string, bool) {
	if strings.IndexByte(s, '%') < 0 && (!plus || strings.IndexByte(s, '+') < 0) {
		return s, isText(s)
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '+' && plus:
			b = append(b, ' ')
		case c == '%':
			if i+2 >= len(s) {
				return "", false
			}
			hi, lo := hexDigit(s[i+1]), hexDigit(s[i+2])
			if hi < 0 || lo < 0 {
				return "", false
			}
			b = append(b, byte(hi<<4|lo))
			i += 2
		default:
			b = append(b, c)
		}
	}
	s = string(b)
	return s, isText(s)
}

// isText reports whether both databases can store s as text.
func isText(s string) bool { return strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) }

// hexDigit is the value of a hexadecimal digit, -1 if c is none.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

const upperHex = "0123456789ABCDEF"

// appendEscaped appends s as it stands in a segment of a path and in the value of a query option: percent-encoded but for
// unreserved characters. In quotes a quote is doubled.
func appendEscaped(dst []byte, s string, quoted bool) []byte {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '.', c == '_', c == '~':
			dst = append(dst, c)
		case c == '\'' && quoted:
			dst = append(dst, "%27%27"...)
		default:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		}
	}
	return dst
}
