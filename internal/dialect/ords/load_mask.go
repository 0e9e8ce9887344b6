package ords

import (
	"strings"

	"weir/internal/record"
)

// maskParts are the parts of a format mask that are read, longest first, with Go's: one that takes one digit or two, and one for where
// digits follow each other without a mark between.
var maskParts = []struct{ part, open, tight string }{
	{"MONTH", "January", "January"},
	{"YYYY", "2006", "2006"},
	{"RRRR", "2006", "2006"},
	{"HH24", "15", "15"},
	{"HH12", "3", "03"},
	{"A.M.", "PM", "PM"},
	{"P.M.", "PM", "PM"},
	{"TZH:TZM", "-07:00", "-07:00"},
	{"TZHTZM", "-0700", "-0700"},
	{"TZH", "-07", "-07"},
	{"DAY", "Monday", "Monday"},
	{"MON", "Jan", "Jan"},
	{"YY", "06", "06"},
	{"RR", "06", "06"},
	{"MM", "1", "01"},
	{"MI", "4", "04"},
	{"DD", "2", "02"},
	{"DY", "Mon", "Mon"},
	{"HH", "3", "03"},
	{"SS", "5", "05"},
	{"AM", "PM", "PM"},
	{"PM", "PM", "PM"},
}

// layoutOf is a format mask of the vendor's as a layout of Go: the common parts of it. The error is an Invalid about parameter.
func layoutOf(parameter, mask string) (string, error) {
	var b strings.Builder
	upper := strings.ToUpper(mask)
next:
	for i := 0; i < len(mask); {
		rest := upper[i:]
		for _, p := range maskParts {
			if !strings.HasPrefix(rest, p.part) {
				continue
			}
			i += len(p.part)
			after := byte(0)
			if i < len(upper) {
				after = upper[i]
			}
			if tight := i > len(p.part) && isLetter(upper[i-len(p.part)-1]) || isLetter(after); tight {
				b.WriteString(p.tight)
			} else {
				b.WriteString(p.open)
			}
			continue next
		}
		switch c := mask[i]; {
		case strings.HasPrefix(rest, "FF"):
			// Go reads the fraction of a second by itself, with the mark before it.
			s := strings.TrimRight(b.String(), ".,")
			b.Reset()
			b.WriteString(s)
			if i += 2; i < len(mask) && mask[i] >= '1' && mask[i] <= '9' {
				i++
			}
		case strings.HasPrefix(rest, "XFF"):
			i++
		case c == '"':
			end := strings.IndexByte(mask[i+1:], '"')
			if end < 0 {
				return "", record.Errorf(record.Invalid, parameter, "the text in %.60q is not closed", mask)
			}
			text := mask[i+1 : i+1+end]
			if strings.ContainsAny(text, "0123456789JMPZ_") {
				return "", record.Errorf(record.Invalid, parameter, "the text %.40q within a mask is not supported", text)
			}
			b.WriteString(text)
			i += end + 2
		case isLetter(upper[i]) && !(c == 'T' || c == 'Z'):
			return "", record.Errorf(record.Invalid, parameter, "%.40q is not supported in a mask; there are YYYY YY RR MM MON MONTH DD DY DAY HH24 HH12 MI SS FF AM TZH TZM", mask[i:])
		case c == 'Z':
			b.WriteString("Z07:00")
			i++
		case c >= '0' && c <= '9':
			return "", record.Errorf(record.Invalid, parameter, "a digit in the mask %.60q", mask)
		default:
			b.WriteByte(c)
			i++
		}
	}
	if b.Len() == 0 {
		return "", record.Errorf(record.Invalid, parameter, "the mask is empty")
	}
	return b.String(), nil
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' }
