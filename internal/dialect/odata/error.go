package odata

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/dialect"
	"weir/internal/edm"
	"weir/internal/record"
	"weir/internal/wire"
)

// fault is an error on its way to the wire.
type fault struct {
	status    int
	code      string
	message   string
	target    string // property or position at fault, "ToProducts(3)/Price"
	contentID string // of the part of a changeset that failed
	details   []fault
	err       *record.Error
}

// failure is how one kind of error looks on the wire. A text of "" is the error's own.
type failure struct {
	status, status4 int // by version
	code, code4     string
	text            string
}

// What clients look for in texts and codes, from the protocol notes, section 4, and the messages of SAP Gateway.
const (
	malformedText   = "Data Services Request could not be understood due to malformed syntax"
	conditionalText = "Data service request is required to be conditional; try using If-Match"
	changedText     = "State of the resource (entity) was already changed (If-Match)"
)

// failures is the one table of errors. What a client sent and a rule, a key or another record refuses is a business error, which
// Gateway answers by 400 whatever the reason; V4 says 409 where two records meet.
var failures = [record.NumKinds]failure{
	record.Internal:        {500, 500, "SY/530", "WEIR/500", ""},
	record.Invalid:         {400, 400, "/IWBEP/CM_MGW_RT/022", "/IWBEP/CM_V4_RUNTIME/022", ""},
	record.Unauthenticated: {401, 401, "/IWFND/CM_MGW/401", "/IWBEP/CM_V4_RUNTIME/401", ""},
	record.Forbidden:       {403, 403, "/IWFND/CM_MGW/403", "/IWBEP/CM_V4_RUNTIME/403", ""},
	record.NotFound:        {404, 404, "/IWBEP/CM_MGW_RT/020", "/IWBEP/CM_V4_RUNTIME/404", ""},
	record.NoTable:         {404, 404, "/IWBEP/CM_MGW_RT/020", "/IWBEP/CM_V4_RUNTIME/404", ""},
	record.NoPath:          {404, 404, "/IWBEP/CM_MGW_RT/020", "/IWBEP/CM_V4_RUNTIME/404", ""},
	record.NotAllowed:      {405, 405, "/IWFND/CM_MGW/405", "/IWBEP/CM_V4_RUNTIME/405", ""},
	record.Conflict:        {400, 409, "/IWBEP/CM_MGW_RT/022", "/IWBEP/CM_V4_RUNTIME/409", ""},
	record.Restricted:      {400, 409, "/IWBEP/CM_MGW_RT/022", "/IWBEP/CM_V4_RUNTIME/409", ""},
	record.Rejected:        {400, 400, "/IWBEP/CM_MGW_RT/022", "/IWBEP/CM_V4_RUNTIME/022", ""},
	record.Precondition:    {412, 412, "/IWBEP/CM_MGW_RT/190", "/IWBEP/CM_V4_RUNTIME/412", changedText},
	record.Dependency:      {424, 424, "/IWFND/CM_MGW/424", "/IWBEP/CM_V4_RUNTIME/424", ""},
	record.TooLarge:        {413, 413, "/IWFND/CM_MGW/413", "/IWBEP/CM_V4_RUNTIME/413", ""},
	record.Unsupported:     {415, 415, "/IWFND/CM_MGW/415", "/IWBEP/CM_V4_RUNTIME/415", ""},
	record.NotAcceptable:   {406, 406, "/IWFND/CM_MGW/406", "/IWBEP/CM_V4_RUNTIME/406", ""},
	record.RateLimited:     {429, 429, "/IWFND/CM_MGW/429", "/IWBEP/CM_V4_RUNTIME/429", ""},
	// UI5 waits as long as Retry-After says and repeats a request that was answered by 503, and by nothing else.
	record.Busy:        {503, 503, "/IWFND/CM_MGW/503", "/IWBEP/CM_V4_RUNTIME/503", ""},
	record.Unavailable: {503, 503, "/IWFND/CM_MGW/503", "/IWBEP/CM_V4_RUNTIME/503", ""},
	record.Timeout:     {503, 503, "/IWFND/CM_MGW/504", "/IWBEP/CM_V4_RUNTIME/504", ""},
	record.Canceled:    {503, 503, "/IWFND/CM_MGW/499", "/IWBEP/CM_V4_RUNTIME/499", ""},
}

