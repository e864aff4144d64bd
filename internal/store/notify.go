package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Notifier is implemented by a store that several processes share: it tells each process about the others' changes. A notification is only
// a hint: it comes after the commit, may be late, repeated or lost, and says only where to look. Its users must also check from time to
// time without a hint.
type Notifier interface {
	// Notifications returns a channel of hints about other processes' commits. It is closed when ctx ends or the store is closed. A slow
	// receiver gets several hints merged into one. The process's own commits give no hints.
	Notifications(ctx context.Context) (<-chan Notification, error)
}

// Notification says what has changed.
type Notification struct {
	Queues     []string  // have new executions to claim
	Sessions   []flow.ID // have new orders
	Executions []flow.ID // have changed
	Pauses     bool      // something was paused or resumed
	All        bool      // more executions have changed than are named, or notifications may have been lost
}
