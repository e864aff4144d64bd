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

func (c *call) rerun() error {
	id, o, err := c.rerunOptions()
	if err != nil {
		return err
	}
	again, _, err := c.Engine.Rerun(c.ctx(), id, o)
	if err != nil {
		return fmt.Errorf("rerun %s: %w", id, err)
	}
	return c.again(again)
}

func (c *call) planRerun() error {
	id, o, err := c.rerunOptions()
	if err != nil {
		return err
	}
	plan, err := c.Engine.PlanRerun(c.ctx(), id, o)
	if err != nil {
		return fmt.Errorf("plan a rerun of %s: %w", id, err)
	}
	return c.json(http.StatusOK, renderPlan(id, plan))
}

// rerunOptions reads what is asked of a rerun.
func (c *call) rerunOptions() (id flow.ID, o engine.RerunOptions, err error) {
	if id, err = c.execution(); err != nil {
		return id, o, err
	}
	var in api.RerunRequest
	if err := c.decodeOptional(&in); err != nil {
		return id, o, err
	}
	o = engine.RerunOptions{Input: in.Input, Definition: in.Definition, IdempotencyKey: c.r.Header.Get("Idempotency-Key")}
	if o.From, err = items("from", in.From); err == nil {
		o.Only, err = items("only", in.Only)
	}
	o.By = in.By
	for _, text := range slices.Sorted(maps.Keys(in.Outputs)) {
		item, bad := engine.ParseItem("outputs", text)
		if bad != nil {
			return id, o, bad
		}
		o.Outputs = append(o.Outputs, flow.GivenOutput{Task: item.Task, Index: item.Index, Output: in.Outputs[text]})
	}
	return id, o, err
}

// items reads tasks, and items of tasks.
func items(path string, texts []string) (all []orchestration.Item, err error) {
	for _, text := range texts {
		item, err := engine.ParseItem(path, text)
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

func renderPlan(of flow.ID, p *engine.RerunPlan) api.RerunPlan {
	out := api.RerunPlan{Of: of.String(), Action: p.Action, Version: p.Version}
	if p.Workflow == nil {
		return out
	}
	out.Reused = len(p.Workflow.Reuses)
	if p.Workflow.Stage != 0 {
		out.Status, out.Error = status(p.Workflow.Stage), renderError(p.Workflow.Outcome.Error)
	}
	for _, t := range p.Workflow.Tasks {
		out.Tasks = append(out.Tasks, api.RerunTask{Task: t.Task, Decision: string(t.Decision), Reused: t.Reused, Given: t.Given, Runs: t.Runs, Items: t.Items, Reason: t.Reason})
	}
	return out
}
