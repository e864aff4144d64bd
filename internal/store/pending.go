package store

import (
	"context"
	"time"
)

// Pending says which kinds of work exist for the loops that finish the work of other processes. Each loop then reads its own work.
type Pending struct {
	// Now is the database's clock, read after everything else.
	Now time.Time
	// Generation is the latest generation of switches; 0: there are none.
	Generation int64
	// Expired means that there is a session with an expired lease.
	Expired bool
	// Wake, Schedule and Window are the earliest times at which an execution, a schedule and a window are due; zero: there
	// is none.
	Wake, Schedule, Window time.Time
	// Signals means that NewSignals would return some.
	Signals bool
	// Correlations means that UnscannedWaits or UncorrelatedSignals would return some.
	Correlations bool
}

// PendingReader answers all loops with one read.
type PendingReader interface {
	// Pending returns which work exists. It leaves out signals and waits that are put aside beyond now. It costs one look-up in an index for
	// each kind, and one round trip.
	Pending(ctx context.Context, now time.Time) (Pending, error)
}
