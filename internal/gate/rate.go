package gate

import (
	"slices"
	"sync"
	"time"
)

// RateLimiter counts requests per rule and user in the current clock hour (UTC). All counts fall to zero when the hour turns.
type RateLimiter struct {
	mu        sync.Mutex
	cfg       RatesConfig
	hour      int64 // hours since 1970 that counts belong to
	counts    map[rateKey]int
	exceeded  uint64
	uncounted uint64
}

type rateKey struct{ rule, user string }

// Rate is what the limits say of one request.
type Rate struct {
	RuleID     string        // the rule that applies
	Limit      int           // requests per hour
	Count      int           // requests that passed in this hour, with this one if it did
	Reset      int64         // when the next hour begins, in unix seconds
	Exceeded   bool          // the request must not run
	RetryAfter time.Duration // until the next hour, in whole seconds; zero unless exceeded
}

func newRateLimiter(c RatesConfig) *RateLimiter {
	l := &RateLimiter{counts: map[rateKey]int{}}
	l.reconfigure(c)
	return l
}

// reconfigure keeps the counts of rules that stay; the rest fall away when the hour turns.
func (l *RateLimiter) reconfigure(c RatesConfig) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.Rules = slices.Clone(c.Rules)
	l.cfg = c
}

// Take counts a request of a user, and reports whether a rule applies at all and what it says. Of the rules that match, one for
// the user goes before those for a role, and these before those for everybody; among equals the lowest limit counts (protocol
// notes, section 11.3), and of equal limits the first. A request that exceeds its limit is not counted.
func (l *RateLimiter) Take(r RequestInfo, user string, roles []string) (Rate, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rule := l.rule(r, user, roles)
	if rule == nil {
		return Rate{}, false
	}
	now := time.Now()
	if hour := now.Unix() / 3600; hour != l.hour {
		l.hour = hour
		l.counts = map[rateKey]int{} // a new map, so that one busy hour does not hold memory for ever
	}
	rate := Rate{RuleID: rule.ID, Limit: rule.PerHour, Reset: (l.hour + 1) * 3600}
	key := rateKey{rule.ID, user}
	count, tracked := l.counts[key]
	switch {
	case count >= rule.PerHour:
		l.exceeded++
		rate.Count, rate.Exceeded = count, true
		rate.RetryAfter = wholeSeconds(time.Unix(rate.Reset, 0).Sub(now))
	case !tracked && len(l.counts) >= l.cfg.Tracked:
		l.uncounted++ // to refuse would be at random
	default:
		rate.Count = count + 1
		l.counts[key] = rate.Count
	}
	return rate, true
}

func (l *RateLimiter) rule(r RequestInfo, user string, roles []string) *RateRule {
	var best *RateRule
	for i := range l.cfg.Rules {
		c := &l.cfg.Rules[i]
		if !c.matches(r) || c.User != "" && c.User != user || c.Role != "" && !slices.Contains(roles, c.Role) {
			continue
		}
		if best == nil || c.rank() > best.rank() || c.rank() == best.rank() && c.PerHour < best.PerHour {
			best = c
		}
	}
	return best
}

// rank orders the scopes: user before role before all.
func (r *RateRule) rank() int {
	switch {
	case r.User != "":
		return 2
	case r.Role != "":
		return 1
	}
	return 0
}

// RateStats are the figures of the rate limits.
type RateStats struct {
	Rules     int
	Tracked   int    // pairs of rule and user counted in this hour
	Exceeded  uint64 // requests over their limit
	Uncounted uint64 // requests that passed uncounted, because too many pairs were tracked already
}

// Stats returns the figures of the rate limits.
func (l *RateLimiter) Stats() RateStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return RateStats{Rules: len(l.cfg.Rules), Tracked: len(l.counts), Exceeded: l.exceeded, Uncounted: l.uncounted}
}
