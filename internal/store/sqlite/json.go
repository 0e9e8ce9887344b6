package sqlite

import (
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/wire"
)

// jsonSubtype marks a text as JSON to SQLite's functions of JSON.
const jsonSubtype = 'J'

// jsonValue is store.JSONFunction: the first argument, a column of the type that the second one names ("" for unknown), as JSON.
func jsonValue(ctx sqlite3.Context, arg ...sqlite3.Value) {
	t, ok := record.ParseType(view(arg[1].RawText()))
	if !ok {
		t = store.Untyped
	}
	v := argument(arg[0], t)
	if v.IsNull() {
		return
	}
	if arg[0].Type() == sqlite3.BLOB {
		t = record.TypeBytes
	}
	ctx.ResultRawText(wire.AppendValue(make([]byte, 0, 32), t, v))
	ctx.ResultSubtype(jsonSubtype)
}

// argument reads a value as column does.
func argument(v sqlite3.Value, t record.Type) record.Value {
	switch v.Type() {
	case sqlite3.NULL:
		return record.Value{}
	case sqlite3.INTEGER:
		n := v.Int64()
		switch t {
		case record.TypeBoolean:
			return record.BoolValue(n != 0)
		case record.TypeFloat:
			return record.NumValue(float64(n))
		case record.TypeDateTime:
			return record.Value{Form: record.Time, N: n * 1_000_000}
		case record.TypeDecimal:
			return record.TextValue(strconv.FormatInt(n, 10))
		}
		return record.IntValue(n)
	case sqlite3.FLOAT:
		if t == record.TypeDecimal {
			return record.TextValue(strconv.FormatFloat(v.Float(), 'f', -1, 64))
		}
		return record.NumValue(v.Float())
	case sqlite3.BLOB:
		return record.TextValue(string(v.RawBlob()))
	}
	s := string(v.RawText())
	switch {
	case t == store.Untyped, t.Textual(), t == record.TypeDecimal:
		return record.TextValue(s)
	case t == record.TypeDateTime:
		if n, ok := parseMicros(s); ok {
			return record.Value{Form: record.Time, N: n}
		}
	}
	if parsed, err := record.Parse(t, s); err == nil {
		return parsed
	}
	return record.TextValue(s)
}
