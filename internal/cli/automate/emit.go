package automate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/flow"
)

func EmitCommand(a *app.App) *cobra.Command {
	var f output.Format
	var m api.Emission
	var data, to string
	c := &cobra.Command{
		Use:   "emit TRIGGER",
		Short: "Emit a signal: tell Pawl that something happened",
		Long: `Emit a signal: a message that something happened. Matching rules start their executions in the same transaction
(pawl get rules). The signal is kept for signal_retention. With --key, repeating the same signal returns the
first one; other content with the same key is refused.`,
		Example: `  pawl emit alert.fired -d '{"host": "db1", "severity": "page"}' --subject db1 --key alert-4711
  pawl emit deploy.done -d @event.json
  pawl emit payment.settled --to ex_… -d '{"amount": 17}'
  pawl get signals --trigger alert.fired --since 1h`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m.Trigger = args[0]
			if to != "" && m.Subject != "" {
				return exit.Usagef("--to: the execution is the subject: leave --subject out")
			}
			var err error
			if m.Data, err = a.GivenJSON("--data", data); err != nil {
				return err
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				emit := s.Emit
				if to != "" {
					emit = func(ctx context.Context, m api.Emission) (*api.Emitted, error) { return s.EmitTo(ctx, to, m) }
				}
				out, err := emit(ctx, m)
				return output.Show(a.Out, f, out, err, func() {
					fmt.Fprintln(a.Out, out.Signal)
					for _, e := range out.Enforcements {
						a.Say("pawl: rule %s: %s", e.Rule, strings.Join(strings.Fields(strings.Join([]string{e.State, e.Execution, output.Reason(e.Reason)}, " ")), " "))
					}
					if out.Existing {
						a.Say("pawl: it was emitted before under this key")
					}
				})
			})
		},
	}
	app.JSONVar(c.Flags(), &data, "data", "d", "data as JSON, or @FILE (@- for standard input); {} by default")
	c.Flags().StringVar(&m.Key, "key", "", "key that identifies the signal when it is sent again")
	c.Flags().StringVar(&m.Subject, "subject", "", "subject, for example a host or an order number")
	c.Flags().StringVar(&to, "to", "", "workflow execution whose tasks wait for the signal")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func ListSignals(ctx context.Context, _ *app.App, c *client.Client, l *listing.Options) (any, *output.Table, error) {
	since, err := app.Moment("--since", l.Since)
	if err != nil {
		return nil, nil, err
	}
	all, err := listing.First(c.AllSignals(ctx, client.SignalFilter{Trigger: l.Trigger, Subject: l.Subject, Source: l.Source, Since: since, Limit: min(l.Limit, 1000)}), l.Limit)
	if err != nil {
		return nil, nil, err
	}
	t := output.Listing(l.Format, 6, "ID", "TRIGGER", "SUBJECT", "KEY", "SOURCE", "AT", "STATE", "DATA")
	for i := range all {
		s := &all[i]
		t.Row(s.ID, s.Trigger, s.Subject, s.Key, s.Source, output.Ago(s.At), s.State, string(s.Data))
	}
	return all, t, nil
}

func DescribeSignal(ctx context.Context, a *app.App, s *app.Session, id string, f output.Format) error {
	k, err := s.Signal(ctx, id)
	return output.Show(a.Out, f, k, err, func() {
		t := &output.Table{}
		t.Fields(
			"ID", k.ID, "Trigger", k.Trigger, "Key", k.Key, "Subject", k.Subject, "Source", k.Source, "At", k.At.UTC().Format(time.RFC3339), "State", stateOf(k),
			"Headers", flow.LabelText(k.Headers), "Cause", k.Cause, "Rules", strings.Join(k.Rules, " → "), "Data", string(k.Data),
		)
		t.Write(a.Out)
	})
}

// stateOf is the state of a signal; for a replay it says that no rule was evaluated.
func stateOf(k *api.Signal) string {
	if k.Replayed {
		return "replayed: the same content came before under another id, so no rule was asked"
	}
	return k.State
}
