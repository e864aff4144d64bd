package api

// Evaluation asks for one run of ad-hoc code. The answer is an Execution of kind "code" whose output is a CodeResult, also
// when it failed.
type Evaluation struct {
	Code

	Queue          string            `json:"queue,omitempty"`
	Priority       *int              `json:"priority,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	Timeout        Duration          `json:"timeout,omitempty" doc:"Of one attempt, from claim"`
	QueueTimeout   Duration          `json:"queue_timeout,omitempty"`
	TotalTimeout   Duration          `json:"total_timeout,omitempty"`
	Retry          *Retry            `json:"retry,omitempty"`
	Concurrency    *Concurrency      `json:"concurrency,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	// Wait is how long the answer may be held back for the end of the execution; at most 60s.
	Wait Duration `json:"wait,omitempty" doc:"How long to wait for the end before answering, at most 60s"`
}

// RunningState tells whether an evaluation is still under way.
type RunningState struct {
	ID      string `json:"id"`
	Running bool   `json:"running"` // not ended: it may still be waiting for a worker
	Status  Status `json:"status"`
}
