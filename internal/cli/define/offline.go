package define

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/automation"
	"github.com/pawl-run/pawl/internal/cli/app"
	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
)

// offline checks definitions against one another, without a server. What only a server can check gives a warning.
func offline(a *app.App, defs []*definition.Definition) (problems, warnings []api.FieldError) {
	problems = append(undeclaredQueues(a, defs), loops(defs)...)
	mistaken, open := mentioned(defs)
	if len(open) > 0 {
		warnings = append(warnings, api.FieldError{Message: "not checked, as these files do not have it: " + strings.Join(open, ", "), Fix: "name a server that knows it with --server"})
	}
	return append(problems, mistaken...), warnings
}

// mentioned checks the actions and triggers that documents name. problems are wrong names, for example a workflow named as an action; open
// lists names that the files do not declare and that a server may know.
func mentioned(defs []*definition.Definition) (problems []api.FieldError, open []string) {
	here, triggers := map[string]*definition.Definition{}, map[string]*definition.Trigger{}
	var emitted []string // prefixes of the names that triggers of webhooks emit
	for _, d := range defs {
		switch {
		case d.Runnable():
			here[d.Name] = d
		case d.Kind == definition.KindTrigger:
			triggers[d.Name] = d.Trigger
		case d.Webhook != nil:
			begin, _, _ := strings.Cut(d.Webhook.TriggerText, "${{")
			emitted = append(emitted, begin)
		}
	}
	names := slices.Concat(definition.BuiltIns, slices.Sorted(maps.Keys(here)))
	var work definition.Work
	note := func(what string) {
		if !slices.Contains(open, what) {
			open = append(open, what)
		}
	}
	for _, d := range defs {
		for _, r := range d.References() {
			name, _, _ := strings.Cut(r.Name, "@")
			if name == "" {
				continue // its place already has a problem
			}
			switch near := problem.Nearest(name, names); {
			case here[name] != nil && r.Version == 0 && name == r.Name && r.Kind == definition.KindWorkflow && here[name].Kind != r.Kind:
				problems = append(problems, api.FieldError{Path: placeOf(&r), Message: fmt.Sprintf("%q is an action, not a workflow", name),
					Fix: "name it as the task's action instead", File: r.Position.File, Line: r.Position.Line, Column: r.Position.Column})
			case here[name] != nil && (r.Version == 0 && name == r.Name):
				for _, p := range d.Misfits(&r, here[name], &work) {
					problems = append(problems, api.FieldError{Path: p.Path, Message: p.Message, Fix: p.Fix, File: p.File, Line: p.Line, Column: p.Column})
				}
			case here[name] != nil:
				note(fmt.Sprintf("a version of %s", name))
			case near != "" && strings.HasPrefix(near, `did you mean "`+name[:1]): // a misspelt name nearly always has the right first letter
				problems = append(problems, api.FieldError{Path: placeOf(&r), Message: fmt.Sprintf("there is no action %q in these files", name),
					Fix:  near + " Where an action of this name is registered, --server asks for it",
					File: r.Position.File, Line: r.Position.Line, Column: r.Position.Column})
			default:
				note(fmt.Sprintf("action %s", name))
			}
		}
		for _, r := range d.Awaited() {
			switch k := triggers[r.Trigger]; {
			case k == nil:
				note(fmt.Sprintf("trigger %s", r.Trigger))
			case !k.Waits:
				problems = append(problems, api.FieldError{Path: r.Path, Message: fmt.Sprintf("nothing can wait for the trigger %q", r.Trigger),
					Fix: "add waits: true to its document", File: r.Position.File, Line: r.Position.Line, Column: r.Position.Column})
			}
		}
		if d.Rule == nil {
			continue
		}
		for _, on := range d.Rule.On {
			known := triggers[on] != nil || strings.HasSuffix(on, ".*") || flow.OwnTrigger(on)
			if !known && !slices.ContainsFunc(emitted, func(begin string) bool { return begin != "" && strings.HasPrefix(on, begin) }) {
				note(fmt.Sprintf("trigger %s", on))
			}
		}
	}
	return problems, open
}

func placeOf(r *definition.Ref) string {
	if r.Task == "" {
		return "run.action"
	}
	return problem.Join(problem.Join("tasks", r.Task), "action")
}

// loops are rules of the files that trigger each other through the ends of the executions that they start.
func loops(defs []*definition.Definition) (problems []api.FieldError) {
	var rules []*automation.Rule
	at := map[string]definition.Position{}
	own := map[string]map[string]string{}
	for _, d := range defs {
		if d.Rule != nil {
			rules = append(rules, &automation.Rule{Name: d.Name, Rule: d.Rule})
			at[d.Name] = d.Position
		}
		if d.Runnable() {
			own[d.Name] = d.Settings.Labels
		}
	}
	for _, names := range automation.Cycles(rules, func(action string, _ int) map[string]string { return own[action] }) {
		p := at[names[0]]
		problems = append(problems, api.FieldError{Path: "on", File: p.File, Line: p.Line, Column: p.Column,
			Message: "the rules lead to one another without end: " + strings.Join(append(names, names[0]), " → "),
			Fix:     "name other actions in `if`, or write reentry: allow where it ends by itself"})
	}
	return problems
}
