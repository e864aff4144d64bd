package cli

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/internal/cli/config"
	"github.com/pawl-run/pawl/internal/cli/exit"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/runtime/docker"
)

// missingRuntime checks that what runs here and nowhere else has the runtime that it needs.
func (a *app) missingRuntime(where string, kind flow.Kind, with json.RawMessage) error {
	need := ""
	for _, n := range payload.Needs(kind, with) {
		if _, language := flow.OfferedLanguage(n); !language { // whether there is a profile of it has been looked at
			need = n
		}
	}
	here := a.config.List("runtime")
	if need == "" || strings.Contains(need, "${{") || config.IsPostgres(a.config.Text("store")) || slices.Contains(here, need) ||
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

// missingLabels checks that the workers here, which are the only ones, have the labels that something asks for.
func (a *app) missingLabels(where string, wanted map[string]string) error {
	if config.IsPostgres(a.config.Text("store")) {
		return nil
	}
	here := a.config.Labels()
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

// missingLabelsOf checks so for a definition.
func (a *app) missingLabelsOf(d *definition.Definition) error {
	all := []error{a.missingLabels(string(d.Kind)+" "+d.Name, d.Settings.WorkerLabels)}
	if d.Workflow != nil {
		for _, t := range d.Workflow.Tasks {
			all = append(all, a.missingLabels("task "+t.Name, t.Settings.WorkerLabels))
		}
	}
	return errors.Join(all...)
}
