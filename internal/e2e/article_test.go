package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The article that weir began with prints two payloads and their answers. They stand in testdata exactly as it prints them.

// executionTime is the one thing in the article's answer that no two runs share.
var executionTime = regexp.MustCompile(`"execution_time": ?\d+`)

// TestArticle_ThreeGetsAnswerAsPrinted sends the three GETs and compares the answer byte for byte with the printed one. The
// article formats its answer for reading, so both are compared without the space between tokens.
func TestArticle_ThreeGetsAnswerAsPrinted(t *testing.T) {
	payload, printed := file(t, "article_get.json"), file(t, "article_get_answer.json")
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind))
		for _, path := range []string{"/api/now/v1/batch", "/api/now/v2/batch", "/api/now/batch"} {
			a := w.must(200, request{method: "POST", path: path, body: payload}, nil)
			if got := a.header.Get("Content-Type"); got != "application/json;charset=UTF-8" {
				t.Errorf("%s: Content-Type %q", path, got)
			}
			if diff := cmp.Diff(masked(t, printed), masked(t, a.body)); diff != "" {
				t.Errorf("%s (-printed +answered):\n%s", path, diff)
			}
			var b batchAnswer
			decode(t, a.body, &b)
			for _, item := range b.Serviced {
				if item.Time < 250 {
					t.Errorf("item %s slept 250 ms in %d ms", item.ID, item.Time)
				}
			}
		}
	})
}

// TestArticle_IncidentIsCreated sends the create payload and looks for the record.
func TestArticle_IncidentIsCreated(t *testing.T) {
	payload := file(t, "article_create.json")
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind))
		a := w.must(200, request{method: "POST", path: "/api/now/v1/batch", body: payload}, nil)
		var b batchAnswer
		decode(t, a.body, &b)
		if len(b.Serviced) != 1 {
			t.Fatalf("%d items answered: %s", len(b.Serviced), a.body)
		}
		// What the article prints; it has removed the body for readability.
		const want = `{"batch_request_id":"1","serviced_requests":[{"id":"11","body":"…","status_code":201,"status_text":"Created","headers":[],"execution_time":0}],"unserviced_requests":[]}`
		got := regexp.MustCompile(`"body":"[^"]*"`).ReplaceAllString(masked(t, a.body), `"body":"…"`)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-printed +answered):\n%s", diff)
		}
		var made struct {
			Result map[string]any `json:"result"`
		}
		decode(t, b.Serviced[0].text(t), &made)
		id, _ := made.Result["sys_id"].(string)
		if number, _ := made.Result["number"].(string); !regexp.MustCompile(`^INC\d{7}$`).MatchString(number) {
			t.Errorf("number %q", number)
		}
		stored := w.rows("incident", "sys_id="+id, "short_description,category,cmdb_ci,sys_class_name,state,opened_by,sys_created_by")
		want2 := []row{{
			"short_description": "Batch REST test incident", "category": "software", "cmdb_ci": "b4fd7c8437201000deeabfc8bcbe5dc1",
			"sys_class_name": "incident", "state": "1", "opened_by": "6816f79cc0a8016401c5a33be04be441", "sys_created_by": "admin",
		}}
		if diff := cmp.Diff(want2, stored); diff != "" {
			t.Errorf("the stored record (-want +got):\n%s", diff)
		}
	})
}

// masked is JSON without space between tokens and without execution times.
func masked(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		t.Fatalf("%v in %.500s", err, s)
	}
	return executionTime.ReplaceAllString(b.String(), `"execution_time":0`)
}

func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func decode(t testing.TB, s string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), v); err != nil {
		t.Fatalf("%v in %.500s", err, s)
	}
}

// batchAnswer is the answer of the Batch API.
type batchAnswer struct {
	ID         string      `json:"batch_request_id"`
	Serviced   []batchItem `json:"serviced_requests"`
	Unserviced []string    `json:"unserviced_requests"`
}

type batchItem struct {
	ID      string `json:"id"`
	Body    string `json:"body"`
	Status  int    `json:"status_code"`
	Text    string `json:"status_text"`
	Time    int64  `json:"execution_time"`
	Message string `json:"error_message"`
}

// text is what the single call would have answered.
func (i batchItem) text(t testing.TB) string {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(i.Body)
	if err != nil {
		t.Fatalf("item %s: %v", i.ID, err)
	}
	return string(b)
}

// item is one request of a batch to be sent.
type item struct {
	id, method, url, body string
}

// batch is the payload of a batch.
func batch(items ...item) string {
	type header struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type part struct {
		ID      string   `json:"id"`
		Method  string   `json:"method"`
		URL     string   `json:"url"`
		Headers []header `json:"headers"`
		Body    string   `json:"body,omitempty"`
	}
	parts := make([]part, len(items))
	for i, it := range items {
		parts[i] = part{it.id, it.method, it.url, []header{{"Content-Type", "application/json"}, {"Accept", "application/json"}}, base64.StdEncoding.EncodeToString([]byte(it.body))}
	}
	var b strings.Builder
	json.NewEncoder(&b).Encode(map[string]any{"batch_request_id": "b", "rest_requests": parts})
	return b.String()
}
