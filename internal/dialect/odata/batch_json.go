package odata

import (
	"bytes"
	"encoding/base64"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// jsonBatchReader reads a batch in JSON.
type jsonBatchReader struct {
	env    envelope
	dec    *jsontext.Decoder
	limits *BatchOptions
	prefer string
	fields []wire.HeaderField
	byID   map[string]int // items
	groups map[string]int // the group's last item
	found  bool
}

// readJSONBatch reads a batch of the form {"requests":[…]} (OData JSON format 4.01, section 19). Names of members that nobody knows are
// ignored. The error is an Invalid that tells request or byte when the batch breaks a rule of its form, and a TooLarge when a bound is passed.
func readJSONBatch(body []byte, limits *BatchOptions, prefer string) (*envelope, error) {
	n := min(estimate(body, `"url"`), limits.MaxParts)
	r := &jsonBatchReader{
		env: envelope{json: true, items: make([]dialect.Item, 0, n), inner: make([]bool, 0, n)},
		// A decoder over a buffer reads it in place, so that values are views of the body.
		dec:    jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		limits: limits, prefer: prefer, byID: make(map[string]int, n), groups: map[string]int{},
	}
	err := r.members(func(name string) error {
		if name != "requests" {
			return r.dec.SkipValue()
		}
		r.found = true
		return r.requests()
	})
	if err == nil && !r.found {
		err = r.fault("the member requests is missing")
	}
	if err == nil {
		if _, end := r.dec.ReadToken(); end != io.EOF {
			err = r.fault("something follows the JSON object")
		}
	}
	if err != nil {
		return nil, err
	}
	for _, p := range r.env.parts {
		if p.changeset && p.n == 1 {
			r.env.items[p.first].Group = 0 // it succeeds or fails by itself
		}
	}
	return &r.env, nil
}

// members reads an object and lets each read the value of every member.
func (r *jsonBatchReader) members(each func(name string) error) error {
	if r.dec.PeekKind() != '{' {
		return r.expected("an object")
	}
	r.dec.ReadToken()
	for r.dec.PeekKind() == '"' {
		name, err := r.text()
		if err == nil {
			err = each(name)
		}
		if err != nil {
			return r.syntax(err)
		}
	}
	_, err := r.dec.ReadToken()
	return r.syntax(err)
}

// elements reads an array and lets each read every element.
func (r *jsonBatchReader) elements(what string, each func() error) error {
	if r.dec.PeekKind() != '[' {
		return r.expected("the array " + what)
	}
	r.dec.ReadToken()
	for r.dec.PeekKind() != ']' {
		if r.dec.PeekKind() == 0 {
			break
		}
		if err := each(); err != nil {
			return r.syntax(err)
		}
	}
	_, err := r.dec.ReadToken()
	return r.syntax(err)
}

// text reads a string; a number is taken as its digits, null as "".
func (r *jsonBatchReader) text() (string, error) {
	switch r.dec.PeekKind() {
	case '"', '0', 'n', 0:
	default:
		return "", r.expected("a string")
	}
	v, err := r.dec.ReadValue()
	switch {
	case err != nil:
		return "", err
	case v.Kind() == 'n':
		return "", nil
	case v.Kind() == '0' || bytes.IndexByte(v, '\\') < 0:
		return view(bytes.Trim(v, `"`)), nil
	}
	plain, err := jsontext.AppendUnquote(nil, v)
	return view(plain), err
}

func (r *jsonBatchReader) requests() error {
	return r.elements("requests", func() error {
		if len(r.env.items) >= r.limits.MaxParts {
			return record.Errorf(record.TooLarge, "", "the batch has more than %d requests; see odata.batch.max_parts", r.limits.MaxParts)
		}
		return r.request()
	})
}

// jsonRequest is one request object.
type jsonRequest struct {
	id, group, cond, method, url string
	depends                      []string
	body                         jsontext.Value
}

func (r *jsonBatchReader) request() error {
	if cap(r.fields)-len(r.fields) < 32 {
		r.fields = make([]wire.HeaderField, 0, 1024)
	}
	first := len(r.fields)
	var in jsonRequest
	err := r.members(func(name string) (err error) {
		switch name {
		case "id":
			in.id, err = r.text()
		case "atomicityGroup":
			in.group, err = r.text()
		case "if":
			in.cond, err = r.text()
		case "method":
			in.method, err = r.text()
		case "url":
			in.url, err = r.text()
		case "dependsOn":
			if r.dec.PeekKind() == 'n' {
				return r.dec.SkipValue()
			}
			return r.elements("dependsOn", func() error {
				id, err := r.text()
				in.depends = append(in.depends, id)
				return err
			})
		case "headers":
			if r.dec.PeekKind() == 'n' {
				return r.dec.SkipValue()
			}
			return r.members(func(name string) error {
				value, err := r.text()
				r.fields = append(r.fields, wire.HeaderField{Name: name, Value: value})
				return err
			})
		case "body":
			in.body, err = r.dec.ReadValue()
		default:
			err = r.dec.SkipValue()
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.add(&in, first)
}

// add makes an item of a request whose headers begin at first.
func (r *jsonBatchReader) add(in *jsonRequest, first int) error {
	i := len(r.env.items)
	it := dialect.Item{ID: in.id, URL: in.url, Method: methodName([]byte(in.method))}
	_, twice := r.byID[in.id]
	_, taken := r.groups[in.id]
	_, clash := r.byID[in.group]
	switch {
	case in.id == "":
		return r.fault("the id is missing")
	case twice || taken || in.id == in.group:
		return r.fault("the id %.80q is there twice", in.id)
	case in.group != "" && clash:
		return r.fault("the atomicityGroup %.80q is the id of a request", in.group)
	case in.method == "":
		return r.fault("the method is missing")
	case in.url == "":
		return r.fault("the url is missing")
	}
	r.join(in, i, &it)
	if it.Group == 0 && in.group != "" {
		return r.fault("the requests of atomicityGroup %.80q do not stand together", in.group)
	}
	if err := r.depends(in, &it); err != nil {
		return err
	}
	r.byID[in.id] = i
	if in.cond != "" {
		cond, err := parseIf(in.cond)
		if err != nil {
			it.Err = err
		} else {
			if r.env.conditions == nil {
				r.env.conditions = map[int]*ifExpr{}
			}
			r.env.conditions[i] = cond
			r.env.looks = r.env.looks || cond.looks()
			if err := cond.bind(r, &it); err != nil {
				it.Err = err
			}
		}
	}
	prefers, kind := false, ""
	for k := first; k < len(r.fields); k++ {
		f := &r.fields[k]
		switch {
		case strings.EqualFold(f.Name, "Prefer"):
			prefers = true
		case strings.EqualFold(f.Name, "Content-Type"):
			kind = f.Value
		}
		if _, ok := etagReference(f.Name, f.Value); ok {
			r.env.refers = true
		}
	}
	if len(in.body) > 0 && in.body.Kind() != 'n' && it.Method != "GET" && it.Method != "DELETE" {
		if kind == "" {
			kind = "application/json"
			r.fields = append(r.fields, wire.HeaderField{Name: "Content-Type", Value: kind})
		}
		var err error
		if it.Body, err = jsonBody(in.body, kind); err != nil && it.Err == nil {
			it.Err = err
		}
	}
	if !prefers && r.prefer != "" {
		r.fields = append(r.fields, wire.HeaderField{Name: "Prefer", Value: r.prefer})
	}
	it.Header = r.fields[first:len(r.fields):len(r.fields)]
	r.env.items, r.env.inner = append(r.env.items, it), append(r.env.inner, false)
	return nil
}

// join puts item i into its part of the envelope: its group's, which must be the last one, or one of its own.
func (r *jsonBatchReader) join(in *jsonRequest, i int, it *dialect.Item) {
	n := len(r.env.parts)
	if in.group == "" {
		r.env.parts = append(r.env.parts, envelopePart{first: i, n: 1})
		return
	}
	_, known := r.groups[in.group]
	switch {
	case !known:
		r.env.parts = append(r.env.parts, envelopePart{first: i, n: 1, changeset: true, name: in.group})
		n++
	case n > 0 && r.env.parts[n-1].name == in.group:
		r.env.parts[n-1].n++
	default:
		return
	}
	r.groups[in.group] = i
	it.Group = n
}

// depends resolves dependsOn: earlier requests, or earlier groups, whose last request stands for all.
func (r *jsonBatchReader) depends(in *jsonRequest, it *dialect.Item) error {
	for _, id := range in.depends {
		p, ok := r.byID[id]
		if !ok {
			p, ok = r.groups[id]
			if ok && id == in.group {
				return r.fault("dependsOn names the request's own group")
			}
		}
		switch {
		case !ok:
			return r.fault("dependsOn names %.80q, which is no request or group before this one", id)
		case it.Group != 0 && it.Group == r.env.items[p].Group:
			continue // all of a group happens or nothing
		}
		it.After = append(it.After, p)
	}
	slices.Sort(it.After)
	it.After = slices.Compact(it.After)
	return nil
}

// jsonBody is the body of a request with the given Content-Type: JSON as it stands, text as a string, all else as base64url.
func jsonBody(v jsontext.Value, kind string) ([]byte, error) {
	media, _ := mediaType(kind)
	if isJSON(media) {
		return v, nil
	}
	if v.Kind() != '"' {
		return nil, record.Errorf(record.Invalid, "body", "a body of type %.80q is a string", media)
	}
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil || isTextMedia(media) {
		return text, err
	}
	plain, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(view(text), "="))
	if err != nil {
		return nil, record.Errorf(record.Invalid, "body", "a body of type %.80q is base64url text", media)
	}
	return plain, nil
}

func isJSON(media string) bool {
	media = strings.ToLower(media)
	return media == "application/json" || strings.HasPrefix(media, "application/") && strings.HasSuffix(media, "+json")
}

func isTextMedia(media string) bool { return len(media) > 5 && strings.EqualFold(media[:5], "text/") }

// fault is the error of a batch that breaks a rule.
func (r *jsonBatchReader) fault(format string, args ...any) error {
	e := record.Errorf(record.Invalid, "", format, args...)
	e.Msg = "request " + strconv.Itoa(len(r.env.items)+1) + ", byte " + strconv.FormatInt(r.dec.InputOffset(), 10) + ": " + e.Msg
	return e.Because(dialect.ErrBody)
}

func (r *jsonBatchReader) expected(what string) error {
	if _, err := r.dec.ReadValue(); err != nil {
		return r.syntax(err)
	}
	return r.fault("%s is expected here", what)
}

// syntax makes a domain error of what the decoder says.
func (r *jsonBatchReader) syntax(err error) error {
	if err == nil || record.KindOf(err) != record.Internal {
		return err
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return r.fault("%.200s", err.Error())
}

// jsonWriter writes the answer to a batch in JSON.
type jsonWriter struct {
	dst  []byte
	some bool
}

// part writes one answer. A body of JSON stands as it is, text as a string, all else as base64url.
func (w *jsonWriter) part(a *wire.Answer, id, group string) {
	if w.some {
		w.dst = append(w.dst, ',')
	}
	w.some = true
	w.dst = append(w.dst, '{')
	if id != "" {
		w.dst = append(w.dst, `"id":`...)
		w.dst = wire.AppendQuote(w.dst, id)
		w.dst = append(w.dst, ',')
	}
	if group != "" {
		w.dst = append(w.dst, `"atomicityGroup":`...)
		w.dst = wire.AppendQuote(w.dst, group)
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, `"status":`...)
	w.dst = strconv.AppendInt(w.dst, int64(a.Status), 10)
	sep := `,"headers":{`
	for i := range a.Header {
		w.dst = append(w.dst, sep...)
		w.dst = wire.AppendQuote(w.dst, strings.ToLower(a.Header[i].Name))
		w.dst = append(w.dst, ':')
		w.dst = wire.AppendQuote(w.dst, a.Header[i].Value)
		sep = ","
	}
	if len(a.Header) > 0 {
		w.dst = append(w.dst, '}')
	}
	if len(a.Body) > 0 {
		w.dst = append(w.dst, `,"body":`...)
		switch media, _ := mediaType(a.Header.Get("Content-Type")); {
		case isJSON(media):
			w.dst = append(w.dst, a.Body...)
		case isTextMedia(media):
			w.dst = wire.AppendQuote(w.dst, a.Body)
		default:
			w.dst = append(w.dst, '"')
			w.dst = base64.RawURLEncoding.AppendEncode(w.dst, a.Body)
			w.dst = append(w.dst, '"')
		}
	}
	w.dst = append(w.dst, '}')
}
