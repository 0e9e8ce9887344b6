package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
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

// TestIdempotencyKey_RetriedUntilAcknowledgedIsStoredOnce is what keys are for: clients whose connection broke in a kill do not know
// what became of their create, or of their batch, and send it again with its key. At the end all is acknowledged, and all is there once.
func TestIdempotencyKey_RetriedUntilAcknowledgedIsStoredOnce(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind))
		l := newLedger()
		restarted := make(chan struct{})
		var enough atomic.Bool // nobody begins anything new
		var clients sync.WaitGroup
		for c := range 20 {
			clients.Go(func() {
				for i := 0; !enough.Load(); i++ {
					names := []string{fmt.Sprintf("e2e-%d-%d", c, i)}
					if c < 4 { // batches
						for k := range 9 {
							names = append(names, fmt.Sprintf("e2e-%d-%d-%d", c, i, k))
						}
					}
					key := map[string]string{"Idempotency-Key": "key of " + names[0]}
					if !l.send(w, names, key) {
						<-restarted
						if !l.send(w, names, key) {
							l.strange("%s: the restarted server broke the connection", names[0])
						}
						return
					}
				}
			})
		}
		w.until("acknowledged creates", startLimit, func() bool { return l.acknowledged() >= 300 })
		w.kill()
		enough.Store(true)
		client.CloseIdleConnections()
		w.again()
		close(restarted)
		clients.Wait()
		l.audit(t, w)
		if sent, acked := len(l.sent), l.acknowledged(); sent != acked {
			t.Errorf("%d of %d creates were acknowledged in the end", acked, sent)
		}
	})
}
