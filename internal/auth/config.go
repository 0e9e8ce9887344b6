package auth

import (
	"errors"
	"fmt"
	"time"

	"weir/internal/record"
)

// Config is every setting of authentication. Start from [Defaults].
type Config struct {
	// Remember is how long a verified credential is accepted without hashing it again. 0 checks it at every request.
	//
	// Defaults to 5m.
	Remember time.Duration `yaml:"remember"`

	// RememberMax is how many verified credentials are remembered at most.
	//
	// Defaults to 10000.
	RememberMax int `yaml:"remember_max"`

	// Roles is how long a user's roles and whether they are active are cached.
	//
	// Defaults to 10s.
	Roles time.Duration `yaml:"roles"`

	// Session is how long an idle session lasts. Its cookie is renewed while it is used.
	//
	// Defaults to 30m.
	Session time.Duration `yaml:"session"`

	// GuessesPerUser bounds password checks for one user in a minute, remembered credentials not counted. More are answered 429.
	//
	// Defaults to 30.
	GuessesPerUser int `yaml:"guesses_per_user"`

	// GuessesPerAddress bounds password checks from one address in a minute, remembered credentials not counted.
	//
	// Defaults to 300.
	GuessesPerAddress int `yaml:"guesses_per_address"`

	// AccessToken is how long an access token lasts.
	//
	// Defaults to 30m.
	AccessToken time.Duration `yaml:"access_token"`

	// RefreshToken is how long a refresh token lasts.
	//
	// Defaults to 2400h (100 days).
	RefreshToken time.Duration `yaml:"refresh_token"`

	// ClientToken is how long an access token lasts that an OAuth client gets for itself at /ords/SCHEMA/oauth/token.
	//
	// Defaults to 1h.
	ClientToken time.Duration `yaml:"client_token"`

	// Trusted is a gateway in front that has found out who is calling and says so in a header.
	Trusted Trusted `yaml:"trusted"`

	// Tables say where users and roles are found.
	Tables UserTables `yaml:"tables"`

	// Users are users that stand in the settings, for databases without a user table. They go before the table's.
	//
	// Defaults to none.
	Users []StaticUser `yaml:"users"`

	// Clients are OAuth clients that stand in the settings, besides those in the system table.
	//
	// Defaults to none.
	Clients []StaticClient `yaml:"clients"`
}

// UserTables maps users, groups and roles to tables of the project. A table that does not exist is not asked.
type UserTables struct {
	// User is the table of users.
	//
	// Defaults to sys_user.
	User string `yaml:"user"`

	// Name is its field with the login name.
	//
	// Defaults to user_name.
	Name string `yaml:"name"`

	// Active is its boolean field that says whether the user may sign in; "" for none.
	//
	// Defaults to active.
	Active string `yaml:"active"`

	// Locked is its boolean field that says that the user may not sign in; "" for none.
	//
	// Defaults to locked_out.
	Locked string `yaml:"locked"`

	// Password is its password field.
	//
	// Defaults to user_password.
	Password string `yaml:"password"`

	// UserRole is the table that links users (field user) to roles (field role).
	//
	// Defaults to sys_user_has_role.
	UserRole string `yaml:"user_role"`

	// Member is the table that links users (field user) to groups (field group).
	//
	// Defaults to sys_user_grmember.
	Member string `yaml:"member"`

	// GroupRole is the table that links groups (field group) to roles (field role).
	//
	// Defaults to sys_group_has_role.
	GroupRole string `yaml:"group_role"`

	// RoleName is the field of a role's record with its name.
	//
	// Defaults to name.
	RoleName string `yaml:"role_name"`
}

// StaticUser is a user that stands in the settings.
type StaticUser struct {
	// Name is the login name. Required.
	Name string `yaml:"name"`
	// Password is the password, or its argon2id hash in the form that begins with "$argon2id$". Required.
	Password Secret `yaml:"password"`
	// Roles are the user's roles.
	Roles []string `yaml:"roles"`
}

// StaticClient is an OAuth client that stands in the settings.
type StaticClient struct {
	// ID is the client_id. Required.
	ID string `yaml:"id"`
	// Secret is the client_secret, or its argon2id hash. Required.
	Secret Secret `yaml:"secret"`
	// User is the login name that client_credentials acts for; without one that grant is refused.
	User string `yaml:"user"`
	// Grants are the grant types allowed: password, client_credentials, refresh_token.
	//
	// Defaults to all of them.
	Grants []string `yaml:"grants"`
}

// Secret is a text that is never printed.
type Secret string

// String is three stars, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString is what String is, so that %#v prints no secret either.
func (s Secret) GoString() string { return s.String() }

// MarshalYAML writes what String is.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// MarshalText writes what String is: slog and encoding/json use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal is the secret itself.
func (s Secret) Reveal() string { return string(s) }

// Defaults returns the default settings.
func Defaults() Config {
	return Config{
		Remember: 5 * time.Minute, RememberMax: 10_000, Roles: 10 * time.Second, Session: 30 * time.Minute,
		GuessesPerUser: 30, GuessesPerAddress: 300,
		AccessToken: 30 * time.Minute, RefreshToken: 2400 * time.Hour, ClientToken: time.Hour,
		Tables: UserTables{
			User: "sys_user", Name: "user_name", Active: "active", Locked: "locked_out", Password: "user_password",
			UserRole: "sys_user_has_role", Member: "sys_user_grmember", GroupRole: "sys_group_has_role", RoleName: "name",
		},
	}
}

// Validate returns all faults of c, joined, each with the path of its setting.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Remember < 0 {
		fault("auth.remember: must not be negative: %s", c.Remember)
	}
	if c.RememberMax < 1 {
		fault("auth.remember_max: must be at least 1, not %d", c.RememberMax)
	}
	if c.Roles < 0 {
		fault("auth.roles: must not be negative: %s", c.Roles)
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"session", c.Session}, {"access_token", c.AccessToken}, {"refresh_token", c.RefreshToken}, {"client_token", c.ClientToken}} {
		if d.d < time.Second {
			fault("auth.%s: must be at least 1s, not %s", d.name, d.d)
		}
	}
	if c.GuessesPerUser < 1 {
		fault("auth.guesses_per_user: must be at least 1, not %d", c.GuessesPerUser)
	}
	if c.GuessesPerAddress < 1 {
		fault("auth.guesses_per_address: must be at least 1, not %d", c.GuessesPerAddress)
	}
	faults = append(faults, c.Trusted.validate())
	names := map[string]bool{}
	for i, u := range c.Users {
		switch {
		case u.Name == "" || u.Password == "":
			fault("auth.users[%d]: needs a name and a password", i)
		case names[u.Name]:
			fault("auth.users[%d]: %q is there already", i, u.Name)
		}
		names[u.Name] = true
	}
	ids := map[string]bool{}
	for i, cl := range c.Clients {
		switch {
		case cl.ID == "" || cl.Secret == "":
			fault("auth.clients[%d]: needs an id and a secret", i)
		case ids[cl.ID]:
			fault("auth.clients[%d]: %q is there already", i, cl.ID)
		}
		ids[cl.ID] = true
		for _, g := range cl.Grants {
			if g != grantPassword && g != grantClient && g != grantRefresh {
				fault("auth.clients[%d].grants: %q is not password, client_credentials or refresh_token", i, g)
			}
		}
	}
	return errors.Join(faults...)
}

func unauthenticated(format string, args ...any) *record.Error {
	return record.Errorf(record.Unauthenticated, "", format, args...)
}
