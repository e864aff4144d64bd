package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/problem"
	"github.com/pawl-run/pawl/internal/store"
)

// awaited returns the execution in the path once it has ended or the wait is over.
func (c *call) awaited(wait time.Duration) (*flow.Execution, error) {
	id, err := c.execution()
	if err != nil {
		return nil, err
	}
	return c.awaitEnd(id, wait)
}

func (c *call) getExecution() error {
	wait := c.wait()
	x, err := c.awaited(wait)
	if err != nil {
		return err
	}
	asking, err := c.asking([]*flow.Execution{x})
	if err != nil {
		return err
	}
	inquiry := asking[x.ID].Text(flow.InquiryPrefix)
	tag := etag(x, inquiry)
	c.w.Header().Set("ETag", tag)
	c.w.Header().Set("Cache-Control", "no-cache")
	if wait == 0 && matches(c.r.Header.Get("If-None-Match"), tag) {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	out := render(x)
	out.Inquiry = inquiry
	return c.json(http.StatusOK, out)
}

// asking finds the open inquiries of executions. It looks up only executions that wait for an answer or for their tasks by their own rows:
// a list without such rows costs no call.
func (c *call) asking(all []*flow.Execution) (map[flow.ID]flow.ID, error) {
	var ids []flow.ID
	for _, x := range all {
		if w := x.WaitsFor(); w == "children" || w == "answer" {
			ids = append(ids, x.ID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := c.Engine.Inquiries().Asking(c.ctx(), ids)
	if err != nil {
		return nil, fmt.Errorf("look for open questions: %w", err)
	}
	return found, nil
}

// etag changes with every change of the execution and of its inquiry. A change of state has an event. Orders and moves between waits have
// none, so the tag includes them.
func etag(x *flow.Execution, inquiry string) string {
	ordered := 0
	if x.State.Cancel != nil {
		ordered = 1
	}
	return fmt.Sprintf(`"%d.%d.%d.%d%s"`, x.Attempt, x.NextSeq, x.Place, ordered, inquiry)
}

func matches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == tag || candidate == "*" {
			return true
		}
	}
	return false
}

// awaitEnd returns the execution once it has ended, the wait is over, or the server begins to stop.
func (c *call) awaitEnd(id flow.ID, wait time.Duration) (*flow.Execution, error) {
	end := c.Engine.WaitForEnd(id)
	defer end.Close()
	return c.await(end, wait)
}

func (c *call) await(end *engine.EndWaiter, wait time.Duration) (*flow.Execution, error) {
	x, err := c.ending(end, wait)
	if err != nil {
		return nil, err
	}
	return x, c.holdRow(x)
}

func (c *call) ending(end *engine.EndWaiter, wait time.Duration) (*flow.Execution, error) {
	if wait == 0 {
		return c.Engine.View(end.ID()).Look(c.ctx())
	}
	ctx, cancel := context.WithTimeout(c.ctx(), wait)
	defer cancel()
	defer context.AfterFunc(c.draining, cancel)()
	x, err := end.Wait(ctx)
	if err != nil && ctx.Err() != nil {
		return c.Engine.View(end.ID()).Look(c.ctx())
	}
	return x, err
}

func (c *call) result() error {
	x, err := c.awaited(c.wait())
	if err != nil {
		return err
	}
	if !x.Stage.Terminal() {
		return refusal(http.StatusConflict, api.ProblemNotFinished, fmt.Sprintf("the execution is %s: wait for it with ?wait=30s", x.Stage))
	}
	out := render(x)
	return c.json(http.StatusOK, api.Result{ID: out.ID, Status: out.Status, Output: out.Output, Error: out.Error})
}

func (c *call) filter() (store.Filter, error) {
	f := store.Filter{
		Action: c.query.Get("action"), TopLevel: c.flag("top_level"), Since: c.time("since"), Until: c.time("until"),
		Limit: int(c.number("limit", 100, 1, 1000)),
	}
	f.Stages = c.stages()
	for _, label := range c.query["label"] {
		name, value, ok := c.label(label)
		if !ok {
			continue
		}
		if other, twice := f.Labels[name]; twice && other != value {
			c.fault("label", label, fmt.Sprintf("it is given with the value %.60q too, and an execution has one value of a label", other),
				"ask for one of them")
			continue
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[name] = value
	}
	f.Verdicts = append(f.Verdicts, c.query["verdict"]...)
	f.Workflow = c.id("workflow")
	f.RerunOf = c.id("rerun_of")
	f.RetryOf = c.id("retry_of")
	f.Before = c.id("cursor")
	if err := c.readWhere(); err != nil {
		return f, err
	}
	return f, c.checked()
}

func (c *call) readWhere() (err error) {
	text := c.query.Get("where")
	if text == "" {
		return nil
	}
	c.where, err = c.Engine.Finder().Query(c.ctx(), text, time.Now())
	var wrong problem.List
	if !errors.As(err, &wrong) {
		return err
	}
	for _, p := range wrong {
		f := api.FieldError(p)
		f.Path = "?where"
		c.wrong = append(c.wrong, f)
	}
	return nil
}

func (c *call) label(text string) (name, value string, ok bool) {
	if name, value, ok = strings.Cut(text, "="); !ok || name == "" {
		c.fault("label", text, "it is not a label", "write it as name=value")
		return "", "", false
	}
	return name, value, true
}

func (c *call) stages() (all []flow.Stage) {
	for _, name := range c.query["status"] {
		i := slices.IndexFunc(flow.Stages(), func(s flow.Stage) bool { return s.String() == name })
		if i < 0 {
			c.fault("status", name, "there is no such status", problem.NearestOr(name, statusNames(), "one of"))
			continue
		}
		all = append(all, flow.Stages()[i])
	}
	return all
}

// id reads an execution's id from the query.
func (c *call) id(name string) flow.ID {
	text := c.query.Get(name)
	if text == "" {
		return flow.ID{}
	}
	id, err := flow.ParseID(flow.ExecutionPrefix, text)
	if err != nil {
		c.fault(name, text, err.Error(), "pass it as the server gave it")
	}
	return id
}

func (c *call) cancel() error { return c.end("cancel", c.cancelOnce) }

// cancelOnce is a cancel under the key of the request.
func (c *call) cancelOnce(ctx context.Context, id flow.ID, reason string) (*flow.Execution, error) {
	return c.Engine.CancelOnce(ctx, id, reason, c.r.Header.Get("Idempotency-Key"))
}

func (c *call) kill() error { return c.end("kill", c.Engine.Kill) }

func (c *call) end(verb string, end func(context.Context, flow.ID, string) (*flow.Execution, error)) error {
	wait := c.wait()
	id, err := c.execution()
	if err != nil {
		return err
	}
	var in api.CancelRequest
	if err := c.decodeOptional(&in); err != nil {
		return err
	}
	x, err := end(c.ctx(), id, in.Reason)
	if errors.Is(err, flow.ErrFinished) {
		return refusal(http.StatusConflict, api.ProblemFinished, err.Error())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, id, err)
	}
	if wait > 0 && !x.Stage.Terminal() {
		if x, err = c.awaitEnd(id, wait); err != nil {
			return err
		}
	}
	if x.Stage.Terminal() {
		return c.json(http.StatusOK, render(x))
	}
	return c.json(http.StatusAccepted, render(x))
}

func (c *call) retry() error {
	id, err := c.execution()
	if err != nil {
		return err
	}
	return c.again(func() (engine.Submitted, error) {
		again, err := c.Engine.Retry(c.ctx(), id, c.r.Header.Get("Idempotency-Key"))
		if err != nil {
			return again, fmt.Errorf("retry %s: %w", id, err)
		}
		return again, nil
	})
}

// again submits an execution that repeats a finished one, and answers with the new one.
func (c *call) again(submit func() (engine.Submitted, error)) error {
	for {
		again, err := submit()
		if err != nil {
			return err
		}
		x, err := c.Engine.Reader().Get(c.ctx(), again.Execution)
		if forgotten(again, err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("execution %s: %w", again.Execution, err)
		}
		c.w.Header().Set("Location", "/api/v1/executions/"+again.Execution.String())
		if again.Existing {
			return c.json(http.StatusOK, render(x))
		}
		return c.json(http.StatusAccepted, render(x))
	}
}

// evaluation returns a handler for executions of code only; for others it answers not found.
func evaluation(handle func(*call) error) func(*call) error {
	return func(c *call) error {
		x, err := c.get()
		if err != nil {
			return err
		}
		if x.Kind != flow.KindCode {
			return notFound("evaluation", x.ID.String())
		}
		return handle(c)
	}
}

func (c *call) running() error {
	x, err := c.get()
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, api.RunningState{ID: x.ID.String(), Running: !x.Stage.Terminal(), Status: status(x.Stage)})
}
