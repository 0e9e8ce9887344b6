// Package config is the settings of a node: those of all parts in one struct, read from a project's weir.yaml, environment
// variables and flags in rising precedence, with where each came from.
//
// A setting has one name everywhere: gate.session.waiting in the file and in messages, WEIR_GATE_SESSION_WAITING in the
// environment, --set gate.session.waiting=20 on the command line. An unknown name is an error with its line or its source.
package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"weir/internal/auth"
	"weir/internal/dialect/now"
	"weir/internal/dialect/odata"
	"weir/internal/dialect/ords"
	"weir/internal/engine"
	"weir/internal/gate"
	"weir/internal/remote"
	"weir/internal/script"
	"weir/internal/server"
)

// Config is every setting of a node.
type Config struct {
	// Name is the project's name.
	//
	// Defaults to "".
	Name string `yaml:"name"`

	// Listen are the addresses to listen on, host:port; a list, or one text with commas between.
	//
	// Defaults to 127.0.0.1:8080.
	Listen Addresses `yaml:"listen"`

	// Data is the folder for the SQLite database.
	//
	// Defaults to weir-data.
	Data string `yaml:"data"`

	// Database is where the records are.
	Database Database `yaml:"database"`

	// TLS encrypts the listeners.
	TLS server.TLS `yaml:"tls"`

	// Profile is the shape of the gate that its settings start from: auto (sized to this machine) or servicenow.
	//
	// Defaults to auto.
	Profile string `yaml:"profile"`

	// Gate is admission at the door.
	Gate gate.Config `yaml:"gate"`

	// Auth says who may call.
	Auth auth.Config `yaml:"auth"`

	// Limits bound what a client can make the server hold.
	Limits server.Limits `yaml:"limits"`

	// Log is the log.
	Log server.Log `yaml:"log"`

	// Transactions is the transaction log.
	Transactions server.TxLog `yaml:"transactions"`

	// Telemetry is what is shown of where time goes.
	Telemetry server.Telemetry `yaml:"telemetry"`

	// Compress says which answers are compressed.
	Compress server.Compress `yaml:"compress"`

	// CORS says which pages of other origins may call.
	CORS server.CORS `yaml:"cors"`

	// Proxies are the addresses and networks (10.0.0.0/8) of reverse proxies whose X-Forwarded-Proto and X-Forwarded-Host are believed,
	// for the links in answers.
	//
	// Defaults to none.
	Proxies []string `yaml:"proxies"`

	// Async says how calls are answered later (Prefer: respond-async).
	Async server.Async `yaml:"async"`

	// Engine is how units are executed.
	Engine engine.Options `yaml:"engine"`

	// Now is the now dialect.
	Now now.Options `yaml:"now"`
	// OData is the odata dialect.
	OData odata.Options `yaml:"odata"`
	// ORDS is the ords dialect.
	ORDS ords.Options `yaml:"ords"`

	// Remote is the line between hubs and backends.
	Remote remote.Config `yaml:"remote"`

	// Script bounds scripted endpoints.
	Script script.Config `yaml:"script"`

	// Cache is what a node keeps in memory.
	Cache Cache `yaml:"cache"`

	// Dialects are the protocols served. now is the one there is.
	//
	// Defaults to [now].
	Dialects []string `yaml:"dialects"`
}

// Database is where the records are.
type Database struct {
	// URL is sqlite:PATH or postgres://user@host/database.
	//
	// Defaults to a SQLite file weir.db in the data folder.
	URL URL `yaml:"url"`

	// Pool is the connections.
	Pool Pool `yaml:"pool"`

	// Logins is the sessions of database users who call endpoints that ask for a login of the database (PostgreSQL).
	Logins Logins `yaml:"logins"`

	// RequestIDs shows the request in the database's own log and views: while the statement of an endpoint runs, the
	// application_name of its session is "weir" and the request's number (PostgreSQL).
	//
	// Defaults to off.
	RequestIDs bool `yaml:"request_ids"`

	// StatementTimeout bounds each statement.
	//
	// Defaults to 30s.
	StatementTimeout time.Duration `yaml:"statement_timeout"`

	// LockTimeout is how long a statement waits for a record that another transaction holds (PostgreSQL).
	//
	// Defaults to 10s.
	LockTimeout time.Duration `yaml:"lock_timeout"`
}

