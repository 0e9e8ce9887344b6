package script

import (
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/record"
)

// response is what the script has said so far.
type response struct {
	status   int
	headers  [][2]string
	kind     string // content type
	body     goja.Value
	failed   *fault
	stream   strings.Builder
	streamed bool
}

// responseMethods are the methods of the object response.
var responseMethods = map[string]func(*call, goja.FunctionCall) goja.Value{
	"setBody": func(c *call, f goja.FunctionCall) goja.Value {
		c.response.body = f.Argument(0)
		return goja.Undefined()
	},
	"setStatus": func(c *call, f goja.FunctionCall) goja.Value {
		n := f.Argument(0).ToInteger()
		if n < 200 || n > 599 {
			c.throw(record.Errorf(record.Invalid, "", "%d is no status of an answer", n))
		}
		c.response.status = int(n)
		return goja.Undefined()
	},
	"setHeader": func(c *call, f goja.FunctionCall) goja.Value {
		c.setHeader(text(f, 0), text(f, 1))
		return goja.Undefined()
	},
	"setHeaders": func(c *call, f goja.FunctionCall) goja.Value {
		if o, ok := f.Argument(0).(*goja.Object); ok {
			for _, name := range o.Keys() {
				c.setHeader(name, o.Get(name).String())
			}
		}
		return goja.Undefined()
	},
	"setContentType": func(c *call, f goja.FunctionCall) goja.Value {
		c.setHeader("Content-Type", text(f, 0))
		return goja.Undefined()
	},
	"setLocation": func(c *call, f goja.FunctionCall) goja.Value {
		c.setHeader("Location", text(f, 0))
		return goja.Undefined()
	},
	"setError": func(c *call, f goja.FunctionCall) goja.Value {
		fault := c.faultOf(f.Argument(0))
		c.response.failed = &fault
		return goja.Undefined()
	},
	"getStreamWriter": func(c *call, f goja.FunctionCall) goja.Value {
		c.response.streamed = true
		return newSurface(c, c, writerMethods)
	},
}

// writerMethods are the methods of a stream writer.
var writerMethods = map[string]func(*call, goja.FunctionCall) goja.Value{
	"writeString": writeStream, "writeStream": writeStream,
}

func writeStream(c *call, f goja.FunctionCall) goja.Value {
	s := text(f, 0)
	if c.response.stream.Len()+len(s) > c.r.opt.Config.MaxResult {
		c.throw(c.tooLarge())
	}
	c.response.stream.WriteString(s)
	return goja.Undefined()
}

func (c *call) tooLarge() *record.Error {
	return record.Errorf(record.TooLarge, "", "the answer has more than %d bytes; see script.max_result", c.r.opt.Config.MaxResult)
}

// maxHeaders bounds the headers of one answer.
const maxHeaders = 50

// setHeader sets a header of the answer. Names and values that HTTP cannot hold are refused, so that no header can be
// smuggled in a value.
func (c *call) setHeader(name, value string) {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r) }) {
		c.throw(record.Errorf(record.Invalid, "", "%.60q is no name of a header", name))
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		c.throw(record.Errorf(record.Invalid, "", "the value of header %.60s has a control character", name))
	}
	if strings.EqualFold(name, "Content-Type") {
		c.response.kind = value
		return
	}
	for i := range c.response.headers {
		if strings.EqualFold(c.response.headers[i][0], name) {
			c.response.headers[i][1] = value
			return
		}
	}
	if len(c.response.headers) == maxHeaders {
		c.throw(record.Errorf(record.Invalid, "", "an answer has at most %d headers", maxHeaders))
	}
	c.response.headers = append(c.response.headers, [2]string{name, value})
}

// finish writes the result document.
func (c *call) finish(value goja.Value, err error) ([]byte, *record.Error) {
	p := &c.response
	if err == nil && p.failed == nil {
		// A returned error of sn_ws_err answers like a thrown one.
		if o, ok := value.(*goja.Object); ok && c.faults[o] != nil {
			p.failed = c.faults[o]
		}
	}
	if err != nil {
		f := c.thrown(err)
		p.failed = &f
	}
	if p.failed != nil {
		return appendFailure(nil, p.failed.status, p.failed.message, p.failed.detail), nil
	}
	dst := append(make([]byte, 0, 256), `{"status":`...)
	dst = strconv.AppendInt(dst, int64(p.status), 10)
	dst = append(dst, `,"headers":[`...)
	for i, h := range p.headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		dst = quote(dst, h[0])
		dst = append(dst, ',')
		dst = quote(dst, h[1])
		dst = append(dst, ']')
	}
	dst = append(dst, ']')
	if p.kind != "" {
		dst = quote(append(dst, `,"type":`...), p.kind)
	}
	if p.streamed {
		dst = quote(append(dst, `,"stream":`...), p.stream.String())
		return append(dst, '}'), nil
	}
	body := p.body
	if body == nil {
		body = value
	}
	if body != nil && !goja.IsUndefined(body) {
		v, err := c.json("stringify", body)
		if c.isGreedy(err) {
			return nil, c.greedy()
		}
		if isInterrupted(err) {
			return nil, c.late()
		}
		if err != nil {
			f := c.thrown(err)
			return appendFailure(nil, f.status, f.message, f.detail), nil
		}
		if !goja.IsUndefined(v) {
			s := v.String()
			if len(s) > c.r.opt.Config.MaxResult {
				return nil, c.tooLarge()
			}
			dst = append(append(dst, `,"body":`...), s...)
		}
	}
	return append(dst, '}'), nil
}

// appendFailure writes the result document of an error.
func appendFailure(dst []byte, status int, message, detail string) []byte {
	if status < 400 || status > 599 {
		status = 500
	}
	dst = append(dst, `{"status":`...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = quote(append(dst, `,"headers":[],"error":{"message":`...), cut(message))
	dst = quote(append(dst, `,"detail":`...), cut(detail))
	return append(dst, "}}"...)
}

// maxMessage is how many bytes of an error's text are told.
const maxMessage = 2000

func cut(s string) string {
	if len(s) > maxMessage {
		return strings.ToValidUTF8(s[:maxMessage], "")
	}
	return s
}

// quote appends s as a JSON string.
func quote(dst []byte, s string) []byte {
	out, err := jsontext.AppendQuote(dst, strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return append(dst, `""`...)
	}
	return out
}
