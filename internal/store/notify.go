package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Notifier is implemented by a store that several processes share: it tells each process what the others have changed. A
// notification is only a hint: it comes after the commit, may be late, repeated or lost, and says only where to look. A
// component that uses them must also look now and then without one.
type Notifier interface {
	// Notifications returns a channel of hints about other processes' commits. It is closed when ctx ends or the store is
	// closed. A slow receiver gets several hints merged into one. The process's own commits are left out.
	Notifications(ctx context.Context) (<-chan Notification, error)
}

// Notification says which things have changed.
type Notification struct {
	Queues     []string  // have something new to claim
	Sessions   []flow.ID // have orders
	Executions []flow.ID // have changed
	Pauses     bool      // something was paused or resumed
	All        bool      // more executions have changed than are named, or notifications may have been lost
}
