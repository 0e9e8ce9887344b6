package config

import (
	"strings"
	"testing"
	"time"
)

func TestAlias_SettingsOfORDSAreFoundByTheirNames(t *testing.T) {
	e, err := Load(Sources{FileName: "weir.yaml", File: []byte(`
jdbc.MaxLimit: 50
jdbc:
  ConnectionWaitTimeout: 3
  InactivityTimeout: 1800s
cache.metadata.enabled: false
misc:
  pagination: {maxRows: 500}
database:
  lock_timeout: 3s
`), Environ: []string{"WEIR_CACHE_METADATA_TIMEOUT=PT30S", "WEIR_JDBC_MAXLIMIT=60"}, Flags: []Setting{{"jdbc.statementTimeout", "900", "--set"}, {"error.responseFormat", "json", "--set"}}})
	if err != nil {
		t.Fatal(err)
	}
	p := e.Database.Pool
	if p.Max != 60 || p.Wait != 3*time.Second || p.Idle != 30*time.Minute || e.Cache.Metadata || e.ORDS.MaxRows != 500 || e.Database.LockTimeout != 3*time.Second ||
		e.Cache.Timeout != 30*time.Second || e.Database.StatementTimeout != 15*time.Minute || e.ORDS.ErrorFormat != "JSON" {
		t.Errorf("%+v %+v %+v", e.Database, e.Cache, e.ORDS)
	}
	for path, want := range map[string]string{
		"database.pool.max": "WEIR_JDBC_MAXLIMIT (jdbc.MaxLimit)", "database.pool.wait": "weir.yaml:4 (jdbc.ConnectionWaitTimeout)",
		"database.pool.idle": "weir.yaml:5 (jdbc.InactivityTimeout)", "ords.max_rows": "weir.yaml:8 (misc.pagination.maxRows)", "database.lock_timeout": "weir.yaml:10",
		"cache.timeout": "WEIR_CACHE_METADATA_TIMEOUT (cache.metadata.timeout)", "database.statement_timeout": "--set (jdbc.statementTimeout)",
	} {
		if got := e.Origin(path); got != want {
			t.Errorf("%s comes from %q, want %q", path, got, want)
		}
	}
}

func TestAlias_WhatIsNotUsedHereIsToldByName(t *testing.T) {
	f := func(src Sources, want ...string) {
		t.Helper()
		src.FileName = "weir.yaml"
		_, err := Load(src)
		if err == nil {
			t.Errorf("%+v is accepted", src)
			return
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q lacks %q", err, w)
			}
		}
	}
	f(Sources{File: []byte("jdbc.InitialLimit: 3\njdbc:\n  MaxConnectionReuseCount: 1000\n")},
		"weir.yaml:1: jdbc.InitialLimit is a setting of ORDS that is not used here: database.pool.min", "weir.yaml:3: jdbc.MaxConnectionReuseCount is a setting of ORDS", "database.pool.age")
	f(Sources{Environ: []string{"WEIR_JDBC_CLEANUP_MODE=x"}}, "environment variable WEIR_JDBC_CLEANUP_MODE: jdbc.cleanup.mode is a setting of ORDS")
	f(Sources{Flags: []Setting{{"security.jwks.size", "1", "--set"}}}, "--set: security.jwks.size is a setting of ORDS")
	f(Sources{File: []byte("jdbc.MaxLimit: 50\ndatabase:\n  pool:\n    max: 20\n")}, "weir.yaml:1: jdbc.MaxLimit is database.pool.max, which is set at weir.yaml:4 already")
	f(Sources{File: []byte("jdbc.MaxLimit: many\n")}, "weir.yaml:1 (jdbc.MaxLimit): database.pool.max:")
	f(Sources{File: []byte("jdbc.ConnectionWaitTimeout: soon\n")}, `weir.yaml:1: jdbc.ConnectionWaitTimeout: "soon" is not a number of seconds`)
	f(Sources{File: []byte("jdbc:\n  MaxLimit: 5\n  MaxLimits: 5\n")}, "MaxLimits")
	f(Sources{File: []byte("jdbc.MaxLimit: 5\nnosuch: 1\n")}, "weir.yaml:2: unknown key nosuch")
}
