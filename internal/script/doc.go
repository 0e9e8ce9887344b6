// Package script runs scripted endpoints: JavaScript of the operator, in a sandbox without files, network or timers of its
// own, bounded in time, call depth, records and result.
//
// A script sees the objects that scripts of the imitated platform know: request and response, gs, GlideRecord,
// GlideAggregate, GlideDateTime and sn_ws_err. Records are read and written through [Data], on behalf of the caller, so
// that access rules apply. Every call has a runtime of its own and nothing passes from one caller's call to the next; what
// is shared between calls is compiled code. A [Runner] is safe for concurrent use.
//
// # Documents
//
// What goes in and out is JSON, made and read by the dialect that owns the endpoint. The arguments are
//
//	{"method":"GET","url":"/api/snc/orders/7?full=true","base":"https://host","query":"full=true",
//	 "params":{"id":"7"},"values":[["full","true"]],"headers":[["Accept","application/json"]],
//	 "body":"text as it came","data":{…}}
//
// where values are the decoded query parameters in their order, body is "" if there was none, and data, if there, is the
// body in a form other than JSON (XML, or JSON in single quotes) as the JSON that it means. The result is
//
//	{"status":200,"headers":[["Location","…"]],"type":"application/json","body":{…}}
//	{"status":200,"headers":[],"type":"text/csv","stream":"text as it goes out"}
//	{"status":404,"headers":[],"error":{"message":"…","detail":"…"}}
//
// with status 0 where the script set none, and without body where it gave none. A script that fails by itself is an error of status 500 whose message is the
// script's; what is no script's fault, such as a limit or a missing role, is a [record.Error].
package script
