package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/pawl-run/pawl/internal/engine/uploads"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
)

// Attempt is the record of one attempt of an execution.
type Attempt struct {
	*flow.Execution
	Chain string // as its worker was given it
	Began bool   // its worker said so
	Lost  bool
	Stage flow.Stage
	// Outcome is nil while the attempt runs. Attempts before the last have the error and no output, because only the last output is kept.
	Outcome *flow.Outcome
}

// historyAtOnce is how many events are read at a time.
const historyAtOnce = 500

// Attempt reads the record of one attempt of an execution.
func (e *Engine) Attempt(ctx context.Context, x *flow.Execution, number int) (*Attempt, error) {
	if len(x.Rules) > 0 {
		if err := e.rules.chains.loadKey(ctx, e); err != nil {
			return nil, err
		}
	}
	a := &Attempt{Execution: x, Chain: e.rules.chains.header(x.Rules)}
	for after := int64(0); ; {
		events, err := e.opts.Store.Events(ctx, x.ID, after, historyAtOnce)
		if err != nil {
			return nil, fmt.Errorf("history of %s: %w", x.ID, err)
		}
		for i := range events {
			if events[i].Attempt > number {
				return a, nil
			}
			if events[i].Attempt == number {
				a.follow(&events[i])
			}
			after = events[i].Seq
		}
		if len(events) == 0 {
			break
		}
	}
	if x.Attempt == number && x.Outcome != nil {
		a.Stage, a.Outcome = x.Stage, x.Outcome
	}
	return a, nil
}

// moves are the events that change the stage of an attempt.
var moves = flow.Moves()

func (a *Attempt) follow(e *flow.Event) {
	switch e.Type {
	case flow.EvRunning:
		a.Began = true
	case flow.EvLost:
		a.Lost = true
	}
	i := slices.IndexFunc(moves, func(m flow.Move) bool { return m.Event == e.Type })
	if i < 0 {
		return
	}
	if a.Stage = moves[i].To; !a.Stage.Terminal() {
		return
	}
	a.Outcome = &flow.Outcome{}
	var said flow.Error
	if a.Stage != flow.Completed && json.Unmarshal(e.Data, &said) == nil && said.Code != "" {
		a.Outcome.Error = &said
	}
}

// OpenInputBlob opens a blob that the input of an execution names, at an offset. The error is handoff.ErrBlobRefused if the input does not
// name the blob, handoff.ErrNoBlob if it does not exist.
func (e *Engine) OpenInputBlob(ctx context.Context, id flow.ID, name string, from int64) (io.ReadCloser, error) {
	x, err := e.opts.Store.Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("execution %s: %w", id, err)
	}
	if e.opts.Blobs == nil || !uploads.Named(x.Payload(), name) {
		return nil, fmt.Errorf("%w: the input of %s names no blob %.80q", handoff.ErrBlobRefused, id, name)
	}
	if err := checkBlobName(name); err != nil {
		return nil, err
	}
	return e.openBlob(ctx, name, from)
}
