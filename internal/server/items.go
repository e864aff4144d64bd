package server

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// itemsScanned is how many executions of a task one page examines to find those with the requested statuses: twenty reads of a thousand
// rows.
const itemsScanned = 20_000

// items answers with the executions of one task, a page at a time.
func (c *call) items() error {
	limit := int(c.number("limit", 1000, 1, 10_000))
	after := int(c.number("cursor", -1, 0, 1<<31-1))
	wanted := c.stages()
	x, err := c.workflow()
	if err != nil {
		return err
	}
	plan, err := c.plan(x)
	if err != nil {
		return err
	}
	name := c.r.PathValue("task")
	if plan.Task(name) == nil {
		return notFound("task", name)
	}
	out := api.TaskItems{Workflow: x.ID.String(), Attempt: x.Attempt, Task: name, Since: x.CreatedAt, Items: []api.TaskItem{}}
	const page = 1000
	for scanned := 0; ; {
		rows, err := c.Engine.Reader().Children(c.ctx(), store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}, name, after, page)
		if err != nil {
			return fmt.Errorf("list items: %w", err)
		}
		for i := range rows {
			r := &rows[i]
			if r.Task != name { // the following rows belong to the next task
				return c.json(http.StatusOK, out)
			}
			if len(out.Items) == limit || scanned == itemsScanned {
				out.NextCursor = strconv.Itoa(after)
				return c.json(http.StatusOK, out)
			}
			scanned++
			after = r.Index
			if len(wanted) == 0 || slices.Contains(wanted, r.Stage) {
				out.Items = append(out.Items, taskItem(x, r))
			}
		}
		if len(rows) < page {
			return c.json(http.StatusOK, out)
		}
	}
}

func taskItem(x *flow.Execution, r *store.Child) api.TaskItem {
	since := func(at time.Time) *int64 {
		if at.IsZero() {
			return nil
		}
		ms := at.Sub(x.CreatedAt).Milliseconds()
		return &ms
	}
	overridden := x.OverrideOf(r.Task, r.Index) != nil
	return api.TaskItem{
		Index: r.Index, ID: r.Execution.String(), Status: status(r.Stage), Attempt: r.Attempt, CreatedMS: *since(r.CreatedAt),
		ClaimedMS: since(r.ClaimedAt), StartedMS: since(r.StartedAt), FinishedMS: since(r.FinishedAt),
		Given: reused(r) && overridden, Cached: reused(r) && !overridden && x.RerunOf.IsZero(), Reused: reused(r) && !overridden &&
			!x.RerunOf.IsZero(),
	}
}