// Pool is the connections to the database.
type Pool struct {
	// Max is how many connections there are at most: on SQLite those that read, beside the one that writes. 0 is the
	// database's own default.
	//
	// Defaults to 0: on PostgreSQL 4 for each processor, but at least 8 and at most 20, and 4 on SQLite.
	Max int `yaml:"max"`

	// Wait is how long work waits for a connection before it is answered that none came free.
	//
	// Defaults to 5s.
	Wait time.Duration `yaml:"wait"`

	// Min is how many connections stay open when nothing is to be done, if Max allows as many (PostgreSQL).
	//
	// Defaults to 2.
	Min int `yaml:"min"`

	// Idle is how long a connection beyond those may be without work before it is closed (PostgreSQL).
	//
	// Defaults to 30m.
	Idle time.Duration `yaml:"idle"`

	// Age is how old a connection may become before another one takes its place (PostgreSQL).
	//
	// Defaults to 1h.
	Age time.Duration `yaml:"age"`
}

// Logins is the sessions that are opened for one call each, as the database user who calls.
type Logins struct {
	// Max is how many of them may be open at once, beside the connections of the pool. Who waits for one longer than
	// pool.wait is answered that none came free.
	//
	// Defaults to 10.
	Max int `yaml:"max"`

	// Trust accepts users although the server asks them for no password. A server set up so lets in anybody who knows a name;
	// without this setting nobody is let in by it.
	//
	// Defaults to off.
	Trust bool `yaml:"trust"`
}

// Cache is what a node keeps in memory.
type Cache struct {
	// Metadata keeps the definitions in memory; off reads them from the database for every request, to see what keeping them is worth.
	//
	// Defaults to on.
	Metadata bool `yaml:"metadata"`

	// Timeout is how old definitions in memory may become before a request looks whether there are newer ones. Without it a node goes by
	// what the database tells it at once when they change; 0 leaves it at that.
	//
	// Defaults to 0.
	Timeout time.Duration `yaml:"timeout"`
}

// Addresses are a list of addresses that may be written as one text.
type Addresses []string

// UnmarshalYAML reads a list or one text.
func (a *Addresses) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*a = splitComma(n.Value)
		return nil
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return err
	}
	*a = list
	return nil
}