// Causes that give an error another status than its kind.
var (
	errUnconditional = errors.New("the request must be conditional") // of a Precondition: 428
	errUnsupported   = errors.New("not supported here")              // of an Invalid: 501
)

// unconditional is the error of a change without If-Match where entities have versions.
func unconditional() error {
	return record.Errorf(record.Precondition, "", conditionalText).Because(errUnconditional)
}

// unsupported is the error of something that the protocol knows and we do not.
func unsupported(field, format string, args ...any) error {
	return record.Errorf(record.Invalid, field, format, args...).Because(errUnsupported)
}

// allowed is the cause of a NotAllowed: the methods that the address has.
type allowed string

func (m allowed) Error() string { return "allowed: " + string(m) }

// notAllowed is the error of a method that the address does not have; methods are those that it has.
func notAllowed(method, what string, methods ...string) error {
	return record.Errorf(record.NotAllowed, "", "%s is not allowed for %s", method, what).Because(allowed(strings.Join(methods, ", ")))
}

// retryAfter is how many seconds a client shall wait, where the server does not know better.
const retryAfter = "1"

// faultOf is how err looks in a version of the protocol.
func faultOf(ver version, err error) *fault {
	e := record.AsError(err)
	kind := e.Kind
	if kind >= record.NumKinds {
		kind = record.Internal
	}
	k := &failures[kind]
	f := &fault{status: k.status, code: k.code, message: k.text, target: e.Field, err: e}
	if ver == v4 {
		f.status, f.code = k.status4, k.code4
	}
	if f.message == "" {
		f.message = e.Msg
	}
	switch {
	case kind == record.Precondition && errors.Is(err, errUnconditional):
		f.status, f.message, f.target = 428, conditionalText, ""
		f.code = "/IWBEP/CM_MGW_RT/428"
		if ver == v4 {
			f.code = "/IWBEP/CM_V4_RUNTIME/020"
		}
	case kind == record.Precondition:
		f.target = "" // the field is the one that holds the version
	case kind == record.Invalid && errors.Is(err, errUnsupported):
		f.status = 501
	case kind == record.Invalid && errors.Is(err, dialect.ErrBody):
		f.message = malformedText + ": " + e.Msg
	case kind == record.Dependency:
		f.target = "" // the field is the number of an op
	case (kind == record.Unsupported || kind == record.NotAcceptable) && !strings.HasPrefix(f.target, "$"):
		f.target = "" // the field is a header
	}
	var s *statusError
	if errors.As(err, &s) {
		f.status = s.status
	}
	return f
}

// statusError is the cause of an error whose status somebody else has chosen: a script.
type statusError struct{ status int }

func (s *statusError) Error() string { return "status " + strconv.Itoa(s.status) }

// notFoundAt is a NotFound as the wire tells it: the engine does not know what the path called the record.
func notFoundAt(segment string) *record.Error {
	return record.Errorf(record.NotFound, "", "Resource not found for segment '%.120s'", segment)
}

// fail writes the error envelope of a call that has been understood so far.
func (q *request) fail(a *wire.Answer, err error) { q.refuse(a, q.fault(err)) }

// fault is how err looks in answers to the call.
func (q *request) fault(err error) *fault {
	if e := record.AsError(err); e.Kind == record.NotFound && e.Err == nil {
		err = notFoundAt(lastSegment(q.rest))
	}
	return faultOf(q.ver, err)
}

