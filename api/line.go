package api

import "time"

// Standing is an execution with its place in the line.
type Standing struct {
	Place     int       `json:"place" doc:"Place in the line, from 1; place 1 is served next"`
	Execution Execution `json:"execution" doc:"Execution, with the fields that lists have"`
}

// Lane is one part of a queue: the executions that need the same handler, runtime and worker labels.
type Lane struct {
	Handler      string            `json:"handler,omitempty" doc:"Executions in this lane need this handler"`
	Runtime      string            `json:"runtime,omitempty" doc:"Executions in this lane need this runtime or language"`
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"Executions in this lane need these worker labels"`

	PausedAction string `json:"paused_action,omitempty" doc:"Executions of this paused action wait here; workers take none of them"`

	Ready  int        `json:"ready" doc:"Number of executions waiting in the lane"`
	Line   []Standing `json:"line" doc:"First executions in the order in which they will run; with label, only matching ones"`
	Looked int        `json:"looked" doc:"Places that were examined, from the front"`
}

// QueueLine lists the executions that wait in a queue, in the order in which they are handed out.
type QueueLine struct {
	Queue  string    `json:"queue" doc:"Name of the queue"`
	At     time.Time `json:"at" doc:"When it was read"`
	Paused *Pause    `json:"paused,omitempty" doc:"Present while the queue is paused: workers take nothing from it"`
	Lanes  []Lane    `json:"lanes" doc:"Lanes of the queue, longest first, at most 100"`
	More   bool      `json:"more,omitempty" doc:"The queue has more than 100 lanes"`
}

// KeyLine lists the executions that hold a concurrency key and those that wait for it, in order.
type KeyLine struct {
	Key     string      `json:"key" doc:"Concurrency key"`
	At      time.Time   `json:"at" doc:"When it was read"`
	Limit   int         `json:"limit,omitempty" doc:"Limit stated by the next execution in line, or else by the latest holder"`
	Held    int         `json:"held" doc:"Number of holders; ready executions that wait for a worker already hold the key"`
	Holders []Execution `json:"holders" doc:"Holders, oldest first, at most as many as the limit parameter allows"`
	Waiting int         `json:"waiting" doc:"Number of executions waiting for the key"`
	Line    []Standing  `json:"line" doc:"First executions in the order in which they will run; with label, only matching ones"`
	Looked  int         `json:"looked" doc:"Places that were examined, from the front"`
}

// LostWorker is a session whose lease has run out: its worker was killed, or cut off from the server.
type LostWorker struct {
	Session   string    `json:"session" doc:"ID of the session"`
	Name      string    `json:"name" doc:"Name of the worker"`
	Queues    []string  `json:"queues" doc:"Queues that it served"`
	Slots     int       `json:"slots" doc:"Slots that it had"`
	StartedAt time.Time `json:"started_at" doc:"When the session began"`
	ExpiredAt time.Time `json:"expired_at,omitzero" doc:"When the lease ended; absent if the recovery was interrupted"`
	LostAt    time.Time `json:"lost_at" doc:"When the server noticed and took its attempts back"`
	Attempts  int       `json:"attempts" doc:"Number of attempts taken back"`
}
