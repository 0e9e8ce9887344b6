package gate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func limiter(tracked int, rules ...RateRule) *RateLimiter {
	return newRateLimiter(RatesConfig{Rules: rules, Tracked: tracked})
}

func TestRateLimiter_UserBeforeRoleBeforeAllAndLowestRole(t *testing.T) {
	l := limiter(100,
		RateRule{ID: "all", PerHour: 5},
		RateRule{ID: "itil", Role: "itil", PerHour: 20},
		RateRule{ID: "web", Role: "web", PerHour: 10},
		RateRule{ID: "bob", User: "bob", PerHour: 99},
		RateRule{ID: "batch", Match: Match{Path: "/api/now/batch"}, PerHour: 3},
	)
	f := func(path, user string, roles []string, want string) {
		t.Helper()
		r, ok := l.Take(RequestInfo{Path: path, Method: "GET"}, user, roles)
		if !ok || r.RuleID != want {
			t.Errorf("%s by %s %v: rule %q, want %q", path, user, roles, r.RuleID, want)
		}
	}
	f("/api/now/table/incident", "ann", nil, "all")
	f("/api/now/table/incident", "ann", []string{"itil"}, "itil")
	f("/api/now/table/incident", "ann", []string{"itil", "web"}, "web")
	f("/api/now/table/incident", "bob", []string{"itil", "web"}, "bob")
	f("/api/now/batch", "ann", nil, "batch")
	f("/api/now/batch", "ann", []string{"itil"}, "itil")
	if _, ok := limiter(1).Take(RequestInfo{}, "ann", nil); ok {
		t.Error("a limiter without rules has an opinion")
	}
}

func TestRateLimiter_CountsPerUserAndClockHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(40 * time.Minute) // the bubble's clock begins at midnight UTC, on the hour
		l := limiter(100, RateRule{ID: "r", Match: Match{Method: "POST"}, PerHour: 2})
		post := RequestInfo{Path: "/api/now/table/incident", Method: "POST"}
		reset := time.Now().Add(20 * time.Minute).Unix()
		var got []Rate
		for range 3 {
			r, _ := l.Take(post, "ann", nil)
			got = append(got, r)
		}
		want := []Rate{
			{RuleID: "r", Limit: 2, Count: 1, Reset: reset},
			{RuleID: "r", Limit: 2, Count: 2, Reset: reset},
			{RuleID: "r", Limit: 2, Count: 2, Reset: reset, Exceeded: true, RetryAfter: 20 * time.Minute},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if r, _ := l.Take(post, "bob", nil); r.Exceeded {
			t.Error("bob pays for ann")
		}
		if _, ok := l.Take(RequestInfo{Method: "GET"}, "ann", nil); ok {
			t.Error("the rule is for POST")
		}
		time.Sleep(got[2].RetryAfter)
		if r, _ := l.Take(post, "ann", nil); r.Exceeded || r.Count != 1 || r.Reset != reset+3600 {
			t.Errorf("after Retry-After: %+v", r)
		}
	})
}

func TestRateLimiter_BoundedAndHonestAboutIt(t *testing.T) {
	l := limiter(1, RateRule{ID: "r", PerHour: 1})
	l.Take(RequestInfo{}, "ann", nil)
	for range 2 {
		if r, ok := l.Take(RequestInfo{}, "bob", nil); !ok || r.Exceeded {
			t.Errorf("bob is refused at random: %+v", r)
		}
	}
	l.Take(RequestInfo{}, "ann", nil)
	want := RateStats{Rules: 1, Tracked: 1, Exceeded: 1, Uncounted: 2}
	if diff := cmp.Diff(want, l.Stats()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
