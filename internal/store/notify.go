package store

import (
	"context"

	"github.com/pawl-run/pawl/internal/flow"
)

// Notifier is what a store can do that several processes share: tell each what the others have changed. It is a hint and
// no more. Notifications come after the commit, may be late, come twice or not at all, and say no more than where to look;
// a component that relies on one looks now and then without any.
type Notifier interface {
	// Notifications returns what other processes' commits concern, until ctx ends or the store is closed; then the
	// channel is closed. A receiver that is slow gets several in one. The process's own commits are left out.
	Notifications(ctx context.Context) (<-chan Notification, error)
}

// Notification says where to look.
type Notification struct {
	Queues     []string  // got something to claim
	Sessions   []flow.ID // have orders
	Executions []flow.ID // have changed
	Pauses     bool      // something was paused or resumed
	All        bool      // more executions have changed than are named, or something may have been missed
}
