package define

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

func RetireCommand(a *app.App) *cobra.Command {
	var o api.RetireOrder
	c := &cobra.Command{
		Use:   "retire NAME…",
		Short: "Retire workflows and actions, so that new submissions are refused, or bring them back",
		Long: `Retire workflows or actions: submissions by name, version or alias are refused with the reason, and so are
starts by schedules and rules. Nothing is deleted. Running executions continue, and tasks of workflows may still
run it. --undo brings it back into use.`,
		Example: `  pawl retire deploy --reason 'use rollout'
  pawl retire deploy --undo`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			for _, name := range names {
				if base, _, has := strings.Cut(name, "@"); has {
					return exit.Usagef("%s: a definition is retired as a whole: pawl retire %s", name, base)
				}
			}
			if err := app.FillBy(&o.By, "--by"); err != nil {
				return err
			}
			return app.EachNamed(a, cmd, names, func(ctx context.Context, s *app.Session, name string) (string, error) {
				d, err := s.Retire(ctx, name, o)
				if err != nil {
					return "", err
				}
				if d.Retired == nil {
					return fmt.Sprintf("%s %s is not retired", d.Kind, d.Name), nil
				}
				return fmt.Sprintf("%s %s is %s", d.Kind, d.Name, retiredText(d.Retired)), nil
			})
		},
	}
	c.Flags().BoolVar(&o.Undo, "undo", false, "bring it back into use")
	c.Flags().StringVar(&o.Reason, "reason", "", "reason, shown to callers whose submissions are refused")
	c.Flags().StringVar(&o.By, "by", "", "who does it (default: the current user)")
	return c
}
