package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The roots of the sample service.
const (
	gwRoot  = "/sap/opu/odata/IWBEP/GWSAMPLE_BASIC"
	gwRoot4 = "/odata/v4/GWSAMPLE_BASIC"
)

// handshake fetches a token and returns the headers that a change shows.
func (w *weir) handshake(path string) map[string]string {
	w.t.Helper()
	a := w.must(200, request{method: "HEAD", path: path, header: map[string]string{"X-CSRF-Token": "Fetch"}}, nil)
	token := a.header.Get("X-CSRF-Token")
	var cookies []string
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		cookies = append(cookies, c.Name+"="+c.Value)
	}
	if token == "" || len(cookies) == 0 {
		w.t.Fatalf("HEAD %s: token %q, cookies %q", path, token, cookies)
	}
	return map[string]string{"X-CSRF-Token": token, "Cookie": strings.Join(cookies, "; ")}
}

// reads is a V2 batch of GETs.
func reads(urls ...string) string {
	var b strings.Builder
	for _, u := range urls {
		b.WriteString("--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nGET " + u + " HTTP/1.1\r\nAccept: application/json\r\n\r\n\r\n")
	}
	return b.String() + "--b--\r\n"
}

func with(headers map[string]string, more ...string) map[string]string {
	all := map[string]string{}
	for k, v := range headers {
		all[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

const multipart = "multipart/mixed; boundary=b"

func TestODataDoor_EveryChangeBelowSAPNeedsTheHandshake(t *testing.T) {
	w := serve(t, demoData(t, "sqlite"), "--set", "odata.csrf_age=2s")
	body := reads("ProductSet?$top=1&$select=ProductID")
	for _, path := range []string{"/", "", "/ProductSet/", "/ProductSet", "/$batch/", "/$batch", "/ProductSet('HT-1000')/", "/ProductSet('no such')", "/nothing"} {
		shown := w.handshake(gwRoot + path)
		a, err := w.do(request{method: "POST", path: gwRoot + "/$batch", body: body, header: with(shown, "Content-Type", multipart)})
		if err != nil || a.status != 202 || !strings.Contains(a.body, "HT-1000") {
			t.Fatalf("token of %q: %v %d %s", path, err, a.status, a.body)
		}
	}
	refused := func(name string, headers map[string]string) {
		t.Helper()
		for _, r := range []request{
			{method: "POST", path: gwRoot + "/$batch", body: body, header: with(headers, "Content-Type", multipart)},
			{method: "DELETE", path: gwRoot + "/ProductSet('HT-1000')", header: headers},
			{method: "MERGE", path: gwRoot + "/ProductSet('HT-1000')", body: `{"Name":"x"}`, header: headers},
		} {
			a, err := w.do(r)
			if err != nil || a.status != 403 || a.header.Get("X-CSRF-Token") != "Required" || a.body != "CSRF token validation failed" || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
				t.Errorf("%s: %s: %v %d %q %s", name, r.method, err, a.status, a.header.Get("X-CSRF-Token"), a.body)
			}
		}
	}
	shown := w.handshake(gwRoot + "/")
	refused("nothing", nil)
	refused("no cookie", map[string]string{"X-CSRF-Token": shown["X-CSRF-Token"]})
	refused("no token", map[string]string{"Cookie": shown["Cookie"]})
	refused("another session's", map[string]string{"X-CSRF-Token": shown["X-CSRF-Token"], "Cookie": w.handshake(gwRoot)["Cookie"]})
	var one struct{ D map[string]any }
	if w.must(200, request{path: gwRoot + "/ProductSet('HT-1000')?$format=json"}, &one); one.D["Name"] == "x" {
		t.Error("a refused change was made")
	}
	until(t, "the token to expire", 20*time.Second, func() bool {
		a, err := w.do(request{method: "POST", path: gwRoot + "/$batch", body: body, header: with(shown, "Content-Type", multipart)})
		return err == nil && a.status == 403
	})
	// Below /odata/ a program that sends its credential needs none; a browser's page does.
	plain := request{method: "POST", path: gwRoot4 + "/$batch", body: `{"requests":[{"id":"1","method":"get","url":"ProductSet?$top=1"}]}`}
	w.must(200, plain, nil)
	plain.header = map[string]string{"Origin": w.url}
	w.must(403, plain, nil)
	plain.header = with(w.handshake(gwRoot4+"/"), "Origin", w.url)
	w.must(200, plain, nil)
}

// statisticsHeader has a wire only where hub and backend are two.
var statisticsHeader = regexp.MustCompile(`^total=(\d+),fw=(\d+),app=(\d+),gwtotal=(\d+),gwhub=(\d+),gwrfcoh=` + map[bool]string{false: "0", true: `\d+`}[split] +
	`,gwbe=(\d+),gwapp=(\d+),gwnongw=0,gwtotal_us=\d+`)

func TestODataDoor_BatchItemsAreLoggedWithTheStatementTheyShared(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		db := demoData(t, kind)
		w := serve(t, db, "--set", "transactions.flush=50ms")
		a, err := w.do(request{
			method: "POST", path: gwRoot + "/$batch?sap-statistics=true", header: with(w.handshake(gwRoot), "Content-Type", multipart),
			body: reads("ProductSet('HT-1000')", "ProductSet('HT-1001')", "BusinessPartnerSet?$top=2", "ProductSet('HT-1002')", "NoSuchSet"),
		})
		if err != nil || a.status != 202 {
			t.Fatal(err, a)
		}
		if s := a.header.Get("sap-statistics"); !statisticsHeader.MatchString(s) || !strings.HasSuffix(a.header.Get("sap-perf-fesrec"), ".000000") {
			t.Errorf("sap-statistics %q, sap-perf-fesrec %q", s, a.header.Get("sap-perf-fesrec"))
		}
		id := a.header.Get("X-Transaction-ID")
		var items []row
		w.until("the transaction log to be written", 10*time.Second, func() bool {
			items = w.rows("syslog_transaction", "parentISNOTEMPTY^link="+id+"^ORDERBYsys_id",
				"url,http_status,transaction_pattern,format,statement,statement_operations,statement_rows,statement_time,parent.items,parent.format,parent.transaction_pattern,parent.statements")
			return len(items) == 5
		})
		gets := 0
		for i, it := range items {
			want := map[bool]string{true: "200", false: "404"}[i < 4]
			if it["http_status"] != want || it["format"] != "json" {
				t.Errorf("item %v", it)
			}
			if it["transaction_pattern"] == "odata/GWSAMPLE_BASIC/ProductSet" && it["statement"] != "" {
				gets++
				if it["statement"] != items[0]["statement"] || it["statement_operations"] != "3" || it["statement_rows"] != "3" || number(t, it["statement_time"]) <= 0 {
					t.Errorf("a get by key: %v", it)
				}
			}
		}
		if gets != 3 {
			t.Errorf("%d gets by key", gets)
		}
		head := items[0]
		if head["parent.items"] != "5" || head["parent.format"] != "multipart" || head["parent.transaction_pattern"] != "odata/GWSAMPLE_BASIC/$batch" {
			t.Errorf("the batch: %v", head)
		}
		var statements []struct {
			N           int
			Verb, Table string
			Ops         int
			MS          float64
		}
		if err := json.Unmarshal([]byte(head["parent.statements"]), &statements); err != nil || len(statements) < 2 {
			t.Errorf("statements %q: %v", head["parent.statements"], err)
		}
		tree, err := exec.Command(binary, "trace", id, "--db", db.url).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, tree)
		}
		for _, part := range []string{"$batch?sap-statistics=true  202", "|- hub ", "get product: 3 ops, 3 rows", "items without a statement"} {
			if !strings.Contains(string(tree), part) {
				t.Errorf("the tree lacks %q:\n%s", part, tree)
			}
		}
	})
}

