package ords

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"

	"weir/internal/record"
	"weir/internal/wire"
)

// Answers of rows: the columns, then the links (protocol notes, section 5).

const jsonType = "application/json"

// appendColumns appends the members of a row, from its brace on.
func (s *shape) appendColumns(dst []byte, row []record.Value) []byte {
	for i := range s.members {
		dst = append(dst, s.members[i]...)
		dst = wire.AppendValue(dst, s.types[i], row[i])
	}
	return dst
}

// appendItem appends a row as the answer of one: with links self, edit, describedby and collection (section 5.2).
func (q *tableCall) appendItem(dst []byte, row []record.Value) []byte {
	dst = q.appendColumns(dst, row)
	dst = append(dst, `,"links":[`...)
	if address, ok := q.address(row); ok {
		dst = appendLink(dst, "self", address)
		if q.Update || q.Delete {
			dst = appendLink(dst, "edit", address)
		}
	}
	dst = appendLink(dst, "describedby", q.describedBy(true))
	dst = appendLink(dst, "collection", q.place())
	return append(dst, "]}"...)
}

// address is where a row is found, false if it has no key.
func (q *tableCall) address(row []record.Value) (string, bool) {
	b, ok := q.appendKey([]byte(q.place()), row)
	return string(b), ok
}

// The entity tag of a row is its version, or made from all of its values where it has none. It is strong and quoted; ours say what
// the version is, so that a change can be tied to it without another look at the row.

// tag is the entity tag of a row.
func (s *shape) tag(row []record.Value) string {
	if len(s.Version) == 0 {
		return rowHash(s, row)
	}
	b := []byte{'"'}
	for i, col := range s.Version {
		if i > 0 {
			b = append(b, '.')
		}
		b = base64.RawURLEncoding.AppendEncode(b, row[col.Index].AppendText(nil))
	}
	return string(append(b, '"'))
}

func rowHash(s *shape, row []record.Value) string {
	h := sha512.New()
	var head [13]byte
	for i := range s.Columns {
		v := &row[i]
		head[0] = byte(v.Form)
		binary.LittleEndian.PutUint64(head[1:], uint64(v.N))
		binary.LittleEndian.PutUint32(head[9:], uint32(len(v.S)))
		h.Write(head[:])
		h.Write([]byte(v.S))
	}
	return `"` + base64.StdEncoding.EncodeToString(h.Sum(nil)) + `"`
}

// conditions are what an op asks of the row so that its tag is one of those given. False: none of them can be the tag of a row.
func (s *shape) conditions(tags []string) ([]record.Condition, bool) {
	if len(tags) != 1 {
		return nil, false
	}
	parts := strings.Split(strings.Trim(tags[0], `"`), ".")
	if len(parts) != len(s.Version) {
		return nil, false
	}
	var list []record.Condition
	for i, col := range s.Version {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			return nil, false
		}
		v, err := record.Parse(col.Field.Type, string(text))
		if err != nil {
			return nil, false
		}
		list = append(list, record.Condition{Field: col.Field.Name, Values: []record.Value{v}})
	}
	return list, true
}

// unchanged are the conditions that a row is still as it was read.
func (s *shape) unchanged(row []record.Value) []record.Condition {
	list := make([]record.Condition, 0, len(s.Columns))
	for i, col := range s.Columns {
		list = append(list, record.Condition{Field: col.Field.Name, Values: []record.Value{row[i]}})
	}
	return list
}

// deleted answers a delete of n rows (protocol notes, section 8).
func (q *tableCall) deleted(a *wire.Answer, n int64) {
	q.document(a, 200)
	a.Body = append(strconv.AppendInt(append(a.Body, `{"rowsDeleted":`...), n, 10), '}')
}