// lastSegment is the last segment of a path without its key, for messages.
func lastSegment(path string) string {
	path, _, _ = strings.Cut(path, "?")
	quoted, from, end := false, 0, len(path)
	for i := range len(path) {
		switch c := path[i]; {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '/':
			from, end = i+1, len(path)
		case c == '(' && end == len(path):
			end = i
		}
	}
	return path[from:end]
}

// fail writes the error envelope for err in the format that the call accepts, of whatever is wrong with the call.
func (d *Dialect) fail(c *dialect.Call, err error, a *wire.Answer) {
	q := &request{d: d, call: c, ver: versionOf(c.Path), method: methodOf(c), rest: c.Path}
	if i := strings.LastIndexByte(c.Path, '/'); i >= 0 {
		q.rest = c.Path[i+1:]
	}
	q.query, _ = parseParams(c.RawQuery)
	q.format, _ = q.negotiate()
	if q.format == nil && q.ver == v2 {
		// What the caller would like to read cannot be written, so it is told in what it is likely to understand.
		q.format = atom2{}
		if strings.Contains(c.Header.Get("Accept"), "json") {
			q.format = json2{}
		}
	}
	q.fail(a, err)
}

// versionOf is the version of the protocol that a path speaks.
func versionOf(path string) version {
	if strings.HasPrefix(path, "/sap/opu/odata4/") || strings.HasPrefix(path, "/odata/v4/") {
		return v4
	}
	return v2
}

// refuse writes status, headers and body of an error.
func (q *request) refuse(a *wire.Answer, f *fault) {
	if f.contentID == "" {
		f.contentID = q.call.ContentID
	}
	// Whatever an answer had been prepared so far is gone.
	a.Header, a.Body = a.Header[:0], a.Body[:0]
	q.head(a, f.status)
	xml := q.ver == v2 && q.format != nil && q.format.xml()
	switch {
	case q.ver == v4:
		a.Header.Add("Content-Type", contentJSON4[minimal][0])
	case xml:
		a.Header.Add("Content-Type", contentXML)
	default:
		a.Header.Add("Content-Type", contentJSON2)
	}
	var methods allowed
	if f.status == 405 && f.err != nil && errors.As(f.err, &methods) && methods != "" {
		a.Header.Add("Allow", string(methods))
	}
	if f.status == 503 {
		a.Header.Add("Retry-After", retryAfter)
	}
	switch {
	case q.ver == v4:
		a.Body = appendFault4(a.Body, f)
	case xml:
		a.Body = q.appendFaultXML(a.Body, f)
	default:
		a.Body = q.appendFault2(a.Body, f)
	}
}

// listed are the details of a fault. A fault that names a place or a part of a changeset and has none is its own detail: UI5 attributes
// details to requests, the message around them to all (protocol notes, section 4).
func (f *fault) listed() []fault {
	if len(f.details) > 0 || f.target == "" && f.contentID == "" {
		return f.details
	}
	return []fault{{code: f.code, message: f.message, target: f.target, contentID: f.contentID}}
}

// property is the name of the property at the end of a target, "" if the target is an entity.
func property(target string) string {
	if strings.HasSuffix(target, ")") {
		return ""
	}
	// A target that names an entity nested in a single one cannot be told from a property; then the name says as much.
	return target[strings.LastIndexByte(target, '/')+1:]
}

// application says which service failed: namespace and name from the path.
func application(path string) (namespace, name, number string) {
	number = "0001"
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch {
	case len(parts) > 4 && parts[0] == "sap":
		namespace, name = "/"+parts[3]+"/", parts[4]
		if parts[3] == "sap" || parts[3] == "SAP" {
			namespace = "/SAP/"
		}
	case len(parts) > 2:
		namespace, name = "/"+strings.ToUpper(parts[0])+"/", parts[2]
	}
	name, rest, _ := strings.Cut(name, ";")
	for p := range strings.SplitSeq(rest, ";") {
		if n, ok := strings.CutPrefix(p, "v="); ok && len(n) <= 4 {
			number = strings.Repeat("0", 4-len(n)) + n
		}
	}
	return namespace, name, number
}

