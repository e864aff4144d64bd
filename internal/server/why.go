package server

import (
	"fmt"
	"net/http"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine/why"
	"github.com/pawl-run/pawl/internal/flow"
)

func (c *call) why() error {
	id, err := c.execution()
	if err != nil {
		return err
	}
	w, err := c.Engine.Why(c.ctx(), id)
	if err != nil {
		return fmt.Errorf("execution %s: %w", id, err)
	}
	return c.json(http.StatusOK, renderWhy(&w))
}

// whyMany answers what each of some executions waits for, one after the other: a workflow's answer may look at 40 others.
func (c *call) whyMany(in *api.WhyRequest) error {
	if n := len(in.IDs); n == 0 || n > api.WhyLimit {
		return invalid(api.FieldError{Path: "ids", Message: fmt.Sprintf("it names %d executions", n), Fix: fmt.Sprintf("name 1 to %d", api.WhyLimit)})
	}
	out := api.WhyResult{Executions: make([]api.WhyEntry, len(in.IDs))}
	for i, text := range in.IDs {
		id, err := executionNamed(text)
		var w why.Answer
		if err == nil {
			w, err = c.Engine.Why(c.ctx(), id)
		}
		if c.ctx().Err() != nil {
			return c.ctx().Err()
		}
		if err != nil {
			out.Executions[i].Problem = problemOf(fmt.Errorf("execution %s: %w", id, err))
			continue
		}
		said := renderWhy(&w)
		out.Executions[i].Why = &said
	}
	return c.json(http.StatusOK, out)
}

func renderWhy(w *why.Answer) api.Why {
	out := api.Why{
		ID: w.Execution.String(), Status: status(w.Stage), Attempt: w.Attempt, Summary: w.Summary,
		Facts: append([]string{}, w.Facts...), Unblock: renderAdvice(w.Unblock), Waiting: w.Waiting,
		Action: w.Action, Kind: string(w.Kind), Task: w.Task, Index: w.Index, Workflow: w.Workflow.String(),
		Position: w.Position, Queue: w.Queue, Handler: w.Needs.Handler, Runtime: w.Needs.Runtime, WorkerLabels: w.Needs.Labels, Key: w.Key, KeyLimit: w.KeyLimit,
		SelfHeld: w.SelfHeld, Until: w.Until, Worker: w.Worker, LeaseUntil: w.LeaseUntil, Workers: w.Workers, Slots: w.Slots,
		Root: w.Root.String(), Inquiry: w.Inquiry.Text(flow.InquiryPrefix),
	}
	switch {
	case w.Position == 0:
	case w.Waiting == "key":
		out.PlaceOf = "key"
	default:
		out.PlaceOf = "queue"
	}
	if p := w.Paused; p != nil {
		out.Paused = &api.PausedPart{Kind: p.Of.String(), Name: p.Name}
	}
	for _, h := range w.Holders {
		out.Holders = append(out.Holders, h.String())
	}
	for _, d := range w.Deadlines {
		out.Deadlines = append(out.Deadlines, api.Deadline{Of: d.Of, At: d.At})
	}
	if len(w.Open) > 0 {
		out.Open = map[api.Status]int{}
		for s, n := range w.Open {
			out.Open[status(s)] = n
		}
	}
	for _, l := range w.Lacking {
		out.Lacking = append(out.Lacking, api.LackingWorker{Worker: l.Worker, Lacks: l.Needs})
	}
	return out
}

func renderAdvice(all []why.Advice) []api.Advice {
	out := make([]api.Advice, len(all))
	for i, a := range all {
		out[i] = api.Advice(a)
	}
	return out
}
