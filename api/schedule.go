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
