package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
)

// Reuse is the outcome with which an item of a rerun ends instead of running.
type Reuse struct {
	Workflow flow.ID // the rerun
	Task     string  // for a workflow below the rerun with its path before it: flow.Request.KeptTask
	Index    int
	// From is the completed execution whose output is copied. Of is the execution that ran and produced the output: From
	// itself, or the one whose outcome From reused.
	From, Of flow.ID
	Hash     [sha256.Size]byte // of everything that determined From's outcome
}

// Reusable is a Reuse as stored with the rerun.
type Reusable struct {
	Index  int
	Of     flow.ID
	Hash   [sha256.Size]byte
	Output json.RawMessage
}

// Reruns stores the outcomes that reruns reuse. The rows belong to the rerun and are deleted when it ends; the executions from which they
// were copied may be removed earlier.
type Reruns interface {
	// Reusable returns the outcomes for up to n items of a task, starting at an index, sorted by index. It stops after the item whose output
	// exceeds "most" bytes in total, so it returns at least one if there is any.
	Reusable(ctx context.Context, workflow flow.ID, task string, from, n int, most int64) ([]Reusable, error)
	// DropReusable deletes the outcomes for tasks, and for the tasks of workflows below them: "deploy" and "deploy[0]" both cover
	// "deploy[0]/verify".
	DropReusable(ctx context.Context, workflow flow.ID, tasks []string) error
}

// RerunReader reads the executions from which a rerun is planned.
type RerunReader interface {
	// Recorded returns the executions of a workflow's attempt with payload and outcome, sorted by task name and index, at most n beyond
	// (afterTask, afterIndex); start with "" and -1. It returns fewer if a Page is full, but at least one if there is any.
	Recorded(ctx context.Context, of WorkflowAttempt, afterTask string, afterIndex, n int) ([]*flow.Execution, error)
}
