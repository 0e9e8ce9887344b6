package bench

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// imitation is NOT weir: it imitates just enough of the Now wire (20 endpoints, the batch API, cookies, metrics) to test
// the client against answers that we choose.
type imitation struct {
	*httptest.Server
	takes time.Duration // an endpoint's own time

	// What to do wrong; each may be nil.
	single func(n int) (status int, body string)                // replaces endpoint n's answer
	item   func(n int) (status int, body string, serviced bool) // replaces an item's answer
	hang   func(call int64) bool                                // true: this request is never answered

	noCookies bool
	// perSession and inAll bound how many single calls are served before 429; 0 is no bound.
	perSession, inAll int

	connections, requests, singles, sessions atomic.Int64
	mu                                       sync.Mutex
	bySession                                map[string]int
	bodies                                   map[string]int // distinct bodies posted to the table API
}

func newImitation(t *testing.T) *imitation {
	s := &imitation{bySession: make(map[string]int), bodies: make(map[string]int)}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *imitation) access() Access {
	return Access{Targets: []string{s.URL}, User: "admin", Password: "admin"}
}

func (s *imitation) serve(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user != "admin" || password != "admin" {
		http.Error(w, `{"error":{"message":"User Not Authenticated"}}`, http.StatusUnauthorized)
		return
	}
	session := ""
	if c, err := r.Cookie("JSESSIONID"); err == nil {
		session = c.Value
	} else if !s.noCookies {
		http.SetCookie(w, &http.Cookie{Name: "JSESSIONID", Value: fmt.Sprint("s", s.sessions.Add(1)), Path: "/"})
	}
	if s.hang != nil && s.hang(s.requests.Add(1)) {
		io.Copy(io.Discard, r.Body) // only then does net/http notice that the client has gone
		<-r.Context().Done()
		return
	}
	n, isEndpoint := strings.CutPrefix(r.URL.Path, "/api/snc/test_api_")
	switch {
	case isEndpoint:
		s.serveSingle(w, session, n)
	case r.URL.Path == batchPath:
		s.serveBatch(w, r)
	case r.URL.Path == "/metrics":
		fmt.Fprintf(w, "# TYPE weir_gate_waiting_high gauge\nweir_gate_waiting_high{pool=\"api_int\"} 50\nprocess_resident_memory_bytes 5.24288e+07\n")
	case r.Method == http.MethodPost:
		var b [64]byte
		k, _ := r.Body.Read(b[:])
		s.mu.Lock()
		s.bodies[string(b[:k])]++
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	default:
		w.Write([]byte(`{"result":[]}`))
	}
}

func (s *imitation) serveSingle(w http.ResponseWriter, session, path string) {
	n, _ := strconv.Atoi(path)
	all := int(s.singles.Add(1))
	s.mu.Lock()
	s.bySession[session]++
	mine := s.bySession[session]
	s.mu.Unlock()
	if (s.perSession > 0 && mine > s.perSession) || (s.inAll > 0 && all > s.inAll) {
		http.Error(w, `{"error":{"message":"full"}}`, http.StatusTooManyRequests)
		return
	}
	time.Sleep(s.takes)
	if s.single != nil {
		status, body := s.single(n)
		w.WriteHeader(status)
		w.Write([]byte(body))
		return
	}
	w.Write([]byte(right(n)))
}

func right(n int) string { return fmt.Sprintf(`{"result":{"response":"Test API %d"}}`, n) }

func (s *imitation) serveBatch(w http.ResponseWriter, r *http.Request) {
	var in struct {
		ID       string `json:"batch_request_id"`
		Requests []struct {
			ID, URL, Method string
		} `json:"rest_requests"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type item struct {
		ID     string `json:"id"`
		Body   string `json:"body"`
		Status int    `json:"status_code"`
	}
	serviced, unserviced := []item{}, []string{}
	for _, q := range in.Requests {
		time.Sleep(s.takes) // one after another, as the article's log shows
		n, _ := strconv.Atoi(strings.TrimPrefix(q.URL, "/api/snc/test_api_"))
		status, body, ok := 200, right(n), true
		if q.Method == http.MethodPost {
			status = http.StatusCreated
		}
		if s.item != nil {
			status, body, ok = s.item(n)
		}
		if ok {
			serviced = append(serviced, item{q.ID, base64.StdEncoding.EncodeToString([]byte(body)), status})
		} else {
			unserviced = append(unserviced, q.ID)
		}
	}
	json.NewEncoder(w).Encode(map[string]any{"batch_request_id": in.ID, "serviced_requests": serviced, "unserviced_requests": unserviced})
}

// imitatedNodes starts two imitations for each trial and turns the article's settings into their bounds.
type imitatedNodes struct {
	t                *testing.T
	started, stopped int
	tweak            func(*imitation)
}

func (n *imitatedNodes) Configure(_ context.Context, profile string, settings map[string]string) ([]string, func(), error) {
	n.started++
	var targets []string
	var nodes []*imitation
	for range 2 {
		s := newImitation(n.t)
		if profile == "servicenow" {
			s.perSession, s.inAll = 11, 54
			if settings[SettingSessionWaiting] == "20" {
				s.perSession = 21
			}
			if settings[SettingAPIIntQueue] == "1000" {
				s.inAll = 1004
			}
		}
		if n.tweak != nil {
			n.tweak(s)
		}
		nodes, targets = append(nodes, s), append(targets, s.URL)
	}
	return targets, func() {
		n.stopped++
		for _, s := range nodes {
			s.Close()
		}
	}, nil
}
