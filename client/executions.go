package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
)

// Submit asks for one execution. If the idempotency key was used before for the same submission, the result is the execution of that time,
// with Existing set.
func (c *Client) Submit(ctx context.Context, s api.Submission) (*api.Execution, error) {
	s.IdempotencyKey = c.key(s.IdempotencyKey)
	return fetch[api.Execution](ctx, c, request{method: http.MethodPost, path: "/executions", body: s, repeatable: s.IdempotencyKey != ""})
}

// SubmitBatch asks for up to api.BatchLimit executions. Each submission has its own result; the error is only about the whole batch.
func (c *Client) SubmitBatch(ctx context.Context, all []api.Submission) (*api.BatchResult, error) {
	return submitBatch(ctx, c, "executions", all, func(s *api.Submission) *string { return &s.IdempotencyKey })
}

// Evaluate asks for one run of ad-hoc code. With e.Wait the server answers when the execution has ended, or after that time.
func (c *Client) Evaluate(ctx context.Context, e api.Evaluation) (*api.Execution, error) {
	e.IdempotencyKey = c.key(e.IdempotencyKey)
	return fetch[api.Execution](ctx, c, request{method: http.MethodPost, path: "/evaluations", body: e, repeatable: e.IdempotencyKey != ""})
}

// Get loads one execution in its current state.
func (c *Client) Get(ctx context.Context, id string) (*api.Execution, error) {
	return fetch[api.Execution](ctx, c, get(execution(id, ""), nil))
}

// Wait waits until the execution has ended and returns it; the end of ctx ends the wait.
func (c *Client) Wait(ctx context.Context, id string) (*api.Execution, error) {
	for {
		var x api.Execution
		r := get(execution(id, ""), waiting(maxWait/2))
		if err := c.call(ctx, r, &x); err != nil {
			return nil, err
		}
		if x.Status.Terminal() {
			return &x, nil
		}
	}
}

// Result returns the result of a finished execution; before its end the error is a Problem of the type api.ProblemNotFinished.
func (c *Client) Result(ctx context.Context, id string) (*api.Result, error) {
	return fetch[api.Result](ctx, c, get(execution(id, "/result"), nil))
}

// Filter selects executions. Zero fields select everything.
type Filter struct {
	Status   []api.Status
	Action   string
	Workflow string            // tasks of this execution
	RerunOf  string            // reruns of this execution
	RetryOf  string            // retries of this execution
	TopLevel bool              // without tasks of workflows
	Labels   map[string]string // executions must have all of them
	Verdicts []string          // any of these: api.VerdictOK, or the code of the error
	Since    time.Time         // created at or after
	Until    time.Time         // created before
	IDs      []string          // any of these, at most 200
	Prefix   string            // start of the ids, for example ex_01kb
	After    string            // ids after this one; oldest first
	Where    string            // a condition, for example label.team = docs and status = failed (docs/finding.md)
	Outputs  bool              // include the outputs
	Cases    bool              // include the verdict of each case of code
	Digest   bool              // include the same with one letter per case
	Limit    int               // of a page: 1 to 1000; 100 by default
	Cursor   string            // NextCursor of the page before
}

func (f Filter) query() url.Values {
	q := url.Values{}
	for _, s := range f.Status {
		q.Add("status", string(s))
	}
	set(q, "action", f.Action)
	set(q, "workflow", f.Workflow)
	set(q, "rerun_of", f.RerunOf)
	set(q, "retry_of", f.RetryOf)
	set(q, "cursor", f.Cursor)
	set(q, "where", f.Where)
	set(q, "q", f.Prefix)
	set(q, "after", f.After)
	for _, id := range f.IDs {
		q.Add("id", id)
	}
	setTrue(q, "top_level", f.TopLevel)
	for k, v := range f.Labels {
		q.Add("label", k+"="+v)
	}
	for _, v := range f.Verdicts {
		q.Add("verdict", v)
	}
	setTrue(q, "outputs", f.Outputs)
	setTrue(q, "cases", f.Cases)
	setTrue(q, "digest", f.Digest)
	setTime(q, "since", f.Since)
	setTime(q, "until", f.Until)
	setInt(q, "limit", int64(f.Limit))
	return q
}

// List returns one page, newest first unless f.After is set, without inputs, and without outputs unless f asks for them.
func (c *Client) List(ctx context.Context, f Filter) (*api.ExecutionPage, error) {
	return fetch[api.ExecutionPage](ctx, c, get("/executions", f.query()))
}

