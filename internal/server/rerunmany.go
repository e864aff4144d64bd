package server

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
)

const (
	// plannedDetails is for how many executions a plan lists the details, and rerunsAtOnce how many reruns run at once,
	// unless the request has other numbers.
	plannedDetails = 50
	rerunsAtOnce   = 10
	// planTime is how long making a plan may take: 10,000 reruns of executions without tasks took 0.2 s on SQLite and 0.6 s
	// on PostgreSQL.
	planTime = 10 * time.Second
	// refusalsNamed is how many reasons for refusals a plan names.
	refusalsNamed = 20
	// rerunLooks is how many pages are searched for the executions to run again; each looks as far as a list does.
	rerunLooks = 10
)

// rerunMany runs the executions that are named or selected again, within one execution that does so, or makes a plan of that.
func (c *call) rerunMany(in *api.RerunManyRequest) error {
	if in.Details < 0 || in.Details > engine.RerunManyLimit {
		return invalid(api.FieldError{Path: "details", Value: strconv.Itoa(in.Details), Message: "it is out of range", Fix: fmt.Sprintf("give 1 to %d", engine.RerunManyLimit)})
	}
	found, out, err := c.toRerun(in)
	if err != nil {
		return err
	}
	if in.Plan {
		if err := c.planMany(found, in, &out); err != nil {
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
	o.AtOnce = cmp.Or(o.AtOnce, rerunsAtOnce)
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

// toRerun loads the executions that a request names or selects, page by page, until there are enough or it has looked far
// enough.
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

// planMany plans the executions one after the other, until the time is over.
func (c *call) planMany(found []*flow.Execution, in *api.RerunManyRequest, out *api.RerunMany) error {
	o := engine.RerunOptions{Definition: in.Definition}
	if err := nameAll(&o, &api.RerunRequest{From: in.From}); err != nil {
		return err
	}
	details, refusals := cmp.Or(in.Details, plannedDetails), map[string]*api.RerunRefusals{}
	for begun := time.Now(); out.Counted < len(found) && time.Since(begun) < planTime; out.Counted++ {
		x := found[out.Counted]
		plan, err := c.Engine.PlanRerun(c.ctx(), x.ID, o)
		p := api.RerunPlanned{ID: x.ID.String(), Action: x.Action, Version: x.Version}
		if err != nil {
			if p.Problem = problemOf(err); p.Problem.Status >= http.StatusInternalServerError {
				return err
			}
			out.Refused++
			r := refusals[p.Problem.Detail]
			if r == nil {
				r = &api.RerunRefusals{Detail: p.Problem.Detail, First: p.ID}
				refusals[r.Detail] = r
			}
			r.Count++
		} else {
			p.Action, p.Version, p.Reused, p.Runs = plan.Action, plan.Version, plan.Reused(), leastRuns(plan)
		}
		out.Reused, out.Runs = out.Reused+p.Reused, out.Runs+p.Runs
		if len(out.Planned) < details {
			out.Planned = append(out.Planned, p)
		}
	}
	for _, r := range refusals {
		out.Refusals = append(out.Refusals, *r)
	}
	slices.SortFunc(out.Refusals, func(a, b api.RerunRefusals) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Detail, b.Detail))
	})
	out.Refusals = out.Refusals[:min(len(out.Refusals), refusalsNamed)]
	return nil
}

// leastRuns is how many executions a rerun runs at least, by its plan.
func leastRuns(p *engine.RerunPlan) (n int) {
	if p.Workflow == nil {
		return 1
	}
	for i := range p.Workflow.Tasks {
		n += p.Workflow.Tasks[i].Runs
	}
	for i := range p.Parts {
		for j := range p.Parts[i].Plan.Tasks {
			n += p.Parts[i].Plan.Tasks[j].Runs
		}
	}
	return n
}
