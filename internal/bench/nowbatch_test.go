package bench

import (
	"context"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFit_ArticlesTableGivesItsCosts(t *testing.T) {
	l := ArticleLine()
	if math.Abs(l.FixedMS-572) > 1 || math.Abs(l.PerCallMS-253.9) > 1 {
		t.Fatalf("the article's line is %.1f ms + %.1f ms a call, want 572 and 253.9", l.FixedMS, l.PerCallMS)
	}
	for i, want := range []float64{830.163, 365.575, 312.094, 282.353} {
		if got := article[i].callMS(); math.Abs(got-want) > 0.001 {
			t.Errorf("batch of %d: %.3f ms a call, the article says %.3f", article[i].batch, got, want)
		}
	}
}

func TestFit_NeedsTwoSizes(t *testing.T) {
	if l, ok := Fit([]Point{{5, 10}, {5, 12}}); ok {
		t.Fatalf("one size gave the line %+v", l)
	}
	if l, ok := Fit([]Point{{1, 12}, {11, 32}}); !ok || math.Abs(l.FixedMS-10) > 1e-9 || math.Abs(l.PerCallMS-2) > 1e-9 {
		t.Fatalf("got %+v %v, want 10 ms + 2 ms a call", l, ok)
	}
}

func TestLine_OverheadLeavesOutTheEndpointOnce(t *testing.T) {
	oneByOne, sideBySide := Line{FixedMS: 5, PerCallMS: 250}, Line{FixedMS: 255, PerCallMS: 0}
	for _, l := range []Line{oneByOne, sideBySide} {
		if got := l.Overhead(250); got != 5 {
			t.Errorf("%+v: overhead %v, want 5", l, got)
		}
	}
}

func quickBatch(s *imitation) NowBatch {
	return NowBatch{Access: s.access(), Threads: 4, Duration: 200 * time.Millisecond, Warmup: time.Millisecond, EndpointTime: 2 * time.Millisecond}
}

func TestNowBatch_CountsRightAnswersAndClosesConnections(t *testing.T) {
	s := newImitation(t)
	s.takes = 2 * time.Millisecond
	r, err := quickBatch(s).Run(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || len(r.Problems) != 0 || len(r.Cases) != 4 {
		t.Fatalf("not ok: %+v", r)
	}
	requests := 0
	for _, c := range r.Cases {
		requests += c.Requests
		if c.Calls != c.Requests*c.Batch || c.Requests == 0 {
			t.Errorf("%s: %d calls in %d requests", batchName(c.Batch), c.Calls, c.Requests)
		}
		if least := float64(c.Batch) * 2; c.P50MS < least || c.MaxMS < c.P99MS || c.P99MS < c.P50MS {
			t.Errorf("%s: p50 %.2f p99 %.2f max %.2f ms, one after another takes at least %.0f", batchName(c.Batch), c.P50MS, c.P99MS, c.MaxMS, least)
		}
		if want := 0.2 * 4 / float64(c.Calls) * 1000; math.Abs(c.CallMS-want) > 1e-9 {
			t.Errorf("%s: %v ms a call, the article's measure is %v", batchName(c.Batch), c.CallMS, want)
		}
	}
	if r.Line == nil || r.Line.PerCallMS < 1.5 {
		t.Errorf("items of 2 ms one after another, but the line is %+v", r.Line)
	}
	if got := s.connections.Load(); got < int64(requests) {
		t.Errorf("%d requests over %d connections, each should have had its own", requests, got)
	}
}

func TestNowBatch_EveryKindOfBadAnswerFails(t *testing.T) {
	tests := []struct {
		name   string
		break_ func(s *imitation)
		batch  int
		count  func(c NowBatchCase) int
		why    string
	}{
		{
			"wrong body", func(s *imitation) { s.single = func(int) (int, string) { return 200, right(21) } }, 1,
			func(c NowBatchCase) int { return c.Wrong }, `answered "Test API 21"`,
		},
		{
			"202 with nothing done", func(s *imitation) { s.single = func(int) (int, string) { return 202, "" } }, 1,
			func(c NowBatchCase) int { return c.Wrong }, "status 202: (empty body)",
		},
		{
			"no JSON", func(s *imitation) { s.single = func(int) (int, string) { return 200, "<html>" } }, 1,
			func(c NowBatchCase) int { return c.Wrong }, "<html>",
		},
		{
			"queue full", func(s *imitation) { s.single = func(int) (int, string) { return 429, "full" } }, 1,
			func(c NowBatchCase) int { return c.Rejected }, "status 429: full",
		},
		{
			"wrong item body", func(s *imitation) { s.item = func(int) (int, string, bool) { return 200, right(21), true } }, 5,
			func(c NowBatchCase) int { return c.Wrong }, `answered "Test API 21"`,
		},
		{
			"item failed", func(s *imitation) { s.item = func(int) (int, string, bool) { return 500, "boom", true } }, 5,
			func(c NowBatchCase) int { return c.Wrong }, "status 500: boom",
		},
		{
			"item rejected", func(s *imitation) { s.item = func(int) (int, string, bool) { return 429, "full", true } }, 5,
			func(c NowBatchCase) int { return c.Rejected }, "status 429: full",
		},
		{
			"unserviced", func(s *imitation) { s.item = func(int) (int, string, bool) { return 0, "", false } }, 5,
			func(c NowBatchCase) int { return c.Wrong }, "was not served (unserviced_requests: [1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newImitation(t)
			tt.break_(s)
			o := quickBatch(s)
			var why samples
			c := o.runCase(t.Context(), []*client{newClient(s.access(), mustTargets(t, s.access())[0], 1, false, false)}, tt.batch, o.Duration, io.Discard, &why)
			if tt.count(c) == 0 || c.Errors() != tt.count(c) || c.Calls != 0 || c.Requests != 0 {
				t.Errorf("counted as %+v", c)
			}
			if got := strings.Join(why.list(), "\n"); !strings.Contains(got, tt.why) {
				t.Errorf("reasons %q do not name %q", got, tt.why)
			}
		})
	}
}

func TestNowBatch_OneWrongAnswerFailsTheResult(t *testing.T) {
	s := newImitation(t)
	s.item = func(n int) (int, string, bool) {
		if n == 20 {
			return 200, right(2), true
		}
		return 200, right(n), true
	}
	r, err := quickBatch(s).Run(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if r.OK || r.Cases[0].Wrong != 0 || r.Cases[1].Wrong == 0 || r.Cases[1].Calls == 0 {
		t.Fatalf("ok %v, cases %+v", r.OK, r.Cases)
	}
}

func TestNowBatch_HardStopLeavesOutWhatIsInFlight(t *testing.T) {
	s := newImitation(t)
	s.hang = func(n int64) bool { return n > 4 } // two to see that the server is right, one or two of warm-up, then silence
	o := quickBatch(s)
	o.Threads, o.Batches = 1, []int{1}
	begin := time.Now()
	r, err := o.Run(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the hard stop came after %v", took)
	}
	if c := r.Cases[0]; c.Requests > 2 || c.Errors() != 0 {
		t.Errorf("calls in flight at the end were counted: %+v", c)
	}
	if r.OK && r.Cases[0].Requests == 0 {
		t.Error("a case without one right answer is ok")
	}
}

func TestNowBatch_RefusesWhatCannotBeMeasured(t *testing.T) {
	s := newImitation(t)
	f := func(change func(o *NowBatch), want string) {
		t.Helper()
		o := quickBatch(s)
		change(&o)
		if r, err := o.Run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %+v, %v; want an error naming %q", r, err, want)
		}
	}
	f(func(o *NowBatch) { o.Password = "wrong" }, "status 401")
	f(func(o *NowBatch) { o.Targets = nil }, "no target")
	f(func(o *NowBatch) { o.Targets = []string{"localhost:8080"} }, "not a base URL")
	f(func(o *NowBatch) { o.Batches = []int{21} }, "batch size 21")
	f(func(o *NowBatch) { o.Threads = -1 }, "threads: -1")
	f(func(o *NowBatch) { o.Duration = -1 }, "negative")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := quickBatch(s).Run(ctx, io.Discard); err == nil {
		t.Error("a cancelled run gave a result")
	}
}

func TestNowBatch_ReportsProgressTableAndJSON(t *testing.T) {
	s := newImitation(t)
	var progress, report strings.Builder
	o := quickBatch(s)
	o.Duration, o.Batches = 1200*time.Millisecond, []int{1, 20}
	r, err := o.Run(t.Context(), &progress)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(progress.String(), "singly           1 of 1 s") {
		t.Errorf("no progress line in %q", progress.String())
	}
	if err := r.Print(&report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"830.2", "282.4", "571.5 ms", "batches of 20", "result: ok"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &report)
		}
	}
	if err := WriteJSON(filepath.Join(t.TempDir(), "r.json"), r); err != nil {
		t.Fatal(err)
	}
	if err := WriteJSON(filepath.Join(t.TempDir(), "no", "such", "folder.json"), r); err == nil {
		t.Error("no error for a folder that is not there")
	}
}

func TestClient_AcceptsAnyCertificateOnlyWhenTold(t *testing.T) {
	s := newImitation(t)
	tls := newTLS(t, s)
	a := s.access()
	a.Targets = []string{tls}
	for _, insecure := range []bool{false, true} {
		a.Insecure = insecure
		c := newClient(a, mustTargets(t, a)[0], 1, false, false)
		got := c.call(t.Context(), []int{1}, false)
		if got.right() != insecure {
			t.Errorf("insecure %v: %+v", insecure, got)
		}
		r, err := Load(t.Context(), LoadOptions{Access: a, Duration: 50 * time.Millisecond, Request: Request{Method: http.MethodGet, Path: endpointPath(1)}})
		if err != nil || (r.Requests > 0) != insecure {
			t.Errorf("insecure %v: load %+v, %v", insecure, r, err)
		}
	}
}
