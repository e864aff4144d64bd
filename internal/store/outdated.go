package store

import (
	"context"
	"time"
)

// Outdated names rows that are of no use any more after a while. Stores do not keep the numbers.
type Outdated uint8

// The kinds.
const (
	OldAsides Outdated = iota // asides by their times: what was not put aside again since has been handled, or is gone
	OldMeters                 // meters by their moments
	OldShares                 // shares by when they were written, but those of a line in which an execution waits
	OldTicks                  // ticks by when they were decided; where a schedule goes on is in its own row
)

// Cleaning deletes rows, a bounded part in each transaction.
type Cleaning interface {
	// DropOld deletes up to n rows of a kind that are from before a time, the oldest first, and returns how many. One that another
	// transaction has locked stays.
	DropOld(ctx context.Context, of Outdated, before time.Time, n int) (int, error)
	// DropLocks looks at up to n rows that a store has for the locks of meters and windows (MeterLock, WindowLock), in order of their
	// keys, beyond after. It deletes those that no transaction holds and whose meter or window is gone, and returns the last key that it
	// has looked at; "": there are no more.
	DropLocks(ctx context.Context, after string, n int) (last string, err error)
	// DropKept removes up to n outcomes of the cache that have expired before a time and, while more than most are kept, of those that
	// expire next, and returns how many that were.
	DropKept(ctx context.Context, before time.Time, most, n int) (int, error)
}
