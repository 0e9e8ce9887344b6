package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Settings of ORDS go by their own names too, so that who knows those finds them (protocol notes of the ords dialect, section 14). Each
// is one of ours; what has no equal here is told so by name.

// alias is a setting of ORDS that is one of ours.
type alias struct {
	ords, ours string
	value      func(string) (string, error) // its value as ours; nil: as it is
	note       string                       // what differs
}

var aliases = []alias{
	{"jdbc.MaxLimit", "database.pool.max", nil, "ORDS: 10"},
	{"jdbc.MinLimit", "database.pool.min", nil, "ORDS: 2"},
	{"jdbc.ConnectionWaitTimeout", "database.pool.wait", seconds, "ORDS: 3 s; a number is seconds"},
	{"jdbc.InactivityTimeout", "database.pool.idle", seconds, "ORDS: 1800 s; a number is seconds"},
	{"jdbc.MaxConnectionReuseTime", "database.pool.age", seconds, "a number is seconds"},
	{"jdbc.statementTimeout", "database.statement_timeout", seconds, "ORDS: 900s; a number is seconds"},
	{"cache.metadata.enabled", "cache.metadata", nil, "ORDS: true"},
	{"cache.metadata.timeout", "cache.timeout", seconds, "ORDS: 5s; here changes are noticed at once, without it"},
	{"misc.pagination.maxRows", "ords.max_rows", nil, "ORDS: 10000"},
	{"request.traceHeaderName", "ords.trace_header", nil, "ORDS: Request-Id"},
	{"error.responseFormat", "ords.error_format", upper, "ORDS: AUTO"},
	{"debug.printDebugToScreen", "ords.debug", nil, "ORDS: false"},
	{"security.credentials.attempts", "auth.guesses_per_user", nil, "ORDS: -1 (off); here in a minute, wrong or not yet remembered"},
}

// unused are settings of ORDS that have no equal here, with what stands in their place.
var unused = map[string]string{
	"jdbc.InitialLimit":                  "database.pool.min connections are opened at start",
	"jdbc.MaxConnectionReuseCount":       "connections are replaced by age: database.pool.age",
	"jdbc.SecondsToTrustIdleConnection":  "a connection that broke while idle is replaced, and reads are sent again",
	"jdbc.MaxStatementsLimit":            "each connection keeps its statements prepared",
	"jdbc.cleanup.mode":                  "a session is given back clean",
	"jdbc.auth.enabled":                  "an endpoint says so: @auth database",
	"jdbc.ucp.enableJMX":                 "the pool's figures stand in /metrics",
	"jdbc.DriverType":                    "the scheme of database.url says it",
	"db.connectionType":                  "see database.url",
	"db.hostname":                        "see database.url",
	"db.port":                            "see database.url",
	"db.servicename":                     "see database.url",
	"db.username":                        "see database.url",
	"db.password":                        "see database.url",
	"db.invalidPoolTimeout":              "a database that is gone is tried again at each request",
	"db.idlePoolTimeout":                 "see database.pool.idle",
	"db.poolDestroyTimeout":              "see limits.drain",
	"db.credentialsSource":               "an endpoint says so: @auth database",
	"debug.trackResources":               "GET /weir/gate shows what runs",
	"feature.sdw":                        "there is no such page",
	"restEnabledSql.active":              "SQL is run from files of the project only",
	"procedure.rest.preHook":             "see auth.trusted",
	"plsql.gateway.mode":                 "there is no PL/SQL here",
	"security.requestValidationFunction": "there is no PL/SQL here",
	"security.inclusionList":             "there is no PL/SQL here",
	"security.exclusionList":             "there is no PL/SQL here",
	"security.maxEntries":                "there is no PL/SQL here",
	"security.credentials.lock.time":     "guesses are counted in a minute: auth.guesses_per_user",
	"security.jwt.profile.enabled":       "tokens are weir's own",
	"security.jwt.allowed.age":           "tokens are weir's own",
	"security.jwt.allowed.skew":          "tokens are weir's own",
	"security.jwks.refresh.interval":     "tokens are weir's own",
	"security.jwks.connection.timeout":   "tokens are weir's own",
	"security.jwks.read.timeout":         "tokens are weir's own",
	"security.jwks.size":                 "tokens are weir's own",
	"security.verifySSL":                 "see tls and proxies",
	"security.forceHTTPS":                "with tls there is HTTPS only",
	"standalone.http.port":               "see listen",
	"standalone.https.port":              "see listen and tls",
	"standalone.https.cert":              "see tls.cert",
	"standalone.https.cert.key":          "see tls.key",
	"standalone.context.path":            "it is /ords",
	"standalone.access.log":              "see log.requests and transactions",
	"standalone.access.log.retainDays":   "see transactions.keep",
	"standalone.stop.timeout":            "see limits.drain",
}

