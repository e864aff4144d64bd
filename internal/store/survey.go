package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Surveyor is what a store implements that can sum up what has not ended, for metrics. It may read every row of unfinished
// executions (and no other): callers ask seldom.
type Surveyor interface {
	// Survey sums up one state of the database.
	Survey(ctx context.Context) (Survey, error)
}

// Survey is a sum of what has not ended.
type Survey struct {
	Unfinished []Unfinished // by queue and stage; what there is none of is absent
	// OldestCreated is when the oldest of them was accepted; zero: there is none.
	OldestCreated time.Time
	// Unapplied counts the events that are kept ahead of gaps.
	Unapplied int
	// OldestTransaction is how long the oldest transaction of any client of this database has been open: one that stays open
	// keeps the database from cleaning up. Zero where there is none or the database has no such thing.
	OldestTransaction time.Duration
}

// Unfinished counts the executions of one queue in one stage.
type Unfinished struct {
	Queue string
	Stage flow.Stage
	Count int
}