// resolution is what Gateway tells of where to look further.
const (
	resolutionTransaction = "Run weir trace with the transaction id above to see what the request did"
	resolutionNote        = "The log of the server holds the cause under the same id"
)

// timestamp is a time as V2 errors write it: 20240131100000.0000000.
func appendTimestamp(dst []byte, t time.Time) []byte {
	dst = t.UTC().AppendFormat(dst, "20060102150405.000000")
	return append(dst, '0')
}

// appendFault2 writes the envelope of V2 in JSON (protocol notes, section 4).
func (q *request) appendFault2(dst []byte, f *fault) []byte {
	namespace, name, number := application(q.call.Path)
	dst = wire.AppendQuote(append(dst, `{"error":{"code":`...), f.code)
	dst = wire.AppendQuote(append(dst, `,"message":{"lang":"en","value":`...), f.message)
	dst = append(dst, `},"innererror":{"application":{"component_id":"WEIR","service_namespace":`...)
	dst = wire.AppendQuote(dst, namespace)
	dst = wire.AppendQuote(append(dst, `,"service_id":`...), name)
	dst = wire.AppendQuote(append(dst, `,"service_version":`...), number)
	dst = wire.AppendQuote(append(dst, `},"transactionid":`...), q.call.ID)
	dst = appendTimestamp(append(dst, `,"timestamp":"`...), q.d.now())
	dst = wire.AppendQuote(append(dst, `","Error_Resolution":{"SAP_Transaction":`...), resolutionTransaction)
	dst = wire.AppendQuote(append(dst, `,"SAP_Note":`...), resolutionNote)
	dst = append(dst, `},"errordetails":[`...)
	for i, e := range f.listed() {
		if i > 0 {
			dst = append(dst, ',')
		}
		id := e.contentID
		if id == "" {
			id = f.contentID
		}
		dst = wire.AppendQuote(append(dst, `{"code":`...), e.code)
		dst = wire.AppendQuote(append(dst, `,"message":`...), e.message)
		dst = wire.AppendQuote(append(dst, `,"propertyref":`...), property(e.target))
		dst = append(dst, `,"severity":"error","transition":false,"target":`...)
		dst = wire.AppendQuote(dst, e.target)
		dst = append(wire.AppendQuote(append(dst, `,"ContentID":`...), id), '}')
	}
	return append(dst, "]}}}"...)
}

// appendFaultXML writes the envelope of V2 in XML (protocol notes, section 4).
func (q *request) appendFaultXML(dst []byte, f *fault) []byte {
	element := func(name, text string) {
		dst = append(append(append(dst, '<'), name...), '>')
		dst = wire.AppendXMLText(dst, text)
		dst = append(append(append(dst, "</"...), name...), '>')
	}
	namespace, name, number := application(q.call.Path)
	dst = append(dst, xmlHead+`<error xmlns="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata">`...)
	element("code", f.code)
	dst = append(dst, `<message xml:lang="en">`...)
	dst = append(wire.AppendXMLText(dst, f.message), `</message><innererror><application><component_id>WEIR</component_id>`...)
	element("service_namespace", namespace)
	element("service_id", name)
	element("service_version", number)
	dst = append(dst, "</application>"...)
	element("transactionid", q.call.ID)
	element("timestamp", string(appendTimestamp(nil, q.d.now())))
	dst = append(dst, "<Error_Resolution>"...)
	element("SAP_Transaction", resolutionTransaction)
	element("SAP_Note", resolutionNote)
	dst = append(dst, "</Error_Resolution><errordetails>"...)
	for _, e := range f.listed() {
		id := e.contentID
		if id == "" {
			id = f.contentID
		}
		dst = append(dst, "<errordetail>"...)
		element("code", e.code)
		element("message", e.message)
		element("propertyref", property(e.target))
		element("severity", "error")
		element("transition", "false")
		element("target", e.target)
		element("ContentID", id)
		dst = append(dst, "</errordetail>"...)
	}
	return append(dst, "</errordetails></innererror></error>"...)
}

