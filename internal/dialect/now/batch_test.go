package now_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalog"
	"weir/internal/dialect"
	"weir/internal/dialect/dialecttest"
	"weir/internal/dialect/now"
	"weir/internal/record"
	"weir/internal/wire"
)

// office is small with scripted endpoints and a staging table.
func office(t testing.TB) *catalog.Snapshot {
	t.Helper()
	defs := catalog.Definitions{
		Tables: []catalog.TableDef{
			{Name: "incident", Display: "number", Fields: []catalog.FieldDef{
				{Name: "number", Type: "string", ReadOnly: true}, {Name: "short_description", Type: "string"}, {Name: "category", Type: "string"},
			}},
			{Name: "sys_user", Display: "name", Fields: []catalog.FieldDef{{Name: "name", Type: "string"}, {Name: "first_name", Type: "string"}}},
			{Name: "sys_import_set", Display: "number", Fields: []catalog.FieldDef{
				{Name: "number", Type: "string"}, {Name: "table_name", Type: "string"}, {Name: "state", Type: "string"},
			}},
			{Name: "imp_user", Fields: []catalog.FieldDef{
				{Name: "first_name", Label: "First name", Type: "string"},
				{Name: "last_name", Label: "Last name", Type: "string"},
				{Name: "age", Label: "Age", Type: "integer"},
				{Name: "sys_import_set", Type: "reference", Reference: "sys_import_set"},
				{Name: "sys_import_row", Type: "integer"},
				{Name: "sys_target_sys_id", Type: "guid"},
				{Name: "sys_import_state", Type: "string"},
			}, Rules: []catalog.RuleDef{{Name: "User", On: []string{"insert"}, Derive: &catalog.DeriveDef{
				Table: "sys_user", Values: map[string]string{"first_name": "first_name"},
				Result: &catalog.DeriveResult{Key: "sys_target_sys_id", State: "sys_import_state"},
			}}}},
		},
		Endpoints: []catalog.EndpointDef{{Name: "order", Path: "/api/x_acme/v1/orders/{id}", Method: "POST", Script: "1"}},
	}
	for i := 1; i <= 20; i++ {
		defs.Endpoints = append(defs.Endpoints, catalog.EndpointDef{Name: fmt.Sprint("test_api_", i), Path: fmt.Sprint("/api/snc/test_api_", i), Method: "GET", Script: "1"})
	}
	snap, err := catalog.Build(1, defs)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

func newOffice(words []string) dialect.Dialect {
	opt := now.Options{Clock: func() time.Time { return noon }}
	for _, w := range words {
		switch w {
		case "two items":
			opt.Batch.MaxItems = 2
		case "bodies of 4":
			opt.Batch.MaxInput = 4
		default:
			panic("unknown word " + w)
		}
	}
	return now.New(opt)
}

func TestGolden_Batch(t *testing.T) {
	dialecttest.Unit(t, "testdata/batch/*.txtar", office(t), newOffice)
}

func TestGolden_Scripted(t *testing.T) {
	dialecttest.Unit(t, "testdata/scripted/*.txtar", office(t), newOffice)
}

func TestGolden_Import(t *testing.T) {
	dialecttest.Unit(t, "testdata/import/*.txtar", office(t), newOffice)
}

// canned is an executor that answers by the op.
type canned func(i int, op *record.Op) record.Outcome

func (f canned) Execute(_ context.Context, _ *catalog.Snapshot, u *record.Unit) []record.Outcome {
	out := make([]record.Outcome, len(u.Ops))
	for i := range out {
		out[i] = f(i, &u.Ops[i])
	}
	return out
}

func (canned) Stream(context.Context, *catalog.Snapshot, *record.Unit) record.Outcome {
	panic("a batch streams nothing")
}

func runBatch(t testing.TB, snap *catalog.Snapshot, x dialect.Executor, body []byte) (*wire.Answer, []dialect.ItemRecord) {
	t.Helper()
	d := now.New(now.Options{})
	mux := &dialect.Mux{}
	mux.Handle("/api/", d)
	a := &wire.Answer{}
	c := &dialect.Call{Method: "POST", Path: "/api/now/v1/batch", Base: "https://weir.test", Actor: dialecttest.Actors["admin"], Body: body}
	records := d.Batch(context.Background(), &dialect.BatchRun{Snapshot: snap, Exec: x, Mux: mux}, c, a)
	return a, records
}

// TestBatch_AnswersTheArticleByteForByte sends the payload that the article prints and expects the answer that it prints, times included.
func TestBatch_AnswersTheArticleByteForByte(t *testing.T) {
	request, err := os.ReadFile("testdata/batch/article_request.json")
	if err != nil {
		t.Fatal(err)
	}
	printed, err := os.ReadFile("testdata/batch/article_response.json")
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, printed); err != nil {
		t.Fatal(err)
	}
	took := []time.Duration{259, 252, 253}
	a, records := runBatch(t, office(t), canned(func(i int, op *record.Op) record.Outcome {
		return record.Outcome{
			Result: fmt.Appendf(nil, `{"status":0,"headers":[],"body":{"response":"Test API %d"}}`, i+1),
			Stat:   record.Stat{End: took[i] * time.Millisecond, SQLCount: i, SetOps: 1},
		}
	}), request)
	if d := cmp.Diff(want.String(), string(a.Body)); d != "" {
		t.Error(d)
	}
	if len(records) != 3 || records[2].ID != "13" || records[2].URL != "/api/snc/test_api_3" || records[2].Status != 200 || records[2].Time != 253*time.Millisecond || records[2].SQLCount != 2 {
		t.Errorf("records %+v", records)
	}
}

