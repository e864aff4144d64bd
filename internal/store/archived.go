package store

import "github.com/pawl-run/pawl/internal/flow"

// Archived is the draft of an execution of an archive, which ended in another installation, with its whole history; Apply inserts
// it unchanged. It is the only way to write an execution about which this store has recorded no decision. A workflow comes before
// its children; its marks and pieces of input come with it or later.
func Archived(x *flow.Execution, history []flow.Event) *flow.Draft {
	return &flow.Draft{Execution: x, New: true, Events: history}
}
