package define

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// pausableKind is something that can be paused: a subcommand of `pawl pause` and of `pawl resume`.
type pausableKind struct {
	name, pause, resume string
	example             string
	pauses              func(*client.Client, context.Context, string, api.PauseOrder) (*api.Pause, error)
	resumes             func(*client.Client, context.Context, string, api.ResumeOrder) (*api.Pause, error)
}

var pausable = []pausableKind{
	{"queue", "Pause queues: workers take nothing from them", "Resume queues",
		"  pawl pause queue gpu --reason 'new drivers' --for 1h", (*client.Client).PauseQueue, (*client.Client).ResumeQueue},
	{"worker", "Pause workers by name: they get nothing new; running work continues", "Resume workers",
		"  pawl pause worker build-7 --reason 'its disk is being replaced'", (*client.Client).PauseWorker, (*client.Client).ResumeWorker},
	{"action", "Pause actions or workflows: no execution of them begins, tasks included; running ones continue",
		"Resume actions or workflows",
		"  pawl pause action deploy --reason 'the region is down' --for 1h", (*client.Client).PauseAction, (*client.Client).ResumeAction},
	{"execution", "Pause workflow executions by ID: they start no more tasks; running tasks continue", "Resume workflow executions",
		"  pawl pause execution ex_06h0nb4a2k --reason 'the disks are full'", (*client.Client).PauseExecution, (*client.Client).ResumeExecution},
}

// beneathText says how many workflows among an execution's tasks its pause or resume also applied to.
func beneathText(p *api.Pause) string {
	switch p.Beneath {
	case 0:
		return ""
	case 1:
		return ", and 1 workflow among its tasks"
	}
	return fmt.Sprintf(", and %d workflows among its tasks", p.Beneath)
}

// subject is the word for the name of something of the kind.
func (k *pausableKind) subject() string {
	if k.name == "execution" {
		return "ID"
	}
	return "NAME"
}

func PauseCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "pause",
		Short: "Pause queues, workers, actions or workflows",
		Long: `Pause queues, workers, actions or workflow executions until they are resumed, or for a given time. Once the
command returns, no server hands out work of the paused object. Running work continues, and submissions are
accepted. pawl get pauses lists paused queues, workers and actions, pawl describe shows a paused execution, and
pawl why explains what a pause holds up.`,
	}
	for _, k := range pausable {
		var o api.PauseOrder
		var span time.Duration
		one := &cobra.Command{
			Use: k.name + " " + k.subject() + "…", Short: k.pause, Example: k.example, Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, names []string) error {
				if cmd.Flags().Changed("for") && span == 0 {
					return exit.Usagef("--for %s: give a duration such as 1h, or leave it out to pause until it is resumed", span)
				}
				if o.Timers != "" && o.Timers != "run" && o.Timers != "stop" {
					return exit.Usagef("--timers %s: give run or stop", o.Timers)
				}
				o.For = api.Duration(span)
				if err := app.FillBy(&o.By, "--by"); err != nil {
					return err
				}
				return app.EachNamed(a, cmd, names, func(ctx context.Context, s *app.Session, name string) (string, error) {
					p, err := k.pauses(s.Client, ctx, name, o)
					if err != nil {
						return "", err
					}
					return fmt.Sprintf("%s %s is %s%s", p.Kind, p.Name, output.Pause(p), beneathText(p)), nil
				})
			},
		}
		f := one.Flags()
		f.StringVar(&o.Reason, "reason", "", "reason, kept for later readers")
		f.StringVar(&o.By, "by", "", "who pauses it (default: the current user)")
		app.DurationVar(f, &span, "for", "length of the pause, for example 2h; without it the pause lasts until resumed")
		if k.name == "execution" {
			f.StringVar(&o.Timers, "timers", "run",
				"workflows: whether timeouts, sleeps and waits continue (run) or stop during the pause (stop)")
		}
		c.AddCommand(one)
	}
	return c
}

func ResumeCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "resume", Short: "Resume queues, workers, actions or workflows"}
	for _, k := range pausable {
		var o api.ResumeOrder
		one := &cobra.Command{
			Use: k.name + " " + k.subject() + "…", Short: k.resume, Example: "  pawl resume " + k.name + " " + k.subject(), Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, names []string) error {
				if err := app.FillBy(&o.By, "--by"); err != nil {
					return err
				}
				return app.EachNamed(a, cmd, names, func(ctx context.Context, s *app.Session, name string) (string, error) {
					p, err := k.resumes(s.Client, ctx, name, o)
					if err != nil {
						return "", err
					}
					if p.At.IsZero() {
						return fmt.Sprintf("%s %s was not paused", p.Kind, p.Name), nil
					}
					return fmt.Sprintf("%s %s is resumed%s", p.Kind, p.Name, beneathText(p)), nil
				})
			},
		}
		one.Flags().StringVar(&o.By, "by", "", "who resumes it (default: the current user)")
		one.Flags().StringVar(&o.Reason, "reason", "", "reason, kept for later readers")
		c.AddCommand(one)
	}
	return c
}

func ListPauses(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	t := output.Titled("KIND", "NAME", "STATE", "AT", "UNTIL", "BY", "REASON")
	list := c.Pauses
	if l.History {
		list = func(ctx context.Context) ([]api.Pause, error) { return listing.First(c.PauseHistory(ctx), l.Limit) }
	}
	all, err := list(ctx)
	for i := range all {
		p := &all[i]
		state, until := "paused", "it is resumed"
		switch {
		case !p.Paused:
			state, until = "resumed", ""
		case !p.Until.IsZero():
			until = output.When(&p.Until)
		}
		t.Row(p.Kind, p.Name, state, output.When(&p.At), until, p.By, p.Reason)
	}
	return all, t, err
}
