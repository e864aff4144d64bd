package store

import (
	"context"
	"time"
)

// Outdated is a kind of rows that become useless after a while. Stores do not keep the numbers.
type Outdated uint8

// The kinds.
const (
	OldAsides Outdated = iota // asides, by their times: one that was not put aside again since has been handled, or its subject is gone
	OldMeters                 // meters, by their times
	OldShares                 // shares, by when they were written, except those of a wait list in which an execution waits
	OldTicks                  // ticks, by when they were decided; the schedule's own row says where it goes on
)

// Cleaning deletes rows, a bounded part in each transaction.
type Cleaning interface {
	// DropOld deletes up to n rows of a kind that are older than a time, the oldest first, and returns how many. Rows that
	// another transaction has locked stay.
	DropOld(ctx context.Context, of Outdated, before time.Time, n int) (int, error)
	// DropLocks looks at up to n of the rows that exist only to lock meters and windows (MeterLock, WindowLock), sorted by
	// key, beyond after. It deletes those that no transaction has locked and whose meter or window does not exist any more.
	// It returns the last key that it has looked at, or "" if there are no more.
	DropLocks(ctx context.Context, after string, n int) (last string, err error)
	// DropKept removes up to n outcomes of the cache: those that expired before a time and, while there are more than
	// "most", those that expire next. It returns how many.
	DropKept(ctx context.Context, before time.Time, most, n int) (int, error)
}
