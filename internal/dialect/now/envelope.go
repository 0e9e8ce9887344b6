package now

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// envelope is a batch as its body says it.
type envelope struct {
	id      string
	ordered bool
	items   []dialect.Item
	bare    []bool // by item: the answer has no headers
}

// readEnvelope reads the body of a batch, leniently as real clients need it: numbers for ids, single quotes, white space in
// base64, no headers, members that nobody knows. A fault of one item is that item's Err. The error is Invalid when the body is no
// object with an array rest_requests, and TooLarge when that holds more than most items.
func readEnvelope(body []byte, most int) (*envelope, error) {
	env, err := parseEnvelope(body, most)
	if err != nil && record.KindOf(err) != record.TooLarge && bytes.IndexByte(body, '\'') >= 0 {
		if again, errAgain := parseEnvelope(requote(body), most); errAgain == nil || record.KindOf(errAgain) == record.TooLarge {
			env, err = again, errAgain
		}
	}
	var known *record.Error
	if err != nil && !errors.As(err, &known) {
		err = record.Errorf(record.Invalid, "", "%.200s", err.Error()).Because(dialect.ErrBody)
	}
	return env, err
}

// envelopeReader reads one envelope. Bodies are decoded into one piece of memory; texts that come again are held once.
type envelopeReader struct {
	dec     *jsontext.Decoder
	size    int
	most    int
	bodies  []byte
	strings map[string]string
	scratch []byte
	fields  []wire.HeaderField // headers of many items in one piece
}

func parseEnvelope(body []byte, most int) (*envelope, error) {
	r := &envelopeReader{
		dec:  jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		size: len(body), most: most, strings: map[string]string{},
	}
	env := &envelope{}
	if r.dec.PeekKind() != '{' {
		if _, err := r.dec.ReadToken(); err != nil {
			return nil, err
		}
		return nil, errors.New("a batch is a JSON object")
	}
	found := false
	err := r.members(func(name string) error {
		switch name {
		case "batch_request_id":
			return r.text(&env.id)
		case "enforce_order":
			return r.truth(&env.ordered)
		case "rest_requests":
			if r.dec.PeekKind() != '[' {
				return errors.New("rest_requests is no array")
			}
			found = true
			return r.items(env)
		}
		return r.dec.SkipValue()
	})
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.ReadToken(); err != io.EOF {
		return nil, errors.New("something follows the JSON object")
	}
	if !found {
		return nil, errors.New("rest_requests is missing")
	}
	return env, nil
}

// members reads an object and lets each read the value of every member.
func (r *envelopeReader) members(each func(name string) error) error {
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for r.dec.PeekKind() == '"' {
		raw, err := r.dec.ReadValue()
		if err != nil {
			return err
		}
		name, err := r.keep(raw)
		if err != nil {
			return err
		}
		if err := each(name); err != nil {
			return err
		}
	}
	_, err := r.dec.ReadToken()
	return err
}

func (r *envelopeReader) items(env *envelope) error {
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	// Every item has a url, so this is about how many there are; growing the slices would copy them many times over.
	n := min(bytes.Count(r.dec.UnreadBuffer(), []byte(`"url"`)), r.most)
	env.items, env.bare = make([]dialect.Item, 0, n), make([]bool, 0, n)
	for {
		switch r.dec.PeekKind() {
		case ']':
			_, err := r.dec.ReadToken()
			return err
		case '{':
		default:
			if err := r.dec.SkipValue(); err != nil {
				return err
			}
			env.items = append(env.items, dialect.Item{Err: record.Errorf(record.Invalid, "rest_requests", "the item is no JSON object")})
			env.bare = append(env.bare, false)
			continue
		}
		if len(env.items) == r.most {
			return record.Errorf(record.TooLarge, "rest_requests", "the batch has more than %d items; see now.batch.max_items", r.most)
		}
		env.items = append(env.items, dialect.Item{})
		env.bare = append(env.bare, false)
		if err := r.item(&env.items[len(env.items)-1], &env.bare[len(env.bare)-1]); err != nil {
			return err
		}
	}
}

func (r *envelopeReader) item(it *dialect.Item, bare *bool) error {
	var fault error
	err := r.members(func(name string) error {
		switch name {
		case "id":
			return r.text(&it.ID)
		case "method":
			return r.text(&it.Method)
		case "url":
			return r.text(&it.URL)
		case "exclude_response_headers":
			return r.truth(bare)
		case "headers":
			return r.headers(it)
		case "body":
			return r.body(it, &fault)
		case "depends_on":
			return r.depends(it)
		}
		return r.dec.SkipValue()
	})
	if err != nil {
		return err
	}
	if it.Method != strings.ToUpper(it.Method) {
		it.Method = strings.ToUpper(it.Method)
	}
	switch it.Method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "MERGE":
	case "":
		fault = record.Errorf(record.Invalid, "method", "the item has no method")
	default:
		fault = record.Errorf(record.NotAllowed, "method", "Method not supported: %.20s", it.Method)
	}
	switch {
	case it.ID == "":
		fault = record.Errorf(record.Invalid, "id", "the item has no id")
	case it.URL == "":
		fault = record.Errorf(record.Invalid, "url", "the item has no url")
	}
	if fault != nil {
		it.Err = fault
	}
	return nil
}

// headers reads [{"name","value"}]. Anything else in their place is no headers.
func (r *envelopeReader) headers(it *dialect.Item) error {
	if r.dec.PeekKind() != '[' {
		return r.dec.SkipValue()
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	first := len(r.fields)
	for r.dec.PeekKind() != ']' {
		if r.dec.PeekKind() != '{' {
			if err := r.dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		var f wire.HeaderField
		if err := r.members(func(name string) error {
			switch name {
			case "name":
				return r.text(&f.Name)
			case "value":
				return r.text(&f.Value)
			}
			return r.dec.SkipValue()
		}); err != nil {
			return err
		}
		if len(r.fields) == cap(r.fields) {
			// A full piece stays with the items before; this one's fields so far move on.
			r.fields = append(make([]wire.HeaderField, 0, max(256, 2*(len(r.fields)-first))), r.fields[first:]...)
			first = 0
		}
		r.fields = append(r.fields, f)
	}
	it.Header = r.fields[first:len(r.fields):len(r.fields)]
	_, err := r.dec.ReadToken()
	return err
}

// body decodes base64. A fault is the item's.
func (r *envelopeReader) body(it *dialect.Item, fault *error) error {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	switch raw.Kind() {
	case 'n':
		return nil
	case '"':
	default:
		*fault = record.Errorf(record.Invalid, "body", "the body is no base64 text")
		return nil
	}
	text := raw[1 : len(raw)-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		if r.scratch, err = jsontext.AppendUnquote(r.scratch[:0], raw); err != nil {
			return err
		}
		text = r.scratch
	}
	if r.bodies == nil {
		r.bodies = make([]byte, 0, base64.StdEncoding.DecodedLen(r.size))
	}
	first := len(r.bodies)
	if r.bodies, err = appendBase64(r.bodies, text); err != nil {
		*fault = record.Errorf(record.Invalid, "body", "the body is no base64: %s", err)
		return nil
	}
	it.Body = r.bodies[first:len(r.bodies):len(r.bodies)]
	return nil
}

// appendBase64 decodes text with or without white space and padding, in either alphabet.
func appendBase64(dst, text []byte) ([]byte, error) {
	out, err := base64.StdEncoding.AppendDecode(dst, text)
	if err == nil {
		return out, nil
	}
	clean := make([]byte, 0, len(text))
	for _, c := range text {
		switch c {
		case ' ', '\t', '\r', '\n', '=':
		case '-':
			clean = append(clean, '+')
		case '_':
			clean = append(clean, '/')
		default:
			clean = append(clean, c)
		}
	}
	if out, again := base64.RawStdEncoding.AppendDecode(dst, clean); again == nil {
		return out, nil
	}
	return dst, err
}

// depends reads one id or an array of ids.
func (r *envelopeReader) depends(it *dialect.Item) error {
	if r.dec.PeekKind() != '[' {
		var id string
		if err := r.text(&id); err != nil || id == "" {
			return err
		}
		it.Depends = append(it.Depends, id)
		return nil
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	for r.dec.PeekKind() != ']' {
		var id string
		if err := r.text(&id); err != nil {
			return err
		}
		it.Depends = append(it.Depends, id)
	}
	_, err := r.dec.ReadToken()
	return err
}

// text reads a scalar as text: null is "", so are an object and an array.
func (r *envelopeReader) text(s *string) error {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	switch raw.Kind() {
	case 'n', '{', '[':
		*s = ""
		return nil
	}
	*s, err = r.keep(raw)
	return err
}

// truth reads a boolean, also one in quotes or a number.
func (r *envelopeReader) truth(b *bool) error {
	var s string
	if err := r.text(&s); err != nil {
		return err
	}
	*b = strings.EqualFold(s, "true") || s == "1"
	return nil
}

// longest is the length of texts that are looked for among those read before.
const longest = 128

// keep is a scalar's text, held once however often it comes.
func (r *envelopeReader) keep(raw jsontext.Value) (string, error) {
	text := []byte(raw)
	if raw.Kind() == '"' {
		text = raw[1 : len(raw)-1]
		if bytes.IndexByte(text, '\\') >= 0 {
			var err error
			if r.scratch, err = jsontext.AppendUnquote(r.scratch[:0], raw); err != nil {
				return "", fmt.Errorf("read a text: %w", err)
			}
			text = r.scratch
		}
	}
	if len(text) > longest {
		return strings.ToValidUTF8(string(text), "\uFFFD"), nil
	}
	if s, ok := r.strings[string(text)]; ok {
		return s, nil
	}
	s := strings.ToValidUTF8(string(text), "\uFFFD")
	r.strings[s] = s
	return s, nil
}
