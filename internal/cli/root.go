// Package cli is the command line: it assembles the commands, which use every engine through package client, and prints their errors.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/automate"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/debug"
	"github.com/pawl-run/pawl/internal/cli/define"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/grade"
	"github.com/pawl-run/pawl/internal/cli/observe"
	"github.com/pawl-run/pawl/internal/cli/operate"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/cli/steer"
	"github.com/pawl-run/pawl/internal/cli/submit"
)

// Main runs the command line with the process's own streams and returns its exit code.
func Main(args []string) int {
	out := &stdout{File: os.Stdout}
	a := &app.App{In: os.Stdin, Out: out, Err: os.Stderr, Getenv: os.Getenv}
	code := execute(a, args)
	if err := out.err.Load(); err != nil && code == exit.OK {
		complain(a, nil, fmt.Errorf("the output is incomplete: %w", *err), exit.General)
		return exit.General
	}
	return code
}

// execute runs the command and returns the exit code. Data goes to out, everything else to err.
func execute(a *app.App, args []string) int {
	a.Prepare()
	root := root(a)
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteC()
	if err == nil {
		return exit.OK
	}
	if e, ok := errors.AsType[*exit.Error](err); ok {
		if e.Err != nil {
			complain(a, cmd, e.Err, e.Code)
		}
		return e.Code
	}
	code := exit.General
	switch {
	case !a.Entered:
		code = exit.Misuse
	case errors.Is(err, context.Canceled):
		return exit.Interrupted
	}
	complain(a, cmd, err, code)
	return code
}

func complain(a *app.App, cmd *cobra.Command, err error, code int) {
	fmt.Fprintf(a.Err, "pawl: %s\n", output.CleanLines(strings.TrimSpace(a.Explained(err).Error())))
	if code == exit.Misuse && cmd != nil {
		fmt.Fprintf(a.Err, "Run '%s --help' to see how it is used.\n", cmd.CommandPath())
	}
}

func root(a *app.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "pawl",
		Short: "Run evaluations of untrusted code and workflows that must not be lost",
		Long: `Pawl runs work that must not be lost: evaluations of untrusted code in a sandbox, and workflows of tasks.

It works without a server: "pawl run" and "pawl eval" start their own engine and workers on a state directory,
which keeps everything that was accepted. Kill it at any moment; the next command continues where it stopped.
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
			a.Entered = true
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
	add(a, root, "work", submit.RunCommand(a), submit.EvalCommand(a), grade.Command(a), grade.ScoresCommand(a), submit.UploadCommand(a),
		observe.ExportCommand(a), define.ApplyCommand(a), define.ValidateCommand(a), define.DiffCommand(a),
		define.CompareCommand(a), define.AliasCommand(a), define.RetireCommand(a))
	add(a, root, "look", observe.GetCommand(a), observe.DescribeCommand(a), observe.LogsCommand(a), observe.EventsCommand(a), observe.FilesCommand(a), observe.WaitCommand(a), observe.WhyCommand(a), operate.OpenCommand(a, execute),
		steer.CancelCommand(a), steer.KillCommand(a), steer.RetryCommand(a), steer.RerunCommand(a), debug.ReplayCommand(a), debug.DebugCommand(a),
		submit.AttachCommand(a), automate.EmitCommand(a), automate.AnswerCommand(a), define.PauseCommand(a), define.ResumeCommand(a),
		automate.SchedulesCommand(a), automate.RulesCommand(a), automate.HooksCommand(a))
	add(a, root, "serve", operate.ServerCommand(a), operate.WorkerCommand(a), operate.UICommand(a))
	add(a, root, "setup", operate.Verifying(a, operate.DoctorCommand(a)), operate.MigrateCommand(a), operate.BackupCommand(a), operate.RestoreCommand(a),
		operate.BrokerCommand(a), operate.LanguagesCommand(a), operate.BenchCommand(a), configCommand(a), versionCommand(a))
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommandGroupID("setup")
	root.SetCompletionCommandGroupID("setup")
	addHelp(root)
	addCompletion(root)
	return root
}

// add puts commands into a group, and makes them load their settings before they run.
func add(a *app.App, root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		if group != "" {
			c.GroupID = group
		}
		// For a command with only subcommands, cobra accepts any argument, shows the help and reports success: pawl
		// pause workflow ex_… would pause nothing.
		if c.HasSubCommands() && !c.Runnable() {
			c.Args, c.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		c.Args = argsOf(c.Args)
		c.Flags().VisitAll(app.Decimal)
		c.Flags().VisitAll(app.Filled)
		if run := c.RunE; run != nil {
			c.RunE = func(cmd *cobra.Command, args []string) error {
				if err := a.Configure(cmd.Flags()); err != nil {
					return &exit.Error{Code: exit.Misuse, Err: err}
				}
				a.Entered = true
				return run(cmd, args)
			}
		}
		add(a, c, "", c.Commands()...)
		if root != nil && group != "" {
			root.AddCommand(c)
		}
	}
}
