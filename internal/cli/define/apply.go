// Package define contains the commands about definitions and their versions: apply, validate, diff, compare, alias, retire,
// pause, resume.
package define

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/cli/output"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
)

func ApplyCommand(a *app.App) *cobra.Command {
	var f output.Format
	var alias, by string
	c := &cobra.Command{
		Use:   "apply FILE…",
		Short: "Register the workflows, actions, queues, schedules, triggers and rules in files",
		Long: `Register the workflows, actions, queues, schedules, triggers and rules in files (- is standard input, a
directory means the YAML and JSON files in it). Changed definitions get a new version; running executions keep
the version that they started with. Files with only queues are registered first, files with only schedules and
rules last, all others in the given order.

A definition that refers to a retired one (pawl retire) is registered with a warning on standard error: tasks
still run it, but schedules and rules cannot start it.

With --alias next, only NAME@next gets the workflows and actions that are registered now: NAME alone and other
aliases keep their versions, also as actions of tasks. Later, pawl alias NAME@latest --remove lets NAME stand
for the newest version again. Schedules, rules, triggers and webhooks in the files have no aliases and take
effect immediately.`,
		Example: `  pawl apply workflows/
  pawl apply grade.yaml && pawl run grade
  pawl apply grade.yaml --alias next && pawl run grade@next`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := a.ReadFiles(args)
			if err != nil {
				return err
			}
			if err := app.FillBy(&by, "--by"); err != nil && alias != "" {
				return err
			}
			return a.WithClient(cmd.Context(), app.Reading, func(ctx context.Context, s *app.Session) error {
				all := []api.DefinedVersion{}
				for _, file := range inOrder(a, files) {
					d, err := s.DefineFor(ctx, file.Content, file.Name, alias, by)
					if err != nil {
						return fmt.Errorf("apply %s: %w", file.Name, err)
					}
					all = append(all, d.Definitions...)
					for _, w := range d.Warnings {
						a.Say("pawl: warning: %s", w.String())
					}
				}
				if f != output.AsTable {
					return output.WriteData(a.Out, f, all)
				}
				for _, d := range all {
					state := "unchanged"
					if d.Created {
						state = "registered"
					}
					if d.Latest > 0 && d.Latest != d.Version {
						state += fmt.Sprintf("; %s goes on to stand for version %d", d.Name, d.Latest)
					}
					output.Printf(a.Out, "%s %s@%d %s\n", d.Kind, d.Name, d.Version, state)
				}
				if s.Embedded {
					a.Say("pawl: no server is named or works here, so this is for later commands on the state directory %s", a.Config.Text("state_dir"))
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&alias, "alias", "", "move this alias to the registered versions; the name without @ keeps its version")
	c.Flags().StringVar(&by, "by", "", "who moves the alias (default: the current user)")
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

func ValidateCommand(a *app.App) *cobra.Command {
	var f output.Format
	c := &cobra.Command{
		Use:   "validate FILE…",
		Short: "Check workflow files and report all errors",
		Long: `Check the workflows, actions, queues, schedules, triggers and rules in files without registering anything. Every
error is printed as file:line:column, with the wrong value and how to fix it. No server or database is needed:
each queue that a file names must then be declared in one of the files (kind: queue) or be listed in --queues,
as for pawl run without a server. References that only a server can check, such as registered actions, cause a
warning. With --server, the server checks each file completely, as pawl apply would.

Exit codes: 0 no errors, 1 errors, 2 a file cannot be read.`,
		Example: "  pawl validate examples/*.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := a.ReadFiles(args)
			if err != nil {
				return &exit.Error{Code: exit.Misuse, Err: err}
			}
			problems, warnings := []api.FieldError{}, []api.FieldError{}
			var defs []*definition.Definition
			unnamed := false
			for _, file := range files {
				found, wrong := definition.Examine(file.Name, file.Content, a.MayKnowLanguage)
				if defs = append(defs, found...); len(found) == 0 {
					unnamed = true
				}
				for _, p := range wrong {
					problems = append(problems, api.FieldError(p))
				}
			}
			switch {
			case a.Config.Text("server") == "" && len(problems) > 0:
				if !unnamed { // otherwise the files may contain the mentioned names
					mistaken, _ := mentioned(defs)
					problems = append(problems, append(undeclaredQueues(a, defs), mistaken...)...)
				}
			case a.Config.Text("server") == "":
				more, open := offline(a, defs)
				problems, warnings = append(problems, more...), append(warnings, open...)
			default:
				if problems, warnings, err = validateThere(cmd.Context(), a, files); err != nil {
					return err
				}
			}
			for _, w := range warnings {
				a.Say("pawl: warning: %s", w.String())
			}
			if f != output.AsTable {
				v := api.Validation{Valid: len(problems) == 0, Problems: problems, Warnings: warnings}
				for _, d := range defs {
					v.Definitions = append(v.Definitions, api.DefinedVersion{Name: d.Name, Kind: string(d.Kind)})
				}
				if err := output.WriteData(a.Out, f, v); err != nil {
					return err
				}
			} else {
				for _, p := range problems {
					fmt.Fprintln(a.Out, p.String())
				}
				if len(problems) == 0 {
					for _, d := range defs {
						output.Printf(a.Out, "%s: %s %s is valid\n", d.Position.File, d.Kind, d.Name)
					}
				}
			}
			if len(problems) > 0 {
				return &exit.Error{Code: exit.General, Err: fmt.Errorf("%s in %s", output.Plural(len(problems), "problem", "problems"), output.Plural(len(files), "file", "files"))}
			}
			return nil
		},
	}
	output.FormatFlag(c, &f, output.AsTable, output.AsJSON, output.AsYAML)
	return c
}

// undeclaredQueues lists the queues that definitions name but that neither they nor the settings declare. `pawl run`
// with an engine in its own process refuses them, too.
func undeclaredQueues(a *app.App, defs []*definition.Definition) []api.FieldError {
	known := append(a.Config.List("queues"), flow.DefaultQueue)
	known = append(known, definition.DeclaredQueues(defs)...)
	var problems []api.FieldError
	for _, d := range defs {
		for _, q := range d.QueueRefs() {
			if !slices.Contains(known, q.Name) {
				problems = append(problems, api.FieldError{Path: q.Path, Message: fmt.Sprintf("none of these files declares queue %q", q.Name),
					Fix:  fmt.Sprintf("add a document that does (kind: queue, name: %[1]s), name it with --queues default,%[1]s, or name a server that knows it with --server", q.Name),
					File: q.Position.File, Line: q.Position.Line, Column: q.Position.Column})
			}
		}
	}
	return problems
}

// validateThere asks the server for the errors and warnings that applying files would give.
func validateThere(ctx context.Context, a *app.App, files []app.Source) (problems, warnings []api.FieldError, err error) {
	problems = []api.FieldError{}
	err = a.WithClient(ctx, app.Reading, func(ctx context.Context, s *app.Session) error {
		for _, file := range files {
			v, err := s.Validate(ctx, file.Content, file.Name)
			if err != nil {
				return fmt.Errorf("validate %s: %w", file.Name, err)
			}
			problems, warnings = append(problems, v.Problems...), append(warnings, v.Warnings...)
		}
		return nil
	})
	return problems, warnings, err
}

// inOrder puts files that only declare queues first, because others may name these queues, and files that contain only
// schedules or rules last, because these name actions.
func inOrder(a *app.App, files []app.Source) []app.Source {
	rank := func(file app.Source) int {
		defs, err := definition.Parse(file.Name, file.Content, a.MayKnowLanguage)
		only := func(kinds ...definition.Kind) bool {
			return err == nil && !slices.ContainsFunc(defs, func(d *definition.Definition) bool { return !slices.Contains(kinds, d.Kind) })
		}
		switch {
		case only(definition.KindQueue):
			return 0
		case only(definition.KindSchedule, definition.KindRule):
			return 2
		}
		return 1
	}
	ranks := make(map[string]int, len(files))
	for _, file := range files {
		ranks[file.Name] = rank(file)
	}
	slices.SortStableFunc(files, func(x, y app.Source) int { return ranks[x.Name] - ranks[y.Name] })
	return files
}
