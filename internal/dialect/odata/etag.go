package odata

import (
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// appendETag appends the ETag of a version: W/"'0001'", W/"datetime'2019-07-02T20%3A52%3A24.0000000'" in V2, W/"2019-07-02T20:52:24Z" in
// V4. It is nothing for a null version.
func appendETag(dst []byte, ver version, p *edm.Property, v record.Value) []byte {
	if v.IsNull() {
		return dst
	}
	dst = append(dst, `W/"`...)
	if ver == v2 && v.Form == record.Time {
		dst = append(dst, "datetime'"...)
		var room [32]byte
		text := appendDateTime(room[:0], v.N)
		seconds := len("2006-01-02T15:04:05")
		if len(text) == seconds {
			text = append(text, '.')
		}
		text = appendZeros(text, seconds+len(".0000000")-len(text))
		dst = appendEscaped(dst, string(text), false)
		return append(dst, `'"`...)
	}
	return append(appendLiteral(dst, ver, p.Kind, v), '"')
}

// etagOf is the ETag of a version.
func etagOf(ver version, p *edm.Property, v record.Value) string {
	var room [96]byte
	return string(appendETag(room[:0], ver, p, v))
}

// appendJSONETag appends an ETag as a JSON string.
func appendJSONETag(dst []byte, ver version, p *edm.Property, v record.Value) []byte {
	var room [96]byte
	return wire.AppendQuote(dst, appendETag(room[:0], ver, p, v))
}
