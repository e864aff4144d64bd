package api

import "time"

// PauseOrder has the author, the reason and the length of a pause.
type PauseOrder struct {
	By     string   `json:"by,omitempty" doc:"Who orders the pause"`
	Reason string   `json:"reason,omitempty" doc:"Reason, shown while it is paused"`
	For    Duration `json:"for,omitempty" check:"positive" doc:"Length of the pause, for example 2h; if absent, it lasts until resumed"`
	Timers string   `json:"timers,omitempty" enum:"run,stop" doc:"Workflows only: stop halts timeouts and sleeps meanwhile; default run"`
}

// ResumeOrder has the author and the reason of a resume.
type ResumeOrder struct {
	By     string `json:"by,omitempty" doc:"Who resumes it"`
	Reason string `json:"reason,omitempty" doc:"Reason, kept in the history"`
}

// Pause records that something was paused or resumed.
type Pause struct {
	Number int64     `json:"number" doc:"1, 2, 3 … over all pauses and resumes; 0 for executions and if there was none"`
	Kind   string    `json:"kind" enum:"queue,worker,action,execution" doc:"Kind of the object that is paused"`
	Name   string    `json:"name" doc:"Name of the queue, worker or action, or ID of the execution"`
	Paused bool      `json:"paused" doc:"true: paused; false: resumed"`
	At     time.Time `json:"at,omitzero" doc:"When it was paused or resumed"`
	Until  time.Time `json:"until,omitzero" doc:"When the pause expires; absent: it lasts until it is resumed"`
	By     string    `json:"by,omitempty" doc:"Who paused or resumed it"`
	Reason string    `json:"reason,omitempty" doc:"Reason that was given"`

	Timers string `json:"timers,omitempty" enum:"stop" doc:"Workflows only: stop if timeouts and sleeps are halted; absent if they run on"`

	Beneath int `json:"beneath,omitempty" doc:"Number of sub-workflows paused or resumed along with it"`
}

// PauseList lists the current pauses, or the history of pauses and resumes.
type PauseList struct {
	Pauses     []Pause `json:"pauses" doc:"Current pauses by kind and name; in the history, newest first"`
	NextCursor string  `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}
