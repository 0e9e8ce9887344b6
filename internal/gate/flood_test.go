package gate

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wholePages plays the article's customer on two nodes: 60 users open a page within 2 s, and each page at once sends
// its 20 calls of 250 ms, in requests of size calls each. It returns how many pages got all their answers.
func wholePages(t *testing.T, c Config, size int) (whole int) {
	const users, calls, nodes = 60, 20, 2
	synctest.Test(t, func(t *testing.T) {
		var gates [nodes]*Gate
		for i := range gates {
			gates[i] = newGate(t, c)
		}
		var mu sync.Mutex
		answered := make([]int, users)
		var all sync.WaitGroup
		for u := range users {
			all.Go(func() {
				time.Sleep(2 * time.Second * time.Duration(u) / users)
				var page sync.WaitGroup
				for range calls / size {
					page.Go(func() {
						g := gates[u%nodes]
						s, err := g.Enter(t.Context(), g.Route(RequestInfo{Path: "/api", Batch: size > 1}), fmt.Sprint("user", u))
						if err != nil {
							return
						}
						time.Sleep(time.Duration(size) * 250 * time.Millisecond)
						s.Release()
						mu.Lock()
						defer mu.Unlock()
						answered[u] += size
					})
				}
				page.Wait()
			})
		}
		all.Wait()
		for _, n := range answered {
			if n == calls {
				whole++
			}
		}
	})
	return whole
}

func TestServiceNow_FloodBreaksSinglePagesAndSparesBatches(t *testing.T) {
	f := func(what string, c Config, size, least, most int) {
		t.Helper()
		if n := wholePages(t, c, size); n < least || n > most {
			t.Errorf("%s: %d of 60 pages are whole, want %d to %d", what, n, least, most)
		}
	}
	c := ServiceNow()
	f("singly", c, 1, 0, 5)
	f("in batches of 5", c, 5, 60, 60)
	c.Session.Waiting = 20
	f("singly, 20 waiting per session", c, 1, 1, 20)
	api := c.Pools[APIPool]
	api.Queue = 1000
	c.Pools[APIPool] = api
	f("singly, and a queue of 1,000", c, 1, 60, 60)
	f("singly, profile auto", Auto(2, 20), 1, 60, 60)
}
