package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// ledger is what clients sent and what they were told became of it. Every record carries a name of its own in correlation_id.
type ledger struct {
	mu    sync.Mutex
	sent  map[string]bool // by name
	acked map[string]row  // by name: number and sys_id as acknowledged
	odd   []string        // answers that no client should get
}

func newLedger() *ledger { return &ledger{sent: map[string]bool{}, acked: map[string]row{}} }

func (l *ledger) will(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names {
		l.sent[n] = true
	}
}

func (l *ledger) ack(name string, r row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked[name] = r
}

func (l *ledger) strange(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.odd = append(l.odd, fmt.Sprintf(format, args...))
}

func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// incidentOf is the body of a create. The journal entry is a row of its own in the same atom.
func incidentOf(name string) string {
	return fmt.Sprintf(`{"short_description":"e2e","correlation_id":%q,"urgency":"1","impact":"1","work_notes":"note of %s"}`, name, name)
}

const createPath = "/api/now/table/incident?sysparm_fields=number,sys_id,correlation_id"

// create sends one create. It returns false when the connection broke.
func (l *ledger) create(w *weir, name string, may ...int) bool {
	return l.send(w, []string{name}, nil, may...)
}

// send sends one create, or several as a batch, with header fields. It returns false when the connection broke: killed before, while or
// after, nobody knows.
func (l *ledger) send(w *weir, names []string, header map[string]string, may ...int) bool {
	l.will(names...)
	r := request{method: http.MethodPost, path: createPath, body: incidentOf(names[0]), header: header}
	if len(names) > 1 {
		items := make([]item, len(names))
		for i, n := range names {
			items[i] = item{n, http.MethodPost, createPath, incidentOf(n)}
		}
		r.path, r.body = "/api/now/batch", batch(items...)
	}
	a, err := w.do(r)
	if err != nil {
		return false
	}
	if len(names) == 1 || a.status != http.StatusOK {
		l.answered(names[0], a.status, a.body, may)
		return true
	}
	var b batchAnswer
	if err := json.Unmarshal([]byte(a.body), &b); err != nil || len(b.Serviced)+len(b.Unserviced) != len(names) {
		l.strange("a batch of %d answered %.300s (%v)", len(names), a.body, err)
		return true
	}
	for _, it := range b.Serviced {
		body, err := base64.StdEncoding.DecodeString(it.Body)
		if err != nil {
			l.strange("item %s: %v", it.ID, err)
		}
		l.answered(it.ID, it.Status, string(body), may)
	}
	return true
}

// answered notes the answer of a create, which must be 201 or one of the others allowed.
func (l *ledger) answered(name string, status int, body string, may []int) {
	if status == http.StatusCreated {
		var made struct{ Result row }
		if err := json.Unmarshal([]byte(body), &made); err != nil || made.Result["correlation_id"] != name {
			l.strange("create %s answered 201 %.300s", name, body)
			return
		}
		l.ack(name, made.Result)
		return
	}
	for _, m := range may {
		if status == m {
			return
		}
	}
	l.strange("create %s answered %d %.300s", name, status, body)
}

