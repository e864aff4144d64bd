package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Surveyor sums up what has not ended, for people and metrics. It may read every row of executions that have not ended:
// callers ask seldom.
type Surveyor interface {
	// Survey sums up one state of the database.
	Survey(ctx context.Context) (Survey, error)
}

// Survey is a sum of what has not ended.
type Survey struct {
	Unfinished []Unfinished // by queue and stage; what there is none of is absent
	// OldestCreated is when the oldest of them was accepted; zero: there is none.
	OldestCreated time.Time
	// Inquiries counts the questions that are open.
	Inquiries int
	// Unapplied counts the events that are kept ahead of gaps.
	Unapplied int
	// OldestTransaction is how long the oldest transaction of any client of this database has been open: one that stays open
	// keeps the database from cleaning up. Zero where there is none or the database has no such thing.
	OldestTransaction time.Duration
}

// Stages counts the executions that have not ended, by stage.
func (s *Survey) Stages() map[flow.Stage]int {
	all := make(map[flow.Stage]int)
	for _, u := range s.Unfinished {
		all[u.Stage] += u.Count
	}
	return all
}

// Unfinished counts the executions of one queue in one stage.
type Unfinished struct {
	Queue string
	Stage flow.Stage
	Count int
}
