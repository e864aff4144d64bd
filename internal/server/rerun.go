package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
)

func (c *call) rerun(id flow.ID, in *api.RerunRequest) error {
	o, err := c.rerunOptions(in)
	if err != nil {
		return err
	}
	return c.again(func() (engine.Submitted, error) {
		again, _, err := c.Engine.Rerun(c.ctx(), id, o)
		if err != nil {
			return again, fmt.Errorf("rerun %s: %w", id, err)
		}
		return again, nil
	})
}

func (c *call) planRerun(id flow.ID, in *api.RerunRequest) error {
	o, err := c.rerunOptions(in)
	if err != nil {
		return err
	}
	plan, err := c.Engine.PlanRerun(c.ctx(), id, o)
	if err != nil {
		return fmt.Errorf("plan a rerun of %s: %w", id, err)
	}
	return c.json(http.StatusOK, renderPlan(id, plan))
}

// rerunOptions reads paths to tasks, and to items of tasks.
func (c *call) rerunOptions(in *api.RerunRequest) (engine.RerunOptions, error) {
	o := engine.RerunOptions{Input: in.Input, Definition: in.Definition, IdempotencyKey: c.r.Header.Get("Idempotency-Key")}
	o.By = in.By
	for _, text := range in.From {
		if err := o.Name("from", text, nil); err != nil {
			return o, err
		}
	}
	for _, text := range in.Only {
		if err := o.Name("only", text, nil); err != nil {
			return o, err
		}
	}
	for _, text := range slices.Sorted(maps.Keys(in.Outputs)) {
		if err := o.Name("outputs", text, in.Outputs[text]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func renderPlan(of flow.ID, p *engine.RerunPlan) api.RerunPlan {
	out := api.RerunPlan{Of: of.String(), Action: p.Action, Version: p.Version}
	if p.Workflow == nil {
		return out
	}
	out.Reused = p.Reused()
	if p.Workflow.Stage != 0 {
		out.Status, out.Error = status(p.Workflow.Stage), renderError(p.Workflow.Outcome.Error)
	}
	out.Tasks = renderTasks(p.Workflow.Tasks)
	for i := range p.Parts {
		k := &p.Parts[i]
		out.Within = append(out.Within, api.RerunWithin{Path: k.Path, Of: k.Of.String(), Action: k.Action, Version: k.Version, Tasks: renderTasks(k.Plan.Tasks)})
	}
	return out
}

func renderTasks(all []orchestration.Planned) (tasks []api.RerunTask) {
	for _, t := range all {
		tasks = append(tasks, api.RerunTask{Task: t.Task, Decision: string(t.Decision), Reused: t.Reused, Given: t.Overridden, Runs: t.Runs,
			Items: t.Items, Reason: t.Reason})
	}
	return tasks
}
