package api

import "time"

// Queue is how long a queue is and which workers serve it.
type Queue struct {
	Queue   string `json:"queue" doc:"Its name"`
	Handler string `json:"handler,omitempty" doc:"The entry is for the part of the queue that needs workers with this handler"`
	Runtime string `json:"runtime,omitempty" doc:"The entry is for the part of the queue that needs workers with this runtime"`
	// WorkerLabels are of the part of the queue that waits for workers with them.
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"The entry is for the part of the queue that needs workers with these labels"`
	Ready        int               `json:"ready" doc:"Executions that wait for a worker"`
	Oldest       time.Time         `json:"oldest,omitzero" doc:"When the execution that has waited longest was queued"`
	Workers      int               `json:"workers" doc:"Live sessions that serve it"`
	Slots        int               `json:"slots" doc:"Of these workers"`
	Paused       *Pause            `json:"paused,omitempty" doc:"Nothing is taken from it"`
}

// Queues lists the queues that have executions waiting or workers serving.
type Queues struct {
	Queues     []Queue `json:"queues" doc:"Those that have executions waiting or workers serving"`
	NextCursor string  `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// Key is how full a concurrency key is.
type Key struct {
	Key     string `json:"key" doc:"The concurrency key"`
	Holders int    `json:"holders" doc:"Executions that hold it"`
	Waiting int    `json:"waiting" doc:"Executions that wait for it"`
}

// Keys lists the concurrency keys in use, the fullest first.
type Keys struct {
	Keys []Key `json:"keys" doc:"The fullest first"`
}

// Worker is one live session of a worker.
type Worker struct {
	Session  string   `json:"session" doc:"Its id"`
	Name     string   `json:"name" doc:"For people"`
	Embedded bool     `json:"embedded,omitempty" doc:"It lives in the server's own process"`
	Queues   []string `json:"queues" doc:"Queues that it serves"`
	Kinds    []string `json:"kinds,omitempty" doc:"Kinds and handlers that it runs, its runtimes as runtime:NAME and its languages as code:NAME"`
	Slots    int      `json:"slots" doc:"Executions that it runs at once"`
	// Labels are what executions may ask for with their worker_labels.
	Labels    map[string]string `json:"labels,omitempty" doc:"What executions may ask for with their worker_labels"`
	StartedAt time.Time         `json:"started_at" doc:"When its session began"`
	ExpiresAt time.Time         `json:"expires_at" doc:"When its lease ends unless it is renewed"`
	Paused    *Pause            `json:"paused,omitempty" doc:"It is given nothing"`
	// Holds and Executions are there with executions=true.
	Holds      int         `json:"holds,omitempty" doc:"How many executions it holds, each in a slot; with executions=true"`
	Executions []Execution `json:"executions,omitempty" doc:"The oldest of these, at most 100, and 5,000 of all workers together, as in lists; with executions=true"`
}

// Workers lists the live sessions.
type Workers struct {
	Workers    []Worker `json:"workers" doc:"The live sessions"`
	NextCursor string   `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
	// Lost is there with lost=true.
	Lost []LostWorker `json:"lost,omitempty" doc:"Sessions that this server has lost since it started, at most 100 of the last day, the latest first; with lost=true, on the first page"`
}

// Stats sums up the server.
type Stats struct {
	Version   string    `json:"version" doc:"Of this process"`
	StartedAt time.Time `json:"started_at" doc:"When this process started"`
	// Executions counts what has not ended, by status.
	Executions map[Status]int `json:"executions" doc:"Unfinished executions, by status"`
	// Counters are those of this process since it started, by name, as in /metrics without prefix and suffix.
	Counters   map[string]float64 `json:"counters" doc:"Counts of this process since it started, by name, as in /metrics without prefix and suffix"`
	StoreBytes int64              `json:"store_bytes" doc:"Size of the store"`
	Workers    int                `json:"workers" doc:"Live sessions"`
	Slots      int                `json:"slots" doc:"Slots of the live workers"`
	RSSBytes   int64              `json:"rss_bytes,omitempty" doc:"Memory of this process"`
	Goroutines int                `json:"goroutines" doc:"Of this process"`
}

// Verification is what a look at every row of the store found.
type Verification struct {
	At time.Time `json:"at" doc:"When it began"`
	// Broken are the promises that some row breaks; at most about a thousand are listed.
	Broken []Violation `json:"broken" doc:"Promises that some row breaks; at most about a thousand"`
	// Promises are those that were looked at, by number, and whether each is kept.
	Promises []Invariant `json:"promises" doc:"Those that were looked at, by number, and whether each is kept"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds" doc:"How long it took"`
	// Replayed is what was replayed, where that was asked for.
	Replayed *Replayed `json:"replayed,omitempty" doc:"What was replayed, where that was asked for"`
}

// Replayed counts the histories that went through the rules once more. What does not follow from them is among the promises that are
// broken.
type Replayed struct {
	Executions int `json:"executions" doc:"Whose histories were replayed"`
	Events     int `json:"events" doc:"That they have"`
	Unknown    int `json:"unknown" doc:"Executions of which something is not known, because it is not recorded or not there any more"`
}

// Invariant is a promise of docs/invariants.md that a verification has looked at.
type Invariant struct {
	Invariant int    `json:"invariant" doc:"Its number in docs/invariants.md"`
	Says      string `json:"says" doc:"What holds, in one sentence"`
	LookedAt  string `json:"looked_at" doc:"Which rows were looked at"`
	State     string `json:"state" doc:"kept, broken, or unknown: so many others are broken that not every row was looked at"`
	Broken    int    `json:"broken,omitempty" doc:"How many of the violations are of it"`
}

// Violation is one broken promise.
type Violation struct {
	Invariant int    `json:"invariant" doc:"Its number in docs/invariants.md"`
	Execution string `json:"execution,omitempty" doc:"The execution concerned; empty if there is none"`
	Message   string `json:"message" doc:"What is wrong"`
}

// Health is the answer to a probe.
type Health struct {
	Status string `json:"status" doc:"ok"`
}

// Activity is what one server has done lately. It is kept in its memory, for a day.
type Activity struct {
	Since time.Time      `json:"since" doc:"When this process started: of what was before nothing is known"`
	Step  Duration       `json:"step" doc:"How long each step is"`
	Steps []ActivityStep `json:"steps" doc:"The oldest first; the last one goes on"`
}

// ActivityStep counts what a server has done in one span of time.
type ActivityStep struct {
	At        time.Time `json:"at" doc:"When it began"`
	Submitted int64     `json:"submitted,omitempty" doc:"Executions that were accepted, tasks of workflows not among them"`
	Claimed   int64     `json:"claimed,omitempty" doc:"Attempts that were handed to workers"`
	Completed int64     `json:"completed,omitempty" doc:"Executions that completed, tasks of workflows among them"`
	Failed    int64     `json:"failed,omitempty" doc:"Executions that failed"`
	Cancelled int64     `json:"cancelled,omitempty" doc:"Executions that were cancelled"`
	TimedOut  int64     `json:"timed_out,omitempty" doc:"Executions that timed out"`
}

// Add adds the counts of another step.
func (s *ActivityStep) Add(o *ActivityStep) {
	s.Submitted, s.Claimed = s.Submitted+o.Submitted, s.Claimed+o.Claimed
	s.Completed, s.Failed, s.Cancelled, s.TimedOut = s.Completed+o.Completed, s.Failed+o.Failed, s.Cancelled+o.Cancelled, s.TimedOut+o.TimedOut
}
