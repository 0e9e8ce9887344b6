package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir/internal/record"
	"weir/internal/store"
	"weir/internal/telemetry"
)

// logIn opens a session as a database user, for one call. The user's rights are the server's business, but weir's own login
// and superusers are turned away: they would reach what is weir's own.
func (s *Store) logIn(ctx context.Context, l *record.Login) (lease, error) {
	c := s.config(1, 0, nil).ConnConfig
	if l.User == "" || l.Password == "" {
		return lease{}, record.Errorf(record.Unauthenticated, "", "the database wants a user and a password")
	}
	if l.User == c.User {
		return lease{}, record.Errorf(record.Forbidden, "", "weir's own database user serves no calls")
	}
	if strings.ContainsRune(l.User+l.Password, 0) {
		return lease{}, record.Errorf(record.Unauthenticated, "", "the database refuses the login")
	}
	c.User, c.Password = l.User, l.Password
	if !s.opts.TrustLogins {
		c.RequireAuth = "!none" // a server that asks for no password lets in anybody
	}
	if err := s.logins.take(ctx); err != nil {
		return lease{}, err
	}
	began := time.Now()
	conn, err := pgx.ConnectConfig(ctx, c)
	telemetry.From(ctx).LoggedIn(time.Since(began))
	if err != nil {
		s.logins.give()
		return lease{}, loginFault(ctx, err)
	}
	own := lease{conn: conn, meter: newMeter(ctx, conn)}
	own.meter.from = 0 // the login's round trips too
	if conn.PgConn().ParameterStatus("is_superuser") != "off" {
		s.logOut(own)
		return lease{}, record.Errorf(record.Forbidden, "", "the database user is a superuser: it serves no calls")
	}
	return own, nil
}

// loginFault is the error of a login that failed. Which of user and password was wrong the server does not tell either.
func loginFault(ctx context.Context, err error) *record.Error {
	var pg *pgconn.PgError
	switch {
	case asPgError(err, &pg) && strings.HasPrefix(pg.Code, "28"):
		return record.Errorf(record.Unauthenticated, "", "the database refuses the login").Because(err)
	case asPgError(err, &pg) && pg.Code == "42501": // no right to connect to this database
		return record.Errorf(record.Forbidden, "", "the database user may not connect").Because(err)
	case !asPgError(err, &pg) && strings.Contains(err.Error(), "authentication method requirement"):
		return record.Errorf(record.Unauthenticated, "", "the database asked for no password; see database.logins.trust").Because(err)
	}
	return translate(ctx, err, nil)
}

// logOut ends a session of a caller's own.
func (s *Store) logOut(l lease) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.conn.Close(ctx) // what it had not committed is undone
	s.logins.give()
}

// noLogins is the error of who waited for a session of its own in vain.
func noLogins(st store.Stats, wait time.Duration) *record.Error {
	return record.Errorf(record.Unavailable, "", "no session of a database user came free within %s: %d of %d in use, %d waiting; see database.logins.max",
		wait, st.InUse, st.Max, st.Waiting).By(record.RulePool)
}
