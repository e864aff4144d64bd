package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine"
)

// serveDeclared returns the definitions of a file that can be run. Workers of this process serve the queues that the file
// declares: they are the only ones, except on a database that others share.
func (a *app) serveDeclared(file string, defs []*definition.Definition) ([]*definition.Definition, error) {
	runnable := slices.DeleteFunc(slices.Clone(defs), func(d *definition.Definition) bool { return !d.Runnable() })
	if len(runnable) == 0 {
		return nil, exit.Usagef("%s has neither a workflow nor an action to run: pawl apply %s applies what else it has", file, file)
	}
	if !config.IsPostgres(a.config.Text("store")) {
		served := append(a.config.List("queues"), definition.DeclaredQueues(defs)...)
		slices.Sort(served)
		a.config.Values["queues"] = strings.Join(slices.Compact(served), ",")
	}
	return runnable, nil
}

// missingQueues checks that the workers here, which are the only ones, serve the queues that definitions name, and the one
// that the command names.
func (a *app) missingQueues(defs []*definition.Definition, named string) error {
	if config.IsPostgres(a.config.Text("store")) {
		return nil
	}
	here := a.config.List("queues")
	missing := func(where, queue string) error {
		return exit.Usagef("%s waits in queue %q, which the workers here do not serve: start them with --queues %s, declare it in the file (kind: queue, name: %s), or name a server that has workers for it with --server",
			where, queue, strings.Join(append(here, queue), ","), queue)
	}
	if named != "" && !slices.Contains(here, named) {
		return missing("this", named)
	}
	for _, d := range defs {
		for _, q := range d.QueueRefs() {
			if !slices.Contains(here, q.Name) {
				return missing(fmt.Sprintf("%s: %s %s", q.Position, d.Kind, d.Name), q.Name)
			}
		}
	}
	return nil
}

// undeclaredQueues lists the queues that definitions name and that neither they nor the settings make known. So pawl run
// refuses them with an engine of its own.
func (a *app) undeclaredQueues(defs []*definition.Definition) []api.FieldError {
	known := append(a.config.List("queues"), engine.DefaultQueue)
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

// validateThere asks the server what it would say of files when they are applied.
func (a *app) validateThere(ctx context.Context, files []source) ([]api.FieldError, error) {
	problems := []api.FieldError{}
	err := a.withClient(ctx, reading, func(ctx context.Context, s *session) error {
		for _, file := range files {
			v, err := s.Validate(ctx, file.content, file.name)
			if err != nil {
				return fmt.Errorf("validate %s: %w", file.name, err)
			}
			problems = append(problems, v.Problems...)
		}
		return nil
	})
	return problems, err
}

// inOrder puts the files that declare queues and nothing else before the others, which may name these queues, and those that
// have schedules or rules and nothing else behind them: these name actions.
func (a *app) inOrder(files []source) []source {
	rank := func(file source) int {
		defs, err := definition.Parse(file.name, file.content, a.mayKnowLanguage)
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
		ranks[file.name] = rank(file)
	}
	slices.SortStableFunc(files, func(x, y source) int { return ranks[x.name] - ranks[y.name] })
	return files
}
