package store

import "github.com/pawl-run/pawl/internal/flow"

// Archived returns the draft of an execution from an archive, which ended in another installation, with its whole history; Apply inserts it
// unchanged. It is the only way to write an execution whose decisions were not made in this store. A workflow must come before its
// children; its marks and pieces of input come with it or later.
func Archived(x *flow.Execution, history []flow.Event) *flow.Draft {
	return &flow.Draft{Execution: x, New: true, Events: history}
}
