package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"github.com/pawl-run/pawl/api"
)

// EvaluateBatch asks for up to api.BatchLimit runs of ad-hoc code. Each evaluation has its own result; the error is only about the whole
// batch.
func (c *Client) EvaluateBatch(ctx context.Context, all []api.Evaluation) (*api.BatchResult, error) {
	return submitBatch(ctx, c, "evaluations", all, func(e *api.Evaluation) *string { return &e.IdempotencyKey })
}

// ListEvaluations returns one page of ad-hoc evaluations, newest first. The filter's fields Action, Workflow and TopLevel must be zero.
func (c *Client) ListEvaluations(ctx context.Context, f Filter) (*api.ExecutionPage, error) {
	return fetch[api.ExecutionPage](ctx, c, get("/evaluations", f.query()))
}

// AllEvaluations walks through the ad-hoc evaluations that f selects, newest first, page by page. An error ends the walk.
func (c *Client) AllEvaluations(ctx context.Context, f Filter) iter.Seq2[api.Execution, error] {
	return c.walk(ctx, "/evaluations", f)
}

// Count counts the executions that f selects, which must name a label.
func (c *Client) Count(ctx context.Context, f Filter) (*api.Counts, error) {
	f.Limit, f.Cursor, f.Outputs = 0, "", false
	return fetch[api.Counts](ctx, c, get("/executions:count", f.query()))
}

// ScoreQuery selects the evaluations to score, and how.
type ScoreQuery struct {
	Name, Value string   // label of the evaluations
	By          []string // labels to group by
	Task        string   // label that names the task; default: task
	K           []int    // values of k for pass@k; default: 1, 10 and 100
}

// Scores returns how many evaluations with a label passed.
func (c *Client) Scores(ctx context.Context, s ScoreQuery) (*api.Scores, error) {
	q := url.Values{"label": {s.Name + "=" + s.Value}, "by": s.By}
	set(q, "task", s.Task)
	for _, k := range s.K {
		q.Add("k", strconv.Itoa(k))
	}
	return fetch[api.Scores](ctx, c, get("/evaluations:scores", q))
}

// OutcomeQuery selects the outcomes to follow.
type OutcomeQuery struct {
	Name, Value string // label of the executions
	After       string // Cursor of the last outcome seen; "": from the first one
	Outputs     bool   // include the outputs
}

// FollowOutcomes returns the outcome of each execution with a label once, in the order in which they end, until all have ended. It
// reconnects when the connection breaks. A later call can continue after the Cursor of any outcome. An error ends the sequence.
func (c *Client) FollowOutcomes(ctx context.Context, o OutcomeQuery) iter.Seq2[api.Outcome, error] {
	q := url.Values{"label": {o.Name + "=" + o.Value}}
	set(q, "after", o.After)
	setTrue(q, "outputs", o.Outputs)
	return follow[api.Outcome](ctx, c, "/executions:outcomes", q, api.StreamOutcome)
}
