package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Schedule is how far a schedule is. Its document is the definition of its name and version.
type Schedule struct {
	Name    string // of the schedule, as its document has it
	Version int
	Next    time.Time // the first nominal time that is not decided about; zero: there is none
	Due     time.Time // when that is to be decided about; zero: never, or it is paused
	Last    time.Time // the last nominal time that was fired
	// Execution is what Last started. It may be gone.
	Execution flow.ID
	PausedAt  time.Time // zero: it is not paused
	Reason    string    // why it was paused, for people
	// CountedFrom is from when on the ticks are counted whose executions failed: since it was resumed, or its document applied.
	CountedFrom time.Time
}

// Tick is what became of a nominal time of a schedule, or of several in a row.
type Tick struct {
	Schedule string
	Nominal  time.Time
	// Tag tells what was fired by hand or by a backfill from what the clock fired, which has none.
	Tag       string
	Last      time.Time // the last nominal time of several
	Count     int       // how many they are
	Execution flow.ID   // zero: it was missed
	At        time.Time // when that was decided
	Why       string    // schedule's word
	Message   string    // more about it, for people
}

// Schedules loads how far schedules are, and their ticks.
type Schedules interface {
	// LockSchedules loads and locks the schedules named, in order of their names; unknown names are left out. With pass it
	// leaves out also those that another transaction has locked.
	LockSchedules(ctx context.Context, names []string, pass bool) ([]Schedule, error)
	// TicksBetween returns the ticks of a schedule with nominal times from first to last, by nominal time and tag.
	TicksBetween(ctx context.Context, schedule string, first, last time.Time) ([]Tick, error)
}

// ScheduleReader answers readers about schedules.
type ScheduleReader interface {
	// Schedule returns a schedule, or ErrNotFound.
	Schedule(ctx context.Context, name string) (Schedule, error)
	// Schedules returns up to n schedules, by name, beyond after.
	Schedules(ctx context.Context, after string, n int) ([]Schedule, error)
	// DueSchedules returns up to n schedules whose Due is not after now, earliest first, and the earliest Due beyond them (zero:
	// none).
	DueSchedules(ctx context.Context, now time.Time, n int) ([]Schedule, time.Time, error)
	// Ticks returns up to n ticks of a schedule, the latest nominal time first, with nominal times before the one given (zero:
	// from the latest on).
	Ticks(ctx context.Context, schedule string, before time.Time, n int) ([]Tick, error)
}
