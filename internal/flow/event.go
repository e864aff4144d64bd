package flow

import (
	"encoding/json"
	"time"
)

// EventType is the type of an event. Types that move the stage have the stage's name, except EvReused and EvOverridden.
type EventType string

// The event types. Requested … TimedOut, EvReused and EvOverridden move the stage (see Moves); the others do not.
const (
	EvRequested    EventType = "requested"    // an attempt was opened
	EvScheduled    EventType = "scheduled"    // placed in its queue
	EvProvisioning EventType = "provisioning" // handed off: a worker session holds the attempt
	EvRunning      EventType = "running"      // the work itself began
	EvCompleted    EventType = "completed"
	EvFailed       EventType = "failed"
	EvCancelled    EventType = "cancelled"
	EvTimedOut     EventType = "timed_out"

	EvWaiting    EventType = "waiting"  // its concurrency key is full
	EvLost       EventType = "lost"     // the owner's lease ran out, or its history had a gap that never closed
	EvAdvanced   EventType = "advanced" // a workflow started, finished or skipped tasks
	EvProgress   EventType = "progress" // reported by the work itself
	EvReused     EventType = "reused"   // it ended with the outcome of an earlier execution: nothing ran
	EvOverridden EventType = "given"    // it ended with an output from a person: nothing ran
	EvPaused     EventType = "paused"   // a workflow starts no more tasks, or timers stop
	EvResumed    EventType = "resumed"  // it starts tasks again
)

// Note is the data of a progress event in which a handler names what its attempt waits for, for users who ask why; empty: for nothing any
// more.
type Note struct {
	Waiting string `json:"waiting"`
}

// Bounds of the stored data of an execution, in bytes of JSON: each event's data and an error's details, and an output.
const (
	MostData   = 64 << 10
	MostOutput = 16 << 20
)

// Event is one entry of an execution's history. Seq starts at 1 and is dense over all attempts.
type Event struct {
	Seq     int64           `json:"seq"`
	Attempt int             `json:"attempt"`
	Type    EventType       `json:"type"`
	At      time.Time       `json:"at"`
	Data    json.RawMessage `json:"data,omitempty"`
	// Outcome is carried by the owner's terminal event from worker to engine. It is kept with the execution, not with the
	// history, so a large output is stored once.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Outcome is the result of an execution. It is written once.
type Outcome struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Error is why an execution did not complete. Code is stable and meant for machines (a verdict such as "oom", or one of the codes below);
// Message is for people.
type Error struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Error codes of the engine; package runtime has the others, which are verdicts.
const (
	CodeCancelled       = "cancelled"
	CodeIdle            = "idle"
	CodeQueueTimeout    = "queue_timeout"
	CodeTimeout         = "timeout"
	CodeNonzeroExit     = "nonzero_exit" // runtime.NonzeroExit: matched by the policy "exit:N" of a retry
	CodeTotalTimeout    = "total_timeout"
	CodeWorkerLost      = "worker_lost"
	CodeInfraError      = "infra_error" // runtime.InfraError: the host could not run the program, or ended it (see HostTook)
	CodeTaskFailed      = "task_failed"
	CodeExpressionError = "expression_error"
	CodeNotReached      = "not_reached" // a task had all its rounds, and its until did not hold
	CodeKeyFull         = "key_full"
	CodeRateExceeded    = "rate_exceeded"
	CodeSuperseded      = "superseded"
	CodeInvalidInput    = "invalid_input"
	CodeInvalidOutput   = "invalid_output" // what the program wrote to $PAWL_OUTPUT is not valid
	CodeHandlerError    = "handler_error"
	CodeGone            = "gone" // the receiver of a webhook has answered 410
	CodeInquiryExpired  = "inquiry_expired"
	CodeDeclined        = "declined"
	CodeInternal        = "internal_error" // a defect, or a limit that was not reported earlier
)
