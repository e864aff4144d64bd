package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
)

// Reuse gives an item of a rerun the outcome that it is to end with instead of running.
type Reuse struct {
	Workflow flow.ID // the rerun
	Task     string  // of a workflow beneath the rerun with its path before it: flow.Request.KeptTask
	Index    int
	// From is the execution whose output is copied; it has completed. Of is the one that ran to put it out: From itself, or
	// the one whose outcome From reused.
	From, Of flow.ID
	Hash     [sha256.Size]byte // of what From was to do
}

// Reusable is such an outcome as it is kept with the rerun.
type Reusable struct {
	Index  int
	Of     flow.ID
	Hash   [sha256.Size]byte
	Output json.RawMessage
}

// Reruns keeps what reruns reuse. The rows are a rerun's own: what they were copied from may be removed. They go when it ends.
type Reruns interface {
	// Reusable returns what is kept for up to n items of a task, from the given index on, in index order. It stops behind the item
	// with which the outputs have more than most bytes, and returns one item at least where there is any.
	Reusable(ctx context.Context, workflow flow.ID, task string, from, n int, most int64) ([]Reusable, error)
	// DropReusable forgets what is kept for tasks, and for the tasks of workflows beneath them: "deploy" is also "deploy[0]/verify", and
	// "deploy[0]" is that, too.
	DropReusable(ctx context.Context, workflow flow.ID, tasks []string) error
}

// RerunReader reads what a rerun is planned from.
type RerunReader interface {
	// Recorded returns the executions of a workflow's attempt, payload and outcome included, by task (in order of name) and index, at
	// most n beyond (afterTask, afterIndex); start with "" and -1. A full Page may have fewer, and one at least where there is any.
	Recorded(ctx context.Context, of WorkflowAttempt, afterTask string, afterIndex, n int) ([]*flow.Execution, error)
}
