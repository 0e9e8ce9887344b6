package postgres

import (
	"math"
	"strconv"

	"github.com/jackc/pgx/v5/pgtype"

	"weir/internal/record"
)

// Parameters of an operator's statement have whatever type the server found for them, and callers give values of whatever
// form their protocol has. Texts go as texts, so that the server itself converts them and says what it cannot read.

// blankIsNull reports whether a type has no value that is written as an empty text. There the empty text is null, as it is
// in tables that weir makes.
func blankIsNull(oid uint32) bool {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.Float4OID, pgtype.Float8OID, pgtype.BoolOID,
		pgtype.DateOID, pgtype.TimeOID, pgtype.TimetzOID, pgtype.TimestampOID, pgtype.TimestamptzOID, pgtype.IntervalOID,
		pgtype.UUIDOID, pgtype.JSONOID, pgtype.JSONBOID, pgtype.OIDOID, pgtype.InetOID, pgtype.CIDROID:
		return true
	}
	return false
}

// plain writes values for parameters of any type.
func (e *encoder) plain(oids []uint32, values []record.Value) error {
	if len(values) != len(oids) {
		return record.Errorf(record.Internal, "", "%d values for a statement of %d parameters", len(values), len(oids))
	}
	for i, v := range values {
		at, format := len(e.buf), textFormat
		span := [2]int{at, -1}
		switch {
		case v.IsNull(), v.Form == record.Text && v.S == "" && blankIsNull(oids[i]):
		case v.Form == record.Ref:
			return record.Errorf(record.Internal, "", "a reference to another op reached the database")
		default:
			format = e.plainValue(oids[i], v)
			span[1] = len(e.buf)
		}
		e.spans, e.formats = append(e.spans, span), append(e.formats, format)
	}
	return nil
}

// plainValue writes one value and returns its format.
func (e *encoder) plainValue(oid uint32, v record.Value) int16 {
	switch {
	case oid == pgtype.ByteaOID && v.Form == record.Text,
		oid == pgtype.Int8OID && v.Form == record.Int,
		oid == pgtype.BoolOID && v.Form == record.Bool,
		oid == pgtype.Float8OID && v.Form == record.Num,
		(oid == pgtype.TimestampOID || oid == pgtype.TimestamptzOID) && v.Form == record.Time:
		e.binary(oid, v)
		return binaryFormat
	case v.Form == record.Bool && number(oid):
		e.buf = append(e.buf, byte('0'+v.N))
	case v.Form == record.Num:
		f := v.Float()
		if f == math.Trunc(f) && math.Abs(f) < 1e15 { // "1e+06" is no integer to the server
			e.buf = strconv.AppendInt(e.buf, int64(f), 10)
		} else {
			e.buf = strconv.AppendFloat(e.buf, f, 'g', -1, 64)
		}
	case v.Form == record.Time:
		at := len(e.buf)
		e.buf = v.AppendText(e.buf)
		if oid == pgtype.DateOID && len(e.buf) > at+10 {
			e.buf = e.buf[:at+10]
		}
	default:
		e.buf = v.AppendText(e.buf)
	}
	return textFormat
}

func number(oid uint32) bool {
	switch oid {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.NumericOID, pgtype.Float4OID, pgtype.Float8OID:
		return true
	}
	return false
}
