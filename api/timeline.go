package api

import "time"

// Timeline lists when attempts waited and ran, and on which worker. For a workflow it has the attempts of its tasks, by task, index and
// attempt; for any other execution its own attempts.
type Timeline struct {
	Execution string            `json:"execution" doc:"ID of the execution"`
	Status    Status            `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempts  []TimelineAttempt `json:"attempts" doc:"By task, index and attempt; a page never splits one execution"`
	// NextCursor is also set if the call reached its time limit before it had the requested number of executions.
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// TimelineAttempt is one attempt. A time that has not come yet is absent.
type TimelineAttempt struct {
	Execution string `json:"execution" doc:"ID of the execution"`
	Task      string `json:"task,omitempty" doc:"Name of the task in the workflow"`
	Index     int    `json:"index,omitempty" doc:"Item of a foreach task or round of a repeated task, from 0"`
	Kind      string `json:"kind" doc:"Kind of work, for example code, http or workflow, or the name of a handler"`
	Attempt   int    `json:"attempt" doc:"Number of the attempt, from 1"`
	Status    Status `json:"status" doc:"How the attempt ended, or its state now; if lost, its state then"`
	Lost      bool   `json:"lost,omitempty" doc:"The worker was lost, so the result of the attempt is unknown"`
	Code      string `json:"code,omitempty" doc:"Error code with which it ended"`
	Worker    string `json:"worker,omitempty" doc:"Name of its worker; engine for work of the server itself; absent: none had it"`

	CreatedAt  time.Time `json:"created_at,omitzero" doc:"When the attempt was created"`
	QueuedAt   time.Time `json:"queued_at,omitzero" doc:"When the attempt entered its queue"`
	ClaimedAt  time.Time `json:"claimed_at,omitzero" doc:"When the attempt was handed to its worker"`
	StartedAt  time.Time `json:"started_at,omitzero" doc:"When the attempt began to run"`
	FinishedAt time.Time `json:"finished_at,omitzero" doc:"When the attempt ended"`
}
