package api

import (
	"encoding/json"
	"time"
)

// Schedule is a schedule and its state.
type Schedule struct {
	Name      string          `json:"name" doc:"Name of the schedule"`
	Version   int             `json:"version" doc:"Version of the document, from 1"`
	Action    string          `json:"action" doc:"Action that it starts"`
	When      []string        `json:"when" doc:"Cron lines, interval, or a single time"`
	Zone      string          `json:"zone" doc:"Time zone of the cron lines"`
	Next      *time.Time      `json:"next,omitempty" doc:"Next nominal time; absent if there is none"`
	Due       *time.Time      `json:"due,omitempty" doc:"When it will fire: the nominal time plus jitter; absent while paused"`
	Last      *time.Time      `json:"last,omitempty" doc:"Last nominal time that was fired"`
	Execution string          `json:"execution,omitempty" doc:"Execution that the last tick started"`
	PausedAt  *time.Time      `json:"paused_at,omitempty" doc:"When it was paused; absent if it is not"`
	Reason    string          `json:"reason,omitempty" doc:"Why it is paused"`
	Document  json.RawMessage `json:"document,omitempty" doc:"Document in canonical form; left out in lists"`
}

// SchedulePage is a page of schedules, by name.
type SchedulePage struct {
	Schedules  []Schedule `json:"schedules" doc:"Schedules by name"`
	NextCursor string     `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Tick is the result for one nominal time of a schedule, or for several missed ones in a row.
type Tick struct {
	Nominal   time.Time `json:"nominal" doc:"Nominal time; of several, the first"`
	Last      time.Time `json:"last" doc:"Last nominal time that this tick covers"`
	Count     int       `json:"count" doc:"Nominal times that this tick covers; 100,000 means that many or more"`
	Execution string    `json:"execution,omitempty" doc:"Execution that was started; absent if the time was missed"`
	At        time.Time `json:"at" doc:"When the decision was made"`
	Why       string    `json:"why" doc:"on_time, catch_up or by_hand when it was fired; catch_up, paused, overlap, refused or replaced when it was missed (docs/schedules.md)"`
	Message   string    `json:"message,omitempty" doc:"More about why it was missed"`
}

// TickPage is a page of ticks, latest nominal time first.
type TickPage struct {
	Ticks      []Tick `json:"ticks" doc:"Latest nominal time first"`
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// PauseRequest gives the reason for pausing a schedule or a rule.
type PauseRequest struct {
	Reason string `json:"reason,omitempty" doc:"Reason, shown to people"`
}

// ResumeRequest selects what happens to the times that passed while a schedule was paused.
type ResumeRequest struct {
	CatchUp bool `json:"catch_up,omitempty" doc:"Apply catch_up to the times that passed during the pause; default: they are missed"`
}

// FiredSchedule names the execution that a schedule started by hand.
type FiredSchedule struct {
	Execution string `json:"execution" doc:"Execution that was started"`
}

// ScheduleWhy is the state of a schedule: what it waits for, the results of its last times, and what would let it continue.
type ScheduleWhy struct {
	Name    string   `json:"name" doc:"Name of the schedule"`
	Waiting string   `json:"waiting" doc:"time, resume, server (due, but no server fired it yet), or nothing (no time left)"`
	Summary string   `json:"summary" doc:"One sentence"`
	Facts   []string `json:"facts" doc:"What happened at its last times, and other facts"`
	Unblock []Advice `json:"unblock" doc:"Actions that would let it continue"`
}

// SchedulePreview lists the next times of a schedule and the effects of clock changes.
type SchedulePreview struct {
	Name    string        `json:"name" doc:"Name of the schedule"`
	Zone    string        `json:"zone" doc:"Time zone of the local times"`
	Times   []PreviewTime `json:"times" doc:"Next times"`
	Changes []ClockChange `json:"changes" doc:"Clock changes of the zone in the next two years"`
}

// PreviewTime is a time of a schedule.
type PreviewTime struct {
	Local   string    `json:"local" doc:"Local time in the schedule's zone, with its offset from UTC"`
	Nominal time.Time `json:"nominal" doc:"The same time in UTC"`
	Due     time.Time `json:"due" doc:"When it will fire: the nominal time plus jitter"`
}

// ClockChange is a moment at which the offset of a time zone changes.
type ClockChange struct {
	At     time.Time      `json:"at" doc:"When the clocks change"`
	Before string         `json:"before" doc:"Offset from UTC before the change"`
	After  string         `json:"after" doc:"Offset from UTC after the change"`
	Times  []ClockTouched `json:"times" doc:"Local times of the schedule that the change affects"`
}

// ClockTouched is a local time of a schedule that a clock change skips or repeats.
type ClockTouched struct {
	Local string   `json:"local" doc:"Local time"`
	Is    string   `json:"is" doc:"skipped or repeated"`
	Fired []string `json:"fired" doc:"Local times at which it fires instead; empty: it does not fire"`
}

// SchedulePreviews are the previews of the schedules in a document.
type SchedulePreviews struct {
	Schedules []SchedulePreview `json:"schedules" doc:"Previews in document order"`
}

// BackfillRequest asks for executions at nominal times that have passed.
type BackfillRequest struct {
	From   time.Time `json:"from" doc:"Start of the period"`
	To     time.Time `json:"to" doc:"End of the period, exclusive; not in the future"`
	Again  string    `json:"again,omitempty" check:"filled" doc:"Tag: also start times that already had an execution, once per tag"`
	AtOnce int       `json:"at_once,omitempty" check:"positive" doc:"Executions in progress at the same time, 1 to 1000; default 1"`
	DryRun bool      `json:"dry_run,omitempty" doc:"Report what would be started, but start nothing"`
}

// Backfilled is the result for the first nominal times of a backfill.
type Backfilled struct {
	Fired      []BackfilledTime `json:"fired" doc:"Up to 100 nominal times that were started; in a dry run up to 1,000"`
	PassedOver []BackfilledTime `json:"passed_over" doc:"Nominal times that were left out, since each had an execution before"`
	WhenFull   string           `json:"when_full,omitempty" doc:"cancel_new or cancel_oldest: the action's own concurrency key ends executions that find it full"`
	Next       *time.Time       `json:"next,omitempty" doc:"Value of from for the next request; absent if this was everything"`
}

// BackfilledTime is a nominal time of a backfill.
type BackfilledTime struct {
	Nominal   time.Time `json:"nominal" doc:"Nominal time"`
	Execution string    `json:"execution,omitempty" doc:"Execution that was started; absent in a dry run"`
	Why       string    `json:"why,omitempty" doc:"Of a time that was passed over: why its execution was started, as in a tick"`
	Tag       string    `json:"tag,omitempty" doc:"Of a time that was passed over: backfill, or backfill: and the tag; absent if the schedule started it"`
	Status    Status    `json:"status,omitempty" doc:"Status of the execution; absent in a dry run, or if the execution was removed or could not be read"`
	ErrorCode string    `json:"error_code,omitempty" doc:"Why the execution did not complete, for example key_full"`
}
