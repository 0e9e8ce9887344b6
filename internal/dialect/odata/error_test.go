package odata

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/wire"
)

func TestFailures_AreCompleteOverAllKinds(t *testing.T) {
	for k := range record.NumKinds {
		f := failures[k]
		if f.status < 400 || f.status4 < 400 || f.code == "" || f.code4 == "" {
			t.Errorf("%s: %+v", k, f)
		}
		for _, ver := range []version{v2, v4} {
			if got := faultOf(ver, record.Errorf(k, "", "some text")); got.message == "" {
				t.Errorf("%s has no text", k)
			}
		}
	}
	if got := faultOf(v2, record.Errorf(record.NumKinds, "", "x")); got.status != 500 {
		t.Errorf("a kind that does not exist: %d", got.status)
	}
}

func TestFaultOf(t *testing.T) {
	f := func(err error, status2, status4 int, message string) {
		t.Helper()
		for ver, status := range map[version]int{v2: status2, v4: status4} {
			got := faultOf(ver, err)
			if got.status != status || got.message != message {
				t.Errorf("%v: %d %q, want %d %q", err, got.status, got.message, status, message)
			}
		}
	}
	f(record.Errorf(record.Conflict, "id", "HT-1 exists already"), 400, 409, "HT-1 exists already")
	f(record.Errorf(record.Precondition, "version", "the record has changed"), 412, 412, changedText)
	f(unconditional(), 428, 428, conditionalText)
	f(unsupported("$search", "no searching here"), 501, 501, "no searching here")
	f(record.Errorf(record.Invalid, "", "at byte 3").Because(dialect.ErrBody), 400, 400, malformedText+": at byte 3")
	f(record.Errorf(record.Busy, "", "the queue is full"), 503, 503, "the queue is full")
	f(record.Errorf(record.Rejected, "", "no").Because(&statusError{409}), 409, 409, "no")
	f(notAllowed("PUT", "the set X", "GET", "HEAD"), 405, 405, "PUT is not allowed for the set X")
}

func answerOf(t *testing.T, path, accept string, err error) *wire.Answer {
	t.Helper()
	a := &wire.Answer{Body: []byte("half an answer")}
	shopDialect().fail(&dialect.Call{
		Method: "POST", Path: path, RawPath: path, Header: wire.Header{{Name: "Accept", Value: accept}}, ContentID: "id-7", ID: "4711",
	}, err, a)
	return a
}

func TestFail_V2JSON(t *testing.T) {
	a := answerOf(t, "/sap/opu/odata/IWBEP/GWSAMPLE_BASIC;v=2/ProductSet", "application/json", record.Errorf(record.Invalid, "ToProducts(2)/ProductID", "it is too \"long\""))
	want := `{"error":{"code":"/IWBEP/CM_MGW_RT/022","message":{"lang":"en","value":"it is too \"long\""},"innererror":{` +
		`"application":{"component_id":"WEIR","service_namespace":"/IWBEP/","service_id":"GWSAMPLE_BASIC","service_version":"0002"},` +
		`"transactionid":"4711","timestamp":"20261130120000.0000000",` +
		`"Error_Resolution":{"SAP_Transaction":"` + resolutionTransaction + `","SAP_Note":"` + resolutionNote + `"},` +
		`"errordetails":[{"code":"/IWBEP/CM_MGW_RT/022","message":"it is too \"long\"","propertyref":"ProductID","severity":"error","transition":false,"target":"ToProducts(2)/ProductID","ContentID":"id-7"}]}}}`
	if got := string(a.Body); got != want || a.Status != 400 || !json.Valid(a.Body) {
		t.Errorf("%d %s\nwant %s", a.Status, got, want)
	}
	if a.Header.Get("Content-Type") != "application/json;charset=utf-8" || a.Header.Get("DataServiceVersion") != "2.0" {
		t.Errorf("%v", a.Header)
	}
}

