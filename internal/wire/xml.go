package wire

import "unicode/utf8"

// AppendXMLText appends s as character data. What XML 1.0 cannot hold becomes U+FFFD.
func AppendXMLText(dst []byte, s string) []byte {
	start := 0
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		var esc string
		switch {
		case r == '&':
			esc = "&amp;"
		case r == '<':
			esc = "&lt;"
		case r == '>':
			esc = "&gt;"
		case r == '"':
			esc = "&quot;"
		case r == '\r':
			esc = "&#13;"
		case r == utf8.RuneError && size == 1, r < 0x20 && r != '\t' && r != '\n', r == 0xFFFE, r == 0xFFFF:
			esc = "\uFFFD"
		default:
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = append(dst, esc...)
		i += size
		start = i
	}
	return append(dst, s[start:]...)
}
