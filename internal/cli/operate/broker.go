package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/instance"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/handoff/brokerrpc"
)

func BrokerCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use:   "broker",
		Short: "Inspect the message broker between servers and workers",
		Long:  `Inspect the message broker named by --broker or PAWL_BROKER. docs/brokers.md explains what a broker is for.`,
		Args:  cobra.NoArgs,
	}
	c.AddCommand(deadLettersCommand(a))
	return c
}

func deadLettersCommand(a *app.App) *cobra.Command {
	var f output.Format
	var redrive, drop bool
	c := &cobra.Command{
		Use:   "dead",
		Short: "List dead letters, which no server could read; send them again or delete them",
		Long: `List dead letters: messages of workers that no server could read, because they are damaged, come from another
version of Pawl, are signed with another token, or crashed the servers that read them. The latest 10,000, at
most 64 MB, are kept for 7 days; of calls other than reports and logs only the reason is kept. A dead letter
changes no execution: its worker sent the same again, or was lost and its work was repeated.

Sending them again is safe, for example after an upgrade: servers refuse outdated ones. Calls other than reports
and logs are deleted instead, because their workers have already repeated them.`,
		Example: `  pawl broker dead
  pawl broker dead --redrive`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			do := brokerrpc.ListDead
			switch {
			case redrive && drop:
				return exit.Usagef("--redrive sends them again and --drop deletes them: give one of the two")
			case redrive:
				do = brokerrpc.RedriveDead
			case drop:
				do = brokerrpc.DropDead
			}
			return keptMessages(cmd.Context(), a, do, f)
		},
	}
	c.Flags().BoolVar(&redrive, "redrive", false, "send them again")
	c.Flags().BoolVar(&drop, "drop", false, "delete them")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// deadLetter is one line of `pawl broker dead`.
type deadLetter struct {
	ID     string        `json:"id"`
	Line   string        `json:"line"`
	Age    time.Duration `json:"age"`
	Tries  int           `json:"tries"`
	Bytes  int           `json:"bytes"`
	Reason string        `json:"reason"`
}

func keptMessages(ctx context.Context, a *app.App, do brokerrpc.DeadAction, f output.Format) error {
	ctx, stop := app.Interruptible(ctx)
	defer stop()
	transport, err := openBroker(ctx, a)
	if err != nil {
		return err
	}
	defer transport.Close()
	dead, err := transport.Dead(ctx, do)
	if err != nil {
		return err
	}
	shown := make([]deadLetter, len(dead))
	for i, d := range dead {
		shown[i] = deadLetter{d.ID, string(d.Line), d.Age.Truncate(time.Second), d.Tries, d.Size, d.Reason}
	}
	if f != output.AsTable {
		return output.WriteData(a.Out, f, shown)
	}
	for _, d := range shown {
		fmt.Fprintf(a.Out, "%s  %s  %s ago  delivered %d times  %d bytes  %s\n", d.ID, d.Line, d.Age, d.Tries, d.Bytes, d.Reason)
	}
	n := output.Plural(len(dead), "message", "messages")
	sent := 0
	for _, d := range dead {
		if d.Line != brokerrpc.Asks {
			sent++
		}
	}
	switch {
	case len(dead) == 0:
		a.Say("There are no dead letters.")
	case do == brokerrpc.RedriveDead:
		a.Say("%s sent again, %d deleted.", output.Plural(sent, "message", "messages"), len(dead)-sent)
	case do == brokerrpc.DropDead:
		a.Say("%s dropped.", n)
	}
	return nil
}

func openBroker(ctx context.Context, a *app.App) (brokerrpc.Broker, error) {
	url := a.Config.Text("broker")
	if url == "" {
		return nil, exit.Usagef("no broker is named: use --broker or PAWL_BROKER")
	}
	return instance.OpenBroker(ctx, url, "", a.Logger())
}

func checkBroker(ctx context.Context, a *app.App) checkup {
	c := checkup{What: "broker", Needed: true}
	transport, err := openBroker(ctx, a)
	if err != nil {
		c.Say, c.Fix = err.Error(), "workers behind it wait meanwhile, and those that servers reach otherwise go on; docs/brokers.md says how to run one"
		return c
	}
	defer transport.Close()
	h, err := transport.Health(ctx)
	if err == nil {
		err = brokerrpc.Rehearse(ctx, transport)
	}
	if err != nil {
		c.Say = err.Error()
		return c
	}
	c.OK = true
	c.Say = config.Redacted(a.Config.Text("broker")) + ", " + h.Product
	for _, line := range brokerrpc.Lines() {
		c.Say += fmt.Sprintf(", %d %s", h.Lines[line].Messages, line)
	}
	switch {
	case h.Dead > 0:
		c.OK, c.Needed = false, false
		c.Say += ", " + output.Plural(int(h.Dead), "dead letter", "dead letters")
		c.Fix = "pawl broker dead says why; --redrive sends them again"
	case h.Concern != "":
		c.OK, c.Needed = false, false
		c.Say += ": " + h.Concern
		c.Fix = h.Remedy
	}
	return c
}
