package store

import "github.com/pawl-run/pawl/internal/flow"

// Imported is the draft of an execution that ended in another installation, with its whole history; Apply inserts it unchanged.
// It is the only way to write an execution about which this store has recorded no decision. A workflow comes before its
// children; its marks, pieces of input and holds come with it or later in the transaction.
func Imported(x *flow.Execution, history []flow.Event) *flow.Draft {
	return &flow.Draft{Execution: x, New: true, Events: history}
}
