package store

import (
	"context"
	"time"
)

// Share is how far an owner's turns in the line of a concurrency key have come, or the line's clock.
type Share struct {
	Key      string
	Priority int    // turns are taken within a priority
	Clock    bool   // it is the line's clock
	By       string // "" of the clock
	Tag      int64
	At       time.Time // when it was written
}

// Shares keeps the shares of the lines in which executions take turns. They are read and written under the lock of the key.
type Shares interface {
	// Shares reads the shares of a key in a priority: the line's clock, and an owner's. 0 stands for those that there are not.
	Shares(ctx context.Context, key string, priority int, by string) (clock, last int64, err error)
}