// FollowChanges reports that executions may have changed or that there may be new ones. The first message comes at once; then there is at
// most one per second, and at least one every few seconds, with Idle if nothing has changed. It reconnects by itself when the connection
// breaks. An error ends the walk.
func (c *Client) FollowChanges(ctx context.Context) iter.Seq2[api.Change, error] {
	return follow[api.Change](ctx, c, "/executions", nil, api.StreamChanged)
}

// All walks through all executions that f selects, newest first, page by page. An error ends the walk.
func (c *Client) All(ctx context.Context, f Filter) iter.Seq2[api.Execution, error] {
	return c.walk(ctx, "/executions", f)
}

func (c *Client) walk(ctx context.Context, path string, f Filter) iter.Seq2[api.Execution, error] {
	return entries(ctx, c, path, f.query(), func(p *api.ExecutionPage) ([]api.Execution, string) { return p.Executions, p.NextCursor })
}

// Cancel ends an execution: at once if no worker holds it, else by an order to its worker, which the answer shows as CancelOrder. It waits
// up to wait for the worker's confirmation; with 0 it does not wait.
func (c *Client) Cancel(ctx context.Context, id, reason string, wait time.Duration) (*api.Execution, error) {
	return c.end(ctx, id, "/cancel", reason, wait)
}

// Kill is Cancel under the name that people look for when code is running.
func (c *Client) Kill(ctx context.Context, id, reason string, wait time.Duration) (*api.Execution, error) {
	return c.end(ctx, id, "/kill", reason, wait)
}

func (c *Client) end(ctx context.Context, id, how, reason string, wait time.Duration) (*api.Execution, error) {
	r := c.keyed(post(execution(id, how), api.CancelRequest{Reason: reason})) // the key keeps a repetition from counting as a second cancel
	if wait > 0 {
		r.query = waiting(min(wait, maxWait))
	}
	return fetch[api.Execution](ctx, c, r)
}

// Retry submits the request of a finished execution again and returns the new execution.
func (c *Client) Retry(ctx context.Context, id string) (*api.Execution, error) {
	return fetch[api.Execution](ctx, c, c.keyed(request{method: http.MethodPost, path: execution(id, "/retry")}))
}

// Rerun runs a finished execution again, and returns the new execution. In a workflow, completed tasks keep their outcomes unless they are
// named or a task before them runs again.
func (c *Client) Rerun(ctx context.Context, id string, in api.RerunRequest) (*api.Execution, error) {
	return fetch[api.Execution](ctx, c, c.keyed(request{method: http.MethodPost, path: execution(id, "/rerun"), body: in}))
}

// PlanRerun says what [Client.Rerun] would reuse and run, and why. It changes nothing.
func (c *Client) PlanRerun(ctx context.Context, id string, in api.RerunRequest) (*api.RerunPlan, error) {
	return fetch[api.RerunPlan](ctx, c, post(execution(id, "/rerun/plan"), in))
}

// keyed gives a request an idempotency key, if the client generates them, so that it may be repeated.
func (c *Client) keyed(r request) request {
	if key := c.key(""); key != "" {
		r.header, r.repeatable = http.Header{"Idempotency-Key": {key}}, true
	}
	return r
}

// CancelMany cancels up to [api.BulkLimit] executions: those that in names, or, if it names none, the newest unfinished ones that f
// selects. A refusal for one of them is in its entry. While the result has a NextCursor, call again with it as f.Cursor.
func (c *Client) CancelMany(ctx context.Context, f Filter, in api.BulkRequest) (*api.BulkResult, error) {
	return fetch[api.BulkResult](ctx, c, c.keyed(request{method: http.MethodPost, path: "/executions:cancel", query: f.query(), body: in}))
}

// KillMany is [Client.Kill] of executions chosen as by [Client.CancelMany].
func (c *Client) KillMany(ctx context.Context, f Filter, in api.BulkRequest) (*api.BulkResult, error) {
	in.Kill = true
	return c.CancelMany(ctx, f, in)
}

// RetryMany is [Client.Retry] of up to [api.BulkLimit] executions, chosen as by [Client.CancelMany]; f without a status selects failed,
// timed-out and cancelled executions.
func (c *Client) RetryMany(ctx context.Context, f Filter, in api.BulkRequest) (*api.BulkResult, error) {
	return fetch[api.BulkResult](ctx, c, c.keyed(request{method: http.MethodPost, path: "/executions:retry", query: f.query(), body: in}))
}

