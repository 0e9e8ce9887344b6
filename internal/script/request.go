package script

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dop251/goja"
	"github.com/go-json-experiment/json/jsontext"
)

// request is the arguments of a call.
type request struct {
	method, url, base, query, body string
	params, values, headers        [][2]string
	data                           jsontext.Value // the body as JSON where it was not JSON, nil otherwise
}

// read reads the arguments' document.
func (q *request) read(doc []byte) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		var into *string
		var list *[][2]string
		switch name := token.String(); name {
		case "method":
			into = &q.method
		case "url":
			into = &q.url
		case "base":
			into = &q.base
		case "query":
			into = &q.query
		case "body":
			into = &q.body
		case "params":
			list = &q.params
		case "values":
			list = &q.values
		case "headers":
			list = &q.headers
		case "data":
			v, err := dec.ReadValue()
			if err != nil {
				return err
			}
			q.data = v.Clone()
			continue
		}
		switch {
		case into != nil:
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			*into = token.String()
		case list != nil:
			if *list, err = readPairs(dec); err != nil {
				return err
			}
		default:
			if err := dec.SkipValue(); err != nil {
				return err
			}
		}
	}
	_, err := dec.ReadToken()
	return err
}

// readPairs reads [["a","b"],…] or {"a":"b",…}.
func readPairs(dec *jsontext.Decoder) ([][2]string, error) {
	var flat []string
	depth := dec.StackDepth()
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return nil, err
		}
		if token.Kind() == '"' {
			flat = append(flat, token.String())
		}
		if dec.StackDepth() == depth {
			break
		}
	}
	if len(flat)%2 != 0 {
		return nil, fmt.Errorf("read the arguments: a name has no value")
	}
	list := make([][2]string, len(flat)/2)
	for i := range list {
		list[i] = [2]string{flat[2*i], flat[2*i+1]}
	}
	return list, nil
}

// header is the first value of a request header.
func (q *request) header(name string) (string, bool) {
	for _, h := range q.headers {
		if strings.EqualFold(h[0], name) {
			return h[1], true
		}
	}
	return "", false
}

// requestObject is the object request. Its members are made when first touched.
type requestObject struct {
	c     *call
	cache map[string]goja.Value
}

var requestKeys = []string{"body", "pathParams", "queryParams", "queryString", "uri", "url", "headers"}

// Get is the member named key.
func (o *requestObject) Get(key string) goja.Value {
	if v, ok := o.cache[key]; ok {
		return v
	}
	v := o.member(key)
	if v != nil {
		if o.cache == nil {
			o.cache = map[string]goja.Value{}
		}
		o.cache[key] = v
	}
	return v
}

func (o *requestObject) member(key string) goja.Value {
	c, vm := o.c, o.c.vm
	q := &c.request
	switch key {
	case "body":
		return vm.NewDynamicObject(&bodyObject{c: c})
	case "pathParams":
		p := vm.NewObject()
		for _, f := range q.params {
			p.Set(f[0], f[1])
		}
		return p
	case "queryParams":
		p := vm.NewObject()
		lists := map[string][]any{}
		for _, f := range q.values {
			lists[f[0]] = append(lists[f[0]], f[1])
		}
		for _, f := range q.values {
			if list := lists[f[0]]; list != nil {
				p.Set(f[0], vm.NewArray(list...))
				delete(lists, f[0])
			}
		}
		return p
	case "queryString":
		return vm.ToValue(q.query)
	case "uri":
		path, _, _ := strings.Cut(q.url, "?")
		return vm.ToValue(path)
	case "url":
		return vm.ToValue(q.base + q.url)
	case "headers":
		p := vm.NewObject()
		for _, h := range q.headers {
			p.Set(strings.ToLower(h[0]), h[1])
		}
		return p
	case "getHeader":
		return vm.ToValue(func(f goja.FunctionCall) goja.Value {
			if h, ok := q.header(text(f, 0)); ok {
				return vm.ToValue(h)
			}
			return goja.Null()
		})
	case "getRequestedQueryParams":
		return vm.ToValue(func(goja.FunctionCall) goja.Value { return o.Get("queryParams") })
	case "getSupportedResponseContentTypes":
		return vm.ToValue(func(goja.FunctionCall) goja.Value {
			return vm.NewArray("application/json", "application/xml", "text/xml")
		})
	}
	return nil
}

