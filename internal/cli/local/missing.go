// Package local checks whether the engine and the workers of this process, which are the only ones if no server is named, can run what
// a command submits.
package local

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"fmt"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime/docker"
	"maps"
)

// MissingRuntime returns an error if work that can only run here needs a runtime that is missing.
func MissingRuntime(a *app.App, where string, kind flow.Kind, with json.RawMessage) error {
	need := ""
	for _, n := range payload.Needs(kind, with) {
		if _, language := flow.OfferedLanguage(n); !language { // MissingTools has checked the language's profile
			need = n
		}
	}
	here := a.Config.List("runtime")
	if need == "" || strings.Contains(need, "${{") || config.IsPostgres(a.Config.Text("store")) || slices.Contains(here, need) ||
		need == payload.AnyContainer && (slices.Contains(here, docker.Name) || slices.Contains(here, config.Kubernetes)) {
		return nil
	}
	if need == payload.AnyContainer {
		return exit.Usagef("%s runs containers, which runtime %s does not: add docker, with --runtime %s", where,
			strings.Join(here, ","), strings.Join(append(here, docker.Name), ","))
	}
	return exit.Usagef("%s needs runtime %q, which is not in use here: add it, with --runtime %s, or leave runtime out", where, need,
		strings.Join(append(here, need), ","))
}

// MissingLabels returns an error if the workers here, which are the only ones, lack requested labels.
func MissingLabels(a *app.App, where string, wanted map[string]string) error {
	if config.IsPostgres(a.Config.Text("store")) {
		return nil
	}
	here := a.Config.Labels()
	missing := map[string]string{}
	for key, value := range wanted {
		if has, ok := here[key]; !ok || has != value {
			missing[key] = value
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return exit.Usagef("%s needs a worker with %s, which the workers here do not have: give them these with --labels %s, or name a server that has such workers with --server",
		where, flow.LabelText(missing), flow.LabelText(wanted))
}

func missingLabelsOf(a *app.App, d *definition.Definition) error {
	all := []error{MissingLabels(a, string(d.Kind)+" "+d.Name, d.Settings.WorkerLabels)}
	if d.Workflow != nil {
		for _, t := range d.Workflow.Tasks {
			all = append(all, MissingLabels(a, "task "+t.Name, t.Settings.WorkerLabels))
		}
	}
	return errors.Join(all...)
}

// MissingTool returns an error if this machine lacks the tool of a language.
func MissingTool(a *app.App, what, name string) error {
	tool, install := a.Config.Languages.Missing(name)
	if tool == "" {
		return nil
	}
	return fmt.Errorf("%s needs %s to run its %s code, and %s is not on this machine's PATH: %s and try again", what, tool, name, tool, install)
}

// step is an action in a definition.
type step struct {
	Action string          `json:"action"`
	With   json.RawMessage `json:"with"`
}

// stepsOf lists the action of a definition and those of its tasks.
func stepsOf(d *definition.Definition) ([]step, error) {
	var doc struct {
		step
		Tasks map[string]step `json:"tasks"`
	}
	if err := json.Unmarshal(d.Canonical(), &doc); err != nil {
		return nil, fmt.Errorf("read definition %s: %w", d.Name, err)
	}
	return append([]step{doc.step}, slices.Collect(maps.Values(doc.Tasks))...), nil
}

// MissingTools checks the languages of all code in definitions. It sees only literal languages; a computed one is checked when it runs.
func MissingTools(a *app.App, defs []*definition.Definition) error {
	languageIn := func(s step) string {
		var with struct {
			Language string `json:"language"`
		}
		if s.Action != "code" || json.Unmarshal(s.With, &with) != nil {
			return ""
		}
		name, _ := a.Config.Languages.Set().Resolve(with.Language)
		return name
	}
	var seen []string
	for _, d := range defs {
		steps, err := stepsOf(d)
		if err != nil {
			return err
		}
		for _, s := range steps {
			if name := languageIn(s); name != "" && !slices.Contains(seen, name) {
				seen = append(seen, name)
				if err := MissingTool(a, string(d.Kind)+" "+d.Name, name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// MissingRuntimes checks, for definitions that run only in this process, whether it has the necessary handlers, runtimes and labels.
func MissingRuntimes(a *app.App, defs []*definition.Definition) error {
	for _, d := range defs {
		if d.Action != nil && d.Action.Handler != "" && !config.IsPostgres(a.Config.Text("store")) {
			return exit.Usagef("action %s is run by programs that serve handler %q, and none of them can reach the engine of this command: start pawl server and such a program, and name the server with --server",
				d.Name, d.Action.Handler)
		}
		steps, err := stepsOf(d)
		if err != nil {
			return err
		}
		if err := missingLabelsOf(a, d); err != nil {
			return err
		}
		for _, s := range steps {
			if err := MissingRuntime(a, string(d.Kind)+" "+d.Name, flow.Kind(s.Action), s.With); err != nil {
				return err
			}
		}
	}
	return nil
}

// ServeDeclared returns the runnable definitions of a file. The workers of this process serve the queues that the file
// declares: they are the only workers, except on a shared database.
func ServeDeclared(a *app.App, file string, defs []*definition.Definition) ([]*definition.Definition, error) {
	runnable := slices.DeleteFunc(slices.Clone(defs), func(d *definition.Definition) bool { return !d.Runnable() })
	if len(runnable) == 0 {
		return nil, exit.Usagef("%s has neither a workflow nor an action to run: pawl apply %s applies what else it has", file, file)
	}
	if !config.IsPostgres(a.Config.Text("store")) {
		served := append(a.Config.List("queues"), definition.DeclaredQueues(defs)...)
		slices.Sort(served)
		a.Config.Values["queues"] = strings.Join(slices.Compact(served), ",")
	}
	return runnable, nil
}

// MissingQueues checks that the workers here, which are the only ones, serve the queues that definitions name, and the
// queue that the command names.
func MissingQueues(a *app.App, defs []*definition.Definition, named string) error {
	if config.IsPostgres(a.Config.Text("store")) {
		return nil
	}
	here := a.Config.List("queues")
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
