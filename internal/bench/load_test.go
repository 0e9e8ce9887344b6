package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

func mustTargets(t *testing.T, a Access) []*url.URL {
	t.Helper()
	urls, err := a.targets()
	if err != nil {
		t.Fatal(err)
	}
	return urls
}

func newTLS(t *testing.T, s *imitation) string {
	tls := httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are what the test wants
	tls.StartTLS()
	t.Cleanup(tls.Close)
	return tls.URL
}

func TestReadAnswer_FindsTheEndOfEachBody(t *testing.T) {
	f := func(text string, head bool, wantStatus int, wantBody string, wantReuse bool) {
		t.Helper()
		in := bufio.NewReader(strings.NewReader(text))
		var body strings.Builder
		a, reuse := readAnswer(in, head, &body)
		if a.err != nil || a.status != wantStatus || body.String() != wantBody || a.bytes != int64(len(wantBody)) || reuse != wantReuse {
			t.Errorf("%q: got %+v %q reuse %v", text, a, &body, reuse)
		}
	}
	f("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", false, 200, "abc", true)
	f("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nT: x\r\n\r\n", false, 200, "abcde", true)
	f("HTTP/1.1 204 No Content\r\n\r\n", false, 204, "", true)
	f("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n", true, 200, "", true)
	f("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end", false, 200, "to the end", false)
	f("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", false, 200, "x", false)
}

func TestReadAnswer_RefusesWhatIsNoAnswer(t *testing.T) {
	for _, text := range []string{
		"", "HTTP/1.1 200", "SSH-2.0-OpenSSH\r\n", "HTTP/1.1 abc OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
		"HTTP/1.1 200 OK\r\nContent-Length: 5",
	} {
		a, reuse := readAnswer(bufio.NewReader(strings.NewReader(text)), false, io.Discard)
		if a.err == nil || reuse {
			t.Errorf("%q was taken for an answer: %+v", text, a)
		}
	}
}

