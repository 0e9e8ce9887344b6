package e2e

import (
	"fmt"
	"net/http"
	"testing"
)

// TestIdempotencyKey_RepeatAfterKillGivesTheStoredOutcome repeats a create and a batch with the same keys: at once, and after the
// server was killed and started again. The answers are the first ones, and there is one record of each.
func TestIdempotencyKey_RepeatAfterKillGivesTheStoredOutcome(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind))
		single := func(user, key, name string) answer {
			a, err := w.do(request{
				method: "POST", path: "/api/now/table/incident?sysparm_fields=number,sys_id,correlation_id", user: user, body: incidentOf(name),
				header: map[string]string{"Idempotency-Key": key},
			})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		many := func(key string) []string {
			var items []item
			for i := range 5 {
				items = append(items, item{fmt.Sprint(i), "POST", createPath, incidentOf(fmt.Sprintf("e2e-batch-%d", i))})
			}
			var b batchAnswer
			w.must(http.StatusOK, request{method: "POST", path: "/api/now/batch", body: batch(items...), header: map[string]string{"Idempotency-Key": key}}, &b)
			var texts []string
			for _, it := range b.Serviced {
				texts = append(texts, fmt.Sprint(it.Status, " ", it.text(t)))
			}
			return texts
		}
		first := single("", "key-1", "e2e-single")
		if first.status != http.StatusCreated {
			t.Fatalf("%d %s", first.status, first.body)
		}
		firstMany := many("key-2")
		check := func(when string) {
			if a := single("", "key-1", "e2e-single"); a.status != first.status || a.body != first.body {
				t.Errorf("%s: the repeat answers %d %s, the first answered %d %s", when, a.status, a.body, first.status, first.body)
			}
			again := many("key-2")
			if fmt.Sprint(again) != fmt.Sprint(firstMany) {
				t.Errorf("%s: the batch's repeat answers\n%q\nthe first answered\n%q", when, again, firstMany)
			}
		}
		check("at once")
		w.kill()
		client.CloseIdleConnections()
		w.again()
		check("after a kill")
		if n := len(w.rows("incident", "correlation_id=e2e-single", "number")); n != 1 {
			t.Errorf("%d records of the single create", n)
		}
		if n := len(w.rows("incident", "correlation_idSTARTSWITHe2e-batch-", "number")); n != 5 {
			t.Errorf("%d records of a batch of 5", n)
		}
		// The key of another request, and the same key of another user, are other matters.
		if a := single("", "key-1", "e2e-other"); a.status < 400 || a.status >= 500 {
			t.Errorf("a key used for another request: %d %s", a.status, a.body)
		}
		if a := single("beth.anglin", "key-1", "e2e-beth"); a.status != http.StatusCreated {
			t.Errorf("the same key of another user: %d %s", a.status, a.body)
		}
	})
}
