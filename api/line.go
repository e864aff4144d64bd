package api

import "time"

// Standing is an execution with its place in a line.
type Standing struct {
	Place     int       `json:"place" doc:"From 1, which is the next to go"`
	Execution Execution `json:"execution" doc:"As in lists"`
}

// Lane is one part of a queue: what waits there for workers that have the same.
type Lane struct {
	Handler      string            `json:"handler,omitempty" doc:"It waits for workers with that handler"`
	Runtime      string            `json:"runtime,omitempty" doc:"It waits for workers with that runtime or language"`
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"It waits for workers with these labels"`
	PausedAction string            `json:"paused_action,omitempty" doc:"It is of executions of this action, which is paused: no worker takes from it"`
	Ready        int               `json:"ready" doc:"How many executions wait in it"`
	Line         []Standing        `json:"line" doc:"The first of them, in the order in which they go; with label: the first that have the labels"`
	Looked       int               `json:"looked" doc:"How many places were looked at, from the head on"`
}

// QueueLine is who waits in a queue, and in which order they go.
type QueueLine struct {
	Queue  string    `json:"queue" doc:"Where it waits for a worker"`
	At     time.Time `json:"at" doc:"When it was read"`
	Paused *Pause    `json:"paused,omitempty" doc:"Nothing is taken from it"`
	Lanes  []Lane    `json:"lanes" doc:"The fullest first, at most 100"`
	More   bool      `json:"more,omitempty" doc:"It has more lanes"`
}

// KeyLine is who holds a concurrency key and who waits for it, in the order in which they go.
type KeyLine struct {
	Key     string      `json:"key" doc:"The concurrency key"`
	At      time.Time   `json:"at" doc:"When it was read"`
	Limit   int         `json:"limit,omitempty" doc:"How many may hold it, as the next one to go says, or else the last one that came to hold it"`
	Held    int         `json:"held" doc:"How many hold it; what is due and waits for a worker holds it, too"`
	Holders []Execution `json:"holders" doc:"The oldest first, at most as many as limit says"`
	Waiting int         `json:"waiting" doc:"How many wait for it"`
	Line    []Standing  `json:"line" doc:"The first of them, in the order in which they go; with label: the first that have the labels"`
	Looked  int         `json:"looked" doc:"How many places were looked at, from the head on"`
}

// LostWorker is a session whose lease has run out: its worker was killed, or cut off from the server.
type LostWorker struct {
	Session   string    `json:"session" doc:"Its id"`
	Name      string    `json:"name" doc:"Of its worker"`
	Queues    []string  `json:"queues" doc:"That it served"`
	Slots     int       `json:"slots" doc:"That it had"`
	StartedAt time.Time `json:"started_at" doc:"When its first attempt began to run"`
	ExpiredAt time.Time `json:"expired_at,omitzero" doc:"When its lease ran out; absent where a recovery was interrupted"`
	LostAt    time.Time `json:"lost_at" doc:"When the server noticed, and took back what it held"`
	Attempts  int       `json:"attempts" doc:"How many attempts were taken back from it"`
}
