package api

import "time"

// Queue is the length of a queue and the workers that serve it.
type Queue struct {
	Queue        string            `json:"queue" doc:"Name of the queue"`
	Handler      string            `json:"handler,omitempty" doc:"This entry counts only executions that need this handler"`
	Runtime      string            `json:"runtime,omitempty" doc:"This entry counts only executions that need this runtime"`
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"This entry counts only executions that need these worker labels"`
	Ready        int               `json:"ready" doc:"Executions waiting for a worker"`
	Oldest       time.Time         `json:"oldest,omitzero" doc:"When the longest-waiting execution was queued"`
	Workers      int               `json:"workers" doc:"Live workers that serve the queue"`
	Slots        int               `json:"slots" doc:"Slots of these workers"`
	Paused       *Pause            `json:"paused,omitempty" doc:"Present while the queue is paused: workers take nothing from it"`
}

// Queues lists the queues that have executions waiting or workers serving.
type Queues struct {
	Queues     []Queue `json:"queues" doc:"Queues with waiting executions or live workers"`
	NextCursor string  `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Key is the number of holders and waiters of a concurrency key.
type Key struct {
	Key     string `json:"key" doc:"Concurrency key"`
	Holders int    `json:"holders" doc:"Executions that hold the key"`
	Waiting int    `json:"waiting" doc:"Executions that wait for the key"`
}

// Keys lists the concurrency keys in use, the fullest first.
type Keys struct {
	Keys []Key `json:"keys" doc:"Keys with the most executions first"`
}

// Worker is one live session of a worker.
type Worker struct {
	Session  string   `json:"session" doc:"ID of the worker's session; begins with ws_"`
	Name     string   `json:"name" doc:"Name of the worker, for people"`
	Embedded bool     `json:"embedded,omitempty" doc:"The worker runs inside the server's process"`
	Queues   []string `json:"queues" doc:"Queues that the worker serves"`
	Kinds    []string `json:"kinds,omitempty" doc:"What it runs: kinds and handlers, runtimes as runtime:NAME, languages as code:NAME"`
	Slots    int      `json:"slots" doc:"Executions that the worker runs at the same time, at most"`
	// Labels can be required by executions in their worker_labels.
	Labels    map[string]string `json:"labels,omitempty" doc:"Labels that executions can require with worker_labels"`
	StartedAt time.Time         `json:"started_at" doc:"When the session began"`
	ExpiresAt time.Time         `json:"expires_at" doc:"When the lease ends unless it is renewed"`
	Paused    *Pause            `json:"paused,omitempty" doc:"Present while the worker is paused: it gets no new executions"`
	// Holds and Executions are set with executions=true.
	Holds      int         `json:"holds,omitempty" doc:"Executions that it holds now, one per slot; with executions=true"`
	Executions []Execution `json:"executions,omitempty" doc:"Up to 100 of the held executions, oldest first; with executions=true"`
}

// Workers lists the live sessions.
type Workers struct {
	Workers    []Worker     `json:"workers" doc:"Live sessions"`
	NextCursor string       `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
	Lost       []LostWorker `json:"lost,omitempty" doc:"Up to 100 sessions lost in the last day since this server started; with lost=true"`
}

// Stats sums up the server.
type Stats struct {
	Version    string             `json:"version" doc:"Version of this server"`
	StartedAt  time.Time          `json:"started_at" doc:"When this server process started"`
	Executions map[Status]int     `json:"executions" doc:"Unfinished executions by status"`
	Counters   map[string]float64 `json:"counters" doc:"Counters of this process by name, as in /metrics but without prefix and suffix"`
	StoreBytes int64              `json:"store_bytes" doc:"Size of the store in bytes"`
	Workers    int                `json:"workers" doc:"Number of live sessions"`
	Slots      int                `json:"slots" doc:"Slots of the live workers"`
	RSSBytes   int64              `json:"rss_bytes,omitempty" doc:"Resident memory of this process in bytes"`
	Goroutines int                `json:"goroutines" doc:"Goroutines of this process"`
}

// Verification is the result of checking every row of the store.
type Verification struct {
	At       time.Time   `json:"at" doc:"When the check began"`
	Broken   []Violation `json:"broken" doc:"Rows that violate an invariant, about 1,000 at most"`
	Promises []Invariant `json:"promises" doc:"Invariants that were checked, by number"`
	Seconds  float64     `json:"seconds" doc:"Duration of the check in seconds"`
	Replayed *Replayed   `json:"replayed,omitempty" doc:"Result of replaying histories, if requested"`
}

// Replayed counts the histories that were decided by the rules once more. Recorded decisions that the rules do not give are in
// Verification.Broken.
type Replayed struct {
	Executions int `json:"executions" doc:"Executions whose histories were replayed"`
	Events     int `json:"events" doc:"Number of their events"`
	Unknown    int `json:"unknown" doc:"Executions with a part that is not recorded, or no longer kept"`
}

// Invariant is the result for one invariant of docs/invariants.md.
type Invariant struct {
	Invariant int    `json:"invariant" doc:"Number in docs/invariants.md"`
	Says      string `json:"says" doc:"The invariant in one sentence"`
	LookedAt  string `json:"looked_at" doc:"Rows that were checked"`
	State     string `json:"state" doc:"kept, broken, or unknown if the check stopped early at too many violations"`
	Broken    int    `json:"broken,omitempty" doc:"Number of violations of this invariant"`
}

// Violation is a row that violates an invariant.
type Violation struct {
	Invariant int    `json:"invariant" doc:"Number in docs/invariants.md"`
	Execution string `json:"execution,omitempty" doc:"Execution concerned; empty if there is none"`
	Message   string `json:"message" doc:"Description of the error"`
}

// Health is the answer to a probe.
type Health struct {
	Status string `json:"status" doc:"ok"`
}

// Activity counts the work of one server. The server keeps it in memory, for a day.
type Activity struct {
	Since time.Time      `json:"since" doc:"When this process started; earlier activity is not known"`
	Step  Duration       `json:"step" doc:"Length of a step"`
	Steps []ActivityStep `json:"steps" doc:"Steps, oldest first; the last one is still running"`
}

// ActivityStep counts the work of a server in one span of time.
type ActivityStep struct {
	At        time.Time `json:"at" doc:"Start of the step"`
	Submitted int64     `json:"submitted,omitempty" doc:"Executions accepted, without tasks of workflows"`
	Claimed   int64     `json:"claimed,omitempty" doc:"Attempts handed to workers"`
	Completed int64     `json:"completed,omitempty" doc:"Executions that completed, including tasks of workflows"`
	Failed    int64     `json:"failed,omitempty" doc:"Executions that failed"`
	Cancelled int64     `json:"cancelled,omitempty" doc:"Executions that were cancelled"`
	TimedOut  int64     `json:"timed_out,omitempty" doc:"Executions that timed out"`
}

// Add adds the counts of another step.
func (s *ActivityStep) Add(o *ActivityStep) {
	s.Submitted, s.Claimed = s.Submitted+o.Submitted, s.Claimed+o.Claimed
	s.Completed, s.Failed, s.Cancelled, s.TimedOut = s.Completed+o.Completed, s.Failed+o.Failed, s.Cancelled+o.Cancelled, s.TimedOut+o.TimedOut
}
