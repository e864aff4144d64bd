package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Waits loads the waits of executions for signals. A wait is written by the transaction that has locked its execution.
type Waits interface {
	// WaitsOf loads the waits of executions, as far as they have one, in any order.
	WaitsOf(ctx context.Context, executions []flow.ID) ([]flow.Wait, error)
	// Taken returns which of the signals were taken by waits of a workflow's attempt.
	Taken(ctx context.Context, of WorkflowAttempt, signals []int64) ([]int64, error)
}

// WaitReader reads waits. A wait whose row cannot be decoded is returned with its Damage.
type WaitReader interface {
	// Wait returns the wait of an execution, or ErrNotFound.
	Wait(ctx context.Context, execution flow.ID) (flow.Wait, error)
	// UnscannedWaits returns up to n open waits that have not searched the existing signals yet, sorted by execution, beyond after, without
	// those that are put aside (AsideScan) beyond now.
	UnscannedWaits(ctx context.Context, now time.Time, after flow.ID, n int) ([]flow.Wait, error)
	// OpenWaits returns up to n open waits for a trigger and a subject, sorted by execution, beyond after.
	OpenWaits(ctx context.Context, trigger, subject string, after flow.ID, n int) ([]flow.Wait, error)
	// UncorrelatedSignals returns up to n signals for which open waits must still be checked, by number, beyond after, without those that are
	// put aside (AsideCorrelation) beyond now. It returns fewer if a Page is full.
	UncorrelatedSignals(ctx context.Context, now time.Time, after int64, n int) ([]flow.Signal, error)
}

// WaitRows are the changes of a decision to waits. Waits are not read again in the same transaction.
type WaitRows struct {
	// Written are stored under their executions. A second wait of a workflow's attempt that takes the same signal is a conflict.
	Written []flow.Wait
	// Dropped are executions whose waits are deleted.
	Dropped []flow.ID
}