// Replay applies the rules to an execution's history once more, up to the event with the number at (0: all of it), and lists the recorded
// decisions that the rules do not give. It changes nothing.
func (c *Client) Replay(ctx context.Context, id string, at int64) (*api.Replay, error) {
	q := url.Values{}
	setInt(q, "at", at)
	return fetch[api.Replay](ctx, c, get(execution(id, "/replay"), q))
}

// CompareReplay says where a recorded run of a workflow would differ under another definition. It changes nothing.
func (c *Client) CompareReplay(ctx context.Context, id string, in api.ReplayRequest) (*api.ReplayComparison, error) {
	return fetch[api.ReplayComparison](ctx, c, post(execution(id, "/replay"), in))
}

// CheckSubmission describes the execution that a submission would become. Errors of the submission are part of the answer, not an error of
// the call.
func (c *Client) CheckSubmission(ctx context.Context, in api.Submission) (*api.SubmissionCheck, error) {
	return fetch[api.SubmissionCheck](ctx, c, post("/executions:validate", in))
}

// CheckEvaluation is CheckSubmission for an evaluation.
func (c *Client) CheckEvaluation(ctx context.Context, in api.Evaluation) (*api.SubmissionCheck, error) {
	return fetch[api.SubmissionCheck](ctx, c, post("/evaluations:validate", in))
}

// WhyMany says what each of up to 100 executions waits for, in the order of ids.
func (c *Client) WhyMany(ctx context.Context, ids []string) ([]api.WhyEntry, error) {
	var r api.WhyResult
	err := c.call(ctx, post("/executions:why", api.WhyRequest{IDs: ids}), &r)
	return r.Executions, err
}

// Why says what the execution waits for.
func (c *Client) Why(ctx context.Context, id string) (*api.Why, error) {
	return fetch[api.Why](ctx, c, get(execution(id, "/why"), nil))
}

// Tasks returns the progress of the tasks of a workflow execution. For each task at most listed executions are included; 0 is the server's
// default, and a negative number includes none.
func (c *Client) Tasks(ctx context.Context, id string, listed int) (*api.Tasks, error) {
	q := url.Values{}
	items(q, listed)
	return fetch[api.Tasks](ctx, c, get(execution(id, "/tasks"), q))
}

// items sets the number of listed executions per task.
func items(q url.Values, listed int) {
	if listed < 0 {
		q.Set("items", "0")
	}
	setInt(q, "items", int64(max(listed, 0)))
}

// TaskItems returns a page of the executions of one task of a workflow; with statuses, only the executions that have one of them. limit 0
// is the server's default.
func (c *Client) TaskItems(ctx context.Context, id, task string, statuses []api.Status, cursor string, limit int) (*api.TaskItems, error) {
	q := url.Values{}
	for _, s := range statuses {
		q.Add("status", string(s))
	}
	set(q, "cursor", cursor)
	setInt(q, "limit", int64(limit))
	return fetch[api.TaskItems](ctx, c, get(execution(id, "/tasks/"+url.PathEscape(task)+"/items"), q))
}

// Timeline says when attempts waited and ran, and on which worker: for a workflow a page of the attempts of its tasks, for any other
// execution its own attempts. limit counts executions; 0 is the server's default.
func (c *Client) Timeline(ctx context.Context, id, cursor string, limit int) (*api.Timeline, error) {
	q := url.Values{}
	set(q, "cursor", cursor)
	setInt(q, "limit", int64(limit))
	return fetch[api.Timeline](ctx, c, get(execution(id, "/timeline"), q))
}

func execution(id, rest string) string { return "/executions/" + url.PathEscape(id) + rest }

func waiting(d time.Duration) url.Values { return url.Values{"wait": {fmt.Sprint(d)}} }

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func setTrue(q url.Values, name string, value bool) {
	if value {
		q.Set(name, "true")
	}
}

func setTime(q url.Values, name string, value time.Time) {
	if !value.IsZero() {
		q.Set(name, value.UTC().Format(time.RFC3339Nano))
	}
}

func setInt(q url.Values, name string, value int64) {
	if value != 0 {
		q.Set(name, strconv.FormatInt(value, 10))
	}
}
