package store

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
)

// Reader answers readers. Every call sees committed data only; later calls see no less than earlier ones.
type Reader interface {
	Inputs
	// Get loads one execution, payload and outcome included, or ErrNotFound.
	Get(ctx context.Context, id flow.ID) (*flow.Execution, error)
	// List returns up to f.Limit executions, newest first (by id), without payload and outcome; ask for the next page with Before
	// set to the last id.
	List(ctx context.Context, f Filter) ([]*flow.Execution, error)
	// Events returns up to n applied events with Seq > after, in order. The prefix is gap-free.
	Events(ctx context.Context, id flow.ID, after int64, n int) ([]flow.Event, error)
	// Children returns the rows of a workflow's current attempt, by task (in order of name) and index, at most n beyond
	// (afterTask, afterIndex); start with "" and -1.
	Children(ctx context.Context, of WorkflowAttempt, afterTask string, afterIndex, n int) ([]Child, error)
	// Marks returns the marks of a workflow's attempt.
	Marks(ctx context.Context, of WorkflowAttempt) ([]Mark, error)
	// Ahead counts the executions that come before x in the line it stands in (its queue, or its key's).
	Ahead(ctx context.Context, x *flow.Execution) (int, error)
	// KeyHolders returns up to n executions that hold the key.
	KeyHolders(ctx context.Context, key string, n int) ([]*flow.Execution, error)
	// Provisioning returns up to n executions that sessions hold and have not begun, in order of (owner, id), beyond the one
	// given, without payload.
	Provisioning(ctx context.Context, owner, id flow.ID, n int) ([]*flow.Execution, error)
	// LiveSessions returns the sessions whose lease has not run out at now.
	LiveSessions(ctx context.Context, now time.Time) ([]Session, error)
	// Queues tells how long each queue is; queues without claimable executions are absent.
	Queues(ctx context.Context) ([]QueueDepth, error)
	// Keys tells how full the concurrency keys in use are, the fullest first, at most n.
	Keys(ctx context.Context, n int) (map[string]KeyUse, error)
	// Counts counts the executions that have not ended, by stage.
	Counts(ctx context.Context) (map[flow.Stage]int, error)
	// Definition loads a version of a definition (0: the latest), or ErrNotFound.
	Definition(ctx context.Context, name string, version int) (Definition, error)
	// Definitions returns the latest version of up to n definitions, by name, beyond after.
	Definitions(ctx context.Context, after string, n int) ([]Definition, error)
	// FinishedBefore returns up to n executions that have no parent and ended before the time, oldest first, and the
	// executions beneath them.
	FinishedBefore(ctx context.Context, t time.Time, n int) ([]flow.ID, error)
	// Size is the bytes that the store takes.
	Size(ctx context.Context) (int64, error)
}

// Filter selects executions. Zero fields select everything.
type Filter struct {
	Stages   []flow.Stage
	Action   string
	Workflow flow.ID // children of it
	TopLevel bool    // only what has no parent
	Labels   map[string]string
	Since    time.Time // created at or after
	Until    time.Time // created before
	Before   flow.ID   // cursor: ids below it
	Limit    int
}

// Child is one row of a workflow.
type Child struct {
	Task      string
	Index     int
	Execution flow.ID
	Stage     flow.Stage // current
	Attempt   int
}

// QueueDepth is how long a queue is.
type QueueDepth struct {
	Queue  string
	Ready  int
	Oldest time.Time // when the one that has waited longest was queued
}

// Violation is one broken promise found by Check.
type Violation struct {
	Invariant int // number in docs/invariants.md
	Execution flow.ID
	Say       string
}

// Logs keeps what executions write, away from the hot rows. Chunks may be lost with the process up to the last second; the
// rest of the store never loses anything.
type Logs interface {
	// AppendLogs stores chunks; one that is stored already is ignored.
	AppendLogs(ctx context.Context, chunks []LogChunk) error
	// ReadLogs returns chunks beyond the cursor, in order, up to about limit bytes (at least one chunk when there is one).
	ReadLogs(ctx context.Context, q LogQuery) ([]LogChunk, error)
}

// LogChunk is a piece of one attempt's output.
type LogChunk struct {
	Execution flow.ID   `json:"execution"`
	Attempt   int       `json:"attempt"`
	Seq       int64     `json:"seq"`    // 1, 2, 3 … over all streams of the attempt
	Stream    string    `json:"stream"` // "stdout", "stderr" or "log"
	Offset    int64     `json:"offset"` // of the first byte, in its stream
	At        time.Time `json:"at"`
	Data      []byte    `json:"data,omitempty"`
	Blob      string    `json:"blob,omitempty"` // name of the blob that holds the bytes, when Data does not
	Size      int64     `json:"size"`           // bytes of the chunk, wherever they are
	// Prompt asks that other processes hear of the chunk at once: somebody may be waiting to answer it. It is not kept.
	Prompt bool `json:"prompt,omitempty"`
}

// LogQuery selects chunks of one execution.
type LogQuery struct {
	Execution flow.ID
	Attempt   int    // 0: every attempt
	Stream    string // "": every stream
	// After is a cursor: chunks of a later attempt, or of the same attempt with a greater Seq.
	AfterAttempt int
	AfterSeq     int64
	// Offset skips the chunks of Stream that end at or before it; it needs Attempt and Stream.
	Offset int64
	Limit  int64 // bytes
}
