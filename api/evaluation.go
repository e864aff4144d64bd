package api

import "time"

// Evaluation asks for one run of ad-hoc code. The answer is an Execution of kind "code" whose output is a CodeResult, even if it failed.
type Evaluation struct {
	Code

	Queue        string            `json:"queue,omitempty" check:"filled" doc:"Queue in which it waits for a worker"`
	Priority     *int              `json:"priority,omitempty" doc:"-1000 to 1000; higher goes first"`
	Labels       map[string]string `json:"labels,omitempty" doc:"Labels by name; lists, counts and waits can select by them"`
	WorkerLabels map[string]string `json:"worker_labels,omitempty" doc:"Labels that a worker must have to run it"`

	Timeout Duration `json:"timeout,omitempty" check:"positive" doc:"Time limit of one attempt, counted from its claim by a worker"`

	QueueTimeout Duration `json:"queue_timeout,omitempty" check:"positive" doc:"Longest time that an attempt may wait for a worker"`

	TotalTimeout Duration     `json:"total_timeout,omitempty" check:"positive" doc:"Time limit for all attempts together"`
	Retry        *Retry       `json:"retry,omitempty" doc:"When a failed attempt is repeated"`
	Concurrency  *Concurrency `json:"concurrency,omitempty" doc:"How many executions may hold a key at the same time"`
	Rate         *Rate        `json:"rate,omitempty" doc:"How often executions with a key may begin"`
	Cache        *Cache       `json:"cache,omitempty" doc:"Reuse the cached result of an identical evaluation, or cache this one's"`
	NoCache      bool         `json:"no_cache,omitempty" doc:"Run even if a cached result exists; the new result is still cached"`
	NotBefore    time.Time    `json:"not_before,omitzero" doc:"Earliest start; default: now"`

	StartIn Duration `json:"start_in,omitempty" doc:"Delay before the start, counted from acceptance; instead of not_before"`

	IdempotencyKey string `json:"idempotency_key,omitempty" check:"filled" doc:"A repeated request with this key returns the same execution"`

	Wait Duration `json:"wait,omitempty" doc:"How long the response may wait for the end of the execution, at most 60s"`
}

// Stdin is the state of the input that was sent to an interactive evaluation.
type Stdin struct {
	ID     string `json:"id" doc:"Id of the execution; begins with ex_"`
	Status Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Offset int64  `json:"offset" doc:"Bytes received so far, which is the offset of the next byte"`
	Closed bool   `json:"closed" doc:"The program gets end-of-file after these bytes"`
}

// RunningState says whether an evaluation is still unfinished.
type RunningState struct {
	ID      string `json:"id" doc:"Id of the execution; begins with ex_"`
	Running bool   `json:"running" doc:"The execution has not ended; it may still wait for a worker"`
	Status  Status `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
}

// SubmissionCheck describes the execution that a submission would become, or lists all its errors.
type SubmissionCheck struct {
	Valid    bool         `json:"valid" doc:"Whether the submission would be accepted now"`
	Action   string       `json:"action,omitempty" doc:"Action that would run"`
	Version  int          `json:"version,omitempty" doc:"Version of the definition; absent for ad-hoc work"`
	Kind     string       `json:"kind,omitempty" doc:"Kind of work that would run"`
	Queue    string       `json:"queue,omitempty" doc:"Queue in which it would wait"`
	Key      string       `json:"key,omitempty" doc:"Concurrency key that it would need"`
	Problems []FieldError `json:"problems,omitempty" doc:"All errors of the submission"`
}
