package store

import (
	"context"
	"time"
)

// Pending says which kinds of work there are for the loops that handle what other processes have left. Each loop then searches
// for itself.
type Pending struct {
	// Now is the database's clock, read after everything else.
	Now time.Time
	// Generation is the latest generation of switches; 0: there are none.
	Generation int64
	// Expired says that there is a session whose lease has run out.
	Expired bool
	// Wake, Schedule and Window are the earliest times at which an execution, a schedule and a window are due; zero: there
	// is none.
	Wake, Schedule, Window time.Time
	// Signals says that NewSignals would return some.
	Signals bool
	// Correlations says that UnscannedWaits or UncorrelatedSignals would return some.
	Correlations bool
}

// PendingReader answers all loops with one read.
type PendingReader interface {
	// Pending returns the work that there is. It leaves out signals and waits that are put aside beyond now. It costs one
	// look-up in an index for each kind, and one round trip.
	Pending(ctx context.Context, now time.Time) (Pending, error)
}