func splitComma(s string) []string {
	var list []string
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// URL is the address of a database; printed without its password.
type URL string

// String is the address without its passwords, that of the login and those among the parameters.
func (u URL) String() string {
	if u == "" {
		return ""
	}
	parsed, err := url.Parse(string(u))
	if err != nil || parsed.Scheme == "" { // not an address: what it holds is unknown
		return "***"
	}
	if parsed.RawQuery != "" {
		q := parsed.Query()
		for name := range q {
			if strings.Contains(strings.ToLower(name), "password") || strings.Contains(strings.ToLower(name), "secret") {
				q.Set(name, "xxxxx")
			}
		}
		parsed.RawQuery = q.Encode()
	}
	return parsed.Redacted()
}

// MarshalYAML writes what String is.
func (u URL) MarshalYAML() (any, error) { return u.String(), nil }

// Reveal is the whole address.
func (u URL) Reveal() string { return string(u) }

// Defaults returns the default settings under a profile, whose name must be known.
func Defaults(profile string) Config {
	s := server.Defaults()
	c := Config{
		Listen: s.Listen, Data: "weir-data", Profile: profile,
		Database: Database{
			Pool:   Pool{Wait: 5 * time.Second, Min: 2, Idle: 30 * time.Minute, Age: time.Hour},
			Logins: Logins{Max: 10}, StatementTimeout: 30 * time.Second, LockTimeout: 10 * time.Second,
		},
		Auth: auth.Defaults(), Limits: s.Limits, Log: s.Log, Transactions: s.TxLog, Telemetry: s.Telemetry,
		Compress: s.Compress, CORS: s.CORS, Async: s.Async,
		Cache: Cache{Metadata: true}, Remote: remote.Defaults(), Dialects: []string{"now"},
	}
	c.Engine.Defaults()
	c.Now.Defaults()
	c.OData.Defaults()
	c.ORDS.Defaults()
	c.Script.Defaults()
	if profile == ProfileServiceNow {
		c.Gate = gate.ServiceNow()
	} else {
		c.Gate = gate.Auto(runtime.GOMAXPROCS(0), 0)
	}
	return c
}

// The profiles.
const (
	ProfileAuto       = "auto"
	ProfileServiceNow = "servicenow"
)

// Server is the server's part of the settings.
func (c *Config) Server() server.Config {
	return server.Config{
		Listen: c.Listen, TLS: c.TLS, Limits: c.Limits, Log: c.Log, TxLog: c.Transactions, Telemetry: c.Telemetry,
		Compress: c.Compress, CORS: c.CORS, Proxies: c.Proxies, Async: c.Async, Trusted: c.Auth.Trusted,
	}
}

// Where is the kind of database, "sqlite" or "postgres", and where it is: a file, or a connection string.
func (c *Config) Where() (kind, at string, err error) {
	u := c.Database.URL.Reveal()
	switch {
	case u == "":
		return "sqlite", filepath.Join(c.Data, "weir.db"), nil
	case strings.HasPrefix(u, "sqlite:"):
		path := strings.TrimPrefix(strings.TrimPrefix(u, "sqlite:"), "//")
		if path == "" {
			return "", "", errors.New("database.url: sqlite: needs a path")
		}
		return "sqlite", path, nil
	case strings.HasPrefix(u, "postgres://"), strings.HasPrefix(u, "postgresql://"):
		return "postgres", u, nil
	}
	return "", "", fmt.Errorf("database.url: %s is neither sqlite:PATH nor postgres://…", c.Database.URL)
}

// Validate returns all faults of c, joined, each with the path of its setting.
func (c *Config) Validate() error {
	var faults []error
	if c.Profile != ProfileAuto && c.Profile != ProfileServiceNow {
		faults = append(faults, fmt.Errorf("profile: %q is not auto or servicenow", c.Profile))
	}
	if _, _, err := c.Where(); err != nil {
		faults = append(faults, err)
	}
	if c.Database.Pool.Max < 0 {
		faults = append(faults, fmt.Errorf("database.pool.max: must not be negative: %d", c.Database.Pool.Max))
	}
	if c.Database.Pool.Min < 0 {
		faults = append(faults, fmt.Errorf("database.pool.min: must not be negative: %d", c.Database.Pool.Min))
	}
	if c.Cache.Timeout < 0 {
		faults = append(faults, fmt.Errorf("cache.timeout: must not be negative: %s", c.Cache.Timeout))
	}
	if c.Database.Logins.Max < 1 {
		faults = append(faults, fmt.Errorf("database.logins.max: must be at least 1: %d", c.Database.Logins.Max))
	}
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"pool.wait", c.Database.Pool.Wait}, {"pool.idle", c.Database.Pool.Idle}, {"pool.age", c.Database.Pool.Age}, {"statement_timeout", c.Database.StatementTimeout}, {"lock_timeout", c.Database.LockTimeout}} {
		if d.d <= 0 {
			faults = append(faults, fmt.Errorf("database.%s: must be longer than zero, not %s", d.name, d.d))
		}
	}
	for _, d := range c.Dialects {
		if !slices.Contains([]string{"now"}, d) {
			faults = append(faults, fmt.Errorf("dialects: %q is not a dialect that there is", d))
		}
	}
	faults = append(faults, c.Engine.Validate(), c.Now.Validate(), c.OData.Validate(), c.ORDS.Validate(), c.Remote.Validate(), c.Script.Validate(), c.Gate.Validate(), c.Auth.Validate(), c.Server().Validate())
	return errors.Join(faults...)
}
