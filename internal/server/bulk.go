package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// bulkAtOnce is how many executions of one bulk request are processed at once. Their requests to the engine are committed together, in few
// commits, and requests of other callers do not wait behind a thousand.
const bulkAtOnce = 64

type bulk struct {
	stages   []flow.Stage // executions to select if the parameters name no status
	finished bool         // applies to executions that have ended, else to unfinished ones
	do       func(ctx context.Context, x *flow.Execution) (api.BulkEntry, error)
}

func (c *call) cancelMany(in *api.BulkRequest) error {
	return c.many(in, bulk{openStages(), false, func(ctx context.Context, x *flow.Execution) (api.BulkEntry, error) {
		end := c.cancelOnce
		if in.Kill {
			end = c.Engine.Kill
		}
		x, err := end(ctx, x.ID, in.Reason)
		if err != nil {
			return api.BulkEntry{}, err
		}
		return api.BulkEntry{Status: status(x.Stage)}, nil
	}})
}

// retryMany derives a key for each execution from the request's key, so that repeating the request starts nothing twice.
func (c *call) retryMany(in *api.BulkRequest) error {
	if in.Kill {
		return refusal(http.StatusBadRequest, api.ProblemInvalid, "kill: true is of a cancel: leave it out")
	}
	return c.many(in, bulk{[]flow.Stage{flow.Failed, flow.TimedOut, flow.Cancelled}, true, func(ctx context.Context, x *flow.Execution) (api.BulkEntry, error) {
		key := c.r.Header.Get("Idempotency-Key")
		if key != "" {
			key += ":" + x.ID.String()
		}
		again, err := c.Engine.Retry(ctx, x.ID, key)
		if err != nil {
			return api.BulkEntry{}, err
		}
		return api.BulkEntry{Status: status(x.Stage), New: again.Execution.String()}, nil
	}})
}

// openStages returns the stages of unfinished executions.
func openStages() []flow.Stage {
	return slices.DeleteFunc(flow.Stages(), flow.Stage.Terminal)
}

// many applies a bulk operation to executions one by one: a refusal for one does not affect the others.
func (c *call) many(in *api.BulkRequest, b bulk) error {
	found, next, _, err := c.chosen(in, b.stages)
	if err != nil {
		return err
	}
	out := api.BulkResult{Selected: len(found), DryRun: in.DryRun, Executions: make([]api.BulkEntry, len(found)), NextCursor: next}
	var wg sync.WaitGroup
	turns := make(chan struct{}, bulkAtOnce)
	for i, x := range found {
		turns <- struct{}{}
		wg.Go(func() {
			out.Executions[i] = c.one(b, x, in.DryRun)
			<-turns
		})
	}
	wg.Wait()
	for i := range out.Executions {
		if out.Executions[i].Problem == nil {
			out.Done++
		}
	}
	return c.json(http.StatusOK, out)
}

// one applies it to one execution.
func (c *call) one(b bulk, x *flow.Execution, dry bool) api.BulkEntry {
	entry, err := c.tried(b, x, dry)
	entry.ID = x.ID.String()
	if err != nil {
		entry.Problem = problemOf(err)
	}
	if entry.Problem != nil && entry.Problem.Status == http.StatusInternalServerError {
		c.log.Error("a part of a bulk request failed", telemetry.Execution, x.ID, telemetry.Err, err)
	}
	return entry
}

// tried applies it to one execution and turns a panic into an error: in this goroutine a panic would end the process.
func (c *call) tried(b bulk, x *flow.Execution, dry bool) (entry api.BulkEntry, err error) {
	defer fault.Recovered(&err)
	entry.Status = status(x.Stage)
	switch {
	case x.Stage.Terminal() && !b.finished:
		err = refusal(http.StatusConflict, api.ProblemFinished, fmt.Sprintf("the execution is %s", x.Stage))
	case b.finished && !x.Stage.Terminal():
		err = refusal(http.StatusConflict, api.ProblemNotFinished, fmt.Sprintf("the execution is still %s", x.Stage))
	case !dry:
		entry, err = b.do(c.ctx(), x)
	}
	return entry, err
}

// chosen loads the executions in a bulk request, or a page of those that its parameters select. If the search gave up, "at" is the creation
// time of the last execution that it examined.
func (c *call) chosen(in *api.BulkRequest, stages []flow.Stage) (found []*flow.Execution, next string, at time.Time, err error) {
	f, err := c.filter()
	if err != nil {
		return nil, "", at, err
	}
	narrowed := len(f.Stages)+len(f.Labels)+len(f.Verdicts) > 0 || f.Action != "" || !f.Workflow.IsZero() || !f.Since.IsZero() || !f.Until.IsZero() || c.where != nil
	if len(in.IDs) > 0 {
		if narrowed || f.TopLevel || !f.Before.IsZero() {
			return nil, "", at, unreadable(api.FieldError{Path: "ids", Message: "the request selects executions by parameters as well", Fix: "give ids, or parameters"})
		}
		found, err = c.named(in.IDs)
		return found, "", at, err
	}
	if !narrowed {
		return nil, "", at, unreadable(api.FieldError{Path: "ids", Message: "the request says of no execution that it is meant",
			Fix: "name executions in ids, or select them by parameters as the list takes them, such as ?label=team=docs or ?status=scheduled"})
	}
	if len(f.Stages) == 0 && (c.where == nil || c.where.Bounds().Stages == nil) { // the condition names no stage either
		f.Stages = stages
	}
	f.TopLevel = f.TopLevel || f.Workflow.IsZero() // the tasks of a workflow belong to it
	if c.query.Get("limit") == "" {
		f.Limit = api.BulkLimit
	}
	limit := f.Limit
	f.Limit++
	found, searched, searchedTo, err := c.search(f)
	if err != nil {
		return nil, "", at, err
	}
	var size store.Page
	for _, x := range found {
		size.Execution(x)
	}
	more := len(found) > limit || size.Full()
	switch found = found[:min(len(found), limit)]; {
	case more:
		next = found[len(found)-1].ID.String()
	case !searched.IsZero():
		next, at = searched.String(), searchedTo
	}
	return found, next, at, nil
}

// named loads executions by their ids, each once.
func (c *call) named(ids []string) ([]*flow.Execution, error) {
	if len(ids) > api.BulkLimit {
		return nil, unreadable(api.FieldError{Path: "ids", Message: fmt.Sprintf("there are %d, and at most %d go into one request", len(ids), api.BulkLimit), Fix: "send several requests"})
	}
	var found []*flow.Execution
	var faults []api.FieldError
	seen := map[flow.ID]bool{}
	for i, text := range ids {
		path := fmt.Sprintf("ids[%d]", i)
		id, err := flow.ParseID(flow.ExecutionPrefix, text)
		if err != nil || id.IsZero() {
			faults = append(faults, api.FieldError{Path: path, Value: text, Message: "it is not an execution's id",
				Fix: "pass it as the server gave it"})
			continue
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		x, err := c.Engine.View(id).Look(c.ctx())
		if p := problemOf(err); err != nil && p.Status == http.StatusNotFound {
			faults = append(faults, api.FieldError{Path: path, Value: text, Message: "there is no such execution", Fix: "leave it out"})
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("execution %s: %w", id, err)
		}
		found = append(found, x)
	}
	if len(faults) > 0 {
		return nil, invalid(faults...)
	}
	return found, nil
}
