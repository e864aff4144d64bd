package engine

import (
	"context"
	"slices"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// view is how a transaction reads the store and locks rows of it. A read that could find decided rows writes them first. Reads of
// executions write everything. Reads of other rows write only such rows, because a new execution is written together with its claim if
// nothing reads it in between. These reads write nothing:
//
//   - Lock and Submitted, whose callers check the transaction first (load, loadIdempotency)
//   - LockWorkflows, because a new workflow is written with its first step (beforeFirstStep)
//   - the reads of waits and inquiries, which are kept until the end of the transaction (atEnd)
type view struct {
	store.Access
	t *transaction
}

// expecter is the store if it is remote.
func (v *view) expecter() (store.Expecter, bool) {
	x, ok := v.Access.(store.Expecter)
	return x, ok
}

// wrote writes the decisions about an execution, for a read of its history.
func (v *view) wrote(ctx context.Context, id flow.ID) error {
	if !slices.ContainsFunc(v.t.changes.drafts, func(d *flow.Draft) bool { return d.ID == id }) {
		return nil
	}
	return v.t.flush(ctx)
}

func (v *view) Applied(ctx context.Context, id flow.ID, from, to int64) ([]flow.Event, error) {
	if err := v.wrote(ctx, id); err != nil {
		return nil, err
	}
	return v.Access.Applied(ctx, id, from, to)
}

func (v *view) Inbox(ctx context.Context, id flow.ID) ([]flow.Event, error) {
	if err := v.wrote(ctx, id); err != nil {
		return nil, err
	}
	return v.Access.Inbox(ctx, id)
}

func (v *view) Due(ctx context.Context, now time.Time, n int) ([]*flow.Execution, time.Time, error) {
	if err := v.t.flush(ctx); err != nil {
		return nil, time.Time{}, err
	}
	return v.Access.Due(ctx, now, n)
}

// Take leaves out new executions that are not written yet: handOver gives them to claimers.
func (v *view) Take(ctx context.Context, queues []string, n int) ([]*flow.Execution, error) {
	if err := v.t.flushExcept(ctx, newExecution); err != nil {
		return nil, err
	}
	return v.Access.Take(ctx, queues, n)
}

// LockKeys counts executions with keys: new ones without a key need not be written for it.
func (v *view) LockKeys(ctx context.Context, keys []string) (map[string]store.KeyUse, error) {
	if err := v.t.flushExcept(ctx, func(d *flow.Draft) bool { return d.New && d.Key == "" }); err != nil {
		return nil, err
	}
	return v.Access.LockKeys(ctx, keys)
}

func (v *view) WaitList(ctx context.Context, key string, n int) ([]*flow.Execution, error) {
	if err := v.t.flush(ctx); err != nil {
		return nil, err
	}
	return v.Access.WaitList(ctx, key, n)
}

func (v *view) Holders(ctx context.Context, key string, n int) ([]*flow.Execution, error) {
	if err := v.t.flush(ctx); err != nil {
		return nil, err
	}
	return v.Access.Holders(ctx, key, n)
}

func (v *view) Open(ctx context.Context, workflowAttempt store.WorkflowAttempt, task string, unheld bool, n int) ([]flow.ID, error) {
	if err := v.t.flush(ctx); err != nil {
		return nil, err
	}
	return v.Access.Open(ctx, workflowAttempt, task, unheld, n)
}

func (v *view) CancelRequested(ctx context.Context, sessions []flow.ID) ([]*flow.Execution, error) {
	if err := v.t.flush(ctx); err != nil {
		return nil, err
	}
	return v.Access.CancelRequested(ctx, sessions)
}

// EndLeases locks sessions. Decisions are written before, because every transaction locks executions first.
func (v *view) EndLeases(ctx context.Context, sessions []flow.ID) ([]flow.ID, error) {
	if err := v.t.flush(ctx); err != nil {
		return nil, err
	}
	return v.Access.EndLeases(ctx, sessions)
}

func (v *view) OwnedBy(ctx context.Context, session, after flow.ID, n int) ([]*flow.Execution, error) {
	if err := v.t.flush(ctx); err != nil {
		return nil, err
	}
	return v.Access.OwnedBy(ctx, session, after, n)
}

func (v *view) FedInput(ctx context.Context, id flow.ID) (flow.Input, error) {
	if err := v.t.writeRows(ctx, func(d *store.Delta) bool { return len(d.Input) > 0 }); err != nil {
		return flow.Input{}, err
	}
	return v.Access.FedInput(ctx, id)
}

func (v *view) LockSchedules(ctx context.Context, names []string, pass bool) ([]store.Schedule, error) {
	if err := v.t.writeRows(ctx, ofSchedules); err != nil {
		return nil, err
	}
	return v.Access.LockSchedules(ctx, names, pass)
}

func (v *view) TicksBetween(ctx context.Context, schedule string, first, last time.Time) ([]store.Tick, error) {
	if err := v.t.writeRows(ctx, ofSchedules); err != nil {
		return nil, err
	}
	return v.Access.TicksBetween(ctx, schedule, first, last)
}

func ofSchedules(d *store.Delta) bool { return len(d.Schedules.Written)+len(d.Schedules.Ticks) > 0 }

func (v *view) LatestSwitches(ctx context.Context, names []string) (map[string]store.Switch, int64, error) {
	if err := v.t.writeRows(ctx, func(d *store.Delta) bool { return len(d.Rules.Switches) > 0 }); err != nil {
		return nil, 0, err
	}
	return v.Access.LatestSwitches(ctx, names)
}

func (v *view) LockSignals(ctx context.Context, numbers []int64) ([]flow.Signal, error) {
	if err := v.t.writeRows(ctx, func(d *store.Delta) bool { return len(d.Signals.Matched) > 0 }); err != nil {
		return nil, err
	}
	return v.Access.LockSignals(ctx, numbers)
}

func (v *view) Enforced(ctx context.Context, signals []int64) (map[int64][]string, error) {
	if err := v.t.writeRows(ctx, ofEnforcements); err != nil {
		return nil, err
	}
	return v.Access.Enforced(ctx, signals)
}

func (v *view) LockEnforcement(ctx context.Context, number int64, rule string) (flow.Enforcement, error) {
	if err := v.t.writeRows(ctx, ofEnforcements); err != nil {
		return flow.Enforcement{}, err
	}
	return v.Access.LockEnforcement(ctx, number, rule)
}

func (v *view) wroteWindows(ctx context.Context) error {
	if err := v.t.writeWindows(ctx); err != nil {
		return err
	}
	return v.t.writeRows(ctx, ofEnforcements)
}

func (v *view) Windows(ctx context.Context, keys []store.WindowKey) (map[store.WindowKey]store.Window, error) {
	if err := v.wroteWindows(ctx); err != nil {
		return nil, err
	}
	return v.Access.Windows(ctx, keys)
}

func (v *view) BufferedIn(ctx context.Context, key store.WindowKey, n int) ([]store.SignalPlace, error) {
	if err := v.wroteWindows(ctx); err != nil {
		return nil, err
	}
	return v.Access.BufferedIn(ctx, key, n)
}

func ofEnforcements(d *store.Delta) bool {
	return len(d.Rules.Enforcements)+len(d.Rules.Retried)+len(d.Windows.Closed)+len(d.Windows.Open)+len(d.Windows.Dropped) > 0
}