// deferredBatch is a V4 batch that creates n incidents of that name, and waits a quarter of a second beside.
func deferredBatch(name string, n int) string {
	var b strings.Builder
	b.WriteString(`{"requests":[{"id":"w","method":"get","url":"/api/snc/test_api_7"}`)
	for i := range n {
		fmt.Fprintf(&b, `,{"id":"%d","method":"post","url":"/api/now/table/incident","headers":{"content-type":"application/json"},"body":{"short_description":%q,"urgency":"1","impact":"1"}}`, i, name)
	}
	return b.String() + "]}"
}

func TestDeferred_KillsLoseNoAcceptedCallAndRepeatNoWrite(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind), "--set", "async.lease=1s", "--set", "async.poll=20ms", "--set", "async.attempts=50")
		const each = 5
		accepted := map[string]string{} // name → monitor
		for round := range 4 {
			for i := range 3 {
				name := fmt.Sprintf("deferred %d %d", round, i)
				a, err := w.do(request{method: "POST", path: gwRoot4 + "/$batch", body: deferredBatch(name, each), header: map[string]string{"Prefer": "respond-async"}})
				if err != nil || a.status != 202 {
					t.Fatal(err, a)
				}
				accepted[name] = strings.TrimPrefix(a.header.Get("Location"), w.url)
			}
			time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond) // somewhere in the middle of them
			w.kill()
			w.again()
		}
		for name, monitor := range accepted {
			var a answer
			w.until("the answer of "+name, 60*time.Second, func() bool {
				var err error
				a, err = w.do(request{path: monitor, header: map[string]string{"Accept": "application/json"}})
				return err == nil && a.status != 202
			})
			if a.status != 200 || a.header.Get("AsyncResult") != "200" || strings.Count(a.body, `"status":201`) != each {
				t.Errorf("%s: %d, AsyncResult %q: %.600s", name, a.status, a.header.Get("AsyncResult"), a.body)
			}
			if n := len(w.rows("incident", "short_description="+name, "sys_id")); n != each {
				t.Errorf("%s: %d incidents instead of %d", name, n, each)
			}
			if other, _ := w.do(request{path: monitor, user: "abel.tuter"}); other.status == 200 {
				t.Error("somebody else reads it")
			}
		}
	})
}

