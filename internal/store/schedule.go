package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Schedule is the state of a schedule. Its document is the definition of this name and version.
type Schedule struct {
	Name    string // of the schedule, as in its document
	Version int
	Next    time.Time // the first nominal time without a decision; zero: there is none
	Due     time.Time // when Next is to be decided; zero: never, or it is paused
	Last    time.Time // the last nominal time that was fired
	// Execution is the execution that Last started. It may have been removed.
	Execution flow.ID
	PausedAt  time.Time // zero: it is not paused
	Reason    string    // why it was paused, for people
	// CountedFrom is the time from which ticks with failed executions are counted: when the schedule was resumed or its
	// document applied.
	CountedFrom time.Time
}

// Tick is the decision about a nominal time of a schedule, or about several in a row.
type Tick struct {
	Schedule string
	Nominal  time.Time
	// Tag marks ticks that were fired by hand or by a backfill; ticks of the clock have none.
	Tag       string
	Last      time.Time // the last nominal time of several
	Count     int       // number of nominal times
	Execution flow.ID   // zero: the time was missed
	At        time.Time // when it was decided
	Why       string    // one of the reasons in package schedule
	Message   string    // details, for people
}

// Schedules loads the state of schedules, and their ticks.
type Schedules interface {
	// LockSchedules loads and locks schedules, sorted by name; unknown names are left out. With pass it also leaves out schedules that another
	// transaction has locked.
	LockSchedules(ctx context.Context, names []string, pass bool) ([]Schedule, error)
	// TicksBetween returns the ticks of a schedule with nominal times from first to last, by nominal time and tag.
	TicksBetween(ctx context.Context, schedule string, first, last time.Time) ([]Tick, error)
}

// ScheduleReader reads schedules.
type ScheduleReader interface {
	// Schedule returns a schedule, or ErrNotFound.
	Schedule(ctx context.Context, name string) (Schedule, error)
	// Schedules returns up to n schedules, by name, beyond after.
	Schedules(ctx context.Context, after string, n int) ([]Schedule, error)
	// DueSchedules returns up to n schedules whose Due is not after now, earliest first, and the earliest Due of the others
	// (zero: there is none).
	DueSchedules(ctx context.Context, now time.Time, n int) ([]Schedule, time.Time, error)
	// Ticks returns up to n ticks of a schedule before a nominal time (zero: all), the latest first.
	Ticks(ctx context.Context, schedule string, before time.Time, n int) ([]Tick, error)
}

// ScheduleRows are the changes of a decision to schedules.
type ScheduleRows struct {
	// Written are stored under their names.
	Written []Schedule
	// Ticks are inserted; a second one of the same schedule, nominal time and tag is a conflict.
	Ticks []Tick
}
