package ords

import (
	"bytes"
	"encoding/base64"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/autorest"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
)

// readBody reads the JSON object of a row. Links that a client sends back are left out.
func (q *tableCall) readBody() ([]record.Assign, error) {
	if kind, _, _ := strings.Cut(q.call.Header.Get("Content-Type"), ";"); kind != "" {
		kind = strings.ToLower(strings.TrimSpace(kind))
		if kind != jsonType && !strings.HasSuffix(kind, "+json") && kind != "text/json" && kind != "text/plain" {
			return nil, record.Errorf(record.Unsupported, "Content-Type", "%.80q cannot be read; %s can", kind, jsonType)
		}
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(q.call.Body))
	if dec.PeekKind() != '{' {
		return nil, record.Errorf(record.Invalid, "", "the body is one JSON object, with a member for each column").Because(dialect.ErrBody)
	}
	set := make([]record.Assign, 0, len(q.Columns))
	err := dialect.EachMember(dec, func(name string) error {
		if name == "links" {
			return dec.SkipValue()
		}
		col := q.Column(name)
		if col == nil {
			return record.Errorf(record.Invalid, name, "%s has no column %.80s", q.Alias, name)
		}
		v, err := dec.ReadValue()
		if err != nil {
			return err
		}
		value, err := jsonValue(col, v)
		set = append(set, record.Assign{Field: col.Field.Name, Value: value})
		return err
	})
	if err == nil {
		if _, more := dec.ReadToken(); more == nil {
			err = record.Errorf(record.Invalid, "", "something follows the object in the body")
		}
	}
	if e := (*record.Error)(nil); err != nil && !errors.As(err, &e) {
		return nil, record.Errorf(record.Invalid, "", "the body is no JSON object: %v", err).Because(dialect.ErrBody)
	}
	return set, err
}

// jsonValue reads the JSON of a column's value.
func jsonValue(col *autorest.Column, v jsontext.Value) (record.Value, error) {
	f := col.Field
	bad := func() (record.Value, error) {
		return record.Value{}, record.Errorf(record.Invalid, col.Name, "%.60s is not a valid %s", v, f.Type)
	}
	kind := v.Kind()
	switch {
	case kind == 'n':
		return record.Value{}, nil
	case f.Type == record.TypeJSON:
		return record.TextValue(string(v)), nil
	case kind == '{' || kind == '[':
		return bad()
	case kind == '"':
		text, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return bad()
		}
		value, ok := textValue(f, string(text))
		if !ok {
			return bad()
		}
		return value, nil
	case kind == 't' || kind == 'f':
		if f.Type != record.TypeBoolean && !(f.Type.Textual() && f.Type != record.TypeDate && f.Type != record.TypeBytes) {
			return bad()
		}
		value, err := record.Parse(f.Type, string(v))
		if err != nil {
			return bad()
		}
		return value, nil
	}
	value, ok := numberValue(f, string(v))
	if !ok {
		return bad()
	}
	return value, nil
}

// textValue reads a value of a field from text. The empty text is null where the field holds no text.
func textValue(f *catalog.Field, s string) (record.Value, bool) {
	switch {
	case f.Type == record.TypeBytes:
		b, err := base64.StdEncoding.DecodeString(s)
		return record.TextValue(string(b)), err == nil
	case f.Type.Textual() && f.Type != record.TypeDate:
		return record.TextValue(s), true
	}
	v, err := record.Parse(f.Type, s)
	if err != nil && f.Type != record.TypeDate && f.Type != record.TypeDateTime {
		return numberValue(f, strings.TrimSpace(s))
	}
	return v, err == nil
}

// numberValue reads a value of a field from a number as JSON writes it: 1e3 and 7.0 are whole numbers too.
func numberValue(f *catalog.Field, s string) (record.Value, bool) {
	switch f.Type {
	case record.TypeInteger, record.TypeDuration:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return record.IntValue(n), true
		}
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
			return record.Value{}, false
		}
		return record.IntValue(int64(n)), true
	case record.TypeDecimal:
		if v, err := record.Parse(f.Type, s); err == nil {
			return v, true
		}
		n, err := strconv.ParseFloat(s, 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return record.Value{}, false
		}
		return record.TextValue(strconv.FormatFloat(n, 'f', -1, 64)), true
	case record.TypeBytes, record.TypeDate, record.TypeDateTime:
		return record.Value{}, false
	}
	v, err := record.Parse(f.Type, s)
	return v, err == nil
}

// fits reports whether a value has the form of a field's values.
func fits(f *catalog.Field, v record.Value) bool {
	if f == nil {
		return false
	}
	switch f.Type {
	case record.TypeInteger, record.TypeDuration:
		return v.Form == record.Int || v.Form == record.Null
	case record.TypeFloat:
		return v.Form == record.Num || v.Form == record.Null
	case record.TypeBoolean:
		return v.Form == record.Bool || v.Form == record.Null
	case record.TypeDateTime:
		return v.Form == record.Time || v.Form == record.Null
	}
	return v.Form == record.Text || v.Form == record.Null
}
