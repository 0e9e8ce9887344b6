package sqlite

import (
	"encoding/base64"
	"strconv"
	"unsafe"

	"github.com/ncruces/go-sqlite3"

	"weir/internal/record"
	"weir/internal/store"
)

// bind gives parameter i (from 1) a value that Fit has passed.
func (c *conn) bind(p *prepared, i int, t record.Type, v record.Value) error {
	switch v.Form {
	case record.Bool, record.Int:
		return p.BindInt64(i, v.N)
	case record.Num:
		return p.BindFloat(i, v.Float())
	case record.Text:
		if t == record.TypeBytes {
			return p.BindBlob(i, []byte(v.S))
		}
		return p.BindText(i, v.S)
	case record.Time:
		c.scratch = v.AppendText(c.scratch[:0])
		return p.BindRawText(i, c.scratch)
	}
	return p.BindNull(i)
}

// bindArgs binds the arguments of a read.
func (c *conn) bindArgs(p *prepared, st *store.Statement, args []store.Arg) error {
	for i := range args {
		t := st.Params[i].Type
		if !st.Params[i].Array {
			if err := c.bind(p, i+1, t, args[i].Value); err != nil {
				return err
			}
			continue
		}
		list, err := appendList(c.scratch[:0], t, &args[i])
		if err != nil {
			return err
		}
		c.scratch = list
		if err := p.BindRawText(i+1, list); err != nil {
			return err
		}
	}
	return nil
}

// appendList writes a list as a JSON array, which json_each takes apart again.
func appendList(dst []byte, t record.Type, a *store.Arg) ([]byte, error) {
	if t == record.TypeBytes {
		return dst, record.Errorf(record.Invalid, "", "bytes cannot be looked up in a list")
	}
	dst = append(dst, '[')
	for i := range a.Len() {
		if i > 0 {
			dst = append(dst, ',')
		}
		v, err := store.Fit(t, a.At(i))
		if err != nil {
			return dst, err
		}
		switch v.Form {
		case record.Null:
			dst = append(dst, "null"...)
		case record.Bool, record.Int:
			dst = strconv.AppendInt(dst, v.N, 10)
		case record.Num:
			dst = strconv.AppendFloat(dst, v.Float(), 'e', -1, 64)
		case record.Time:
			dst = append(dst, '"')
			dst = v.AppendText(dst)
			dst = append(dst, '"')
		default:
			dst = appendQuoted(dst, v.S)
		}
	}
	return append(dst, ']'), nil
}

const hex = "0123456789abcdef"

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// column reads column i of the current row. Its text is a view, valid until the statement moves. A stored value that is
// not of the field's type, as only tables of others hold, is read as record.Parse would, or else as its text.
func column(p *prepared, i int, t record.Type) record.Value {
	switch p.ColumnType(i) {
	case sqlite3.NULL:
		return record.Value{}
	case sqlite3.INTEGER:
		n := p.ColumnInt64(i)
		switch t {
		case record.TypeInteger, record.TypeDuration:
			return record.IntValue(n)
		case record.TypeBoolean:
			return record.BoolValue(n != 0)
		case record.TypeFloat:
			return record.NumValue(float64(n))
		case store.Untyped:
			return record.IntValue(n)
		case record.TypeDateTime: // seconds since 1970, as tables of others may hold it
			return record.Value{Form: record.Time, N: n * 1_000_000}
		}
	case sqlite3.FLOAT:
		f := p.ColumnFloat(i)
		switch t {
		case record.TypeFloat, store.Untyped:
			return record.NumValue(f)
		case record.TypeInteger, record.TypeDuration:
			if n := int64(f); float64(n) == f {
				return record.IntValue(n)
			}
			return record.NumValue(f)
		case record.TypeDecimal:
			return record.TextValue(strconv.FormatFloat(f, 'f', -1, 64))
		}
	case sqlite3.BLOB:
		if t == store.Untyped { // nothing else says that these are bytes
			return record.TextValue(base64.StdEncoding.EncodeToString(p.ColumnRawBlob(i)))
		}
		return record.TextValue(view(p.ColumnRawBlob(i)))
	}
	s := view(p.ColumnRawText(i))
	switch {
	case t == record.TypeDateTime:
		if n, ok := parseMicros(s); ok {
			return record.Value{Form: record.Time, N: n}
		}
	case t.Textual(), t == record.TypeDecimal, t == store.Untyped:
		return record.TextValue(s)
	}
	if v, err := record.Parse(t, s); err == nil {
		return v
	}
	return record.TextValue(s)
}

func view(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return unsafe.String(&b[0], len(b))
}

// parseMicros reads "YYYY-MM-DD hh:mm:ss[.ffffff]" by arithmetic, in microseconds since 1970.
func parseMicros(s string) (int64, bool) {
	if len(s) < 19 || len(s) > 26 || len(s) == 20 || s[4] != '-' || s[7] != '-' || s[10] != ' ' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	ok := true
	digits := func(from, to int) int64 {
		var n int64
		for _, c := range []byte(s[from:to]) {
			if c < '0' || c > '9' {
				ok = false
			}
			n = n*10 + int64(c-'0')
		}
		return n
	}
	y, m, d := digits(0, 4), digits(5, 7), digits(8, 10)
	seconds := digits(11, 13)*3600 + digits(14, 16)*60 + digits(17, 19)
	var frac int64
	if len(s) > 19 {
		if s[19] != '.' {
			return 0, false
		}
		frac = digits(20, len(s))
		for i := len(s); i < 26; i++ {
			frac *= 10
		}
	}
	if !ok || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, false
	}
	// Days since 1970-01-01 in the Gregorian calendar, by eras of 400 years that begin on 1 March.
	if m <= 2 {
		y--
		m += 12
	}
	era := y / 400
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	days := era*146097 + doe - 719468
	return (days*86400+seconds)*1_000_000 + frac, true
}
