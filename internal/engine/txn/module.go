package txn

import (
	"context"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
)

// Module is one capability of the engine: what it adds to each transaction, and which loops it runs. Functions that it does not need are
// nil. The engine lists all modules in the order in which each hook calls them.
type Module struct {
	Name string
	// BeforeWrite decides what belongs to the executions that are about to be written, and adds rows that the module has held back. It must
	// not flush.
	BeforeWrite Hook
	// Follow decides what follows from what has been written, and reports whether there was anything. What it has decided is written before
	// the first module is asked again.
	Follow func(context.Context, Tx) (more bool, err error)
	// AtEnd decides what can be decided only when nothing follows any more. What it adds is written last.
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
	// Check says what is wrong with a payload before it is stored; field is where the payload was given.
	Check func(ctx context.Context, payload json.RawMessage, field string) error
	// Load reads together what drafts of the kind may need that are about to begin.
	Load func(context.Context, Tx, []*flow.Draft) error
	// Begin carries out the start of an attempt. A payload that is wrong only now fails it (FailInvalid).
	Begin Step
	// Wake goes on with an execution whose WakeAt has come.
	Wake Step
	// Written is told of each execution of the kind that the transaction has written: one that has ended may leave rows behind.
	Written func(Tx, *flow.Draft)
}

// Step decides about one execution within a transaction.
type Step = func(context.Context, Tx, *flow.Draft) error
