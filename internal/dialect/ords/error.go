package ords

import (
	"html"
	"strconv"
	"strings"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// failure is how one kind of error looks on the wire (protocol notes, section 11).
type failure struct {
	status  int
	code    string
	message string // "": the error's own text
}

// failures is the one table of errors.
var failures = [record.NumKinds]failure{
	record.Internal:        {500, "InternalServerError", ""},
	record.Invalid:         {400, "BadRequest", ""},
	record.Unauthenticated: {401, "Unauthorized", "Unauthorized"},
	record.Forbidden:       {403, "Forbidden", ""},
	record.NotFound:        {404, "NotFound", ""},
	record.NoTable:         {404, "NotFound", ""},
	record.NoPath:          {404, "NotFound", ""},
	record.NotAllowed:      {405, "MethodNotAllowed", ""},
	record.Conflict:        {409, "Conflict", ""},
	record.Restricted:      {409, "Conflict", ""},
	record.Rejected:        handlerFault,
	record.Precondition:    {412, "PreconditionFailed", ""},
	record.Dependency:      {424, "FailedDependency", ""},
	record.TooLarge:        {413, "RequestEntityTooLarge", ""},
	record.Unsupported:     {415, "UnsupportedMediaType", ""},
	record.NotAcceptable:   {406, "NotAcceptable", ""},
	record.RateLimited:     {429, "TooManyRequests", ""},
	record.Busy:            {503, "ServiceUnavailable", ""},
	record.Unavailable:     {503, "ServiceUnavailable", ""},
	record.Timeout:         {504, "GatewayTimeout", ""},
	record.Canceled:        {503, "ServiceUnavailable", ""},
}

// handlerFault is what the SQL of a handler fails with.
var handlerFault = failure{555, "UserDefinedResourceError", "The request could not be processed for a user defined resource"}

// databaseFaults are what ORDS answers since 24.2 when the database itself is at fault, by the rule of an Unavailable.
var databaseFaults = map[string]failure{
	record.RuleDown:  {571, "DatabaseUnavailable", ""},
	record.RuleLogin: {574, "DatabaseCredentialsInvalid", ""},
}

// What is said of a fault of a handler.
const (
	faultCode   = "ORDS-25001"
	faultCause  = "An error occurred when evaluating the SQL statement associated with this resource"
	faultAction = "Verify that the URI and payload are correctly specified for the requested operation. If the issue persists then please contact the author of the resource"
)

// problem is an error as an answer tells it.
type problem struct {
	failure
	errorCode, cause, action string
	allow                    string // of a 405
}

// problemOf is how err looks on the wire.
func (o *Options) problemOf(err error) problem {
	e := record.AsError(err)
	kind := e.Kind
	if kind >= record.NumKinds {
		kind = record.Internal
	}
	p := problem{failure: failures[kind]}
	if kind == record.Unavailable && o.status57x() {
		if f, ok := databaseFaults[e.Rule]; ok {
			p.failure = f
		}
	}
	switch kind {
	case record.NotAllowed:
		p.allow = e.Field
	case record.Rejected:
		p.errorCode, p.cause, p.action = faultCode, faultCause, faultAction
		if e.Err == nil && e.Msg != "" {
			p.cause = e.Msg // what a rule or a trigger says is meant for the caller
		}
		if o.Debug && e.Err != nil {
			p.cause += ". " + e.Err.Error()
			if e.Rule != "" {
				p.cause += " (" + e.Rule + ")"
			}
		}
	case record.Conflict, record.Restricted, record.Internal:
		if o.Debug && e.Err != nil {
			p.cause = e.Err.Error()
		}
	}
	if p.message == "" {
		if p.message = e.Msg; e.Field != "" && kind != record.NotAllowed && !strings.HasPrefix(e.Msg, e.Field) {
			p.message = e.Field + ": " + e.Msg
		}
	}
	return p
}

// title is a code in words: Not Found.
func title(code string) string {
	b := make([]byte, 0, len(code)+4)
	for i := 0; i < len(code); i++ {
		if i > 0 && code[i] >= 'A' && code[i] <= 'Z' {
			b = append(b, ' ')
		}
		b = append(b, code[i])
	}
	return string(b)
}

// Fail writes the problem document for err: JSON, or a page for people.
func (d *Dialect) Fail(c *dialect.Call, err error, a *wire.Answer) {
	o := d.options()
	o.fail(c, o.idOf(c), err, a)
}

// fail answers with err. Of what a block forwards to it does not hide what the block has done: its status and headers stand, and where
// it has set a status the body is left out.
func (q *request) fail(a *wire.Answer, err error) {
	if q.status != 0 {
		q.head(a, "")
		return
	}
	q.opt.fail(q.call, q.id, err, a)
	for _, f := range q.headers {
		a.Header.Set(f.Name, f.Value)
	}
}

func (o *Options) fail(c *dialect.Call, id string, err error, a *wire.Answer) {
	p := o.problemOf(err)
	a.Status = p.status
	o.trace(a, id)
	if p.allow != "" {
		a.Header.Add("Allow", p.allow)
	}
	if p.status == 503 {
		a.Header.Add("Retry-After", "1") // the door says more where it knows more
	}
	if o.asPage(c) {
		a.Header.Add("Content-Type", "text/html; charset=utf-8")
		if !c.Item || c.Method != "HEAD" {
			a.Body = p.appendPage(a.Body, id)
		}
		return
	}
	a.Header.Add("Content-Type", "application/problem+json")
	if !c.Item || c.Method != "HEAD" {
		a.Body = p.appendJSON(a.Body, id)
	}
}

func (p *problem) appendJSON(dst []byte, id string) []byte {
	member := func(name, value string) {
		if value == "" {
			return
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendQuote(dst, name), ':')
		dst = wire.AppendQuote(dst, value)
	}
	dst = append(dst, '{')
	member("code", p.code)
	member("title", title(p.code))
	member("message", p.message)
	member("o:errorCode", p.errorCode)
	member("cause", p.cause)
	member("action", p.action)
	member("type", "tag:oracle.com,2020:error/"+p.code)
	member("instance", "tag:oracle.com,2020:ecid/"+id)
	return append(dst, '}')
}

func (p *problem) appendPage(dst []byte, id string) []byte {
	line := func(name, text string) {
		if text != "" {
			dst = append(dst, "<dt>"+name+"</dt><dd>"+html.EscapeString(text)+"</dd>\n"...)
		}
	}
	head := strconv.Itoa(p.status) + " " + title(p.code)
	dst = append(dst, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>"+head+"</title></head>\n<body><h1>"+head+"</h1>\n<p>"...)
	dst = append(dst, html.EscapeString(p.message)...)
	dst = append(dst, "</p>\n<dl>\n"...)
	line("Error code", p.errorCode)
	line("Cause", p.cause)
	line("Action", p.action)
	line("Request", id)
	return append(dst, "</dl></body></html>\n"...)
}

// asPage reports whether a caller wants errors as a page for people (protocol notes, section 11).
func (o *Options) asPage(c *dialect.Call) bool {
	switch o.ErrorFormat {
	case ErrorJSON:
		return false
	case ErrorHTML:
		return true
	}
	if c.Header.Has("X-Requested-With") || strings.HasPrefix(c.Header.Get("User-Agent"), "curl/") {
		return false
	}
	form := c.Method == "POST" && isForm(mediaType(c.Header.Get("Content-Type")))
	if c.Header.Has("Origin") {
		return form
	}
	page, json := -1.0, -1.0
	for part := range strings.SplitSeq(c.Header.Get("Accept"), ",") {
		kind, params, _ := strings.Cut(part, ";")
		q := quality(params)
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/html", "application/xhtml+xml":
			page = max(page, q)
		case "application/json", "application/problem+json":
			json = max(json, q)
		}
	}
	return page > 0 && page > json
}

// quality is q of the parameters of a part of Accept.
func quality(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(p), "q="); ok {
			if q, err := strconv.ParseFloat(text, 64); err == nil {
				return q
			}
		}
	}
	return 1
}

// mediaType is a content type without its parameters, in lower case.
func mediaType(s string) string {
	kind, _, _ := strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

func isForm(media string) bool {
	return media == "application/x-www-form-urlencoded" || media == "multipart/form-data"
}

// maxID bounds the ids that callers give their requests.
const maxID = 128

// idOf is what a request is called in answers and in the database's log: what its caller calls it (protocol notes, section 16), or else
// the transaction's id.
func (o *Options) idOf(c *dialect.Call) string {
	id := c.Header.Get(o.TraceHeader)
	if id == "" || len(id) > maxID {
		return c.ID
	}
	for i := 0; i < len(id); i++ {
		switch b := id[i]; {
		case b >= '0' && b <= '9', b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', strings.IndexByte("-_.~:+/=@", b) >= 0:
		default:
			return c.ID // it is to stand in logs and in comments of SQL
		}
	}
	return id
}

// TraceOf is what a request is called.
func (d *Dialect) TraceOf(c *dialect.Call) string { return d.options().idOf(c) }

// trace adds the header that repeats the request's id.
func (o *Options) trace(a *wire.Answer, id string) {
	if id != "" {
		a.Header.Add(o.TraceHeader, id)
	}
}
