package steer

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
)

// bulk are the flags of a command for all selected executions.
type bulk struct {
	listing.Selection
	dry, yes bool
}

func (b *bulk) flags(c *cobra.Command) {
	b.Limit = api.BulkLimit
	b.Selection.Flags(c.Flags())
	c.Flags().BoolVar(&b.dry, "dry-run", false, "with flags that select executions: only list them")
	c.Flags().BoolVar(&b.yes, "yes", false, "with flags that select executions: confirm; otherwise they are only listed")
}

// selects reports whether a flag that selects executions was given; named are executions given by id.
func (b *bulk) selects(named []string) (bool, error) {
	selects := b.Any()
	switch {
	case selects && len(named) > 0:
		return false, exit.Usagef("give ids, or flags that select executions, not both")
	case !selects && len(named) == 0:
		return false, exit.Usagef("give the ids of executions, or select some: --label team=docs, --status scheduled, --action NAME, --since 1h")
	case !selects && (b.dry || b.yes):
		return false, exit.Usagef("--dry-run and --yes go with flags that select executions, such as --label team=docs")
	}
	return selects, nil
}

// each calls do for all selected executions, a thousand at a time, and prints the results.
func each(ctx context.Context, a *app.App, b *bulk, verb, reason string, do func(context.Context, client.Filter, api.BulkRequest) (*api.BulkResult, error)) error {
	f, err := b.Filter()
	if err != nil {
		return err
	}
	selected, done := 0, 0
	var refused []error
	for {
		r, err := do(ctx, f, api.BulkRequest{Reason: reason, DryRun: !b.yes || b.dry})
		if err != nil {
			return err
		}
		selected, done = selected+r.Selected, done+r.Done
		for _, x := range r.Executions {
			switch {
			case x.Problem != nil:
				refused = append(refused, fmt.Errorf("%s %s: %s", verb, x.ID, x.Problem.Detail))
			case x.New != "":
				output.Printf(a.Out, "%s again as %s\n", x.ID, x.New)
			default:
				output.Printf(a.Out, "%s %s\n", x.ID, x.Status)
			}
		}
		if f.Cursor = r.NextCursor; f.Cursor == "" {
			break
		}
	}
	switch {
	case selected == 0:
		a.Say("nothing is selected")
	case b.dry:
		a.Say("%s would be done to %d of %d; nothing was changed", verb, done, selected)
	case !b.yes:
		return errors.Join(append(refused, exit.Usagef("%s these %d? Nothing was changed: say --yes to do it", verb, done))...)
	}
	return errors.Join(refused...)
}
