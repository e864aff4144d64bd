package relational

import (
	"context"

	"github.com/pawl-run/pawl/internal/store"
)

// rest writes the rows of a decision other than executions and signals, in the order in which all transactions write them. Rows that the
// lock of a concurrency key protects are written at once; errors of the others may appear at the commit.
var rest = []func(context.Context, Tx, *store.Delta) error{
	func(ctx context.Context, t Tx, d *store.Delta) error {
		return write(ctx, t, qDropShares, keys, d.Shares.Dropped, "drop the shares of %d keys")
	},
	func(ctx context.Context, t Tx, d *store.Delta) error {
		return write(ctx, t, qDropWindows, windowKeys, d.Windows.Dropped, "drop %d windows")
	},
	func(ctx context.Context, t Tx, d *store.Delta) error {
		return write(ctx, t, qPutShares, shares, d.Shares.Written, "write %d shares")
	},
	func(ctx context.Context, t Tx, d *store.Delta) error { return t.putMeters(ctx, d.Meters) },
	func(ctx context.Context, t Tx, d *store.Delta) error {
		return write(ctx, t, qPutWindows, windows, d.Windows.Open, "write %d windows")
	},
	func(ctx context.Context, t Tx, d *store.Delta) error {
		return write(ctx, t, qPutSchedules, schedules, d.Schedules.Written, "write %d schedules")
	},
	func(ctx context.Context, t Tx, d *store.Delta) error {
		return write(ctx, t, qAddTicks, ticks, d.Schedules.Ticks, "write %d ticks")
	},
	func(ctx context.Context, t Tx, d *store.Delta) error {
		return t.putWaits(ctx, d.Waits.Written, d.Waits.Dropped)
	},
	func(ctx context.Context, t Tx, d *store.Delta) error { return t.putInquiries(ctx, d.Inquiries) },
	func(ctx context.Context, t Tx, d *store.Delta) error {
		return t.putUncorrelated(ctx, d.Signals.Uncorrelated, d.Signals.Correlated)
	},
	func(ctx context.Context, t Tx, d *store.Delta) error { return t.putAsides(ctx, d.Asides) },
}

// PutRest writes the changes of a decision other than executions and signals.
func (t Tx) PutRest(ctx context.Context, d *store.Delta) error {
	for _, put := range rest {
		if err := put(ctx, t, d); err != nil {
			return err
		}
	}
	return nil
}
