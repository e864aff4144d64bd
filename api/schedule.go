package api

import (
	"encoding/json"
	"time"
)

// Schedule is a schedule and how far it is.
type Schedule struct {
	Name      string     `json:"name" doc:"Of the schedule"`
	Version   int        `json:"version" doc:"Version of its document, from 1"`
	Action    string     `json:"action" doc:"What its ticks start"`
	When      []string   `json:"when" doc:"Its cron lines, its interval or its moment"`
	Zone      string     `json:"zone" doc:"Time zone of its local times"`
	Next      *time.Time `json:"next,omitempty" doc:"The first nominal time that is not decided about; absent when none comes"`
	Due       *time.Time `json:"due,omitempty" doc:"When the next time is decided about: later by the jitter; absent while it is paused"`
	Last      *time.Time `json:"last,omitempty" doc:"The last nominal time that was fired"`
	Execution string     `json:"execution,omitempty" doc:"The execution that its last tick started"`
	PausedAt  *time.Time `json:"paused_at,omitempty" doc:"Since when it is paused; absent when it is not"`
	Reason    string     `json:"reason,omitempty" doc:"Why, for people"`
	// Document is the schedule in its canonical form; left out in lists.
	Document json.RawMessage `json:"document,omitempty" doc:"In its canonical form; left out in lists"`
}

// SchedulePage is a page of schedules, by name.
type SchedulePage struct {
	Schedules  []Schedule `json:"schedules" doc:"By name"`
	NextCursor string     `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Tick is what became of a nominal time of a schedule, or of several in a row that were missed.
type Tick struct {
	Nominal   time.Time `json:"nominal" doc:"The time by the schedule, the first of several"`
	Last      time.Time `json:"last" doc:"The last of them"`
	Count     int       `json:"count" doc:"How many nominal times it stands for; 100,000 stands for more, too"`
	Execution string    `json:"execution,omitempty" doc:"The execution that it started; absent when it was missed"`
	At        time.Time `json:"at" doc:"When it was decided"`
	Why       string    `json:"why" doc:"on_time, catch_up or by_hand when it was fired; catch_up, paused, overlap, refused or replaced when it was missed (docs/schedules.md)"`
	Message   string    `json:"message,omitempty" doc:"More about why it was missed"`
}

// TickPage is a page of ticks, the latest nominal time first.
type TickPage struct {
	Ticks      []Tick `json:"ticks" doc:"The latest nominal time first"`
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// PauseRequest says why a schedule is paused.
type PauseRequest struct {
	Reason string `json:"reason,omitempty" doc:"Why, for people"`
}

// ResumeRequest says what becomes of the times that passed while a schedule was paused.
type ResumeRequest struct {
	CatchUp bool `json:"catch_up,omitempty" doc:"What passed while it was paused goes by its policy of catching up; by default it is missed"`
}

// FiredSchedule names the execution that a schedule started by hand.
type FiredSchedule struct {
	Execution string `json:"execution" doc:"The execution that was started"`
}

// ScheduleWhy says how a schedule stands: what it waits for, what became of its last times, and what would let it go on.
type ScheduleWhy struct {
	Name    string   `json:"name" doc:"Of the schedule"`
	Waiting string   `json:"waiting" doc:"time, resume, server (it is due, and none has fired it), or nothing: no time comes any more"`
	Summary string   `json:"summary" doc:"One sentence"`
	Facts   []string `json:"facts" doc:"What became of its last times, and what else matters"`
	Unblock []Advice `json:"unblock" doc:"What would let it go on"`
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
	Again  string    `json:"again,omitempty" check:"filled" doc:"A tag: starts executions also for times that have had one, once for each tag"`
	AtOnce int       `json:"at_once,omitempty" check:"positive" doc:"How many of its executions are at work at once, 1 to 1000; 1 by default"`
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
