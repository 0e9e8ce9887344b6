package odata

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/record"
	"weir/internal/telemetry"
	"weir/internal/wire"
)

// doorSnapshot has three services: PLAIN, and two that say themselves whether changes need a token.
func doorSnapshot(t *testing.T) *catalog.Snapshot {
	t.Helper()
	yes, no := true, false
	snap, err := catalog.Build(1, catalog.Definitions{
		Tables: []catalog.TableDef{{Name: "thing", Fields: []catalog.FieldDef{{Name: "name", Type: "string"}}}},
		Services: []catalog.ServiceDef{
			{Name: "PLAIN", Namespace: "sap", Sets: []catalog.SetDef{{Name: "ThingSet", Table: "thing"}}},
			{Name: "STRICT", Namespace: "sap", CSRF: &yes, Sets: []catalog.SetDef{{Name: "ThingSet", Table: "thing"}}},
			{Name: "OPEN", Namespace: "sap", CSRF: &no, Sets: []catalog.SetDef{{Name: "ThingSet", Table: "thing"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func TestGuard_SettingAndServiceSayWhatAChangeOwes(t *testing.T) {
	snap := doorSnapshot(t)
	f := func(setting, path, token string, need dialect.Need, fetch bool) {
		t.Helper()
		d := New(Options{DoorOptions: DoorOptions{CSRF: setting}})
		g := d.Guard(snap, &dialect.Call{Method: "GET", Path: path, Header: wire.Header{{Name: "x-csrf-token", Value: token}}})
		if g.Need != need || g.Fetch != fetch {
			t.Errorf("%s %s %q: need %v, fetch %v; want %v, %v", setting, path, token, g.Need, g.Fetch, need, fetch)
		}
	}
	f("auto", "/sap/opu/odata/sap/PLAIN/ThingSet", "fetch", dialect.NeedAlways, true)
	f("auto", "/sap/opu/odata4/sap/g/default/sap/PLAIN/0001/ThingSet", "FETCH", dialect.NeedAlways, true)
	f("auto", "/odata/v4/PLAIN/$batch", "Fetch", dialect.NeedBrowser, true)
	f("auto", "/odata/v2/PLAIN/", "abc", dialect.NeedBrowser, false)
	f("on", "/odata/v2/PLAIN/", "", dialect.NeedAlways, false)
	f("off", "/sap/opu/odata/sap/PLAIN/", "Fetch", dialect.NeedNot, false)
	f("off", "/sap/opu/odata/sap/STRICT/", "Fetch", dialect.NeedAlways, true)
	f("on", "/sap/opu/odata/sap/OPEN;v=2/", "Fetch", dialect.NeedNot, false)
	f("auto", "/sap/opu/odata/sap/NONE/", "Fetch", dialect.NeedAlways, true)
}

func TestGuard_RefusalIsGateways(t *testing.T) {
	var a wire.Answer
	New(Options{}).Refuse(&dialect.Call{}, &a)
	if a.Status != 403 || a.Header.Get("X-CSRF-Token") != "Required" || string(a.Body) != "CSRF token validation failed" || !strings.HasPrefix(a.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%+v %s", a.Header, a.Body)
	}
}

func TestFetching_AnswersEveryPathBelowARoot(t *testing.T) {
	snap, d := doorSnapshot(t), New(Options{})
	f := func(method, path string, want string) {
		t.Helper()
		c := &dialect.Call{Method: method, Path: path, RawPath: path, Header: wire.Header{{Name: "X-CSRF-Token", Value: "Fetch"}}}
		ex, err := d.Decode(snap, c)
		got := "nothing"
		switch {
		case err != nil:
			got = record.KindOf(err).String()
		case len(ex.Ops) == 0:
			var a wire.Answer
			ex.Reply(nil, &a)
			got = fmt.Sprint(a.Status, a.Header, len(a.Body))
		}
		if got != want {
			t.Errorf("%s %s: %s, want %s", method, path, got, want)
		}
	}
	two, four := "200 [{DataServiceVersion 2.0}] 0", "200 [{OData-Version 4.0}] 0"
	root := "/sap/opu/odata/sap/PLAIN"
	for _, path := range []string{"", "/", "/ThingSet", "/ThingSet/", "/$batch", "/$batch/", "/ThingSet('1')/", "/nothing"} {
		f("HEAD", root+path, two)
		f("HEAD", "/odata/v4/PLAIN"+path, four)
	}
	f("GET", root+"/$batch", two)
	f("GET", root+"/$batch/", two)
	f("GET", "/odata/v4/PLAIN/$batch/", four)
	f("HEAD", "/sap/opu/odata/sap/NONE/", "no path")
}

func TestResourceOf_NamesServiceAndSetHoweverTheRootIsSpelled(t *testing.T) {
	snap, d := doorSnapshot(t), New(Options{})
	f := func(path, want string, known bool) {
		t.Helper()
		if name, k := d.ResourceOf(snap, path); name != want || k != known {
			t.Errorf("%s: %q %v, want %q %v", path, name, k, want, known)
		}
	}
	const set = "odata/PLAIN/ThingSet"
	f("/sap/opu/odata/sap/PLAIN/ThingSet", set, true)
	f("/sap/opu/odata/sap/PLAIN;v=2;o=ABC/ThingSet('a/b')/name/$value", set, true)
	f("/sap/opu/odata4/sap/group/default/sap/PLAIN/0001/ThingSet/$count", set, true)
	f("/odata/v2/PLAIN/ThingSet", set, true)
	f("/odata/v4/PLAIN/ThingSet(1)", set, true)
	f("/odata/v4/PLAIN", "odata/PLAIN", true)
	f("/odata/v4/PLAIN/", "odata/PLAIN", true)
	f("/odata/v4/PLAIN/$batch", "odata/PLAIN/$batch", true)
	f("/odata/v4/PLAIN/$metadata", "odata/PLAIN/$metadata", true)
	f("/odata/v4/PLAIN/Nothing", "odata/PLAIN/Nothing", false)
	f("/odata/v4/NONE/ThingSet", "odata/NONE/ThingSet", false)
	f("/sap/opu/odata/sap", "", false)
	f("/odata/v5/PLAIN", "", false)
	f("/odata/v4", "", false)
}

// keysOf reads a statistics header.
func keysOf(t *testing.T, s string) map[string]int64 {
	t.Helper()
	keys := map[string]int64{}
	for part := range strings.SplitSeq(s, ",") {
		var n int64
		name, value, _ := strings.Cut(part, "=")
		if _, err := fmt.Sscan(value, &n); err != nil || fmt.Sprint(n) != value {
			t.Fatalf("%q of %s", part, s)
		}
		keys[name] = n
	}
	return keys
}

func TestStatistics_KeysAndInvariants(t *testing.T) {
	for range 500 {
		some := func() time.Duration { return time.Duration(rand.Int64N(5_000_000)) }
		text := string(appendStatistics(nil, shares{hub: some(), queue: some(), wire: some(), be: some(), app: some()}))
		if !strings.HasPrefix(text, "total=") || strings.ContainsAny(text, " ;") {
			t.Fatal(text)
		}
		k := keysOf(t, text)
		if k["gwtotal"] != k["gwhub"]+k["gwrfcoh"]+k["gwbe"]+k["gwapp"]+k["gwnongw"] || k["total"] != k["gwtotal"] || k["fw"] != k["total"]-k["app"] || k["app"] != k["gwapp"]+k["gwnongw"] {
			t.Fatal(text)
		}
		if k["gwtotal_us"] != k["gwhub_us"]+k["gwrfcoh_us"]+k["gwbe_us"]+k["gwapp_us"]+k["gwnongw_us"] {
			t.Fatal(text)
		}
		if d := k["gwtotal"]*1000 - k["gwtotal_us"]; d < -505 || d > 505 {
			t.Fatalf("%d µs off: %s", d, text)
		}
		for _, name := range []string{"gwhub", "gwrfcoh", "gwbe", "gwapp"} {
			if d := k[name]*1000 - k[name+"_us"]; d <= -1000 || d >= 1001 {
				t.Fatalf("%s is %d µs off: %s", name, d, text)
			}
		}
		want := "total fw app gwtotal gwhub gwrfcoh gwbe gwapp gwnongw"
		var names []string
		for part := range strings.SplitSeq(text, ",") {
			name, _, _ := strings.Cut(part, "=")
			names = append(names, name)
		}
		if got := strings.Join(names[:9], " "); got != want {
			t.Fatal(got)
		}
	}
}

func TestTiming_WhoAsksAndSucceedsIsTold(t *testing.T) {
	d := New(Options{})
	f := func(query, header string, status int, want bool) {
		t.Helper()
		c := &dialect.Call{RawQuery: query}
		if header != "" {
			c.Header.Set("SAP-Statistics", header)
		}
		a := wire.Answer{Status: status}
		d.Timing(c, telemetry.New(), &a)
		if got := a.Header.Has("sap-statistics"); got != want {
			t.Errorf("%q %q %d: %v", query, header, status, got)
		}
		if v := a.Header.Get("sap-perf-fesrec"); !strings.HasSuffix(v, ".000000") {
			t.Errorf("sap-perf-fesrec %q", v)
		}
	}
	f("sap-statistics=true", "", 200, true)
	f("$top=1&sap-statistics=true", "", 202, true)
	f("", "true", 204, true)
	f("sap-statistics=false", "true", 200, false)
	f("sap-statistics=true", "false", 200, true)
	f("sap-statistics=true", "", 404, false)
	f("", "true", 500, false)
	f("", "", 200, false)
}

// repeat is the answer to a change with the given headers, and the token of its ops.
func repeat(t *testing.T, out []record.Outcome, headers ...string) (a wire.Answer, token string) {
	t.Helper()
	d := New(Options{})
	d.now = func() time.Time { return time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC) }
	c := &dialect.Call{Method: "POST", Path: "/odata/v4/PLAIN/ThingSet"}
	for i := 0; i < len(headers); i += 2 {
		c.Header.Add(headers[i], headers[i+1])
	}
	q := &request{d: d, call: c, method: "POST", ver: v4}
	ex, err := q.repeatable(&dialect.Exchange{Ops: []record.Op{{Verb: record.Insert}}, Reply: func(_ []record.Outcome, a *wire.Answer) { a.Status = 201 }})
	if err != nil {
		t.Fatal(err)
	}
	ex.Reply(out, &a)
	return a, ex.Token
}

func TestRepeatable_AcceptedAndRejected(t *testing.T) {
	const now = "Sat, 02 May 2026 11:59:00 GMT"
	used := record.Errorf(record.Conflict, "", "used")
	used.Rule = record.RuleToken
	for _, c := range []struct {
		name    string
		out     []record.Outcome
		headers []string
		status  int
		result  string
		token   string
	}{
		{"none", []record.Outcome{{}}, nil, 201, "", ""},
		{"new or repeated", []record.Outcome{{}}, []string{repeatID, "ABC-1", repeatSent, now}, 201, "accepted", "repeat//abc-1"},
		{"of a client", []record.Outcome{{}}, []string{repeatID, "abc-1", repeatSent, now, repeatClient, "C1"}, 201, "accepted", "repeat/C1/abc-1"},
		{"used for another request", []record.Outcome{{Err: used}}, []string{repeatID, "abc-1", repeatSent, now}, 400, "rejected", "repeat//abc-1"},
		{"too old", nil, []string{repeatID, "abc-1", repeatSent, "Fri, 01 May 2026 11:59:00 GMT"}, 412, "rejected", ""},
		{"of the future", nil, []string{repeatID, "abc-1", repeatSent, "Mon, 04 May 2026 11:59:00 GMT"}, 412, "rejected", ""},
		{"no time", nil, []string{repeatID, "abc-1"}, 400, "rejected", ""},
		{"bad time", nil, []string{repeatID, "abc-1", repeatSent, "yesterday"}, 400, "rejected", ""},
		{"long id", nil, []string{repeatID, strings.Repeat("x", 300), repeatSent, now}, 400, "rejected", ""},
	} {
		a, token := repeat(t, c.out, c.headers...)
		if a.Status != c.status || a.Header.Get(repeatResult) != c.result || token != c.token {
			t.Errorf("%s: %d %q token %q", c.name, a.Status, a.Header.Get(repeatResult), token)
		}
	}
}

func TestDeferred_PreferenceMonitorAndResult(t *testing.T) {
	d := New(Options{})
	call := func(path string, headers ...string) *dialect.Call {
		c := &dialect.Call{Method: "GET", Path: path, Base: "http://host"}
		for i := 0; i < len(headers); i += 2 {
			c.Header.Add(headers[i], headers[i+1])
		}
		return c
	}
	for _, c := range []struct {
		path, prefer string
		want         bool
	}{
		{"/odata/v4/PLAIN/ThingSet", "respond-async", true},
		{"/odata/v4/PLAIN/$batch", "return=minimal, Respond-Async", true},
		{"/odata/v4/PLAIN/ThingSet", "respond-async=no-such-value", false},
		{"/odata/v4/PLAIN/ThingSet", "", false},
		{"/odata/v2/PLAIN/ThingSet", "respond-async", false},
	} {
		if got := d.Deferred(nil, call(c.path, "Prefer", c.prefer)); got != c.want {
			t.Errorf("%s %q: %v", c.path, c.prefer, got)
		}
	}
	monitor := d.MonitorOf(call("/odata/v4/PLAIN/ThingSet('a')/Nav"), "abc")
	if monitor != "/odata/v4/PLAIN/$async/abc" || d.Monitored(monitor) != "abc" {
		t.Errorf("monitor %s: %q", monitor, d.Monitored(monitor))
	}
	for _, path := range []string{"/odata/v4/PLAIN/ThingSet", "/odata/v4/PLAIN/$async", "/odata/v4/PLAIN/$async/a/b", "/odata/v2/PLAIN/$async/a"} {
		if id := d.Monitored(path); id != "" {
			t.Errorf("%s: %q", path, id)
		}
	}
	var a wire.Answer
	d.Pending(call("/odata/v4/PLAIN/ThingSet"), monitor, 2*time.Second, &a)
	if a.Status != 202 || a.Header.Get("Location") != "http://host"+monitor || a.Header.Get("Retry-After") != "2" || a.Header.Get("Preference-Applied") != "respond-async" {
		t.Errorf("%+v", a)
	}
	done := &wire.Answer{Status: 201, Header: wire.Header{{Name: "Content-Type", Value: "application/json"}, {Name: "Location", Value: "http://host/x"}}, Body: []byte(`{"a":1}`)}
	settled := func(headers ...string) wire.Answer {
		var a wire.Answer
		d.Settled(call(monitor, headers...), done, &a)
		return a
	}
	const message = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nLocation: http://host/x\r\nContent-Length: 7\r\n\r\n{\"a\":1}"
	for _, headers := range [][]string{nil, {"Accept", "*/*"}, {"Accept", "application/http"}, {"Accept", "application/http", "OData-MaxVersion", "4.01"}, {"OData-MaxVersion", "4.0"}} {
		if a := settled(headers...); a.Status != http.StatusOK || string(a.Body) != message || a.Header.Get("Content-Type") != "application/http" {
			t.Errorf("%v: %+v %q", headers, a.Header, a.Body)
		}
	}
	for _, headers := range [][]string{{"Accept", "application/json"}, {"OData-MaxVersion", "4.01"}} {
		if a := settled(headers...); a.Status != http.StatusOK || string(a.Body) != `{"a":1}` || a.Header.Get("AsyncResult") != "201" || a.Header.Get("Location") != "http://host/x" {
			t.Errorf("%v: %+v %q", headers, a.Header, a.Body)
		}
	}
}
