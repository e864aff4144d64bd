package server

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/engine"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

func renderPause(p *store.Pause) api.Pause {
	return api.Pause{Number: p.Generation, Kind: p.Of.String(), Name: p.Name, Paused: p.Paused, At: p.At, Until: p.Until, By: p.By, Reason: p.Reason}
}

func (c *call) pausedBy() (func(of store.PauseKind, name string) *api.Pause, error) {
	all, err := c.Engine.Paused(c.ctx())
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	return func(of store.PauseKind, name string) *api.Pause {
		for i := range all {
			if all[i].Of == of && all[i].Name == name {
				p := renderPause(&all[i])
				return &p
			}
		}
		return nil
	}, nil
}

func (c *call) pauseWork(of store.PauseKind, in *api.PauseOrder) error {
	if in.Timers != "" {
		return invalid(api.FieldError{Path: "timers", Value: in.Timers, Message: fmt.Sprintf("timers run on while a %s is paused", of),
			Fix: "leave it out; the timers of an execution can stand still: pawl pause execution ID --timers stop"})
	}
	p, err := c.Engine.PauseWork(c.ctx(), of, c.r.PathValue("name"), engine.PauseOrder{By: in.By, Reason: in.Reason, For: time.Duration(in.For)})
	return c.answerPause(&p, err)
}

func (c *call) resumeWork(of store.PauseKind, in *api.ResumeOrder) error {
	p, err := c.Engine.ResumeWork(c.ctx(), of, c.r.PathValue("name"), engine.PauseOrder{By: in.By, Reason: in.Reason})
	return c.answerPause(&p, err)
}

// renderExecutionPause returns the pause of an execution; nil if it has none.
func renderExecutionPause(x *flow.Execution) *api.Pause {
	p := x.State.Pause
	if p == nil {
		return nil
	}
	return &api.Pause{Kind: "execution", Name: x.ID.String(), Paused: true, At: p.At, Until: p.Until, By: p.By, Reason: p.Reason, Timers: timers(p)}
}

// timers returns whether a pause stops timers.
func timers(p *flow.Pause) string {
	if p.Stops {
		return "stop"
	}
	return ""
}

func (c *call) pauseExecution(id flow.ID, in *api.PauseOrder) error {
	o := engine.PauseOrder{By: in.By, Reason: in.Reason, For: time.Duration(in.For), Stops: in.Timers == "stop"}
	p, err := c.Engine.PauseExecution(c.ctx(), id, o)
	return c.answerWorkflowPause(id, p, err)
}

func (c *call) resumeExecution(id flow.ID, in *api.ResumeOrder) error {
	p, err := c.Engine.ResumeExecution(c.ctx(), id, engine.PauseOrder{By: in.By, Reason: in.Reason})
	return c.answerWorkflowPause(id, p, err)
}

func (c *call) answerWorkflowPause(id flow.ID, p engine.WorkflowPause, err error) error {
	switch {
	case errors.Is(err, flow.ErrFinished):
		return refusal(http.StatusConflict, api.ProblemFinished, err.Error())
	case err != nil:
		return fmt.Errorf("pause or resume %s: %w", id, err)
	}
	return c.json(http.StatusOK, &api.Pause{Kind: "execution", Name: id.String(), Paused: p.Paused, At: p.At, Until: p.Until, By: p.By, Reason: p.Reason, Timers: timers(&p.Pause), Beneath: p.Beneath})
}

func (c *call) answerPause(p *store.Pause, err error) error {
	if err != nil {
		return orNotFound(err)
	}
	return c.json(http.StatusOK, renderPause(p))
}

// orNotFound turns a *fault.NoSuch into an answer.
func orNotFound(err error) error {
	if none, ok := errors.AsType[*fault.NoSuch](err); ok {
		return refusal(http.StatusNotFound, api.ProblemNotFound, none.Error())
	}
	return err
}

func (c *call) pauses() error {
	history := c.flag("history")
	limit := int(c.number("limit", 100, 1, 1000))
	below := c.number("cursor", 0, 1, math.MaxInt64)
	if err := c.checked(); err != nil {
		return err
	}
	var all []store.Pause
	var err error
	if history {
		all, err = c.Engine.Reader().PauseHistory(c.ctx(), 0, "", below, limit)
	} else {
		all, err = c.Engine.Paused(c.ctx())
	}
	if err != nil {
		return fmt.Errorf("list pauses: %w", err)
	}
	out := api.PauseList{Pauses: make([]api.Pause, len(all))}
	for i := range all {
		out.Pauses[i] = renderPause(&all[i])
	}
	if history && len(all) == limit {
		out.NextCursor = strconv.FormatInt(all[len(all)-1].Generation, 10)
	}
	return c.json(http.StatusOK, out)
}
