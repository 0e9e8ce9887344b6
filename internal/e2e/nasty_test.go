package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// nasty is one request that no careful client sends. It goes over a raw connection, because careful clients refuse to send it.
type nasty struct {
	name   string
	raw    string // everything, when head and body would not do
	method string
	path   string // as on the wire
	fields []string
	body   string
	front  bool // refused before the request is understood, by whatever reads HTTP: no envelope can be asked for
}

const (
	asJSON  = "Content-Type: application/json"
	asXML   = "Content-Type: application/xml"
	wantXML = "Accept: application/xml"
)

// fragments are what people write into parameters to see what happens.
var fragments = map[string]string{
	"quote":            `'`,
	"double quote":     `"`,
	"sql":              `' OR 1=1; DROP TABLE incident; --`,
	"union":            `x' UNION SELECT user_password FROM sys_user --`,
	"comment":          `/*`,
	"dollar":           `$1`,
	"placeholder":      `?`,
	"backslash":        `\`,
	"percent":          `%`,
	"nul":              "\x00",
	"control":          "\x01\x1f\x7f",
	"invalid utf8":     "\xff\xfe",
	"surrogate":        "\xed\xa0\x80",
	"newline":          "a\r\nSet-Cookie: x=1",
	"template":         `${1+1}{{1}}<%= 1 %>`,
	"markup":           `<script>alert(1)</script>`,
	"javascript":       `javascript:gs.exec('rm')`,
	"path":             `../../etc/passwd`,
	"long":             strings.Repeat("a", 30_000),
	"carets":           strings.Repeat("^", 500),
	"wide":             strings.Repeat("\U0001F600", 500),
	"number":           `99999999999999999999999999`,
	"negative":         `-1`,
	"float":            `1e309`,
	"operators":        `=!=<><=>=LIKE`,
	"dots":             `a.b.c.d.e.f.g.h.i.j.k.l.m`,
	"walk":             strings.Repeat("caller_id.", 200) + "name",
	"walk in a circle": strings.TrimSuffix(strings.Repeat("manager.manager.", 60), "."),
}

// parameters are where the fragments go.
var parameters = []string{
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=short_description=",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=short_descriptionLIKE",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=opened_at>",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=stateIN",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=ORDERBY",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=priority=",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=active=",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=RLQUERY",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=JOIN",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=opened_atON",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=opened_atRELATIVE",
	"/api/now/table/incident?sysparm_limit=3&sysparm_query=caller_idDYNAMIC",
	"/api/now/table/incident?sysparm_limit=3&sysparm_fields=",
	"/api/now/table/incident?sysparm_limit=",
	"/api/now/table/incident?sysparm_limit=1&sysparm_offset=",
	"/api/now/table/incident?sysparm_limit=1&sysparm_display_value=",
	"/api/now/table/incident?sysparm_limit=1&sysparm_view=",
	"/api/now/table/incident?sysparm_limit=1&short_description=",
	"/api/now/table/incident?sysparm_limit=1&",
	"/api/now/table/",
	"/api/now/table/incident/",
	"/api/now/stats/incident?sysparm_count=true&sysparm_group_by=",
	"/api/now/stats/incident?sysparm_count=true&sysparm_query=",
	"/api/now/stats/incident?sysparm_avg_fields=",
	"/api/now/stats/incident?sysparm_count=true&sysparm_group_by=state&sysparm_having=",
	"/api/now/stats/incident?sysparm_count=true&sysparm_group_by=state&sysparm_order_by=",
	"/api/now/stats/",
	"/api/snc/",
	"/api/snc/test_api_1/",
	"/",
}

// queries are encoded queries with something missing, or too much of it.
var queries = []string{
	"=", "^", "^^", "^^^", "^OR", "^NQ", "^EQ", "^NQ^NQ^NQ", "^ORstate=1", "state", "state=", "=1", "state==", "state=1^", "^state=1", "state=1^OR", "state=1^OR^OR",
	"stateIN", "stateIN,", "stateIN,,,,", "stateNOT IN", "stateBETWEEN", "stateBETWEEN1", "stateBETWEEN1@", "stateBETWEEN@", "stateBETWEEN1@2@3",
	"opened_atON", "opened_atONToday", "opened_atONToday@", "opened_atONToday@javascript:", "opened_atONToday@javascript:gs.daysAgoStart(@javascript:gs.x",
	"opened_atRELATIVEGT", "opened_atRELATIVEGT@", "opened_atRELATIVEGT@day@ago@", "opened_atRELATIVEGT@century@ago@1", "opened_atRELATIVEGT@year@ago@999999999999",
	"opened_at>javascript:gs.daysAgo(999999999)", "opened_at>javascript:gs.daysAgo(", "opened_at>javascript:gs.dateGenerate('x','y')", "opened_at>9999-99-99", "opened_at>0000-00-00 00:00:00",
	"opened_atDATEPART", "opened_atDATEPARTx@javascript:gs.datePart('a','b','c')", "opened_atMORETHAN", "opened_atMORETHANclosed_at@day@before@x", "opened_atSAMEAS", "opened_atSAMEASnothing@day",
	"stateGT_FIELD", "stateGT_FIELDnothing", "stateSAMEASshort_description", "caller_idDYNAMIC", "caller_idDYNAMICnothing", "caller_idIN_HIERARCHY", "sys_class_nameINSTANCEOF", "sys_class_nameINSTANCEOFnothing",
	"123TEXTQUERY321=", "IR_AND_QUERY=", "JOIN", "JOINincident", "JOINincident.=x.", "JOINincident.caller_id=sys_user.sys_id", "JOINincident.caller_id=nothing.sys_id!x=1", "JOINx.y=z.w!JOINx.y=z.w!",
	"RLQUERY", "RLQUERYincident", "RLQUERYincident.parent,", "RLQUERYincident.parent,>=", "RLQUERYincident.parent,>=x", "RLQUERYincident.parent,>=1", "RLQUERYincident.parent,>=1^ENDRLQUERY^ENDRLQUERY", "RLQUERYincident.parent,>=99999999999999999999^ENDRLQUERY", "ENDRLQUERY",
	"ORDERBY", "ORDERBYDESC", "ORDERBYnothing", "ORDERBYcaller_id.nothing", "ORDERBYshort_description^ORDERBYDESCshort_description", "GROUPBY", "GROUPBYnothing",
	"caller_id.=x", "caller_id..name=x", ".name=x", "caller_id.name.x=y", "short_description.x=y", "user_password=x", "caller_id.user_password=x", "caller_id.user_passwordSTARTSWITH$argon",
	"sys_id=" + "x", "sys_idIN" + strings.Repeat("x,", 5000), strings.Repeat("state=1^OR", 3000) + "state=2", strings.Repeat("state=1^", 3000) + "state=2", strings.Repeat("state=1^NQ", 2000) + "state=2",
	"priority=99999999999999999999", "priority=1.5", "priority=x", "active=maybe", "priority>", "business_duration>x", "sys_mod_count<-99999999999999999999999",
}

func nastyRequests() []nasty {
	var all []nasty
	add := func(n nasty) { all = append(all, n) }
	get := func(name, path string, fields ...string) {
		add(nasty{name: name, method: "GET", path: path, fields: fields})
	}
	post := func(name, path, body string, fields ...string) {
		add(nasty{name: name, method: "POST", path: path, body: body, fields: fields})
	}

	for _, where := range parameters {
		for name, f := range fragments {
			get(where+" "+name, where+strings.ReplaceAll(url.QueryEscape(f), "+", "%20"))
		}
		for name, escape := range map[string]string{"half an escape": "%", "wrong escape": "%zz"} {
			get(where+" "+name, where+escape)
			all[len(all)-1].front = !strings.Contains(where, "?") // net/http refuses a path that is none
		}
	}
	for _, q := range queries {
		get("query "+q[:min(len(q), 60)], "/api/now/table/incident?sysparm_limit=2&sysparm_query="+url.QueryEscape(q))
		get("stats query "+q[:min(len(q), 60)], "/api/now/stats/incident?sysparm_count=true&sysparm_query="+url.QueryEscape(q))
	}

	const incidents = "/api/now/table/incident"
	const one = incidents + "/060a84bc41c6dfa795858d3e6d828a1b"
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	deepList := strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000)
	deepXML := "<request><entry>" + strings.Repeat("<a>", 20_000) + strings.Repeat("</a>", 20_000) + "</entry></request>"
	bodies := map[string]string{
		"half an object": `{"short_description":"x`, "no value": `{"short_description":}`, "two values": `{} {}`, "only a comma": `,`, "text": `hello`, "number": `1`, "null": `null`,
		"string": `"x"`, "empty list": `[]`, "list of numbers": `[1,2]`, "nested": deep, "nested list": deepList, "byte order mark": "\xef\xbb\xbf{}", "utf16": "\xff\xfe{\x00}\x00",
		"invalid utf8": "{\"short_description\":\"\xff\"}", "lone surrogate": `{"short_description":"\ud800"}`, "nul escape": `{"short_description":"a\u0000b"}`, "nul": "{\"short_description\":\"a\x00b\"}",
		"nul in a name": `{"short_\u0000description":"b"}`, "same name twice": `{"state":"1","state":"2"}`, "huge number": `{"state":1e400}`, "long number": `{"state":` + strings.Repeat("9", 5000) + `}`,
		"object as value": `{"state":{"a":1}}`, "list as value": `{"state":[1]}`, "null as value": `{"state":null}`, "wrong type": `{"state":"open"}`, "too large for integer": `{"state":"99999999999"}`,
		"wrong date": `{"opened_at":"yesterday"}`, "month 13": `{"opened_at":"2026-13-01 00:00:00"}`, "year 99999": `{"opened_at":"99999-01-01 00:00:00"}`, "wrong reference": `{"caller_id":"nobody at all"}`,
		"reference to itself": `{"parent":"060a84bc41c6dfa795858d3e6d828a1b"}`, "wrong sys_id": `{"sys_id":"' OR 1=1"}`, "sys_id taken": `{"sys_id":"060a84bc41c6dfa795858d3e6d828a1b"}`, "empty sys_id": `{"sys_id":""}`,
		"number taken": `{"number":"INC0000001"}`, "too long": `{"short_description":"` + strings.Repeat("x", 100_000) + `"}`, "too long name": `{"` + strings.Repeat("x", 100_000) + `":"1"}`,
		"many fields": manyFields(20_000), "state that cannot be": `{"state":"77"}`, "resolved without a code": `{"state":"6"}`, "class of another": `{"sys_class_name":"sys_user"}`,
		"single quotes open": `{'short_description':'x`, "single quotes mixed": `{'a":'b"}`, "comment": `{/* x */}`, "trailing comma": `{"a":"b",}`,
	}
	for name, body := range bodies {
		post("POST "+name, incidents, body, asJSON)
		add(nasty{name: "PATCH " + name, method: "PATCH", path: one, body: body, fields: []string{asJSON}})
		post("import "+name, "/api/now/import/imp_user", body, asJSON)
		post("batch "+name, "/api/now/batch", body, asJSON)
		post("batch item "+name, "/api/now/batch", `{"batch_request_id":"1","rest_requests":[{"id":"1","method":"POST","url":"/api/now/table/incident","headers":[{"name":"Content-Type","value":"application/json"}],"body":"`+base64.StdEncoding.EncodeToString([]byte(body))+`"}]}`, asJSON)
	}
	xmls := map[string]string{
		"open": `<request><entry>`, "text": `hello`, "no entry": `<request/>`, "empty": ` `, "deep": deepXML, "entities": `<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><request><entry><short_description>&b;</short_description></entry></request>`,
		"external": `<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><request><entry><short_description>&x;</short_description></entry></request>`, "encoding": `<?xml version="1.0" encoding="EBCDIC"?><request/>`,
		"control": "<request><entry><short_description>\x01</short_description></entry></request>", "two roots": `<request/><request/>`, "wrong nesting": `<request><entry></request></entry>`, "processing": `<?php x ?>`,
		"nul": "<request><entry><short_description>a\x00b</short_description></entry></request>", "character": `<request><entry><short_description>&#0;</short_description></entry></request>`,
		"attribute": `<request a="1" a="2"><entry/></request>`, "cdata": `<request><entry><short_description><![CDATA[</short_description></entry></request>`,
	}
	for name, body := range xmls {
		post("XML "+name, incidents, body, asXML, wantXML)
		add(nasty{name: "XML PATCH " + name, method: "PATCH", path: one, body: body, fields: []string{asXML, wantXML}})
	}

	items := map[string]string{
		"no items": `{"batch_request_id":"1"}`, "items no list": `{"rest_requests":{}}`, "items null": `{"rest_requests":null}`, "item a number": `{"rest_requests":[1]}`, "item null": `{"rest_requests":[null]}`, "item a list": `{"rest_requests":[[]]}`,
		"empty item": `{"rest_requests":[{}]}`, "no url": `{"rest_requests":[{"id":"1","method":"GET"}]}`, "no method": `{"rest_requests":[{"id":"1","url":"/api/now/table/incident"}]}`, "no id": `{"rest_requests":[{"method":"GET","url":"/api/now/table/incident?sysparm_limit=1"}]}`,
		"id an object": `{"rest_requests":[{"id":{},"method":"GET","url":"/api/now/table/incident?sysparm_limit=1"}]}`, "url a number": `{"rest_requests":[{"id":"1","method":"GET","url":5}]}`, "method a list": `{"rest_requests":[{"id":"1","method":[],"url":"/x"}]}`,
		"bad base64":       `{"rest_requests":[{"id":"1","method":"POST","url":"/api/now/table/incident","body":"%%%"}]}`,
		"body an object":   `{"rest_requests":[{"id":"1","method":"POST","url":"/api/now/table/incident","body":{}}]}`,
		"headers a string": `{"rest_requests":[{"id":"1","method":"GET","url":"/api/now/table/incident?sysparm_limit=1","headers":"x"}]}`,
		"header no name":   `{"rest_requests":[{"id":"1","method":"GET","url":"/api/now/table/incident?sysparm_limit=1","headers":[{}]}]}`,
		"header split":     `{"rest_requests":[{"id":"1","method":"GET","url":"/api/now/table/incident?sysparm_limit=1","headers":[{"name":"Accept","value":"a\r\nX: y"}]}]}`,
		"nested":           `{"rest_requests":[{"id":"1","method":"POST","url":"/api/now/batch","body":"e30="}]}`,
		"nested v1":        `{"rest_requests":[{"id":"1","method":"POST","url":"api/now/v1/batch","body":"e30="}]}`,
		"nested hidden":    `{"rest_requests":[{"id":"1","method":"POST","url":"/api/now/./v1/../batch","body":"e30="}]}`,
		"token":            `{"rest_requests":[{"id":"1","method":"POST","url":"/oauth_token.do","body":"e30="}]}`,
		"metrics":          `{"rest_requests":[{"id":"1","method":"GET","url":"/metrics"}]}`,
		"other host":       `{"rest_requests":[{"id":"1","method":"GET","url":"http://169.254.169.254/latest"}]}`,
		"file":             `{"rest_requests":[{"id":"1","method":"GET","url":"file:///etc/passwd"}]}`,
		"bad escape":       `{"rest_requests":[{"id":"1","method":"GET","url":"/api/now/table/incident?sysparm_query=%zz"}]}`,
		"nul in url":       `{"rest_requests":[{"id":"1","method":"GET","url":"/api/now/table/\u0000"}]}`,
		"wrong method":     `{"rest_requests":[{"id":"1","method":"BREW","url":"/api/now/table/incident"}]}`,
		"same id":          `{"rest_requests":[{"id":"1","method":"GET","url":"/x"},{"id":"1","method":"GET","url":"/y"}]}`,
		"needs itself":     `{"rest_requests":[{"id":"1","method":"GET","url":"/api/now/table/incident?sysparm_limit=1","depends_on":["1"]}]}`,
		"needs a circle":   `{"rest_requests":[{"id":"1","method":"GET","url":"/a","depends_on":["2"]},{"id":"2","method":"GET","url":"/b","depends_on":["1"]}]}`,
		"needs nobody":     `{"rest_requests":[{"id":"1","method":"GET","url":"/a","depends_on":["9"]}]}`,
		"needs a number":   `{"rest_requests":[{"id":"1","method":"GET","url":"/a","depends_on":9}]}`,
		"placeholder":      `{"rest_requests":[{"id":"1","method":"GET","url":"/api/now/table/${2.result.x}"}]}`,
		"placeholder open": `{"rest_requests":[{"id":"1","method":"GET","url":"/api/now/table/incident?sysparm_query=${","depends_on":["1"]}]}`,
		"order a string":   `{"enforce_order":"perhaps","rest_requests":[]}`,
		"20,000 items":     `{"rest_requests":[` + strings.Repeat(`{"id":"1","method":"GET","url":"/x"},`, 20_000) + `{"id":"2","method":"GET","url":"/y"}]}`,
	}
	for name, body := range items {
		post("batch "+name, "/api/now/v1/batch", body, asJSON)
	}

	for _, m := range []string{"PUT", "PATCH", "DELETE", "BREW", "TRACE", "CONNECT", "PROPFIND", "get", "OPTIONS"} {
		for _, p := range []string{incidents, "/api/now/batch", "/api/now/stats/incident", "/api/now/import/imp_user", "/api/snc/test_api_1", "/oauth_token.do", "/nowhere"} {
			add(nasty{name: m + " " + p, method: m, path: p, front: m == "CONNECT"})
		}
	}
	for _, typ := range []string{"text/plain", "text/html", "multipart/form-data", "multipart/form-data; boundary=", "application/x-www-form-urlencoded", "application/", "/", ";", "application/json; charset=utf-7", "application/json;charset=\xff", "image/png", "application/json, application/xml"} {
		post("content type "+typ, incidents, `{}`, "Content-Type: "+typ)
		post("batch content type "+typ, "/api/now/batch", `{"rest_requests":[]}`, "Content-Type: "+typ)
	}
	for _, accept := range []string{"image/png", "/", "*", ";q=1", "application/json;q=x", "text/html", strings.Repeat("text/html,", 2000)} {
		get("accept "+accept[:min(len(accept), 40)], incidents+"?sysparm_limit=1", "Accept: "+accept)
	}
	for _, enc := range []string{"br", "deflate", "gzip, gzip", "identity, gzip"} {
		post("content encoding "+enc, incidents, `{}`, asJSON, "Content-Encoding: "+enc)
	}
	post("gzip that is none", incidents, "hello", asJSON, "Content-Encoding: gzip")
	post("gzip cut off", incidents, zipped(`{"short_description":"x"}`)[:15], asJSON, "Content-Encoding: gzip")
	for _, override := range []string{"BREW", "", "GET", "DELETE", "POST", "P A"} {
		post("override "+override, incidents, `{}`, asJSON, "X-HTTP-Method-Override: "+override)
	}
	for _, auth := range []string{
		"Basic", "Basic !!!", "Basic " + base64.StdEncoding.EncodeToString([]byte("nocolon")), "Basic " + base64.StdEncoding.EncodeToString([]byte(":")), "Basic " + base64.StdEncoding.EncodeToString([]byte("admin:"+strings.Repeat("x", 5000))),
		"Basic " + base64.StdEncoding.EncodeToString([]byte("a\x00b:\xff")), "Bearer", "Bearer ", "Bearer x.y.z", "Digest x", "AR-JWT x", strings.Repeat("x", 10_000),
	} {
		add(nasty{name: "authorization " + auth[:min(len(auth), 30)], raw: "GET " + incidents + "?sysparm_limit=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: " + auth + "\r\n\r\n"})
	}
	for _, cookie := range []string{"JSESSIONID=", "JSESSIONID=x", "JSESSIONID=" + strings.Repeat("A", 5000), "JSESSIONID=YQ.YQ", "=", ";;;"} {
		add(nasty{name: "cookie " + cookie[:min(len(cookie), 30)], raw: "GET " + incidents + "?sysparm_limit=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: " + cookie + "\r\n\r\n"})
	}
	for _, key := range []string{"", " ", strings.Repeat("k", 5000), "\xff", "a,b", `"x"`} {
		post("idempotency key "+key[:min(len(key), 20)], incidents, `{}`, asJSON, "Idempotency-Key: "+key)
	}
	for _, size := range []string{"-1", "x", "99999999999999999999", ""} {
		post("output size "+size, "/api/now/batch", `{"rest_requests":[]}`, asJSON, "X-BATCHREQUEST-MAX-OUTPUT-SIZE: "+size)
	}
	for _, token := range []string{"", "grant_type=", "grant_type=password", "grant_type=password&username=a&password=b&client_id=c&client_secret=d", "grant_type=refresh_token&refresh_token=x", "grant_type=%zz", "a=b&a=b&%00", strings.Repeat("a=b&", 30_000)} {
		post("token "+token[:min(len(token), 40)], "/oauth_token.do", token, "Content-Type: application/x-www-form-urlencoded")
	}
	for name, p := range map[string]string{
		"encoded slash": "/api/now/table%2fincident", "dots": "/api/now/../now/table/incident?sysparm_limit=1", "double slash": "//api//now//table//incident", "nul": "/api/now/table/inc%00ident", "unicode": "/api/now/table/%E2%98%83",
		"version 99": "/api/now/v99/table/incident?sysparm_limit=1", "version x": "/api/now/vx/table/incident", "no table": "/api/now/table", "no api": "/api/now", "bare api": "/api", "system table": "/api/now/table/weir_token", "system schema": "/api/now/table/weir.project",
		"sqlite": "/api/now/table/sqlite_master", "catalog": "/api/now/table/pg_catalog.pg_user", "upper case": "/api/now/table/INCIDENT?sysparm_limit=1", "segments": "/api/now/table/incident/060a84bc41c6dfa795858d3e6d828a1b/x/y", "semicolon": "/api/now/table/incident;x=y", "long segment": "/api/now/table/" + strings.Repeat("x", 20_000),
		"favicon": "/favicon.ico", "php": "/index.php", "env": "/.env",
	} {
		get("path "+name, p)
	}
	get("long URL", incidents+"?sysparm_query="+strings.Repeat("a", 70_000))
	all[len(all)-1].front = true
	get("many parameters", incidents+"?sysparm_limit=1&"+strings.Repeat("a=b&", 10_000))
	get("many headers", incidents+"?sysparm_limit=1", strings.Repeat("X-Y: z\r\n", 1000)+"X-Z: z")
	for name, raw := range map[string]string{
		"no host": "GET /api/now/table/incident HTTP/1.1\r\n\r\n", "no version": "GET /api/now/table/incident\r\n\r\n", "garbage": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "only a line": "\r\n\r\n\r\n", "version 3": "GET / HTTP/3.0\r\nHost: a\r\n\r\n",
		"space in path": "GET /api/now/table/inc ident HTTP/1.1\r\nHost: a\r\n\r\n", "two lengths": "POST " + incidents + " HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "negative length": "POST " + incidents + " HTTP/1.1\r\nHost: a\r\nContent-Length: -2\r\n\r\n{}",
		"header folded": "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", "nul in a header": "GET / HTTP/1.1\r\nHost: a\r\nX: \x00\r\n\r\n", "wrong chunk": "POST " + incidents + " HTTP/1.1\r\nHost: a\r\nAuthorization: Basic YWRtaW46YWRtaW4=\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
		"both lengths": "POST " + incidents + " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX", "http2 preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "star": "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "absolute": "GET http://elsewhere/api/now/table/incident?sysparm_limit=1 HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		add(nasty{name: "raw " + name, raw: raw, front: true})
	}
	return all
}

