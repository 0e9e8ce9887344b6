package e2e

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// TestTransactionLog_SlowItemIsOneQueryAway is what the article says is lost with batches: which item was the slow one.
func TestTransactionLog_SlowItemIsOneQueryAway(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind), "--set", "transactions.flush=50ms")
		a := w.must(http.StatusOK, request{method: "POST", path: "/api/now/v1/batch", body: batch(
			item{"list", "GET", "/api/now/table/incident?sysparm_limit=5", ""},
			item{"slow one", "GET", "/api/snc/test_api_7", ""},
			item{"create", "POST", createPath, incidentOf("e2e-logged")},
			item{"missing", "GET", "/api/now/table/incident/0123456789abcdef0123456789abcdef", ""},
			item{"count", "GET", "/api/now/stats/incident?sysparm_count=true", ""},
		)}, nil)
		id := a.header.Get("X-Transaction-ID")
		if id == "" {
			t.Fatal("no X-Transaction-ID")
		}
		const fields = "item_id,url,method,http_status,response_time,sql_time,sql_count,parent,parent.url,parent.type,parent.http_status,sys_created_by"
		var slowest []row
		w.until("the transaction log to be written", 10*time.Second, func() bool {
			// The one query: items of this batch, the slowest first.
			slowest = w.rows("syslog_transaction", "parentISNOTEMPTY^link="+id+"^ORDERBYDESCresponse_time", fields)
			return len(slowest) == 5
		})
		slow := slowest[0]
		if slow["item_id"] != "slow one" || slow["url"] != "/api/snc/test_api_7" || slow["method"] != "GET" || slow["http_status"] != "200" || slow["sys_created_by"] != "admin" {
			t.Errorf("the slowest item is %v", slow)
		}
		if ms := number(t, slow["response_time"]); ms < 250 || ms > 5000 {
			t.Errorf("it took %v ms; it slept 250", ms)
		}
		if slow["parent.url"] != "/api/now/v1/batch" || slow["parent.type"] != "batch_rest" || slow["parent.http_status"] != "200" {
			t.Errorf("its batch is shown as %v", slow)
		}
		for _, r := range slowest[1:] {
			status := map[string]string{"list": "200", "create": "201", "missing": "404", "count": "200"}[r["item_id"]]
			if status == "" || r["http_status"] != status {
				t.Errorf("item %v", r)
			}
			if number(t, r["sql_count"]) < 1 || number(t, r["sql_time"]) <= 0 {
				t.Errorf("item %s used the database: sql_count %q, sql_time %q", r["item_id"], r["sql_count"], r["sql_time"])
			}
			if ms := number(t, r["response_time"]); ms >= 250 {
				t.Errorf("item %s is charged with the slow one's time: %v ms", r["item_id"], ms)
			}
			if r["parent"] != slow["parent"] {
				t.Errorf("item %s has another parent", r["item_id"])
			}
		}
	})
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Errorf("%q is no number", s)
	}
	return f
}
