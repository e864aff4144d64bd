package store

import "github.com/pawl-run/pawl/internal/flow"

// Imported is the draft of an execution that has ended elsewhere, with its whole history: Apply inserts it as it is. Nothing else writes
// an execution that nothing here has decided about. A workflow comes before its children, and its marks, pieces of input and holds with it
// or later in the transaction.
func Imported(x *flow.Execution, history []flow.Event) *flow.Draft {
	return &flow.Draft{Execution: x, New: true, Events: history}
}
