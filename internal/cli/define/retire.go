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
		Short: "Accept nothing new of workflows and actions, or bring them back",
		Long: `Retire workflows or actions: whoever submits one is refused with the reason, by its name, a version or an alias, and so are schedules and rules.
Nothing is removed. What has begun goes on, and the tasks of workflows may run it. --undo brings it back as it was.`,
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
	c.Flags().BoolVar(&o.Undo, "undo", false, "bring it back")
	c.Flags().StringVar(&o.Reason, "reason", "", "why, for those whose submissions are refused")
	c.Flags().StringVar(&o.By, "by", "", "who does it; the user of this system by default")
	return c
}
