package server

import (
	"fmt"
	"net/http"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
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
	for _, text := range in.From {
		item, err := engine.ParseItem(text)
		if err != nil {
			return id, o, err
		}
		o.From = append(o.From, item)
	}
	return id, o, nil
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
		out.Tasks = append(out.Tasks, api.RerunTask{Task: t.Task, Decision: string(t.Decision), Reused: t.Reused, Runs: t.Runs, Items: t.Items, Reason: t.Reason})
	}
	return out
}
