package store

import (
	"context"
	"encoding/json"

	"github.com/pawl-run/pawl/internal/flow"
)

// VerdictOK is the verdict of a completed execution. Any other ended execution has the code of its error as verdict.
const VerdictOK = "ok"

// Document selects a document of an execution.
type Document uint8

const (
	OutputOf  Document = iota // nil until the execution has ended
	InputOf                   // as it was submitted
	EndDataOf                 // the data of the last event; nil until the execution has ended
)

// OutcomeReader reads the inputs and outcomes of executions.
type OutcomeReader interface {
	// Documents returns a document of each of the executions, in order, and stops when a Page is full. It is nil for an execution that has
	// none or does not exist.
	Documents(ctx context.Context, of Document, ids []flow.ID) ([]json.RawMessage, error)
	// Tally counts the executions that f selects; it ignores Before and Limit. It reads each of them, so f should name a label. If every
	// condition with rows of its own (such as a label) has more than f.Reach of them, more is true: all unfinished executions are counted, but
	// ended ones only among the newest f.Reach rows of one condition. A Reach of 0 means no such limit.
	Tally(ctx context.Context, f Filter) (all []Tally, more bool, err error)
	// Unnumbered returns up to n executions with the label that have ended and have no number yet, and whether any with the label is
	// unfinished. Executions with the label that are neither returned nor unfinished have a number.
	Unnumbered(ctx context.Context, l Label, n int) (ended []flow.ID, open bool, err error)
	// Ended returns up to n executions with the label whose number is greater than after, sorted by number, without payload. Their outcomes
	// have the error but not the output. It returns fewer if a Page is full. For a label, no number lower than one that was returned is ever
	// added later.
	Ended(ctx context.Context, l Label, after int64, n int) ([]Ended, error)
}

// Label selects executions without a parent that were submitted with a label.
type Label struct {
	Name, Value string
	Action      string // only executions of this action; "": of any action
}

// Ended is an ended execution with its number among those with the label.
type Ended struct {
	*flow.Execution
	Number int64 // greater than 0
}

// Numbering is the part of a transaction that numbers the ends of executions.
type Numbering interface {
	// Number numbers those of the executions that have ended, have the label and have no number yet, and reports whether it did so. It does
	// nothing while another transaction numbers the same label: the caller has to try again later.
	Number(ctx context.Context, l Label, ids []flow.ID) (bool, error)
}

// Tally is the number of executions in one stage and, if they ended without completing, with one error code.
type Tally struct {
	Stage flow.Stage
	Code  string // of the error; "" if there is none
	Count int
}
