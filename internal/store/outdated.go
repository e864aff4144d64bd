package store

import (
	"context"
	"time"
)

// Outdated is a kind of row that becomes useless after a while. The numbers are not stored.
type Outdated uint8

const (
	OldAsides Outdated = iota // asides, by their times: an old one was handled, or its subject does not exist any more
	OldMeters                 // meters, by their times
	OldShares                 // shares, by when they were written, except those of a wait list with waiting executions
	OldTicks                  // ticks, by when they were decided; the schedule's own row has its position
)

// Cleaning deletes rows, a limited number in each transaction.
type Cleaning interface {
	// DropOld deletes up to n rows of a kind that are older than a time, oldest first, and returns how many. Rows that another transaction has
	// locked stay.
	DropOld(ctx context.Context, of Outdated, before time.Time, n int) (int, error)
	// DropLocks examines up to n of the rows that exist only to lock meters and windows (MeterLock, WindowLock), sorted by key, beyond after.
	// It deletes those that no transaction has locked and whose meter or window does not exist any more. It returns the last key that it
	// examined, or "" if there are no more.
	DropLocks(ctx context.Context, after string, n int) (last string, err error)
	// DropKept removes up to n outcomes of the cache: those that expired before a time and, while there are more than
	// "most", those that expire next. It returns how many.
	DropKept(ctx context.Context, before time.Time, most, n int) (int, error)
}
