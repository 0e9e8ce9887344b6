package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestKill_ChangesetsAreWholeOrAbsent kills the server in the middle of a load of changesets, several times: each is there as a whole or
// not at all, and each that was answered is there.
func TestKill_ChangesetsAreWholeOrAbsent(t *testing.T) {
	const size = 40
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind))
		var mu sync.Mutex
		answered := map[string]bool{} // by the beginning of its products' ids: whether the answer came
		count := func() (n int) {
			mu.Lock()
			defer mu.Unlock()
			for _, came := range answered {
				if came {
					n++
				}
			}
			return n
		}
		for round := range 3 {
			before := count()
			var clients sync.WaitGroup
			for c := range 6 {
				clients.Go(func() {
					for i := 0; ; i++ {
						prefix := fmt.Sprintf("K%d%d%03d-", round, c, i)
						mu.Lock()
						answered[prefix] = false
						mu.Unlock()
						a, err := w.do(request{
							method: http.MethodPost, path: "/odata/v2/GWSAMPLE_BASIC/$batch", body: creates(prefix, size),
							header: map[string]string{"Content-Type": multipart},
						})
						if err != nil {
							return // killed before, while or after: nobody knows
						}
						if a.status != http.StatusAccepted || strings.Count(a.body, "201 Created") != size {
							t.Errorf("changeset %s: %d %.500s", prefix, a.status, a.body)
							return
						}
						mu.Lock()
						answered[prefix] = true
						mu.Unlock()
					}
				})
			}
			w.until("answered changesets", startLimit, func() bool { return count() >= before+12 })
			w.kill()
			clients.Wait()
			client.CloseIdleConnections()
			w.again()

			stored := map[string]int{}
			for _, r := range w.rows("product", "product_idSTARTSWITHK", "product_id") {
				prefix, _, _ := strings.Cut(r["product_id"], "-")
				stored[prefix+"-"]++
			}
			for prefix, n := range stored {
				if _, sent := answered[prefix]; !sent || n != size {
					t.Errorf("of changeset %s there are %d of %d products", prefix, n, size)
				}
			}
			for prefix, came := range answered {
				if came && stored[prefix] != size {
					t.Errorf("changeset %s was answered, and %d of its %d products are there", prefix, stored[prefix], size)
				}
			}
		}
	})
}