// appendFault4 writes the envelope of V4 with the annotations that UI5 reads (protocol notes, section 9).
func appendFault4(dst []byte, f *fault) []byte {
	return append(appendFaultObject4(append(dst, `{"error":`...), f), '}')
}

// appendFaultObject4 writes the error object of V4, which delta payloads hold too.
func appendFaultObject4(dst []byte, f *fault) []byte {
	dst = wire.AppendQuote(append(dst, `{"code":`...), f.code)
	dst = wire.AppendQuote(append(dst, `,"message":`...), f.message)
	if f.target != "" {
		dst = wire.AppendQuote(append(dst, `,"target":`...), f.target)
	}
	if f.contentID != "" {
		dst = wire.AppendQuote(append(dst, `,"@Core.ContentID":`...), f.contentID)
	}
	dst = append(dst, `,"@SAP__common.numericSeverity":4`...)
	if len(f.details) > 0 {
		dst = append(dst, `,"details":[`...)
		for i := range f.details {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendFaultObject4(dst, &f.details[i])
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// at is f with its target below position: "Price" of the entity at "ToProducts(3)" is "ToProducts(3)/Price". A field of the entity's
// table is called by the name of its property.
func (f *fault) at(typ *edm.Type, position string) {
	if typ != nil && f.target != "" {
		f.target = propertyNames(typ, f.target)
	}
	switch {
	case position == "":
	case f.target == "":
		f.target = position
	default:
		f.target = position + "/" + f.target
	}
}

// propertyNames is a list of field names with commas between, as the engine names what is unique together, with the first of them
// that clients know called by the name of its property. What is no field stays as it is.
func propertyNames(typ *edm.Type, fields string) string {
	for name := range strings.SplitSeq(fields, ",") {
		if p := propertyOf(typ, strings.TrimSpace(name)); p != nil {
			if p.Parent != nil {
				return p.Parent.Name + "/" + p.Name
			}
			return p.Name
		}
	}
	return fields
}

// propertyOf finds the property over a field.
func propertyOf(typ *edm.Type, field string) *edm.Property {
	over := func(p *edm.Property) bool { return p.Field != nil && p.Field.Name == field }
	for _, p := range typ.Properties {
		if over(p) {
			return p
		}
		if i := slices.IndexFunc(p.Parts, over); i >= 0 {
			return p.Parts[i]
		}
	}
	return nil
}

// message is what a successful answer has to say.
type message struct {
	code, text, severity, target string // severity is success, info, warning or error
}

// header is the value of a sap-message header (protocol notes, section 4).
func (m *message) header() string {
	b := wire.AppendQuote([]byte(`{"code":`), m.code)
	b = wire.AppendQuote(append(b, `,"message":`...), m.text)
	b = wire.AppendQuote(append(b, `,"severity":`...), m.severity)
	b = wire.AppendQuote(append(b, `,"target":`...), m.target)
	return headerJSON(string(append(b, `,"details":[]}`...)))
}

// headerJSON is a JSON text in ASCII without line ends, which is all that a header can hold.
func headerJSON(s string) string {
	out := make([]byte, 0, len(s)+16)
	for _, r := range s {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			out = append(out, ' ') // between values; within texts they are escaped
		case r < 0x80:
			out = append(out, byte(r))
		case r > 0xFFFF:
			r -= 0x10000
			out = appendEscape(appendEscape(out, 0xD800+r>>10), 0xDC00+r&0x3FF)
		default:
			out = appendEscape(out, r)
		}
	}
	return string(out)
}

func appendEscape(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