func manyFields(n int) string {
	var b strings.Builder
	b.WriteString(`{"a":"b"`)
	for i := range n {
		fmt.Fprintf(&b, `,"field_%d":"x"`, i)
	}
	return b.String() + "}"
}

func zipped(s string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(s))
	z.Close()
	return b.String()
}

func (n *nasty) wire() string {
	if n.raw != "" {
		return n.raw
	}
	fields := n.fields
	if n.body != "" || n.method == "POST" {
		fields = append(fields[:len(fields):len(fields)], fmt.Sprintf("Content-Length: %d", len(n.body)))
	}
	return head(n.method, n.path, append(fields, "Connection: close")...) + n.body
}

// TestNasty_EveryBadRequestGetsAnEnvelope sends all of them: no answer may be a 5xx, each error must have the envelope, nothing of
// ours may fail on the way, and the server must be as it was before.
func TestNasty_EveryBadRequestGetsAnEnvelope(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		// Passwords are guessed here, and nobody waits an hour for the next one.
		w := serve(t, demoData(t, kind), "--set", "auth.guesses_per_user=100000", "--set", "auth.guesses_per_address=100000")
		all := nastyRequests()
		begin := time.Now()
		failed := 0
		for _, n := range all {
			for _, problem := range w.nasty(n) {
				if failed++; failed <= 60 {
					t.Errorf("%s: %s", n.name, problem)
				}
			}
			if !w.alive() {
				t.Fatalf("%s: the server is gone", n.name)
			}
		}
		if failed > 60 {
			t.Errorf("and %d more", failed-60)
		}
		t.Logf("%d requests in %s", len(all), time.Since(begin).Round(time.Millisecond))
		if n := len(w.rows("incident", "number=INC0000001", "number")); n != 1 {
			t.Errorf("the first incident is there %d times", n)
		}
		if n := len(w.rows("sys_user", "user_name=admin", "user_name")); n != 1 {
			t.Errorf("admin is there %d times", n)
		}
	})
}

