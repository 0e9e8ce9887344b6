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

// settings are the flags that commands with settings share.
type settings struct {
	Project string `arg:"" optional:"" type:"existingdir" help:"Project folder. Without one: the demo inside the binary."`

	Listen  string            `help:"Addresses to listen on, with commas between (127.0.0.1:8080)." placeholder:"ADDR" group:"Settings"`
	Data    string            `help:"Folder for the SQLite database (weir-data)." placeholder:"DIR" group:"Settings"`
	DB      string            `name:"db" help:"Database: sqlite:PATH or postgres://user@host/database." placeholder:"URL" group:"Settings"`
	TLSCert string            `name:"tls-cert" help:"Certificate chain, PEM." placeholder:"FILE" group:"Settings"`
	TLSKey  string            `name:"tls-key" help:"Key of the certificate, PEM." placeholder:"FILE" group:"Settings"`
	TLSSelf bool              `name:"tls-self" help:"Make a certificate for tests at start." group:"Settings"`
	Profile string            `help:"Shape of the gate: auto or servicenow." placeholder:"NAME" group:"Settings"`
	Set     map[string]string `help:"Any setting by name, such as gate.session.waiting=20; may be repeated." placeholder:"NAME=VALUE" mapsep:"none" group:"Settings"`
	File    string            `name:"config" help:"Settings file to read instead of the project's weir.yaml." type:"existingfile" placeholder:"FILE" group:"Settings"`
}

// folder is the project's files, and whether they are the demo's.
func (s *settings) folder() (project fs.FS, isDemo bool) {
	if s.Project == "" {
		return demo.Project(), true
	}
	return os.DirFS(s.Project), false
}

// load reads the settings from all their sources.
func (s *settings) load() (*config.Effective, error) {
	src := config.Sources{FileName: "weir.yaml", Environ: os.Environ()}
	var err error
	if s.File != "" {
		src.FileName = s.File
		src.File, err = os.ReadFile(s.File)
	} else {
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
	add := func(path, value, flag string) {
		if value != "" {
			src.Flags = append(src.Flags, config.Setting{Path: path, Value: value, From: flag})
		}
	}
	add("listen", s.Listen, "--listen")
	add("data", s.Data, "--data")
	add("database.url", s.DB, "--db")
	add("tls.cert", s.TLSCert, "--tls-cert")
	add("tls.key", s.TLSKey, "--tls-key")
	if s.TLSSelf {
		add("tls.self", "true", "--tls-self")
	}
	add("profile", s.Profile, "--profile")
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
