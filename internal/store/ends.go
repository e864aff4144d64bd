package store

import (
	"context"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
)

// VerdictOK is the verdict of what has completed. The verdict of everything else that has ended is the code of its error.
const VerdictOK = "ok"

// Ends answers readers of what executions were given and have ended with.
type Ends interface {
	// Outputs returns the outputs of the first of the executions named, in their order, until a Page is full. It is nil for an
	// execution that has none, has not ended, or is not there.
	Outputs(ctx context.Context, ids []flow.ID) ([]json.RawMessage, error)
	// Submitted returns the inputs of the first of the executions named, in their order, until a Page is full; nil for one that is not there.
	Submitted(ctx context.Context, ids []flow.ID) ([]json.RawMessage, error)
	// Tally counts the executions that f selects, without regard to Before and Limit. It reads each of them, so f should name a label.
	// Where every condition with rows of its own, such as a label, names more than f.Reach of them, more is true: what has not ended is
	// counted whole, and what has ended among the newest f.Reach of one condition only. A Reach of 0 has no such bound.
	Tally(ctx context.Context, f Filter) (all []Tally, more bool, err error)
	// Unnumbered returns up to n executions with the label that have ended and have no number yet, and whether any with the label
	// has not ended. What is not named then, and is not open, has a number.
	Unnumbered(ctx context.Context, l Label, n int) (ended []flow.ID, open bool, err error)
	// Ended returns up to n executions with the label that have a number greater than after, in the order of their numbers,
	// without payload; of the outcome they have the error and not the output. A full Page may have fewer. No number that is
	// lower than one that was ever returned for the label is added later.
	Ended(ctx context.Context, l Label, after int64, n int) ([]Ended, error)
}

// Label selects what was submitted with a label: executions without a parent.
type Label struct {
	Name, Value string
	Action      string // only of this action; "": of any
}

// Ended is an execution that has ended, and its number among those with the label.
type Ended struct {
	*flow.Execution
	Number int64 // greater than 0
}

// Numbering is the part of a transaction that gives numbers to the ends of executions.
type Numbering interface {
	// Number gives those of the executions that have ended, have the label and no number yet their numbers, and reports whether
	// it did. It gives none while another transaction is at the same label: the caller asks again later.
	Number(ctx context.Context, l Label, ids []flow.ID) (bool, error)
}

// Tally counts the executions in one stage and, of those that have ended otherwise than completed, with one code.
type Tally struct {
	Stage flow.Stage
	Code  string // of the error; "": there is none
	Count int
}