// Set refuses.
func (o *requestObject) Set(string, goja.Value) bool { return false }

// Has reports whether there is a member named key.
func (o *requestObject) Has(key string) bool { return o.Get(key) != nil }

// Delete refuses.
func (o *requestObject) Delete(string) bool { return false }

// Keys are the members that hold values.
func (o *requestObject) Keys() []string { return requestKeys }

// bodyObject is request.body.
type bodyObject struct {
	c      *call
	parsed goja.Value
	next   int // of nextEntry
}

// Get is the member named key.
func (o *bodyObject) Get(key string) goja.Value {
	vm := o.c.vm
	switch key {
	case "data":
		return o.data()
	case "dataString", "dataStream":
		return vm.ToValue(o.c.request.body)
	case "nextEntry":
		return vm.ToValue(func(goja.FunctionCall) goja.Value {
			entry := o.entry(o.next)
			o.next++
			return entry
		})
	case "hasNext":
		return vm.ToValue(func(goja.FunctionCall) goja.Value { return vm.ToValue(!goja.IsUndefined(o.entry(o.next))) })
	}
	return nil
}

// data is the body parsed. One that is neither JSON nor XML throws.
func (o *bodyObject) data() goja.Value {
	if o.parsed != nil {
		return o.parsed
	}
	c := o.c
	source := string(c.request.data)
	if source == "" {
		source = c.request.body
	}
	if strings.TrimSpace(source) == "" {
		o.parsed = c.vm.NewObject()
		return o.parsed
	}
	v, err := c.json("parse", c.vm.ToValue(source))
	if err != nil {
		panic(c.newFault(500, "the body of the request cannot be read as JSON or XML", err.Error()))
	}
	o.parsed = v
	return v
}

// entry is element i of a body that is an array or, in XML, a root with elements of one name that hold others. Any other
// body is itself its element 0. Beyond the end it is undefined.
func (o *bodyObject) entry(i int) goja.Value {
	body, ok := o.data().(*goja.Object)
	if !ok {
		return goja.Undefined()
	}
	if names := body.Keys(); len(names) == 1 && strings.HasPrefix(strings.TrimSpace(o.c.request.body), "<") {
		if inner, ok := body.Get(names[0]).(*goja.Object); ok {
			body = inner
		}
	}
	if body.ClassName() != "Array" {
		if i == 0 {
			return body
		}
		return goja.Undefined()
	}
	if v := body.Get(fmt.Sprint(i)); v != nil {
		return v
	}
	return goja.Undefined()
}

// Set refuses.
func (o *bodyObject) Set(string, goja.Value) bool { return false }

// Has reports whether there is a member named key.
func (o *bodyObject) Has(key string) bool {
	return key == "data" || key == "dataString" || key == "dataStream" || key == "nextEntry" || key == "hasNext"
}

// Delete refuses.
func (o *bodyObject) Delete(string) bool { return false }

// Keys are the members that hold values.
func (o *bodyObject) Keys() []string { return []string{"data", "dataString"} }

// json calls JSON.parse or JSON.stringify.
func (c *call) json(name string, v goja.Value) (goja.Value, error) {
	space, ok := c.vm.Get("JSON").(*goja.Object)
	if !ok {
		return nil, fmt.Errorf("the script has replaced JSON")
	}
	f, ok := goja.AssertFunction(space.Get(name))
	if !ok {
		return nil, fmt.Errorf("the script has replaced JSON.%s", name)
	}
	return f(goja.Undefined(), v)
}
