package definition

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
)

// Status is what became of a task, as its workflow sees it.
type Status string

// The statuses of a task that has ended; "" is one that has not.
const (
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusSkipped   Status = "skipped"
	StatusCancelled Status = "cancelled"
	StatusTimedOut  Status = "timed_out"
)

// Result is a task as expressions see it: tasks.NAME.status, .output, .error.
type Result struct {
	Status Status
	// Output is what the task put out, nil for null: what was skipped or never
	// ran has none, while code that failed still has its result. A foreach has
	// its items' outputs in Items instead, in item order.
	Output json.RawMessage
	Items  []json.RawMessage
	Unread error       // why the output is not here: expressions that look at it fail with it
	Error  *flow.Error // nil unless it failed, timed out or was cancelled
}
