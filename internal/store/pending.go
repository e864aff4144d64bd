package store

import (
	"context"
	"time"
)

// Pending says which kinds of work there are for the loops that look for what another process has left. Each loop then looks for itself.
type Pending struct {
	// Now is the database's clock, read after all the rest.
	Now time.Time
	// Generation is the latest of the switches; 0: there are none.
	Generation int64
	// Expired: there is a session whose lease does not run any more.
	Expired bool
	// Wake, Schedule and Window are the earliest moments at which an execution, a schedule or a window is due; zero: there is none.
	Wake, Schedule, Window time.Time
	// Signals: NewSignals returns some.
	Signals bool
	// Meetings: UnlookedWaits or UnmetSignals return some.
	Meetings bool
}

// PendingReader answers the loops all at once.
type PendingReader interface {
	// Pending says what there is to do. Signals and waits that are put aside until after now are left out. It costs one look at an
	// index for each kind, and one round trip.
	Pending(ctx context.Context, now time.Time) (Pending, error)
}
