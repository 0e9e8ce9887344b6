package now

import (
	"bytes"
	"encoding/xml"
	"net/url"
	"strconv"
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
		r, err := readScriptResult(out[0].Result)
		if err != nil {
			d.Fail(c, record.Errorf(record.Internal, "", "internal error").Because(err), a)
			return
		}
		r.reply(c, method, a)
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
	dst = append(make([]byte, 0, 256+len(body)+len(data)+2*len(target)), dst...)
	dst = wire.AppendQuote(append(dst, `{"method":`...), method)
	dst = wire.AppendQuote(append(dst, `,"url":`...), target)
	dst = wire.AppendQuote(append(dst, `,"base":`...), c.Base)
	dst = wire.AppendQuote(append(dst, `,"query":`...), c.RawQuery)
	dst = append(dst, `,"params":{`...)
	first := true
	for _, s := range e.Segments {
		if !strings.HasPrefix(s, "{") {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		name := s[1 : len(s)-1]
		dst = append(wire.AppendQuote(dst, name), ':')
		dst = wire.AppendQuote(dst, params[name])
	}
	dst = append(dst, `},"values":[`...)
	for i := range values {
		dst = appendPair(dst, i, values[i].name, values[i].value)
	}
	dst = append(dst, `],"headers":[`...)
	n := 0
	for _, h := range c.Header {
		if hiddenFromScripts(h.Name) {
			continue
		}
		dst = appendPair(dst, n, h.Name, h.Value)
		n++
	}
	dst = wire.AppendQuote(append(dst, `],"body":`...), body)
	if data != nil {
		dst = append(append(dst, `,"data":`...), data...)
	}
	return append(dst, '}'), nil
}

func appendPair(dst []byte, i int, name, value string) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	dst = append(wire.AppendQuote(append(dst, '['), name), ',')
	return append(wire.AppendQuote(dst, value), ']')
}

// hiddenFromScripts reports whether a header carries a secret of the caller.
func hiddenFromScripts(name string) bool {
	switch strings.ToLower(name) {
	case "authorization", "cookie", "x-usertoken", "x-sn-apikey", "x-mfa_token", "proxy-authorization":
		return true
	}
	return false
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

// scriptResult is a result document, read.
type scriptResult struct {
	status          int
	headers         wire.Header
	kind            string
	body            jsontext.Value // nil: none
	stream          []byte
	streamed        bool
	failed          bool
	message, detail string
}

func readScriptResult(doc []byte) (*scriptResult, error) {
	r := &scriptResult{}
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err := eachMember(dec, func(name string) error {
		switch name {
		case "status":
			v, err := dec.ReadValue()
			if err != nil {
				return err
			}
			r.status, err = strconv.Atoi(string(v))
			return err
		case "type":
			token, err := dec.ReadToken()
			r.kind = token.String()
			return err
		case "body":
			v, err := dec.ReadValue()
			r.body = v.Clone()
			return err
		case "stream":
			v, err := dec.ReadValue()
			if err != nil {
				return err
			}
			r.streamed = true
			r.stream, err = jsontext.AppendUnquote(nil, v)
			return err
		case "headers":
			return r.readHeaders(dec)
		case "error":
			r.failed = true
			return eachMember(dec, func(name string) error {
				token, err := dec.ReadToken()
				if err != nil {
					return err
				}
				switch name {
				case "message":
					r.message = token.String()
				case "detail":
					r.detail = token.String()
				}
				return nil
			})
		}
		return dec.SkipValue()
	})
	return r, err
}

func (r *scriptResult) readHeaders(dec *jsontext.Decoder) error {
	var flat []string
	depth := dec.StackDepth()
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if token.Kind() == '"' {
			flat = append(flat, token.String())
		}
		if dec.StackDepth() == depth {
			break
		}
	}
	for i := 0; i+1 < len(flat); i += 2 {
		r.headers.Add(flat[i], flat[i+1])
	}
	return nil
}

// eachMember reads an object and lets each read the values.
func eachMember(dec *jsontext.Decoder, each func(name string) error) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if err := each(token.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// reply writes the answer. A body is wrapped as {"result":…}, in XML if the caller accepts that; what a stream writer wrote goes out as
// it is. An Accept that neither fits is answered in JSON: the script has run, and a refusal would say that it had not.
func (r *scriptResult) reply(c *dialect.Call, method string, a *wire.Answer) {
	if r.failed {
		refuse(c, r.status, r.message, r.detail, a)
		return
	}
	status := r.status
	if status == 0 {
		status = 200
	}
	f, _ := negotiate(c.Header.Get("Accept"))
	if c.Header.Get("Accept") == "" && strings.Contains(r.kind, "xml") && !r.streamed {
		f = formatXML
	}
	head(a, status, f)
	if status == 204 {
		a.Header = append(a.Header, r.headers...)
		return
	}
	switch {
	case r.kind != "":
		a.Header.Set("Content-Type", r.kind)
	case r.streamed:
		a.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	}
	a.Header = append(a.Header, r.headers...)
	switch {
	case method == "HEAD":
	case r.streamed:
		a.Body = append(a.Body, r.stream...)
	case f.xml():
		a.Body = append(a.Body, xmlHead+"<response>"...)
		if r.body != nil {
			a.Body = appendJSONAsXML(a.Body, "result", r.body)
		}
		a.Body = append(a.Body, "</response>"...)
	case r.body == nil:
		// nothing was said: an empty answer, as instances give it
	default:
		a.Body = append(a.Body, `{"result":`...)
		a.Body = append(a.Body, r.body...)
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
