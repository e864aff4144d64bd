package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

const (
	// pausedAtOnce is how many workflows one request pauses or resumes.
	pausedAtOnce = 100
	// pausedWithin is how long an order continues after its caller has gone: 100,000 tasks are 1,000 requests, each of which is a commit.
	pausedWithin = 5 * time.Minute
)

// WorkflowPause is the result of an order to pause or resume a workflow.
type WorkflowPause struct {
	flow.Pause      // as ordered; At is zero if there was nothing to resume
	Paused     bool // false: it was resumed, or was not paused
	Beneath    int  // workflows beneath it that were paused or resumed too
}

// pauseOrder changes the pause of a workflow, and returns the new pause; nil: no change was needed.
type pauseOrder func(*transaction, *flow.Draft) (*flow.Pause, error)

// PauseExecution makes a workflow and those beneath it start no more tasks, until it is resumed or its time is over. Tasks that have begun,
// or wait in a queue, continue. With o.Stops, the timers of these workflows stop, and so do their tasks that only wait. A paused workflow
// gets the new pause. The error is flow.ErrFinished for an ended execution, and *Invalid for one that is not a workflow.
func (e *Engine) PauseExecution(ctx context.Context, id flow.ID, o PauseOrder) (WorkflowPause, error) {
	if err := o.check(); err != nil {
		return WorkflowPause{}, err
	}
	r, err := e.changeWorkflows(ctx, id, topFirst, func(t *transaction, d *flow.Draft) (*flow.Pause, error) {
		var until time.Time
		if o.For > 0 {
			until = t.now.Add(o.For).Truncate(time.Microsecond)
		}
		var err error
		switch {
		case o.Stops && !d.CanStandStill(), d.Kind != flow.KindWorkflow && !o.Stops && d.State.Pause == nil:
			return nil, nil
		case d.Kind != flow.KindWorkflow && !o.Stops: // the previous pause stopped its timer
			err = d.Resume(o.By, o.Reason, t.now)
		default:
			err = d.Pause(flow.Pause{Until: until, By: o.By, Reason: o.Reason, Stops: o.Stops}, t.now)
		}
		return d.State.Pause, err
	})
	r.Paused = err == nil
	return r, err
}

// ResumeExecution lets a workflow and those beneath it start tasks again, also those that were paused separately.
func (e *Engine) ResumeExecution(ctx context.Context, id flow.ID, o PauseOrder) (WorkflowPause, error) {
	if err := o.check(); err != nil {
		return WorkflowPause{}, err
	}
	return e.changeWorkflows(ctx, id, topLast, func(t *transaction, d *flow.Draft) (*flow.Pause, error) {
		if d.State.Pause == nil {
			return nil, nil
		}
		return &flow.Pause{At: t.now, By: o.By, Reason: o.Reason}, d.Resume(o.By, o.Reason, t.now)
	})
}

// changeOrder is the order in which the levels of a workflow are changed. If a server dies in between, the top is paused in both cases, and
// the same order, repeated, changes the rest.
type changeOrder bool

const (
	topFirst changeOrder = false // for a pause: once it is committed, the workflow starts no others
	topLast  changeOrder = true  // for a resume: tasks that only wait have a pause of their own, which only this order ends
)

// changeWorkflows executes an order on a workflow and those beneath it. Once begun, it continues without its caller.
func (e *Engine) changeWorkflows(ctx context.Context, id flow.ID, sequence changeOrder, order pauseOrder) (r WorkflowPause, err error) {
	x, err := e.opts.Store.Get(ctx, id)
	switch {
	case err != nil:
		return r, err
	case x.Kind != flow.KindWorkflow:
		return r, fault.New("id", id.String(), fmt.Sprintf("it is a %s: only a workflow can be paused, which then starts no more tasks", x.Kind),
			"pause its queue, or cancel it")
	case x.Stage.Terminal():
		return r, errFinished(x)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), pausedWithin)
	defer stop()
	top := func() error {
		changed, err := e.changeEach(ctx, []flow.ID{id}, order)
		if len(changed) > 0 {
			r.Pause = *changed[0]
		}
		return err
	}
	if sequence == topFirst {
		if err := top(); err != nil {
			return r, err
		}
		if x, err = e.opts.Store.Get(ctx, id); err != nil {
			return r, err
		}
		if x.Stage.Terminal() {
			return r, errFinished(x)
		}
	}
	var later []levelTasks
	for level := []*flow.Execution{x}; len(level) > 0; {
		var found levelTasks
		if level, found.timed, err = e.tasksBeneath(ctx, level); err != nil {
			return r, err
		}
		for _, w := range level {
			found.workflows = append(found.workflows, w.ID)
		}
		if sequence == topLast {
			later = append(later, found)
		} else if err := e.changeLevel(ctx, found, order, &r); err != nil {
			return r, err
		}
	}
	for _, found := range slices.Backward(later) {
		if err := e.changeLevel(ctx, found, order, &r); err != nil {
			return r, err
		}
	}
	if sequence == topLast {
		return r, top()
	}
	return r, nil
}

