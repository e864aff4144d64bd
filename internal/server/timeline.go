package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-run/pawl/api"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// timelineFor is the time after which a call that reads histories ends its page. It reads at least one history.
const timelineFor = 500 * time.Millisecond

// timeline answers with the attempts of a workflow's tasks, or of an execution that is not a workflow.
func (c *call) timeline() error {
	limit := int(c.number("limit", 200, 1, 1000))
	task, index := c.afterItem()
	x, err := c.get()
	if err != nil {
		return err
	}
	out := api.Timeline{Execution: x.ID.String(), Status: status(x.Stage), Attempts: []api.TimelineAttempt{}}
	children := []store.Child{{Execution: x.ID, Kind: x.Kind}}
	more := false
	if x.Kind == flow.KindWorkflow {
		if children, err = c.Engine.Reader().Children(c.ctx(), store.WorkflowAttempt{ID: x.ID, Attempt: x.Attempt}, task, index, limit+1); err != nil {
			return fmt.Errorf("list tasks: %w", err)
		}
		more = len(children) > limit
		children = children[:min(len(children), limit)]
	}
	begun := time.Now()
	for i := range children {
		all, err := c.attemptsOf(&children[i])
		if err != nil {
			return err
		}
		out.Attempts = append(out.Attempts, all...)
		if last := i == len(children)-1; (more && last) || (!last && time.Since(begun) > timelineFor) {
			out.NextCursor = fmt.Sprintf("%s/%d", children[i].Task, children[i].Index)
			break
		}
	}
	return c.json(http.StatusOK, out)
}

func (c *call) afterItem() (task string, index int) {
	text := c.query.Get("cursor")
	if text == "" {
		return "", -1
	}
	i := strings.LastIndexByte(text, '/')
	index, err := strconv.Atoi(text[i+1:])
	if i < 0 || err != nil || index < 0 {
		c.fault("cursor", text, "it is not a cursor of this list", "pass next_cursor as the server gave it")
		return "", -1
	}
	return text[:i], index
}

// attemptsOf reads the history of an execution and sums it up by attempts.
func (c *call) attemptsOf(child *store.Child) ([]api.TimelineAttempt, error) {
	var all []api.TimelineAttempt
	for after := int64(0); ; {
		events, err := c.Engine.Reader().Events(c.ctx(), child.Execution, after, eventsAtOnce)
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		if len(events) == 0 {
			return all, nil
		}
		for i := range events {
			e := &events[i]
			if n := len(all); n == 0 || all[n-1].Attempt != e.Attempt {
				all = append(all, api.TimelineAttempt{Execution: child.Execution.String(), Task: child.Task, Index: child.Index, Kind: string(child.Kind), Attempt: e.Attempt})
			}
			takeIn(&all[len(all)-1], e)
			after = e.Seq
		}
	}
}

var moves = flow.Moves()

// takeIn adds an event's information about its attempt.
func takeIn(a *api.TimelineAttempt, e *flow.Event) {
	var said struct {
		Worker string `json:"worker"`
		Code   string `json:"code"`
	}
	switch e.Type {
	case flow.EvRequested:
		a.CreatedAt = e.At
	case flow.EvScheduled:
		a.QueuedAt = e.At
	case flow.EvProvisioning:
		a.ClaimedAt = e.At
		if json.Unmarshal(e.Data, &said) == nil {
			a.Worker = said.Worker
		}
	case flow.EvRunning:
		a.StartedAt = e.At
	case flow.EvLost:
		a.Lost, a.FinishedAt = true, e.At
	}
	i := slices.IndexFunc(moves, func(m flow.Move) bool { return m.Event == e.Type })
	if i < 0 {
		return
	}
	a.Status = status(moves[i].To)
	if !moves[i].To.Terminal() {
		return
	}
	a.FinishedAt = e.At
	if json.Unmarshal(e.Data, &said) == nil {
		a.Code = said.Code
	}
}
