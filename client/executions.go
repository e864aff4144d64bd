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

// Submit asks for one execution. A submission whose idempotency key was used for the same one before gives the execution
// of that time, with Existing set.
func (c *Client) Submit(ctx context.Context, s api.Submission) (*api.Execution, error) {
	s.IdempotencyKey = c.key(s.IdempotencyKey)
	return fetch[api.Execution](ctx, c, request{method: http.MethodPost, path: "/executions", body: s, repeatable: s.IdempotencyKey != ""})
}

// SubmitBatch asks for up to api.BatchLimit executions. Each gets its own verdict; the error is only about the whole.
func (c *Client) SubmitBatch(ctx context.Context, all []api.Submission) (*api.BatchResult, error) {
	return submitBatch(ctx, c, "executions", all, func(s *api.Submission) *string { return &s.IdempotencyKey })
}

// Evaluate asks for one run of ad-hoc code. With e.Wait the answer is held back until it has ended, or that long.
func (c *Client) Evaluate(ctx context.Context, e api.Evaluation) (*api.Execution, error) {
	e.IdempotencyKey = c.key(e.IdempotencyKey)
	return fetch[api.Execution](ctx, c, request{method: http.MethodPost, path: "/evaluations", body: e, repeatable: e.IdempotencyKey != ""})
}

// Get loads one execution as it is now.
func (c *Client) Get(ctx context.Context, id string) (*api.Execution, error) {
	return fetch[api.Execution](ctx, c, get(execution(id, ""), nil))
}

// Wait waits until the execution has ended, as long as ctx lasts, and returns it.
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

