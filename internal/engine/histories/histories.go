// Package histories reads the recorded histories of executions and replays them. It needs no running engine.
package histories

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-run/pawl/internal/definition"
	"github.com/pawl-run/pawl/internal/engine/catalog"
	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/orchestration"
	"github.com/pawl-run/pawl/internal/replay"
	"github.com/pawl-run/pawl/internal/store"
)

const (
	// replayedBytes bounds the inputs and outputs of a workflow's tasks that are in memory while its history is replayed.
	replayedBytes = 64 << 20
	// replayedChildren bounds the number of task executions, over all attempts.
	replayedChildren = 100_000
	childrenPage     = 500
	// historyPage is how many events are read at a time.
	historyPage = 5000
	// historiesPage is how many executions are listed at a time.
	historiesPage = 500
)

// Histories replays the histories of a store.
type Histories struct {
	store   store.Reader
	catalog *catalog.Catalog
	Most    int64 // events of one history
}

// Of replays the histories of a store with the definitions of its catalog.
func Of(s store.Reader, c *catalog.Catalog) *Histories { return &Histories{s, c, replay.MostEvents} }

// All replays every execution of the store, the newest first, and passes its findings on. It holds one history at a time. Executions that
// are removed meanwhile are skipped.
func (h *Histories) All(ctx context.Context, found func(flow.ID, *replay.Result)) error {
	for f := (store.Filter{Limit: historiesPage}); ; {
		page, err := store.List(ctx, h.store, f)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, x := range page {
			f.Before = x.ID
			res, err := h.Replay(ctx, x.ID, 0)
			var long *fault.Invalid
			switch {
			case errors.Is(err, store.ErrNotFound):
				continue
			case errors.As(err, &long):
				res = &replay.Result{Unknown: []replay.Unknown{{Index: -1, What: long.Error()}}}
			case err != nil:
				return fmt.Errorf("replay %s: %w", x.ID, err)
			}
			found(x.ID, res)
		}
	}
}

// Replay applies the rules to a recorded history again, up to event upto (0: all of it), and returns the events that do not follow from
// them. It changes nothing.
func (h *Histories) Replay(ctx context.Context, id flow.ID, upto int64) (*replay.Result, error) {
	r, err := h.Record(ctx, id)
	if err != nil {
		return nil, err
	}
	if upto > int64(len(r.Events)) {
		return nil, fault.New("at", fmt.Sprint(upto), fmt.Sprintf("the history has %d events", len(r.Events)), "name one of them")
	}
	return replay.Replay(r, upto), nil
}

// Compare returns where a recorded run of a workflow would have gone another way under another definition. It changes nothing.
func (h *Histories) Compare(ctx context.Context, id flow.ID, other *definition.Definition) (*replay.Comparison, error) {
	r, err := h.Record(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case r.Execution.Kind != flow.KindWorkflow:
		return nil, fault.New("id", id.String(), "the execution is not a workflow, so it has no tasks",
			"leave the definition out, or name a workflow's execution")
	case other.Workflow == nil:
		return nil, fault.New("document", other.Name, "it has no workflow", "give one with tasks")
	case r.Workflow == nil:
		return nil, fault.New("id", id.String(), "its tasks cannot be replayed: "+r.Without, "compare another execution")
	}
	return replay.Compare(r, other.Workflow.For(&r.Execution.Request)), nil
}

// Record reads the record of an execution.
func (h *Histories) Record(ctx context.Context, id flow.ID) (*replay.Record, error) {
	x, err := h.store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if n := x.NextSeq - 1; n > h.Most {
		return nil, fault.New("id", id.String(), fmt.Sprintf("its history has %d events; at most %d are replayed", n, h.Most), "replay another execution, or read it: pawl events ID")
	}
	r := &replay.Record{Execution: x}
	for after := int64(0); after < x.NextSeq-1; { // later events are not part of the execution that was read
		page, err := h.store.Events(ctx, id, after, min(historyPage, int(x.NextSeq-1-after)))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		r.Events = append(r.Events, page...)
		after = page[len(page)-1].Seq
	}
	switch x.Kind {
	case flow.KindSleep:
		if r.Sleeps, err = requests.SleepOf(x.Payload()); err != nil {
			r.Sleeps = 0 // the execution failed for that reason
		}
	case flow.KindWorkflow:
		return r, h.workflowHistory(ctx, r)
	}
	return r, nil
}