// aliasOf finds the setting that is called path in ORDS, in any case where fold says so: environment variables have none.
func aliasOf(path string, fold bool) (a *alias, fault error) {
	same := func(name string) bool {
		return name == path || fold && strings.EqualFold(strings.ReplaceAll(name, ".", "_"), path)
	}
	for i := range aliases {
		if same(aliases[i].ords) {
			return &aliases[i], nil
		}
	}
	for name, instead := range unused {
		if same(name) {
			return nil, fmt.Errorf("%s is a setting of ORDS that is not used here: %s", name, instead)
		}
	}
	return nil, nil
}

// setting is the alias' value as a value of our setting.
func (a *alias) setting(value, from string) (Setting, error) {
	s := Setting{Path: a.ours, Value: value, From: from + " (" + a.ords + ")"}
	if a.value == nil {
		return s, nil
	}
	var err error
	if s.Value, err = a.value(value); err != nil {
		return s, fmt.Errorf("%s: %s: %w", from, a.ords, err)
	}
	return s, nil
}

// seconds reads 3, "3s", "15m" and "PT15M".
func seconds(value string) (string, error) {
	text := strings.TrimSpace(value)
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return (time.Duration(n) * time.Second).String(), nil
	}
	text = strings.ToLower(text)
	d, err := time.ParseDuration(strings.TrimPrefix(text, "pt"))
	if err != nil {
		return "", fmt.Errorf("%q is not a number of seconds, nor a duration such as 5s or 15m", value)
	}
	return d.String(), nil
}

func upper(value string) (string, error) { return strings.ToUpper(value), nil }

// foreign is a setting of ORDS in a file.
type foreign struct {
	key   *yaml.Node // at the top of the file
	path  string
	value *yaml.Node
	line  int
}

// foreigners are ORDS' settings in a file: jdbc.MaxLimit as one key, or as keys within each other.
func foreigners(root *yaml.Node) []foreign {
	ours := map[string]bool{}
	for name := range (&Effective{}).leaves() {
		top, _, _ := strings.Cut(name, ".")
		ours[top] = true
	}
	var all []foreign
	for i := 0; root.Kind == yaml.MappingNode && i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		if ours[key.Value] {
			continue
		}
		list := leavesOf(key, root.Content[i+1], key.Value)
		if slices.ContainsFunc(list, func(f foreign) bool { a, fault := aliasOf(f.path, false); return a != nil || fault != nil }) {
			all = append(all, list...)
		}
	}
	return all
}

func leavesOf(top, n *yaml.Node, path string) (list []foreign) {
	if n.Kind != yaml.MappingNode {
		return []foreign{{top, path, n, n.Line}}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		list = append(list, leavesOf(top, n.Content[i+1], join(path, n.Content[i].Value))...)
	}
	return list
}

// adopt puts the settings of ORDS in a file in force as those of ours that they are.
func (e *Effective) adopt(list []foreign, file string) []error {
	var faults []error
	for _, f := range list {
		from := fmt.Sprintf("%s:%d", file, f.line)
		a, fault := aliasOf(f.path, false)
		if fault != nil {
			faults = append(faults, fmt.Errorf("%s: %w", from, fault))
			continue
		}
		if a == nil {
			faults = append(faults, fmt.Errorf("%s: unknown key %s", from, f.path))
			continue
		}
		if was := e.origin[a.ours]; was != "" {
			faults = append(faults, fmt.Errorf("%s: %s is %s, which is set at %s already", from, f.path, a.ours, was))
			continue
		}
		s, err := a.setting(f.value.Value, from)
		if err == nil {
			err = e.set(s)
		}
		faults = append(faults, err)
	}
	return faults
}
