// Package cli is the command line: it reads arguments and settings, opens the engine that a command works with or connects to
// one, and shows what comes of it. Commands speak to every engine through package client.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// Main runs the command line with the process's own streams and returns its exit code.
func Main(args []string) int {
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv}
	return a.execute(args)
}

// app is one call of the command line.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	listen   func(network, address string) (net.Listener, error) // nil: net.Listen

	logTo   logWriter
	entered bool // a command has begun: errors are no longer about usage
	config  config.Config
}

// execute runs the command and returns the exit code. Data goes to out, everything else to err.
func (a *app) execute(args []string) int {
	a.logTo.app = a
	if a.listen == nil {
		a.listen = net.Listen
	}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exit.OK
	}
	var e *exit.Error
	if errors.As(err, &e) {
		if e.Err != nil {
			a.complain(cmd, e.Err, e.Code)
		}
		return e.Code
	}
	code := exit.General
	switch {
	case !a.entered:
		code = exit.Misuse
	case errors.Is(err, context.Canceled):
		return exit.Interrupted
	}
	a.complain(cmd, err, code)
	return code
}

func (a *app) complain(cmd *cobra.Command, err error, code int) {
	fmt.Fprintf(a.err, "pawl: %s\n", strings.TrimSpace(a.explained(err).Error()))
	if code == exit.Misuse && cmd != nil {
		fmt.Fprintf(a.err, "Run '%s --help' to see how it is used.\n", cmd.CommandPath())
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "pawl",
		Short: "Run evaluations of untrusted code and workflows that must not be lost",
		Long: `Pawl runs work that must not be lost: evaluations of untrusted code in a sandbox, and workflows of tasks.

Without a server it is complete: "pawl run" and "pawl eval" start an engine and workers of their own on a state
directory, where everything that was accepted is kept. Kill it at any moment; the next one goes on where it stopped.
With "pawl server" many people and programs share one engine.

Exit codes: 0 ok, 1 error, 2 wrong usage, 3 the execution failed, 4 it was cancelled, 5 it timed out, 130 interrupted.`,
		Example: `  pawl run examples/grade.yaml              run a workflow and watch it
  echo 'print(6*7)' | pawl eval --language python -
  pawl get executions                       what has run, newest first
  pawl why ex_…                             what an execution is waiting for
  pawl server                               serve many clients
  pawl doctor                               can this machine do it all?`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          argsOf(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.entered = true
			return cmd.Help()
		},
	}
	config.Declare(root.PersistentFlags(), "")
	root.AddGroup(
		&cobra.Group{ID: "work", Title: "Run work:"},
		&cobra.Group{ID: "look", Title: "See and steer it:"},
		&cobra.Group{ID: "serve", Title: "Serve:"},
		&cobra.Group{ID: "setup", Title: "Check and set up:"},
	)
	a.add(root, "work", a.runCommand(), a.evalCommand(), a.uploadCommand(), a.exportCommand(), a.importCommand(), a.applyCommand(), a.validateCommand(), a.diffCommand(), a.compareCommand(), a.aliasCommand(), a.retireCommand())
	a.add(root, "look", a.getCommand(), a.describeCommand(), a.logsCommand(), a.eventsCommand(), a.filesCommand(), a.waitCommand(), a.whyCommand(),
		a.cancelCommand(), a.killCommand(), a.retryCommand(), a.rerunCommand(), a.replayCommand(), a.debugCommand(), a.attachCommand(), a.emitCommand(), a.answerCommand(), a.pauseCommand(), a.resumeCommand(), a.schedulesCommand(), a.rulesCommand(), a.hooksCommand())
	a.add(root, "serve", a.serverCommand(), a.workerCommand(), a.uiCommand())
	a.add(root, "setup", a.verifying(a.doctorCommand()), a.migrateCommand(), a.backupCommand(), a.restoreCommand(), a.brokerCommand(), a.languagesCommand(), a.benchCommand(), a.configCommand(), a.versionCommand())
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommandGroupID("setup")
	root.SetCompletionCommandGroupID("setup")
	addHelp(root)
	return root
}

// add puts commands into a group, and has their settings read before they run.
func (a *app) add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		if group != "" {
			c.GroupID = group
		}
		c.Args = argsOf(c.Args)
		if run := c.RunE; run != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				if err := a.configure(cmd.Flags()); err != nil {
					return &exit.Error{Code: exit.Misuse, Err: err}
				}
				a.entered = true
				return run(cmd, args)
			}
		}
		a.add(c, "", c.Commands()...)
		if root != nil && group != "" {
			root.AddCommand(c)
		}
	}
}

func (a *app) configure(flags *pflag.FlagSet) error {
	c, err := config.Load(flags, a.getenv)
	if err != nil {
		return err
	}
	a.config = c
	return nil
}

// say writes a line for people.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }
