package postgres

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"weir/internal/record"
	"weir/internal/store"
)

// reader says how the bytes of a column become a value. Columns whose binary form is plain are asked for in it.
type reader uint8

const (
	readText reader = iota // the server's text, as it is
	readInt2               // binary …
	readInt4
	readInt8
	readBool
	readFloat4
	readFloat8
	readTime
	readBytes
	parseText // text, to be parsed as the field's type
)

// column is how one column of a statement is read.
type column struct {
	reader reader
	typ    record.Type
}

// binaryFormat and textFormat are the protocol's codes.
const (
	textFormat   int16 = 0
	binaryFormat int16 = 1
)

// columnOf finds the way from a column's own type to the form of a field type.
func columnOf(t record.Type, oid uint32) (column, int16) {
	binaryOf := func(r reader) (column, int16) { return column{r, t}, binaryFormat }
	switch t {
	case record.TypeInteger, record.TypeDuration, record.TypeFloat:
		switch oid {
		case pgtype.Int2OID:
			return binaryOf(readInt2)
		case pgtype.Int4OID:
			return binaryOf(readInt4)
		case pgtype.Int8OID:
			return binaryOf(readInt8)
		case pgtype.Float4OID:
			return binaryOf(readFloat4)
		case pgtype.Float8OID:
			return binaryOf(readFloat8)
		}
	case record.TypeBoolean:
		if oid == pgtype.BoolOID {
			return binaryOf(readBool)
		}
	case record.TypeDateTime:
		if oid == pgtype.TimestampOID || oid == pgtype.TimestamptzOID {
			return binaryOf(readTime)
		}
	case record.TypeBytes:
		if oid == pgtype.ByteaOID {
			return binaryOf(readBytes)
		}
	case record.TypeDecimal:
		return column{readText, t}, textFormat
	}
	if t.Textual() {
		return column{readText, t}, textFormat
	}
	return column{parseText, t}, textFormat
}

// sinceUnix is the microseconds from 1970 to 2000, where PostgreSQL counts from.
const sinceUnix = 946684800_000000

// The times that a value can hold; infinity becomes the nearest of them.
const (
	minTime = -62135596800_000000
	maxTime = 253402300799_999999
)

// value reads one column. Texts alias b.
func (c column) value(b []byte) (record.Value, error) {
	if b == nil {
		return record.Value{}, nil
	}
	var n int64
	switch c.reader {
	case readText, readBytes:
		return record.Value{Form: record.Text, S: alias(b)}, nil
	case readInt2:
		n = int64(int16(binary.BigEndian.Uint16(b)))
	case readInt4:
		n = int64(int32(binary.BigEndian.Uint32(b)))
	case readInt8:
		n = int64(binary.BigEndian.Uint64(b))
	case readBool:
		return record.Value{Form: record.Bool, N: int64(b[0])}, nil
	case readFloat4:
		return c.number(float64(math.Float32frombits(binary.BigEndian.Uint32(b)))), nil
	case readFloat8:
		return c.number(math.Float64frombits(binary.BigEndian.Uint64(b))), nil
	case readTime:
		return record.Value{Form: record.Time, N: readMicros(int64(binary.BigEndian.Uint64(b)))}, nil
	default:
		return record.Parse(c.typ, string(b))
	}
	if c.typ == record.TypeFloat {
		return record.NumValue(float64(n)), nil
	}
	return record.IntValue(n), nil
}

// number is a float in the form of the field's type.
func (c column) number(f float64) record.Value {
	if c.typ == record.TypeFloat {
		return record.NumValue(f)
	}
	return record.IntValue(int64(f))
}

func readMicros(n int64) int64 {
	switch {
	case n > maxTime-sinceUnix:
		return maxTime
	case n < minTime-sinceUnix:
		return minTime
	}
	return n + sinceUnix
}

func alias(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

// typeOf is the field type of a column whose statement does not say it. The server writes the values of all other types as
// text.
func typeOf(oid uint32) record.Type {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		return record.TypeInteger
	case pgtype.NumericOID:
		return record.TypeDecimal
	case pgtype.Float4OID, pgtype.Float8OID:
		return record.TypeFloat
	case pgtype.BoolOID:
		return record.TypeBoolean
	case pgtype.TimestampOID, pgtype.TimestamptzOID:
		return record.TypeDateTime
	case pgtype.DateOID:
		return record.TypeDate
	case pgtype.JSONOID, pgtype.JSONBOID:
		return record.TypeJSON
	case pgtype.ByteaOID:
		return record.TypeBytes
	}
	return record.TypeString
}

// columnsOf is how the columns of a prepared statement are read, and the formats to ask for. skip is the number of
// leading columns that are not of out.
func columnsOf(fields []pgconn.FieldDescription, st *store.Statement) ([]column, []int16) {
	columns, formats := make([]column, len(fields)), make([]int16, len(fields))
	skip := 0
	if st.Ordinal {
		skip = 1
	}
	for i := range fields {
		t := store.Untyped
		switch {
		case i < skip:
			t = record.TypeInteger
		case i-skip < len(st.Out):
			t = st.Out[i-skip].Type
		}
		if t == store.Untyped {
			t = typeOf(fields[i].DataTypeOID)
		}
		columns[i], formats[i] = columnOf(t, fields[i].DataTypeOID)
	}
	return columns, formats
}
