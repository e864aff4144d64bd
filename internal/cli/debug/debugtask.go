package debug

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/client"
	"github.com/pawl-run/pawl/internal/cli/exit"
)

// taskStep is one step of a path to a task: its name, and optionally an item.
var taskStep = regexp.MustCompile(`^([^\[\]/]+)(?:\[(\d{1,9})\])?$`)

// debugged finds the named execution, or the execution of a task in it: "test[3]", "deploy/verify".
func debugged(ctx context.Context, c *client.Client, id, path string) (*api.Execution, error) {
	x, err := c.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	var steps []string
	if path != "" {
		steps = strings.Split(path, "/")
	}
	for i, step := range steps {
		if x.Kind != "workflow" {
			return nil, exit.Usagef("--task %s: %s is not a workflow", path, stepsText(id, steps[:i]))
		}
		if x, err = taskOf(ctx, c, x, step); err != nil {
			return nil, err
		}
	}
	if x.Kind != "workflow" {
		return x, nil
	}
	tasks, err := c.Tasks(ctx, x.ID, namedItems)
	if err != nil {
		return nil, err
	}
	return nil, exit.Usagef("%s is a workflow, whose attempts are those of its tasks: name one with --task: %s", stepsText(id, steps), strings.Join(taskNames(tasks), ", "))
}

// stepsText is the text for a task of an execution.
func stepsText(id string, steps []string) string {
	if len(steps) == 0 {
		return id
	}
	return "task " + strings.Join(steps, "/")
}

// namedItems is the number of items of a task that are listed.
const namedItems = 5

// taskNames are the tasks of a workflow in the form of a path. Failed tasks come first.
func taskNames(tasks *api.Tasks) []string {
	var failed, others []string
	for i := range tasks.Tasks {
		t := &tasks.Tasks[i]
		name := t.Name
		switch {
		case t.Created == 0 && len(t.Executions) == 0:
			continue
		case t.Many():
			name = fmt.Sprintf("'%s[0]'", t.Name)
			if t.Created > 1 {
				name = fmt.Sprintf("'%s[0]' to '%s[%d]'", t.Name, t.Name, t.Created-1)
			}
		}
		if bad := badItems(t); t.Status == api.Failed || t.Status == api.TimedOut {
			failed = append(failed, name+bad)
		} else {
			others = append(others, name)
		}
	}
	if len(failed)+len(others) == 0 {
		return []string{"none has started"}
	}
	return append(failed, others...)
}

// badItems lists items of a task that did not complete.
func badItems(t *api.Task) string {
	if !t.Many() {
		return " (failed)"
	}
	var bad []string
	for i := range t.Executions {
		if e := &t.Executions[i]; e.Status == api.Failed || e.Status == api.TimedOut {
			bad = append(bad, fmt.Sprintf("[%d]", e.Index))
		}
	}
	if len(bad) == 0 {
		return " (failed)"
	}
	return " (failed: " + strings.Join(bad, ", ") + ")"
}

// taskOf finds the execution of a task of a workflow, the latest if the workflow had several attempts.
func taskOf(ctx context.Context, c *client.Client, x *api.Execution, step string) (*api.Execution, error) {
	m := taskStep.FindStringSubmatch(step)
	if m == nil {
		return nil, exit.Usagef("%q is not written as name or name[3]", step)
	}
	tasks, err := c.Tasks(ctx, x.ID, namedItems)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(tasks.Tasks, func(t api.Task) bool { return t.Name == m[1] })
	if at < 0 {
		return nil, exit.Usagef("there is no task %s: %s", m[1], strings.Join(taskNames(tasks), ", "))
	}
	t := &tasks.Tasks[at]
	index := 0
	switch {
	case m[2] != "":
		index, _ = strconv.Atoi(m[2]) // of nine digits at most
		if !t.Many() && index > 0 {
			return nil, exit.Usagef("task %s has no items: leave out [%d]", t.Name, index)
		}
	case t.Many() && t.Created > 1:
		return nil, exit.Usagef("task %s has %d items: name one, as %s", t.Name, t.Created, strings.Join(taskNames(&api.Tasks{Tasks: []api.Task{*t}}), ""))
	}
	for i := range t.Executions {
		if t.Executions[i].Index == index {
			return c.Get(ctx, t.Executions[i].ID)
		}
	}
	for child, err := range c.All(ctx, client.Filter{Workflow: x.ID, Limit: 1000}) {
		if err != nil {
			return nil, err
		}
		if child.Task == t.Name && child.Index == index {
			return c.Get(ctx, child.ID)
		}
	}
	if t.Created == 0 {
		return nil, exit.Usagef("task %s has not run: it is %s", t.Name, t.Status)
	}
	return nil, exit.Usagef("task %s has no item %d: it has %d", t.Name, index, t.Created)
}
