package server

import (
	"fmt"
	"net/http"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
)

const (
	// rerunsPlanned is how many of the selected executions a plan plans, rerunsAtOnce how many reruns are under way unless the request says so.
	rerunsPlanned = 50
	rerunsAtOnce  = 10
	// rerunLooks is how many times as far as a list the executions are looked for.
	rerunLooks = 10
)

// rerunMany runs executions again that are named or selected, in an execution of its own, or plans that.
func (c *call) rerunMany() error {
	var in api.RerunManyRequest
	if err := c.decodeOptional(&in); err != nil {
		return err
	}
	found, out, err := c.toRerun(&in)
	if err != nil {
		return err
	}
	if in.Plan {
		if err := c.planMany(found, &in, &out); err != nil {
			return err
		}
		return c.json(http.StatusOK, out)
	}
	if len(found) == 0 {
		return c.json(http.StatusOK, out)
	}
	ids := make([]flow.ID, len(found))
	for i, x := range found {
		ids[i] = x.ID
	}
	o := engine.RerunManyOptions{AtOnce: in.AtOnce, Definition: in.Definition, From: in.From, IdempotencyKey: c.r.Header.Get("Idempotency-Key")}
	if o.AtOnce == 0 {
		o.AtOnce = rerunsAtOnce
	}
	s, err := c.Engine.RerunMany(c.ctx(), ids, o)
	if err != nil {
		return fmt.Errorf("run executions again: %w", err)
	}
	out.Execution = s.Execution.String()
	c.w.Header().Set("Location", "/api/v1/executions/"+out.Execution)
	if s.Existing {
		return c.json(http.StatusOK, out)
	}
	return c.json(http.StatusAccepted, out)
}

// toRerun loads what a request names or selects, page by page, until there are enough, or it has looked far enough.
func (c *call) toRerun(in *api.RerunManyRequest) (found []*flow.Execution, out api.RerunMany, err error) {
	most := engine.RerunManyLimit
	given := api.BulkRequest{IDs: in.IDs}
	for looks := 0; ; {
		page, next, at, err := c.chosen(&given, []flow.Stage{flow.Failed, flow.TimedOut, flow.Cancelled})
		if err != nil {
			return nil, out, err
		}
		found = append(found, page[:min(len(page), most-len(found))]...)
		if !at.IsZero() {
			looks++
		}
		if next != "" && len(found) < most && looks < rerunLooks && c.query.Get("limit") == "" {
			c.query.Set("cursor", next)
			continue
		}
		out.Selected, out.NextCursor = len(found), next
		switch {
		case next != "" && len(found) == most:
			out.NextCursor, out.SearchedTo = found[most-1].ID.String(), &found[most-1].CreatedAt
		case !at.IsZero():
			out.SearchedTo = &at
		}
		return found, out, nil
	}
}

// planMany plans the first of the executions.
func (c *call) planMany(found []*flow.Execution, in *api.RerunManyRequest, out *api.RerunMany) error {
	o := engine.RerunOptions{Definition: in.Definition}
	if err := nameAll(&o, &api.RerunRequest{From: in.From}); err != nil {
		return err
	}
	for _, x := range found[:min(len(found), rerunsPlanned)] {
		p := api.RerunPlanned{ID: x.ID.String(), Action: x.Action, Version: x.Version}
		plan, err := c.Engine.PlanRerun(c.ctx(), x.ID, o)
		switch {
		case err != nil:
			if p.Problem = problemOf(err); p.Problem.Status >= http.StatusInternalServerError {
				return err
			}
			out.Refused++
		case plan.Workflow == nil:
			p.Action, p.Version, p.Runs = plan.Action, plan.Version, 1
		default:
			p.Action, p.Version, p.Reused = plan.Action, plan.Version, plan.Reused()
			tasks := plan.Workflow.Tasks
			for i := range plan.Parts {
				tasks = append(tasks, plan.Parts[i].Plan.Tasks...)
			}
			for i := range tasks {
				p.Runs += tasks[i].Runs
			}
		}
		out.Reused, out.Runs = out.Reused+p.Reused, out.Runs+p.Runs
		out.Planned = append(out.Planned, p)
	}
	return nil
}
