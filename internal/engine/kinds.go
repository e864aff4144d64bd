package engine

import (
	"context"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/engine/requests"
	"github.com/pawl-run/pawl/internal/flow"
)

// engineKind is how the engine itself runs the executions of one kind. Functions that the kind does not need are nil. Where they are more
// than a few lines they have a file of their own.
type engineKind struct {
	kind flow.Kind
	// check says what is wrong with a payload before it is stored; field is where the payload was given.
	check func(e *Engine, ctx context.Context, payload json.RawMessage, field string) error
	// load reads together what drafts of the kind may need that are about to begin.
	load func(t *transaction, ctx context.Context, ds []*flow.Draft) error
	// begin carries out the start of an attempt. A payload that is wrong only now fails it (failInvalid).
	begin func(t *transaction, ctx context.Context, d *flow.Draft) error
	// wake goes on with an execution whose WakeAt has come.
	wake func(t *transaction, ctx context.Context, d *flow.Draft) error
	// written is told of each execution of the kind that the transaction has written: one that has ended may leave rows behind.
	written func(t *transaction, d *flow.Draft)
}

// engineKinds are the kinds that the engine runs itself: those with byEngine in package flow. (Not a variable: begin leads back to it.)
func engineKinds() []engineKind {
	return []engineKind{
		// advance.go, step.go
		{kind: flow.KindWorkflow, begin: (*transaction).beginWorkflow},
		{kind: flow.KindSleep, check: checkSleep, begin: (*transaction).beginSleep, wake: (*transaction).endSleep},
		// ask.go
		{
			kind: flow.KindAsk, check: (*Engine).checkQuestion, load: (*transaction).loadQuestions,
			begin: (*transaction).ask, wake: (*transaction).remind, written: (*transaction).wroteAsk,
		},
		// await.go, look.go, meeting.go
		{
			kind: flow.KindWait, check: (*Engine).checkAwaited,
			begin: (*transaction).await, wake: (*transaction).endWait, written: (*transaction).wroteWait,
		},
		// carry.go
		{kind: flow.KindRerun, check: checkRerun, begin: (*transaction).beginRerun, wake: (*transaction).carryRerun},
	}
}

// engineKind is the row of a kind; without functions for one that workers run.
func (e *Engine) engineKind(k flow.Kind) *engineKind {
	for i := range e.kinds {
		if e.kinds[i].kind == k {
			return &e.kinds[i]
		}
	}
	return &byWorker
}

var byWorker engineKind

// prepareBegin reads together what drafts need to begin that are about to.
func (t *transaction) prepareBegin(ctx context.Context, ds []*flow.Draft) error {
	if err := t.loadPayloads(ctx, ds); err != nil {
		return err
	}
	for i := range t.e.kinds {
		k := &t.e.kinds[i]
		if k.load == nil {
			continue
		}
		var of []*flow.Draft // not ds itself: the call of a variable would put the ds of all callers on the heap
		for _, d := range ds {
			if d.Kind == k.kind {
				of = append(of, d)
			}
		}
		if len(of) > 0 {
			if err := k.load(t, ctx, of); err != nil {
				return err
			}
		}
	}
	return nil
}

// failInvalid fails an execution that the engine runs itself and whose payload asks for what cannot be done.
func (t *transaction) failInvalid(d *flow.Draft, why error) error {
	return d.Finish(flow.Failed, flow.Outcome{Error: &flow.Error{Code: flow.CodeInvalidInput, Message: why.Error()}}, t.now, 0)
}

// beginWorkflow lets a workflow take its first step.
func (t *transaction) beginWorkflow(_ context.Context, d *flow.Draft) error {
	t.workflows.due[d.ID], t.workflows.begun[d.ID] = true, true
	return nil
}

func checkSleep(_ *Engine, _ context.Context, payload json.RawMessage, field string) error {
	_, err := requests.SleepOf(payload)
	return invalidPayload(field, err)
}

// invalidPayload is the refusal of a payload of which err says what is wrong; nil where err is.
func invalidPayload(field string, err error) error {
	if err == nil {
		return nil
	}
	return fault.New(field, "", err.Error(), "")
}

func (t *transaction) beginSleep(_ context.Context, d *flow.Draft) error {
	pause, err := requests.SleepOf(d.Payload())
	if err != nil {
		return t.failInvalid(d, err)
	}
	d.WakeAgainAt(t.now.Add(pause))
	return nil
}

// endSleep completes a sleep: it was over in time, however late the engine looks.
func (t *transaction) endSleep(_ context.Context, d *flow.Draft) error {
	return d.Finish(flow.Completed, flow.Outcome{}, t.now, 0)
}
