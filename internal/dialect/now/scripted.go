package now

import (
	"bytes"
	"encoding/xml"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// decodeScripted reads a call of a scripted endpoint. What goes to the script and comes back are the JSON documents that
// package script describes.
func (d *Dialect) decodeScripted(snap *catalog.Snapshot, c *dialect.Call) (*dialect.Exchange, error) {
	method := methodOf(c)
	endpoint, params, err := snap.Route(method, c.Path)
	if err != nil {
		return nil, err
	}
	if len(c.RawQuery) > d.opt.MaxQuery {
		return nil, record.Errorf(record.TooLarge, "", "the query string has %d bytes, %d are allowed; see now.max_query", len(c.RawQuery), d.opt.MaxQuery)
	}
	args, err := appendArgs(nil, c, method, endpoint, params)
	if err != nil {
		return nil, err
	}
	x := &dialect.Exchange{Ops: []record.Op{{Verb: record.Invoke, Invoke: &record.Invocation{Endpoint: endpoint.Name, Args: args}}}}
	x.Reply = func(out []record.Outcome, a *wire.Answer) {
		if out[0].Err != nil {
			d.Fail(c, out[0].Err, a)
			return
		}
		r, err := dialect.ReadScriptResult(out[0].Result)
		if err != nil {
			d.Fail(c, record.Errorf(record.Internal, "", "internal error").Because(err), a)
			return
		}
		replyScript(r, c, method, a)
	}
	return x, nil
}

// appendArgs writes the arguments' document.
func appendArgs(dst []byte, c *dialect.Call, method string, e *catalog.Endpoint, params map[string]string) ([]byte, error) {
	values := parseParams(c.RawQuery)
	var data []byte
	body := bytes.TrimPrefix(c.Body, byteOrderMark)
	kind := c.Header.Get("Content-Type")
	if media, _, _ := strings.Cut(kind, ";"); strings.EqualFold(strings.TrimSpace(media), "application/x-www-form-urlencoded") {
		values = append(values, parseParams(string(body))...)
	} else if f, err := bodyFormat(kind, body); err == nil && f.xml() && len(bytes.TrimSpace(body)) > 0 {
		root, err := parseXML(xml.NewDecoder(bytes.NewReader(body)))
		if err != nil {
			return nil, record.Errorf(record.Invalid, "", "%.200s", err.Error()).Because(dialect.ErrBody)
		}
		data = root.appendJSON(nil)
	} else if err == nil && !f.xml() && bytes.IndexByte(body, '\'') >= 0 && !jsontext.Value(body).IsValid(lenient) {
		if again := jsontext.Value(requote(body)); again.IsValid(lenient) {
			data = again // single quotes, as in the vendor's samples
		}
	}

	target := (&url.URL{Path: c.Path}).EscapedPath()
	if c.RawQuery != "" {
		target += "?" + c.RawQuery
	}
	args := dialect.ScriptArgs{Method: method, URL: target, Base: c.Base, Query: c.RawQuery, Header: c.Header, Body: body, Data: data}
	for _, segment := range e.Segments {
		if strings.HasPrefix(segment, "{") {
			name := segment[1 : len(segment)-1]
			args.Params = append(args.Params, [2]string{name, params[name]})
		}
	}
	for i := range values {
		args.Values = append(args.Values, [2]string{values[i].name, values[i].value})
	}
	return args.Append(dst), nil
}

// appendJSON writes what an element holds: its text, or its children as an object, in which several of one name are an array.
func (n *xmlNode) appendJSON(dst []byte) []byte {
	if len(n.children) == 0 {
		return wire.AppendQuote(dst, n.text)
	}
	places := make(map[string][]int, len(n.children))
	for i := range n.children {
		places[n.children[i].name] = append(places[n.children[i].name], i)
	}
	dst = append(dst, '{')
	for i := range n.children {
		name := n.children[i].name
		list := places[name]
		if list[0] != i {
			continue
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendQuote(dst, name), ':')
		if len(list) == 1 {
			dst = n.children[i].appendJSON(dst)
			continue
		}
		dst = append(dst, '[')
		for k, c := range list {
			if k > 0 {
				dst = append(dst, ',')
			}
			dst = n.children[c].appendJSON(dst)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// replyScript writes the answer. A body is wrapped as {"result":…}, in XML if the caller accepts that; what a stream writer wrote goes out as
// it is. An Accept that neither fits is answered in JSON: the script has run, and a refusal would say that it had not.
func replyScript(r *dialect.ScriptResult, c *dialect.Call, method string, a *wire.Answer) {
	if r.Failed {
		refuse(c, r.Status, r.Message, r.Detail, a)
		return
	}
	status := r.Status
	if status == 0 {
		status = 200
	}
	f, _ := negotiate(c.Header.Get("Accept"))
	if c.Header.Get("Accept") == "" && strings.Contains(r.Type, "xml") && !r.Streamed {
		f = formatXML
	}
	head(a, status, f)
	if status == 204 {
		a.Header = append(a.Header, r.Header...)
		return
	}
	switch {
	case r.Type != "":
		a.Header.Set("Content-Type", r.Type)
	case r.Streamed:
		a.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	}
	a.Header = append(a.Header, r.Header...)
	switch {
	case method == "HEAD":
	case r.Streamed:
		a.Body = append(a.Body, r.Stream...)
	case f.xml():
		a.Body = append(a.Body, xmlHead+"<response>"...)
		if r.Body != nil {
			a.Body = appendJSONAsXML(a.Body, "result", r.Body)
		}
		a.Body = append(a.Body, "</response>"...)
	case r.Body == nil:
		// nothing was said: an empty answer, as instances give it
	default:
		a.Body = append(a.Body, `{"result":`...)
		a.Body = append(a.Body, r.Body...)
		a.Body = append(a.Body, '}')
	}
}

// appendJSONAsXML writes a JSON value as elements called name: an array is one for each of its elements, an object has its members inside,
// in their order. The value is valid JSON.
func appendJSONAsXML(dst []byte, name string, v jsontext.Value) []byte {
	dec := jsontext.NewDecoder(bytes.NewBuffer(v), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return appendNextAsXML(dst, elementName(name), dec, 0)
}

func appendNextAsXML(dst []byte, name string, dec *jsontext.Decoder, depth int) []byte {
	switch dec.PeekKind() {
	case '[':
		dec.ReadToken()
		first := len(dst)
		for dec.PeekKind() != ']' && dec.PeekKind() != 0 {
			dst = appendNextAsXML(dst, name, dec, depth+1)
		}
		dec.ReadToken()
		if len(dst) == first && depth > 0 {
			dst = append(append(append(dst, '<'), name...), "/>"...)
		}
		return dst
	case '{':
		dec.ReadToken()
		dst = appendElement(dst, name, func(dst []byte) []byte {
			for dec.PeekKind() == '"' {
				token, err := dec.ReadToken()
				if err != nil {
					return dst
				}
				dst = appendNextAsXML(dst, elementName(token.String()), dec, depth+1)
			}
			return dst
		})
		dec.ReadToken()
		return dst
	case 0:
		dec.ReadToken() // no more to read; a valid value does not come here
		return dst
	}
	token, err := dec.ReadToken()
	if err != nil {
		return dst
	}
	return appendElement(dst, name, func(dst []byte) []byte {
		if token.Kind() == 'n' {
			return dst
		}
		return wire.AppendXMLText(dst, token.String())
	})
}

// elementName makes a name that XML allows: other characters become _.
func elementName(s string) string {
	legal := func(c byte, first bool) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80 || !first && (c >= '0' && c <= '9' || c == '-' || c == '.')
	}
	ok := s != ""
	for i := 0; i < len(s) && ok; i++ {
		ok = legal(s[i], i == 0)
	}
	if ok {
		return strings.ToValidUTF8(s, "_")
	}
	b := []byte(strings.ToValidUTF8(s, "_"))
	for i := range b {
		if !legal(b[i], false) {
			b[i] = '_'
		}
	}
	if len(b) == 0 || !legal(b[0], true) {
		b = append([]byte{'_'}, b...)
	}
	return string(b)
}

// ParseQuery reads an encoded query for a script of actor. Unlike on the wire, a condition that cannot be read is an error: a
// script that changes all records it finds must not find more than it asked for.
func (d *Dialect) ParseQuery(snap *catalog.Snapshot, actor *record.Actor, table, query string) (*record.Expr, []record.Sort, error) {
	t, err := snap.Table(table)
	if err != nil {
		return nil, nil, err
	}
	q := &request{d: d, snap: snap, call: &dialect.Call{Actor: *actor}, table: t}
	e, err := q.parseQuery(query)
	if err != nil {
		return nil, nil, err
	}
	if len(e.ignored) > 0 {
		return nil, nil, record.Errorf(record.Invalid, "", "the query has conditions that cannot be read: %.200s", strings.Join(e.ignored, "^"))
	}
	return e.where, e.sort, nil
}
