package store

import (
	"context"
	"time"
)

// Share counts the turns of an owner in the wait list of a concurrency key, or is the clock of the wait list.
type Share struct {
	Key      string
	Priority int    // turns are taken within a priority
	Clock    bool   // it is the clock of the wait list
	By       string // owner; "" for the clock
	Tag      int64
	At       time.Time // when it was written
}

// Shares stores the shares of the wait lists in which owners take turns. They are read and written under the lock of the key.
type Shares interface {
	// Shares reads the clock of a wait list and the share of an owner, in one priority; 0 if there is none.
	Shares(ctx context.Context, key string, priority int, by string) (clock, last int64, err error)
}

// ShareRows are the changes of a decision to shares, under the locks of their keys. The shares of dropped keys are deleted first.
type ShareRows struct {
	Written []Share
	Dropped []string
}
