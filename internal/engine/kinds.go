package engine

import (
	"context"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/engine/txn"
	"github.com/pawl-run/pawl/internal/flow"
)

// newKinds are the kinds that the engine runs itself: byEngine is true for them in package flow.
func (e *Engine) newKinds() []txn.Kind {
	return []txn.Kind{
		// advance.go, step.go
		{Kind: flow.KindWorkflow, Begin: engineStep((*transaction).beginWorkflow)},
		{Kind: flow.KindSleep, Check: checkSleep, Begin: beginSleep, Wake: endSleep},
		e.inquiries.Kind(),
		e.waits.Kind(),
	}
}

// engineStep is a step of a kind in this package, which sees the whole transaction.
func engineStep(decide func(*transaction, context.Context, *flow.Draft) error) txn.Step {
	return func(ctx context.Context, t txn.Tx, d *flow.Draft) error { return decide(t.(*transaction), ctx, d) }
}

// engineKind is the entry of a kind; without functions for a kind that workers run.
func (e *Engine) engineKind(k flow.Kind) *txn.Kind {
	if !k.ByEngine() {
		return &byWorker
	}
	for i := range e.kinds {
		if e.kinds[i].Kind == k {
			return &e.kinds[i]
		}
	}
	return &byWorker
}

var byWorker txn.Kind

// prepareBegin reads, in one query each, the rows that drafts need which are about to begin.
func (t *transaction) prepareBegin(ctx context.Context, ds []*flow.Draft) error {
	if err := t.loadPayloads(ctx, ds); err != nil {
		return err
	}
	for i := range t.e.kinds {
		k := &t.e.kinds[i]
		if k.Load == nil {
			continue
		}
		var ofKind []*flow.Draft // not ds itself: the call of a variable would put the ds of all callers on the heap
		for _, d := range ds {
			if d.Kind == k.Kind {
				ofKind = append(ofKind, d)
			}
		}
		if len(ofKind) > 0 {
			if err := k.Load(ctx, t, ofKind); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginWorkflow lets a workflow take its first step.
func (t *transaction) beginWorkflow(_ context.Context, d *flow.Draft) error {
	t.workflows.due[d.ID], t.workflows.begun[d.ID] = true, true
	return nil
}

func checkSleep(_ context.Context, payload json.RawMessage, field string) error {
	if _, err := requests.SleepOf(payload); err != nil {
		return fault.New(field, "", err.Error(), "")
	}
	return nil
}

func beginSleep(_ context.Context, t txn.Tx, d *flow.Draft) error {
	pause, err := requests.SleepOf(d.Payload())
	if err != nil {
		return txn.FailInvalid(t, d, err)
	}
	d.WakeAgainAt(t.Now().Add(pause))
	return nil
}

// endSleep completes a sleep: it ended at its due time, however late the engine looks.
func endSleep(_ context.Context, t txn.Tx, d *flow.Draft) error {
	return d.Finish(flow.Completed, flow.Outcome{}, t.Now(), 0)
}
