package now

import (
	"encoding/hex"
	"errors"
	"hash/fnv"
	"strings"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

// failure is how one kind of error looks on the wire. A detail of "" is null in JSON.
type failure struct {
	status  int
	message string // "": the error's own text
	detail  func(e *record.Error, w where) string
}

// where tells what a failed call wanted.
type where struct {
	method string
	table  string // "" when the path names none
}

// verb is the vendor's word for what the method does to a record; "" for reads.
func (w where) verb() string {
	switch w.method {
	case "POST":
		return "Insert"
	case "PUT", "PATCH":
		return "Update"
	case "DELETE":
		return "Delete"
	}
	return ""
}

const timeoutMessage = "Transaction cancelled: maximum execution time exceeded"

// failures is the one table of errors. Messages are what the vendor's clients look for; the detail tells more.
var failures = [record.NumKinds]failure{
	record.Internal:        {500, "Internal server error", says},
	record.Invalid:         {400, "", nil},
	record.Unauthenticated: {401, "User Not Authenticated", func(*record.Error, where) string { return "Required to provide Auth information" }},
	record.Forbidden:       {403, "Insufficient rights to query records", func(e *record.Error, _ where) string { return onField(e) }},
	record.NotFound:        {404, "No Record found", func(*record.Error, where) string { return "Record doesn't exist or ACL restricts the record retrieval" }},
	record.NoTable:         {400, "", nil},
	record.NoPath:          {400, "Requested URI does not represent any resource", nil},
	record.NotAllowed:      {405, "Method not supported", nil},
	record.Conflict:        {403, "Operation Failed", during("Unique Key violation detected by database")},
	record.Restricted:      {403, "Operation Failed", during("")},
	record.Rejected:        {403, "Operation Failed", aborted},
	record.Precondition:    {412, "Precondition Failed", says},
	record.Dependency:      {424, "Failed Dependency", says},
	record.TooLarge:        {413, "Request or answer is too large", says},
	record.Unsupported:     {415, "Unsupported media type", says},
	record.NotAcceptable:   {406, "Not Acceptable", says},
	record.RateLimited:     {429, "Rate limit exceeded", says},
	record.Busy:            {429, "Too Many Requests", says},
	record.Unavailable:     {503, "Service Unavailable", says},
	// The vendor's server often sends 200 here, after part of the rows. That has cost its users data: the status is honest.
	record.Timeout: {503, timeoutMessage, func(e *record.Error, w where) string {
		return timeoutMessage + " (" + says(e, w) + "). Check logs for error trace or enable glide.rest.debug property to verify REST request processing"
	}},
	record.Canceled: {503, "Transaction cancelled", says},
}

// says is the error's own text with its field.
func says(e *record.Error, _ where) string {
	if e.Field != "" && !strings.Contains(e.Msg, e.Field) {
		return e.Field + ": " + e.Msg
	}
	return e.Msg
}

// onField is the error's text if it is about one field.
func onField(e *record.Error) string {
	if e.Field == "" {
		return ""
	}
	return says(e, where{})
}

// during is the detail of a failed write: what was being done to which table, then why.
func during(why string) func(*record.Error, where) string {
	return func(e *record.Error, w where) string {
		what := strings.ToLower(w.verb())
		if what == "" {
			what = "operation"
		}
		text := "Error during " + what + " of " + w.table
		if why != "" {
			text += " : " + why
		}
		return text + " (" + says(e, w) + ")"
	}
}

// aborted is the detail of a write that a rule refused. Rules have no record, so the id after the name is made from it.
func aborted(e *record.Error, w where) string {
	sum := fnv.New128a()
	sum.Write([]byte(w.table + "." + e.Rule))
	text := "Operation against file '" + w.table + "' was aborted by Business Rule '" + e.Rule + "^" +
		hex.EncodeToString(sum.Sum(nil)) + "'. Business Rule Stack:" + e.Rule
	if e.Msg != "" {
		text += ". " + says(e, w)
	}
	return text
}

// rendering is the status, message and detail of err.
func rendering(err error, w where) (status int, message, detail string) {
	e := record.AsError(err)
	kind := e.Kind
	if kind >= record.NumKinds {
		kind = record.Internal
	}
	f := &failures[kind]
	verb := w.verb()
	switch {
	case kind == record.Invalid && errors.Is(err, dialect.ErrBody):
		return f.status, "Exception while reading request", e.Msg
	case kind == record.Invalid && verb != "" && w.table != "":
		return f.status, "Operation Failed", during("")(e, w)
	case kind == record.Forbidden && verb != "":
		detail = "ACL Exception " + verb + " Failed due to security constraints"
		if field := onField(e); field != "" {
			detail += " (" + field + ")"
		}
		return f.status, "Operation Failed", detail
	}
	message = f.message
	if message == "" {
		message = says(e, w)
	}
	if f.detail != nil {
		detail = f.detail(e, w)
	}
	return f.status, message, detail
}

// Fail writes the error envelope of err: {"error":{"message","detail"},"status":"failure"}, or the same as XML when the
// call accepts that.
func (d *Dialect) Fail(c *dialect.Call, err error, a *wire.Answer) {
	w := where{method: methodOf(c)}
	at, known := parsePath(c.Path)
	if known && len(at.rest) > 0 {
		w.table = at.rest[0]
	}
	status, message, detail := rendering(err, w)
	refuse(c, status, message, detail, a)
	switch status {
	case 401:
		a.Header.Add("WWW-Authenticate", `BASIC realm="Service-now"`)
	case 405:
		if allow := at.allow(); allow != "" {
			a.Header.Add("Allow", allow)
		}
	}
}

// refuse writes the error envelope. A detail of "" is null in JSON.
func refuse(c *dialect.Call, status int, message, detail string, a *wire.Answer) {
	f, _ := negotiate(c.Header.Get("Accept"))
	head(a, status, f)
	if methodOf(c) == "HEAD" {
		return
	}
	if f.xml() {
		a.Body = append(a.Body, xmlHead+"<response><error>"...)
		a.Body = appendElement(a.Body, "detail", func(b []byte) []byte { return wire.AppendXMLText(b, detail) })
		a.Body = appendElement(a.Body, "message", func(b []byte) []byte { return wire.AppendXMLText(b, message) })
		a.Body = append(a.Body, "</error><status>failure</status></response>"...)
		return
	}
	a.Body = append(a.Body, `{"error":{"message":`...)
	a.Body = wire.AppendQuote(a.Body, message)
	a.Body = append(a.Body, `,"detail":`...)
	if detail == "" {
		a.Body = append(a.Body, "null"...)
	} else {
		a.Body = wire.AppendQuote(a.Body, detail)
	}
	a.Body = append(a.Body, `},"status":"failure"}`...)
}

// allow is the methods that a path has.
func (at *address) allow() string {
	switch {
	case at.api == "table" && len(at.rest) == 1:
		return "GET, HEAD, POST"
	case at.api == "table" && len(at.rest) == 2:
		return "GET, HEAD, PUT, PATCH, DELETE"
	case at.api == "stats":
		return "GET, HEAD"
	case at.api == "batch":
		return "POST"
	case at.api == "import" && len(at.rest) == 2 && at.rest[1] != insertMultiple:
		return "GET, HEAD"
	case at.api == "import":
		return "POST"
	}
	return ""
}

// head sets status and the fields that every answer has.
func head(a *wire.Answer, status int, f format) {
	a.Status = status
	if a.Header == nil {
		a.Header = make(wire.Header, 0, len(noStore)+4)
	}
	if status != 204 {
		a.Header.Add("Content-Type", contentTypes[f])
	}
	a.Header = append(a.Header, noStore...)
}

// noStore is sent with every answer, as instances do.
var noStore = wire.Header{
	{Name: "Cache-Control", Value: "no-cache,no-store,must-revalidate,max-age=-1"},
	{Name: "Pragma", Value: "no-store,no-cache"},
	{Name: "Expires", Value: "0"},
}
