package ords

import (
	"math"
	"mime"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"weir/internal/autorest"
	"weir/internal/record"
)

// loadOptions are the parameters of a batch load (protocol notes, section 10).
type loadOptions struct {
	csvFormat
	batch    int   // rows of a group
	errors   int64 // rows that may be wrong before the load ends
	truncate bool
	sql      bool // wrong rows are echoed as INSERT statements
	latin1   bool // encoding of the answer
	date     string
	stamp    string
	zoned    string
}

var loadNames = []string{
	"batchRows", "delimiter", "enclosures", "errors", "errorsMax", "lineEnd", "lineMax", "locale", "dateFormat", "timestampFormat",
	"timestampTZFormat", "responseEncoding", "responseFormat", "truncate",
}

// loadOptions reads the parameters.
func (q *tableCall) loadOptions() (*loadOptions, error) {
	o := &loadOptions{
		csvFormat: csvFormat{delimiter: []byte{','}, left: '"', right: '"', most: q.opt.Load.Line},
		batch:     q.opt.Load.Rows, errors: math.MaxInt64,
	}
	for _, p := range q.query {
		bad := func(format string, args ...any) error { return record.Errorf(record.Invalid, p.name, format, args...) }
		v := p.value
		switch p.name {
		case "batchRows":
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 {
				return nil, bad("%.40q is not a number of rows", v)
			}
			o.batch = n
		case "delimiter":
			if o.delimiter = unescaped(v); len(o.delimiter) == 0 || len(o.delimiter) > 8 {
				return nil, bad("a delimiter is 1 to 8 characters, not %.40q", v)
			}
		case "enclosures":
			switch {
			case v == "":
				o.left, o.right = 0, 0
			case len(v) == 1:
				o.left, o.right = v[0], v[0]
			case len(v) == 2:
				o.left, o.right = v[0], v[1]
			default:
				return nil, bad("enclosures are one character, or a left and a right one, not %.40q", v)
			}
		case "errors", "errorsMax":
			n := int64(math.MaxInt64)
			if !strings.EqualFold(v, "unlimited") && v != "-1" {
				var err error
				if n, err = strconv.ParseInt(v, 10, 64); err != nil || n < 0 {
					return nil, bad("%.40q is not a number of rows, -1 or UNLIMITED", v)
				}
			}
			o.errors = min(o.errors, n)
		case "lineEnd":
			if o.end = unescaped(v); len(o.end) == 0 || len(o.end) > 8 {
				return nil, bad("a terminator is 1 to 8 characters, not %.40q", v)
			}
			if s := string(o.end); s == "\n" || s == "\r\n" || s == "\r" {
				o.end = nil
			}
		case "lineMax":
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 {
				return nil, bad("%.40q is not a number of bytes", v)
			}
			o.most = min(o.most, n)
		case "locale":
			if len(v) > 40 || strings.ContainsFunc(v, func(r rune) bool { return r > 'z' || r < '-' }) {
				return nil, bad("%.40q is no locale", v)
			}
		case "dateFormat", "timestampFormat", "timestampTZFormat":
			layout, err := layoutOf(p.name, v)
			if err != nil {
				return nil, err
			}
			switch p.name {
			case "dateFormat":
				o.date = layout
			case "timestampFormat":
				o.stamp = layout
			default:
				o.zoned = layout
			}
		case "responseEncoding":
			switch strings.ToUpper(v) {
			case "UTF-8", "UTF8":
			case "ISO-8859-1", "LATIN1":
				o.latin1 = true
			default:
				return nil, bad("%.40q is not UTF-8 or ISO-8859-1", v)
			}
		case "responseFormat":
			switch strings.ToUpper(v) {
			case "RAW":
			case "SQL":
				o.sql = true
			default:
				return nil, bad("%.40q is not RAW or SQL", v)
			}
		case "truncate":
			switch strings.ToLower(v) {
			case "false":
			case "true", "truncate":
				o.truncate = true
			default:
				return nil, bad("%.40q is not false, true or truncate", v)
			}
		default:
			return nil, bad("a batch load has no such parameter; it has %s", strings.Join(loadNames, ", "))
		}
	}
	if o.left != 0 && (o.delimiter[0] == o.left || o.delimiter[0] == o.right) {
		return nil, record.Errorf(record.Invalid, "delimiter", "it begins with an enclosure")
	}
	kind, params, err := mime.ParseMediaType(q.call.Header.Get("Content-Type"))
	if header := q.call.Header.Get("Content-Type"); header != "" {
		charset := strings.ToUpper(params["charset"])
		if err != nil || kind != "text/csv" && kind != "text/plain" && kind != "application/octet-stream" && kind != "application/csv" {
			return nil, record.Errorf(record.Unsupported, "Content-Type", "%.80q cannot be read; text/csv can", header)
		}
		if charset != "" && charset != "UTF-8" && charset != "US-ASCII" {
			return nil, record.Errorf(record.Unsupported, "Content-Type", "the charset %.40s cannot be read; UTF-8 can", charset)
		}
	}
	return o, nil
}

// unescaped is a text in which \t, \r, \n and \\ stand for what they say.
func unescaped(s string) []byte {
	return []byte(strings.NewReplacer(`\t`, "\t", `\r`, "\r", `\n`, "\n", `\\`, `\`).Replace(s))
}

// loadColumn is a column of the file.
type loadColumn struct {
	*autorest.Column
	layout string // of times, "" for what is read anywhere else
	text   bool   // any text is a value
}

func (o *loadOptions) column(col *autorest.Column) loadColumn {
	c := loadColumn{Column: col}
	f := col.Field
	switch {
	case f.Type == record.TypeDate:
		c.layout = o.date
	case f.Type == record.TypeDateTime && strings.Contains(f.Native, "with time zone") && o.zoned != "":
		c.layout = o.zoned
	case f.Type == record.TypeDateTime && o.stamp != "":
		c.layout = o.stamp
	case f.Type == record.TypeDateTime:
		c.layout = o.date
	}
	c.text = f.Type.Textual() && f.Type != record.TypeDate && f.Type != record.TypeBytes
	return c
}

// value reads a field of the file. An empty one is null, unless it is enclosed. False: it is no value of the column.
func (c *loadColumn) value(text string, enclosed bool) (record.Value, bool) {
	switch {
	case text == "" && !(enclosed && c.text):
		return record.Value{}, true
	case c.text:
		return record.TextValue(text), utf8.ValidString(text)
	case c.layout != "":
		t, err := time.Parse(c.layout, text)
		if err != nil {
			return record.Value{}, false
		}
		if c.Field.Type == record.TypeDate {
			return record.TextValue(t.Format(time.DateOnly)), true
		}
		return record.TimeValue(t), true
	}
	return textValue(c.Field, text)
}
