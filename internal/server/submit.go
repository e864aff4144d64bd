package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/payload"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

func (c *call) submit() error {
	wait := c.wait()
	if err := c.checked(); err != nil {
		return err
	}
	var in api.Submission
	if err := c.decode(&in); err != nil {
		return err
	}
	return c.accept(submission(&in), wait)
}

func (c *call) evaluate() error {
	wait := c.wait()
	if err := c.checked(); err != nil {
		return err
	}
	var in api.Evaluation
	if err := c.decode(&in); err != nil {
		return err
	}
	sub, err := c.evaluation(&in)
	if err != nil {
		return err
	}
	return inBody(c.accept(sub, max(wait, min(time.Duration(in.Wait), maxWait))))
}

func (c *call) evaluation(in *api.Evaluation) (engine.Submission, error) {
	code, err := json.Marshal(in.Code)
	if err != nil {
		return engine.Submission{}, fmt.Errorf("encode code: %w", err)
	}
	sub := submission(evaluated(in, code))
	if sub.Refused = c.unknownLanguage(&in.Code); sub.Refused == nil {
		if sub.Refused, err = c.wrongSet(&in.Code); err != nil {
			return engine.Submission{}, err
		}
	}
	if sub.Refused == nil && in.Cache != nil && in.Interactive {
		sub.Refused = invalid(api.FieldError{Path: "cache", Message: "an interactive evaluation depends on what it is given while it runs, which no cache knows", Fix: "leave out cache, or interactive"})
	}
	return sub, nil
}

// inBody converts the places of errors in an evaluation's input to places in the body, which has the input's fields as its own.
func inBody(err error) error {
	var refused *fault.Invalid
	if !errors.As(err, &refused) {
		return err
	}
	all := slices.Clone(refused.Problems)
	for i := range all {
		all[i].Path = strings.TrimPrefix(all[i].Path, "input.")
	}
	return &fault.Invalid{Problems: all}
}

func (c *call) unknownLanguage(code *api.Code) error {
	for at, name := range payload.LanguagesUsed(code) {
		if !c.knowsLanguage(name) {
			return invalid(api.FieldError{Path: at, Value: name, Message: fmt.Sprintf("it is not a language that this server or a worker of its has a profile for: %q", name),
				Fix: c.Engine.Languages().Meant(c.ctx(), name)})
		}
	}
	return nil
}

// accept submits one execution and answers with it, after its end if the request waits for it.
func (c *call) accept(sub engine.Submission, wait time.Duration) error {
	if key := c.r.Header.Get("Idempotency-Key"); key != "" {
		if sub.IdempotencyKey != "" && sub.IdempotencyKey != key {
			return unreadable(api.FieldError{Path: "idempotency_key", Value: problem.Clip(sub.IdempotencyKey, 60),
				Message: "it is not what the header Idempotency-Key says", Fix: "give it in one place"})
		}
		sub.IdempotencyKey = key
	}
	var err error
	if sub.Rules, err = c.chain(); err != nil {
		return err
	}
	v, x, err := c.submitOne(sub, wait)
	for forgotten(v, err) {
		v, x, err = c.submitOne(sub, wait)
	}
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", "/api/v1/executions/"+v.Execution.String())
	if x == nil {
		return c.json(http.StatusAccepted, api.Execution{
			ID: v.Execution.String(), Action: sub.Action, Status: api.Requested, Attempt: 1, Labels: sub.Labels,
		})
	}
	out := render(x)
	out.Existing = v.Existing
	status := http.StatusAccepted
	if v.Existing || x.Stage.Terminal() {
		status = http.StatusOK
	}
	return c.json(status, out)
}

// submitOne submits, and loads the new or existing execution. x is nil if it is new and the request does not wait, or if retention has
// removed it meanwhile.
func (c *call) submitOne(sub engine.Submission, wait time.Duration) (v engine.Submitted, x *flow.Execution, err error) {
	span, trace := c.submitting(1)
	sub.Traceparent = trace
	v, end, err := c.Engine.SubmitOne(c.ctx(), sub)
	if err == nil {
		err = v.Err
	}
	if err != nil {
		span.Fail(err.Error())
		span.End()
		return v, nil, fmt.Errorf("submit: %w", err)
	}
	defer end.Close()
	span.Set(slog.String(telemetry.Execution, v.Execution.String()), slog.String(telemetry.Action, sub.Action))
	span.End()
	if !v.Existing && wait == 0 {
		return v, nil, nil
	}
	x, err = c.await(end, wait)
	if !v.Existing && errors.Is(err, store.ErrNotFound) {
		return v, nil, nil
	}
	return v, x, err
}

// forgotten reports whether retention removed the execution of an idempotency key before it could be loaded. The key was removed with it,
// so submitting again makes a new execution, as it would have done a moment later.
func forgotten(v engine.Submitted, err error) bool {
	return v.Existing && errors.Is(err, store.ErrNotFound)
}

