// Package app contains what all commands share: the streams, settings and log of one call of the command line, the connection
// to an engine, interruptions, and reading files.
package app

import (
	"io"
	"net"

	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// App is one call of the command line.
type App struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Listen   func(network, address string) (net.Listener, error) // nil: net.Listen

	logTo   logWriter
	Entered bool // a command has started: later errors are not about usage
	Config  config.Config
}

// Prepare fills in the fields that the caller left out. Log lines go to standard error unless a live view takes them over.
func (a *App) Prepare() {
	a.logTo.app = a
	if a.Listen == nil {
		a.Listen = net.Listen
	}
}

// With returns another call of the command line with the same streams, for the given server and without a token.
func (a *App) With(server string) *App {
	return &App{In: a.In, Out: a.Out, Err: a.Err, Listen: a.Listen, Getenv: func(name string) string {
		switch name {
		case "PAWL_SERVER":
			return server
		case "PAWL_TOKEN", "PAWL_TOKEN_FILE":
			return ""
		}
		return a.Getenv(name)
	}}
}

// Configure loads the settings of a command from its flags and the other sources.
func (a *App) Configure(flags *pflag.FlagSet) error {
	c, err := config.Load(flags, a.Getenv)
	if err != nil {
		return err
	}
	a.Config = c
	return nil
}

// Say writes a line for people. Texts among args are cleaned.
func (a *App) Say(format string, args ...any) { output.Printf(a.Err, format+"\n", args...) }
