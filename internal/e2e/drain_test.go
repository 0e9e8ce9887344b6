package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// TestDrain_TermLosesNoAcceptedRequest ends the server under load. Every request that was sent before gets its answer, and the exit
// code says that all went well.
func TestDrain_TermLosesNoAcceptedRequest(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind), "--set", "log.requests=none")
		l := newLedger()
		var (
			clients  sync.WaitGroup
			ending   atomic.Bool // set before the signal: nobody begins a request that could come too late
			underWay atomic.Int64
			served   atomic.Int64
		)
		for c := range 40 {
			clients.Go(func() {
				// A connection for each request, as the article's customer has it.
				for i := 0; !ending.Load(); i++ {
					name := fmt.Sprintf("e2e-%d-%d", c, i)
					l.will(name)
					conn := w.dial()
					body := incidentOf(name)
					if c%4 == 0 { // slow ones: 250 ms each
						name = ""
						fmt.Fprint(conn, head("GET", fmt.Sprintf("/api/snc/test_api_%d", 1+c%20), "Connection: close"))
					} else {
						fmt.Fprint(conn, head("POST", createPath, asJSON, "Connection: close", fmt.Sprintf("Content-Length: %d", len(body)))+body)
					}
					underWay.Add(1)
					a, err := read(conn, startLimit)
					underWay.Add(-1)
					conn.Close()
					switch {
					case err != nil:
						l.strange("request %d of client %d got no answer: %v", i, c, err)
						return
					case name != "":
						l.answered(name, a.status, a.body, nil)
					case a.status != http.StatusOK:
						l.strange("a slow call answered %d %.300s", a.status, a.body)
					}
					served.Add(1)
				}
			})
		}
		w.until("requests served and under way", startLimit, func() bool { return served.Load() > 200 && underWay.Load() > 20 })
		ending.Store(true)
		code := w.stop()
		clients.Wait()
		if code != 0 {
			t.Errorf("exit code %d\n%s", code, w.log.tail(2000))
		}
		w.again()
		l.audit(t, w)
	})
}