func TestLoad_KeepsItsConnectionsAndCounts(t *testing.T) {
	s := newImitation(t)
	r, err := Load(t.Context(), LoadOptions{
		Access: s.access(), Connections: 3, Duration: 150 * time.Millisecond,
		Request: Request{
			Method: http.MethodPost, Path: "/api/now/table/incident", Want: http.StatusCreated,
			Body: func(conn, n int) []byte { return fmt.Appendf(nil, `{"n":"%d-%d"}`, conn, n) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests == 0 || r.Errors() != 0 || r.P50MS <= 0 || r.MaxMS < r.P99MS {
		t.Fatalf("got %+v", r)
	}
	if got := s.connections.Load(); got != 3 {
		t.Errorf("%d connections, want 3", got)
	}
	s.Close() // waits for the requests under way
	if len(s.bodies) < r.Requests {
		t.Errorf("%d answers for %d different bodies", r.Requests, len(s.bodies))
	}
}

func TestLoad_EachConnectionMakesItsRequests(t *testing.T) {
	s := newImitation(t)
	r, err := Load(t.Context(), LoadOptions{
		Access: s.access(), Connections: 3, Each: 4, Duration: time.Minute, Request: Request{Method: http.MethodGet, Path: endpointPath(1)},
	})
	if err != nil || r.Requests != 12 || r.Errors() != 0 || r.P95MS < r.P50MS || r.Seconds > 30 {
		t.Fatalf("got %+v, %v", r, err)
	}
}

func TestLoad_TellsBadAnswersApart(t *testing.T) {
	f := func(status int, body string, check func([]byte) error, count func(r LoadResult) int) {
		t.Helper()
		s := newImitation(t)
		s.single = func(int) (int, string) { return status, body }
		r, err := Load(t.Context(), LoadOptions{
			Access: s.access(), Duration: 50 * time.Millisecond,
			Request: Request{Method: http.MethodGet, Path: endpointPath(1), Check: check},
		})
		if err != nil || count(r) == 0 || r.Errors() != count(r) || r.Requests != 0 || len(r.Why) == 0 {
			t.Errorf("status %d: %+v, %v", status, r, err)
		}
	}
	f(429, "full", nil, func(r LoadResult) int { return r.Rejected })
	f(404, "", nil, func(r LoadResult) int { return r.Wrong })
	f(200, `{"serviced_requests":[]}`, CheckBatch(1, 201), func(r LoadResult) int { return r.Wrong })
}

func TestLoad_ServerThatIsNotThereIsCounted(t *testing.T) {
	s := newImitation(t)
	a := s.access()
	s.Close()
	r, err := Load(t.Context(), LoadOptions{Access: a, Duration: 50 * time.Millisecond, Request: Request{Method: http.MethodGet, Path: "/"}})
	if err != nil || r.Failed == 0 || r.Requests != 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
}

func TestLoad_HardStop(t *testing.T) {
	s := newImitation(t)
	s.hang = func(int64) bool { return true }
	begin := time.Now()
	r, err := Load(t.Context(), LoadOptions{Access: s.access(), Connections: 2, Duration: 100 * time.Millisecond, Request: Request{Method: http.MethodGet, Path: "/x"}})
	if err != nil || r.Requests != 0 || r.Errors() != 0 || time.Since(begin) > 5*time.Second {
		t.Fatalf("after %v: %+v, %v", time.Since(begin), r, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Load(ctx, LoadOptions{Access: s.access(), Duration: time.Minute, Request: Request{Method: http.MethodGet, Path: "/x"}}); err == nil {
		t.Fatal("a load cut short gave a result")
	}
}

func TestCheckBatch_WantsEachItemOnce(t *testing.T) {
	f := func(body, want string) {
		t.Helper()
		err := CheckBatch(2, 201)([]byte(body))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", body, err, want)
		}
	}
	f(`{"serviced_requests":[{"id":"0","status_code":201},{"id":"1","status_code":201}],"unserviced_requests":[]}`, "")
	f(`{"serviced_requests":[{"id":"0","status_code":201},{"id":"1","status_code":400}]}`, "item 1: status 400")
	f(`{"serviced_requests":[{"id":"0","status_code":201},{"id":"0","status_code":201}]}`, "twice")
	f(`{"serviced_requests":[{"id":"0","status_code":201}],"unserviced_requests":["1"]}`, "1 of 2 items, 1 unserviced")
	f(`<html>`, "batch answer")
}

func TestBatchOfCreates_IsServed(t *testing.T) {
	s := newImitation(t)
	s.item = func(int) (int, string, bool) { return 201, "{}", true }
	body := BatchOfCreates("incident", 7, func(i int) []byte { return fmt.Appendf(nil, `{"short_description":"%d"}`, i) })
	r, err := Load(t.Context(), LoadOptions{
		Access: s.access(), Duration: 50 * time.Millisecond,
		Request: Request{Method: http.MethodPost, Path: batchPath, Body: func(int, int) []byte { return body }, Check: CheckBatch(7, 201)},
	})
	if err != nil || r.Requests == 0 || r.Errors() != 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
}

// oneAtATime serves /slow in 60 ms and /fast at once, but never two together, and gives each session a cookie.
type oneAtATime struct {
	mu       sync.Mutex
	sessions map[string]map[string]bool // cookie → paths
}

func (s *oneAtATime) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := r.Cookie("S")
	if err != nil {
		c = &http.Cookie{Name: "S", Value: fmt.Sprint(len(s.sessions))}
		http.SetCookie(w, c)
		s.sessions[c.Value] = make(map[string]bool)
	}
	s.sessions[c.Value][r.URL.Path] = true
	if r.URL.Path == "/slow" {
		time.Sleep(60 * time.Millisecond)
	}
}

func TestProbe_SeesTheWaitThatTheLoadMakes(t *testing.T) {
	h := &oneAtATime{sessions: make(map[string]map[string]bool)}
	srv := httptest.NewServer(h)
	defer srv.Close()
	r, err := Probe(t.Context(), ProbeOptions{
		Access: Access{Targets: []string{srv.URL}}, Rate: 50, Duration: 400 * time.Millisecond,
		Probe: Request{Method: http.MethodGet, Path: "/fast"}, ProbeSession: "/a",
		Load: Request{Method: http.MethodGet, Path: "/slow"}, LoadSession: "/b",
	})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || r.Quiet.Requests != 20 || r.Loaded.Requests != 20 {
		t.Fatalf("every planned request must be counted: %+v", r)
	}
	if r.Loaded.P90MS < 20 || r.P99Ratio != r.Loaded.P99MS/r.Quiet.P99MS {
		t.Errorf("a probe behind calls of 60 ms: p90 %.1f ms, ratio %.1f", r.Loaded.P90MS, r.P99Ratio)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, paths := range h.sessions {
		if paths["/fast"] && paths["/slow"] {
			t.Errorf("session %s sent both the probe and the load", id)
		}
	}
	if len(h.sessions) != 2 {
		t.Errorf("%d sessions, want 2", len(h.sessions))
	}
}

func TestFairness_OneSessionFloodsTheOtherIsTimed(t *testing.T) {
	h := &oneAtATime{sessions: make(map[string]map[string]bool)}
	srv := httptest.NewServer(h)
	defer srv.Close()
	r, err := Fairness(t.Context(), FairnessOptions{
		Access: Access{Targets: []string{srv.URL}}, SessionPath: "/login", Flood: 10, Rate: 50, Duration: 200 * time.Millisecond,
		Request: Request{Method: http.MethodGet, Path: "/fast"},
	})
	if err != nil || !r.OK || r.P90Ratio <= 0 || r.Load.Requests <= r.Loaded.Requests {
		t.Fatalf("got %+v, %v", r, err)
	}
}

func TestProbe_RefusesBadOptions(t *testing.T) {
	for _, o := range []ProbeOptions{
		{Rate: -1},
		{Access: Access{Targets: []string{"http://127.0.0.1:1"}}},
		{Access: Access{Targets: []string{"http://127.0.0.1:1"}}, Probe: Request{Method: "GET", Path: "/"}, Load: Request{Method: "GET", Path: "x"}},
	} {
		if r, err := Probe(t.Context(), o); err == nil {
			t.Errorf("%+v gave %+v", o, r)
		}
	}
}
