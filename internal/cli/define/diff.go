package define

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

func DiffCommand(a *app.App) *cobra.Command {
	var logs bool
	c := &cobra.Command{
		Use:   "diff NAME[@VERSION] [NAME[@VERSION]] | ID ID",
		Short: "Show the differences between two versions of a definition, or between two executions",
		Long: `Show the changes between two versions of a workflow or an action, as a unified diff of their documents in YAML.

One argument with a version is compared with the latest version. A name without a version compares the two
latest versions. Documents are stored in a canonical form, so comments and the order of fields make no
difference. pawl get versions NAME lists the versions.

With the IDs of two executions: show how they differ in definition, input and result, as a unified diff in YAML
without IDs, times and measurements. For workflows also how each task ended, and the first task that differs.`,
		Example: `  pawl diff grade              what the last registration changed
  pawl diff grade@3            what has changed since
  pawl diff grade@3 grade@4
  pawl diff ex_06h0pyz9w9wnh7apg2aj7w14bg ex_06h0pywtg9xtsc6cbeaphqa6fm --logs`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			executions := 0
			for _, arg := range args {
				if strings.HasPrefix(arg, flow.ExecutionPrefix) {
					executions++
				}
			}
			switch {
			case executions == 1:
				return exit.Usagef("pawl diff compares two executions, or two versions: give two ids")
			case executions == 0 && logs:
				return exit.Usagef("--logs: definitions have none; give the ids of two executions")
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if executions == 2 {
					return diffOutcomes(ctx, a, s, args, logs)
				}
				return diff(ctx, a, s, args)
			})
		},
	}
	c.Flags().BoolVar(&logs, "logs", false, "executions: also compare their logs, up to 1 MB of each stream")
	return c
}

func diff(ctx context.Context, a *app.App, s *app.Session, args []string) error {
	old, err := definitionOf(ctx, s, args[0])
	if err != nil {
		return err
	}
	latest := old
	switch _, version, alias, _ := definition.SplitAction(args[0]); {
	case len(args) == 2:
		latest, err = definitionOf(ctx, s, args[1])
	case version > 0, alias != "":
		latest, err = s.Definition(ctx, old.Name, 0)
	case old.Version == 1:
		return exit.Usagef("%s has one version: there is nothing to compare it with", old.Name)
	default:
		old, err = s.Definition(ctx, old.Name, old.Version-1)
	}
	if err != nil {
		return err
	}
	var texts [2]bytes.Buffer
	for i, d := range []*api.Definition{old, latest} {
		if err := output.WriteYAML(&texts[i], d.Document); err != nil {
			return err
		}
	}
	title := func(d *api.Definition) string { return fmt.Sprintf("%s@%d", d.Name, d.Version) }
	changes := udiff.Unified(title(old), title(latest), texts[0].String(), texts[1].String())
	if changes == "" {
		fmt.Fprintf(a.Err, "pawl: %s and %s are the same\n", title(old), title(latest))
		return nil
	}
	_, err = fmt.Fprint(a.Out, output.CleanLines(changes))
	return err
}

// definitionOf loads the definition of NAME[@VERSION] or NAME@ALIAS.
func definitionOf(ctx context.Context, s *app.Session, text string) (*api.Definition, error) {
	name, version, alias, err := definition.SplitAction(text)
	if err != nil {
		return nil, exit.Usagef("%v", err)
	}
	if alias != "" {
		if version, err = versionOf(ctx, s, name, alias); err != nil {
			return nil, err
		}
	}
	return s.Definition(ctx, name, version)
}
