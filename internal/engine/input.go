package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/handoff"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// AtEnd is the offset of a piece of input that is appended, wherever the input ends.
const AtEnd = -1

// Feed gives an execution a piece of input at an offset, and returns all that the execution has got so far. Giving the same piece again
// changes nothing. Errors are ErrFinished, ErrInputOffset, ErrInputClosed and ErrInputFull of package flow, or the store's. After an error
// the caller must not change piece.
func (e *Engine) Feed(ctx context.Context, id flow.ID, at int64, piece []byte, last bool) (flow.Input, error) {
	type fed struct {
		in      flow.Input
		verdict error
	}
	r := newRequest([]flow.ID{id}, classCall, func(ctx context.Context, t *transaction) (f fed, err error) {
		f.in, f.verdict, err = t.feed(ctx, id, at, piece, last)
		return f, err
	})
	r.bytes = len(piece)
	f, err := awaitAnswer(ctx, e, r)
	if err != nil {
		return flow.Input{}, err
	}
	if f.verdict == nil {
		e.watch.fed(id)
	}
	return f.in, f.verdict
}

// feed is the decision. The execution is locked, so other pieces come before or after.
func (t *transaction) feed(ctx context.Context, id flow.ID, at int64, piece []byte, last bool) (input flow.Input, verdict, err error) {
	d := t.Draft(id)
	if d == nil {
		return input, fmt.Errorf("execution %s: %w", id, store.ErrNotFound), nil
	}
	if input, err = t.tx.FedInput(ctx, id); err != nil {
		return input, nil, err
	}
	if at == AtEnd {
		at = input.Size
	}
	var stored []byte
	if n := input.Repeats(at, len(piece)); n > 0 {
		if stored, err = t.fedBefore(ctx, id, at, n); err != nil {
			return input, nil, err
		}
	}
	fresh, next, verdict := input.Feed(at, piece, last, stored)
	switch {
	case verdict == nil && next == input: // also after the end: the first answer may have been lost
		return input, nil, nil
	case d.Stage.Terminal():
		return input, flow.ErrFinished, nil
	case verdict != nil:
		return input, verdict, nil
	}
	rows := t.changes.add()
	rows.Input = append(rows.Input, store.InputPiece{Execution: id, Number: next.Pieces, Offset: input.Size, Data: fresh, Last: last})
	return next, nil, nil
}

// fedBefore returns n bytes of an execution's input from an offset on, which a client has sent again. A page of the store may have fewer if
// the input came in very many pieces.
func (t *transaction) fedBefore(ctx context.Context, id flow.ID, at int64, n int) ([]byte, error) {
	stored := make([]byte, 0, n)
	for len(stored) < n {
		page, _, err := t.tx.ReadInput(ctx, id, at+int64(len(stored)), int64(n-len(stored)))
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return nil, fmt.Errorf("the input of %s has %d bytes from offset %d on: %d were expected", id, len(stored), at, n)
		}
		stored = append(stored, page...)
	}
	return stored[:n], nil
}

// fed wakes the watchers of an execution that has got input.
func (b *watchers) fed(id flow.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wake(id, false)
}

const (
	// inputAtOnce is about how much input goes to a worker at a time: the rest waits until the program has read it.
	inputAtOnce = 256 << 10
	// inputPoll is how many polls lie between two checks for input that this replica was not notified of although
	// notifications arrive.
	inputPoll = 10
)

// Input implements handoff.Handoff.
func (e *Engine) Input(ctx context.Context, session flow.ID, q handoff.InputQuery) (handoff.Input, error) {
	if _, err := e.sessionOf(ctx, session); err != nil {
		return handoff.Input{}, err
	}
	if err := e.checkHeld(ctx, session, q.Execution, q.Attempt); err != nil {
		return handoff.Input{}, err
	}
	changed, stop := e.Watch(q.Execution) // before the first read, so that no input is missed
	defer stop()
	for {
		data, last, err := e.opts.Store.ReadInput(ctx, q.Execution, q.From, inputAtOnce)
		if err != nil {
			return handoff.Input{}, sessionError(err)
		}
		if input := (handoff.Input{Data: data, Last: last}); !input.Empty() {
			return input, nil
		}
		select {
		case <-changed:
		case <-e.lookForInput():
		case <-ctx.Done():
			return handoff.Input{}, ctx.Err()
		}
	}
}

// checkHeld returns handoff.ErrNotHeld unless the session holds the attempt.
func (e *Engine) checkHeld(ctx context.Context, session, id flow.ID, attempt int) error {
	held, err := inBatch(ctx, e, []flow.ID{id}, func(_ context.Context, t *transaction) (bool, error) {
		d := t.Draft(id)
		return d != nil && d.Place == flow.Held && d.Owner == session && d.Attempt == attempt, nil
	})
	if err != nil || held {
		return sessionError(err)
	}
	e.counters.fenced.Add(1)
	e.opts.Log.Warn("refused the input or the blobs of an attempt that the session does not hold", telemetry.Session, session.Text(flow.SessionPrefix),
		telemetry.Execution, id, telemetry.Attempt, attempt)
	return fmt.Errorf("attempt %d of %s: %w", attempt, id, handoff.ErrNotHeld)
}

// lookForInput fires when the store should be read for input that this replica was not notified of.
func (e *Engine) lookForInput() <-chan time.Time {
	switch {
	case e.opts.Exclusive:
		return nil
	case e.notified.Load():
		return time.After(e.jittered(inputPoll * e.opts.Poll))
	}
	return time.After(e.jittered(e.opts.Poll))
}
