package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Waits loads what executions wait for that wait for signals. A wait is written by the transaction that has locked its execution.
type Waits interface {
	// WaitsOf loads the waits that there are of executions, in any order.
	WaitsOf(ctx context.Context, executions []flow.ID) ([]flow.Wait, error)
	// Taken returns those of the signals numbered that waits of an attempt of a workflow have taken.
	Taken(ctx context.Context, of WorkflowAttempt, signals []int64) ([]int64, error)
}

// WaitReader answers readers about waits. One whose row cannot be decoded is returned with its Damage.
type WaitReader interface {
	// Wait returns the wait of an execution, or ErrNotFound.
	Wait(ctx context.Context, execution flow.ID) (flow.Wait, error)
	// UnlookedWaits returns up to n waits that are open and have not looked at the signals that were there, but those that are put aside
	// (AsideLooking) until after now.
	UnlookedWaits(ctx context.Context, now time.Time, n int) ([]flow.Wait, error)
	// OpenWaits returns up to n open waits for a trigger and a subject, in order of their executions, beyond after.
	OpenWaits(ctx context.Context, trigger, subject string, after flow.ID, n int) ([]flow.Wait, error)
	// UnmetSignals returns up to n signals, the oldest first, that open waits are to be asked about, but those that are put aside
	// (AsideMeeting) until after now. A full Page may have fewer.
	UnmetSignals(ctx context.Context, now time.Time, n int) ([]flow.Signal, error)
}