func TestRepeatable_ARepeatHasTheFirstAnswerAndNoSecondEffect(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind))
		post := func(id, sent, product, name string) answer {
			t.Helper()
			a, err := w.do(request{
				method: "POST", path: gwRoot4 + "/ProductSet", header: map[string]string{"Repeatability-Request-ID": id, "Repeatability-First-Sent": sent},
				body: fmt.Sprintf(`{"ProductID":%q,"TypeCode":"PR","Category":"Notebooks","Name":%q,"NameLanguage":"EN","SupplierID":"0100000000","TaxTarifCode":1,"MeasureUnit":"EA","CurrencyCode":"EUR","Price":9.5}`, product, name),
			})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		now := time.Now().UTC().Format(http.TimeFormat)
		first := post("id-1", now, "REPEAT-1", "one")
		if first.status != 201 || first.header.Get("Repeatability-Result") != "accepted" {
			t.Fatalf("%d %q %s", first.status, first.header.Get("Repeatability-Result"), first.body)
		}
		again := post("ID-1", now, "REPEAT-1", "one")
		if again.status != 201 || again.header.Get("Repeatability-Result") != "accepted" || again.body != first.body || again.header.Get("Location") != first.header.Get("Location") {
			t.Errorf("repeated: %d %q\n%s\n%s", again.status, again.header.Get("Repeatability-Result"), first.body, again.body)
		}
		if a := post("id-1", now, "REPEAT-2", "two"); a.status != 400 || a.header.Get("Repeatability-Result") != "rejected" {
			t.Errorf("another request: %d %q %s", a.status, a.header.Get("Repeatability-Result"), a.body)
		}
		old := time.Now().UTC().Add(-25 * time.Hour).Format(http.TimeFormat)
		if a := post("id-2", old, "REPEAT-2", "two"); a.status != 412 || a.header.Get("Repeatability-Result") != "rejected" {
			t.Errorf("too old: %d %q %s", a.status, a.header.Get("Repeatability-Result"), a.body)
		}
		if a := post("", "", "REPEAT-1", "one"); a.status < 400 || a.header.Get("Repeatability-Result") != "" {
			t.Errorf("not repeatable: %d %q", a.status, a.header.Get("Repeatability-Result"))
		}
		if n := len(w.rows("product", "product_idSTARTSWITHREPEAT", "product_id")); n != 1 {
			t.Errorf("%d products", n)
		}
	})
}

// creates is a V2 batch of one changeset that creates n products.
func creates(prefix string, n int) string {
	var b strings.Builder
	b.WriteString("--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n")
	for i := range n {
		fmt.Fprintf(&b, "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPOST ProductSet HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-ID: %d\r\n\r\n"+
			`{"ProductID":"%s%d","TypeCode":"PR","Category":"Notebooks","Name":"n","NameLanguage":"EN","SupplierID":"0100000000","TaxTarifCode":1,"MeasureUnit":"EA","CurrencyCode":"EUR","Price":"9.5"}`+"\r\n", i, prefix, i)
	}
	return b.String() + "--c--\r\n--b--\r\n"
}

func TestODataDoor_CreatesOfAChangesetShareOneStatement(t *testing.T) {
	w := serve(t, demoData(t, "sqlite"), "--set", "transactions.flush=50ms")
	const n = 100
	a, err := w.do(request{
		method: "POST", path: gwRoot + "/$batch", body: creates("SHARE", n), header: with(w.handshake(gwRoot), "Content-Type", multipart, "sap-statistics", "true"),
	})
	if err != nil || a.status != 202 || strings.Count(a.body, "201 Created") != n || !statisticsHeader.MatchString(a.header.Get("sap-statistics")) {
		t.Fatalf("%v %d %q %.1000s", err, a.status, a.header.Get("sap-statistics"), a.body)
	}
	query := "parentISNOTEMPTY^link=" + a.header.Get("X-Transaction-ID") + "^ORDERBYsys_id"
	var items []row
	w.until("the transaction log to be written", 10*time.Second, func() bool {
		items = w.rows("syslog_transaction", query, "http_status,transaction_pattern,statement,statement_operations,statement_rows,input_length,output_length")
		return len(items) == n
	})
	for i, it := range items {
		if it["http_status"] != "201" || it["transaction_pattern"] != "odata/GWSAMPLE_BASIC/ProductSet" || it["statement"] != items[0]["statement"] || it["statement_operations"] != "100" || it["statement_rows"] != "100" || it["input_length"] == "0" {
			t.Fatalf("item %d: %v", i, it)
		}
	}
}
