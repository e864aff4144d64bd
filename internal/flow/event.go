package flow

import (
	"encoding/json"
	"time"
)

// EventType names what happened. The types that move the stage carry the stage's name, but for EvReused and EvOverridden.
type EventType string

// The event types. Requested … TimedOut, EvReused and EvOverridden move the stage (see Moves); the others leave it where it is.
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
	EvProgress   EventType = "progress" // said by the work itself
	EvReused     EventType = "reused"   // it ended with the outcome of an earlier execution: nothing ran
	EvOverridden EventType = "given"    // it ended with an output that a person has given: nothing ran
	EvPaused     EventType = "paused"   // a workflow starts no more tasks, or timers stand still
	EvResumed    EventType = "resumed"  // it starts tasks again
)

// Note is the data of a progress event by which a handler says what its attempt waits for, for people who ask why; empty: for nothing
// any more.
type Note struct {
	Waiting string `json:"waiting"`
}

// What is recorded of an execution has bounds, in bytes of JSON: each event's data and an error's details, and an output.
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
	// Outcome rides on the owner's terminal event from worker to engine. It is kept with the execution, not with the
	// history, so a large output is stored once.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Outcome is what an execution ended with. It is written once.
type Outcome struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Error says why an execution did not complete. Code is stable and meant for machines (a verdict such as "oom", or one
// of the codes below); Message is for people.
type Error struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Error codes that the engine itself gives; verdicts of package runtime are the others.
const (
	CodeCancelled       = "cancelled"
	CodeIdle            = "idle"
	CodeQueueTimeout    = "queue_timeout"
	CodeTimeout         = "timeout"
	CodeNonzeroExit     = "nonzero_exit" // runtime.NonzeroExit: the policy "exit:N" of a retry looks at it
	CodeTotalTimeout    = "total_timeout"
	CodeWorkerLost      = "worker_lost"
	CodeInfraError      = "infra_error" // runtime.InfraError: the host could not run the program, or took it away (see HostTook)
	CodeTaskFailed      = "task_failed"
	CodeExpressionError = "expression_error"
	CodeNotReached      = "not_reached" // a task has had all its rounds, and its until did not hold
	CodeKeyFull         = "key_full"
	CodeRateExceeded    = "rate_exceeded"
	CodeSuperseded      = "superseded"
	CodeInvalidInput    = "invalid_input"
	CodeInvalidOutput   = "invalid_output" // what the program wrote to $PAWL_OUTPUT cannot be taken
	CodeHandlerError    = "handler_error"
	CodeGone            = "gone" // the receiver of a webhook wants no more of them
	CodeInquiryExpired  = "inquiry_expired"
	CodeDeclined        = "declined"
	CodeInternal        = "internal_error" // a defect, or a limit that nothing told of before
)