func (w *weir) nasty(n nasty) (problems []string) {
	fail := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	before := len(w.log.String())
	begin := time.Now()
	c := w.dial()
	defer c.Close()
	// What the server refuses early it does not read to the end, so a failed write is no news.
	c.Write([]byte(n.wire()))
	a, err := read(c, 20*time.Second)
	if took := time.Since(begin); took > 10*time.Second {
		fail("took %s", took)
	}
	if err != nil {
		if !n.front {
			fail("no answer: %v", err)
		}
		return problems
	}
	if a.status >= 500 && (a.status != http.StatusHTTPVersionNotSupported || !n.front) {
		fail("%d %.300s", a.status, a.body)
	} else if a.status >= 400 && !n.front && n.method != "HEAD" && n.path != "/oauth_token.do" {
		if err := envelope(a); err != nil {
			fail("%d is no envelope: %v", a.status, err)
		}
	}
	if strings.Contains(a.header.Get("Content-Type"), "json") && strings.Contains(a.body, `"status_code":5`) {
		fail("an item failed inside: %.300s", a.body)
	}
	if strings.Contains(a.body, "$argon2") {
		fail("a password hash is shown")
	}
	if s := faultLine.FindString(w.log.String()[before:]); s != "" {
		fail("the log shows %.400s", s)
	}
	return problems
}