// audit compares the ledger with what is stored: all that was acknowledged is there exactly once as it was acknowledged, nothing is
// there that nobody sent, no number is given twice, and no record is half written.
func (l *ledger) audit(t *testing.T, w *weir) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.odd {
		if i == 10 {
			t.Errorf("and %d more", len(l.odd)-i)
			break
		}
		t.Error(s)
	}
	found := map[string]row{}
	numbers := map[string]bool{}
	for _, r := range w.rows("incident", "ORDERBYnumber", "number,sys_id,correlation_id") {
		if numbers[r["number"]] {
			t.Errorf("number %s is given twice", r["number"])
		}
		numbers[r["number"]] = true
		name := r["correlation_id"]
		if !strings.HasPrefix(name, "e2e-") {
			continue
		}
		if _, twice := found[name]; twice {
			t.Errorf("%s is stored twice", name)
		}
		found[name] = r
		if !l.sent[name] {
			t.Errorf("%s is stored and was never sent", name)
		}
	}
	for name, told := range l.acked {
		if is, ok := found[name]; !ok {
			t.Errorf("%s was acknowledged as %s and is not stored", name, told["number"])
		} else if is["number"] != told["number"] || is["sys_id"] != told["sys_id"] {
			t.Errorf("%s was acknowledged as %v and is stored as %v", name, told, is)
		}
	}
	// Each record has the one journal entry that was sent with it, and no entry is without its record.
	notes := map[string][]string{}
	for _, r := range w.rows("sys_journal_field", "name=incident^element=work_notes^valueSTARTSWITHnote of e2e-", "element_id,value") {
		notes[r["element_id"]] = append(notes[r["element_id"]], r["value"])
	}
	var shown struct{ Result []row }
	w.get("/api/now/table/incident?sysparm_display_value=true&sysparm_exclude_reference_link=true&sysparm_limit=1000000"+
		"&sysparm_query=correlation_idSTARTSWITHe2e-&sysparm_fields=sys_id,number,correlation_id,priority,state,opened_by,sys_created_by", &shown)
	for _, r := range shown.Result {
		if r["number"] == "" || r["priority"] != "1 - Critical" || r["state"] != "New" || r["opened_by"] != "System Administrator" || r["sys_created_by"] != "admin" {
			t.Errorf("half written: %v", r)
		}
		if diff := cmp.Diff([]string{"note of " + r["correlation_id"]}, notes[r["sys_id"]]); diff != "" {
			t.Errorf("the journal of %s (-want +got):\n%s", r["correlation_id"], diff)
		}
		delete(notes, r["sys_id"])
	}
	for id, entries := range notes {
		t.Errorf("journal entries %q belong to no record (%s)", entries, id)
	}
	t.Logf("%d sent, %d acknowledged, %d stored", len(l.sent), len(l.acked), len(found))
}

// load runs many clients that create singly and some that create in batches, until stop is closed or the connection breaks. With
// statuses that creates may answer besides 201, the server is one that stays up.
func (l *ledger) load(w *weir, round, singles, batches int, stop <-chan struct{}, may ...int) (wait func()) {
	var clients sync.WaitGroup
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	broken := func() {
		if len(may) > 0 {
			l.strange("a connection broke: the server was to stay up")
		}
	}
	for c := range singles {
		clients.Go(func() {
			for i := 0; !stopped(); i++ {
				if !l.create(w, fmt.Sprintf("e2e-%d-s%d-%d", round, c, i), may...) {
					broken()
					return
				}
			}
		})
	}
	for c := range batches {
		clients.Go(func() {
			for i := 0; !stopped(); i++ {
				names := make([]string, 20)
				for k := range names {
					names[k] = fmt.Sprintf("e2e-%d-b%d-%d-%d", round, c, i, k)
				}
				if !l.send(w, names, nil, may...) {
					broken()
					return
				}
			}
		})
	}
	return clients.Wait
}

// TestKill_LosesNothingAcknowledged kills the server in the middle of a load of creates, several times.
func TestKill_LosesNothingAcknowledged(t *testing.T) {
	onEach(t, func(t *testing.T, kind string) {
		w := serve(t, demoData(t, kind))
		l := newLedger()
		for round := range 3 {
			before := l.acknowledged()
			stop := make(chan struct{})
			wait := l.load(w, round, 24, 3, stop)
			w.until("acknowledged creates", startLimit, func() bool { return l.acknowledged() >= before+200*(round+1) })
			w.kill()
			close(stop)
			wait()
			client.CloseIdleConnections()
			w.again()
			if limit := 3 * time.Second; w.took > limit {
				t.Errorf("answered %s after the restart; that is not at once", w.took)
			}
			// The first thing it is asked for is a create: numbers go on where they were.
			if !l.create(w, fmt.Sprintf("e2e-%d-first", round)) {
				t.Fatal("the restarted server broke the connection")
			}
			l.audit(t, w)
		}
	})
}
