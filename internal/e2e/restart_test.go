package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestPostgresRestart_ErrorsAreHonestAndPass restarts the database under a load of creates and reads, once politely and once as a
// crash does. Callers are told 503 (or 408, where a deadline passed), never 500; the server recovers by itself; and what was
// acknowledged is there.
func TestPostgresRestart_ErrorsAreHonestAndPass(t *testing.T) {
	c := newCluster(t)
	if c == nil {
		t.Log("no PostgreSQL on this machine: nothing to restart")
		return
	}
	w := serve(t, database{"postgres", c.url()}, "--set", "database.pool.wait=1s")
	l := newLedger()
	for round, mode := range []string{"fast", "immediate"} {
		before := l.acknowledged()
		stop := make(chan struct{})
		wait := l.load(w, round, 12, 2, stop, http.StatusServiceUnavailable, http.StatusRequestTimeout, http.StatusTooManyRequests)
		reads := w.readers(l, 4, stop)
		w.until("acknowledged creates", startLimit, func() bool { return l.acknowledged() >= before+300 })

		c.stop(mode)
		// The database is away: a call gets its answer, in the envelope, and soon.
		begin := time.Now()
		a, err := w.do(request{path: "/api/now/table/incident?sysparm_limit=1"})
		if err != nil {
			t.Errorf("%s: a read without database: %v", mode, err)
		} else if a.status != http.StatusServiceUnavailable {
			t.Errorf("%s: a read without database answers %d %.300s", mode, a.status, a.body)
		} else if err := envelope(a); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if took := time.Since(begin); took > 15*time.Second {
			t.Errorf("%s: a read without database waits %s", mode, took)
		}
		if a, err := w.do(request{path: "/healthz"}); err != nil || a.status != http.StatusOK {
			t.Errorf("%s: /healthz %d %v: the process lives", mode, a.status, err)
		}
		if a, err := w.do(request{path: "/readyz"}); err != nil || a.status != http.StatusServiceUnavailable {
			t.Errorf("%s: /readyz %d %v: it should get no requests now", mode, a.status, err)
		}
		c.start()

		back := l.acknowledged()
		w.until("acknowledged creates after the restart", 30*time.Second, func() bool { return l.acknowledged() >= back+300 })
		close(stop)
		wait()
		reads()
		w.until("/readyz", 10*time.Second, func() bool {
			a, err := w.do(request{path: "/readyz"})
			return err == nil && a.status == http.StatusOK
		})
		l.audit(t, w)
	}
}

// readers read records and lists until stop is closed; what they may not get goes into the ledger.
func (w *weir) readers(l *ledger, n int, stop <-chan struct{}) (wait func()) {
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a, err := w.do(request{path: fmt.Sprintf("/api/now/table/incident?sysparm_limit=20&sysparm_offset=%d", i%500)})
				switch {
				case err != nil:
					l.strange("a read broke: %v", err)
				case a.status == http.StatusOK:
				case a.status == http.StatusServiceUnavailable || a.status == http.StatusRequestTimeout:
					if err := envelope(a); err != nil {
						l.strange("%d: %v", a.status, err)
					}
				default:
					l.strange("a read answered %d %.300s", a.status, a.body)
				}
			}
		})
	}
	return group.Wait
}
