package api

import "time"

// PauseOrder says who pauses something, why, and for how long.
type PauseOrder struct {
	By     string   `json:"by,omitempty" doc:"Who pauses it"`
	Reason string   `json:"reason,omitempty" doc:"Why, for those who look at it later"`
	For    Duration `json:"for,omitempty" check:"positive" doc:"After which it goes on by itself; without it when it is resumed"`
	Timers string   `json:"timers,omitempty" enum:"run,stop" doc:"Of an execution, whether its timers run on or stand still: timeouts of the workflow and of those among its tasks, and what among these only waits, as sleeps do. Without it they run on"`
}

// ResumeOrder says who resumes something, and why.
type ResumeOrder struct {
	By     string `json:"by,omitempty" doc:"Who resumes it"`
	Reason string `json:"reason,omitempty" doc:"Why, for those who look at it later"`
}

// Pause says that something was paused, or resumed.
type Pause struct {
	Number int64     `json:"number" doc:"1, 2, 3 …, in the order in which queues, workers and actions were paused or resumed; 0: this never was, or it is an execution, whose history has it"`
	Kind   string    `json:"kind" enum:"queue,worker,action,execution" doc:"What is paused"`
	Name   string    `json:"name" doc:"Of the queue, worker or action; the id of the execution"`
	Paused bool      `json:"paused" doc:"False: it was resumed"`
	At     time.Time `json:"at,omitzero" doc:"When"`
	Until  time.Time `json:"until,omitzero" doc:"When it goes on by itself; absent: when it is resumed"`
	By     string    `json:"by,omitempty" doc:"Who did it"`
	Reason string    `json:"reason,omitempty" doc:"Why"`
	Timers string    `json:"timers,omitempty" enum:"stop" doc:"Of an execution: its timers stand still; absent: they run on"`

	// Beneath is in the answer to an order for an execution.
	Beneath int `json:"beneath,omitempty" doc:"How many workflows among its tasks were paused or resumed with it"`
}

// PauseList is what is paused, or what was paused and resumed.
type PauseList struct {
	Pauses     []Pause `json:"pauses" doc:"Those that hold now, by kind and name; of the history the latest first"`
	NextCursor string  `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}
