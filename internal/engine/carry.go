package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/pawl-run/pawl/internal/engine/fault"
	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
	"github.com/pawl-run/pawl/internal/telemetry"
)

// An execution of kind rerun runs another one again and ends when that has ended. It is planned outside of transactions, so a loop of the
// engine carries it out: the sweep hands it over when it becomes due, and makes it due again a little later, for the case that this
// replica dies. The rerun is submitted under a key that is made of the execution's id, so it is made once, however often it is carried out.

const (
	carryAgain = 5 * time.Second // after which it is handed over again
	carryWait  = 4 * time.Second // how long its end is waited for each time
	carryLook  = time.Second     // the same while others wait to be carried out
	carryPlans = 4               // how many are planned at the same time
	carryMost  = 1000            // how many are carried out at the same time: each has a goroutine, and 100,000 tasks of a foreach may be reruns
)

// rerunQueue holds the executions of kind rerun that are to be carried out. The sweep hands each over every 5 s until
// it has ended, also while it waits to be planned: one that waits or is under way here is not taken a second time.
type rerunQueue struct {
	mu      sync.Mutex
	waiting []flow.ID
	has     map[flow.ID]bool // those that wait, and those under way
	signal  chan struct{}    // capacity 1
}

func (c *rerunQueue) add(ids []flow.ID) {
	c.mu.Lock()
	for _, id := range ids {
		if !c.has[id] {
			c.has[id] = true
			c.waiting = append(c.waiting, id)
		}
	}
	some := len(c.waiting) > 0
	c.mu.Unlock()
	if some {
		signal(c.signal)
	}
}

// take takes the one that has waited longest; false: none waits.
func (c *rerunQueue) take() (flow.ID, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return flow.ID{}, false
	}
	id := c.waiting[0]
	c.waiting = c.waiting[1:]
	return id, true
}

// done says that one is under way no more.
func (c *rerunQueue) done(id flow.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.has, id)
}

// wait is how long the end of a rerun is waited for.
func (c *rerunQueue) wait() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		return carryLook
	}
	return carryWait
}

// rerunPayload is how many bytes an execution of kind rerun may be given: its paths, with escapes. It is read in a transaction.
const rerunPayload = 4 * pathsBytes

// rerunOf reads what an execution of kind rerun is asked for.
func rerunOf(payload json.RawMessage) (of flow.ID, o RerunOptions, err error) {
	var with struct {
		Execution, Definition string
		From                  []string
	}
	if len(payload) > rerunPayload {
		return of, o, fmt.Errorf("rerun: it is given %d KB, and at most %d are read: name fewer tasks in from", len(payload)>>10, rerunPayload>>10)
	}
	if err := json.Unmarshal(payload, &with); err != nil {
		return of, o, fmt.Errorf("rerun wants {\"execution\": \"ex_…\"}, not %.80s", payload)
	}
	if of, err = flow.ParseID(flow.ExecutionPrefix, with.Execution); err != nil || of.IsZero() {
		return of, o, fmt.Errorf("rerun: execution: %.60q is not an execution's id: write {\"execution\": \"ex_…\"}", with.Execution)
	}
	o.Definition = with.Definition
	for _, path := range with.From {
		if err := o.Name("from", path, nil); err != nil {
			return of, o, fmt.Errorf("rerun: %w", err)
		}
	}
	return of, o, nil
}

func checkRerun(_ *Engine, _ context.Context, payload json.RawMessage, field string) error {
	_, _, err := rerunOf(payload)
	return invalidPayload(field, err)
}

func (t *transaction) beginRerun(_ context.Context, d *flow.Draft) error {
	if _, _, err := rerunOf(d.Payload()); err != nil {
		return t.failInvalid(d, err)
	}
	d.WakeAgainAt(t.now)
	return nil
}

// carryRerun hands a rerun over to be carried out.
func (t *transaction) carryRerun(_ context.Context, d *flow.Draft) error {
	d.WakeAgainAt(t.now.Add(carryAgain))
	t.effects.reruns = append(t.effects.reruns, d.ID)
	return nil
}

// carryCommitted hands over what a committed transaction has made due.
func (e *Engine) carryCommitted(t *transaction) { e.reruns.add(t.effects.reruns) }

// carryReruns carries out what the sweep hands over, until ctx ends.
func (e *Engine) carryReruns(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	all, plans := make(chan struct{}, carryMost), make(chan struct{}, carryPlans)
	for {
		for id, some := e.reruns.take(); some; id, some = e.reruns.take() {
			select {
			case all <- struct{}{}:
			case <-ctx.Done():
				return
			}
			wg.Go(func() {
				defer func() { e.reruns.done(id); <-all }()
				if err := e.carry(ctx, id, plans); err != nil && ctx.Err() == nil {
					e.opts.Log.Error("a rerun could not be carried out; it will be tried again", telemetry.Execution, id, telemetry.Err, err)
				}
			})
		}
		select {
		case <-e.reruns.signal:
		case <-ctx.Done():
			return
		}
	}
}

