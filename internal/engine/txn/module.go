package txn

import (
	"context"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
)

// Module is one capability of the engine: its part of each transaction, and its loops. Functions that it does not need are nil. The engine
// lists all modules in the order in which each hook calls them.
type Module struct {
	Name string
	// BeforeWrite makes the decisions that belong to the executions about to be written, and adds rows that the module has held back. It must
	// not flush.
	BeforeWrite Hook
	// Follow decides the follow-ups of what has been written, and reports whether there were any. They are written before the first module is
	// asked again.
	Follow func(context.Context, Tx) (more bool, err error)
	// AtEnd makes the decisions that need the end of all follow-ups. They are written last.
	AtEnd Hook
	// Committed is called after the commit, before the requests are answered.
	Committed func(Tx)
	// Loops run until their context ends.
	Loops []func(context.Context)
}

// Hook decides within a transaction.
type Hook = func(context.Context, Tx) error

// Kind is how the engine runs the executions of one kind itself. Functions that the kind does not need are nil.
type Kind struct {
	Kind flow.Kind
	// Check returns what is wrong with a payload before it is stored; field is the payload's field.
	Check func(ctx context.Context, payload json.RawMessage, field string) error
	// Load reads, together, what drafts of the kind may need that are about to begin.
	Load func(context.Context, Tx, []*flow.Draft) error
	// Begin starts an attempt. A payload that turns out wrong only now fails it (FailInvalid).
	Begin Step
	// Wake continues an execution whose WakeAt has come.
	Wake Step
	// Written is called with each written execution of the kind: an ended one may leave rows behind.
	Written func(Tx, *flow.Draft)
}

// Step decides about one execution within a transaction.
type Step = func(context.Context, Tx, *flow.Draft) error
