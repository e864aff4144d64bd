package define

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/listing"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
)

func AliasCommand(a *app.App) *cobra.Command {
	var o api.AliasOrder
	var f output.Format
	c := &cobra.Command{
		Use:   "alias NAME[@ALIAS] [VERSION [VERSION=PERCENT%…]]",
		Short: "Name versions of a definition, for example deploy@stable",
		Long: `List and move the aliases of a workflow or an action. A name alone lists its aliases, an alias lists its moves,
and an alias with versions moves it there. NAME@ALIAS can be run, and used as the action of tasks, schedules and
rules. A submission by alias gets the version that the alias stands for at that time, and records both; running
executions keep their version.

With several versions, all but one have a percentage: 3 4=10% gives version 4 to one execution in ten and
version 3 to the others. The same idempotency key always gets the same version, and so do all tasks of a
workflow.

NAME@latest is what NAME alone stands for. It is the newest version, unless it was moved, or a version was
registered for an alias (pawl apply --alias).`,
		Example: `  pawl alias grade                       where its aliases stand
  pawl alias grade@stable 3              move it, and keep who did it and when
  pawl alias grade@stable 3 4=10%        let one of ten try version 4
  pawl alias grade@stable --back         to where it stood before the last move
  pawl alias grade@stable                its moves`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, version, alias, err := definition.SplitAction(args[0])
			switch {
			case err != nil:
				return exit.Usagef("%v", err)
			case version > 0:
				return exit.Usagef("%s names a version: give NAME, or NAME@ALIAS and the version after it", args[0])
			case alias == "" && len(args) == 2:
				if named, to, ok := strings.Cut(args[1], "="); ok && definition.IsAlias(named) {
					return exit.Usagef("%s: an alias is written behind the name: pawl alias %s@%s %s", args[1], name, named, to)
				}
			}
			if o.To, err = aliasTargets(args[1:]); err != nil {
				return err
			}
			moves := len(o.To) > 0 || o.Back || o.Remove
			switch {
			case moves && alias == "":
				return exit.Usagef("say which alias of %s is to be moved: %s@stable", name, name)
			case len(o.To) > 0 && (o.Back || o.Remove) || o.Back && o.Remove:
				return exit.Usagef("give versions, --back or --remove: one of them")
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				if !moves {
					return listAliases(ctx, a, s, name, alias, f)
				}
				if err := app.FillBy(&o.By, "--by"); err != nil {
					return err
				}
				moved, err := s.MoveAlias(ctx, name, alias, o)
				return output.Show(a.Out, f, moved, err, func() {
					stands := "stands for " + targetsText(moved.To)
					if len(moved.To) == 0 {
						stands = "is removed"
					}
					if !moved.Moved {
						stands += " already"
					}
					output.Printf(a.Out, "%s@%s %s\n", name, alias, stands)
				})
			})
		},
	}
	fl := c.Flags()
	fl.BoolVar(&o.Back, "back", false, "undo its last move")
	fl.BoolVar(&o.Remove, "remove", false, "remove it; latest then means the newest version again")
	fl.StringVar(&o.By, "by", "", "who moves it (default: the current user)")
	fl.StringVar(&o.Reason, "reason", "", "reason, kept for later readers")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// aliasTargets parses 3 or 4=10%.
func aliasTargets(args []string) (to []api.AliasTarget, err error) {
	for _, arg := range args {
		text, percent, has := strings.Cut(arg, "=")
		t := api.AliasTarget{}
		if t.Version, err = strconv.Atoi(text); err != nil || t.Version < 1 {
			return nil, exit.Usagef("%q: give a version such as 3, or with a part of the executions 4=10%%", arg)
		}
		if has {
			if t.Percent, has = app.Number(strings.TrimSuffix(percent, "%")); !has || t.Percent < 0.01 || t.Percent > 100 {
				return nil, exit.Usagef("%q: after = comes a percentage from 0.01 to 100, as in 4=10%%", arg)
			}
		}
		to = append(to, t)
	}
	return to, nil
}

func targetsText(all []api.AliasTarget) string {
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = strconv.Itoa(t.Version)
		if t.Percent > 0 {
			texts[i] += fmt.Sprintf("=%v%%", t.Percent)
		}
	}
	return strings.Join(texts, " ")
}

func listAliases(ctx context.Context, a *app.App, s *app.Session, name, alias string, f output.Format) error {
	var all []api.Alias
	var err error
	if alias == "" {
		all, err = s.Aliases(ctx, name)
	} else {
		all, err = listing.First(s.AliasMoves(ctx, name, alias), math.MaxInt)
	}
	return output.Show(a.Out, f, all, err, func() {
		t := output.Titled("ALIAS", "MOVE", "VERSIONS", "AT", "BY", "REASON")
		for i := range all {
			m := &all[i]
			to := cmp.Or(targetsText(m.To), "removed")
			t.Row(m.Name+"@"+m.Alias, strconv.Itoa(m.Number), to, output.When(&m.At), m.By, m.Reason)
		}
		t.Write(a.Out)
	})
}

// versionOf is the version that an alias stands for; 0: the newest.
func versionOf(ctx context.Context, s *app.Session, name, alias string) (int, error) {
	for move, err := range s.AliasMoves(ctx, name, alias) {
		switch {
		case alias == definition.LatestAlias && client.IsNotFound(err):
			return 0, nil
		case err != nil:
			return 0, err
		case len(move.To) > 1:
			return 0, exit.Usagef("%s@%s stands for %d versions (%s): name one of them", name, alias, len(move.To), targetsText(move.To))
		case len(move.To) == 1:
			return move.To[0].Version, nil
		case alias == definition.LatestAlias:
			return 0, nil
		}
		break // the last move removed it
	}
	return 0, exit.Usagef("there is no alias %s@%s any more: pawl alias %s lists those that there are", name, alias, name)
}