// carry submits the rerun that an execution asks for, unless it has been submitted, and ends the execution once the
// rerun has ended. A rerun whose plan panics fails: it would do so again every time.
func (e *Engine) carry(ctx context.Context, id flow.ID, plans chan struct{}) (err error) {
	defer fault.Recovered(&err)
	_, again, err := e.unendedRerun(ctx, id)
	if err == nil && again.IsZero() {
		select {
		case plans <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		// It may have waited for long: another replica may have submitted the rerun, and a cancel may have ended the execution.
		var x *flow.Execution
		if x, again, err = e.unendedRerun(ctx, id); err == nil && again.IsZero() {
			again, err = e.rerunFor(ctx, x)
		}
		<-plans
	}
	var refused *fault.Invalid
	var panicked *fault.Panicked
	switch {
	case errors.Is(err, flow.ErrFinished):
		return nil
	case errors.As(err, &panicked):
		e.opts.Log.Error("a rerun could not be planned", telemetry.Execution, id, telemetry.Err, err)
		return e.endRerun(ctx, id, flow.Failed, flow.Outcome{Error: &flow.Error{Code: flow.CodeRerunRefused, Message: "it could not be planned: " + panicked.Short()}})
	case errors.As(err, &refused), errors.Is(err, store.ErrNotFound), errors.Is(err, ErrIdempotencyMismatch):
		return e.endRerun(ctx, id, flow.Failed, flow.Outcome{Error: &flow.Error{Code: flow.CodeRerunRefused, Message: err.Error()}})
	case err != nil:
		return err
	}
	end := e.Ending(again)
	defer end.Close()
	waiting, stop := context.WithTimeout(ctx, e.reruns.wait())
	defer stop()
	y, err := end.Wait(waiting)
	if waiting.Err() != nil && err != nil {
		return nil // it is handed over again
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	out := struct {
		Execution string `json:"execution"`
		Status    string `json:"status,omitempty"`
	}{Execution: again.String()}
	if err == nil {
		out.Status = y.Stage.String()
	}
	output, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("say what became of %s: %w", again, err)
	}
	return e.endRerun(ctx, id, flow.Completed, flow.Outcome{Output: output})
}

// unendedRerun returns an execution of kind rerun, and the rerun that was submitted for it (zero: none yet), or
// flow.ErrFinished where the execution has ended or was removed.
func (e *Engine) unendedRerun(ctx context.Context, id flow.ID) (x *flow.Execution, again flow.ID, err error) {
	x, err = e.opts.Store.Get(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && x.Stage.Terminal() {
		return nil, again, flow.ErrFinished
	}
	if err == nil {
		again, _, err = e.submittedRerun(ctx, id)
	}
	return x, again, err
}

// carriedKey is the idempotency key of the rerun that an execution asks for.
func carriedKey(id flow.ID) string { return "rerun-for:" + id.String() }

// submittedRerun returns the rerun that was submitted for an execution.
func (e *Engine) submittedRerun(ctx context.Context, id flow.ID) (again flow.ID, known bool, err error) {
	return e.knownBy(ctx, carriedKey(id))
}

// knownBy returns the execution that was submitted under an idempotency key.
func (e *Engine) knownBy(ctx context.Context, key string) (again flow.ID, known bool, err error) {
	r := newRequest(nil, classCall, func(_ context.Context, t *transaction) (flow.ID, error) {
		return t.loaded.idempotency[key].Execution, nil
	})
	r.needs = func(t *transaction) { t.wants.idempotency = append(t.wants.idempotency, key) }
	again, err = awaitAnswer(ctx, e, r)
	return again, !again.IsZero(), err
}

// rerunFor submits the rerun that an execution asks for, in the same way as Rerun does; flow.ErrFinished where the execution has ended
// meanwhile, which a cancel of what it is a task of does.
func (e *Engine) rerunFor(ctx context.Context, x *flow.Execution) (again flow.ID, err error) {
	defer fault.Recovered(&err)
	of, o, err := rerunOf(x.Payload())
	if err != nil {
		return flow.ID{}, fault.New("input", "", err.Error(), "")
	}
	o.IdempotencyKey = carriedKey(x.ID)
	out, _, err := e.rerun(ctx, of, o, x.ID)
	return out.Execution, err
}

// endRerun ends an execution of kind rerun.
func (e *Engine) endRerun(ctx context.Context, id flow.ID, as flow.Stage, o flow.Outcome) error {
	return e.do(ctx, []flow.ID{id}, func(_ context.Context, t *transaction) error {
		d := t.draft(id)
		if d == nil || d.Stage.Terminal() {
			return nil
		}
		if err := d.Finish(as, o, t.now, 0); err != nil {
			return fmt.Errorf("end a rerun: %w", err)
		}
		t.changed(d)
		return nil
	})
}
