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

// pausableKind is a kind of things that can be paused: a command of `pawl pause` and of `pawl resume`.
type pausableKind struct {
	name, pause, resume string
	example             string
	pauses              func(*client.Client, context.Context, string, api.PauseOrder) (*api.Pause, error)
	resumes             func(*client.Client, context.Context, string, api.ResumeOrder) (*api.Pause, error)
}

var pausable = []pausableKind{
	{"queue", "Let no worker take anything from queues", "Let workers take from queues again, at once",
		"  pawl pause queue gpu --reason 'new drivers' --for 1h", (*client.Client).PauseQueue, (*client.Client).ResumeQueue},
	{"worker", "Give workers nothing more, by their names; what they run goes on", "Give workers work again, at once",
		"  pawl pause worker build-7 --reason 'its disk is being replaced'", (*client.Client).PauseWorker, (*client.Client).ResumeWorker},
	{"action", "Let no executions of actions or workflows begin, by their names, tasks included; what runs goes on", "Let executions of actions or workflows begin again, at once",
		"  pawl pause action deploy --reason 'the region is down' --for 1h", (*client.Client).PauseAction, (*client.Client).ResumeAction},
	{"execution", "Let workflows start no more tasks, by their ids; tasks that have begun go on", "Let workflows start tasks again, at once",
		"  pawl pause execution ex_06h0nb4a2k --reason 'the disks are full'", (*client.Client).PauseExecution, (*client.Client).ResumeExecution},
}

// beneathText says how many workflows among an execution's tasks its pause or resume was also for.
func beneathText(p *api.Pause) string {
	switch p.Beneath {
	case 0:
		return ""
	case 1:
		return ", and 1 workflow among its tasks"
	}
	return fmt.Sprintf(", and %d workflows among its tasks", p.Beneath)
}

// subject is the word for what names one of the kind.
func (k *pausableKind) subject() string {
	if k.name == "execution" {
		return "ID"
	}
	return "NAME"
}

func PauseCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "pause",
		Short: "Let nothing be taken from queues, give nothing to workers, begin nothing of actions, or let workflows start nothing",
		Long: `Pause queues, workers, actions or executions of workflows until they are resumed, or for a while. When the command returns no server hands
out anything more of what is paused. What runs goes on, and submissions are accepted. pawl get pauses says which queues, workers and actions
are paused, pawl describe which executions, and pawl why what that holds up.`,
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
		f.StringVar(&o.Reason, "reason", "", "why, for those who look at it later")
		f.StringVar(&o.By, "by", "", "who pauses it; the user of this system by default")
		app.DurationVar(f, &span, "for", "after which it goes on by itself; without it when it is resumed")
		if k.name == "execution" {
			f.StringVar(&o.Timers, "timers", "run", "whether timeouts of the workflow, and sleeps and waits among its tasks, run on (run) or stand still (stop)")
		}
		c.AddCommand(one)
	}
	return c
}

func ResumeCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "resume", Short: "Let queues, workers, actions or workflows that are paused go on"}
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
		one.Flags().StringVar(&o.By, "by", "", "who resumes it; the user of this system by default")
		one.Flags().StringVar(&o.Reason, "reason", "", "why, for those who look at it later")
		c.AddCommand(one)
	}
	return c
}

func ListPauses(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	t := &output.Table{}
	t.Row("KIND", "NAME", "STATE", "AT", "UNTIL", "BY", "REASON")
	all := []api.Pause{}
	var err error
	if l.History {
		all, err = listing.First(c.PauseHistory(ctx), l.Limit)
	} else if found, e := c.Pauses(ctx); e == nil {
		all = append(all, found...)
	} else {
		err = e
	}
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
