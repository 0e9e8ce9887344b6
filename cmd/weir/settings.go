package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"weir/demo"
	"weir/internal/config"
)

// general are the flags that all commands with settings share.
type general struct {
	Project string            `arg:"" optional:"" type:"existingdir" help:"Project folder. Without one: the demo inside the binary."`
	Set     map[string]string `help:"Any setting by name, such as gate.session.waiting=20; may be repeated." placeholder:"NAME=VALUE" mapsep:"none" group:"Settings"`
	File    string            `name:"config" help:"Settings file to read instead of the project's weir.yaml." type:"existingfile" placeholder:"FILE" group:"Settings"`

	bare bool // no project at all, not even the demo
}

// place are the flags of commands that have a database.
type place struct {
	general `embed:""`
	Data    string `help:"Folder for the SQLite database (weir-data)." placeholder:"DIR" group:"Settings"`
	DB      string `name:"db" help:"Database: sqlite:PATH or postgres://user@host/database." placeholder:"URL" group:"Settings"`
}

// door are the flags of commands that listen to clients.
type door struct {
	Listen  string `help:"Addresses to listen on, with commas between (127.0.0.1:8080)." placeholder:"ADDR" group:"Settings"`
	TLSCert string `name:"tls-cert" help:"Certificate chain, PEM." placeholder:"FILE" group:"Settings"`
	TLSKey  string `name:"tls-key" help:"Key of the certificate, PEM." placeholder:"FILE" group:"Settings"`
	TLSSelf bool   `name:"tls-self" help:"Make a certificate for tests at start." group:"Settings"`
	Profile string `help:"Shape of the gate: auto or servicenow." placeholder:"NAME" group:"Settings"`
}

// settings are the flags of commands that have both.
type settings struct {
	place `embed:""`
	door  `embed:""`
}

// folder is the project's files, and whether they are the demo's.
func (s *general) folder() (project fs.FS, isDemo bool) {
	if s.Project == "" {
		return demo.Project(), true
	}
	return os.DirFS(s.Project), false
}

// flag is a setting that a flag has given; one without a value is none.
func flag(path, value, name string) config.Setting {
	return config.Setting{Path: path, Value: value, From: name}
}

// flags are the settings that the flags have given.
func (s *place) flags() []config.Setting {
	return []config.Setting{flag("data", s.Data, "--data"), flag("database.url", s.DB, "--db")}
}

func (s *door) flags() []config.Setting {
	self := ""
	if s.TLSSelf {
		self = "true"
	}
	return []config.Setting{
		flag("listen", s.Listen, "--listen"), flag("tls.cert", s.TLSCert, "--tls-cert"), flag("tls.key", s.TLSKey, "--tls-key"),
		flag("tls.self", self, "--tls-self"), flag("profile", s.Profile, "--profile"),
	}
}

// load reads the settings from all their sources.
func (s *settings) load() (*config.Effective, error) {
	return s.general.load(append(s.place.flags(), s.door.flags()...)...)
}

func (s *place) load(flags ...config.Setting) (*config.Effective, error) {
	return s.general.load(append(s.flags(), flags...)...)
}

func (s *general) load(flags ...config.Setting) (*config.Effective, error) {
	src := config.Sources{FileName: "weir.yaml", Environ: os.Environ()}
	var err error
	if s.File != "" {
		src.FileName = s.File
		src.File, err = os.ReadFile(s.File)
	} else if !s.bare {
		project, isDemo := s.folder()
		if !isDemo {
			src.FileName = filepath.Join(s.Project, src.FileName)
		}
		if src.File, err = fs.ReadFile(project, "weir.yaml"); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("read settings: %w", err)}
	}
	for _, f := range flags {
		if f.Value != "" {
			src.Flags = append(src.Flags, f)
		}
	}
	var names []string
	for name := range s.Set {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		src.Flags = append(src.Flags, config.Setting{Path: name, Value: s.Set[name], From: "--set"})
	}
	e, err := config.Load(src)
	if err != nil {
		return nil, usageError{fmt.Errorf("settings:\n%w", err)}
	}
	return e, nil
}

type configCommand struct {
	settings `embed:""`
}

// Help is the command's longer help.
func (configCommand) Help() string {
	return "Prints every setting as YAML that weir.yaml may hold, secrets as ***, each with its source: default, the profile, a file with its line, an environment variable or a flag."
}

// Run prints the effective settings.
func (c *configCommand) Run(s streams) error {
	e, err := c.load()
	if err != nil {
		return err
	}
	return e.Print(s.out)
}
