package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, src Sources) *Effective {
	t.Helper()
	e, err := Load(src)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLoad_FlagsBeatEnvironmentBeatsFile(t *testing.T) {
	file := []byte("listen: 127.0.0.1:1\nlog: {level: warn}\ngate:\n  session:\n    waiting: 5\n    running: 3\n")
	e := load(t, Sources{
		File: file, FileName: "weir.yaml",
		Environ: []string{"WEIR_LISTEN=127.0.0.1:2,127.0.0.1:4", "WEIR_GATE_SESSION_WAITING=6", "WEIR_TEST_POSTGRES=x", "HOME=/"},
		Flags:   []Setting{{"gate.session.waiting", "7", "--set"}},
	})
	if got := strings.Join(e.Listen, " "); got != "127.0.0.1:2 127.0.0.1:4" {
		t.Errorf("listen: %q", got)
	}
	if e.Gate.Session.Waiting != 7 || e.Gate.Session.Running != 3 || e.Log.Level != "warn" {
		t.Errorf("session %+v, level %s", e.Gate.Session, e.Log.Level)
	}
	for path, want := range map[string]string{
		"listen": "WEIR_LISTEN", "gate.session.waiting": "--set", "gate.session.running": "weir.yaml:6",
		"log.level": "weir.yaml:2", "log.format": "default",
	} {
		if got := e.Origin(path); got != want {
			t.Errorf("origin of %s: %q, want %q", path, got, want)
		}
	}
}

func TestLoad_UnknownNamesAreErrorsThatSayWhere(t *testing.T) {
	f := func(src Sources, want string) {
		t.Helper()
		src.FileName = "weir.yaml"
		_, err := Load(src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f(Sources{File: []byte("log:\n  levle: info\n")}, "weir.yaml:2: unknown key levle")
	f(Sources{File: []byte("log:\n  level: [1\n")}, "weir.yaml:")
	f(Sources{File: []byte("limits: {body: much}\n")}, "weir.yaml:1: ")
	f(Sources{Environ: []string{"WEIR_LOG_LEVLE=x"}}, "WEIR_LOG_LEVLE: no such setting")
	f(Sources{Flags: []Setting{{"gate.slots", "3", "--set"}}}, "--set: gate.slots: unknown key slots")
	f(Sources{Flags: []Setting{{"limits.body_time", "soon", "--set"}}}, "--set: limits.body_time:")
}

func TestLoad_AllFaultsAreReportedTogether(t *testing.T) {
	_, err := Load(Sources{File: []byte("log: {level: loud}\nlimits: {body: 0}\ngate: {pools: {default: {slots: 0}}}\nauth: {remember_max: 0}\ndatabase: {url: mysql://x}\n"), FileName: "weir.yaml"})
	for _, want := range []string{"log.level", "limits.body", "gate.pools.default.slots", "auth.remember_max", "database.url"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestLoad_ProfileIsWhatGateSettingsStartFrom(t *testing.T) {
	e := load(t, Sources{
		File: []byte("gate: {pools: {api_int: {queue: 1000}}}\n"), FileName: "weir.yaml",
		Environ: []string{"WEIR_GATE_POOLS_DEFAULT_WAIT=7s"},
		Flags:   []Setting{{"profile", "servicenow", "--profile"}},
	})
	api := e.Gate.Pools["api_int"]
	if api.Slots != 4 || api.Queue != 1000 || e.Gate.Pools["default"].Wait != 7*time.Second || !e.Gate.SerialBatch {
		t.Errorf("%+v", e.Gate)
	}
	if got := e.Origin("gate.session.running"); got != "profile servicenow" {
		t.Errorf("origin: %s", got)
	}
}

func TestPrint_TellsOriginsAndNoSecrets(t *testing.T) {
	e := load(t, Sources{
		File:     []byte("auth:\n  users:\n    - {name: eve, password: s3cret, roles: [admin]}\n"),
		FileName: "weir.yaml",
		Flags:    []Setting{{"database.url", "postgres://weir:hush@db/weir?password=hush&sslmode=require&sslpassword=hush", "--db"}},
	})
	var out strings.Builder
	if err := e.Print(&out); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, secret := range []string{"s3cret", "hush"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is printed", secret)
		}
	}
	for _, want := range []string{"postgres://weir:xxxxx@db/weir?password=xxxxx&sslmode=require&sslpassword=xxxxx # --db", "level: info # default", "# weir.yaml:3", "'***'"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

func TestSchema_KnowsEverySetting(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	e := load(t, Sources{})
	if len(e.Paths()) < 80 {
		t.Fatalf("%d settings only", len(e.Paths()))
	}
	for _, path := range e.Paths() {
		at := root
		for _, name := range strings.Split(path, ".") {
			next, ok := map[string]any(nil), false
			if properties, is := at["properties"].(map[string]any); is {
				next, ok = properties[name].(map[string]any)
			} else if more, is := at["additionalProperties"].(map[string]any); is {
				next, ok = more["anyOf"].([]any)[0].(map[string]any)
			}
			if !ok {
				t.Fatalf("%s: the schema does not know %s", path, name)
			}
			at = next
		}
	}
}

func TestURL_WhatIsNoAddressIsNotShown(t *testing.T) {
	for _, text := range []string{"host=db password=hush", "postgres://a:hu%zzsh@db/x", "postgres://a:hush@db:port/x"} {
		_, err := Load(Sources{Flags: []Setting{{"database.url", text, "--db"}}})
		if shown := URL(text).String() + fmt.Sprint(err); strings.Contains(shown, "hu") {
			t.Errorf("%s is shown as %s", text, shown)
		}
	}
}
