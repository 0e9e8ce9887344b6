package dialect

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/wire"
)

// ScriptArgs are the arguments of a scripted endpoint, as package script describes their document.
type ScriptArgs struct {
	Method string
	URL    string // path and query, encoded
	Base   string
	Query  string
	Params [][2]string // of the endpoint's path
	Values [][2]string // of the query, decoded, in their order
	Header wire.Header
	Body   []byte
	Data   []byte // the body in another form than JSON as the JSON that it means; nil: none
}

// Append writes the document. Headers that carry a secret of the caller are left out.
func (s *ScriptArgs) Append(dst []byte) []byte {
	dst = append(make([]byte, 0, len(dst)+256+len(s.Body)+len(s.Data)+2*len(s.URL)), dst...)
	dst = wire.AppendQuote(append(dst, `{"method":`...), s.Method)
	dst = wire.AppendQuote(append(dst, `,"url":`...), s.URL)
	dst = wire.AppendQuote(append(dst, `,"base":`...), s.Base)
	dst = wire.AppendQuote(append(dst, `,"query":`...), s.Query)
	dst = append(dst, `,"params":{`...)
	for i, p := range s.Params {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendQuote(dst, p[0]), ':')
		dst = wire.AppendQuote(dst, p[1])
	}
	dst = append(dst, `},"values":[`...)
	for i, v := range s.Values {
		dst = appendPair(dst, i, v[0], v[1])
	}
	dst = append(dst, `],"headers":[`...)
	n := 0
	for _, h := range s.Header {
		if hiddenFromScripts(h.Name) {
			continue
		}
		dst = appendPair(dst, n, h.Name, h.Value)
		n++
	}
	dst = wire.AppendQuote(append(dst, `],"body":`...), s.Body)
	if s.Data != nil {
		dst = append(append(dst, `,"data":`...), s.Data...)
	}
	return append(dst, '}')
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
	case "authorization", "cookie", "x-usertoken", "x-sn-apikey", "x-mfa_token", "proxy-authorization", "x-csrf-token":
		return true
	}
	return false
}

// ScriptResult is the document that a scripted endpoint gives back, as package script describes it.
type ScriptResult struct {
	Status          int // 0: the script set none
	Header          wire.Header
	Type            string         // of the content, "" if the script set none
	Body            jsontext.Value // nil: none
	Stream          []byte
	Streamed        bool
	Failed          bool
	Message, Detail string // of a failure
}

// ReadScriptResult reads a result document.
func ReadScriptResult(doc []byte) (*ScriptResult, error) {
	r := &ScriptResult{}
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	err := EachMember(dec, func(name string) error {
		switch name {
		case "status":
			v, err := dec.ReadValue()
			if err != nil {
				return err
			}
			r.Status, err = strconv.Atoi(string(v))
			return err
		case "type":
			token, err := dec.ReadToken()
			r.Type = token.String()
			return err
		case "body":
			v, err := dec.ReadValue()
			r.Body = v.Clone()
			return err
		case "stream":
			v, err := dec.ReadValue()
			if err != nil {
				return err
			}
			r.Streamed = true
			r.Stream, err = jsontext.AppendUnquote(nil, v)
			return err
		case "headers":
			return r.readHeaders(dec)
		case "error":
			r.Failed = true
			return EachMember(dec, func(name string) error {
				token, err := dec.ReadToken()
				if err != nil {
					return err
				}
				switch name {
				case "message":
					r.Message = token.String()
				case "detail":
					r.Detail = token.String()
				}
				return nil
			})
		}
		return dec.SkipValue()
	})
	return r, err
}

func (r *ScriptResult) readHeaders(dec *jsontext.Decoder) error {
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
		r.Header.Add(flat[i], flat[i+1])
	}
	return nil
}

// EachMember reads a JSON object and lets each read the values.
func EachMember(dec *jsontext.Decoder, each func(name string) error) error {
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