// levelTasks are the open tasks of the workflows of one level: those that wait only for their time or a signal, and
// those that are workflows.
type levelTasks struct{ timed, workflows []flow.ID }

// changeLevel executes an order on a level, and counts its workflows.
func (e *Engine) changeLevel(ctx context.Context, l levelTasks, order pauseOrder, r *WorkflowPause) error {
	for chunk := range slices.Chunk(l.timed, pausedAtOnce) {
		if _, err := e.changeEach(ctx, chunk, order); err != nil {
			return err
		}
	}
	for chunk := range slices.Chunk(l.workflows, pausedAtOnce) {
		changed, err := e.changeEach(ctx, chunk, order)
		if err != nil {
			return err
		}
		r.Beneath += len(changed)
	}
	return nil
}

// changeEach executes an order on some workflows, and returns the changed pauses.
func (e *Engine) changeEach(ctx context.Context, ids []flow.ID, order pauseOrder) ([]*flow.Pause, error) {
	return inBatch(ctx, e, ids, func(_ context.Context, t *transaction) (changed []*flow.Pause, err error) {
		for _, id := range ids {
			d := t.Draft(id)
			if d == nil || d.Stage.Terminal() {
				continue
			}
			p, err := order(t, d)
			if err != nil {
				return nil, err
			}
			if p == nil && !d.Changed() {
				continue
			}
			if p != nil {
				changed = append(changed, p)
			}
			t.Changed(d)
			if d.Place == flow.Held && d.Kind == flow.KindWorkflow {
				t.workflows.due[id] = true // its step sets the timer for the pause's end, or continues
			}
		}
		return changed, nil
	})
}

// tasksBeneath are the open tasks of some workflows: those that are workflows, and those that may only wait for their time or a signal.
func (e *Engine) tasksBeneath(ctx context.Context, parents []*flow.Execution) (workflows []*flow.Execution, timed []flow.ID, err error) {
	for _, w := range parents {
		task, index := "", -1
		for {
			page, err := e.opts.Store.Children(ctx, store.WorkflowAttempt{ID: w.ID, Attempt: w.Attempt}, task, index, recordedAtOnce)
			if err != nil {
				return nil, nil, fmt.Errorf("list tasks: %w", err)
			}
			for i := range page {
				c := &page[i]
				task, index = c.Task, c.Index
				if c.Stage.Terminal() {
					continue
				}
				if c.Kind != flow.KindWorkflow {
					if c.Kind == flow.KindSleep || c.Kind == flow.KindWait || c.Attempt == 1 && !c.WakeAt.IsZero() {
						timed = append(timed, c.Execution)
					}
					continue
				}
				switch x, err := e.opts.Store.Get(ctx, c.Execution); {
				case err == nil:
					workflows = append(workflows, x)
				case !errors.Is(err, store.ErrNotFound):
					return nil, nil, err
				}
			}
			if len(page) < recordedAtOnce {
				break
			}
		}
	}
	return workflows, timed, nil
}

// observePause resumes a workflow whose pause has expired, or sets a timer for that time.
func (t *transaction) observePause(w *flow.Draft) error {
	p := w.State.Pause
	switch {
	case p == nil:
		return nil
	case !w.PausedAt(t.now):
		if err := w.Resume("", "", t.now); err != nil {
			return err
		}
		t.e.opts.Log.Info("a workflow goes on: its pause is over", telemetry.Execution, w.ID)
	case w.State.Cancel == nil:
		w.WakeAgainAt(p.Until)
	}
	return nil
}