func (c *call) submitBatch(in *api.Batch) error {
	subs := make([]engine.Submission, len(in.Executions))
	for i := range in.Executions {
		subs[i] = submission(&in.Executions[i])
	}
	return c.acceptBatch("executions", subs, func(err error) error { return err })
}

// evaluateBatch submits many evaluations. Each is decoded separately, so that an error in one refuses only that one.
func (c *call) evaluateBatch() error {
	var in struct {
		Evaluations []json.RawMessage `json:"evaluations"`
	}
	if err := c.decode(&in); err != nil {
		return err
	}
	subs := make([]engine.Submission, len(in.Evaluations))
	for i, item := range in.Evaluations {
		var one api.Evaluation
		err := payload.Decode(item, "", &one)
		if err == nil && one.Wait != 0 {
			err = invalid(api.FieldError{Path: "wait", Value: one.Wait.String(), Message: "a batch is answered when it is accepted",
				Fix: "leave it out, give the evaluations a label and wait for that: GET /api/v1/evaluations?label=run=17&wait=60s"})
		}
		if err != nil {
			subs[i] = engine.Submission{Action: string(flow.KindCode), Input: item, Refused: err}
			continue
		}
		if subs[i], err = c.evaluation(&one); err != nil {
			return err
		}
	}
	return c.acceptBatch("evaluations", subs, inBody)
}

// acceptBatch submits the items of a field, and answers with the result of each. place converts the places of errors in a submission to
// places in its item.
func (c *call) acceptBatch(field string, subs []engine.Submission, place func(error) error) error {
	if err := checkBatch(field, len(subs)); err != nil {
		return err
	}
	chain, err := c.chain()
	if err != nil {
		return err
	}
	key := c.r.Header.Get("Idempotency-Key")
	span, trace := c.submitting(len(subs))
	defer span.End()
	for i := range subs {
		if key != "" && subs[i].IdempotencyKey == key {
			return unreadable(api.FieldError{Path: fmt.Sprintf("%s[%d].idempotency_key", field, i), Value: problem.Clip(key, 60),
				Message: "it is what the header Idempotency-Key says, which is the key of the whole batch", Fix: "leave it out, or give the item a key of its own"})
		}
		subs[i].Traceparent, subs[i].Rules = trace, chain
	}
	verdicts, err := c.submitAll(key, subs)
	if err != nil {
		span.Fail(err.Error())
		return fmt.Errorf("submit batch: %w", err)
	}
	out := api.BatchResult{Results: make([]api.BatchEntry, len(verdicts))}
	for i, v := range verdicts {
		if v.Err != nil {
			out.Refused++
			out.Results[i].Problem = batchProblem(fmt.Sprintf("%s[%d]", field, i), place(v.Err))
			continue
		}
		out.Accepted++
		out.Results[i] = api.BatchEntry{ID: v.Execution.String(), Existing: v.Existing}
	}
	return c.json(http.StatusOK, out)
}

// checkBatch refuses an empty batch, and one with too many items.
func checkBatch(field string, n int) error {
	if n == 0 || n > api.BatchLimit {
		return invalid(api.FieldError{Path: field, Value: fmt.Sprintf("%d items", n),
			Message: "it is not a number of items that one batch may have", Fix: fmt.Sprintf("give 1 to %d", api.BatchLimit)})
	}
	return nil
}

// submitAll submits a batch, as one request if it has an idempotency key.
func (c *call) submitAll(key string, subs []engine.Submission) ([]engine.Submitted, error) {
	if key == "" {
		return c.Engine.Submit(c.ctx(), subs)
	}
	return c.Engine.SubmitBatch(c.ctx(), key, subs)
}

// batchFaults is how many errors of one item are listed: a batch may have 10,000 items with a hundred errors each.
const batchFaults = 5

// batchProblem returns the problem of one item, with places in the whole body.
func batchProblem(at string, err error) *api.Problem {
	p := *problemOf(err)
	p.Errors = slices.Clone(p.Errors)
	p.Instance = at
	if len(p.Errors) == 0 {
		return &p
	}
	for k := range p.Errors {
		p.Errors[k].Path = at + "." + p.Errors[k].Path
	}
	p.Detail = summary(p.Errors)
	p.Errors = p.Errors[:min(len(p.Errors), batchFaults)]
	return &p
}

var traceparentForm = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// submitting begins the span of a request that submits. It returns the trace context for the executions: that of the span, or the caller's
// if nothing is recorded here.
func (c *call) submitting(executions int) (*telemetry.Span, string) {
	trace := c.traceparent()
	span := c.Tracer.Root(trace, telemetry.SpanSubmit, c.begun, slog.String(telemetry.Path, c.route.path),
		slog.String(telemetry.RequestID, c.w.Header().Get("X-Request-Id")), slog.Int(telemetry.Requests, executions))
	if span == nil {
		return nil, trace
	}
	return span, span.Traceparent()
}

// traceparent returns the caller's trace context. An invalid one is dropped, as the standard requires.
func (c *call) traceparent() string {
	t := c.r.Header.Get("Traceparent")
	if !traceparentForm.MatchString(t) {
		return ""
	}
	return t
}
