package ords

import (
	"encoding/base64"
	"net/url"
	"strings"

	"weir/internal/catalog"
	"weir/internal/record"
	"weir/internal/wire"
)

// A key in a path is the values of its columns, comma-joined and percent-encoded (protocol notes, section 8).

// readKey reads the key that a segment of a path holds.
func (q *tableCall) readKey(segment string) ([]record.Value, error) {
	parts := strings.Split(segment, ",")
	if len(parts) != len(q.Key) {
		return nil, record.Errorf(record.NotFound, "", "a key of %s has %d values with commas between, not %d", q.Alias, len(q.Key), len(parts))
	}
	key := make([]record.Value, len(parts))
	for i, col := range q.Key {
		text, err := url.PathUnescape(parts[i])
		if err != nil {
			return nil, record.Errorf(record.NoPath, "", "the path cannot be read: %v", err)
		}
		v, err := keyValue(col.Field, text)
		if err != nil {
			// What is no value of the column is no row's key.
			return nil, record.Errorf(record.NotFound, col.Name, "%.80q is no %s", text, col.Field.Type)
		}
		key[i] = v
	}
	return key, nil
}

func keyValue(f *catalog.Field, text string) (record.Value, error) {
	if f.Type == record.TypeBytes {
		b, err := base64.StdEncoding.DecodeString(text)
		return record.TextValue(string(b)), err
	}
	return record.Parse(f.Type, text)
}

// appendKey appends the key of a row as a segment of a path. False if it has none that a path can hold: a value is null or empty.
func (s *shape) appendKey(dst []byte, row []record.Value) ([]byte, bool) {
	if len(s.Key) == 0 {
		return dst, false
	}
	for i, col := range s.Key {
		v := row[col.Index]
		if v.Empty() {
			return dst, false
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		switch {
		case v.Form == record.Int:
			dst = v.AppendText(dst)
		case v.Form == record.Time:
			dst = append(dst, url.PathEscape(string(wire.AppendTime(nil, v)))...)
		case col.Field.Type == record.TypeBytes:
			dst = append(dst, url.PathEscape(base64.StdEncoding.EncodeToString([]byte(v.S)))...)
		default:
			dst = appendEscaped(dst, v.Text())
		}
	}
	return dst, true
}

// appendEscaped appends a segment of a path.
func appendEscaped(dst []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		if c < '0' && c != '-' || c > 'z' || c > '9' && c < 'A' || c > 'Z' && c < 'a' && c != '_' {
			return append(dst, url.PathEscape(s)...)
		}
	}
	return append(dst, s...)
}
