package ords

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// members are the values of a body by name: the members of a JSON object, or the fields of a form (protocol notes, section 3).
type members struct{ list []member }

type member struct {
	name string
	kind jsontext.Kind // of JSON; '"' of a form's field
	text string        // of an array or object its JSON
	file bool          // of a form: it is the content of a file
}

func (m *members) find(name string) *member {
	for i := range m.list {
		if m.list[i].name == name {
			return &m.list[i]
		}
	}
	return nil
}

// value is a member as the value of a bind.
func (m *member) value(b *bind) (record.Value, error) {
	if m.kind == 'n' {
		return record.Value{}, nil
	}
	if b.typ != untyped {
		return textFor(b, m.text)
	}
	switch m.kind {
	case 't', 'f':
		return record.BoolValue(m.kind == 't'), nil
	case '0':
		if v, err := record.Parse(record.TypeInteger, m.text); err == nil {
			return v, nil
		}
		return record.Parse(record.TypeFloat, m.text)
	}
	return textOrNull(m.text), nil
}

var byteOrderMark = []byte("\ufeff")

// readMembers reads a body of a type that has members; of others there are none.
func readMembers(c *dialect.Call) (*members, error) {
	body := bytes.TrimPrefix(c.Body, byteOrderMark)
	switch kind := mediaType(c.Header.Get("Content-Type")); {
	case kind == "application/x-www-form-urlencoded":
		fields, err := parseParams(string(body))
		if err != nil {
			return nil, err
		}
		m := &members{}
		for _, f := range fields {
			m.list = append(m.list, member{name: f.name, kind: '"', text: f.value})
		}
		return m, nil
	case kind == "multipart/form-data":
		return readMultipart(c)
	case kind == "application/json", strings.HasSuffix(kind, "+json"), kind == "" && bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")):
		return readObject(body)
	}
	return &members{}, nil
}

// readObject reads the members of a JSON object.
func readObject(body []byte) (*members, error) {
	m := &members{}
	if len(bytes.TrimSpace(body)) == 0 {
		return m, nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(body))
	t, err := dec.ReadToken()
	if err != nil {
		return nil, badJSON(err)
	}
	if t.Kind() != '{' {
		return nil, record.Errorf(record.Invalid, "", "the body is not a JSON object").Because(dialect.ErrBody)
	}
	for {
		if t, err = dec.ReadToken(); err != nil {
			return nil, badJSON(err)
		}
		if t.Kind() == '}' {
			break
		}
		x := member{name: t.String(), kind: dec.PeekKind()}
		if x.kind == '{' || x.kind == '[' {
			v, err := dec.ReadValue()
			if err != nil {
				return nil, badJSON(err)
			}
			x.text = string(v)
		} else {
			if t, err = dec.ReadToken(); err != nil {
				return nil, badJSON(err)
			}
			x.text = t.String()
		}
		m.list = append(m.list, x)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, record.Errorf(record.Invalid, "", "something follows the JSON object of the body").Because(dialect.ErrBody)
	}
	return m, nil
}

func badJSON(err error) error {
	e := record.Errorf(record.Invalid, "", "the body is not valid JSON: it ends too early")
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		e.Msg = record.Errorf(record.Invalid, "", "the body is not valid JSON at byte %d: %s", syntactic.ByteOffset, syntactic.Err).Msg
	}
	return e.Because(dialect.ErrBody)
}

// isObject checks that a q is a JSON object.
func isObject(text string) error {
	if v := jsontext.Value(text); !v.IsValid() || v.Kind() != '{' {
		return record.Errorf(record.Invalid, "q", "it is not a JSON object")
	}
	return nil
}

func readMultipart(c *dialect.Call) (*members, error) {
	fault := func(err error) error {
		return record.Errorf(record.Invalid, "", "the body is not multipart/form-data as its content type says: %.120s", err.Error()).Because(dialect.ErrBody)
	}
	_, params, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil {
		return nil, fault(err)
	}
	if params["boundary"] == "" {
		return nil, fault(errors.New("it names no boundary"))
	}
	m := &members{}
	r := multipart.NewReader(bytes.NewReader(c.Body), params["boundary"])
	for {
		part, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		if err != nil {
			return nil, fault(err)
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return nil, fault(err)
		}
		if name := part.FormName(); name != "" {
			m.list = append(m.list, member{name: name, kind: '"', text: string(text), file: part.FileName() != ""})
		}
	}
}

// formAsJSON is :body_json: the fields of a multipart form, without its files, as a JSON object. Null when the body is none.
func formAsJSON(c *dialect.Call) (record.Value, error) {
	if mediaType(c.Header.Get("Content-Type")) != "multipart/form-data" {
		return record.Value{}, nil
	}
	m, err := readMultipart(c)
	if err != nil {
		return record.Value{}, err
	}
	b := []byte{'{'}
	for i := range m.list {
		x := &m.list[i]
		if x.file || m.find(x.name) != x {
			continue // of several with one name the first counts, as for binds
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(wire.AppendQuote(b, x.name), ':')
		b = wire.AppendQuote(b, x.text)
	}
	return record.TextValue(string(append(b, '}'))), nil
}
