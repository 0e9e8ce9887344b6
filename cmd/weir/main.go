// Command weir puts records of a SQL database behind the REST dialects that enterprise clients speak.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
)

const about = `weir serves business records that live in a SQL database through REST dialects that enterprise clients speak.

Start the demo (IT service management, SQLite in ./weir-data):

    weir serve

Serve a project folder on PostgreSQL, for everybody:

    weir serve ./project --db postgres://weir@db/weir --listen 0.0.0.0:8443 --tls-cert c.pem --tls-key k.pem

See all settings and where each comes from, then change some:

    weir config ./project
    weir serve ./project --profile servicenow --set gate.pools.api_int.queue=1000
    WEIR_LOG_REQUESTS=all weir serve

Settings come from weir.yaml in the project, environment variables (WEIR_GATE_SESSION_WAITING) and flags, in rising precedence.
Exit codes: 0 done, 1 failed, 2 wrong usage or settings.`

// app is the command line.
type app struct {
	Serve      serveCommand      `cmd:"" help:"Serve a project (default: the demo inside the binary)."`
	Hub        hubCommand        `cmd:"" help:"Speak the protocols for a project that backends have."`
	Backend    backendCommand    `cmd:"" help:"Have a project's database for hubs."`
	Apply      applyCommand      `cmd:"" help:"Bring a database to what a project says, and exit."`
	Endpoints  endpointsCommand  `cmd:"" help:"List the endpoints that are applied: routes, who may call them, parameters and columns."`
	Import     importCommand     `cmd:"" help:"Turn definitions of other systems into files of a project."`
	Introspect introspectCommand `cmd:"" help:"Write table files for a database that exists already."`
	Explain    explainCommand    `cmd:"" help:"Show the database's plan for a SQL endpoint."`
	Config     configCommand     `cmd:"" help:"Print the effective settings, and where each came from."`
	Schema     schemaCommand     `cmd:"" help:"Write the JSON Schemas of a project's files, for editors."`
	Trace      traceCommand      `cmd:"" help:"Show where the time of a request went, from the transaction log."`
	Bench      benchCommand      `cmd:"" help:"Measure a server."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// streams are where commands read and write.
type streams struct{ out, err io.Writer }

// usageError is a fault of whoever typed the command or wrote the settings.
type usageError struct{ error }

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole command, with its exit code.
func run(args []string, out, errOut io.Writer) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exited := -1
	parser, err := kong.New(&app{},
		kong.Name("weir"), kong.Description(about), kong.Writers(out, errOut), kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 110}),
		kong.Exit(func(code int) { exited = code; panic(exitNow{}) }),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(streams{out, errOut}),
	)
	if err != nil {
		fmt.Fprintln(errOut, "weir:", err)
		return 1
	}
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(exitNow); !ok {
				panic(p)
			}
			code = exited
		}
	}()
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(errOut, "weir: %v\nTry weir --help.\n", err)
		return 2
	}
	err = command.Run()
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(errOut, "weir: %v\n", err)
		return 2
	}
	fmt.Fprintf(errOut, "weir: %v\n", err)
	return 1
}

// exitNow carries an exit that kong asked for, such as after --help, out of the parser.
type exitNow struct{}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(s streams) error {
	version, revision := "development", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			version = v
		}
		for _, kv := range info.Settings {
			if kv.Key == "vcs.revision" {
				revision = " " + kv.Value
			}
		}
		fmt.Fprintf(s.out, "weir %s%s %s\n", version, revision, info.GoVersion)
		return nil
	}
	fmt.Fprintf(s.out, "weir %s\n", version)
	return nil
}
