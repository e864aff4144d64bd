package definition

import (
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
)

type Status string

// The statuses of a task that has ended; "" is an unfinished task.
const (
	StatusCompleted Status = "completed"
	StatusFailed    Status = "failed"
	StatusSkipped   Status = "skipped"
	StatusCancelled Status = "cancelled"
	StatusTimedOut  Status = "timed_out"
)

// Result is the result of a task for expressions: tasks.NAME.status, .output, .error.
type Result struct {
	Status Status
	// Output is the output of the task, nil for null: a skipped task has none, while failed code still has its result. For a foreach, Items
	// has the outputs of the items instead, in order.
	Output json.RawMessage
	Items  []json.RawMessage
	Unread error       // why the output could not be read: expressions that use it fail with this error
	Error  *flow.Error // nil unless it failed, timed out or was cancelled
}
