package api

import "time"

// Timeline is when attempts waited and ran, and which worker had each: those of a workflow's tasks, in the order of task, index and
// attempt; of any other execution its own.
type Timeline struct {
	Execution string            `json:"execution" doc:"Whose it is"`
	Status    Status            `json:"status" doc:"State of the execution; completed, failed, cancelled and timed_out are final"`
	Attempts  []TimelineAttempt `json:"attempts" doc:"In the order of task, index and attempt; those of one execution are never on two pages"`
	// NextCursor is also set where the call ended at its bound of time before it had as many executions as were asked for.
	NextCursor string `json:"next_cursor,omitempty" doc:"Pass it as cursor to get the next page; absent on the last one"`
}

// TimelineAttempt is one attempt. A moment that has not come is absent.
type TimelineAttempt struct {
	Execution string `json:"execution" doc:"Of which it is an attempt"`
	Task      string `json:"task,omitempty" doc:"Its name in the workflow"`
	Index     int    `json:"index,omitempty" doc:"Which item or round of the task it is, from 0"`
	Kind      string `json:"kind" doc:"What runs it: code, container, http, llm, input, output, sleep, ask, wait, noop, workflow, or the name of a handler"`
	Attempt   int    `json:"attempt" doc:"Number of the attempt, from 1"`
	// Status is how the attempt ended, or where it stands; of one that was lost, where it stood then.
	Status Status `json:"status" doc:"How the attempt ended, or where it stands; of one that was lost, where it stood then"`
	Lost   bool   `json:"lost,omitempty" doc:"Its worker was lost: what became of it is not known"`
	Code   string `json:"code,omitempty" doc:"Of the error with which it ended"`
	Worker string `json:"worker,omitempty" doc:"Name of the worker that had it; engine: the server itself. Absent: no worker had it"`

	CreatedAt  time.Time `json:"created_at,omitzero" doc:"When the attempt was opened"`
	QueuedAt   time.Time `json:"queued_at,omitzero" doc:"When it came into its queue"`
	ClaimedAt  time.Time `json:"claimed_at,omitzero" doc:"When the attempt was handed to its worker"`
	StartedAt  time.Time `json:"started_at,omitzero" doc:"When the attempt began to run"`
	FinishedAt time.Time `json:"finished_at,omitzero" doc:"When the attempt ended"`
}
