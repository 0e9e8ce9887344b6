package ords

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/record"
)

// values reads a list of values for a column.
func (p *filterParser) values(c *filterColumn) ([]record.Value, error) {
	if p.dec.PeekKind() != '[' {
		return nil, p.unexpected("a list of values")
	}
	p.dec.ReadToken()
	var list []record.Value
	for p.dec.PeekKind() != ']' {
		if len(list) > p.most {
			return nil, p.fault("there are more than %d values; see ords.max_conditions", p.most)
		}
		v, err := p.value(c)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return nil, p.broken(err)
	}
	return list, nil
}

// value reads a value for a column: a JSON scalar, or {"$date": time}.
func (p *filterParser) value(c *filterColumn) (record.Value, error) {
	switch p.dec.PeekKind() {
	case '{':
		p.dec.ReadToken()
		t, err := p.dec.ReadToken()
		if err != nil {
			return record.Value{}, p.broken(err)
		}
		if name := t.String(); t.Kind() != '"' || name != "$date" && name != "$timestamp" {
			return record.Value{}, p.fault("a value is a scalar or {\"$date\": time}")
		}
		v, err := p.moment(c)
		if err != nil {
			return record.Value{}, err
		}
		if t, err = p.dec.ReadToken(); err != nil {
			return record.Value{}, p.broken(err)
		}
		if t.Kind() != '}' {
			return record.Value{}, p.fault("a date has no other members")
		}
		return v, nil
	case '"', '0', 't', 'f', 'n':
	default:
		return record.Value{}, p.unexpected("a value")
	}
	t, err := p.dec.ReadToken()
	if err != nil {
		return record.Value{}, p.broken(err)
	}
	if t.Kind() == 'n' {
		return record.Value{}, nil
	}
	v, err := scalar(c.Type, t)
	if err != nil {
		return v, p.fault("%s", record.AsError(err).Msg)
	}
	return v, nil
}

// scalar is a JSON scalar as a value of a type.
func scalar(typ record.Type, t jsontext.Token) (record.Value, error) {
	if typ != untyped {
		text := t.String()
		if typ == record.TypeInteger && t.Kind() == '0' {
			if v, err := record.Parse(typ, text); err == nil {
				return v, nil
			}
			typ = record.TypeFloat // an integer may be compared with 1.5
		}
		if typ == record.TypeDecimal && t.Kind() == '0' && strings.ContainsAny(text, "eE") {
			typ = record.TypeFloat
		}
		return record.Parse(typ, text)
	}
	switch t.Kind() {
	case '0':
		if v, err := record.Parse(record.TypeInteger, t.String()); err == nil {
			return v, nil
		}
		return record.Parse(record.TypeFloat, t.String())
	case 't', 'f':
		return record.BoolValue(t.Bool()), nil
	}
	return record.TextValue(t.String()), nil
}

// moment reads the time of $date.
func (p *filterParser) moment(c *filterColumn) (record.Value, error) {
	t, err := p.dec.ReadToken()
	if err != nil {
		return record.Value{}, p.broken(err)
	}
	if t.Kind() != '"' {
		return record.Value{}, p.fault("a date is a text in RFC 3339")
	}
	tm, ok := parseMoment(t.String())
	if !ok {
		return record.Value{}, p.fault("%.60q is no date in RFC 3339", t.String())
	}
	switch c.Type {
	case record.TypeDateTime, untyped:
		return record.TimeValue(tm), nil
	case record.TypeDate:
		return record.TextValue(tm.Format(time.DateOnly)), nil
	}
	return record.Value{}, p.fault("the column is no date")
}

// parseMoment reads a time in RFC 3339, or a date.
func parseMoment(s string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00"} {
		if tm, err := time.Parse(layout, s); err == nil {
			return tm.UTC(), true
		}
	}
	return time.Time{}, false
}
