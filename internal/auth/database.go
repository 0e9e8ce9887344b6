package auth

import (
	"net/http"
	"strings"

	"weir/internal/record"
)

// Logins are database users who call: the database checks their passwords when it runs what they ask for, so all that can be done
// before is to stop those who guess.
type Logins struct {
	roles     []string
	byUser    *guesses
	byAddress *guesses
}

// NewLogins counts guesses within the bounds of cfg. Database users have the given roles, whoever they are.
func NewLogins(cfg Config, roles []string) *Logins {
	return &Logins{roles, newGuesses(cfg.GuessesPerUser), newGuesses(cfg.GuessesPerAddress)}
}

// Close ends the upkeep.
func (l *Logins) Close() {
	l.byUser.by.StopAllGoroutines()
	l.byAddress.by.StopAllGoroutines()
}

// Caller is who a request says it is. Whether that is true shows when the database opens a session for the login.
func (l *Logins) Caller(r *http.Request) (*Identity, *record.Login, error) {
	name, password, ok := r.BasicAuth()
	switch {
	case !ok:
		return nil, nil, unauthenticated("the Basic credential cannot be read")
	case name == "" || len(name) > 255 || len(password) > maxPassword || strings.ContainsRune(name, 0) || strings.ContainsRune(password, 0):
		return nil, nil, unauthenticated("wrong user or password")
	}
	// Only what went wrong is counted: each call of a database user is a login. So those that are under way at once, as many as there
	// are sessions for them, may pass the bound together.
	if !l.byUser.left(name) || !l.byAddress.left(address(r)) {
		return nil, nil, record.Errorf(record.RateLimited, "", "too many wrong database logins in a minute; see auth.guesses_per_user and auth.guesses_per_address")
	}
	id := &Identity{Actor: record.Actor{Name: name, Roles: l.roles}, Method: methodDatabase, Session: newSessionID()}
	return id, &record.Login{User: name, Password: password}, nil
}

// Failed counts a login that the database has refused.
func (l *Logins) Failed(r *http.Request, login *record.Login) {
	l.byUser.allow(login.User)
	l.byAddress.allow(address(r))
}

// methodDatabase is the Method of database users.
const methodDatabase = "database"

// left reports whether a key has not used up what it may.
func (g *guesses) left(key string) bool {
	l, ok := g.by.GetIfPresent(key)
	return !ok || l.Tokens() >= 1
}