func TestFail_V2XML(t *testing.T) {
	for _, accept := range []string{"", "application/atom+xml", "application/xml", "*/*"} {
		a := answerOf(t, "/odata/v2/SHOP/ProductSet", accept, record.Errorf(record.Rejected, "price", "1 < 2 & so on"))
		if a.Header.Get("Content-Type") != "application/xml;charset=utf-8" {
			t.Errorf("%s: %v", accept, a.Header)
		}
		var doc struct {
			XMLName xml.Name
			Code    string `xml:"code"`
			Message string `xml:"message"`
			Inner   struct {
				Transaction string `xml:"transactionid"`
				Details     []struct {
					Message string `xml:"message"`
					ID      string `xml:"ContentID"`
				} `xml:"errordetails>errordetail"`
			} `xml:"innererror"`
		}
		if err := xml.Unmarshal(a.Body, &doc); err != nil {
			t.Fatalf("%v: %s", err, a.Body)
		}
		if doc.XMLName.Space != nsMetadata || doc.Message != "1 < 2 & so on" || doc.Inner.Transaction != "4711" || len(doc.Inner.Details) != 1 || doc.Inner.Details[0].ID != "id-7" {
			t.Errorf("%+v", doc)
		}
	}
}

func TestFail_V4(t *testing.T) {
	a := answerOf(t, "/odata/v4/SHOP/ProductSet", "application/json", record.Errorf(record.Conflict, "ID", "HT-1 exists already"))
	want := `{"error":{"code":"/IWBEP/CM_V4_RUNTIME/409","message":"HT-1 exists already","target":"ID","@Core.ContentID":"id-7","@SAP__common.numericSeverity":4}}`
	if got := string(a.Body); got != want || a.Status != 409 {
		t.Errorf("%d %s", a.Status, got)
	}
	if a.Header.Get("OData-Version") != "4.0" || a.Header.Has("DataServiceVersion") {
		t.Errorf("%v", a.Header)
	}
}

func TestFail_HeadersThatTellWhatToDo(t *testing.T) {
	if a := answerOf(t, "/odata/v2/SHOP/X", "", notAllowed("PUT", "X", "GET", "HEAD")); a.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("405: %v", a.Header)
	}
	for _, k := range []record.Kind{record.Busy, record.Unavailable, record.Timeout} {
		if a := answerOf(t, "/odata/v4/SHOP/X", "", record.Errorf(k, "", "later")); a.Status != 503 || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v", k, a.Status, a.Header)
		}
	}
	// What cannot be written is said in what the caller may understand.
	if a := answerOf(t, "/odata/v2/SHOP/X", "text/csv", record.Errorf(record.NotAcceptable, "Accept", "no")); a.Status != 406 || len(a.Body) == 0 {
		t.Errorf("406: %d %s", a.Status, a.Body)
	}
}

func TestNotFound_NamesTheSegment(t *testing.T) {
	for path, want := range map[string]string{
		"ProductSet('a%2F/b(')": "ProductSet", "OrderSet('1')/ToItems(Order='1',Position='2')": "ToItems", "OrderSet('1')/Note": "Note", "": "",
	} {
		if got := lastSegment(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	q := &request{ver: v2, rest: "ProductSet('HT-1')"}
	if f := q.fault(record.Errorf(record.NotFound, "", "No Record found")); f.message != "Resource not found for segment 'ProductSet'" || f.status != 404 {
		t.Errorf("%+v", f)
	}
}

func TestFault_TargetsAreNamesThatClientsKnow(t *testing.T) {
	f := func(set, field, position, want string) {
		t.Helper()
		got := fault{target: field}
		got.at(shopType(t, set), position)
		if got.target != want {
			t.Errorf("%s of %s at %q: %q, want %q", field, set, position, got.target, want)
		}
	}
	f("ProductSet", "price", "", "Price")
	f("PartnerSet", "zip", "", "Address/Zip")
	f("ItemSet", "order, position", "ToItems(3)", "ToItems(3)/Order")
	f("ProductSet", "unknown", "", "unknown")
	f("ProductSet", "", "ToProducts(1998)", "ToProducts(1998)")
}

func TestMessage_HeaderIsASCII(t *testing.T) {
	m := message{code: "EPM/001", text: "Größe 😀 geändert", severity: "success", target: "/ProductSet('1')"}
	got := m.header()
	for _, c := range []byte(got) {
		if c < 0x20 || c > 0x7e {
			t.Fatalf("%q", got)
		}
	}
	var back map[string]any
	if err := json.Unmarshal([]byte(got), &back); err != nil || back["message"] != m.text || !strings.Contains(got, `"severity":"success"`) {
		t.Errorf("%s (%v)", got, err)
	}
}