// workflowHistory reads the records of a workflow that are not its own events.
func (h *Histories) workflowHistory(ctx context.Context, r *replay.Record) error {
	x := r.Execution
	def, _, err := h.catalog.Get(ctx, x.Action, x.Version)
	switch {
	case err != nil && fault.Passing(err) && !errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("load its definition: %w", err)
	case err != nil || def.Workflow == nil:
		r.Without = fmt.Sprintf("version %d of definition %s cannot be read", x.Version, x.Action)
		return nil
	}
	w := &replay.Workflow{Definition: def.Workflow.For(&x.Request)}
	for attempt := 1; attempt <= x.Attempt; attempt++ {
		enough, err := h.childHistories(ctx, store.WorkflowAttempt{ID: x.ID, Attempt: attempt}, w)
		if err != nil {
			return err
		}
		if !enough {
			r.Without = fmt.Sprintf("its tasks have more than %d executions, or inputs and outputs of more than %d MB", replayedChildren, replayedBytes>>20)
			return nil
		}
	}
	w.Request = func(c *orchestration.Child, recorded *flow.Execution) (flow.Request, error) {
		return Request(ctx, h.catalog.GetFor, x, c, recorded)
	}
	r.Workflow = w
	return nil
}

// childHistories reads the executions of a workflow's attempt, and reports whether they fit the bounds.
func (h *Histories) childHistories(ctx context.Context, workflowAttempt store.WorkflowAttempt, w *replay.Workflow) (bool, error) {
	have, bytes := map[orchestration.Item]bool{}, 0
	keep := func(x *flow.Execution) bool {
		have[orchestration.Item{Task: x.Task, Index: x.Index}] = true
		bytes += x.PayloadSize()
		if x.Outcome != nil {
			bytes += len(x.Outcome.Output)
		}
		w.Children = append(w.Children, x)
		return bytes <= replayedBytes && len(w.Children) <= replayedChildren
	}
	for task, index := "", -1; ; {
		page, err := h.store.Recorded(ctx, workflowAttempt, task, index, childrenPage)
		if err != nil {
			return false, err
		}
		for _, x := range page {
			task, index = x.Task, x.Index
			if !keep(x) {
				return false, nil
			}
		}
		if len(page) == 0 {
			break
		}
	}
	for task, index := "", -1; ; { // what has not ended
		page, err := h.store.Children(ctx, workflowAttempt, task, index, childrenPage)
		if err != nil || len(page) == 0 {
			return true, err
		}
		for _, c := range page {
			task, index = c.Task, c.Index
			if have[orchestration.Item{Task: c.Task, Index: c.Index}] {
				continue
			}
			x, err := h.store.Get(ctx, c.Execution)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return false, err
			}
			if !keep(x) {
				return false, nil
			}
		}
	}
}

// Request is the request that the rules make for a child. Versions that its task leaves open are the recorded ones.
func Request(ctx context.Context, load catalog.Loader, w *flow.Execution, c *orchestration.Child, recorded *flow.Execution) (flow.Request, error) {
	m := requests.Maker{Workflow: w.ID.String(), Priority: w.Priority, Depth: int(w.Depth)}
	m.Definition = func(ctx context.Context, name string, version int, by string) (*definition.Definition, int, error) {
		if base, _, _ := strings.Cut(name, "@"); version == 0 && base == recorded.Action {
			name, version = base, recorded.Version
		}
		return load(ctx, name, version, by)
	}
	r, refusal, err := m.Request(ctx, c, definition.WorkWithin(definition.SharedWork))
	switch {
	case err != nil:
		return r, fmt.Errorf("what it was started as is not known: %w", err)
	case refusal == nil && r.Kind != flow.KindNoop && recorded.Kind == flow.KindNoop && recorded.Stage == flow.Failed && recorded.Outcome != nil &&
		recorded.Outcome.Error != nil && recorded.Outcome.Error.Code == flow.CodeInvalidInput:
		return r, errors.New("it was refused when it was started, for a reason that does not stand any more: which definitions there were then is not recorded")
	}
	return r, nil
}