// Result returns what a finished execution ended with; while it has not ended the error is a Problem of the type
// api.ProblemNotFinished.
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
	TopLevel bool              // only what is no task of a workflow
	Labels   map[string]string // all of them
	Verdicts []string          // ended with any of these: api.VerdictOK, or the code of the error
	Since    time.Time         // created at or after
	Until    time.Time         // created before
	IDs      []string          // any of these, at most 200
	Prefix   string            // whose ids begin so, as in ex_01kb
	After    string            // whose ids come behind this one, the oldest first
	Where    string            // meeting this condition, as in label.team = docs and status = failed (docs/finding.md)
	Outputs  bool              // with what each has put out
	Cases    bool              // with how each case of code has ended
	Digest   bool              // the same by one letter for each case
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
	if f.TopLevel {
		q.Set("top_level", "true")
	}
	for k, v := range f.Labels {
		q.Add("label", k+"="+v)
	}
	for _, v := range f.Verdicts {
		q.Add("verdict", v)
	}
	if f.Outputs {
		q.Set("outputs", "true")
	}
	if f.Cases {
		q.Set("cases", "true")
	}
	if f.Digest {
		q.Set("digest", "true")
	}
	if !f.Since.IsZero() {
		q.Set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		q.Set("until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	setInt(q, "limit", int64(f.Limit))
	return q
}

// List returns one page, newest first unless f.After says otherwise, without inputs, and without outputs unless f asks for them.
func (c *Client) List(ctx context.Context, f Filter) (*api.ExecutionPage, error) {
	return fetch[api.ExecutionPage](ctx, c, get("/executions", f.query()))
}

// FollowChanges says when executions may have changed or new ones may have come: at once, and then at most every second and at least every
// few seconds, then with Idle where nothing has changed. It reconnects by itself when the connection breaks. An error ends the walk.
func (c *Client) FollowChanges(ctx context.Context) iter.Seq2[api.Change, error] {
	return follow[api.Change](ctx, c, "/executions", nil, api.StreamChanged)
}

// All walks through everything that f selects, newest first, page by page. An error ends the walk.
func (c *Client) All(ctx context.Context, f Filter) iter.Seq2[api.Execution, error] {
	return c.walk(ctx, "/executions", f)
}

func (c *Client) walk(ctx context.Context, path string, f Filter) iter.Seq2[api.Execution, error] {
	return entries(ctx, c, path, f.query(), func(p *api.ExecutionPage) ([]api.Execution, string) { return p.Executions, p.NextCursor })
}

// Cancel ends an execution: at once when no worker holds it yet, else by an order to its worker, which the answer then shows
// as CancelOrder. It waits up to wait for the end to be confirmed; 0 does not wait.
func (c *Client) Cancel(ctx context.Context, id, reason string, wait time.Duration) (*api.Execution, error) {
	return c.end(ctx, id, "/cancel", reason, wait)
}

// Kill is Cancel by the name that people look for when code is running.
func (c *Client) Kill(ctx context.Context, id, reason string, wait time.Duration) (*api.Execution, error) {
	return c.end(ctx, id, "/kill", reason, wait)
}

func (c *Client) end(ctx context.Context, id, how, reason string, wait time.Duration) (*api.Execution, error) {
	r := c.keyed(post(execution(id, how), api.CancelRequest{Reason: reason})) // sent again it is not a second cancel
	if wait > 0 {
		r.query = waiting(min(wait, maxWait))
	}
	return fetch[api.Execution](ctx, c, r)
}

// Retry submits the request of a finished execution anew and returns the new execution.
func (c *Client) Retry(ctx context.Context, id string) (*api.Execution, error) {
	return fetch[api.Execution](ctx, c, c.keyed(request{method: http.MethodPost, path: execution(id, "/retry")}))
}

// Rerun runs a finished execution again, and returns the new execution. Of a workflow, what completed keeps its outcome unless it is named
// or something before it runs again.
func (c *Client) Rerun(ctx context.Context, id string, in api.RerunRequest) (*api.Execution, error) {
	return fetch[api.Execution](ctx, c, c.keyed(request{method: http.MethodPost, path: execution(id, "/rerun"), body: in}))
}

// PlanRerun says what [Client.Rerun] would reuse and what would run, and why. Nothing happens.
func (c *Client) PlanRerun(ctx context.Context, id string, in api.RerunRequest) (*api.RerunPlan, error) {
	return fetch[api.RerunPlan](ctx, c, post(execution(id, "/rerun/plan"), in))
}

// keyed gives a request an idempotency key of its own when the client makes them: then it may be sent again.
func (c *Client) keyed(r request) request {
	if key := c.key(""); key != "" {
		r.header, r.repeatable = http.Header{"Idempotency-Key": {key}}, true
	}
	return r
}

// CancelMany cancels up to [api.BulkLimit] executions: those that in names, or, if it names none, the newest unfinished ones that f
// selects. What one of them is refused is in its entry. Ask again with f.Cursor as long as the result has a NextCursor.
func (c *Client) CancelMany(ctx context.Context, f Filter, in api.BulkRequest) (*api.BulkResult, error) {
	return fetch[api.BulkResult](ctx, c, c.keyed(request{method: http.MethodPost, path: "/executions:cancel", query: f.query(), body: in}))
}

// KillMany is [Client.Kill] of executions chosen as by [Client.CancelMany].
func (c *Client) KillMany(ctx context.Context, f Filter, in api.BulkRequest) (*api.BulkResult, error) {
	in.Kill = true
	return c.CancelMany(ctx, f, in)
}

// RetryMany is [Client.Retry] of up to [api.BulkLimit] executions, chosen as by [Client.CancelMany]; f without a status selects what
// has failed, timed out or was cancelled.
func (c *Client) RetryMany(ctx context.Context, f Filter, in api.BulkRequest) (*api.BulkResult, error) {
	return fetch[api.BulkResult](ctx, c, c.keyed(request{method: http.MethodPost, path: "/executions:retry", query: f.query(), body: in}))
}

// Replay lets the rules decide an execution's history once more, up to the event with a number (0: all of it), and says what in it does not
// follow from them. Nothing happens.
func (c *Client) Replay(ctx context.Context, id string, at int64) (*api.Replay, error) {
	q := url.Values{}
	setInt(q, "at", at)
	return fetch[api.Replay](ctx, c, get(execution(id, "/replay"), q))
}

// CompareReplay says where a recorded run of a workflow would have gone another way under another definition. Nothing happens.
func (c *Client) CompareReplay(ctx context.Context, id string, in api.ReplayRequest) (*api.ReplayComparison, error) {
	return fetch[api.ReplayComparison](ctx, c, post(execution(id, "/replay"), in))
}

// CheckSubmission says what a submission would be accepted as. What is wrong with it is in the answer and is no error.
func (c *Client) CheckSubmission(ctx context.Context, in api.Submission) (*api.SubmissionCheck, error) {
	return fetch[api.SubmissionCheck](ctx, c, post("/executions:validate", in))
}

// CheckEvaluation does for an evaluation what CheckSubmission does.
func (c *Client) CheckEvaluation(ctx context.Context, in api.Evaluation) (*api.SubmissionCheck, error) {
	return fetch[api.SubmissionCheck](ctx, c, post("/evaluations:validate", in))
}

// WhyMany tells what each of up to 100 executions is waiting for, in their order.
func (c *Client) WhyMany(ctx context.Context, ids []string) ([]api.WhyEntry, error) {
	var r api.WhyResult
	err := c.call(ctx, post("/executions:why", api.WhyRequest{IDs: ids}), &r)
	return r.Executions, err
}

// Why tells what the execution is waiting for.
func (c *Client) Why(ctx context.Context, id string) (*api.Why, error) {
	return fetch[api.Why](ctx, c, get(execution(id, "/why"), nil))
}

// Tasks tells how far the tasks of a workflow execution are. Of a task with many executions at most so many are listed: 0 is the server's
// default, and below 0 none.
func (c *Client) Tasks(ctx context.Context, id string, listed int) (*api.Tasks, error) {
	q := url.Values{}
	items(q, listed)
	return fetch[api.Tasks](ctx, c, get(execution(id, "/tasks"), q))
}

// items sets how many executions of a task are listed.
func items(q url.Values, listed int) {
	if listed < 0 {
		q.Set("items", "0")
	}
	setInt(q, "items", int64(max(listed, 0)))
}

// TaskItems returns a page of the executions of one task of a workflow, those with one of the statuses where there are any. limit 0 is the
// server's default.
func (c *Client) TaskItems(ctx context.Context, id, task string, statuses []api.Status, cursor string, limit int) (*api.TaskItems, error) {
	q := url.Values{}
	for _, s := range statuses {
		q.Add("status", string(s))
	}
	set(q, "cursor", cursor)
	setInt(q, "limit", int64(limit))
	return fetch[api.TaskItems](ctx, c, get(execution(id, "/tasks/"+url.PathEscape(task)+"/items"), q))
}

// Timeline tells when attempts waited and ran, and which worker had each: of a workflow a page of those of its tasks,
// of any other execution its own. limit is of executions; 0 is the server's default.
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

func setInt(q url.Values, name string, value int64) {
	if value != 0 {
		q.Set(name, strconv.FormatInt(value, 10))
	}
}
