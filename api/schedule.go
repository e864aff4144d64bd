package api

import (
	"encoding/json"
	"time"
)

// Schedule is a schedule and how far it is.
type Schedule struct {
	Name      string     `json:"name"`
	Version   int        `json:"version"`
	Action    string     `json:"action"`
	When      []string   `json:"when"`
	Zone      string     `json:"zone"`
	Next      *time.Time `json:"next,omitempty"`
	Due       *time.Time `json:"due,omitempty"`
	Last      *time.Time `json:"last,omitempty"`
	Execution string     `json:"execution,omitempty"`
	PausedAt  *time.Time `json:"paused_at,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	// Document is the schedule in its canonical form; left out in lists.
	Document json.RawMessage `json:"document,omitempty"`
}

// SchedulePage is a page of schedules, by name.
type SchedulePage struct {
	Schedules  []Schedule `json:"schedules"`
	NextCursor string     `json:"next_cursor,omitempty"`
}

// Tick is what became of a nominal time of a schedule, or of several in a row that were missed.
type Tick struct {
	Nominal   time.Time `json:"nominal"`
	Last      time.Time `json:"last"`
	Count     int       `json:"count"`
	Execution string    `json:"execution,omitempty"` // absent: missed
	At        time.Time `json:"at"`
	Why       string    `json:"why"`
	Message   string    `json:"message,omitempty"`
}

// TickPage is a page of ticks, the latest nominal time first.
type TickPage struct {
	Ticks      []Tick `json:"ticks"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// PauseRequest says why a schedule is paused.
type PauseRequest struct {
	Reason string `json:"reason,omitempty"`
}

// ResumeRequest says what becomes of the times that passed while a schedule was paused.
type ResumeRequest struct {
	CatchUp bool `json:"catch_up,omitempty"`
}

// FiredSchedule names the execution that a schedule started by hand.
type FiredSchedule struct {
	Execution string `json:"execution"`
}

// ScheduleWhy says how a schedule stands: what it waits for, what became of its last times, and what would let it go on.
type ScheduleWhy struct {
	Name    string   `json:"name" doc:"Of the schedule"`
	Waiting string   `json:"waiting" doc:"time, resume, server (it is due, and none has fired it), or nothing: no time comes any more"`
	Summary string   `json:"summary" doc:"One sentence"`
	Facts   []string `json:"facts" doc:"What became of its last times, and what else matters"`
	Unblock []string `json:"unblock" doc:"What would let it go on"`
}

// SchedulePreview is when a schedule comes next, and what it makes of clock changes.
type SchedulePreview struct {
	Name    string        `json:"name" doc:"Of the schedule"`
	Zone    string        `json:"zone" doc:"Of its local times"`
	Times   []PreviewTime `json:"times" doc:"The next ones"`
	Changes []ClockChange `json:"changes" doc:"Of the zone's clocks in the next two years"`
}

// PreviewTime is a time of a schedule.
type PreviewTime struct {
	Local   string    `json:"local" doc:"In the schedule's zone, with its offset from UTC"`
	Nominal time.Time `json:"nominal" doc:"The moment"`
	Due     time.Time `json:"due" doc:"When it is fired: later by its jitter"`
}

// ClockChange is a moment at which the clocks of a zone are set.
type ClockChange struct {
	At     time.Time      `json:"at" doc:"The moment"`
	Before string         `json:"before" doc:"The offset from UTC before it"`
	After  string         `json:"after" doc:"The offset from then on"`
	Times  []ClockTouched `json:"times" doc:"The schedule's local times that it touches"`
}

// ClockTouched is a local time of a schedule that a clock change skips or repeats.
type ClockTouched struct {
	Local string   `json:"local" doc:"By the clock"`
	Is    string   `json:"is" doc:"skipped or repeated"`
	Fired []string `json:"fired" doc:"When it is fired, as local times; empty: at none"`
}

// SchedulePreviews are those of the schedules in a document.
type SchedulePreviews struct {
	Schedules []SchedulePreview `json:"schedules" doc:"In the order of the document"`
}

// BackfillRequest asks for executions at nominal times that have passed.
type BackfillRequest struct {
	From   time.Time `json:"from" doc:"The first moment"`
	To     time.Time `json:"to" doc:"The first moment that is left out; not in the future"`
	Again  string    `json:"again,omitempty" doc:"A tag: starts executions also for times that have had one, once for each tag"`
	AtOnce int       `json:"at_once,omitempty" doc:"How many of its executions are at work at once, 1 to 1000; 1 by default"`
	DryRun bool      `json:"dry_run,omitempty" doc:"Starts nothing"`
}

// Backfilled is what became of the first nominal times of a backfill.
type Backfilled struct {
	Fired   []BackfilledTime `json:"fired" doc:"Up to 100 nominal times for which executions were started; of a dry run up to 1000 for which they would be"`
	Skipped int              `json:"skipped" doc:"Nominal times that have had an execution"`
	Next    *time.Time       `json:"next,omitempty" doc:"From where the request is to be sent again for the rest; absent when this was all"`
}

// BackfilledTime is a nominal time of a backfill.
type BackfilledTime struct {
	Nominal   time.Time `json:"nominal" doc:"The moment"`
	Execution string    `json:"execution,omitempty" doc:"What was started; absent in a dry run"`
}
