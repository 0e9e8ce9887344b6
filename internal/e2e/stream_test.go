package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
)

// TestStream_LongListNeedsNoMemory reads a list of 60,000 records. The server's memory grows by what it streams through, and not by
// the list.
func TestStream_LongListNeedsNoMemory(t *testing.T) {
	const rows, perBatch = 60_000, 1_000
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind), "--set", "transactions.table=")
		var clients sync.WaitGroup
		for c := range 2 {
			clients.Go(func() {
				for b := c; b < rows/perBatch; b += 2 {
					items := make([]item, perBatch)
					for i := range items {
						items[i] = item{
							fmt.Sprint(i), "POST", "/api/now/table/cmdb_ci?sysparm_fields=sys_id",
							fmt.Sprintf(`{"name":"ci %d","short_description":"one of many, with a text that has a length such as texts have","attributes":"long"}`, b*perBatch+i),
						}
					}
					var answers batchAnswer
					a, err := w.do(request{method: "POST", path: "/api/now/batch", body: batch(items...)})
					if err != nil {
						t.Error(err)
						return
					}
					decode(t, a.body, &answers)
					for _, it := range answers.Serviced {
						if it.Status != http.StatusCreated {
							t.Errorf("%d %s", it.Status, it.text(t))
							return
						}
					}
				}
			})
		}
		clients.Wait()
		if t.Failed() {
			return
		}
		client.CloseIdleConnections()
		w.kill() // and begin with a small process
		w.again()
		w.get("/api/now/table/cmdb_ci?sysparm_limit=10", nil)
		before := w.forget()
		req, err := http.NewRequest("GET", w.url+"/api/now/table/cmdb_ci?sysparm_limit=1000000&sysparm_query=attributes=long", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("admin", "admin")
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		counted := &counter{}
		size, err := io.Copy(counted, res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if counted.rows != rows {
			t.Errorf("%d rows instead of %d", counted.rows, rows)
		}
		if got := res.Header.Get("X-Total-Count"); got != fmt.Sprint(rows) {
			t.Errorf("X-Total-Count %q", got)
		}
		most := w.memory("VmHWM")
		t.Logf("%d MiB streamed, resident memory %d MiB, at most %d MiB", size>>20, before>>20, most>>20)
		if grown, limit := most-before, int64(32<<20); grown > limit {
			t.Errorf("resident memory grew by %d MiB, which is more than %d", grown>>20, limit>>20)
		}
	})
}

// counter counts records in a stream without keeping it.
type counter struct {
	rows int
	rest []byte
}

// Write counts the ids that begin in p.
func (c *counter) Write(p []byte) (int, error) {
	const mark = `"sys_id":"`
	b := append(c.rest, p...)
	for {
		i := bytes.Index(b, []byte(mark))
		if i < 0 {
			break
		}
		c.rows++
		b = b[i+len(mark):]
	}
	c.rest = append(c.rest[:0], b[max(0, len(b)-len(mark)+1):]...)
	return len(p), nil
}