func TestBatch_ReadsTheArticlesCreate(t *testing.T) {
	request, err := os.ReadFile("testdata/batch/article_create.json")
	if err != nil {
		t.Fatal(err)
	}
	var ops []record.Op
	a, _ := runBatch(t, office(t), canned(func(_ int, op *record.Op) record.Outcome {
		ops = append(ops, *op)
		return record.Outcome{Rows: record.NewRows(op.Return, make([]record.Type, len(op.Return))), Stat: record.Stat{End: 260 * time.Millisecond}}
	}), request)
	want := []record.Assign{{Field: "short_description", Value: record.TextValue("Batch REST test incident")}, {Field: "category", Value: record.TextValue("software")}}
	if len(ops) != 1 || ops[0].Verb != record.Insert {
		t.Fatalf("ops %+v", ops)
	}
	if d := cmp.Diff(want, ops[0].Set); d != "" {
		t.Error(d)
	}
	if !bytes.Contains(a.Body, []byte(`"status_code":201,"status_text":"Created","headers":[],"execution_time":260}],"unserviced_requests":[]}`)) {
		t.Errorf("%s", a.Body)
	}
}

// creates is a batch of n creates as bulk clients send them.
func creates(n int) []byte {
	item := base64.StdEncoding.EncodeToString([]byte(`{"short_description":"disk full on db-042, please look","category":"hardware"}`))
	b := []byte(`{"batch_request_id":"1","enforce_order":false,"rest_requests":[`)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"id":"%d","exclude_response_headers":true,"headers":[{"name":"Content-Type","value":"application/json"},{"name":"Accept","value":"application/json"}],`+
			`"url":"/api/now/table/incident?sysparm_fields=number,sys_id","method":"POST","body":"%s"}`, i, item)
	}
	return append(b, "]}"...)
}

func BenchmarkBatch_1000Creates(b *testing.B) {
	snap := office(b)
	body := creates(1000)
	rows := record.NewRows([]string{"number", "sys_id"}, []record.Type{record.TypeString, record.TypeGUID})
	rows.Append([]record.Value{record.TextValue("INC0010001"), record.TextValue("9d385017c611228701d22104cc95c371")})
	cells := rows.At(0)
	key := []record.Value{cells[1]}
	x := canned(func(_ int, op *record.Op) record.Outcome {
		r := record.NewRows(op.Return, rows.Types)
		r.AppendShared(cells)
		return record.Outcome{Rows: r, Key: key, Inserted: true, Changed: true}
	})
	d := now.New(now.Options{})
	mux := &dialect.Mux{}
	mux.Handle("/api/", d)
	c := &dialect.Call{Method: "POST", Path: "/api/now/v1/batch", Base: "https://weir.test", Actor: dialecttest.Actors["admin"], Body: body}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		a := &wire.Answer{}
		d.Batch(context.Background(), &dialect.BatchRun{Snapshot: snap, Exec: x, Mux: mux}, c, a)
		if a.Status != 200 {
			b.Fatalf("%s", a.Body)
		}
	}
}

func FuzzBatchEnvelope(f *testing.F) {
	for _, name := range []string{"article_request.json", "article_create.json"} {
		body, err := os.ReadFile("testdata/batch/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{'batch_request_id':1,'rest_requests':[{'id':'1','method':'GET','url':'/api/now/table/incident','depends_on':['2']},{'id':2,'body':'e30 ='}]}`))
	snap := office(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 8192 {
			return
		}
		a, _ := runBatch(t, snap, canned(func(_ int, op *record.Op) record.Outcome {
			return record.Outcome{Result: []byte(`{"status":0,"headers":[],"body":1}`), Rows: record.NewRows(op.Return, make([]record.Type, len(op.Return)))}
		}), body)
		if a.Status != 200 && a.Status != 400 && a.Status != 415 || !json.Valid(a.Body) {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		var answer struct {
			ID         *string                `json:"batch_request_id"`
			Serviced   []struct{ ID *string } `json:"serviced_requests"`
			Unserviced []string               `json:"unserviced_requests"`
		}
		if err := json.Unmarshal(a.Body, &answer); err != nil {
			t.Fatalf("%v: %s", err, a.Body)
		}
		if a.Status == 200 && (answer.ID == nil || answer.Serviced == nil || answer.Unserviced == nil) {
			t.Fatalf("%s", a.Body)
		}
	})
}
