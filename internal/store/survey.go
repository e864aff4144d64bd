package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Surveyor sums up unfinished executions, for people and metrics. It may read every row of them, so it should be called rarely.
type Surveyor interface {
	// Survey returns the sums from one snapshot of the database.
	Survey(ctx context.Context) (Survey, error)
}

// Survey has sums over unfinished executions.
type Survey struct {
	Unfinished []Unfinished // by queue and stage; zero counts are left out
	// OldestCreated is when the oldest unfinished execution was accepted; zero: there is none.
	OldestCreated time.Time
	// Inquiries is the number of open questions.
	Inquiries int
	// Unapplied is the number of events that arrived before earlier ones and wait for them.
	Unapplied int
	// OldestTransaction is how long the oldest transaction of any client of this database has been open; it keeps the database from removing
	// dead rows. Zero if there is none, or if the database has no such transactions.
	OldestTransaction time.Duration
}

// Stages returns the number of unfinished executions by stage.
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
