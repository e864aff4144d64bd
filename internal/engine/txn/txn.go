// Package txn is the unit of work of one batch as seen by capabilities with a package of their own, such as inquiries. The engine's
// transaction loads, locks, decides and writes; a capability adds its hooks (Module), the kinds of executions that it runs (Kind) and its
// state in each transaction (Part). Capabilities do not know one another.
package txn

import (
	"context"
	"time"

	"github.com/pawl-run/pawl/internal/flow"
	"github.com/pawl-run/pawl/internal/store"
)

// Tx is one transaction. It belongs to the committer that runs it: no other goroutine may use it, and it ends when the hook or decision
// that got it returns.
type Tx interface {
	// Now is the time of the database, read after the locks that the requests needed.
	Now() time.Time
	// Store reads the store and locks rows. A read that could find decided rows writes them first.
	Store() store.Access
	// Rows are the rows beside executions that the next flush writes; a caller adds to them.
	Rows() *store.Delta
	// Draft is an execution of the transaction; nil if it has not been loaded or does not exist.
	Draft(flow.ID) *flow.Draft
	// Load brings executions into the transaction, locked until its end and without their payloads.
	Load(context.Context, []flow.ID) error
	// Changed records a draft after a decision: it is written, and its follow-ups are decided.
	Changed(*flow.Draft)
	// Failpoint makes the commit hit a point of package failpoint.
	Failpoint(string)
	// Listens returns the generation of the rules in force, and whether any of them listens to a trigger.
	Listens(trigger string) (generation int64, ok bool)
	// Record keeps one of Pawl's own signals, with data encoded as JSON. A rule of the generation should listen to its trigger. A signal with
	// a key that this transaction has kept before is skipped: its cause was decided about twice.
	Record(ctx context.Context, s flow.Signal, generation int64, data any) error
	// Parts are the states of capabilities; see Part.
	Parts() *Parts
}

// Decide runs a decision in one of the next batches, with the executions loaded, and returns its result after the commit. With an error the
// result is nil, and the decision may still run or be committed later. A decision that meets a conflict runs again.
type Decide func(ctx context.Context, executions []flow.ID, decision func(context.Context, Tx) (any, error)) (any, error)

// In is Decide for a decision whose result has a type.
func In[T any](ctx context.Context, decide Decide, executions []flow.ID, decision func(context.Context, Tx) (T, error)) (result T, err error) {
	r, err := decide(ctx, executions, func(ctx context.Context, t Tx) (any, error) { return decision(ctx, t) })
	result, _ = r.(T)
	return result, err
}

// Do is Decide for a decision without a result.
func Do(ctx context.Context, decide Decide, executions []flow.ID, decision func(context.Context, Tx) error) error {
	_, err := decide(ctx, executions, func(ctx context.Context, t Tx) (any, error) { return nil, decision(ctx, t) })
	return err
}

// FailInvalid fails an execution that the engine runs itself and whose payload is impossible to carry out.
func FailInvalid(t Tx, d *flow.Draft, why error) error {
	return d.Finish(flow.Failed, flow.Outcome{Error: &flow.Error{Code: flow.CodeInvalidInput, Message: why.Error()}}, t.Now(), 0)
}
