// Package steer contains the commands that control existing executions: cancel, kill, retry, rerun.
package steer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/cli/submit"
)

func CancelCommand(a *app.App) *cobra.Command {
	return endCommand(a, "cancel", "Cancel executions",
		`Cancel executions. An execution that no worker holds ends at once. If a worker runs it, the worker stops
it, and it is cancelled once the worker has confirmed that nothing of it is left running; --wait is the longest wait
for that. A workflow first runs its tasks with always(), cancelled(), failed() or !success(), for at most its
cleanup_timeout; a second cancel ends this clean-up at once. Flags select executions instead of IDs, as for pawl get;
without --yes they are only listed.`,
		(*client.Client).Cancel, (*client.Client).CancelMany)
}

func KillCommand(a *app.App) *cobra.Command {
	return endCommand(a, "kill", "Kill running executions, without clean-up",
		`Kill running executions, with all processes that they started. They are cancelled once the worker has
confirmed that nothing of them is left running. A workflow runs no clean-up, or ends the one in progress.
Flags select executions instead of IDs, as for pawl get; without --yes they are only listed.`,
		(*client.Client).Kill, (*client.Client).KillMany)
}

func endCommand(a *app.App, verb, short, long string, end func(*client.Client, context.Context, string, string, time.Duration) (*api.Execution, error),
	many func(*client.Client, context.Context, client.Filter, api.BulkRequest) (*api.BulkResult, error)) *cobra.Command {
	var reason string
	var wait time.Duration
	var b bulk
	c := &cobra.Command{
		Use:   verb + " ID…",
		Short: short,
		Long:  long,
		Example: "  pawl " + verb + " ex_… --reason 'wrong input'\n" +
			"  pawl " + verb + " --label team=docs --status scheduled          list them, and change nothing\n" +
			"  pawl " + verb + " --label team=docs --status scheduled --yes",
		RunE: func(cmd *cobra.Command, ids []string) error {
			selects, err := b.selects(ids)
			if err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if selects {
					return each(ctx, a, &b, verb, reason, func(ctx context.Context, f client.Filter, in api.BulkRequest) (*api.BulkResult, error) {
						return many(s.Client, ctx, f, in)
					})
				}
				var failed []error
				for _, id := range ids {
					x, err := end(s.Client, ctx, id, reason, wait)
					if err != nil {
						failed = append(failed, fmt.Errorf("%s %s: %w", verb, id, err))
						continue
					}
					if x.Status.Terminal() {
						output.Printf(a.Out, "%s %s\n", x.ID, x.Status)
					} else {
						output.Printf(a.Out, "%s %s, ordered to end as %s\n", x.ID, x.Status, orderedAs(x))
					}
				}
				return errors.Join(failed...)
			})
		},
	}
	b.flags(c)
	c.Flags().StringVar(&reason, "reason", "", "reason, kept for later readers")
	wait = 10 * time.Second
	app.DurationVar(c.Flags(), &wait, "wait", "how long to wait until it has ended")
	return c
}

func orderedAs(x *api.Execution) api.Status {
	if x.CancelOrder != nil {
		return x.CancelOrder.As
	}
	return api.Cancelled
}

func RetryCommand(a *app.App) *cobra.Command {
	var wait bool
	var b bulk
	c := &cobra.Command{
		Use:   "retry ID",
		Short: "Submit the request of a finished execution again, as a new execution",
		Long: `Submit the request of a finished execution again, as a new execution. Flags select executions instead of an ID,
as for pawl get: by default those that failed, timed out or were cancelled; --status chooses others. Without
--yes they are only listed.`,
		Example: `  pawl retry ex_…
  pawl retry ex_… --wait                              stay until it has ended
  pawl retry --label team=docs --since 1h             list what would be run again
  pawl retry --label team=docs --since 1h --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := app.Reading
			selects, err := b.selects(args)
			switch {
			case err != nil:
				return err
			case selects && wait:
				return exit.Usagef("--wait goes with one id: follow many with pawl get executions -w")
			case selects:
				return a.WithClient(cmd.Context(), m, func(ctx context.Context, s *app.Session) error {
					return each(ctx, a, &b, "retry", "", s.RetryMany)
				})
			}
			if wait {
				m = app.Working
			}
			return a.WithClient(cmd.Context(), m, func(ctx context.Context, s *app.Session) error {
				x, err := s.Retry(ctx, args[0])
				if err != nil {
					return err
				}
				if !wait {
					fmt.Fprintln(a.Out, x.ID)
					app.SayLeft(a, s, x.ID)
					return nil
				}
				return submit.Watch(ctx, a, s, x, output.AsTable)
			})
		},
	}
	b.flags(c)
	c.Flags().BoolVar(&wait, "wait", false, "watch it until it ends, and exit with its result")
	return c
}
