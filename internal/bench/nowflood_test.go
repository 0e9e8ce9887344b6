package bench

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func quickFlood() NowFlood {
	return NowFlood{User: "admin", Password: "admin", Users: 6, Arrive: 20 * time.Millisecond, PageTimeout: 20 * time.Second, SearchTime: -1}
}

func TestNowFlood_CountsPagesOfEachWay(t *testing.T) {
	nodes := &imitatedNodes{t: t}
	r, err := quickFlood().Run(t.Context(), nodes, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Name                                        string
		Requests, Calls, Served, Rejected, Pages, Q int
	}
	var got []row
	for _, c := range r.Cases {
		got = append(got, row{c.Name, c.Requests, c.Calls, c.Served, c.Rejected, c.PagesWhole, c.QueueHigh["api_int"]})
		if c.ResidentBytes != 50<<20 {
			t.Errorf("%s: memory %d", c.Name, c.ResidentBytes)
		}
	}
	// Two nodes with three users each. Singly a session gets 11 calls and a node 54; the imitation counts instead of queueing.
	want := []row{
		{waySingly, 120, 120, 66, 54, 0, 50},
		{"remedy 1: 20 waiting per session", 120, 120, 108, 12, got[1].Pages, 50},
		{"remedy 2: and a queue of 1,000", 120, 120, 120, 0, 6, 50},
		{wayBatches, 24, 120, 120, 0, 6, 50},
		{"auto, singly", 120, 120, 120, 0, 6, 50},
		{"auto, in batches", 24, 120, 120, 0, 6, 50},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got[1].Pages > 4 {
		t.Errorf("remedy 1: a node that rejects 6 calls left %d of 6 pages whole", got[1].Pages)
	}
	if !r.OK || !strings.Contains(r.Verdict, "singly 0.0 % of the pages are whole, in batches of 5 100.0 %") {
		t.Errorf("ok %v, verdict %q, problems %v", r.OK, r.Verdict, r.Problems)
	}
	if nodes.started != 6 || nodes.stopped != 6 {
		t.Errorf("nodes started %d times, stopped %d times", nodes.started, nodes.stopped)
	}
	var report strings.Builder
	if err := r.Print(&report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"api_int 50", "50 MiB", "100.0 %", r.Verdict} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &report)
		}
	}
}

func TestNowFlood_FindsWhereEachWayBreaks(t *testing.T) {
	o := quickFlood()
	o.SearchTime, o.MaxUsers = 30*time.Second, 12
	nodes := &imitatedNodes{t: t}
	r, err := o.Run(t.Context(), nodes, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Cases {
		got = append(got, c.Break.String())
	}
	// A node of 54 holds two users of 20 calls, so the fifth user breaks it.
	want := []string{"1 user", "5 users", "> 12 users", "> 12 users", "> 12 users", "> 12 users"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if nodes.started != nodes.stopped {
		t.Errorf("nodes started %d times, stopped %d times", nodes.started, nodes.stopped)
	}
}

func TestNowFlood_SearchEndsInTime(t *testing.T) {
	o := quickFlood()
	o.Variants = []Variant{{Name: "hangs with more than 6 users", Profile: "auto", Batch: 1}}
	o.SearchTime = 300 * time.Millisecond
	nodes := &imitatedNodes{t: t}
	nodes.tweak = func(s *imitation) {
		if nodes.started > 1 {
			s.hang = func(n int64) bool { return n > 20 }
		}
	}
	r, err := o.Run(t.Context(), nodes, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&Break{Holds: 6, Limit: "time"}, r.Cases[0].Break); d != "" {
		t.Error(d)
	}
}

func TestNowFlood_UnansweredCallsFailThePageAndTheResult(t *testing.T) {
	o := quickFlood()
	o.Variants = []Variant{{Name: "hangs", Profile: "auto", Batch: 5}}
	o.PageTimeout = 200 * time.Millisecond
	nodes := &imitatedNodes{t: t, tweak: func(s *imitation) {
		s.hang = func(n int64) bool { return n > 10 }
	}}
	r, err := o.Run(t.Context(), nodes, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Cases[0]; c.Failed == 0 || c.PagesWhole == c.Users || c.Served+c.Failed != c.Calls || r.OK {
		t.Errorf("ok %v, case %+v", r.OK, c)
	}
}

func TestNowFlood_UsersWithoutCookiesAreNoSessions(t *testing.T) {
	nodes := &imitatedNodes{t: t, tweak: func(s *imitation) { s.noCookies = true }}
	_, err := quickFlood().Run(t.Context(), nodes, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no session cookie") {
		t.Fatalf("got %v", err)
	}
	if nodes.started != nodes.stopped {
		t.Errorf("nodes started %d times, stopped %d times", nodes.started, nodes.stopped)
	}
}

func TestNowFlood_JudgesTheArticlesClaimAtItsSize(t *testing.T) {
	f := func(users, singly, batches int, ok bool) {
		t.Helper()
		r := &NowFloodResult{Cases: []FloodCase{
			{Variant: Variant{Name: waySingly, Batch: 1}, Users: users, PagesWhole: singly},
			{Variant: Variant{Name: wayBatches, Batch: 5}, Users: users, PagesWhole: batches},
		}}
		NowFlood{Users: users}.withDefaults().judge(r)
		if (len(r.Problems) == 0) != ok {
			t.Errorf("%d users, %d and %d whole: %v", users, singly, batches, r.Problems)
		}
	}
	f(60, 0, 60, true)
	f(60, 5, 60, true)
	f(60, 6, 60, false)
	f(60, 0, 59, false)
	f(200, 0, 100, true) // no claim is made for 200
}

func TestNowFlood_RefusesBadOptions(t *testing.T) {
	f := func(change func(o *NowFlood), want string) {
		t.Helper()
		o := quickFlood()
		change(&o)
		if _, err := o.Run(t.Context(), &imitatedNodes{t: t}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error naming %q", err, want)
		}
	}
	f(func(o *NowFlood) { o.Users = -1 }, "users: -1")
	f(func(o *NowFlood) { o.BatchOf = 21 }, "batch size 21")
	f(func(o *NowFlood) { o.PerUserConnections = -1 }, "connections per user")
	f(func(o *NowFlood) { o.SessionPath = "x" }, "session path")
	f(func(o *NowFlood) { o.Variants = []Variant{{Name: "v"}} }, `variant "v"`)
	f(func(o *NowFlood) { o.Password = "wrong" }, "status 401")
}
