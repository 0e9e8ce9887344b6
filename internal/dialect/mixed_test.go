package dialect_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"weir/demo"
	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/now"
	"weir/internal/dialect/odata"
	"weir/internal/engine"
	"weir/internal/project"
	"weir/internal/record"
	"weir/internal/store/sqlite"
	"weir/internal/wire"
)

// house is the demo with all its dialects.
type house struct {
	snap  *catalog.Snapshot
	exec  *engine.Engine
	mux   *dialect.Mux
	units int
}

func (h *house) Execute(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) []record.Outcome {
	h.units++
	return h.exec.Execute(ctx, snap, u)
}

func (h *house) Stream(ctx context.Context, snap *catalog.Snapshot, u *record.Unit) record.Outcome {
	return h.exec.Stream(ctx, snap, u)
}

func newHouse(t *testing.T) *house {
	p, err := project.Read(demo.Project())
	if err != nil {
		t.Fatal(err)
	}
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "weir.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	report, err := project.Apply(t.Context(), s, p, project.Options{Hash: func(string) (string, error) { return "-", nil }})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(s, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	h := &house{snap: report.Snapshot, exec: e, mux: &dialect.Mux{}}
	h.mux.Handle("/api/", now.New(now.Options{}))
	d := odata.New(odata.Options{})
	for _, p := range odata.Prefixes {
		h.mux.Handle(p, d)
	}
	return h
}

func (h *house) post(t *testing.T, path, kind, body string) (*wire.Answer, []dialect.ItemRecord) {
	t.Helper()
	c := &dialect.Call{Method: "POST", Path: path, RawPath: path, Base: "https://weir.test", Actor: dialecttest.Actors["admin"], Body: []byte(body)}
	c.Header.Add("Content-Type", kind)
	c.Header.Add("Accept", "*/*")
	a := &wire.Answer{}
	d := h.mux.Find(path).(dialect.Batcher)
	if !d.IsBatch(c.Method, c.Path) {
		t.Fatalf("%s is no batch", path)
	}
	h.units = 0
	records := d.Batch(t.Context(), &dialect.BatchRun{Snapshot: h.snap, Exec: h, Mux: h.mux}, c, a)
	return a, records
}

const sampleRoot = "/sap/opu/odata/IWBEP/GWSAMPLE_BASIC"

// One record, several dialects: a batch of the one carries calls of the other, in one unit.
func TestMixed_EveryBatchCarriesCallsOfEveryDialect(t *testing.T) {
	h := newHouse(t)
	accept := []map[string]string{{"name": "Accept", "value": "application/json"}, {"name": "Content-Type", "value": "application/json"}}
	envelope, err := json.Marshal(map[string]any{"batch_request_id": "1", "enforce_order": true, "rest_requests": []any{
		map[string]any{"id": "1", "method": "POST", "url": sampleRoot + "/ProductSet", "headers": accept, "body": []byte(
			`{"ProductID":"X/1 'a'","TypeCode":"PR","Category":"Mice","Name":"Mouse","SupplierID":"0100000000","TaxTarifCode":1,"MeasureUnit":"EA","CurrencyCode":"EUR"}`)},
		map[string]any{"id": "2", "method": "GET", "url": sampleRoot + "/ProductSet('X%2F1%20%27%27a%27%27')?$select=Name", "headers": accept},
		map[string]any{"id": "3", "method": "GET", "url": "/api/now/table/product?sysparm_query=product_id=X/1%20'a'&sysparm_fields=name", "headers": accept},
		map[string]any{"id": "4", "method": "GET", "url": sampleRoot + "/ProductSet('none')", "headers": accept},
		map[string]any{"id": "5", "method": "POST", "url": sampleRoot + "/$batch", "headers": accept},
	}})
	if err != nil {
		t.Fatal(err)
	}
	a, records := h.post(t, "/api/now/v1/batch", "application/json", string(envelope))
	var answer struct {
		Serviced []struct {
			ID     string
			Body   []byte
			Status int `json:"status_code"`
		} `json:"serviced_requests"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil || len(answer.Serviced) != 5 {
		t.Fatalf("%v %s", err, a.Body)
	}
	for i, want := range []struct {
		status int
		says   string
	}{{201, `"ProductID":"X/1 'a'"`}, {200, `"Name":"Mouse"`}, {200, `{"result":[{"name":"Mouse"}]}`}, {404, `"error":{"code"`}, {400, "cannot be part of a batch"}} {
		if got := answer.Serviced[i]; got.Status != want.status || !strings.Contains(string(got.Body), want.says) {
			t.Errorf("item %s: %d %s", got.ID, got.Status, got.Body)
		}
	}
	if h.units != 1 || len(records) != 5 {
		t.Errorf("%d units, %d records", h.units, len(records))
	}

	part := func(method, url, body string) string {
		return fmt.Sprintf("--b\r\nContent-Type: application/http\r\n\r\n%s %s HTTP/1.1\r\nAccept: application/json\r\nContent-Type: application/json\r\n\r\n%s\r\n", method, url, body)
	}
	a, records = h.post(t, sampleRoot+"/$batch", "multipart/mixed; boundary=b", part("POST", "/api/now/table/product", `{"product_id":"Y","name":"Pen","category":"Pens","supplier_id":"0100000000"}`)+
		part("GET", "ProductSet('Y')?$select=Name", "")+part("GET", "/odata/v4/itsm/incident?$top=1&$select=number", "")+
		part("GET", "/api/now/table/incident?sysparm_limit=1&sysparm_fields=number", "")+part("POST", "/api/now/v1/batch", "{}")+"--b--")
	var statuses []int
	for _, r := range records {
		statuses = append(statuses, r.Status)
	}
	if fmt.Sprint(statuses) != "[201 200 200 200 400]" || h.units != 1 || !bytes.Contains(a.Body, []byte(`"Name":"Pen"`)) {
		t.Errorf("%v in %d units\n%s", statuses, h.units, a.Body)
	}
}
