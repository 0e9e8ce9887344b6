package auth

import (
	"time"

	"github.com/maypok86/otter/v2"
	"golang.org/x/time/rate"

	"weir/internal/record"
)

// guesses limits password checks by some key, before anything is hashed. Its memory is bounded: the keys least used are
// forgotten, which gives them their full allowance back.
type guesses struct {
	perMinute int
	by        *otter.Cache[string, *rate.Limiter]
}

func newGuesses(perMinute int) *guesses {
	return &guesses{perMinute: perMinute, by: otter.Must(&otter.Options[string, *rate.Limiter]{
		MaximumSize:      100_000,
		ExpiryCalculator: otter.ExpiryAccessing[string, *rate.Limiter](2 * time.Minute),
	})}
}

func (g *guesses) allow(key string) bool {
	l, _ := g.by.ComputeIfAbsent(key, func() (*rate.Limiter, bool) {
		return rate.NewLimiter(rate.Limit(float64(g.perMinute)/60), g.perMinute), false
	})
	return l.Allow()
}

func (a *Auth) guess(who, address string) error {
	if !a.byUser.allow(who) {
		return record.Errorf(record.RateLimited, "", "too many password checks for this user in a minute; see auth.guesses_per_user")
	}
	if !a.byAddress.allow(address) {
		return record.Errorf(record.RateLimited, "", "too many password checks from this address in a minute; see auth.guesses_per_address")
	}
	return nil
}
