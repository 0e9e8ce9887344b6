package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"math"

	"github.com/jackc/pgx/v5/pgtype"

	"weir/internal/record"
	"weir/internal/store"
)

// elements are the element types of the arrays that are sent in binary form; all others go as text.
var elements = map[uint32]uint32{
	pgtype.TextArrayOID: pgtype.TextOID, pgtype.VarcharArrayOID: pgtype.VarcharOID, pgtype.Int8ArrayOID: pgtype.Int8OID,
	pgtype.BoolArrayOID: pgtype.BoolOID, pgtype.Float8ArrayOID: pgtype.Float8OID, pgtype.TimestampArrayOID: pgtype.TimestampOID,
	pgtype.TimestamptzArrayOID: pgtype.TimestamptzOID, pgtype.ByteaArrayOID: pgtype.ByteaOID,
}

// binaryType reports whether values of a field type are sent in binary form to a parameter of type oid. A reference to a
// number, for one, is a text here and goes as such.
func binaryType(t record.Type, oid uint32) bool {
	switch oid {
	case pgtype.TextOID, pgtype.VarcharOID:
		return true
	case pgtype.Int8OID:
		return t == record.TypeInteger || t == record.TypeDuration
	case pgtype.BoolOID:
		return t == record.TypeBoolean
	case pgtype.Float8OID:
		return t == record.TypeFloat
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		return t == record.TypeDateTime
	case pgtype.ByteaOID:
		return t == record.TypeBytes
	}
	return false
}

// encoder writes the arguments of one statement. Its memory is used again for the next.
type encoder struct {
	buf     []byte
	spans   [][2]int // in buf; negative: null
	values  [][]byte
	formats []int16
}

// encode writes the arguments of a step, whose types on the server are oids. The error is Invalid and names the field
// where it is known.
func (e *encoder) encode(oids []uint32, s *step) error {
	st, args := s.st, s.args
	e.buf, e.spans, e.values, e.formats = e.buf[:0], e.spans[:0], e.values[:0], e.formats[:0]
	if s.plain {
		if err := e.plain(oids, s.values); err != nil {
			return err
		}
	}
	for i := range args {
		oid, at, format := oids[i], len(e.buf), textFormat
		var err error
		null := false
		if p := &st.Params[i]; p.Array {
			if elem := elements[oid]; binaryType(p.Type, elem) {
				format, err = binaryFormat, e.array(p, elem, &args[i])
			} else {
				err = e.literal(p, &args[i])
			}
		} else {
			v, fault := store.Fit(p.Type, args[i].Value)
			err, null = fault, v.IsNull()
			if binaryType(p.Type, oid) {
				format = binaryFormat
				e.binary(oid, v)
			} else {
				e.text(p.Type, v)
			}
		}
		if err != nil {
			if a := &args[i]; a.Rows != nil && a.Col < len(s.fields) {
				return record.AsError(err).At(s.fields[a.Col])
			}
			return err
		}
		span := [2]int{at, len(e.buf)}
		if null {
			span[1] = -1
		}
		e.spans, e.formats = append(e.spans, span), append(e.formats, format)
	}
	for _, s := range e.spans {
		if s[1] < 0 {
			e.values = append(e.values, nil)
		} else {
			e.values = append(e.values, e.buf[s[0]:s[1]:s[1]])
		}
	}
	return nil
}

// array writes a one-dimensional array in binary form: dimensions, a flag for nulls, the element type, length, lower
// bound, then each element after its length (-1: null).
func (e *encoder) array(p *store.Param, elem uint32, a *store.Arg) error {
	n := a.Len()
	e.int32(1)
	flag := len(e.buf)
	e.int32(0)
	e.int32(int32(elem))
	e.int32(int32(n))
	e.int32(1)
	for i := range n {
		v, err := store.Fit(p.Type, a.At(i))
		if err != nil {
			return err
		}
		if v.IsNull() {
			binary.BigEndian.PutUint32(e.buf[flag:], 1)
			e.int32(-1)
			continue
		}
		at := len(e.buf)
		e.int32(0)
		e.binary(elem, v)
		binary.BigEndian.PutUint32(e.buf[at:], uint32(len(e.buf)-at-4))
	}
	return nil
}

func (e *encoder) int32(n int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(n)) }

func (e *encoder) int64(n int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(n)) }

// binary writes a value that fits its parameter.
func (e *encoder) binary(oid uint32, v record.Value) {
	switch oid {
	case pgtype.Int8OID:
		e.int64(v.N)
	case pgtype.BoolOID:
		e.buf = append(e.buf, byte(v.N))
	case pgtype.Float8OID:
		e.int64(int64(math.Float64bits(v.Float())))
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		e.int64(v.N - sinceUnix)
	case pgtype.ByteaOID:
		e.buf = append(e.buf, v.S...)
	default:
		e.buf = v.AppendText(e.buf)
	}
}

// text writes a value as the server reads it in a text.
func (e *encoder) text(t record.Type, v record.Value) {
	if t == record.TypeBytes {
		e.buf = append(e.buf, `\x`...)
		e.buf = hex.AppendEncode(e.buf, []byte(v.S))
		return
	}
	e.buf = v.AppendText(e.buf)
}

// literal writes an array as text: {"a","b",NULL}.
func (e *encoder) literal(p *store.Param, a *store.Arg) error {
	e.buf = append(e.buf, '{')
	for i := range a.Len() {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		v, err := store.Fit(p.Type, a.At(i))
		if err != nil {
			return err
		}
		if v.IsNull() {
			e.buf = append(e.buf, "NULL"...)
			continue
		}
		e.buf = append(e.buf, '"')
		at := len(e.buf)
		e.text(p.Type, v)
		for j := at; j < len(e.buf); j++ {
			if c := e.buf[j]; c == '"' || c == '\\' {
				e.buf = append(e.buf, 0)
				copy(e.buf[j+1:], e.buf[j:])
				e.buf[j] = '\\'
				j++
			}
		}
		e.buf = append(e.buf, '"')
	}
	e.buf = append(e.buf, '}')
	return nil
}
