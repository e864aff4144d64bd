package api

import "time"

// Evaluation asks for one run of ad-hoc code. The answer is an Execution of kind "code" whose output is a CodeResult, also
// when it failed.
type Evaluation struct {
	Code

	Queue          string            `json:"queue,omitempty" check:"filled" doc:"Where it waits for a worker"`
	Priority       *int              `json:"priority,omitempty" doc:"-1000 to 1000; higher goes first"`
	Labels         map[string]string `json:"labels,omitempty" doc:"By which lists, counts and waits select it"`
	WorkerLabels   map[string]string `json:"worker_labels,omitempty" doc:"Labels that a worker must have to be given it"`
	Timeout        Duration          `json:"timeout,omitempty" check:"positive" doc:"Of one attempt, from claim"`
	QueueTimeout   Duration          `json:"queue_timeout,omitempty" check:"positive" doc:"Most time from when an attempt is due to its claim by a worker; anew for each attempt"`
	TotalTimeout   Duration          `json:"total_timeout,omitempty" check:"positive" doc:"Of everything, retries included"`
	Retry          *Retry            `json:"retry,omitempty" doc:"Whether and when a failed attempt is followed by another"`
	Concurrency    *Concurrency      `json:"concurrency,omitempty" doc:"How many executions hold one key at a time"`
	Rate           *Rate             `json:"rate,omitempty" doc:"How often executions with a key begin"`
	Cache          *Cache            `json:"cache,omitempty" doc:"It ends with the outcome that is kept of an evaluation of the same, where there is one; its own is kept"`
	NoCache        bool              `json:"no_cache,omitempty" doc:"It runs, whatever is kept; its outcome is kept as cache says"`
	NotBefore      time.Time         `json:"not_before,omitzero" doc:"When it may start; at once by default"`
	StartIn        Duration          `json:"start_in,omitempty" doc:"The same, from when it is accepted on"`
	IdempotencyKey string            `json:"idempotency_key,omitempty" check:"filled" doc:"The same submission again under this key gives the same execution, another one is refused with 422"`
	// Wait is how long the answer may be held back for the end of the execution; at most 60s.
	Wait Duration `json:"wait,omitempty" doc:"How long to wait for the end before answering, at most 60s"`
}

// Stdin is what an interactive evaluation has been given to read.
type Stdin struct {
	ID     string `json:"id" doc:"Id of the execution; begins with ex_"`
	Status Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Offset int64  `json:"offset" doc:"Bytes so far, and so the offset of the next"`
	Closed bool   `json:"closed" doc:"The program reads an end of file behind what it was given"`
}

// RunningState tells whether an evaluation is still under way.
type RunningState struct {
	ID      string `json:"id" doc:"Id of the execution; begins with ex_"`
	Running bool   `json:"running" doc:"It has not ended; it may still be waiting for a worker"`
	Status  Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
}

// SubmissionCheck is what a submission would be accepted as, or everything that is wrong with it.
type SubmissionCheck struct {
	Valid    bool         `json:"valid" doc:"It would be accepted as things are now"`
	Action   string       `json:"action,omitempty" doc:"What would run"`
	Version  int          `json:"version,omitempty" doc:"Version of the definition; absent for ad-hoc work"`
	Kind     string       `json:"kind,omitempty" doc:"Of what would run"`
	Queue    string       `json:"queue,omitempty" doc:"Where it would wait for a worker"`
	Key      string       `json:"key,omitempty" doc:"The concurrency key that it would need a slot of"`
	Problems []FieldError `json:"problems,omitempty" doc:"Everything that is wrong with it"`
}
